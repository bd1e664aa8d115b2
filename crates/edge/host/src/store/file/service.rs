//! Services and their servers in the configuration file.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU32;

use serde::Deserialize;
use stateplane_store::{Service, ServiceId, ServiceServer};

use super::class::ProtocolFile;

/// A service, whose flows the store gives to servers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceFile {
    /// Address to which clients send.
    pub address: Ipv4Addr,
    /// Protocol of its flows; TCP unless set.
    #[serde(default = "tcp")]
    pub protocol: ProtocolFile,
    /// Port to which clients send.
    pub port: u16,
    /// The servers of the service.
    pub servers: Vec<ServiceServerFile>,
    /// Health check of the servers; all count as healthy unless set.
    pub health: Option<HealthFile>,
}

/// One server of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceServerFile {
    /// Its address.
    pub address: Ipv4Addr,
    /// Its port; that of the service unless set.
    pub port: Option<u16>,
    /// Its share of the flows, beside the weights of the others; 1 unless set. With 0 it
    /// keeps its flows and gets no more.
    #[serde(default = "one")]
    pub weight: u16,
    /// Maximum number of flows of the server; unlimited unless set.
    pub most: Option<u32>,
}

/// Health check by each store server: TCP connections to a server, which are closed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HealthFile {
    /// ms between two connections; 2000 unless set.
    pub interval_ms: NonZeroU32,
    /// ms within which the server must answer; 500 unless set.
    pub timeout_ms: NonZeroU32,
    /// Number of successive failures that make the server unhealthy; 3 unless set.
    pub fall: NonZeroU32,
    /// Number of successive answers that make the server healthy again; 2 unless set.
    pub rise: NonZeroU32,
}

impl Default for HealthFile {
    fn default() -> HealthFile {
        let from_one = |value| NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN);
        HealthFile {
            interval_ms: from_one(2000),
            timeout_ms: from_one(500),
            fall: from_one(3),
            rise: from_one(2),
        }
    }
}

fn tcp() -> ProtocolFile {
    ProtocolFile::Tcp
}

fn one() -> u16 {
    1
}

impl ServiceServerFile {
    /// Its address and port, as a server of `service`.
    pub(in crate::store) fn endpoint(&self, service: &ServiceFile) -> SocketAddrV4 {
        SocketAddrV4::new(self.address, self.port.unwrap_or(service.port))
    }
}

impl ServiceFile {
    pub(super) fn config(&self) -> Service {
        let id = ServiceId {
            protocol: self.protocol.number(),
            endpoint: SocketAddrV4::new(self.address, self.port),
        };
        let servers = self.servers.iter().map(|server| ServiceServer {
            endpoint: server.endpoint(self),
            weight: server.weight,
            most: server.most,
        });
        Service {
            id,
            servers: servers.collect(),
        }
    }
}
