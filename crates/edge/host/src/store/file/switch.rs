//! Switches and servers of a deployment, of which `stateplane init` makes the switches' files.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::Deserialize;

use super::{ClassFile, StoreFile};
use crate::deployment::Deployment;

/// A switch of the deployment, of which `stateplane init` makes the switch's file; servers and
/// controllers do not read it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentSwitchFile {
    /// Number of the switch, from 1, which no other has.
    pub number: u32,
    /// IPv4 address at which the store reaches the switch.
    pub address: Ipv4Addr,
    /// MAC address of the switch towards the store.
    pub mac: String,
    /// The interface of each port, from port 0 on.
    pub interfaces: Vec<String>,
    /// Port towards the store; the last one unless set.
    pub port: Option<u16>,
    /// Data ports that go down while the store is silent; all but `port` unless set.
    pub links: Option<Vec<u16>>,
    /// Bytes of the longest IP packet on the path to the store, which carries whole packets in
    /// messages; 1500 unless set.
    #[serde(default = "ethernet")]
    pub mtu: u16,
    /// File of the switch's table entries and the rest of its configuration, which stands in front
    /// of what is made; a path that is not absolute begins at the deployment's folder.
    pub tables: Option<PathBuf>,
}

/// A store server as switches reach it, of which `stateplane init` makes the switches' files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentServerFile {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its MAC address, or that of the next hop towards it.
    pub mac: String,
}

fn ethernet() -> u16 {
    1500
}

/// Why a deployment gives no files of switches.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// Nothing to make.
    #[error("the deployment has no [[replication.switch]]: add one for each switch")]
    NoSwitches,
    /// A server without a MAC address.
    #[error(
        "switches need the MAC address of {0}: add [[replication.server]] with `address` and `mac`, its own or that of the next hop"
    )]
    NoMac(Ipv4Addr),
    /// Two switches alike.
    #[error("two [[replication.switch]] have {key} = {value}: give each its own")]
    Twice {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// A port without an interface.
    #[error(
        "switch {switch}: {key} names port {port}, and `interfaces` has {count} of them, from port 0 on"
    )]
    NoInterface {
        /// The switch.
        switch: u32,
        /// The key.
        key: &'static str,
        /// The port.
        port: u16,
        /// Number of interfaces.
        count: usize,
    },
    /// The deployment's class is another than the program's.
    #[error(
        "the program needs {key} = {program}, and the deployment has {deployment}: change it there, or leave it out"
    )]
    Differs {
        /// The key.
        key: &'static str,
        /// The program's value.
        program: u64,
        /// The deployment's value.
        deployment: u64,
    },
}

impl InitError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            InitError::NoSwitches => "H131",
            InitError::NoMac(_) => "H132",
            InitError::Twice { .. } => "H133",
            InitError::NoInterface { .. } => "H134",
            InitError::Differs { .. } => "H135",
        }
    }
}

impl DeploymentSwitchFile {
    /// Port towards the store.
    ///
    /// # Errors
    ///
    /// [`InitError::NoInterface`] if no interface is its.
    pub fn store_port(&self) -> Result<u16, InitError> {
        let last = self.interfaces.len().saturating_sub(1);
        let port = self.port.unwrap_or(u16::try_from(last).unwrap_or(u16::MAX));
        self.checked("port", port)
    }

    fn checked(&self, key: &'static str, port: u16) -> Result<u16, InitError> {
        let count = self.interfaces.len();
        if usize::from(port) < count {
            Ok(port)
        } else {
            Err(InitError::NoInterface {
                switch: self.number,
                key,
                port,
                count,
            })
        }
    }

    /// Data ports that go down while the store is silent.
    fn watched(&self) -> Result<Vec<u16>, InitError> {
        let port = self.store_port()?;
        match &self.links {
            Some(links) => links
                .iter()
                .map(|link| self.checked("links", *link))
                .collect(),
            None => Ok((0..)
                .take(self.interfaces.len())
                .filter(|link| *link != port)
                .collect()),
        }
    }
}

impl Deployment {
    /// The keys that a program with flows of class `id`, `state_length` bytes of state and, if it says one,
    /// a promise of `term` ms lacks in the section `[replication]`: a text to append
    /// to the file.
    ///
    /// # Errors
    ///
    /// [`InitError::Differs`] if the section says otherwise.
    pub fn missing_class(
        &self,
        id: u8,
        state_length: u16,
        term: Option<u32>,
    ) -> Result<String, InitError> {
        let file = self.replication.as_ref();
        let differs = |key, program, deployment| {
            Err(InitError::Differs {
                key,
                program,
                deployment,
            })
        };
        let Some(file) = file else {
            return Err(InitError::NoSwitches);
        };
        if let Some(program) = term.filter(|term| *term != file.term_ms) {
            return differs("term_ms", program.into(), file.term_ms.into());
        }
        let known = file.class.iter().find(|class: &&ClassFile| class.id == id);
        match known {
            Some(class) if class.state_length != state_length => differs(
                "state_length",
                state_length.into(),
                class.state_length.into(),
            ),
            Some(_) => Ok(String::new()),
            None => Ok(format!(
                "\n# The flows of the program.\n[[replication.class]]\nid = {id}\n\
                 state_length = {state_length}\nfirst_lease = \"zero\"\n"
            )),
        }
    }

    /// The file of `switch`, one of the deployment's, as TOML, behind its `tables`. Its program's
    /// flows are of `class`, and begin with zero state.
    ///
    /// # Errors
    ///
    /// [`InitError`] if its ports have no interfaces, or a server no MAC address.
    pub fn switch_file(
        &self,
        file: &StoreFile,
        switch: &DeploymentSwitchFile,
        class: u8,
    ) -> Result<String, InitError> {
        let (port, links) = (switch.store_port()?, switch.watched()?);
        let server = |address: &Ipv4Addr| {
            let mut known = file.server.iter();
            let found = known.find(|server| server.address == *address);
            let mac = &found.ok_or(InitError::NoMac(*address))?.mac;
            Ok(format!("{{ address = \"{address}\", mac = {mac:?} }}"))
        };
        let mut text = format!(
            "[replication]\nswitch = {}\naddress = \"{}\"\nmac = {:?}\nport = {port}\n\
             links = {links:?}\nmtu = {}\n\
             classes = [{{ id = {class}, first_lease = \"zero\" }}]\n",
            switch.number, switch.address, switch.mac, switch.mtu
        );
        // Writing to a string cannot fail.
        match &self.controller {
            None => {
                let head = file
                    .chain
                    .first()
                    .map(server)
                    .transpose()?
                    .unwrap_or_default();
                let (shards, epoch) = (file.shards, file.chain_epoch);
                let _ = write!(
                    text,
                    "shards = {shards}\nchain_epoch = {epoch}\nheads = [{head}]\n"
                );
            }
            Some(controller) => {
                let sockets = controller.sockets().map(|socket| format!("\"{socket}\""));
                let servers = file.server.iter().map(|it| server(&it.address));
                let _ = write!(
                    text,
                    "\n[chains]\ncontrollers = [{}]\nswitch = {}\nport = {port}\nmtu = {}\n\
                     servers = [{}]\n",
                    sockets.collect::<Vec<_>>().join(", "),
                    switch.number,
                    switch.mtu,
                    servers.collect::<Result<Vec<_>, _>>()?.join(", ")
                );
            }
        }
        Ok(text)
    }

    /// The switches of the section `[replication]`, each with a number, address and MAC address of
    /// its own.
    ///
    /// # Errors
    ///
    /// [`InitError::NoSwitches`] or [`InitError::Twice`].
    pub fn switches<'f>(
        &self,
        file: &'f StoreFile,
    ) -> Result<&'f [DeploymentSwitchFile], InitError> {
        if file.switch.is_empty() {
            return Err(InitError::NoSwitches);
        }
        let numbers = file.switch.iter().map(|switch| switch.number.to_string());
        let addresses = file.switch.iter().map(|switch| switch.address.to_string());
        let macs = file.switch.iter().map(|switch| switch.mac.to_lowercase());
        let keys: [(_, Vec<String>); 3] = [
            ("number", numbers.collect()),
            ("address", addresses.collect()),
            ("mac", macs.collect()),
        ];
        for (key, mut values) in keys {
            values.sort();
            if let Some(pair) = values.windows(2).find(|pair| pair[0] == pair[1]) {
                let value = pair[0].clone();
                return Err(InitError::Twice { key, value });
            }
        }
        Ok(&file.switch)
    }
}
