//! The sketch collector: Exp#8.

mod cases;
mod queries;

use super::Making;
use super::collected::Collected;
use super::packets::{Packet, Source};
use super::plane::{self, Plane, key_of};
use super::viewed::Viewed;
use super::way::Setup;
use super::ways::{Beside, CONSTANTS, OS_NS, P4RUNTIME_NS};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::Series;
use crate::statistics::median;
use crate::table::{Cell, Table};
use cases::Case;
use rustc_hash::FxHashMap;
use stateplane_sketch::{Key, Shape};
use stateplane_wire::sync::CutKind;

/// A link of 40 Gb/s with a round trip of 100 µs, for latencies.
const FAST: Setup = Setup {
    rate: 5_000.0,
    delay_us: 50,
    turn_us: 4,
    window_us: 250,
    step_us: 4,
};

/// Turns and steps of an overload, but for the link's rate.
const OVERLOADED: Setup = Setup {
    turn_us: 2,
    step_us: 2,
    ..FAST
};

/// Packets each µs of which a link carries all updates, and traffic in these budgets.
const BUDGET: f64 = 1.0;
const TRAFFIC: f64 = 3.0;

/// A flow with more than this part of the packets is heavy.
const HEAVY: u64 = 1_000;

/// µs in which a collection must end, and µs of packets before one.
const PATIENCE_US: u64 = 60_000_000;
const BEFORE_US: u64 = 5_000;

/// Times by which collection is faster than by the operating system, at least.
const FASTER: f64 = 10.0;

/// Accuracy of what was collected.
#[derive(Clone, Copy, Debug)]
struct Accuracy {
    /// Share of the locations in use that hold what the data plane held.
    complete: f64,
    /// Of the estimates of heavy flows, mean relative error; and the share that are not found.
    error: f64,
    false_negatives: f64,
}

/// Times of collections in ms, while a packet comes each 4 µs.
fn latencies(case: &Case, viewed: &Viewed, runs: usize) -> Result<Vec<f64>, EvalError> {
    let mut bed = Collected::new(viewed, FAST)?;
    let mut source = case.source();
    let mut times = Vec::new();
    let mut send = |bed: &mut Collected| {
        bed.packet(&source.packet());
        Ok(())
    };
    for _ in 0..runs {
        bed.until("the sweep", PATIENCE_US, &mut send, Collected::is_settled)?;
        let begin = bed.now + BEFORE_US;
        bed.until("a pause", PATIENCE_US, &mut send, |bed| bed.now >= begin)?;
        let asked = bed.now;
        for group in 0..viewed.groups() {
            bed.cut(group, CutKind::Carried, 0);
        }
        let has_all = |bed: &Collected| bed.heard.windows.len() == viewed.groups();
        bed.until("a collection", PATIENCE_US, &mut send, has_all)?;
        bed.heard.windows.clear();
        times.push((bed.now - asked) as f64 / 1000.0);
    }
    Ok(times)
}

/// A sketch under three budgets of traffic, collected in all ways.
struct Overload {
    bed: Collected,
    beside: Beside,
    counts: FxHashMap<Key, u64>,
    packets: u64,
    due: f64,
}

impl Overload {
    fn new(case: &Case, viewed: &Viewed) -> Result<Self, EvalError> {
        let bytes = case.bytes()?;
        let rate = BUDGET * bytes.sync;
        let bed = Collected::new(viewed, Setup { rate, ..OVERLOADED })?;
        let plane = Plane::of(case.shape)?;
        let pushed = BUDGET * bytes.pushed;
        Ok(Self {
            beside: Beside::new(plane, pushed, bed.now),
            bed,
            counts: FxHashMap::default(),
            packets: 0,
            due: 0.0,
        })
    }

    fn packet(&mut self, packet: &Packet, shape: Shape) {
        let key = key_of(shape.family, packet);
        *self.counts.entry(key).or_insert(0) += 1;
        self.packets += 1;
        self.bed.packet(packet);
        self.beside.packet(self.bed.now, packet);
    }

    /// Lets a step pass, with traffic.
    fn step(&mut self, case: &Case, source: &mut Source) {
        self.due += TRAFFIC * BUDGET * OVERLOADED.step_us as f64;
        while self.due >= 1.0 {
            self.due -= 1.0;
            self.packet(&source.packet(), case.shape);
        }
        self.bed.pass();
        self.beside.pass(OVERLOADED.step_us);
    }

    fn accuracy(
        &self,
        shape: Shape,
        values: &[Vec<u64>],
        held: &[Vec<u64>],
    ) -> Result<Accuracy, EvalError> {
        let places = values.iter().flatten().zip(held.iter().flatten());
        let used: Vec<bool> = places
            .filter(|(_, held)| **held != 0)
            .map(|(one, held)| one == held)
            .collect();
        let sketch = plane::sketch(shape, values.to_vec())?;
        let decoded = sketch.decode();
        let threshold = self.packets / HEAVY;
        let (mut error, mut missed, mut all) = (0.0, 0_u32, 0_u32);
        for (key, count) in self.counts.iter().filter(|(_, count)| **count > threshold) {
            let answer = match &decoded {
                Some(decoded) => decoded.query(&sketch, *key),
                None => sketch.query(*key),
            };
            error += answer.estimate.abs_diff(*count) as f64 / *count as f64;
            missed += u32::from(answer.estimate <= threshold);
            all += 1;
        }
        let complete = used.iter().filter(|same| **same).count() as f64;
        Ok(Accuracy {
            complete: complete / used.len().max(1) as f64,
            error: error / f64::from(all.max(1)),
            false_negatives: f64::from(missed) / f64::from(all.max(1)),
        })
    }
}

/// A sketch under three budgets: accuracies of sync and of the other ways, and updates that mirroring and
/// *Flow lost, in %.
fn overloaded(
    case: &Case,
    viewed: &Viewed,
    us: u64,
) -> Result<([Accuracy; 6], [f64; 2]), EvalError> {
    let mut run = Overload::new(case, viewed)?;
    let mut source = case.source();
    let begin = run.bed.now;
    while run.bed.now < begin + us {
        run.step(case, &mut source);
    }
    for group in 0..viewed.groups() {
        run.bed.cut(group, CutKind::Carried, 0);
    }
    // Each group is judged by what it held at its own cut.
    let mut at_cut: Vec<Option<[Vec<u64>; 5]>> = vec![None; viewed.groups()];
    while at_cut.iter().any(Option::is_none) && run.bed.now < begin + us + PATIENCE_US {
        run.step(case, &mut source);
        for cut in run.bed.cuts.drain(..) {
            at_cut[cut.group] = Some(run.beside.values(cut.group));
        }
    }
    let has_all = |bed: &Collected| bed.heard.windows.len() == viewed.groups();
    run.bed
        .until("a collection", PATIENCE_US, |_| Ok(()), has_all)?;
    let mut windows = std::mem::take(&mut run.bed.heard.windows);
    windows.sort_by_key(|window| window.group);
    let mut ways: [Vec<Vec<u64>>; 6] = Default::default();
    for (window, others) in windows.into_iter().zip(at_cut.into_iter().flatten()) {
        let all = [window.values].into_iter().chain(others);
        for (way, values) in ways.iter_mut().zip(all) {
            way.push(values);
        }
    }
    let held = ways[5].clone();
    let mut found = Vec::new();
    for values in &ways {
        found.push(run.accuracy(case.shape, values, &held)?);
    }
    let accuracies = std::array::from_fn(|way| found[way]);
    Ok((accuracies, run.beside.lost_percent()))
}

/// The tables of latencies and accuracies.
fn tables() -> [Table; 2] {
    let collection = [
        "sketch",
        "locations",
        "collected (ms)",
        "P4Runtime (ms)",
        "operating system (ms)",
        "faster than that (times)",
    ];
    let accuracy = [
        "sketch",
        "collected by",
        "complete (%)",
        "updates lost (%)",
        "relative error (%)",
        "false negatives (%)",
    ];
    [
        Table::new("collection", &collection),
        Table::new("accuracy", &accuracy),
    ]
}

/// Adds the accuracies of a sketch to their table, and claims about them.
fn add(
    figure: &mut Figure,
    table: &mut Table,
    case: &Case,
    (accuracies, lost): ([Accuracy; 6], [f64; 2]),
) {
    let lost = [None, None, None, Some(lost[0]), Some(lost[1]), None];
    let names = std::iter::once("sync").chain(Beside::NAMES);
    for ((way, accuracy), lost) in names.zip(accuracies).zip(lost) {
        table.row(vec![
            case.name.into(),
            way.into(),
            (100.0 * accuracy.complete).into(),
            lost.map_or(Cell::None, Cell::from),
            (100.0 * accuracy.error).into(),
            (100.0 * accuracy.false_negatives).into(),
        ]);
    }
    let [sync, .., ideal] = accuracies;
    figure.claim(
        sync.complete == 1.0 && sync.error == ideal.error,
        format!(
            "{}: {:.2} % of the locations are collected as they were at the cut, relative error {:.2} %, \
             ideal {:.2} % (claimed: all, the ideal)",
            case.name,
            100.0 * sync.complete,
            100.0 * sync.error,
            100.0 * ideal.error
        ),
    );
}

/// Exp#8.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp8",
        "A collector of sketches: latency, completeness, and errors at three budgets",
        "collection is faster than by the operating system by orders of magnitude; at three times the \
         link's rate mirroring and *Flow lose about 60 % of the updates, ApproSync none with a large t",
    );
    figure.differs(
        "collection is a carried cut and its window: over a link of 40 Gb/s with a round trip of 100 µs, \
         and for accuracy over one that carries all updates of a packet each µs, with three packets each µs",
    );
    figure.differs(
        "FlowRadar has 0.64 MiB of cells and filter (the paper: 1 MB); UnivMon has two counters a column, \
         and keys; *Flow and mirroring are made in memory with the sketches' own locations, and *Flow's \
         cache has an entry for 16 to 32 locations",
    );
    figure.differs(CONSTANTS);
    let cases = Case::all(making.quick);
    making.bar.set_length(2 * cases.len() as u64 + 1);
    let [mut collection, mut accuracy] = tables();
    let (mut groups, mut bars) = (Vec::new(), [const { Vec::new() }; 3]);
    let mut least = f64::INFINITY;
    let (runs, us) = if making.quick {
        (2, 8_000)
    } else {
        (5, 50_000)
    };
    for case in &cases {
        making.bar.set_message(format!("exp8: {}", case.name));
        let viewed = case.viewed()?;
        let locations = f64::from(viewed.plan.locations());
        let took = median(&latencies(case, &viewed, runs)?).unwrap_or(f64::NAN);
        let [fast, slow] = [P4RUNTIME_NS, OS_NS].map(|ns| locations * ns / 1e6);
        collection.row(vec![
            case.name.into(),
            locations.into(),
            took.into(),
            fast.into(),
            slow.into(),
            (slow / took).into(),
        ]);
        least = least.min(slow / took);
        groups.push(case.name.to_owned());
        for (bars, ms) in bars.iter_mut().zip([took, fast, slow]) {
            bars.push((0.0, ms));
        }
        making.bar.inc(1);
        let found = overloaded(case, &viewed, us)?;
        add(&mut figure, &mut accuracy, case, found);
        making.bar.inc(1);
    }
    figure.claim(
        least >= FASTER,
        format!(
            "collection is at least {least:.0} times as fast as by the operating system's path (claimed: \
             {FASTER})"
        ),
    );
    figure.tables.extend([collection, accuracy]);
    queries::add(making, &mut figure)?;
    making.bar.inc(1);
    let names = ["sync", "P4Runtime", "operating system"].into_iter();
    let series = names.zip(bars).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    let series: Vec<Series> = series.collect();
    figure.bars("collection", "ms", &groups, &series)?;
    Ok(figure)
}
