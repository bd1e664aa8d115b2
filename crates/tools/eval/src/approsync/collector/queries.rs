//! Queries of a count-min sketch in view while packets of captures flow.

use super::super::Making;
use super::super::collected::Collected;
use super::super::packets::{CAPTURES, Packet, Source, captures};
use super::super::plane::{SEED, wrong};
use super::super::viewed::{Viewed, shipped};
use super::super::way::Setup;
use crate::error::EvalError;
use crate::figure::Figure;
use crate::table::Table;
use rustc_hash::FxHashMap;
use stateplane_sketch::{Key, Reading, Shape, Sketch};

/// Rows of the sketch, and columns, 2 to this.
const ROWS: u32 = 3;
const COLUMN_BITS: u32 = 10;

/// Packets each µs, five times those of which the link carries all updates.
const PACKETS: u64 = 2;
const BUDGETS: f64 = 5.0;

/// Bytes on the wire of a packet's four updates, in messages of 16 values.
const BYTES: f64 = 4.0 * (194.0 / 16.0 + 12.0);

const SETUP: Setup = Setup {
    rate: PACKETS as f64 / BUDGETS * BYTES,
    delay_us: 50,
    turn_us: 4,
    window_us: 250,
    step_us: 4,
};

/// µs between two moments at which all flows are asked for, and flows at most.
const EVERY_US: u64 = 2_000;
const MOST: usize = 3_000;

/// Queries that there must be.
const QUERIES: u64 = 10_000;

/// Answers about the flows of a capture.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    queries: u64,
    /// Below the count at the mark by more than E.
    low: u64,
    /// Above it by more than E and the excess that has a probability of 2^-rows.
    high: u64,
    /// The greatest E.
    bound: u64,
}

/// The sketch as the engine sees it, and packets that the switch had had at the mark; `None` while
/// nothing or no bound is told.
fn seen(bed: &Collected, shape: Shape) -> Result<Option<(Sketch, u64)>, EvalError> {
    let told = bed.told(0).filter(|told| told.bound.is_some());
    let Some((told, packets)) = told.and_then(|told| Some((told, bed.packets_at(0, told.stamp)?)))
    else {
        return Ok(None);
    };
    let reading = Reading {
        values: bed.view(0).to_vec(),
        bound: told.bound,
        all_but: told.all_but,
        within: told.within,
        age_us: told.age_us,
        generation: told.generation,
        epoch: told.epoch,
    };
    let sketch = Sketch::new(shape, vec![reading]).map_err(wrong)?;
    Ok(Some((sketch, packets)))
}

fn ask(viewed: &Viewed, packets: &[Packet], moments: u64) -> Result<Answers, EvalError> {
    let shape = Shape::count_min(SEED, 0, ROWS, COLUMN_BITS);
    let mut bed = Collected::new(viewed, SETUP)?;
    let mut source = Source::captured(packets);
    let mut sent: Vec<Key> = Vec::new();
    let (mut counts, mut counted) = (FxHashMap::<Key, u64>::default(), 0);
    let mut answers = Answers::default();
    for _ in 0..moments {
        for _ in 0..EVERY_US / SETUP.step_us {
            for _ in 0..PACKETS * SETUP.step_us {
                let packet = source.packet();
                bed.packet(&packet);
                sent.push(packet.flow());
            }
            bed.pass();
        }
        let Some((sketch, at_mark)) = seen(&bed, shape)? else {
            continue;
        };
        for key in &sent[counted..at_mark as usize] {
            *counts.entry(*key).or_insert(0) += 1;
        }
        counted = at_mark as usize;
        let bound = sketch.parts()[0].error().unwrap_or(0);
        answers.bound = answers.bound.max(bound);
        for (key, count) in counts.iter().take(MOST) {
            let answer = sketch.query(*key);
            answers.queries += 1;
            answers.low += u64::from(*count > answer.high);
            answers.high += u64::from(*count < answer.low);
        }
    }
    Ok(answers)
}

/// Adds a table of captures and the claim about all of them; what is absent is said.
///
/// # Errors
/// `EV003` if the program does not suit.
pub(super) fn add(making: &Making<'_>, figure: &mut Figure) -> Result<(), EvalError> {
    let (names, moments) = if making.quick {
        (&CAPTURES[..1], 9)
    } else {
        (&CAPTURES[..], 25)
    };
    let (found, missing) = captures(making.traces, names);
    figure.missing.extend(missing);
    if found.is_empty() {
        return Ok(());
    }
    let text = shipped("apps/count-min/count_min.p4")?;
    let macros = [("COUNT_MIN_COLUMN_BITS", COLUMN_BITS.into())];
    let viewed = Viewed::new("count-min", text, &macros, &["flows"])?;
    let mut table = Table::new(
        "queries",
        &[
            "capture",
            "queries",
            "E, at most",
            "low by more than E",
            "too high",
            "too high (%)",
            "allowed (%)",
        ],
    );
    let allowed = 0.5_f64.powi(ROWS as i32);
    let mut all = Answers::default();
    for (name, packets) in &found {
        making.bar.set_message(format!("exp8: {name}"));
        let answers = ask(&viewed, packets, moments)?;
        table.row(vec![
            name.as_str().into(),
            answers.queries.into(),
            answers.bound.into(),
            answers.low.into(),
            answers.high.into(),
            (100.0 * answers.high as f64 / answers.queries.max(1) as f64).into(),
            (100.0 * allowed).into(),
        ]);
        all.queries += answers.queries;
        all.low += answers.low;
        all.high += answers.high;
        all.bound = all.bound.max(answers.bound);
    }
    figure.tables.push(table);
    figure.claim(
        all.queries >= QUERIES
            && all.bound > 0
            && all.low == 0
            && all.high as f64 <= allowed * all.queries as f64,
        format!(
            "of {} queries on captures, with E up to {}, {} are low by more than E and {} too high \
             (claimed: of at least {QUERIES} none, and at most {})",
            all.queries,
            all.bound,
            all.low,
            all.high,
            (allowed * all.queries as f64) as u64
        ),
    );
    Ok(())
}
