//! UDP floods: windows of exact counts, and verdicts that are written back: Exp#10.

mod control;
mod traffic;

use super::Making;
use super::collected::Collected;
use super::viewed::{Viewed, shipped};
use super::way::Setup;
use super::ways::{CONSTANTS, OS_NS, P4RUNTIME_NS};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::Table;
use control::{BLOCKED, Bed, PAIRS, WINDOW_US};
use stateplane_wire::sync::CutKind;
use std::collections::BTreeSet;
use traffic::{Attack, Datagrams, Pair, attacks};

const PROGRAM: &str = "apps/udp-flood/udp_flood.p4";

/// A link of 40 Gb/s with a round trip of 100 µs.
const SETUP: Setup = Setup {
    rate: 5_000.0,
    delay_us: 50,
    turn_us: 2,
    window_us: 250,
    step_us: 2,
};

/// µs in which an operation must end, and of a course at least and at most.
const PATIENCE_US: u64 = 5_000_000;
const LEAST_US: u64 = 100_000;
const MOST_US: u64 = 2_500_000;

fn viewed(bits: u32) -> Result<Viewed, EvalError> {
    let macros = [("UDP_FLOOD_BUCKET_BITS", bits.into())];
    Viewed::new("udp-flood", shipped(PROGRAM)?, &macros, &[])
}

/// Results of a course.
struct Course {
    /// µs from a flood's beginning until its verdict took effect, of those that were found.
    verdicts: Vec<f64>,
    /// Packets of floods that passed.
    passed: u64,
    /// Verdicts about other pairs, and packets of these that did not pass.
    false_positives: usize,
    dropped: u64,
}

/// Runs floods until all are blocked.
fn course(viewed: &Viewed, bits: u32, ns: Option<f64>) -> Result<Course, EvalError> {
    let mut bed = Bed::new(viewed, bits, ns)?;
    let mut datagrams = Datagrams::new(5);
    let attacks = attacks();
    let begin = bed.collected.now;
    let mut verdicts = vec![None; attacks.len()];
    let mut sent_by_others = 0_u64;
    let is_attack = |pair: Pair| attacks.iter().any(|it| it.pair == pair);
    loop {
        let time = bed.collected.now - begin;
        let all = verdicts.iter().all(Option::is_some);
        if time >= MOST_US || (all && time >= LEAST_US) {
            break;
        }
        for packet in datagrams.of(time, SETUP.step_us) {
            sent_by_others += u64::from(!is_attack((packet.source, packet.destination)));
            bed.collected.packet(&packet);
        }
        bed.act()?;
        bed.collected.pass();
        for (attack, verdict) in attacks.iter().zip(&mut verdicts) {
            let held = bed.collected.held(BLOCKED, attack.bucket(bits));
            if verdict.is_none() && held == attack.value() {
                *verdict = Some((bed.collected.now - begin - attack.begins) as f64);
            }
        }
    }
    let passed = |attacked: bool| -> u64 {
        let all = bed.collected.passed.iter();
        let of = all.filter(|(pair, _)| is_attack(**pair) == attacked);
        of.map(|(_, count)| *count).sum()
    };
    let known: BTreeSet<u64> = attacks.iter().map(Attack::value).collect();
    Ok(Course {
        verdicts: verdicts.into_iter().flatten().collect(),
        passed: passed(true),
        false_positives: bed.decided.difference(&known).count(),
        dropped: sent_by_others - passed(false),
    })
}

/// Times in ms of a collection with its reset, of a reset alone, and of a verdict's write.
fn latencies(viewed: &Viewed) -> Result<[f64; 3], EvalError> {
    let mut bed = Collected::new(viewed, SETUP)?;
    let mut datagrams = Datagrams::new(5);
    let mut timed = |bed: &mut Collected, what: &str, ends: &dyn Fn(&Collected) -> bool| {
        let begin = bed.now;
        let send = |bed: &mut Collected| {
            for packet in datagrams.of(0, SETUP.step_us) {
                bed.packet(&packet);
            }
            Ok(())
        };
        bed.until(what, PATIENCE_US, send, ends)?;
        Ok::<f64, EvalError>((bed.now - begin) as f64 / 1000.0)
    };
    let start = bed.now + WINDOW_US;
    timed(&mut bed, "a window", &|bed| bed.now >= start)?;
    bed.cut(PAIRS, CutKind::Filled, 0);
    let collected = timed(&mut bed, "a collection", &|bed| {
        !bed.heard.windows.is_empty()
    })?;
    timed(&mut bed, "the sweep", &Collected::is_settled)?;
    let known = bed.heard.made.len();
    let later = bed.now + WINDOW_US;
    timed(&mut bed, "a window", &|bed| bed.now >= later)?;
    bed.reset(PAIRS, 0);
    let reset = timed(&mut bed, "a reset", &|bed| bed.heard.made.len() > known)?;
    bed.write(BLOCKED, &[(1, 7)])?;
    let is_written = |bed: &Collected| !bed.heard.written.is_empty();
    let written = timed(&mut bed, "a verdict", &is_written)?;
    Ok([collected, reset, written])
}

/// Latencies by buckets.
fn by_size(making: &Making<'_>, figure: &mut Figure, sizes: &[u32]) -> Result<(), EvalError> {
    let mut table = Table::new(
        "latency",
        &[
            "buckets",
            "values",
            "collected and reset (ms)",
            "reset (ms)",
            "verdict written (ms)",
            "P4Runtime: read or reset (ms)",
            "operating system: read or reset (ms)",
        ],
    );
    let names = ["collected", "reset", "P4Runtime", "operating system"];
    let mut points = [const { Vec::new() }; 4];
    for bits in sizes {
        making.bar.set_message(format!("exp10: 2^{bits} buckets"));
        let values = 2_u64 << bits;
        let [collected, reset, written] = latencies(&viewed(*bits)?)?;
        let [fast, slow] = [P4RUNTIME_NS, OS_NS].map(|ns| values as f64 * ns / 1e6);
        table.row(vec![
            format!("2^{bits}").into(),
            values.into(),
            collected.into(),
            reset.into(),
            written.into(),
            fast.into(),
            slow.into(),
        ]);
        for (points, ms) in points.iter_mut().zip([collected, reset, fast, slow]) {
            points.push((values as f64, ms));
        }
        making.bar.inc(1);
    }
    figure.tables.push(table);
    let series = names.into_iter().zip(points).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    let series: Vec<Series> = series.collect();
    let axes = Axes {
        x: "values",
        y: "ms",
        logarithmic: true,
    };
    figure.curves("latency", axes, &series)
}

/// Exp#10.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp10",
        "Prevention of UDP floods: latencies, verdicts, and what passed before them",
        "collection and reset are faster than SNAP's by orders of magnitude; no false positives, of which \
         SNAP has a few",
    );
    figure.differs(
        "apps/udp-flood counts pairs of hosts exactly (the paper: FlowRadar), in windows of 5 ms, over a link \
         of 40 Gb/s with a round trip of 100 µs; a pair floods with more than 100 packets in a window (the \
         paper: 100,000)",
    );
    figure.differs(
        "by the other paths values are read, verdicts written and values reset one after the other, and the \
         threshold is that of the time for which they count",
    );
    figure.differs(CONSTANTS);
    let (sizes, bits): (Vec<u32>, u32) = if making.quick {
        (vec![8, 12], 12)
    } else {
        ((8..=16).collect(), 14)
    };
    making.bar.set_length(sizes.len() as u64 + 3);
    by_size(making, &mut figure, &sizes)?;
    let viewed = viewed(bits)?;
    let mut table = Table::new(
        "floods",
        &[
            "system",
            "floods",
            "found",
            "verdict after (ms)",
            "longest (ms)",
            "packets of floods that passed",
            "false positives",
            "other packets dropped",
        ],
    );
    for (name, ns) in [
        ("sync", None),
        ("P4Runtime", Some(P4RUNTIME_NS)),
        ("operating system", Some(OS_NS)),
    ] {
        making.bar.set_message(format!("exp10: {name}"));
        let course = course(&viewed, bits, ns)?;
        let times: Vec<f64> = course.verdicts.iter().map(|us| us / 1000.0).collect();
        let longest = times.iter().copied().fold(0.0, f64::max);
        let all = attacks().len();
        table.row(vec![
            name.into(),
            (all as u64).into(),
            (times.len() as u64).into(),
            median(&times).into(),
            longest.into(),
            course.passed.into(),
            (course.false_positives as u64).into(),
            course.dropped.into(),
        ]);
        if ns.is_none() {
            figure.claim(
                course.false_positives == 0 && course.dropped == 0 && times.len() == all,
                format!(
                    "sync: {} of {all} floods found, {} false positives, {} packets of others dropped \
                     (claimed: all, 0, 0)",
                    times.len(),
                    course.false_positives,
                    course.dropped
                ),
            );
        }
        making.bar.inc(1);
    }
    figure.tables.push(table);
    Ok(figure)
}
