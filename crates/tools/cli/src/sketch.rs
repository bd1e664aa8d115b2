//! `stateplane sketch`: asks a sketch in the view of an engine about flows.

use crate::exit::{CommandError, Failure};
use crate::text_file;
use crate::view::{EngineArguments, refused};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stateplane_sketch::detect::{Found, heavy_hitters};
use stateplane_sketch::{Family, Interval, Key, Reading, Shape, Sketch, SketchError};
use stateplane_view::proto::v1;
use stateplane_view::unpack;
use std::io::Write;
use std::path::PathBuf;

/// Ask a sketch in the view of an engine, or a saved one, about flows.
///
/// Each answer is an interval: the count of the flow was in it at the view's mark. With a threshold
/// a flow is certainly, possibly or not heavy. docs/sketches.md says how sure the ends are.
#[derive(Args)]
pub struct SketchArguments {
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    shape: ShapeArguments,
    /// Read the sketch from this file, which `save` has written, instead of an engine
    #[arg(long, value_name = "FILE", global = true, conflicts_with_all = ["family", "groups"])]
    file: Option<PathBuf>,
    #[command(subcommand)]
    command: SketchCommand,
}

/// Family, groups and sizes of a sketch in the views of an engine.
#[derive(Args)]
pub struct ShapeArguments {
    /// Family: count-min, hashpipe, elastic-sketch, flow-radar, univmon, sketch-learn
    #[arg(long, value_parser = family, default_value = "count-min", global = true)]
    pub family: Family,
    /// Groups of the engine that hold it, in the order of docs/sketches.md
    #[arg(long = "group", value_name = "GROUP", global = true)]
    pub groups: Vec<String>,
    /// Rows, stages, tables, levels or bits; those of the programs in `apps` unless set
    #[arg(long, global = true)]
    pub rows: Option<u32>,
    /// Columns of a row are 2 to this
    #[arg(long, value_name = "BITS", default_value_t = 16, global = true)]
    pub column_bits: u32,
    /// Places of the second part are 2 to this
    #[arg(long, value_name = "BITS", default_value_t = 0, global = true)]
    pub part_bits: u32,
    /// SKETCH_SEED of the program
    #[arg(long, value_parser = number, default_value = "0x5374617465706c61", global = true)]
    pub seed: u64,
    /// Number of the sketch's first hash function
    #[arg(long, default_value_t = 0, global = true)]
    pub function: u32,
}

#[derive(Subcommand)]
enum SketchCommand {
    /// Print the counts of flows
    Ask {
        /// Flows: ADDRESS, SOURCE>DESTINATION, or SOURCE:PORT>DESTINATION:PORT/PROTOCOL
        #[arg(required = true, value_name = "FLOW")]
        flows: Vec<Key>,
        /// Also say whether the count is above this
        #[arg(long)]
        threshold: Option<u64>,
    },
    /// Print flows that are or may be above a threshold, the largest first
    Heavy {
        /// The threshold
        threshold: u64,
        /// Flows among which they are searched, besides those that the sketch names itself
        #[arg(value_name = "FLOW")]
        flows: Vec<Key>,
        /// A file with further flows, one a line
        #[arg(long, value_name = "FILE")]
        flows_from: Option<PathBuf>,
    },
    /// Write the sketch to a file
    Save {
        /// The file
        to: PathBuf,
    },
}

/// The family of a name on the command line.
pub fn family(text: &str) -> Result<Family, String> {
    Family::named(text).ok_or_else(|| {
        let names = Family::ALL.map(|(_, name, _)| name);
        format!("one of {}", names.join(", "))
    })
}

/// A number of 64 bits on the command line.
pub fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "a number of 64 bits, with 0x in hexadecimal digits".to_owned())
}

fn wrong(error: &SketchError) -> CommandError {
    CommandError::coded(Failure::Input, error.code(), error)
}

/// Runs the command.
pub fn run(arguments: &SketchArguments) -> Result<(), CommandError> {
    if let Some(path) = &arguments.file {
        let bytes = std::fs::read(path).map_err(|error| {
            let message = format!("{}: {error}", path.display());
            CommandError::new(Failure::Input, message)
        })?;
        let sketch = Sketch::from_bytes(&bytes).map_err(|error| wrong(&error))?;
        return answer(arguments, &sketch);
    }
    arguments.engine.run(async {
        let sketch = read(arguments).await?;
        answer(arguments, &sketch)
    })
}

impl ShapeArguments {
    fn shape(&self) -> Shape {
        let rows = match self.family {
            Family::CountMin | Family::FlowRadar => 3,
            Family::HashPipe => 4,
            Family::Elastic => 1,
            Family::UnivMon | Family::SketchLearn => 32,
        };
        Shape {
            family: self.family,
            seed: self.seed,
            function: self.function,
            rows: self.rows.unwrap_or(rows),
            column_bits: self.column_bits,
            part_bits: self.part_bits,
        }
    }

    /// The shape, of sizes that there are and for as many groups as it is read from. Rows that are
    /// not set are those of the programs in `apps`.
    pub fn checked(&self) -> Result<Shape, CommandError> {
        let shape = self.shape();
        shape.check().map_err(|error| wrong(&error))?;
        let needed = shape.locations().len();
        if self.groups.len() != needed {
            let message = format!("{} is read from {needed} groups (--group)", shape.family);
            return Err(CommandError::new(Failure::Input, message));
        }
        Ok(shape)
    }
}

/// Reads the groups one after another: each but the first at a mark that is younger than the answer
/// before it.
async fn read(arguments: &SketchArguments) -> Result<Sketch, CommandError> {
    let engine = &arguments.engine;
    let shape = arguments.shape.checked()?;
    let groups = &arguments.shape.groups;
    let mut client = engine.client().await?;
    let mut parts = Vec::new();
    for group in groups {
        let limits = v1::Limits {
            fresh: !parts.is_empty(),
            ..v1::Limits::default()
        };
        let request = v1::ReadAllValuesRequest {
            group: group.clone(),
            limits: Some(limits),
            patience_us: engine.patience_us(),
        };
        let said = client.read_all_values(request).await.map_err(refused)?;
        parts.push(reading(said.get_ref())?);
    }
    Sketch::new(shape, parts).map_err(|error| wrong(&error))
}

fn reading(said: &v1::ReadAllValuesResponse) -> Result<Reading, CommandError> {
    let told = said.told.ok_or_else(|| {
        CommandError::coded(Failure::System, "SYNC021", "the view is not complete")
    })?;
    Ok(Reading {
        values: unpack(&said.values).collect(),
        bound: told.bound,
        all_but: told.all_but,
        within: told.within,
        age_us: told.age_us,
        generation: told.generation,
        epoch: told.epoch,
    })
}

fn answer(arguments: &SketchArguments, sketch: &Sketch) -> Result<(), CommandError> {
    let json = arguments.engine.json;
    match &arguments.command {
        SketchCommand::Ask { flows, threshold } => {
            for key in flows {
                print(json, *key, &sketch.query(*key), *threshold);
            }
        }
        SketchCommand::Heavy {
            threshold,
            flows,
            flows_from,
        } => {
            let mut keys = sketch.keys();
            keys.extend(flows);
            if let Some(path) = flows_from {
                keys.extend(keys_of(path)?);
            }
            keys.sort_unstable();
            keys.dedup();
            for Found { key, count, .. } in heavy_hitters(sketch, keys, *threshold) {
                print(json, key, &count, Some(*threshold));
            }
        }
        SketchCommand::Save { to } => {
            let written = std::fs::write(to, sketch.to_bytes());
            written.map_err(|error| {
                CommandError::new(Failure::System, format!("{}: {error}", to.display()))
            })?;
        }
    }
    Ok(())
}

/// Flows of a file, one a line.
pub fn keys_of(path: &std::path::Path) -> Result<Vec<Key>, CommandError> {
    let failed = |message: String| {
        CommandError::new(Failure::Input, format!("{}: {message}", path.display()))
    };
    let text = text_file::read(path).map_err(|reason| failed(reason.to_string()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let keys = lines.map(|line| {
        line.parse()
            .map_err(|error| failed(format!("{line}: {error}")))
    });
    keys.collect()
}

/// One line of an answer.
fn print(json: bool, key: Key, count: &Interval, threshold: Option<u64>) {
    let high = Some(count.high).filter(|high| *high != u64::MAX);
    let verdict = threshold.map(|threshold| count.verdict(threshold).name());
    if json {
        let mut answer = json!({
            "flow": key.to_string(),
            "low": count.low,
            "high": high,
            "estimate": count.estimate,
            "low_miss": count.low_miss,
            "high_miss": count.high_miss,
        });
        if let Some(verdict) = verdict {
            answer["heavy"] = Value::from(verdict);
        }
        println!("{answer}");
    } else {
        let high = high.map_or("unbounded".to_owned(), |high| high.to_string());
        let verdict = verdict.map_or(String::new(), |verdict| format!(" {verdict} heavy"));
        println!(
            "{key} {} ({} to {high}){verdict}",
            count.estimate, count.low
        );
    }
    // A reader of a pipe waits for it.
    let _ = std::io::stdout().flush();
}
