//! `stateplane plan`: what a program and its traffic need of a store.

use crate::exit::{CommandError, Failure};
use crate::program::ProgramArguments;
use clap::Args;
use serde_json::json;
use stateplane_host::deployment::Deployment;
use stateplane_host::ports::read_capture;
use stateplane_host::switch::SwitchFile;
use stateplane_interp::Interp;
use stateplane_sim::SimError;
use stateplane_sim::capacity::{Arrival, Demand, PEAK_WINDOW, Plan, Setting, demand, plan};
use stateplane_switch::{Switch, SwitchConfig};
use std::path::PathBuf;

/// Predict the load of a program and its traffic on a store: requests, bandwidth, memory, and the
/// time for which flows stop when their switch fails.
///
/// The captures are played through the program, which includes the replication library or comes
/// from `stateplane protect`, with a store beside it, in virtual time. A model extrapolates the
/// measured load to any number of switches that share the traffic by flows, as a mean and for the
/// 100 ms of the captures with the most writes. Programs in bounded-inconsistency mode are refused:
/// their load does not depend on traffic.
#[derive(Args)]
#[command(after_help = "Example:
  stateplane plan nat.p4 --config s1.toml --store store.toml --capture 0=inside.pcap \\
    --capture 1=outside.pcap --switches 4 --round-trip-us 150")]
pub struct PlanArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// Traffic: port of the switch and capture (pcap or pcapng); may be given several times.
    /// Captures begin at the same time
    #[arg(long, value_name = "N=FILE", required = true, value_parser = capture)]
    capture: Vec<(u16, PathBuf)>,
    /// Table entries, registers, mirror sessions (TOML), as for `stateplane run`
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Store configuration (TOML), as for `stateplane store`
    #[arg(long, value_name = "FILE")]
    store: PathBuf,
    /// Number of switches that share the traffic
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    switches: u32,
    /// Time from a request at a switch to the chain's answer, in µs
    #[arg(long, value_name = "US", default_value_t = 200)]
    round_trip_us: u32,
    /// Time until routes lead around a failed switch, in ms
    #[arg(long, value_name = "MS", default_value_t = 0)]
    detection_ms: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Value of registers that a switch's file fills at random.
const RANDOM: u64 = 0x5eed_5eed_5eed_5eed;

fn capture(text: &str) -> Result<(u16, PathBuf), String> {
    let (port, path) = text.split_once('=').ok_or("write N=FILE, as 0=in.pcap")?;
    let port = port.parse().ok().filter(|port| *port <= 510);
    let port = port.ok_or("a port is a number from 0 to 510")?;
    Ok((port, path.into()))
}

/// Runs the command.
pub fn run(arguments: &PlanArguments) -> Result<(), CommandError> {
    let failed = |error: SimError| CommandError::coded(Failure::Input, error.code(), error);
    let (store, replicas, heads) = store(arguments)?;
    let mut arrivals = Vec::new();
    for (port, path) in &arguments.capture {
        let frames = read_capture(path)
            .map_err(|error| CommandError::coded(Failure::Input, error.code(), &error))?;
        arrivals.extend(frames.into_iter().map(|(at, frame)| Arrival {
            at: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            port: *port,
            frame,
        }));
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    let whole = arguments.program.compile()?;
    let mut small = arguments.program.clone();
    small.define(&[("REPLICATION_BUCKETS".to_owned(), "1".to_owned())]);
    let small = small.compile()?;
    let file = SwitchFile::read(&arguments.config)
        .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))?;
    if has_snapshots(&whole) {
        return Err(CommandError::new(
            Failure::Input,
            "the program keeps snapshots (bounded inconsistency), whose load is that of its \
             walk: elements for each T_snap and switch, whatever the traffic",
        ));
    }
    // No store answers here.
    let file = file.without_watches();
    let make = |program: &stateplane_ir::Program| -> Result<Switch<Interp>, SimError> {
        let engine = Interp::new(program.clone(), stateplane_interp::Options::default())?;
        let config = SwitchConfig {
            ports: (0..=510).collect(),
            ..SwitchConfig::default()
        };
        let told = |error: &dyn std::fmt::Display| SimError::Capacity(error.to_string());
        let mut switch = Switch::new(engine, config).map_err(|error| told(&error))?;
        let applied = file.apply(&mut switch, &mut || RANDOM);
        applied.map_err(|error| told(&error))?;
        Ok(switch)
    };
    let asked = demand(&|| make(&whole), &|| make(&small), &store, &arrivals).map_err(failed)?;
    let setting = Setting {
        switches: arguments.switches,
        round_trip_s: f64::from(arguments.round_trip_us) / 1e6,
        detection_s: f64::from(arguments.detection_ms) / 1e3,
        replicas,
        heads,
    };
    show(arguments, &asked, &setting, &plan(&asked, &setting));
    Ok(())
}

fn has_snapshots(program: &stateplane_ir::Program) -> bool {
    let tables = &program.tables;
    tables
        .iter()
        .any(|table| table.name.ends_with("snapshot_period"))
}

/// The store's configuration, how many replicas keep each record, and how many servers head
/// chains: the one of a fixed chain, else as many as a chain has at least.
fn store(arguments: &PlanArguments) -> Result<(stateplane_store::Config, u32, u32), CommandError> {
    let failed = |error: stateplane_host::store::StoreError| {
        CommandError::coded(Failure::Input, error.code(), &error)
    };
    let read = || -> Result<_, stateplane_host::store::StoreError> {
        let mut deployment = Deployment::read(&arguments.store)?;
        let file = deployment.replication()?;
        let (replicas, heads) = match &deployment.controller {
            Some(_) => (u32::from(file.replicas), u32::from(file.replicas)),
            None => (file.chain.len() as u32, 1),
        };
        if let Some(&head) = file.chain.first() {
            deployment.listen = head;
        }
        Ok((deployment.replica_config()?, replicas, heads))
    };
    read().map_err(failed)
}

fn show(arguments: &PlanArguments, demand: &Demand, setting: &Setting, plan: &Plan) {
    let (traffic, load) = (&demand.traffic, &plan.of_switch);
    if arguments.json {
        let value = json!({
            "demand": {
                "packets_per_s": traffic.packets_per_s,
                "frame_bytes": traffic.frame_bytes,
                "flows": demand.flows,
                "flows_at_a_time": traffic.flows,
                "leases_per_s": traffic.new_flows_per_s,
                "writes": traffic.writes,
            },
            "switches": setting.switches,
            "requests_per_s": plan.requests_per_s,
            "bytes_per_s": plan.bytes_per_s,
            "peak": {
                "window_ms": PEAK_WINDOW / 1000,
                "requests_per_s": plan.peak_requests_per_s,
                "bytes_per_s": plan.peak_bytes_per_s,
            },
            "memory_bytes": plan.memory_bytes,
            "stall_dead_ms": plan.stall_dead_s * 1e3,
            "stall_alive_ms": plan.stall_alive_s * 1e3,
            "burst": plan.burst,
            "of_switch": {
                "leases_per_s": load.leases_per_s,
                "writes_per_s": load.writes_per_s,
                "buffered_per_s": load.buffered_per_s,
                "heartbeats_per_s": load.heartbeats_per_s,
                "probes_per_s": load.probes_per_s,
                "to_store_bytes_per_s": load.to_store_bytes_per_s,
                "from_store_bytes_per_s": load.from_store_bytes_per_s,
            },
        });
        println!("{value:#}");
        return;
    }
    println!(
        "traffic   {:.0} packets/s of {:.0} bytes with a flow; {} flows, {:.0} at a time; \
         {:.1} % of packets write",
        traffic.packets_per_s,
        traffic.frame_bytes,
        demand.flows,
        traffic.flows,
        traffic.writes * 100.0,
    );
    println!(
        "a switch  {:.1} leases/s, {:.1} writes/s, {:.1} packets/s behind a write, {:.1} \
         heartbeats/s, {:.1} probes/s",
        load.leases_per_s,
        load.writes_per_s,
        load.buffered_per_s,
        load.heartbeats_per_s,
        load.probes_per_s,
    );
    println!(
        "          {:.1} kbit/s to the store, {:.1} kbit/s back: {:.1} % of all that it sends \
         and receives",
        load.to_store_bytes_per_s * 8e-3,
        load.from_store_bytes_per_s * 8e-3,
        100.0 * plan.share(demand, setting),
    );
    println!(
        "the store {:.1} requests/s and {:.1} kbit/s of {} switches; {:.1} kB in {} replicas",
        plan.requests_per_s,
        plan.bytes_per_s * 8e-3,
        setting.switches,
        plan.memory_bytes / 1e3,
        setting.replicas,
    );
    println!(
        "          {:.1} requests/s and {:.1} kbit/s in the {} ms that have the most writes",
        plan.peak_requests_per_s,
        plan.peak_bytes_per_s * 8e-3,
        PEAK_WINDOW / 1000,
    );
    println!(
        "failover  a dead switch's {:.0} flows stand still for at most {:.0} ms; flows that \
         leave a living one for {:.2} ms",
        plan.burst,
        plan.stall_dead_s * 1e3,
        plan.stall_alive_s * 1e3,
    );
}
