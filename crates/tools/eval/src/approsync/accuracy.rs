//! Loss and divergence: Fig. 1b and Exp#3.

use super::Making;
use super::bed::{Bed, Control, PUSH_BYTES};
use super::overload::{BACK_MS, Course, OVERLOAD, Outcome, run, setting};
use super::programs::{Counted, Counters, Shape, System};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::table::{Cell, Table};

/// Bytes of a state update: what Algorithm 2 divides the link's capacity by.
const UPDATE: f64 = 12.0;

/// Algorithm 2 with the bytes that an update has on the wire.
pub(super) const HONEST: Control = Control::Adaptive(PUSH_BYTES);

/// Algorithm 2 as printed: headers do not count.
const AS_PRINTED: Control = Control::Adaptive(UPDATE);

/// Systems that are compared, with how the paper's threshold is set.
fn contestants() -> [(&'static str, System, Control); 5] {
    [
        (System::Sync.name(), System::Sync, HONEST),
        ("ApproSync as printed", System::Printed, AS_PRINTED),
        ("ApproSync, s with headers", System::Printed, HONEST),
        (System::StarFlow.name(), System::StarFlow, HONEST),
        (System::Mirroring.name(), System::Mirroring, HONEST),
    ]
}

/// Fig. 1b.
pub(super) fn mirroring(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-fig1b",
        "Updates that mirroring loses, by number of traffic ports",
        "almost none with one traffic port of the link's rate, 60 % with three",
    );
    let course = Course::of(making);
    let mut table = Table::new("loss", &["ports", "updates lost (%)"]);
    let mut points = Vec::new();
    making.bar.set_length(4);
    for ports in 1..=4_u64 {
        let shape = Shape {
            system: System::Mirroring,
            counted: Counted::Packets,
            counters: Counters::Sources(1 << 16),
            entries: 1 << 16,
        };
        let compiled = shape.compile()?;
        let mut bed = Bed::new(setting(shape, 1 << 16, course.budget, HONEST), &compiled)?;
        bed.pass(course.overload, ports as f64 * course.budget)?;
        let lost = 100.0 * bed.counts.lost as f64 / bed.counts.sent.max(1) as f64;
        table.row(vec![ports.into(), lost.into()]);
        points.push((ports as f64, lost));
        making.bar.inc(1);
    }
    let expected = points.iter().map(|(ports, _)| 100.0 * (1.0 - 1.0 / ports));
    let off = points.iter().zip(expected);
    let off = off.map(|((_, lost), due)| (lost - due).abs());
    let off = off.fold(0.0, f64::max);
    figure.claim(
        off < 5.0,
        format!("with n ports 1 - 1/n is lost, within {off:.1} % (claimed: 5)"),
    );
    let axes = Axes {
        x: "traffic ports",
        y: "updates lost (%)",
        logarithmic: false,
    };
    let series = [Series {
        name: "mirroring".to_owned(),
        points,
    }];
    figure.curves("loss", axes, &series)?;
    figure.tables.push(table);
    Ok(figure)
}

/// Exp#3.
pub(super) fn reads(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp3",
        "Accuracy of reads at five times the budget, by locations",
        "ApproSync loses 3.22 % of updates with tables of 2^14 entries and none from 2^15 on; with \
         fixed t below 5 and *Flow updates are lost (60 % with t = 2)",
    );
    figure.differs(
        "each system has a link that carries a fifth of the updates, in the frames that the system \
         sends: 18 B for each of 32 values of sync, 84 B for an update of the others",
    );
    figure.differs(
        "tables and caches have as many entries as there are locations; entries that were not sent \
         for two windows are sent (the paper's IV-C)",
    );
    let course = Course::of(making);
    let exponents: &[u32] = if making.quick {
        &[14]
    } else {
        &[14, 15, 16, 17, 18]
    };
    let mut table = Table::new(
        "overload",
        &[
            "system",
            "counted",
            "locations",
            "updates",
            "lost (%)",
            "divergence, most",
            "mean (%)",
            "told before",
            "told untrue (% of ms)",
            "told again after (ms)",
            "locations wrong at the end",
        ],
    );
    let runs = contestants().len() * Counted::ALL.len() * exponents.len();
    making.bar.set_length(runs as u64 + 10);
    for counted in Counted::ALL {
        for exponent in exponents {
            let mut curves = Vec::new();
            for (name, system, control) in contestants() {
                making
                    .bar
                    .set_message(format!("exp3: {name}, 2^{exponent}"));
                let shape = Shape {
                    system,
                    counted,
                    counters: Counters::Sources(1 << exponent),
                    entries: 1 << exponent,
                };
                let setting = setting(shape, 1 << exponent, course.budget, control);
                let outcome = run(setting, course, OVERLOAD)?;
                table.row(row(name, counted, *exponent, &outcome));
                if system == System::Sync {
                    claims(&mut figure, counted, *exponent, &outcome);
                }
                curves.extend(drawn(name, &outcome));
                making.bar.inc(1);
            }
            let axes = Axes {
                x: "ms",
                y: counted.name(),
                logarithmic: false,
            };
            figure.curves(&format!("{}-2-{exponent}", counted.name()), axes, &curves)?;
        }
    }
    figure.tables.push(table);
    by_rate(making, &mut figure)?;
    Ok(figure)
}

fn row(name: &str, counted: Counted, exponent: u32, outcome: &Outcome) -> Vec<Cell> {
    let told = outcome
        .moments
        .iter()
        .filter(|it| it.told.is_some())
        .count();
    let untrue = (told > 0).then(|| 100.0 * outcome.untrue as f64 / told as f64);
    vec![
        name.into(),
        counted.name().into(),
        format!("2^{exponent}").into(),
        outcome.sent.into(),
        outcome.lost_percent().into(),
        outcome.most.into(),
        (100.0 * outcome.relative).into(),
        outcome.before.into(),
        untrue.into(),
        outcome.back_ms.into(),
        outcome.wrong.into(),
    ]
}

fn claims(figure: &mut Figure, counted: Counted, exponent: u32, outcome: &Outcome) {
    let of = format!("sync, {}, 2^{exponent}", counted.name());
    let told = outcome
        .moments
        .iter()
        .filter(|it| it.told.is_some())
        .count();
    figure.claim(
        outcome.lost == 0 && outcome.sent > 0,
        format!(
            "{of}: {} of {} updates lost (claimed: 0)",
            outcome.lost, outcome.sent
        ),
    );
    figure.claim(
        outcome.untrue == 0 && told > 0,
        format!(
            "{of}: {} of {told} bounds untrue (claimed: 0)",
            outcome.untrue
        ),
    );
    let back = outcome
        .back_ms
        .map_or("never".to_owned(), |ms| format!("after {ms} ms"));
    figure.claim(
        outcome.back_ms.is_some_and(|ms| ms <= BACK_MS),
        format!("{of}: the bound is as before {back} (claimed: {BACK_MS} ms)"),
    );
    figure.claim(
        outcome.wrong == 0,
        format!(
            "{of}: {} locations wrong when all is quiet (claimed: 0)",
            outcome.wrong
        ),
    );
}

/// Divergence over time, and what was told.
fn drawn(name: &str, outcome: &Outcome) -> Vec<Series> {
    let most = outcome.moments.iter();
    let most = most.map(|it| (it.ms as f64, it.divergence.most as f64));
    let told = outcome.moments.iter();
    let told = told.filter_map(|it| Some((it.ms as f64, it.told? as f64)));
    let mut series = vec![Series {
        name: name.to_owned(),
        points: most.collect(),
    }];
    if name == System::Sync.name() {
        series.push(Series {
            name: format!("{name}: told"),
            points: told.collect(),
        });
    }
    series
}

/// Fig. 10b and 10c: loss by rate, with thresholds that are fixed and that move.
fn by_rate(making: &Making<'_>, figure: &mut Figure) -> Result<(), EvalError> {
    let course = Course::of(making);
    let rates: &[f64] = if making.quick {
        &[1.0, 5.0]
    } else {
        &[1.0, 2.0, 3.0, 4.0, 5.0]
    };
    let systems = [
        ("sync", System::Sync, HONEST),
        ("ApproSync, t = 2", System::Printed, Control::Fixed(2)),
        ("ApproSync, t = 4", System::Printed, Control::Fixed(4)),
        ("ApproSync, s with headers", System::Printed, HONEST),
        (System::StarFlow.name(), System::StarFlow, HONEST),
    ];
    making
        .bar
        .inc_length((systems.len() * rates.len()) as u64 - 10);
    let mut table = Table::new(
        "rates",
        &[
            "system",
            "traffic (budgets)",
            "updates for a packet",
            "lost (%)",
            "t at the end",
        ],
    );
    let mut curves = Vec::new();
    for (name, system, control) in systems {
        let shape = Shape {
            system,
            counted: Counted::Packets,
            counters: Counters::Sources(1 << 16),
            entries: 1 << 16,
        };
        let compiled = shape.compile()?;
        let mut points = Vec::new();
        for rate in rates {
            let mut bed = Bed::new(setting(shape, 1 << 16, course.budget, control), &compiled)?;
            bed.pass(course.overload, rate * course.budget)?;
            let counts = bed.counts;
            let lost = 100.0 * counts.lost as f64 / counts.sent.max(1) as f64;
            let threshold = match system {
                System::StarFlow | System::Mirroring | System::Plain => Cell::None,
                System::Sync | System::Printed => bed.threshold().into(),
            };
            table.row(vec![
                name.into(),
                (*rate).into(),
                (counts.sent as f64 / counts.packets.max(1) as f64).into(),
                lost.into(),
                threshold,
            ]);
            points.push((*rate, lost));
            making.bar.inc(1);
        }
        curves.push(Series {
            name: name.to_owned(),
            points,
        });
    }
    let axes = Axes {
        x: "traffic (budgets)",
        y: "updates lost (%)",
        logarithmic: false,
    };
    figure.curves("rates", axes, &curves)?;
    figure.tables.push(table);
    Ok(())
}
