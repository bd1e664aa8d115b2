//! A deployment's file, which all its servers and controllers read: what they share, and one
//! section for each system.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::controller::{ControllerFile, CoordinationFile, MulticastFile};
use crate::lines::Lines;
use crate::store::StoreFile;

mod error;
mod keys;

pub use error::DeploymentError;
use keys::Section;

/// A deployment, as its TOML file says it.
///
/// ```
/// let text = r#"
///     listen = "10.0.0.11"            # the server's own address
///     operator_port = 4796
///
///     [controller]
///     addresses = ["10.0.0.20"]
///
///     [replication]
///     shards = 4
///
///     [[replication.class]]
///     id = 1
///     state_length = 8
///     first_lease = "zero"
/// "#;
/// let deployment =
///     stateplane_host::deployment::Deployment::parse("deployment.toml".as_ref(), text)?;
/// assert_eq!(deployment.replication()?.shards, 4);
/// # Ok::<(), stateplane_host::deployment::DeploymentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deployment {
    /// The server's own address, where it listens. In a file that several servers share,
    /// each gets its own on the command line.
    #[serde(default = "unspecified")]
    pub listen: Ipv4Addr,
    /// TCP port at which each server and controller answers operators over HTTP
    /// (`stateplane ctl store`, metrics, health), on its own address; none unless set.
    pub operator_port: Option<u16>,
    /// The controllers, which know the servers' health and decide what servers do.
    pub controller: Option<ControllerFile>,
    /// The system of replication: the store's chains, leases and classes of flows.
    pub replication: Option<StoreFile>,
    /// The system of coordination: its switches and groups.
    pub coordination: Option<CoordinationFile>,
    /// The system of multicast: its switches and groups.
    pub multicast: Option<MulticastFile>,
    #[serde(skip)]
    path: PathBuf,
    #[serde(skip)]
    lines: Lines,
}

/// All sections.
const SECTIONS: &[Section] = &[
    Section::of::<ControllerFile>("controller"),
    Section::of::<StoreFile>("replication"),
    Section::of::<CoordinationFile>("coordination"),
    Section::of::<MulticastFile>("multicast"),
];

fn unspecified() -> Ipv4Addr {
    Ipv4Addr::UNSPECIFIED
}

impl Deployment {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// [`DeploymentError`] if it cannot be read, or is not a deployment's.
    pub fn read(path: &Path) -> Result<Deployment, DeploymentError> {
        let text = std::fs::read_to_string(path).map_err(|cause| DeploymentError::Read {
            path: path.into(),
            cause,
        })?;
        Deployment::parse(path, &text)
    }

    /// Reads `text`, the contents of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`DeploymentError`] if it is not a deployment's.
    pub fn parse(path: &Path, text: &str) -> Result<Deployment, DeploymentError> {
        let deployment: Deployment = toml::from_str(text)
            .map_err(|cause| DeploymentError::of_parser(path, text, cause, SECTIONS))?;
        Ok(Deployment {
            path: path.into(),
            lines: Lines::of(text),
            ..deployment
        })
    }

    /// The line that sets the key at `path`, such as `replication.class.0.id`, if one does.
    pub(crate) fn line(&self, path: &str) -> Option<u32> {
        self.lines.line(path)
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The section `[replication]`.
    ///
    /// # Errors
    ///
    /// [`DeploymentError::NoSection`] if the file has none.
    pub fn replication(&self) -> Result<&StoreFile, DeploymentError> {
        let section = self.replication.as_ref();
        section.ok_or_else(|| self.lacks("replication"))
    }

    /// The section `[coordination]`.
    ///
    /// # Errors
    ///
    /// [`DeploymentError::NoSection`] if the file has none.
    pub fn coordination(&self) -> Result<&CoordinationFile, DeploymentError> {
        let section = self.coordination.as_ref();
        section.ok_or_else(|| self.lacks("coordination"))
    }

    /// The section `[multicast]`.
    ///
    /// # Errors
    ///
    /// [`DeploymentError::NoSection`] if the file has none.
    pub fn multicast(&self) -> Result<&MulticastFile, DeploymentError> {
        let section = self.multicast.as_ref();
        section.ok_or_else(|| self.lacks("multicast"))
    }

    /// The section `[replication]`, to change.
    ///
    /// # Errors
    ///
    /// [`DeploymentError::NoSection`] if the file has none.
    pub fn replication_mut(&mut self) -> Result<&mut StoreFile, DeploymentError> {
        let lacks = self.lacks("replication");
        self.replication.as_mut().ok_or(lacks)
    }

    fn lacks(&self, name: &'static str) -> DeploymentError {
        DeploymentError::NoSection {
            path: self.path.clone(),
            name,
        }
    }
}

#[cfg(test)]
mod tests;
