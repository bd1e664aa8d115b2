//! `stateplane hazards program`: the cells of a program's state, and the locks that they need.

use super::{Table, clock, in_file, recorded};
use crate::exit::{CommandError, Failure};
use crate::program::{PreprocessArguments, as_json, print_text};
use crate::text_file;
use clap::Args;
use serde_json::{Value, json};
use stateplane_hazards::{
    Cell, CellKey, Depths, HazardError, Key, Profile, Queues, Study, Traffic, cells,
};
use std::path::PathBuf;

/// Numbers of locks to which a cell's keys are hashed, the coarsest first.
const LOCKS: [u32; 5] = [4, 16, 64, 256, 1_024];

/// Show which registers a program reads, changes and writes together, how many cycles that takes, and
/// which lock would do.
///
/// Registers of which each depends on each other are a cell. Its depth is the number of cycles from
/// the beginning of the first read to the end of the last write that depends on it, on the longest
/// path; its key is the index, if one tells all elements that a packet uses. Two packets must not be
/// in a cell at once with the same key.
///
/// With traffic, it names for each cell the coarsest lock that keeps --throughput of the traffic's
/// bytes, as `stateplane hazards study` measures it; --state says what packets with the same key have
/// in common.
#[derive(Args)]
#[command(after_help = "Examples:
  stateplane hazards program nat.p4
  stateplane hazards program nat.p4 --capture traffic.pcap --state 5-tuple
  stateplane hazards program sketch.p4 --profile chip.toml --sizes packet-size-cdf.tsv --name chi-15")]
pub struct ProgramArguments {
    /// P4-16 program for v1model
    #[arg(value_name = "PROGRAM.p4")]
    program: PathBuf,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    /// Cycles of operations (TOML): read, write, select, logic, add, compare, shift, multiply,
    /// divide, hash, lookup
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Cycles per second, such as 1GHz or 250MHz
    #[arg(long, value_name = "RATE", default_value = "1GHz", value_parser = clock)]
    clock: f64,
    /// Capture whose packets are taken (pcap or pcapng)
    #[arg(long, value_name = "FILE", conflicts_with = "sizes")]
    capture: Option<PathBuf>,
    /// Table of distributions of sizes
    #[arg(long, value_name = "FILE", requires = "name")]
    sizes: Option<PathBuf>,
    /// Row of that table that sizes are drawn from
    #[arg(long, value_name = "NAME", requires = "sizes")]
    name: Option<String>,
    /// Fields that packets with the same key of a cell have in common: 5-tuple, addresses, source,
    /// prefix:N, global
    #[arg(long, value_name = "KEY", default_value = "5-tuple")]
    state: Key,
    /// Share of the traffic's bytes that a lock has to let through, above 0 up to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.99)]
    throughput: f64,
    /// Queues, served in turn, in which packets wait for locks
    #[arg(long, value_name = "Q", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    queues: u32,
    /// Seed of all that is drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A lock and the share of the bytes that it lets through.
struct Lock {
    name: String,
    throughput: f64,
    enough: bool,
}

/// Runs the command.
pub fn run(arguments: &ProgramArguments) -> Result<(), CommandError> {
    if !(arguments.throughput > 0.0 && arguments.throughput <= 1.0) {
        let message = "--throughput is above 0 and at most 1";
        return Err(CommandError::new(Failure::Input, message));
    }
    let profile = match &arguments.profile {
        None => Profile::default(),
        Some(path) => {
            let wrong = |error: String| {
                let text = format!("{}: {error}", path.display());
                CommandError::new(Failure::Input, text)
            };
            let text = text_file::read(path).map_err(|error| wrong(error.to_string()))?;
            Profile::parse(&text).map_err(wrong)?
        }
    };
    let program = arguments
        .preprocess
        .source(&arguments.program)
        .program_with_places()
        .map_err(|refused| {
            if arguments.json {
                eprint!("{}", as_json(&refused.diagnostics, &refused.sources))
            } else {
                print_text(&refused.diagnostics, &refused.sources)
            }
            CommandError::explained(Failure::Program)
        })?;
    let traffic = arguments.traffic()?;
    let mut shown = Vec::new();
    for cell in cells(&program, &profile) {
        let lock = match &traffic {
            Some(traffic) => Some(arguments.lock(&cell, traffic)?),
            None => None,
        };
        shown.push((cell, lock));
    }
    if arguments.json {
        let values: Vec<Value> = shown
            .iter()
            .map(|(cell, lock)| arguments.to_json(cell, lock.as_ref()))
            .collect();
        println!("{:#}", Value::from(values));
        return Ok(());
    }
    if shown.is_empty() {
        println!("no register is both read and written");
    }
    for (cell, lock) in &shown {
        arguments.print(cell, lock.as_ref());
    }
    Ok(())
}

impl ProgramArguments {
    fn traffic(&self) -> Result<Option<Traffic>, CommandError> {
        if let Some(path) = &self.capture {
            return recorded(path).map(Some);
        }
        let (Some(path), Some(name)) = (&self.sizes, &self.name) else {
            return Ok(None);
        };
        let sizes = Table::read(path)?.row(name)?;
        Ok(Some(Traffic::Drawn {
            sizes,
            popularity: None,
            packets: 1_000_000,
        }))
    }

    /// The coarsest lock that lets enough through, or the finest that there is.
    fn lock(&self, cell: &Cell, traffic: &Traffic) -> Result<Lock, CommandError> {
        let mut choices = vec![("global".to_owned(), Key::Global, None)];
        let flows = matches!(traffic, Traffic::Recorded(_)) && self.state != Key::Global;
        if flows && matches!(cell.key, CellKey::One { .. } | CellKey::Several(_)) {
            let hashed = LOCKS.map(|values| {
                let name = format!("{values} locks, by a hash of the key");
                (name, self.state, Some(values))
            });
            choices.extend(hashed);
            choices.push(("a lock for each key".to_owned(), self.state, None));
        }
        let mut best = None;
        for (name, key, values) in choices {
            let throughput = self.through(cell, traffic, key, values);
            let throughput = throughput.map_err(|error| match &self.capture {
                Some(path) => in_file(path, error),
                None => CommandError::coded(Failure::Input, error.code(), error),
            })?;
            let enough = throughput >= self.throughput;
            best = Some(Lock {
                name,
                throughput,
                enough,
            });
            if enough {
                break;
            }
        }
        best.ok_or_else(|| CommandError::new(Failure::Input, "no lock"))
    }

    fn through(
        &self,
        cell: &Cell,
        traffic: &Traffic,
        key: Key,
        values: Option<u32>,
    ) -> Result<f64, HazardError> {
        let study = Study {
            state: key,
            lock: Some(key),
            lock_values: values,
            queues: Queues {
                count: self.queues,
                capacity: None,
            },
            seed: self.seed,
            ..Study::new(cell.depth.to_string().parse::<Depths>()?)?
        };
        study.run(traffic).map(|outcome| outcome.throughput())
    }

    /// The clock of the cell at which its action ends before the next of the shortest packets.
    fn cell_clock(&self, cell: &Cell) -> f64 {
        self.clock * f64::from(cell.depth)
    }

    fn print(&self, cell: &Cell, lock: Option<&Lock>) {
        println!("cell    {}", cell.registers.join(", "));
        let rounds = if cell.loops {
            " for two rounds of its loop; each further one adds to them"
        } else {
            ""
        };
        println!("depth   {} cycles{rounds}", cell.depth);
        if cell.spans {
            println!("        and the time in the queues: ingress and egress both use it");
        }
        match &cell.key {
            CellKey::Constant => println!("key     none: all packets use the same elements"),
            CellKey::One { index, .. } => println!("key     {index}"),
            CellKey::Several(indices) => println!("keys    {}", indices.join("\n        ")),
            CellKey::Dependent => {
                println!("key     none before it is read: an element tells the index of another");
            }
        }
        println!(
            "clock   {:.2} GHz without a lock, of a switch that starts {:.2} G packets/s",
            self.cell_clock(cell) / 1e9,
            self.clock / 1e9
        );
        if let Some(lock) = lock {
            let less = if lock.enough {
                ""
            } else {
                ", less than wanted; no finer lock is known"
            };
            println!(
                "lock    {}: {:.2} % of the bytes{less}",
                lock.name,
                100.0 * lock.throughput
            );
        }
        for step in &cell.path {
            println!("  {:>4}  {:<30} {}", step.ends, step.operation, step.place);
        }
        println!();
    }

    fn to_json(&self, cell: &Cell, lock: Option<&Lock>) -> Value {
        let (kind, indices) = match &cell.key {
            CellKey::Constant => ("constant", Vec::new()),
            CellKey::One { index, .. } => ("index", vec![index.clone()]),
            CellKey::Several(indices) => ("indices", indices.clone()),
            CellKey::Dependent => ("dependent", Vec::new()),
        };
        let inputs = match &cell.key {
            CellKey::One { inputs, .. } => inputs.clone(),
            _ => None,
        };
        let path: Vec<Value> = cell
            .path
            .iter()
            .map(|step| {
                json!({ "ends": step.ends, "operation": step.operation, "place": step.place })
            })
            .collect();
        json!({
            "registers": cell.registers,
            "depth": cell.depth,
            "loops": cell.loops,
            "spans": cell.spans,
            "key": { "kind": kind, "indices": indices, "inputs": inputs },
            "clock_hz": self.cell_clock(cell),
            "lock": lock.map(|lock| json!({
                "name": lock.name, "throughput": lock.throughput, "enough": lock.enough,
            })),
            "path": path,
        })
    }
}
