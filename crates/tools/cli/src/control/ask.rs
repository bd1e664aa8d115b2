//! Questions of `stateplane ctl store` and `stateplane ctl coordination` to controllers and store
//! servers.

use crate::exit::{CommandError, Failure};
use serde::de::DeserializeOwned;
use stateplane_host::controller::{
    ControllerFile, ControllerView, CoordinationView, MulticastFile, MulticastView,
};
use stateplane_host::deployment;
use stateplane_host::store::view::{DigestView, FlowView, RecordView, StoreView};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::time::Duration;

/// Maximum time for a server to accept a connection.
const CONNECT: Duration = Duration::from_secs(1);

/// Maximum time for a server to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// Bytes of the longest answer.
const LONGEST: u64 = 1 << 28;

/// The servers of a deployment, as its file names them.
pub struct Deployment {
    controller: Option<ControllerFile>,
    /// The servers, where no controller chooses them.
    chain: Vec<Ipv4Addr>,
    /// Places of each group, if the deployment has coordination.
    slots: Option<u16>,
    multicast: Option<MulticastFile>,
    port: u16,
}

impl Deployment {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is not a deployment, or if its servers do not answer operators.
    pub fn read(path: &Path) -> Result<Deployment, CommandError> {
        let file = deployment::Deployment::read(path)
            .map_err(|error| CommandError::coded(Failure::Input, error.code(), &error))?;
        let port = file.operator_port.ok_or_else(|| {
            let name = path.display();
            let message = format!(
                "{name}: set `operator_port`, and start servers and controllers anew with it"
            );
            CommandError::new(Failure::Input, message)
        })?;
        Ok(Deployment {
            controller: file.controller,
            chain: file.replication.map_or(Vec::new(), |it| it.chain),
            slots: file.coordination.map(|it| it.slots),
            multicast: file.multicast,
            port,
        })
    }

    fn ask(&self, address: Ipv4Addr, method: &str, path: &str) -> Result<String, String> {
        let address = SocketAddr::from((address, self.port));
        let answer = exchange(address, method, path).map_err(|error| error.to_string())?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        match head.split(' ').nth(1) {
            Some("200") => Ok(body.to_owned()),
            _ if body.is_empty() => Err(head.lines().next().unwrap_or_default().to_owned()),
            _ => Err(body.trim().to_owned()),
        }
    }

    fn show<T: DeserializeOwned>(&self, address: Ipv4Addr, path: &str) -> Result<T, String> {
        let text = self.ask(address, "GET", path)?;
        serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
    }

    /// The controller that leads, and what it knows.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads.
    pub fn leader(&self) -> Result<(Ipv4Addr, ControllerView), CommandError> {
        let controller = self.controller.as_ref().ok_or_else(|| {
            let message = "the deployment has no [controller] section: of a chain that never \
                           changes, only `sketch` is shown";
            CommandError::new(Failure::Input, message)
        })?;
        self.leading(controller, "/controller", |view: &ControllerView| {
            view.leads
        })
    }

    /// The controller that leads, and what it knows of coordination.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads, or the deployment has no coordination.
    pub fn coordination(&self) -> Result<(Ipv4Addr, CoordinationView), CommandError> {
        let controller = self.controller.as_ref().filter(|_| self.slots.is_some());
        let controller = controller.ok_or_else(|| {
            let message = "the deployment lacks the section [controller] or [coordination]";
            CommandError::new(Failure::Input, message)
        })?;
        self.leading(controller, "/coordination", |view: &CoordinationView| {
            view.leads
        })
    }

    /// The controller that leads, and what it knows of multicast.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads, or the deployment has no multicast.
    pub fn multicast(&self) -> Result<(Ipv4Addr, MulticastView), CommandError> {
        let controller = self
            .controller
            .as_ref()
            .filter(|_| self.multicast.is_some());
        let controller = controller.ok_or_else(|| {
            let message = "the deployment lacks the section [controller] or [multicast]";
            CommandError::new(Failure::Input, message)
        })?;
        self.leading(controller, "/multicast", |view: &MulticastView| view.leads)
    }

    /// Lets the switch of multicast at `address` lose its groups, or take part again.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads, or there is no such switch.
    pub fn drain_multicast(&self, address: Ipv4Addr, drained: bool) -> Result<(), CommandError> {
        let (leader, _) = self.multicast()?;
        let file = self.multicast.as_ref();
        let number = file.and_then(|file| file.number_of(address));
        let number = number.ok_or_else(|| {
            let message = format!("there is no switch {address} in [multicast]");
            CommandError::new(Failure::Input, message)
        })?;
        let path = format!("/multicast/drain?switch={number}&drained={drained}");
        self.post(leader, &path)
    }

    /// Founds a group of multicast anew.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads, the deployment has no multicast, or a member of the
    /// group lives.
    pub fn refound_multicast(&self, group: u8) -> Result<(), CommandError> {
        let (leader, _) = self.multicast()?;
        self.post(leader, &format!("/multicast/refound?group={group}"))
    }

    /// The controllers, as clients of coordination reach them.
    ///
    /// # Errors
    ///
    /// Returns an error if the deployment has none.
    pub fn controllers(&self) -> Result<Vec<SocketAddrV4>, CommandError> {
        let controller = self.controller.as_ref().ok_or_else(|| {
            let message = "the deployment lacks the section [controller]";
            CommandError::new(Failure::Input, message)
        })?;
        let addresses = controller.addresses.iter();
        let addresses = addresses.map(|address| SocketAddrV4::new(*address, controller.port));
        Ok(addresses.collect())
    }

    /// Places of each group of coordination, 0 if the deployment has none.
    pub fn slots(&self) -> u16 {
        self.slots.unwrap_or_default()
    }

    /// The controller of `controller` that leads, with its answer at `path`.
    fn leading<T: DeserializeOwned>(
        &self,
        controller: &ControllerFile,
        path: &str,
        leads: impl Fn(&T) -> bool,
    ) -> Result<(Ipv4Addr, T), CommandError> {
        let mut reasons = Vec::new();
        for address in &controller.addresses {
            match self.show::<T>(*address, path) {
                Ok(view) if leads(&view) => return Ok((*address, view)),
                Ok(_) => reasons.push(format!("{address} does not lead")),
                Err(error) => reasons.push(format!("{address}: {error}")),
            }
        }
        let message = format!(
            "no controller leads ({}); the chains go on as they are",
            reasons.join("; ")
        );
        Err(CommandError::new(Failure::System, message))
    }

    /// Lets the server at `server` lose its shards, or take part again.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads.
    pub fn drain(&self, server: Ipv4Addr, drained: bool) -> Result<(), CommandError> {
        let (leader, _) = self.leader()?;
        self.post(leader, &format!("/drain?server={server}&drained={drained}"))
    }

    /// Lets a switch of coordination lose its groups, or take part again.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads, or the deployment has no coordination.
    pub fn drain_switch(&self, number: u32, drained: bool) -> Result<(), CommandError> {
        let (leader, _) = self.coordination()?;
        let path = format!("/coordination/drain?switch={number}&drained={drained}");
        self.post(leader, &path)
    }

    /// Founds a group of coordination anew.
    ///
    /// # Errors
    ///
    /// Returns an error if no controller leads, the deployment has no coordination, or a member of
    /// the group lives.
    pub fn refound(&self, group: u16) -> Result<(), CommandError> {
        let (leader, _) = self.coordination()?;
        self.post(leader, &format!("/coordination/refound?group={group}"))
    }

    fn post(&self, leader: Ipv4Addr, path: &str) -> Result<(), CommandError> {
        let asked = self.ask(leader, "POST", path);
        asked.map(drop).map_err(|error| {
            CommandError::new(Failure::System, format!("controller {leader}: {error}"))
        })
    }

    /// View of the server at `address`.
    pub fn store(&self, address: Ipv4Addr) -> Result<StoreView, String> {
        self.show(address, "/store")
    }

    /// View of a flow at the server at `address`.
    pub fn flows(&self, address: Ipv4Addr, key: &str) -> Result<Vec<FlowView>, String> {
        self.show(address, &format!("/flow?key={key}"))
    }

    /// The records of a class, as the tails of all chains have them.
    ///
    /// # Errors
    ///
    /// If a server that may be a tail does not answer, or has too many.
    pub fn records(&self, class: u8) -> Result<Vec<RecordView>, CommandError> {
        let servers: Vec<Ipv4Addr> = match &self.controller {
            None => self.chain.clone(),
            Some(_) => {
                let (_, view) = self.leader()?;
                let alive = view.servers.iter().filter(|server| server.alive);
                alive.map(|server| server.address).collect()
            }
        };
        let mut records = Vec::new();
        for server in servers {
            let path = format!("/records?class={class}");
            let found = self.show::<Vec<RecordView>>(server, &path);
            records.extend(found.map_err(|error| {
                CommandError::new(Failure::System, format!("{server}: {error}"))
            })?);
        }
        Ok(records)
    }

    /// The digest of the replica of `chain` at `address`, at entry `at` if it gets there
    /// soon.
    pub fn digest(&self, address: Ipv4Addr, chain: u16, at: u64) -> Result<DigestView, String> {
        self.show(address, &format!("/digest?chain={chain}&at={at}"))
    }
}

/// Sends a request and gives the whole answer.
fn exchange(address: SocketAddr, method: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    // The answers of HTTP/1.0 end with the connection.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.take(LONGEST).read_to_string(&mut answer)?;
    Ok(answer)
}
