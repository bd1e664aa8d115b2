//! `stateplane run`: a P4 program between network interfaces.

use crate::exit::{CommandError, Failure};
use crate::program::ProgramArguments;
use crate::signal::stop_flag;
use clap::Args;
use stateplane_host::ports::PortError;
use stateplane_host::switch::{Status, SwitchFile, SwitchReport, SwitchServerError, run_switch};
use stateplane_interp::{Interp, Options};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

/// Run a P4 program between network interfaces until it is interrupted.
///
/// Prints `ready` when packets are taken. A status line follows on a terminal; on exit
/// the counts go to standard error as JSON. Needs the right to open packet sockets (root
/// or CAP_NET_RAW and CAP_NET_ADMIN).
#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// Make an interface a port of the switch: number and interface; may be given
    /// several times
    #[arg(long = "port", value_name = "N=INTERFACE", required = true, value_parser = port)]
    ports: Vec<(u16, String)>,
    /// Table entries, registers, mirror sessions, neighbours (TOML)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print a status line each so many seconds, also if standard error is no terminal
    #[arg(long, value_name = "SECONDS")]
    status: Option<u64>,
    /// Give up if a watched register (the store's sign of life) is not written within so
    /// many seconds of the start; 0 waits for ever
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    patience: u64,
    /// Print status as JSON
    #[arg(long)]
    json: bool,
}

fn port(text: &str) -> Result<(u16, String), String> {
    let (number, interface) = text
        .split_once('=')
        .ok_or("write a port as NUMBER=INTERFACE, for example 0=eth0")?;
    let number = number
        .parse::<u16>()
        .ok()
        .filter(|number| *number <= 510)
        .ok_or_else(|| format!("{number:?} is not a port number: use 0 to 510"))?;
    if interface.is_empty() {
        return Err(format!("port {number} names no interface"));
    }
    Ok((number, interface.to_owned()))
}

fn status_line(report: &SwitchReport) -> String {
    let packets = &report.packets;
    let drops: u64 = report.drops.values().sum();
    let ports = report.ports.iter().map(|port| {
        let state = if port.up { "up" } else { "down" };
        format!("{}={} {state}", port.port, port.interface)
    });
    let mut line = format!(
        "{} in, {} out, {drops} dropped, {} held; {}",
        packets.received,
        packets.transmitted,
        packets.held,
        ports.collect::<Vec<_>>().join(", "),
    );
    for (reason, count) in &report.drops {
        line.push_str(&format!("; {reason} {count}"));
    }
    line
}

/// Runs the command.
pub fn run(arguments: &RunArguments) -> Result<(), CommandError> {
    let program = arguments.program.compile()?;
    let file = match &arguments.config {
        Some(path) => SwitchFile::read(path)
            .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))?,
        None => SwitchFile::default(),
    };
    let engine = Interp::new(program, Options::default())
        .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
    let stop = stop_flag()?;
    let terminal = std::io::stderr().is_terminal();
    let json = arguments.json;
    let mut show = |report: &SwitchReport| {
        if json {
            if let Ok(text) = serde_json::to_string(report) {
                eprintln!("{text}");
            }
        } else if terminal {
            eprint!("\r\x1b[K{}", status_line(report));
        } else {
            eprintln!("{}", status_line(report));
        }
    };
    let period = arguments.status.or(terminal.then_some(1));
    let status = period.map(|seconds| Status {
        period: Duration::from_secs(seconds.max(1)),
        show: &mut show,
    });
    let patience = (arguments.patience > 0).then(|| Duration::from_secs(arguments.patience));
    let mut ready = || {
        println!("ready");
        // A supervisor waits for the line; without it there is nothing to tell.
        let _ = std::io::stdout().flush();
    };
    let report = run_switch(
        engine,
        &file,
        &arguments.ports,
        &stop,
        &mut ready,
        status,
        patience,
    )
    .map_err(|error| {
        let failure = match error {
            SwitchServerError::Port(PortError::DuplicateInterface { .. }) => Failure::Input,
            SwitchServerError::Port(_)
            | SwitchServerError::Wait(_)
            | SwitchServerError::NoSignOfLife { .. }
            | SwitchServerError::Random(_) => Failure::System,
            _ => Failure::Input,
        };
        CommandError::coded(failure, error.code(), error)
    })?;
    if terminal && !json {
        eprintln!();
    }
    if let Ok(text) = serde_json::to_string(&report) {
        eprintln!("{text}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::port;

    #[test]
    fn ports_are_number_and_interface() {
        assert_eq!(port("3=eth0"), Ok((3, "eth0".to_owned())));
        assert_eq!(port("3=a=b"), Ok((3, "a=b".to_owned())));
        for wrong in ["eth0", "=eth0", "511=eth0", "-1=eth0", "1="] {
            assert!(port(wrong).is_err(), "{wrong}");
        }
    }
}
