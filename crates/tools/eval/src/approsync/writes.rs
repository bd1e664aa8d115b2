//! Writes and resets of all values: Exp#4.

mod path;
mod real_time;

use super::Making;
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::{Cell, Table};
use path::{DELAY_US, Done, Joined, shape};
use stateplane_native::Compiled;

/// Exponents of the numbers of values, and values of a message.
const EXPONENTS: [u32; 5] = [8, 10, 12, 14, 16];
const BATCHES: [u32; 4] = [1, 5, 10, 32];
const QUICK_EXPONENTS: [u32; 3] = [8, 10, 16];
const QUICK_BATCHES: [u32; 2] = [10, 32];

/// Shares of frames that are lost in each direction, in %.
const LOSSES: [u32; 5] = [0, 20, 40, 60, 80];
const QUICK_LOSSES: [u32; 3] = [0, 40, 80];

/// Values of writes under loss.
const LOSSY: u32 = 16;
const QUICK_LOSSY: u32 = 10;

/// Values of a message of the paper's that is compared with resets.
const PAPERS_BATCH: u32 = 10;

/// Goals: a reset of 2^16 values takes at most so many times as long as one of 2^8, and
/// writing all of 2^16 takes at least so many times as long as a reset.
const FLAT: f64 = 1.5;
const FASTER: f64 = 20.0;

/// Exp#4.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp4",
        "Writes and resets by number of values and by loss",
        "2^16 values within 10 ms, also at a loss of 80 %; resets faster by an order of magnitude; over \
         the switch's operating system two orders slower",
    );
    figure.differs(format!(
        "in virtual time: a path of 40 Gb/s and {DELAY_US} µs to the switch and another back, each of \
         which loses its share of frames by itself, in which a message takes no time at switch and \
         engine; 10^6 packets a second are counted meanwhile"
    ));
    figure.differs(
        "all values of a write are staged, and a cut takes them between two packets: no packet is \
         recirculated; a reset is one message that is repeated until it is answered, not twenty",
    );
    sizes(making, &mut figure)?;
    losses(making, &mut figure)?;
    if !making.quick {
        real_time::run(making, &mut figure)?;
    }
    Ok(figure)
}

fn exponents(making: &Making<'_>) -> &'static [u32] {
    if making.quick {
        &QUICK_EXPONENTS
    } else {
        &EXPONENTS
    }
}

/// Writes of distinct values to all locations, and a reset behind each of them: medians of `turns`.
fn measure(
    compiled: &Compiled,
    (locations, batch, loss): (u32, u32, f64),
    turns: u64,
) -> Result<[Done; 2], EvalError> {
    let mut all = [const { Vec::new() }; 2];
    for seed in 1..=turns {
        let mut joined = Joined::new(compiled, locations, batch, loss, seed)?;
        let values: Vec<u64> = (1..=u64::from(locations))
            .map(|at| at * 1_000_003)
            .collect();
        all[0].push(joined.write(&values)?);
        all[1].push(joined.reset(0)?);
    }
    Ok(all.map(|done| middle(&done)))
}

/// Medians of each figure; of wrong locations the sum.
fn middle(all: &[Done]) -> Done {
    let of = |figure: fn(&Done) -> u64| {
        let figures: Vec<f64> = all.iter().map(|done| figure(done) as f64).collect();
        median(&figures).unwrap_or(0.0) as u64
    };
    Done {
        effect_us: of(|it| it.effect_us),
        seen_us: of(|it| it.seen_us),
        messages: of(|it| it.messages),
        again: of(|it| it.again),
        wrong: all.iter().map(|it| it.wrong).sum(),
    }
}

/// Fig. 11a, e, f: by number of values, and by values of a message.
fn sizes(making: &Making<'_>, figure: &mut Figure) -> Result<(), EvalError> {
    let exponents = exponents(making);
    let batches = if making.quick {
        &QUICK_BATCHES[..]
    } else {
        &BATCHES[..]
    };
    let turns = if making.quick { 1 } else { 3 };
    making
        .bar
        .inc_length((exponents.len() * batches.len()) as u64);
    let mut table = Table::new(
        "sizes",
        &[
            "values",
            "values of a message",
            "write takes effect (µs)",
            "write in the view (µs)",
            "messages",
            "reset takes effect (µs)",
            "reset in the view (µs)",
            "locations wrong",
        ],
    );
    let mut curves: Vec<Series> = Vec::new();
    let mut resets = Vec::new();
    let mut compared = Vec::new();
    let mut wrong = 0;
    for exponent in exponents {
        let locations = 1 << exponent;
        let compiled = shape(locations).compile()?;
        for (at, batch) in batches.iter().enumerate() {
            making
                .bar
                .set_message(format!("exp4: 2^{exponent}, {batch} a message"));
            let [write, reset] = measure(&compiled, (locations, *batch, 0.0), turns)?;
            table.row(vec![
                format!("2^{exponent}").into(),
                u64::from(*batch).into(),
                write.effect_us.into(),
                write.seen_us.into(),
                write.messages.into(),
                reset.effect_us.into(),
                reset.seen_us.into(),
                (write.wrong + reset.wrong).into(),
            ]);
            wrong += write.wrong + reset.wrong;
            let point = (f64::from(locations), write.seen_us as f64 / 1e3);
            match curves.get_mut(at) {
                Some(curve) => curve.points.push(point),
                None => curves.push(Series {
                    name: format!("{batch} values a message"),
                    points: vec![point],
                }),
            }
            if *batch == PAPERS_BATCH {
                resets.push((f64::from(locations), reset.seen_us as f64 / 1e3));
                compared.push((write.effect_us as f64, reset.effect_us as f64));
            }
            making.bar.inc(1);
        }
    }
    curves.push(Series {
        name: "reset".to_owned(),
        points: resets,
    });
    figure.curves("sizes", axes("values", true), &curves)?;
    figure.claim(
        wrong == 0,
        format!("without loss {wrong} locations are wrong after writes and resets (claimed: 0)"),
    );
    flat(figure, "in virtual time", &compared);
    figure.tables.push(table);
    Ok(())
}

const fn axes(x: &'static str, logarithmic: bool) -> Axes<'static> {
    Axes {
        x,
        y: "ms",
        logarithmic,
    }
}

/// Claims about times of writes and resets, of the fewest values to the most.
fn flat(figure: &mut Figure, how: &str, times: &[(f64, f64)]) {
    let (Some((_, few)), Some((write, many))) = (times.first(), times.last()) else {
        return;
    };
    let (times, faster) = (many / few, write / many);
    figure.claim(
        times <= FLAT,
        format!(
            "{how}, a reset of 2^16 values takes {times:.2} times that of 2^8 (claimed: {FLAT})"
        ),
    );
    figure.claim(
        faster >= FASTER,
        format!(
            "{how}, a reset of 2^16 values is {faster:.0} times as fast as writing them (claimed: \
             {FASTER})"
        ),
    );
}

/// Fig. 11b to d: by loss.
fn losses(making: &Making<'_>, figure: &mut Figure) -> Result<(), EvalError> {
    let (losses, exponent, turns) = if making.quick {
        (&QUICK_LOSSES[..], QUICK_LOSSY, 1)
    } else {
        (&LOSSES[..], LOSSY, 5)
    };
    let compiled = shape(1 << exponent).compile()?;
    making
        .bar
        .inc_length((losses.len() * QUICK_BATCHES.len()) as u64);
    let mut table = Table::new(
        "losses",
        &[
            "values of a message",
            "lost (%)",
            "write takes effect (ms)",
            "write in the view (ms)",
            "messages",
            "of them again",
            "reset takes effect (ms)",
            "locations wrong",
        ],
    );
    let mut curves = Vec::new();
    let (mut wrong, mut writes) = (0, 0);
    for batch in QUICK_BATCHES {
        let mut points = Vec::new();
        for lost in losses {
            making.bar.set_message(format!("exp4: {lost} % lost"));
            let share = f64::from(*lost) / 100.0;
            let [write, reset] = measure(&compiled, (1 << exponent, batch, share), turns)?;
            let ms = |us: u64| Cell::from(us as f64 / 1e3);
            table.row(vec![
                u64::from(batch).into(),
                f64::from(*lost).into(),
                ms(write.effect_us),
                ms(write.seen_us),
                write.messages.into(),
                write.again.into(),
                ms(reset.effect_us),
                (write.wrong + reset.wrong).into(),
            ]);
            points.push((f64::from(*lost), write.seen_us as f64 / 1e3));
            wrong += write.wrong + reset.wrong;
            writes += turns;
            making.bar.inc(1);
        }
        curves.push(Series {
            name: format!("{batch} values a message"),
            points,
        });
    }
    figure.curves("losses", axes("lost (%)", false), &curves)?;
    figure.claim(
        wrong == 0,
        format!(
            "{writes} writes and resets of 2^{exponent} values, at losses of up to {} %, end and leave \
             {wrong} locations wrong (claimed: 0)",
            losses.last().copied().unwrap_or(0)
        ),
    );
    figure.tables.push(table);
    Ok(())
}
