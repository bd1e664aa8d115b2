//! The section `[controller]` of a deployment.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::Deserialize;
use stateplane_wire::control;

use super::ControllerError;

/// The section `[controller]` of a deployment file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerFile {
    /// Addresses at which servers and switches reach the controllers, one for each controller; one
    /// of several leads.
    pub addresses: Vec<Ipv4Addr>,
    /// UDP port; 4795 unless set.
    #[serde(default = "port")]
    pub port: u16,
    /// The etcd that keeps the configurations of the chains and elects one of several
    /// controllers; otherwise the file `log` keeps them.
    pub etcd: Option<EtcdFile>,
    /// File that keeps the configurations of the chains; a path that is not absolute
    /// begins at the working directory. One controller alone can have it.
    #[serde(default = "log")]
    pub log: PathBuf,
    /// ms between the heartbeats of a server; 50 unless set.
    #[serde(default = "fifty")]
    pub heartbeat_ms: u32,
    /// ms of silence after which a server is taken for dead; 200 unless set.
    #[serde(default = "two_hundred")]
    pub detection_ms: u32,
}

/// An etcd, in the section `[controller.etcd]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdFile {
    /// Client addresses of its members, as `http://10.0.0.1:2379`.
    pub endpoints: Vec<String>,
    /// Prefix of the store's keys in etcd; `/stateplane` unless set.
    #[serde(default = "prefix")]
    pub prefix: String,
    /// Seconds after which another controller takes over from a silent one; 2 unless set.
    #[serde(default = "two")]
    pub lease_s: u16,
    /// Certificates (PEM) that `https` endpoints have to be signed by.
    pub tls_roots: Option<PathBuf>,
    /// Certificate (PEM) of the controller, for mutual TLS.
    pub tls_certificate: Option<PathBuf>,
    /// Private key (PEM) of the controller.
    pub tls_key: Option<PathBuf>,
}

fn prefix() -> String {
    "/stateplane".to_owned()
}

fn two() -> u16 {
    2
}

fn port() -> u16 {
    control::PORT
}

fn log() -> PathBuf {
    "stateplane-chains.log".into()
}

fn fifty() -> u32 {
    50
}

fn two_hundred() -> u32 {
    200
}

/// The number of the server at `address`, by which controller and chains know it.
pub(crate) fn server_number(address: Ipv4Addr) -> u32 {
    address.to_bits()
}

impl ControllerFile {
    /// Addresses at which the controllers listen.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddrV4> {
        let addresses = self.addresses.iter();
        addresses.map(|address| SocketAddrV4::new(*address, self.port))
    }

    /// Address of the controller at `listen`, or of the only one.
    ///
    /// # Errors
    ///
    /// [`ControllerError::NoAddress`] or [`ControllerError::WrongAddress`];
    /// [`ControllerError::NoElection`] if there are several that nothing elects from.
    pub fn socket(&self, listen: Option<Ipv4Addr>) -> Result<SocketAddrV4, ControllerError> {
        if self.addresses.len() > 1 && self.etcd.is_none() {
            let count = self.addresses.len();
            return Err(ControllerError::NoElection { count });
        }
        let address = match (listen, self.addresses.as_slice()) {
            (Some(listen), all) if all.contains(&listen) => listen,
            (Some(listen), _) => return Err(ControllerError::WrongAddress { listen }),
            (None, [only]) => *only,
            (None, all) => return Err(ControllerError::NoAddress { count: all.len() }),
        };
        Ok(SocketAddrV4::new(address, self.port))
    }

    /// µs between the heartbeats of a server, at least 1 ms.
    pub fn heartbeat(&self) -> u64 {
        u64::from(self.heartbeat_ms.max(1)) * 1000
    }

    /// µs of silence after which a server is taken for dead.
    ///
    /// # Errors
    ///
    /// [`ControllerError::TooLong`] for heartbeats so rare that a live server would be.
    pub(crate) fn detection(&self) -> Result<u64, ControllerError> {
        if self.heartbeat_ms.saturating_mul(2) > self.detection_ms {
            return Err(ControllerError::TooLong {
                name: "heartbeat_ms",
                value: self.heartbeat_ms.into(),
                most: (self.detection_ms / 2).into(),
            });
        }
        Ok(u64::from(self.detection_ms) * 1000)
    }
}
