//! The experiments: one run of the model for each point.

use super::Experiment;
use super::traces::{Source, Traces};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::table::Table;
use indicatif::ProgressBar;
use stateplane_hazards::{Depths, HazardError, Key, Outcome, Queues, Scale, Sizes, Study};

/// Values of α, from least sizes to the trace's own.
const ALPHAS: [f64; 4] = [0.0, 0.2, 0.5, 1.0];
/// Greatest depth of the paper's figures, in cycles.
const MOST_DEPTH: u32 = 40;
/// Lengths at which the distribution of sizes is told, in bytes.
const LENGTHS: [u32; 12] = [40, 64, 96, 128, 200, 256, 512, 576, 1024, 1400, 1499, 1500];

/// Makes an experiment.
pub(super) fn run(
    experiment: Experiment,
    traces: &Traces,
    quick: bool,
    bar: &ProgressBar,
) -> Result<Figure, EvalError> {
    let mut figure = match experiment {
        Experiment::Fig1a => sizes(traces, bar),
        Experiment::Fig1b => by_depth(Curve::Hazards, traces, quick, bar),
        Experiment::Fig1c => by_depth(Curve::Throughput, traces, quick, bar),
        Experiment::Locks => locks(traces, quick, bar),
        Experiment::Lengths => lengths(traces, quick, bar),
        Experiment::Latency => latency(traces, quick, bar),
    }?;
    figure.missing.extend(traces.missing.iter().cloned());
    figure.differs(
        "the paper's trace (CAIDA, 2015) is not public: chi-15 is drawn, packet by packet, from a \
         public histogram of such a link; the captures are real, and of other links",
    );
    if quick {
        figure.differs("few packets and few depths");
    }
    Ok(figure)
}

/// The paper's switch and one state, with sizes at `alpha`.
fn study(alpha: f64, middle: Option<&Sizes>, depths: Depths) -> Result<Study, HazardError> {
    Ok(Study {
        scale: Scale::new(alpha, middle.cloned())?,
        ..Study::new(depths)?
    })
}

/// Runs a study, which the caller made, on a source.
fn outcome(source: &Source, study: Result<Study, HazardError>) -> Result<Outcome, EvalError> {
    let run = study.and_then(|study| study.run(&source.traffic));
    run.map_err(|error| EvalError::hazard(&source.name, error))
}

fn depths(quick: bool) -> Vec<u32> {
    if quick {
        vec![1, 2, 3, 10, 19, MOST_DEPTH]
    } else {
        (1..=MOST_DEPTH).collect()
    }
}

/// Fig. 1a.
fn sizes(traces: &Traces, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "hazards-fig1a",
        "Distribution of packets' sizes by α",
        "all packets have the least size at α = 0, Facebook's sizes at 0.2, the trace's at 1",
    );
    let mut table = Table::new(
        "sizes",
        &["traffic", "α", "bytes", "packets of at most as many (%)"],
    );
    let sources = traces.all();
    bar.set_length((sources.len() * ALPHAS.len()) as u64);
    for source in sources {
        bar.set_message(source.name.clone());
        let mut series = Vec::new();
        for alpha in ALPHAS {
            let failed = |error| EvalError::hazard(&source.name, error);
            let study = Depths::one(1)
                .and_then(|depth| study(alpha, traces.middle.as_ref(), depth))
                .map_err(failed)?;
            let mut bytes: Vec<u32> = study
                .packets(&source.traffic)
                .map_err(failed)?
                .map(|packet| packet.bytes)
                .collect();
            bytes.sort_unstable();
            let mut points = Vec::new();
            for length in LENGTHS {
                let below = bytes.partition_point(|bytes| *bytes <= length);
                let share = 100.0 * below as f64 / bytes.len() as f64;
                table.row(vec![
                    source.name.clone().into(),
                    alpha.into(),
                    u64::from(length).into(),
                    share.into(),
                ]);
                points.push((f64::from(length), share));
            }
            series.push(Series {
                name: format!("α = {alpha}"),
                points,
            });
            bar.inc(1);
        }
        let axes = Axes {
            x: "bytes",
            y: "packets (%)",
            logarithmic: false,
        };
        figure.curves(&format!("sizes-{}", source.name), axes, &series)?;
    }
    figure.tables.push(table);
    Ok(figure)
}

#[derive(Clone, Copy, PartialEq)]
enum Curve {
    Hazards,
    Throughput,
}

/// Fig. 1b, without a lock, and Fig. 1c, under a global lock.
fn by_depth(
    curve: Curve,
    traces: &Traces,
    quick: bool,
    bar: &ProgressBar,
) -> Result<Figure, EvalError> {
    let (mut figure, mut table, lock, y) = match curve {
        Curve::Hazards => (
            Figure::new(
                "hazards-fig1b",
                "Hazards by depth, without a lock, one state",
                "at α = 0 the most that is possible from depth 2 on; below 5 % of cycles to depth \
                 19 at α = 1",
            ),
            Table::new(
                "hazards",
                &["traffic", "α", "depth", "cycles (%)", "packets (%)"],
            ),
            None,
            "hazards (% of cycles)",
        ),
        Curve::Throughput => (
            Figure::new(
                "hazards-fig1c",
                "Throughput by depth, under a global lock",
                "full to depth 10 at α = 1, and to depth 3 at α = 0.2",
            ),
            Table::new("throughput", &["traffic", "α", "depth", "throughput (%)"]),
            Some(Key::Global),
            "throughput (%)",
        ),
    };
    let sources = traces.all();
    let depths = depths(quick);
    bar.set_length((sources.len() * ALPHAS.len() * depths.len()) as u64);
    for source in sources {
        bar.set_message(source.name.clone());
        let mut series = Vec::new();
        for alpha in ALPHAS {
            let mut points = Vec::new();
            for &depth in &depths {
                let study = Depths::one(depth)
                    .and_then(|depths| study(alpha, traces.middle.as_ref(), depths));
                let outcome = outcome(source, study.map(|study| Study { lock, ..study }))?;
                let mut row = vec![
                    source.name.clone().into(),
                    alpha.into(),
                    u64::from(depth).into(),
                ];
                let percent = match curve {
                    Curve::Hazards => 100.0 * outcome.hazards_per_cycle(),
                    Curve::Throughput => 100.0 * outcome.throughput(),
                };
                row.push(percent.into());
                if curve == Curve::Hazards {
                    row.push((100.0 * outcome.hazards_per_packet()).into());
                }
                table.row(row);
                points.push((f64::from(depth), percent));
                bar.inc(1);
            }
            if source.name == "chi-15" {
                claim(&mut figure, curve, alpha, &points);
            }
            series.push(Series {
                name: format!("α = {alpha}"),
                points,
            });
        }
        let axes = Axes {
            x: "depth (cycles)",
            y,
            logarithmic: false,
        };
        figure.curves(&format!("depth-{}", source.name), axes, &series)?;
    }
    figure.tables.push(table);
    Ok(figure)
}

/// The paper's depths within which a bound holds, each less the one cycle by which the public
/// histogram differs where it does.
fn claim(figure: &mut Figure, curve: Curve, alpha: f64, points: &[(f64, f64)]) {
    let (paper, here) = match (curve, alpha) {
        (Curve::Hazards, 1.0) => (19.0, 18.0),
        (Curve::Throughput, 1.0) => (10.0, 10.0),
        (Curve::Throughput, 0.2) => (3.0, 2.0),
        _ => return,
    };
    let holds = |percent: f64| match curve {
        Curve::Hazards => percent < 5.0,
        Curve::Throughput => percent > 99.9,
    };
    let within = points.iter().take_while(|(_, percent)| holds(*percent));
    let reached = within.last().map_or(0.0, |(depth, _)| *depth);
    let tried = points.iter().map(|(depth, _)| *depth);
    let needed = tried.filter(|depth| *depth <= here).fold(0.0, f64::max);
    let bound = match curve {
        Curve::Hazards => "hazards below 5 % of cycles",
        Curve::Throughput => "full throughput",
    };
    let text = format!(
        "α = {alpha}: {bound} to depth {reached} of those tried (expected: {here}; the paper: {paper})"
    );
    figure.claim(reached >= needed, text);
}

/// Columns that a run under locks tells.
fn told(outcome: &Outcome) -> Vec<crate::table::Cell> {
    vec![
        (100.0 * outcome.throughput()).into(),
        (100.0 * outcome.hazards_per_packet()).into(),
        (100.0 * outcome.drops()).into(),
        outcome.mean_waiting().into(),
        outcome.latency.percentile(0.5).into(),
        outcome.latency.percentile(0.99).into(),
        outcome.latency.percentile(0.999).into(),
    ]
}

const TOLD: [&str; 7] = [
    "throughput (%)",
    "hazards (% of packets)",
    "dropped (%)",
    "waiting",
    "latency 50 % (cycles)",
    "99 %",
    "99.9 %",
];

fn table_of(name: &'static str, columns: &[&str]) -> Table {
    let columns: Vec<&str> = columns.iter().chain(&TOLD).copied().collect();
    Table::new(name, &columns)
}

/// A lock, with the number of values that its key is hashed to, and queues.
struct Scheme {
    name: &'static str,
    lock: Option<Key>,
    values: Option<u32>,
    queues: u32,
    capacity: Option<u32>,
}

const fn scheme(
    name: &'static str,
    lock: Option<Key>,
    values: Option<u32>,
    queues: u32,
    capacity: Option<u32>,
) -> Scheme {
    Scheme {
        name,
        lock,
        values,
        queues,
        capacity,
    }
}

/// A state for each 5-tuple is safe under each of these locks, but for the first.
const SCHEMES: [Scheme; 9] = [
    scheme("none", None, None, 1, None),
    scheme("global", Some(Key::Global), None, 1, None),
    scheme("prefix:16, Q = 4", Some(Key::Prefix(16)), None, 4, None),
    scheme("addresses, Q = 4", Some(Key::Addresses), None, 4, None),
    scheme("5-tuple, Q = 1", Some(Key::FiveTuple), None, 1, None),
    scheme("5-tuple, Q = 4", Some(Key::FiveTuple), None, 4, None),
    scheme(
        "5-tuple, Q = 4, W = 16",
        Some(Key::FiveTuple),
        Some(16),
        4,
        None,
    ),
    scheme(
        "5-tuple, Q = 16, W = 64",
        Some(Key::FiveTuple),
        Some(64),
        16,
        None,
    ),
    scheme(
        "5-tuple, Q = 4, of 16",
        Some(Key::FiveTuple),
        None,
        4,
        Some(16),
    ),
];

impl Scheme {
    fn run(&self, source: &Source, depths: &str, utilisation: f64) -> Result<Outcome, EvalError> {
        let study = depths.parse().and_then(Study::new).map(|study| Study {
            utilisation,
            state: Key::FiveTuple,
            lock: self.lock,
            lock_values: self.values,
            queues: Queues {
                count: self.queues,
                capacity: self.capacity,
            },
            ..study
        });
        outcome(source, study)
    }
}

/// §3: "packets belonging to different flows do not read/write each others' states".
fn locks(traces: &Traces, quick: bool, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "hazards-locks",
        "Locks for flows, by depth: a state for each 5-tuple",
        "left open (§3): a smarter locking scheme for packets of different flows",
    );
    let mut table = table_of("locks", &["traffic", "lock", "depth"]);
    let depths: &[u32] = if quick {
        &[10]
    } else {
        &[2, 5, 10, 15, 20, 30, 40]
    };
    bar.set_length((traces.captures.len() * SCHEMES.len() * depths.len()) as u64);
    let mut hazards = 0;
    for source in &traces.captures {
        bar.set_message(source.name.clone());
        let mut series = Vec::new();
        for scheme in &SCHEMES {
            let mut points = Vec::new();
            for &depth in depths {
                let outcome = scheme.run(source, &depth.to_string(), 1.0)?;
                if scheme.lock.is_some() {
                    hazards += outcome.hazards;
                }
                let mut row = vec![
                    source.name.clone().into(),
                    scheme.name.into(),
                    u64::from(depth).into(),
                ];
                row.extend(told(&outcome));
                table.row(row);
                points.push((f64::from(depth), 100.0 * outcome.throughput()));
                bar.inc(1);
            }
            if scheme.lock.is_some() && series.len() < 8 {
                series.push(Series {
                    name: scheme.name.to_owned(),
                    points,
                });
            }
        }
        let axes = Axes {
            x: "depth (cycles)",
            y: "throughput (%)",
            logarithmic: false,
        };
        figure.curves(&format!("locks-{}", source.name), axes, &series)?;
    }
    figure.claim(hazards == 0, format!("hazards under locks: {hazards}"));
    figure.tables.push(table);
    Ok(figure)
}

/// §3: "packet processing actions may be different in length".
fn lengths(traces: &Traces, quick: bool, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "hazards-lengths",
        "Throughput where few actions are long and the others take one cycle",
        "left open (§3): very complex actions together with a larger set of simpler ones",
    );
    let mut table = table_of("lengths", &["traffic", "lock", "long (%)", "long (cycles)"]);
    let shares: &[u32] = if quick { &[10] } else { &[1, 5, 10, 50] };
    let depths: &[u32] = if quick { &[30] } else { &[10, 30, 100, 300] };
    let schemes = [&SCHEMES[1], &SCHEMES[5]];
    let runs = schemes.len() * shares.len() * depths.len();
    bar.set_length((traces.captures.len() * runs) as u64);
    for source in &traces.captures {
        bar.set_message(source.name.clone());
        let mut series = Vec::new();
        for scheme in schemes {
            for &share in shares {
                let mut points = Vec::new();
                for &depth in depths {
                    let mix = format!("1:{},{depth}:{share}", 100 - share);
                    let outcome = scheme.run(source, &mix, 1.0)?;
                    let mut row = vec![
                        source.name.clone().into(),
                        scheme.name.into(),
                        u64::from(share).into(),
                        u64::from(depth).into(),
                    ];
                    row.extend(told(&outcome));
                    table.row(row);
                    points.push((f64::from(depth), 100.0 * outcome.throughput()));
                    bar.inc(1);
                }
                series.push(Series {
                    name: format!("{}, {share} % long", scheme.name),
                    points,
                });
            }
        }
        let axes = Axes {
            x: "cycles of long actions",
            y: "throughput (%)",
            logarithmic: true,
        };
        figure.curves(&format!("lengths-{}", source.name), axes, &series)?;
    }
    figure.tables.push(table);
    Ok(figure)
}

/// A lock "voids the guarantee of deterministic performance" (§2): by how much.
fn latency(traces: &Traces, quick: bool, bar: &ProgressBar) -> Result<Figure, EvalError> {
    const DEPTH: &str = "10";
    let mut figure = Figure::new(
        "hazards-latency",
        "Latency by utilisation, at depth 10: a state for each 5-tuple",
        "a lock voids the guarantee of deterministic performance; by how much is left open",
    );
    let mut table = table_of("latency", &["traffic", "lock", "utilisation (%)"]);
    let utilisations: &[u32] = if quick {
        &[90]
    } else {
        &[30, 50, 70, 80, 90, 100]
    };
    let schemes = [&SCHEMES[0], &SCHEMES[1], &SCHEMES[5], &SCHEMES[6]];
    bar.set_length((traces.captures.len() * schemes.len() * utilisations.len()) as u64);
    for source in &traces.captures {
        bar.set_message(source.name.clone());
        let mut series = Vec::new();
        for scheme in schemes {
            let mut points = Vec::new();
            for &percent in utilisations {
                let outcome = scheme.run(source, DEPTH, f64::from(percent) / 100.0)?;
                let mut row = vec![
                    source.name.clone().into(),
                    scheme.name.into(),
                    u64::from(percent).into(),
                ];
                row.extend(told(&outcome));
                table.row(row);
                points.push((f64::from(percent), outcome.latency.percentile(0.99) as f64));
                bar.inc(1);
            }
            series.push(Series {
                name: scheme.name.to_owned(),
                points,
            });
        }
        let axes = Axes {
            x: "utilisation (%)",
            y: "99 % of packets within (cycles)",
            logarithmic: false,
        };
        figure.curves(&format!("latency-{}", source.name), axes, &series)?;
    }
    figure.tables.push(table);
    Ok(figure)
}
