//! Services and their servers in the configuration file.

use std::net::{Ipv4Addr, SocketAddrV4};

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
    /// Who serves it.
    pub servers: Vec<ServiceServerFile>,
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
    /// Most flows that it is given; any number unless set.
    pub most: Option<u32>,
}

fn tcp() -> ProtocolFile {
    ProtocolFile::Tcp
}

fn one() -> u16 {
    1
}

impl ServiceFile {
    pub(super) fn config(&self) -> Service {
        let id = ServiceId {
            protocol: self.protocol.number(),
            endpoint: SocketAddrV4::new(self.address, self.port),
        };
        let servers = self.servers.iter().map(|server| ServiceServer {
            endpoint: SocketAddrV4::new(server.address, server.port.unwrap_or(self.port)),
            weight: server.weight,
            most: server.most,
        });
        Service {
            id,
            servers: servers.collect(),
        }
    }
}
