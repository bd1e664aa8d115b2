//! Settings of a switch's file for greetings, and for neighbours that ask for the switch's addresses.

use std::net::IpAddr;

use stateplane_runtime::TargetState;
use stateplane_setup::Flows;

use super::replication::mac_address;
use super::{ChainServerFile, SwitchFile, SwitchFileCause, SwitchFileError};
use crate::switch::greeter::{Declared, Greeter, HeadFile, Own};
use crate::switch::neighbours::OwnAddress;

/// Register of the switch's start.
const INCARNATION: &str = "replication_incarnation";

impl SwitchFile {
    /// Greetings of a switch whose program has `flows` and whose state is `state`, if the file has
    /// a section `[replication]`.
    pub(in crate::switch) fn greeter(
        &self,
        flows: &Flows,
        state: &TargetState,
    ) -> Result<Option<Greeter>, SwitchFileError> {
        let Some(file) = self.replication.as_ref().map(|it| it.get_ref()) else {
            return Ok(None);
        };
        let incarnation = state.register(INCARNATION).ok();
        let incarnation = incarnation.and_then(|register| register.word(0));
        let own = Own {
            switch: file.switch,
            incarnation: incarnation.unwrap_or(1) as u32,
            address: file.address,
            mac: self.mac(&file.mac)?,
            port: file.port,
        };
        let line = |key: &str| self.lines.line(&format!("replication.{key}"));
        let fixed = !file.heads.is_empty();
        let first_leases = file.classes.iter().enumerate();
        let declared = Declared {
            shards: fixed.then(|| (file.shards, line("shards"))),
            chain_epoch: fixed.then(|| (file.chain_epoch, line("chain_epoch"))),
            first_leases: first_leases
                .map(|(at, class)| {
                    let line = line(&format!("classes.{at}.first_lease"));
                    (class.id, class.first_lease.number(), line)
                })
                .collect(),
            address_line: line("address"),
        };
        let path = self.path.display().to_string();
        let links = file.links.clone();
        let mut greeter = Greeter::new(own, path, flows, declared, links);
        if fixed {
            for shard in 0..file.shards {
                let at = usize::from(shard) % file.heads.len();
                let line = line(&format!("heads.{at}"));
                greeter.set_head(shard, self.head(&file.heads[at], line)?);
            }
        }
        Ok(Some(greeter))
    }

    fn head(
        &self,
        server: &ChainServerFile,
        line: Option<u32>,
    ) -> Result<HeadFile, SwitchFileError> {
        Ok(HeadFile {
            address: server.address,
            mac: self.mac(&server.mac)?,
            line,
        })
    }

    fn mac(&self, text: &str) -> Result<[u8; 6], SwitchFileError> {
        mac_address(text).map_err(|cause| SwitchFileError::new(&self.path, None, cause))
    }

    /// Addresses of the switch, which neighbours may ask for.
    pub(in crate::switch) fn own_addresses(&self) -> Result<Vec<OwnAddress>, SwitchFileError> {
        let mut own = Vec::new();
        if let Some(file) = self.replication.as_ref().map(|it| it.get_ref()) {
            own.push(OwnAddress {
                port: Some(file.port),
                address: file.address.into(),
                mac: Some(self.mac(&file.mac)?),
            });
        }
        let coordination = self.coordination.iter().map(|it| it.get_ref().address);
        let sync = self.sync.iter().map(|it| it.get_ref().address);
        own.extend(coordination.chain(sync).map(|address| OwnAddress {
            port: None,
            address: IpAddr::V4(address),
            mac: None,
        }));
        let listed = self.ports.iter().flat_map(|it| &it.get_ref().addresses);
        for file in listed {
            own.push(OwnAddress {
                port: Some(file.port),
                address: file.address,
                mac: file.mac.as_deref().map(|mac| self.mac(mac)).transpose()?,
            });
        }
        Ok(own)
    }

    /// True if a controller tells the chains.
    pub(in crate::switch) fn follows_a_controller(&self) -> bool {
        self.chains.is_some()
    }
}

impl super::ChainsFile {
    /// The head of a chain that the controller names; `None` if the file does not have it.
    pub(in crate::switch) fn head(
        &self,
        address: std::net::Ipv4Addr,
    ) -> Result<Option<HeadFile>, SwitchFileCause> {
        let mut servers = self.servers.iter();
        let Some(server) = servers.find(|server| server.address == address) else {
            return Ok(None);
        };
        Ok(Some(HeadFile {
            address,
            mac: mac_address(&server.mac)?,
            line: None,
        }))
    }
}
