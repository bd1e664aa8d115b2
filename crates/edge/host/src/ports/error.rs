//! Why a port does not open, or fails.

use std::io;
use std::net::IpAddr;

/// The host's uses of an interface, in words.
fn uses(addresses: &[IpAddr], default_route: bool) -> String {
    let mut uses: Vec<String> = addresses
        .iter()
        .map(|address| format!("it has the address {address}"))
        .collect();
    if default_route {
        uses.push("the default route leaves by it".to_owned());
    }
    uses.join(", ")
}

/// Why a port does not open, or fails.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// No interface has the name.
    #[error("there is no interface `{name}`; there are: {}", existing.join(", "))]
    NoSuchInterface {
        /// The name.
        name: String,
        /// The interfaces of this network namespace.
        existing: Vec<String>,
    },
    /// Two ports with one interface.
    #[error("interface `{name}` is given to ports {first} and {second}: give each its own")]
    DuplicateInterface {
        /// The interface.
        name: String,
        /// The port that has it.
        first: u16,
        /// The port that was to have it too.
        second: u16,
    },
    /// The process may not do it.
    #[error(
        "{action} interface `{name}` is not permitted: run as root, or with CAP_NET_RAW and CAP_NET_ADMIN"
    )]
    NotPermitted {
        /// Name of the refused operation.
        action: &'static str,
        /// The interface.
        name: String,
    },
    /// The interface carries something else than Ethernet frames.
    #[error(
        "interface `{name}` is not an Ethernet interface (its hardware type is {kind}): choose one that is, such as veth or a tap"
    )]
    NotEthernet {
        /// The interface.
        name: String,
        /// `ARPHRD_*` of `if_arp.h`.
        kind: u16,
    },
    /// AF_XDP alone was asked for, and cannot be had.
    #[error(
        "interface `{name}` cannot be had by AF_XDP: {refusal}; `{name}` in place of `xdp:{name}` falls back to AF_PACKET"
    )]
    NoXdp {
        /// The interface.
        name: String,
        /// Why.
        refusal: super::XdpRefusal,
    },
    /// The host uses the interface itself.
    #[error(
        "interface `{name}` is the host's own: {}; a switch that takes its frames by AF_XDP cuts the host off there. Give the switch an interface without addresses and default route, or `packet:{name}`, which leaves the host a copy of each frame, or take it with --take-over",
        uses(addresses, *default_route)
    )]
    InUse {
        /// The interface.
        name: String,
        /// Its addresses, without those of its link.
        addresses: Vec<IpAddr>,
        /// True if a default route leaves by it.
        default_route: bool,
    },
    /// A capture cannot be written.
    #[error("capture `{}` cannot be written: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: std::path::PathBuf,
        /// Error of the operating system, or of the capture's format.
        cause: String,
    },
    /// A capture cannot be read.
    #[error("capture `{}`: {cause}", path.display())]
    Capture {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        cause: String,
    },
    /// The system refuses for another reason.
    #[error("{action} interface `{name}`: {cause}")]
    System {
        /// Name of the refused operation.
        action: &'static str,
        /// The interface.
        name: String,
        /// Error of the operating system.
        cause: io::Error,
    },
}

impl PortError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            PortError::NoSuchInterface { .. } => "H201",
            PortError::DuplicateInterface { .. } => "H202",
            PortError::NotPermitted { .. } => "H203",
            PortError::NotEthernet { .. } => "H204",
            PortError::System { .. } => "H205",
            PortError::NoXdp { .. } => "H206",
            PortError::Capture { .. } => "H207",
            PortError::InUse { .. } => "H208",
            PortError::Unwritable { .. } => "H209",
        }
    }

    /// Error for `cause`, which the system returned for `action` on `name`.
    pub(crate) fn from_system(action: &'static str, name: &str, cause: io::Error) -> PortError {
        let name = name.to_owned();
        match cause.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => PortError::NotPermitted { action, name },
            Some(libc::ENODEV | libc::ENXIO) => PortError::NoSuchInterface {
                name,
                existing: super::interface::names(),
            },
            _ => PortError::System {
                action,
                name,
                cause,
            },
        }
    }
}
