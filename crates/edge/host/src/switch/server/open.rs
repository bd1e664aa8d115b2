//! A server's ports: which there are, and who has their frames.

use super::super::forwarding::Forwarding;
use super::super::heartbeats::Beats;
use super::super::neighbours::Neighbours;
use super::super::sealing::SharedSealing;
use super::super::told::Told;
use super::super::workers::Workers;
use super::super::{ControlPlane, Sealing, SwitchServerError};
use super::{ServedPort, SwitchServer};

use crate::poll::Readable;
use crate::ports::{Port as HostPort, PortError, PortQueue, PortSpec};
use stateplane_runtime::Engine;
use stateplane_switch::{Port, Switch, SwitchError};
use std::collections::BTreeMap;

impl<E: Engine> SwitchServer<E> {
    /// Opens what `ports` name, one for each port of `switch`. Each interface is set up,
    /// unless a watch wants its port down.
    ///
    /// # Errors
    ///
    /// Returns [`SwitchServerError`] for a port without interface or an interface without port, and
    /// for an interface that is missing, given twice or not permitted.
    pub fn open(switch: Switch<E>, specs: &[(Port, PortSpec)]) -> Result<Self, SwitchServerError> {
        SwitchServer::with_control_plane(switch, specs, None, None)
    }

    /// Like [`open`](Self::open), with a control plane; its CPU port has no interface.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`open`](Self::open).
    pub fn with_control_plane(
        switch: Switch<E>,
        specs: &[(Port, PortSpec)],
        control: Option<Box<dyn ControlPlane<E>>>,
        cpu_port: Option<Port>,
    ) -> Result<Self, SwitchServerError> {
        SwitchServer::with(
            Forwarding::Alone(Box::new(switch)),
            specs,
            control,
            cpu_port,
            None,
        )
    }

    pub(in crate::switch) fn with(
        mut switch: Forwarding<E>,
        specs: &[(Port, PortSpec)],
        control: Option<Box<dyn ControlPlane<E>>>,
        cpu_port: Option<Port>,
        sealing: Option<Sealing>,
    ) -> Result<Self, SwitchServerError> {
        if specs.is_empty() {
            return Err(SwitchServerError::NoPorts);
        }
        let mut sealed = sealing.iter().flat_map(Sealing::ports);
        if let Some(port) = sealed.find(|port| !specs.iter().any(|(number, _)| number == *port)) {
            return Err(SwitchServerError::SealedPort(*port));
        }
        check_distinct(specs)?;
        let threads = switch.workers().map(Workers::len);
        let has_interface = |port: &&Port| {
            cpu_port == Some(**port) || specs.iter().any(|(number, _)| number == *port)
        };
        if let Some(port) = switch.ports().iter().find(|port| !has_interface(port)) {
            return Err(SwitchServerError::PortWithoutInterface(*port));
        }
        let mut ports: Vec<(ServedPort, Vec<PortQueue>)> = Vec::new();
        for (number, spec) in specs {
            if ports.iter().any(|(served, _)| served.number == *number) {
                return Err(SwitchError::DuplicatePort(*number).into());
            }
            if !switch.ports().contains(number) {
                return Err(unknown_port(*number, switch.ports()).into());
            }
            let (port, queues) = match threads {
                Some(threads) => HostPort::open_divided(spec, threads)?,
                None => (HostPort::open(spec)?, Vec::new()),
            };
            let served = ServedPort {
                number: *number,
                hardware: port.hardware_address(),
                port,
                outgoing: Vec::new(),
            };
            ports.push((served, queues));
        }
        ports.sort_by_key(|(served, _)| served.number);
        let (ports, queues): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
        for ((at, served), queues) in ports.iter().enumerate().zip(queues) {
            switch.set_queues(at, served.hardware, queues);
        }
        let (sealing, shared_sealing) = match threads {
            Some(_) => (None, sealing.map(SharedSealing::new)),
            None => (sealing, None),
        };
        let mut server = SwitchServer {
            switch,
            ports,
            readable: Readable::new([]).map_err(SwitchServerError::Wait)?,
            readers: Vec::new(),
            outgoing_since: None,
            pending: BTreeMap::new(),
            port_state_failed: 0,
            patience: None,
            control,
            cpu_port,
            remote: None,
            sealing,
            shared_sealing,
            greeter: None,
            beats: Beats::new(),
            filter: None,
            told: Told::default(),
            neighbours: Neighbours::default(),
            busy_poll: 0,
            received_at: 0,
        };
        server.listen();
        server.start()?;
        Ok(server)
    }
}

fn unknown_port(port: Port, ports: &[Port]) -> SwitchError {
    let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
    SwitchError::UnknownPort(port, ports.join(", "))
}

fn check_distinct(specs: &[(Port, PortSpec)]) -> Result<(), PortError> {
    let interfaces: Vec<(Port, &str)> = specs
        .iter()
        .filter_map(|(number, spec)| Some((*number, spec.interface_name()?)))
        .collect();
    for (at, (second, name)) in interfaces.iter().enumerate() {
        if let Some((first, _)) = interfaces[..at].iter().find(|(_, other)| other == name) {
            let (name, first, second) = ((*name).to_owned(), *first, *second);
            return Err(PortError::DuplicateInterface {
                name,
                first,
                second,
            });
        }
    }
    Ok(())
}
