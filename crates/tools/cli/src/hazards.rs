//! `stateplane hazards`: actions on state that take several clock cycles.

mod program;

use crate::exit::{CommandError, Failure};
use crate::text_file;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use stateplane_hazards::{
    Depths, Flow, HazardError, Key, Outcome, Popularity, Queues, Record, Scale, Sizes, Study,
    Traffic, simulate,
};
use stateplane_host::ports::read_packets;
use std::path::{Path, PathBuf};

/// Subcommands of `stateplane hazards`.
#[derive(Subcommand)]
pub enum Command {
    Study(Box<StudyArguments>),
    Program(Box<program::ProgramArguments>),
}

/// Simulate, cycle by cycle, packets whose action on state takes several clock cycles.
///
/// A switch reads packets in chunks, one a cycle, and starts at most one action a cycle. A hazard is
/// a packet whose action starts while that of another packet on the same state is under way. With
/// --lock, packets wait in queues instead.
///
/// Packets are those of a capture, in their order; or their sizes are drawn from a table of
/// cumulative distributions, with columns separated by tabs, the first with the names of the rows,
/// others named <=BYTES, and their sources from a table of addresses and their numbers of packets.
/// Equal seeds give equal runs.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane hazards study --sizes packet-size-cdf.tsv --name chi-15 --depth 10
  stateplane hazards study --sizes packet-size-cdf.tsv --name chi-15 --middle fb --alpha 0.2 \\
    --sources source-packet-counts.tsv --state source --lock source --lock-values 16 --queues 4
  stateplane hazards study --capture traffic.pcap --state 5-tuple --depth 10")]
pub struct StudyArguments {
    /// Capture whose packets are taken (pcap or pcapng, of Ethernet, raw IP or Linux's cooked
    /// packets)
    #[arg(long, value_name = "FILE", required_unless_present = "sizes", conflicts_with_all = ["name", "sources", "packets"])]
    capture: Option<PathBuf>,
    /// Table of distributions of sizes
    #[arg(long, value_name = "FILE", required_unless_present = "capture")]
    sizes: Option<PathBuf>,
    /// Row of that table that sizes are drawn from
    #[arg(
        long,
        value_name = "NAME",
        requires = "sizes",
        required_unless_present = "capture"
    )]
    name: Option<String>,
    /// Row of that table that sizes follow at alpha 0.2; without, the way from the least sizes to
    /// those of --name, or of the capture, is straight
    #[arg(long, value_name = "NAME", requires = "sizes")]
    middle: Option<String>,
    /// Sizes: from the least (0) to those of --name, or of the capture (1)
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    alpha: f64,
    /// Table of sources and their packets
    #[arg(long, value_name = "FILE")]
    sources: Option<PathBuf>,
    /// Number of packets
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    packets: u64,
    /// Share of cycles in which the switch reads packets; 1: back to back
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    utilisation: f64,
    /// Bytes read in a cycle
    #[arg(long, value_name = "BYTES", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    chunk: u32,
    /// Cycles per second, such as 1GHz or 250MHz
    #[arg(long, value_name = "RATE", default_value = "1GHz", value_parser = clock)]
    clock: f64,
    /// Cycles of an action, such as 10; or a mix with weights, such as 1:0.9,30:0.1
    #[arg(long, value_name = "CYCLES")]
    depth: Depths,
    /// Fields that packets on the same state have in common: global, source or prefix:N; of a
    /// capture also 5-tuple or addresses
    #[arg(long, value_name = "KEY", default_value = "global")]
    state: Key,
    /// Fields that packets under the same lock have in common: a key as of --state, or none
    #[arg(long, value_name = "KEY", default_value = "none", value_parser = lock)]
    lock: Lock,
    /// Hash the lock's keys to so many locks; without, each key has its own
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    lock_values: Option<u32>,
    /// Number of queues, served in turn
    #[arg(long, value_name = "Q", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    queues: u32,
    /// Most packets that wait in a queue; without, queues have no bound
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..))]
    capacity: Option<u32>,
    /// Seed of all that is drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone)]
struct Lock(Option<Key>);

fn lock(text: &str) -> Result<Lock, HazardError> {
    match text {
        "none" => Ok(Lock(None)),
        _ => text.parse().map(|key| Lock(Some(key))),
    }
}

/// Cycles per second.
fn clock(text: &str) -> Result<f64, String> {
    let units = [("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0)];
    let rate = units.iter().find_map(|(unit, scale)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * scale)
    });
    let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "give a rate above 0 with GHz, MHz, kHz or Hz, such as 1GHz".to_owned())
}

/// Runs the command.
pub fn run(command: &Command) -> Result<(), CommandError> {
    let arguments = match command {
        Command::Study(arguments) => arguments,
        Command::Program(arguments) => return program::run(arguments),
    };
    let failed = |error: HazardError| CommandError::coded(Failure::Input, error.code(), error);
    let table = arguments.sizes.as_deref().map(Table::read).transpose()?;
    let row = |name: &Option<String>| match (&table, name) {
        (Some(table), Some(name)) => table.row(name).map(Some),
        _ => Ok(None),
    };
    let middle = row(&arguments.middle)?;
    let traffic = match (&arguments.capture, row(&arguments.name)?) {
        (Some(path), _) => recorded(path)?,
        (None, Some(sizes)) => Traffic::Drawn {
            sizes,
            popularity: arguments.popularity()?,
            packets: arguments.packets,
        },
        (None, None) => return Err(failed(HazardError::Empty)),
    };
    let study = Study {
        chunk: arguments.chunk,
        utilisation: arguments.utilisation,
        scale: Scale::new(arguments.alpha, middle).map_err(failed)?,
        depths: arguments.depth.clone(),
        state: arguments.state,
        lock: arguments.lock.0,
        lock_values: arguments.lock_values,
        queues: Queues {
            count: arguments.queues,
            capacity: arguments.capacity,
        },
        seed: arguments.seed,
    };
    let outcome = simulated(&study, &traffic).map_err(failed)?;
    if arguments.json {
        println!("{:#}", arguments.to_json(&outcome));
    } else {
        arguments.print(&outcome);
    }
    Ok(())
}

/// Runs the study. One of many packets shows its progress, on a terminal.
fn simulated(study: &Study, traffic: &Traffic) -> Result<Outcome, HazardError> {
    /// A run of fewer packets takes less than about a second.
    const LONG: u64 = 5_000_000;
    /// Packets between two looks at the clock.
    const STEP: u64 = 1 << 18;
    if traffic.packets() < LONG {
        return study.run(traffic);
    }
    let bar = ProgressBar::new(traffic.packets());
    let style =
        ProgressStyle::with_template("{bar:24} {human_pos}/{human_len} packets, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut read = 0;
    let packets = study.packets(traffic)?.inspect(|_| {
        read += 1;
        if read % STEP == 0 {
            bar.set_position(read);
        }
    });
    let outcome = simulate(packets, study.queues);
    bar.finish_and_clear();
    outcome
}

/// The packets of the capture at `path`.
fn recorded(path: &Path) -> Result<Traffic, CommandError> {
    let packets = read_packets(path)
        .map_err(|error| CommandError::coded(Failure::Input, error.code(), &error))?;
    let records = packets.iter().filter(|packet| packet.length > 0);
    let records = records.map(|packet| Record {
        at_ns: u64::try_from(packet.at.as_nanos()).unwrap_or(u64::MAX),
        bytes: u32::try_from(packet.length).unwrap_or(u32::MAX),
        flow: Flow::of_ip(&packet.bytes).filter(|_| packet.is_ip),
    });
    Traffic::recorded(records.collect()).map_err(|error| in_file(path, error))
}

/// A table of distributions of sizes.
struct Table<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> Table<'a> {
    fn read(path: &'a Path) -> Result<Table<'a>, CommandError> {
        let text = read(path)?;
        Ok(Table { path, text })
    }

    fn row(&self, name: &str) -> Result<Sizes, CommandError> {
        Sizes::parse(&self.text, name).map_err(|error| in_file(self.path, error))
    }
}

fn in_file(path: &Path, error: HazardError) -> CommandError {
    let text = format!("{}: {error}", path.display());
    CommandError::coded(Failure::Input, error.code(), text)
}

fn read(path: &Path) -> Result<String, CommandError> {
    text_file::read(path)
        .map_err(|error| CommandError::new(Failure::Input, format!("{}: {error}", path.display())))
}

/// Shares of packets whose latency is told.
const PERCENTILES: [(&str, f64); 5] = [
    ("50%", 0.5),
    ("90%", 0.9),
    ("99%", 0.99),
    ("99.9%", 0.999),
    ("100%", 1.0),
];

impl StudyArguments {
    /// The sources that packets are drawn from.
    fn popularity(&self) -> Result<Option<Popularity>, CommandError> {
        if let Some(path) = &self.sources {
            let counts = Popularity::parse(&read(path)?);
            return counts.map(Some).map_err(|error| in_file(path, error));
        }
        let mut keys = std::iter::once(self.state).chain(self.lock.0);
        if keys.all(|key| key == Key::Global) {
            return Ok(None);
        }
        Err(CommandError::new(
            Failure::Input,
            "sizes alone tell of no sources; give --sources or --capture, or the key global",
        ))
    }

    fn ns(&self, cycles: u64) -> f64 {
        cycles as f64 / self.clock * 1e9
    }

    /// Bits per second of the packets whose action had started when the last packet arrived.
    fn bits_per_s(&self, outcome: &Outcome) -> f64 {
        outcome.bytes_in_time as f64 * 8.0 / outcome.offered_cycles as f64 * self.clock
    }

    fn to_json(&self, outcome: &Outcome) -> Value {
        let latency = PERCENTILES.map(|(name, share)| {
            let cycles = outcome.latency.percentile(share);
            json!({ "packets": name, "cycles": cycles, "ns": self.ns(cycles) })
        });
        json!({
            "packets": outcome.packets,
            "bytes": outcome.bytes,
            "cycles": outcome.cycles,
            "hazards": outcome.hazards,
            "hazards_per_cycle": outcome.hazards_per_cycle(),
            "hazards_per_packet": outcome.hazards_per_packet(),
            "throughput": outcome.throughput(),
            "throughput_bits_per_s": self.bits_per_s(outcome),
            "dropped": outcome.dropped,
            "dropped_share": outcome.drops(),
            "waiting_mean": outcome.mean_waiting(),
            "waiting_most": outcome.most_waiting,
            "waiting_most_in_queue": outcome.most_in_queue,
            "latency": latency,
        })
    }

    fn print(&self, outcome: &Outcome) {
        println!(
            "packets     {} in {} cycles",
            outcome.packets, outcome.cycles
        );
        println!(
            "hazards     {:.2} % of cycles, {:.2} % of packets",
            100.0 * outcome.hazards_per_cycle(),
            100.0 * outcome.hazards_per_packet()
        );
        println!(
            "throughput  {:.2} % of the offered bytes, {:.1} Gb/s",
            100.0 * outcome.throughput(),
            self.bits_per_s(outcome) / 1e9
        );
        println!(
            "dropped     {} packets, {:.2} %",
            outcome.dropped,
            100.0 * outcome.drops()
        );
        println!(
            "waiting     {:.2} packets on average, at most {}, in one queue {}",
            outcome.mean_waiting(),
            outcome.most_waiting,
            outcome.most_in_queue
        );
        for (name, share) in PERCENTILES {
            let cycles = outcome.latency.percentile(share);
            let ns = self.ns(cycles);
            println!("latency     {name:>5} of packets: at most {cycles} cycles, {ns:.1} ns");
        }
    }
}
