//! Runs a switch from its file: on one thread, or with workers.

use super::forwarding::Forwarding;
use super::greeter::Greeter;
use super::placing::{Placing, stay_on};
use super::server::{Notify, Status, SwitchServer};
use super::workers::{Controlled, Workers};
use super::{
    Attachment, ControlPlane, RemoteCalls, Sealing, SwitchFile, SwitchReport, SwitchServerError,
};

use crate::ports::PortSpec;
use crate::random::{draw_registers, random_bits};
use stateplane_runtime::{Engine, Fellow};
use stateplane_setup::{Flows, GENERATOR_PORT, HEARTBEAT_PORT, TERM, check_complete};
use stateplane_switch::{Port, Switch, SwitchConfig};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Observers of [`run_switch`] and the flag that stops it.
pub struct RunOptions<'a> {
    /// Ends the run when it is set.
    pub stop: &'a AtomicBool,
    /// Called when frames are taken, with the report at that time.
    pub ready: &'a mut dyn FnMut(&SwitchReport),
    /// Asks for reports.
    pub status: Option<Status<'a>>,
    /// Function that is told of ports that fail, return, or change their mode.
    pub notify: &'a mut Notify<'a>,
    /// Gives up after so long without the sign of life that a watch waits for.
    pub patience: Option<Duration>,
    /// Ports through which messages of the replication protocol pass sealed.
    pub sealing: Option<Sealing>,
    /// Flows of a replicated program, which are compared with the store's.
    pub flows: Option<Flows>,
}

/// Runs a switch around `engine` between `ports` until it is stopped: applies `file`,
/// opens the ports, says that it is ready, and forwards. Returns what it did.
///
/// # Errors
///
/// [`SwitchServerError`] if the file does not fit the program, an interface cannot be
/// opened, or the system refuses to go on.
pub fn run_switch<E: Engine>(
    engine: E,
    file: &SwitchFile,
    ports: &[(Port, PortSpec)],
    options: RunOptions<'_>,
) -> Result<SwitchReport, SwitchServerError> {
    run_controlled(engine, file, ports, options, Beside::default())
}

/// Attachments through which others reach a running switch.
pub struct Beside<'a, E: Engine> {
    /// A control plane.
    pub control: Option<Attachment<'a, E>>,
    /// Requests of other threads.
    pub remote: Option<RemoteCalls<E>>,
    /// How the thread runs that forwards.
    pub placing: Placing,
}

impl<E: Engine> Default for Beside<'_, E> {
    fn default() -> Self {
        Beside {
            control: None,
            remote: None,
            placing: Placing::default(),
        }
    }
}

/// Like [`run_switch`], with a control plane and calls of other threads.
///
/// # Errors
///
/// As [`run_switch`], and [`SwitchServerError::Control`] if the control plane cannot be
/// made.
pub fn run_controlled<E: Engine>(
    engine: E,
    file: &SwitchFile,
    ports: &[(Port, PortSpec)],
    mut options: RunOptions<'_>,
    beside: Beside<'_, E>,
) -> Result<SwitchReport, SwitchServerError> {
    let Beside {
        control,
        remote,
        placing,
    } = beside;
    let Prepared {
        switch,
        greeter,
        control,
        cpu_port,
    } = prepare(engine, file, ports, &options, control)?;
    let mut server = SwitchServer::with(
        Forwarding::Alone(Box::new(switch)),
        ports,
        control,
        cpu_port,
        options.sealing.take(),
    )?;
    server.set_busy_poll(placing.busy_poll_us());
    let stay = |processor: Option<usize>| processor.map_or(Ok(()), stay_on);
    let stays = placing.processor(0).and_then(stay);
    stays.map_err(|error| SwitchServerError::Control(format!("cannot be pinned: {error}")))?;
    server.run_with(file, greeter, remote, options)
}

/// A switch with what its file says and what is attached to it.
struct Prepared<E: Engine> {
    switch: Switch<E>,
    greeter: Option<Greeter>,
    control: Option<Box<dyn ControlPlane<E>>>,
    cpu_port: Option<Port>,
}

fn prepare<E: Engine>(
    engine: E,
    file: &SwitchFile,
    ports: &[(Port, PortSpec)],
    options: &RunOptions<'_>,
    attachment: Option<Attachment<'_, E>>,
) -> Result<Prepared<E>, SwitchServerError> {
    let sealed_ports = options.sealing.as_ref().map_or(&[][..], Sealing::ports);
    let file = &file.with_sealed_ports(sealed_ports);
    let cpu_port = attachment.as_ref().and_then(|it| it.cpu_port);
    let interfaces = ports.iter().map(|(number, _)| *number);
    let config = SwitchConfig {
        ports: interfaces.chain(cpu_port).collect(),
        ..SwitchConfig::default()
    };
    let switch = configured(engine, config, file)?;
    check_ports(&switch)?;
    // A control plane may set later what the file lacks.
    let greeter = match &options.flows {
        Some(flows) if attachment.is_none() => greeter(&switch, file, flows)?,
        _ => None,
    };
    let control = attachment.map(|attachment| (attachment.make)(&switch));
    Ok(Prepared {
        greeter,
        control: control.transpose().map_err(SwitchServerError::Control)?,
        cpu_port,
        switch,
    })
}

/// Refuses an interface at a port of which a replicated program takes frames for the host's own: a
/// stranger behind it could send what it likes to the store as the switch, sealed where the switch
/// seals.
fn check_ports<E: Engine>(switch: &Switch<E>) -> Result<(), SwitchServerError> {
    if switch.engine().state().register(TERM).is_err() {
        return Ok(());
    }
    let reserved = [GENERATOR_PORT, HEARTBEAT_PORT];
    match reserved
        .into_iter()
        .find(|port| switch.ports().contains(port))
    {
        Some(port) => Err(SwitchServerError::ReservedPort(port)),
        None => Ok(()),
    }
}

/// Greetings of a switch with a replicated program, which is complete.
fn greeter<E: Engine>(
    switch: &Switch<E>,
    file: &SwitchFile,
    flows: &Flows,
) -> Result<Option<Greeter>, SwitchServerError> {
    check_complete(switch, flows, file.follows_a_controller())?;
    Ok(file.greeter(flows, switch.engine().state())?)
}

/// A switch with what its file says.
fn configured<E: Engine>(
    engine: E,
    config: SwitchConfig,
    file: &SwitchFile,
) -> Result<Switch<E>, SwitchServerError> {
    let mut switch = Switch::new(engine, config)?;
    draw_registers(switch.engine_mut().state_mut()).map_err(SwitchServerError::Random)?;
    let mut failure = None;
    let mut draw = || {
        random_bits().unwrap_or_else(|error| {
            failure = Some(error);
            0
        })
    };
    file.apply(&mut switch, &mut draw)?;
    match failure {
        Some(error) => Err(SwitchServerError::Random(error)),
        None => Ok(switch),
    }
}

/// Like [`run_controlled`], on `workers` threads, each with a fellow of `engine` and queues of the
/// ports. Frames fall to them as [`Placing::spread`] says; the packet generators are the first one's.
/// Engines of other programs that replace `engine` have to be guarded as well.
///
/// # Errors
///
/// As [`run_controlled`]; [`SwitchServerError::Control`] if there are no threads left.
pub fn run_workers<E: Fellow + Send + 'static>(
    engine: E,
    workers: usize,
    file: &SwitchFile,
    ports: &[(Port, PortSpec)],
    mut options: RunOptions<'_>,
    beside: Beside<'_, E>,
) -> Result<SwitchReport, SwitchServerError>
where
    E::InFlight: Send,
{
    let refused = |error: &dyn std::fmt::Display| SwitchServerError::Control(error.to_string());
    let Beside {
        control,
        remote,
        placing,
    } = beside;
    let Prepared {
        switch: mut first,
        greeter,
        control,
        cpu_port,
    } = prepare(engine, file, ports, &options, control)?;
    let controlled = Controlled {
        is: control.is_some(),
        cpu_port,
    };
    let fellows = (1..workers as u64).map(|seed| first.fellow(seed)).collect();
    let workers = Workers::start(first, fellows, placing, controlled);
    let workers = workers.map_err(|error| refused(&error))?;
    let mut server = SwitchServer::with(
        Forwarding::Workers(Box::new(workers)),
        ports,
        control,
        cpu_port,
        options.sealing.take(),
    )?;
    server.run_with(file, greeter, remote, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_interp::Interp;

    #[test]
    fn no_interface_is_where_the_hosts_own_frames_come() {
        let checked = |program: &str, port| {
            let program = stateplane_compile::shipped(program).program();
            let engine = Interp::new(program.expect("it compiles"), Default::default());
            let config = SwitchConfig {
                ports: vec![0, port],
                ..SwitchConfig::default()
            };
            let switch = Switch::new(engine.expect("it loads"), config).expect("a switch");
            check_ports(&switch).map_err(|error| error.code())
        };
        let replicated = "apps/counter/counter.p4";
        for port in [GENERATOR_PORT, HEARTBEAT_PORT] {
            assert_eq!(checked(replicated, port), Err("H252"));
            assert_eq!(
                checked("apps/packet-counter/packet_counter.p4", port),
                Ok(())
            );
        }
        assert_eq!(checked(replicated, 503), Ok(()));
    }
}
