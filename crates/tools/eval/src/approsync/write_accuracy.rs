//! HashPipe while its state is written: Exp#5.

use super::Making;
use super::collected::Collected;
use super::packets::{Packet, Source};
use super::plane::{self, SEED, wrong};
use super::viewed::{HOSTS, Macros, Viewed, plain, refused, shipped, switch};
use super::way::Setup;
use super::ways::{CONSTANTS, OS_NS, P4RUNTIME_NS};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::table::Table;
use rustc_hash::FxHashMap;
use stateplane_runtime::{Engine as _, Value};
use stateplane_sketch::{Family, Key, Shape, Sketch};
use stateplane_wire::sync::{CutKind, Outcome};

const PROGRAM: &str = "apps/hashpipe/hashpipe.p4";
const REGISTER: &str = "stages";

/// Stages of the program, 2 to this.
const STAGE_COUNT_BITS: u32 = 2;

/// Packets each µs, and sources that they have.
const RATE: u64 = 2;
const SOURCES: u32 = 1 << 13;

/// A source with more than this part of an interval's packets is heavy.
const HEAVY: u64 = 1_000;

/// A link of 40 Gb/s with a round trip of 100 µs.
const SETUP: Setup = Setup {
    rate: 5_000.0,
    delay_us: 50,
    turn_us: 4,
    window_us: 250,
    step_us: 2,
};

/// µs in which a write, or a window, must end.
const PATIENCE_US: u64 = 10_000_000;

/// The paper's greatest differences to accuracy without a write: of false negatives, and of the
/// relative error.
const PAPER_FNR: f64 = 0.002;
const PAPER_ERROR: f64 = 0.0003;

/// Accuracy of a sketch about the heavy sources of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Accuracy {
    /// Share of the heavy sources that it does not find.
    false_negatives: f64,
    /// Mean relative error of their estimates.
    error: f64,
}

/// An interval that began with a write of all of the state to 0.
struct Interval {
    write_ms: f64,
    /// Packets between the request and its end.
    during: u64,
    recirculated: u64,
    /// After the interval's packets, and if the write had taken no time.
    found: Accuracy,
    ideal: Accuracy,
}

/// Packets of the interval before a write, and of the one that it begins: other sources are large.
struct Course {
    packets: usize,
    before: Source,
    behind: Source,
}

impl Course {
    fn new(quick: bool) -> Self {
        Self {
            packets: if quick { 60_000 } else { 400_000 },
            before: Source::drawn(SOURCES, 1, false),
            behind: Source::drawn(SOURCES, 2, false),
        }
    }
}

/// The sizes of a HashPipe whose stages have so many buckets in all.
fn shape(exponent: u32) -> Shape {
    let stages = 1 << STAGE_COUNT_BITS;
    Shape::of(
        Family::HashPipe,
        SEED,
        stages,
        exponent - STAGE_COUNT_BITS,
        0,
    )
}

fn judge(sketch: &Sketch, packets: &[Packet]) -> Accuracy {
    let mut counts: FxHashMap<Key, u64> = FxHashMap::default();
    for packet in packets {
        *counts.entry(packet.source()).or_insert(0) += 1;
    }
    let threshold = packets.len() as u64 / HEAVY;
    let heavy = counts.iter().filter(|(_, count)| **count > threshold);
    let answers = heavy.map(|(key, count)| (sketch.query(*key).estimate, *count));
    let answers: Vec<(u64, u64)> = answers.collect();
    let missed = answers.iter().filter(|(found, _)| *found <= threshold);
    let off = answers
        .iter()
        .map(|(found, count)| found.abs_diff(*count) as f64 / *count as f64);
    let all = answers.len().max(1) as f64;
    Accuracy {
        false_negatives: missed.count() as f64 / all,
        error: off.sum::<f64>() / all,
    }
}

/// Accuracy of a HashPipe that has counted these packets alone.
fn ideal(shape: Shape, packets: &[Packet]) -> Result<Accuracy, EvalError> {
    let mut sketch = Sketch::empty(shape).map_err(wrong)?;
    for packet in packets {
        sketch.update(packet.source());
    }
    Ok(judge(&sketch, packets))
}

/// A staged write of this project's sync, which a cut takes between two packets.
fn staged(exponent: u32, mut course: Course) -> Result<Interval, EvalError> {
    let shape = shape(exponent);
    let bits: Macros<'_> = &[("HASHPIPE_STAGE_BITS", shape.column_bits.into())];
    let viewed = Viewed::new("hashpipe", shipped(PROGRAM)?, bits, &[REGISTER])?;
    let mut bed = Collected::new(&viewed, SETUP)?;
    while bed.packets < course.packets as u64 {
        for _ in 0..RATE * SETUP.step_us {
            bed.packet(&course.before.packet());
        }
        bed.pass();
    }
    let (asked, first) = (bed.now, bed.packets);
    let values: Vec<(u32, u64)> = (0..shape.locations()[0] as u32).map(|at| (at, 0)).collect();
    let ticket = bed.write(0, &values)?;
    let mut sent = Vec::new();
    let end = |bed: &Collected| {
        bed.cuts
            .first()
            .map(|cut| cut.packets + course.packets as u64)
    };
    bed.until(
        "the interval",
        PATIENCE_US,
        |bed| {
            for _ in 0..RATE * SETUP.step_us {
                let packet = course.behind.packet();
                bed.packet(&packet);
                sent.push(packet);
            }
            Ok(())
        },
        |bed| end(bed).is_some_and(|end| bed.packets >= end) && !bed.heard.written.is_empty(),
    )?;
    let written = bed.heard.written[0];
    if (written.0, written.1) != (ticket, Some(Outcome::Done)) {
        return Err(refused(PROGRAM, "the write was not made"));
    }
    // No packets: the next cut waits for the sweep, and takes the state as it is here.
    bed.cut(0, CutKind::Carried, 0);
    let has_window = |bed: &Collected| !bed.heard.windows.is_empty();
    bed.until("the window", PATIENCE_US, |_| Ok(()), has_window)?;
    let window = bed.heard.windows.remove(0);
    let cut = bed.cuts[0];
    let counted = &sent[(cut.packets - first) as usize..];
    let sketch = plane::sketch(shape, vec![window.values])?;
    Ok(Interval {
        write_ms: (written.2 - asked) as f64 / 1000.0,
        during: cut.packets - first,
        recirculated: bed.recirculated(),
        found: judge(&sketch, counted),
        ideal: ideal(shape, counted)?,
    })
}

/// Registers that are written one after the other, each in so many ns, while packets count.
fn one_by_one(exponent: u32, ns: f64, mut course: Course) -> Result<Interval, EvalError> {
    let shape = shape(exponent);
    let bits: Macros<'_> = &[("HASHPIPE_STAGE_BITS", shape.column_bits.into())];
    let compiled = plain("hashpipe", shipped(PROGRAM)?, bits)?;
    let mut switch = switch("hashpipe", &compiled)?;
    let mut frame = Vec::new();
    for _ in 0..course.packets {
        course.before.packet().frame(&mut frame);
        switch.handle_frame(0, HOSTS[0], &frame);
    }
    let locations = shape.locations()[0] as u64;
    let (mut written, mut during, mut sent) = (0, 0, Vec::new());
    let failed = |error| refused(PROGRAM, error);
    for at in 0..course.packets as u64 {
        // The values whose time has come when this packet comes.
        let due = (at as f64 / RATE as f64 * 1000.0 / ns) as u64;
        let state = switch.engine_mut().state_mut();
        let register = state.register_mut(REGISTER).map_err(failed)?;
        while written < due.min(locations) {
            register
                .write(written, &Value::from(0_u64))
                .map_err(failed)?;
            written += 1;
        }
        during += u64::from(written < locations);
        let packet = course.behind.packet();
        packet.frame(&mut frame);
        switch.handle_frame(at / RATE, HOSTS[0], &frame);
        sent.push(packet);
    }
    let state = switch.engine().state();
    let register = state.register(REGISTER).map_err(failed)?;
    let values = (0..locations).map(|at| register.word(at).unwrap_or(0) as u64);
    let sketch = plane::sketch(shape, vec![values.collect()])?;
    Ok(Interval {
        write_ms: locations as f64 * ns / 1e6,
        during,
        recirculated: switch.counters().recirculated,
        found: judge(&sketch, &sent),
        ideal: ideal(shape, &sent)?,
    })
}

/// Exp#5.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp5",
        "HashPipe while its state is written, by values written",
        "at most 4,500 updates are recirculated; false negatives increase by at most 0.2 %, the \
         relative error by 0.03 %, by the operating system's path by more",
    );
    figure.differs(
        "all buckets of the HashPipe are written to 0, so that it has as many as values are written \
         (the paper: 5,000); an interval begins with the write, and other sources are large in it than \
         before",
    );
    figure.differs(
        "a write is staged over a link of 40 Gb/s with a round trip of 100 µs and takes effect by a cut; \
         the interval begins there, by the other paths with the first value",
    );
    figure.differs(CONSTANTS);
    let exponents: Vec<u32> = if making.quick {
        vec![8, 12]
    } else {
        (8..=16).collect()
    };
    let mut table = Table::new(
        "writes",
        &[
            "system",
            "values",
            "write (ms)",
            "packets during the write",
            "updates recirculated",
            "false negatives (%)",
            "without a write",
            "relative error (%)",
            "without a write",
        ],
    );
    making.bar.set_length(3 * exponents.len() as u64);
    let mut curves = [Vec::new(), Vec::new()];
    let mut worst = (0_u64, 0.0_f64, 0.0_f64);
    for (name, ns) in [
        ("sync", None),
        ("P4Runtime", Some(P4RUNTIME_NS)),
        ("operating system", Some(OS_NS)),
    ] {
        let mut points = [Vec::new(), Vec::new()];
        for exponent in &exponents {
            making
                .bar
                .set_message(format!("exp5: {name}, 2^{exponent}"));
            let course = Course::new(making.quick);
            let interval = match ns {
                None => staged(*exponent, course)?,
                Some(ns) => one_by_one(*exponent, ns, course)?,
            };
            let (found, ideal) = (interval.found, interval.ideal);
            table.row(vec![
                name.into(),
                format!("2^{exponent}").into(),
                interval.write_ms.into(),
                interval.during.into(),
                interval.recirculated.into(),
                (100.0 * found.false_negatives).into(),
                (100.0 * ideal.false_negatives).into(),
                (100.0 * found.error).into(),
                (100.0 * ideal.error).into(),
            ]);
            let more = found.false_negatives - ideal.false_negatives;
            let farther = found.error - ideal.error;
            let values = f64::from(1_u32 << exponent);
            points[0].push((values, 100.0 * more));
            points[1].push((values, 100.0 * farther));
            if ns.is_none() {
                worst.0 += interval.recirculated;
                worst.1 = worst.1.max(more);
                worst.2 = worst.2.max(farther);
            }
            making.bar.inc(1);
        }
        for (curves, points) in curves.iter_mut().zip(points) {
            let name = name.to_owned();
            curves.push(Series { name, points });
        }
    }
    figure.tables.push(table);
    claims(&mut figure, worst);
    let [missed, off] = curves;
    for (name, y, series) in [
        ("false-negatives", "more false negatives (%)", missed),
        ("relative-error", "more relative error (%)", off),
    ] {
        let axes = Axes {
            x: "values written",
            y,
            logarithmic: true,
        };
        figure.curves(name, axes, &series)?;
    }
    Ok(figure)
}

/// Of all sync's writes the updates that were recirculated, and the greatest differences.
fn claims(figure: &mut Figure, (recirculated, more, farther): (u64, f64, f64)) {
    figure.claim(
        recirculated == 0,
        format!("sync: {recirculated} updates recirculated (claimed: 0; the paper: up to 4,500)"),
    );
    figure.claim(
        more <= PAPER_FNR,
        format!(
            "sync: false negatives are more by {:.2} % (claimed, as the paper: {})",
            100.0 * more,
            100.0 * PAPER_FNR
        ),
    );
    figure.claim(
        farther <= PAPER_ERROR,
        format!(
            "sync: the relative error is more by {:.3} % (claimed, as the paper: {})",
            100.0 * farther,
            100.0 * PAPER_ERROR
        ),
    );
}
