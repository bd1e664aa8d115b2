//! The traffic of the experiments: a backbone's distribution of sizes, and captures.

use crate::error::EvalError;
use stateplane_hazards::{Flow, HazardError, Record, Sizes, Traffic};
use stateplane_host::ports::read_packets;
use std::path::Path;

/// Packets drawn from a distribution, and at most taken from a capture, in a quick run.
const QUICK: usize = 20_000;
const DRAWN: u64 = 300_000;

/// Traffic with a name.
pub(super) struct Source {
    pub name: String,
    pub traffic: Traffic,
}

/// All traffic of a folder.
pub(super) struct Traces {
    /// Chicago's backbone link of 2015, drawn: sizes without flows.
    pub backbone: Option<Source>,
    /// Sizes at α = 0.2: Facebook's cluster.
    pub middle: Option<Sizes>,
    /// Captures by name.
    pub captures: Vec<Source>,
    /// Files that were left out, with reasons.
    pub missing: Vec<String>,
}

impl Traces {
    pub(super) fn read(folder: &Path, quick: bool) -> Result<Self, EvalError> {
        let mut traces = Self {
            backbone: None,
            middle: None,
            captures: Vec::new(),
            missing: Vec::new(),
        };
        let table = folder.join("packet-size-cdf.tsv");
        match std::fs::read_to_string(&table) {
            Ok(text) => {
                let row = |name| {
                    Sizes::parse(&text, name).map_err(|error| EvalError::hazard(&table, error))
                };
                traces.middle = Some(row("fb")?);
                traces.backbone = Some(Source {
                    name: "chi-15".to_owned(),
                    traffic: Traffic::Drawn {
                        sizes: row("chi-15")?,
                        popularity: None,
                        packets: if quick { QUICK as u64 } else { DRAWN },
                    },
                });
            }
            Err(reason) => traces
                .missing
                .push(format!("{}: {reason}", table.display())),
        }
        let entries =
            std::fs::read_dir(folder).map_err(|reason| EvalError::file(folder, reason))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            traces.capture(&path, quick);
        }
        Ok(traces)
    }

    fn capture(&mut self, path: &Path, quick: bool) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".gz") {
            self.missing
                .push(format!("{name} is compressed; unpack it beside the others"));
        } else if name.ends_with(".pcap") || name.ends_with(".pcapng") {
            match recorded(path, if quick { QUICK } else { usize::MAX }) {
                Ok(traffic) => self.captures.push(Source {
                    name: name.into_owned(),
                    traffic,
                }),
                Err(reason) => self.missing.push(format!("{name}: {reason}")),
            }
        }
    }

    /// The backbone, if its table is there, and the captures.
    pub(super) fn all(&self) -> Vec<&Source> {
        self.backbone.iter().chain(&self.captures).collect()
    }
}

/// At most `most` packets of a capture.
fn recorded(path: &Path, most: usize) -> Result<Traffic, String> {
    let packets = read_packets(path).map_err(|error| format!("[{}] {error}", error.code()))?;
    let records = packets.iter().filter(|packet| packet.length > 0);
    let records = records.take(most).map(|packet| Record {
        at_ns: u64::try_from(packet.at.as_nanos()).unwrap_or(u64::MAX),
        bytes: u32::try_from(packet.length).unwrap_or(u32::MAX),
        flow: Flow::of_ip(&packet.bytes).filter(|_| packet.is_ip),
    });
    let refused = |error: HazardError| format!("[{}] {error}", error.code());
    Traffic::recorded(records.collect()).map_err(refused)
}
