//! Specifications of ports, as users write them.

use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Specification of a port.
///
/// | text | meaning |
/// |---|---|
/// | `eth0` | an interface, by AF_XDP where it can be had, else by AF_PACKET |
/// | `xdp:eth0` | an interface, by AF_XDP only |
/// | `packet:eth0` | an interface, by AF_PACKET only |
/// | `tap:t0` | a TAP device, made for the port and removed with it |
/// | `pcap:in.pcap,out.pcap` | captures: frames to take and a file for those sent; either may be left out |
/// | `pcap@:in.pcap,out.pcap` | the same, at the times of the capture |
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSpec {
    /// A network interface.
    Interface {
        /// Its name.
        name: String,
        /// Kernel interface for the frames.
        access: Access,
    },
    /// A TAP device of this name, made for the port.
    Tap(String),
    /// Captures.
    Capture {
        /// Frames to take; none if absent.
        input: Option<PathBuf>,
        /// Capture file to which sent frames are written; none if absent.
        output: Option<PathBuf>,
        /// True if frames are received at the times of the capture, rather than as fast as they are
        /// processed.
        timed: bool,
    },
}

/// Kernel interface through which an interface's frames are received and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By AF_XDP if driver and rights permit it, else by AF_PACKET.
    Best,
    /// By AF_XDP only.
    Xdp,
    /// By AF_PACKET only.
    Packet,
}

/// Present mode of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum PortMode {
    /// AF_XDP; the driver writes into the shared memory.
    #[serde(rename = "AF_XDP zero-copy")]
    XdpZeroCopy,
    /// AF_XDP; the kernel copies into the shared memory.
    #[serde(rename = "AF_XDP copy")]
    XdpCopy,
    /// AF_PACKET.
    #[serde(rename = "AF_PACKET")]
    Packet,
    /// A TAP device.
    #[serde(rename = "TAP")]
    Tap,
    /// Capture files.
    #[serde(rename = "pcap")]
    Capture,
}

impl fmt::Display for PortMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PortMode::XdpZeroCopy => "AF_XDP zero-copy",
            PortMode::XdpCopy => "AF_XDP copy",
            PortMode::Packet => "AF_PACKET",
            PortMode::Tap => "TAP",
            PortMode::Capture => "pcap",
        })
    }
}

impl PortSpec {
    /// Port at the interface `name`, with AF_XDP if possible, otherwise with AF_PACKET.
    pub fn interface(name: impl Into<String>) -> PortSpec {
        PortSpec::Interface {
            name: name.into(),
            access: Access::Best,
        }
    }

    /// The interface that the port is or makes.
    pub fn interface_name(&self) -> Option<&str> {
        match self {
            PortSpec::Interface { name, .. } | PortSpec::Tap(name) => Some(name),
            PortSpec::Capture { .. } => None,
        }
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortSpec::Interface { name, access } => match access {
                Access::Best => f.write_str(name),
                Access::Xdp => write!(f, "xdp:{name}"),
                Access::Packet => write!(f, "packet:{name}"),
            },
            PortSpec::Tap(name) => write!(f, "tap:{name}"),
            PortSpec::Capture {
                input,
                output,
                timed,
            } => {
                let path = |path: &Option<PathBuf>| {
                    path.as_ref()
                        .map(|path| path.display().to_string())
                        .unwrap_or_default()
                };
                let at = if *timed { "@" } else { "" };
                write!(f, "pcap{at}:{},{}", path(input), path(output))
            }
        }
    }
}

impl FromStr for PortSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PortSpec, String> {
        let interface = |name: &str, access| {
            if name.is_empty() {
                return Err("names no interface".to_owned());
            }
            Ok(PortSpec::Interface {
                name: name.to_owned(),
                access,
            })
        };
        match text.split_once(':') {
            Some(("xdp", name)) => interface(name, Access::Xdp),
            Some(("packet", name)) => interface(name, Access::Packet),
            Some(("tap", "")) => Err("names no TAP device: write for example tap:t0".to_owned()),
            Some(("tap", name)) => Ok(PortSpec::Tap(name.to_owned())),
            Some((kind @ ("pcap" | "pcap@"), files)) => {
                let (input, output) = files.split_once(',').unwrap_or((files, ""));
                if input.is_empty() && output.is_empty() {
                    return Err(
                        "names no capture: write for example pcap:in.pcap,out.pcap".to_owned()
                    );
                }
                let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
                Ok(PortSpec::Capture {
                    input: path(input),
                    output: path(output),
                    timed: kind == "pcap@",
                })
            }
            // Interfaces may have colons in their names.
            _ => interface(text, Access::Best),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "eth0",
            "eth0:1",
            "xdp:eth0",
            "packet:eth0",
            "tap:t0",
            "pcap:a.pcap,b.pcap",
            "pcap:a.pcap,",
            "pcap:,b.pcap",
            "pcap@:a.pcap,b.pcap",
        ] {
            let spec: PortSpec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        assert_eq!(
            "pcap:a.pcap".parse::<PortSpec>().unwrap().to_string(),
            "pcap:a.pcap,"
        );
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for text in ["", "xdp:", "packet:", "tap:", "pcap:", "pcap:,", "pcap@:"] {
            assert!(text.parse::<PortSpec>().is_err(), "{text}");
        }
    }
}
