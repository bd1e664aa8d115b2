//! `stateplane run`: a P4 program between network interfaces.

mod engines;

use crate::command_socket;
use crate::engine::EngineChoice;
use crate::exit::{CommandError, Failure};
use crate::log::LogArguments;
use crate::metrics;
use crate::p4runtime::{self, MakeEngine, P4RuntimeArguments, Settings};
use crate::program::ProgramArguments;
use crate::reload::Reloader;
use crate::signal::stop_flag;
use crate::store::read_keys;
use clap::{Args, ValueEnum};
use stateplane_host::metrics::{SwitchInfo, switch_metrics};
use stateplane_host::ports::{PortError, PortNotice, PortSpec, check_unused};
use stateplane_host::switch::{
    Attachment, Beside, ChainsError, FollowError, Placing, Remote, RunOptions, Sealing, Spread,
    Status, SwitchFile, SwitchReport, SwitchServerError, follow_chains, follow_multicast, remote,
    run_controlled, run_workers,
};
use stateplane_ir::{Interface, Program};
use stateplane_runtime::{Engine, Fellow};
use stateplane_setup::{Flows, check_use};
use stateplane_switch::Switch;
use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most threads that forward.
const MOST_WORKERS: usize = 64;

/// Run a P4 program between network interfaces until it is interrupted.
///
/// Prints `ready` when it accepts packets. On a terminal, a status line follows; on exit, prints
/// its counters to standard error as JSON. Interfaces need the permission to open packet sockets
/// (root or CAP_NET_RAW and CAP_NET_ADMIN); AF_XDP needs CAP_BPF too.
#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// Make an interface a port of the switch: number and interface; may be given several times
    ///
    /// AF_XDP is used where driver and permissions allow it, else AF_PACKET; `xdp:eth0` and
    /// `packet:eth0` use that one only. `tap:t0` makes a TAP device, `pcap:in.pcap,out.pcap` reads
    /// frames from a capture and writes sent frames to another (`pcap@:` at the capture's times);
    /// the run ends with the captures.
    #[arg(long = "port", value_name = "N=INTERFACE", required = true, value_parser = port)]
    ports: Vec<(u16, PortSpec)>,
    /// Take interfaces that the host itself uses: those with addresses, and that of the default
    /// route; the host no longer reaches anything through them
    #[arg(long)]
    take_over: bool,
    /// Table entries, registers, mirror sessions, neighbours (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print a status line at this interval in seconds, also if standard error is no terminal
    #[arg(long, value_name = "SECONDS")]
    status: Option<u64>,
    /// Exit with an error if a watched register (written when the store answers) is not written
    /// within this many seconds of the start; 0 waits for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    patience: u64,
    /// Engine that runs the program
    #[arg(long, value_enum, default_value_t = EngineChoice::Native)]
    engine: EngineChoice,
    /// Number of threads that forward, 1 to 64, or `auto`: as many as processors the process may run
    /// on
    ///
    /// Each flow, both directions of it, has one thread, chosen by its addresses and ports, so that
    /// its frames stay in order; `--spread` lets the state that frames lock choose. Each thread takes
    /// and sends frames of every port by itself: by AF_PACKET in any case, by AF_XDP where the
    /// interface has as many receive queues (`ethtool -L`), whose own hash then chooses the thread
    /// (`ethtool -X`). Of an interface with fewer queues, a TAP device or a capture, one thread takes
    /// the frames and hands them to the others, which costs more. Registers are shared: between the steps of a block that is not annotated `@atomic`
    /// other threads' packets may come.
    #[arg(long, value_name = "N|auto", default_value = "1", value_parser = workers)]
    workers: usize,
    /// With several forwarding threads, the choice of a frame's thread: by its flow (addresses and
    /// ports), or by the key of the state that it locks
    #[arg(long, value_enum, default_value_t = SpreadChoice::Auto)]
    spread: SpreadChoice,
    /// Keep each forwarding thread on a processor of its own, in turn over those that the process may
    /// run on
    ///
    /// Worth it on a machine that does little else; where other programs need the same processors, a
    /// thread that may not move waits for them.
    #[arg(long)]
    pin: bool,
    /// Let a forwarding thread look for frames for this many microseconds after the last one before it
    /// sleeps; 0 sleeps at once
    ///
    /// Frames that come at intervals shorter than this do not wait for the thread to wake, some tens
    /// of microseconds. It keeps processors busy that have nothing to do.
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    busy_poll: u32,
    /// Print status as JSON
    #[arg(long)]
    json: bool,
    /// Serve Prometheus metrics at this address, paths /metrics and /healthz
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Accept commands (`stateplane reload`) at this Unix socket; by default at one in
    /// $XDG_RUNTIME_DIR/stateplane, /run/stateplane or a temporary folder of your own
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Accept and send sealed messages of replication, coordination, multicast and sync only, with the
    /// keys of this file (TOML), which is read again when it changes; see docs/message-authentication.md
    #[arg(long, value_name = "FILE", requires = "sealed_ports")]
    keys: Option<PathBuf>,
    /// Port that leads to stores, other switches, hosts or engines and accepts and sends messages sealed only;
    /// may be given several times
    #[arg(long = "sealed-port", value_name = "N", requires = "keys")]
    sealed_ports: Vec<u16>,
    #[command(flatten)]
    log: LogArguments,
    #[command(flatten)]
    p4runtime: P4RuntimeArguments,
}

impl RunArguments {
    /// Reason why `stateplane reload` is refused, if it is.
    fn keeps_program(&self) -> Option<&'static str> {
        self.p4runtime.is_served().then_some(
            "controllers drive this switch: set its program by SetForwardingPipelineConfig \
             (`stateplane ctl program`)",
        )
    }
}

/// Rule by which frames fall to forwarding threads.
#[derive(Clone, Copy, ValueEnum)]
enum SpreadChoice {
    /// By key where one thread takes the frames of a port for all, and where one flow carries the
    /// state of many and only the key tells them apart: tunnels (GTP-U, VXLAN, Geneve, GRE), messages
    /// of the store, frames that are not IP; others by flow
    Auto,
    /// By flow
    Flow,
    /// By key, all frames that have one; frames of one flow may overtake each other if their keys
    /// differ, and handing a frame to another thread costs about as much as a small program
    Key,
}

impl From<SpreadChoice> for Spread {
    fn from(choice: SpreadChoice) -> Spread {
        match choice {
            SpreadChoice::Auto => Spread::Auto,
            SpreadChoice::Flow => Spread::Flow,
            SpreadChoice::Key => Spread::Key,
        }
    }
}

/// Number of forwarding threads.
fn workers(text: &str) -> Result<usize, String> {
    if text == "auto" {
        let processors = std::thread::available_parallelism();
        return Ok(processors.map_or(1, NonZero::get).min(MOST_WORKERS));
    }
    let number = text.parse::<usize>().ok();
    number
        .filter(|number| (1..=MOST_WORKERS).contains(number))
        .ok_or_else(|| format!("write a number from 1 to {MOST_WORKERS}, or auto"))
}

fn port(text: &str) -> Result<(u16, PortSpec), String> {
    let (number, interface) = text
        .split_once('=')
        .ok_or("write a port as NUMBER=INTERFACE, for example 0=eth0")?;
    let number = number
        .parse::<u16>()
        .ok()
        .filter(|number| *number <= 510)
        .ok_or_else(|| format!("{number:?} is not a port number: use 0 to 510"))?;
    let spec = interface
        .parse()
        .map_err(|cause| format!("port {number} {cause}"))?;
    Ok((number, spec))
}

fn status_line(report: &SwitchReport, engine: EngineChoice, per_second: u64) -> String {
    let packets = &report.packets;
    let drops: u64 = report.drops.values().sum();
    let ports = report.ports.iter().map(|port| {
        let state = if port.up { "up" } else { "down" };
        format!("{}={} {state} ({})", port.port, port.interface, port.mode)
    });
    let mut line = format!(
        "{per_second} packets/s; {} in, {} out, {drops} dropped, {} held; {}; {}",
        packets.received,
        packets.transmitted,
        packets.held,
        engine.name(),
        ports.collect::<Vec<_>>().join(", "),
    );
    for (reason, count) in &report.drops {
        line.push_str(&format!("; {reason} {count}"));
    }
    line
}

/// A program in an engine, and how to make another one.
struct Loaded<'a, E> {
    engine: E,
    program: &'a Program,
    interface: &'a Interface,
    make: MakeEngine<E>,
}

fn forward<E: Fellow + Send + 'static>(
    loaded: Loaded<'_, E>,
    file: &SwitchFile,
    arguments: &RunArguments,
    options: RunOptions<'_>,
    settings: Option<&Settings>,
) -> Result<SwitchReport, CommandError>
where
    E::InFlight: Send,
{
    let Loaded {
        engine,
        program,
        interface,
        make,
    } = loaded;
    let (remote, calls) = remote().map_err(|error| CommandError::new(Failure::System, error))?;
    let remote = Arc::new(remote);
    let _metrics = metrics::serve(arguments.metrics, scrape(arguments, remote.clone()))?;
    let (followed, ordered) = (remote.clone(), remote.clone());
    let mut reloader = Reloader {
        program: arguments.program.clone(),
        make,
        remote,
        refusal: arguments.keeps_program(),
    };
    let obey = move |command| reloader.obey(command);
    if let Some(chains) = &file.chains {
        let (chains, followed) = (chains.get_ref().clone(), followed);
        // An end of its own: it talks to controllers, the ports to stores.
        let guard = arguments.keys.as_deref().map(read_keys).transpose()?;
        std::thread::spawn(move || {
            let told = |error: &ChainsError| tracing::error!(code = error.code(), "{error}");
            if let Err(error) = follow_chains(&chains, guard, &followed, &mut { told }) {
                told(&error);
            }
        });
    }
    let multicast = file.multicast.as_ref();
    let sealed = arguments.keys.is_some();
    if let Some(following) = multicast.and_then(|file| file.get_ref().following(sealed)) {
        std::thread::spawn(move || {
            let told = |error: &FollowError| tracing::error!(code = error.code(), "{error}");
            if let Err(error) = follow_multicast(&following, &ordered, &mut { told }) {
                told(&error);
            }
        });
    }
    let _control = match command_socket::listen(
        arguments.control.as_deref(),
        &arguments.program.program,
        obey,
    ) {
        Ok(socket) => Some(socket),
        Err(error) => match &arguments.control {
            Some(path) => {
                let message = format!("cannot take commands at {}: {error}", path.display());
                return Err(CommandError::new(Failure::System, message));
            }
            // It was not asked for.
            None => None,
        },
    };
    if !arguments.take_over {
        for (_, spec) in &arguments.ports {
            check_unused(spec).map_err(|error| refused(error.into()))?;
        }
    }
    let placing = Placing {
        pin: arguments.pin,
        busy_poll: Duration::from_micros(arguments.busy_poll.into()),
        spread: arguments.spread.into(),
    };
    let mut attach = settings.map(|settings| {
        move |switch: &Switch<E>| p4runtime::attach(settings, program, interface, make, switch)
    });
    let beside = Beside {
        control: attach.as_mut().map(|make| Attachment {
            cpu_port: arguments.p4runtime.cpu_port(),
            make,
        }),
        remote: Some(calls),
        placing,
    };
    let ports = &arguments.ports;
    let ran = match arguments.workers {
        1 => run_controlled(engine, file, ports, options, beside),
        workers => run_workers(engine, workers, file, ports, options, beside),
    };
    ran.map_err(refused)
}

/// Asks the switch for its metrics.
fn scrape<E: Engine + Send + 'static>(
    arguments: &RunArguments,
    remote: Arc<Remote<E>>,
) -> stateplane_http::Scrape {
    let info = SwitchInfo {
        program: arguments.program.program.display().to_string(),
        engine: arguments.engine.name(),
    };
    Arc::new(move || {
        let (report, program) = remote.call(|server| (server.report(), server.program_report()))?;
        Some(switch_metrics(&info, &report, &program))
    })
}

/// The exit code that a switch's error gives.
fn refused(error: SwitchServerError) -> CommandError {
    let failure = match error {
        SwitchServerError::Port(
            PortError::DuplicateInterface { .. }
            | PortError::Capture { .. }
            | PortError::InUse { .. },
        ) => Failure::Input,
        SwitchServerError::Port(_)
        | SwitchServerError::Wait(_)
        | SwitchServerError::NoSignOfLife { .. }
        | SwitchServerError::Unfit { .. }
        | SwitchServerError::Control(_)
        | SwitchServerError::Random(_) => Failure::System,
        _ => Failure::Input,
    };
    CommandError::coded(failure, error.code(), error)
}

impl RunArguments {
    /// How messages of the switch are sealed; `None` without keys.
    fn sealing(&self, file: &SwitchFile) -> Result<Option<Sealing>, CommandError> {
        let Some(path) = &self.keys else {
            return Ok(None);
        };
        file.check_sealed()
            .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))?;
        let coordination = file.coordination.as_ref();
        let multicast = file.multicast.as_ref();
        let sealing = Sealing::new(read_keys(path)?, self.sealed_ports.clone())
            .with_coordination(coordination.map(|file| file.get_ref().address))
            .with_multicast(multicast.map(|file| file.get_ref().address))
            .with_sync(file.sync.as_ref().map(|file| file.get_ref().address));
        Ok(Some(sealing))
    }
}

/// Logs a notice about a port.
fn tell(number: u16, name: &str, notice: &PortNotice) {
    match notice {
        PortNotice::Up(_) | PortNotice::NoXdp(_) | PortNotice::CaptureEnded { .. } => {
            tracing::info!("port {number}={name}: {notice}");
        }
        PortNotice::Down => tracing::error!("port {number}={name}: {notice}"),
        _ => tracing::warn!("port {number}={name}: {notice}"),
    }
}

/// Runs the command.
pub fn run(arguments: &RunArguments) -> Result<(), CommandError> {
    arguments.log.start();
    let settings = arguments.p4runtime.settings(&arguments.ports)?;
    let served = arguments.p4runtime.is_served();
    let (program, interface) = p4runtime::compile(&arguments.program, served)?;
    check_use(&program)
        .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
    let file = match &arguments.config {
        Some(path) => SwitchFile::read(path)
            .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))?,
        None => SwitchFile::default(),
    };
    let stop = stop_flag()?;
    let terminal = std::io::stderr().is_terminal();
    let json = arguments.json;
    let engine = arguments.engine;
    let mut last = (Instant::now(), 0);
    let mut show = |report: &SwitchReport| {
        let received = report.packets.received;
        let elapsed = last.0.elapsed().as_secs_f64().max(1e-3);
        let per_second = ((received - last.1) as f64 / elapsed) as u64;
        last = (Instant::now(), received);
        if json {
            if let Ok(text) = serde_json::to_string(report) {
                eprintln!("{text}");
            }
        } else if terminal {
            eprint!("\r\x1b[K{}", status_line(report, engine, per_second));
        } else {
            eprintln!("{}", status_line(report, engine, per_second));
        }
    };
    let period = arguments.status.or(terminal.then_some(1));
    let status = period.map(|seconds| Status {
        period: Duration::from_secs(seconds.max(1)),
        show: &mut show,
    });
    let patience = (arguments.patience > 0).then(|| Duration::from_secs(arguments.patience));
    let mut ready = |report: &SwitchReport| {
        for port in report.ports.iter().filter(|_| !json) {
            eprintln!("port {}={}: {}", port.port, port.interface, port.mode);
        }
        println!("ready");
        // A supervisor waits for the line; without it there is nothing to tell.
        let _ = std::io::stdout().flush();
    };
    let mut damaged = false;
    let mut notify = |number: u16, name: &str, notice: &PortNotice| {
        damaged |= matches!(notice, PortNotice::CaptureDamaged(_));
        if terminal && !json {
            eprint!("\r\x1b[K");
        }
        tell(number, name, notice);
    };
    let sealing = arguments.sealing(&file)?;
    let options = RunOptions {
        stop: &stop,
        ready: &mut ready,
        status,
        notify: &mut notify,
        patience,
        sealing,
        flows: Flows::of(&program),
    };
    let ran = match arguments.engine {
        EngineChoice::Native => {
            let (engine, make) = engines::native(program.clone(), arguments.workers)?;
            let loaded = Loaded {
                engine,
                program: &program,
                interface: &interface,
                make,
            };
            forward(loaded, &file, arguments, options, settings.as_ref())
        }
        EngineChoice::Interp => {
            let (engine, make) = engines::interp(program.clone(), arguments.workers)?;
            let loaded = Loaded {
                engine,
                program: &program,
                interface: &interface,
                make,
            };
            forward(loaded, &file, arguments, options, settings.as_ref())
        }
    };
    let report = ran?;
    if terminal && !json {
        eprintln!();
    }
    if let Ok(text) = serde_json::to_string(&report) {
        eprintln!("{text}");
    }
    if damaged {
        return Err(CommandError::new(
            Failure::Input,
            "a capture is damaged: its port says at which record",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MOST_WORKERS, PortSpec, port, workers};

    #[test]
    fn ports_are_number_and_interface() {
        assert_eq!(port("3=eth0"), Ok((3, PortSpec::interface("eth0"))));
        assert_eq!(port("3=a=b"), Ok((3, PortSpec::interface("a=b"))));
        for wrong in ["eth0", "=eth0", "511=eth0", "-1=eth0", "1="] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn workers_are_a_number_or_as_many_as_processors() {
        assert_eq!(workers("3"), Ok(3));
        let auto = workers("auto").unwrap();
        assert!((1..=MOST_WORKERS).contains(&auto), "{auto}");
        for wrong in ["0", "65", "-1", "all", ""] {
            assert!(workers(wrong).is_err(), "{wrong}");
        }
    }
}
