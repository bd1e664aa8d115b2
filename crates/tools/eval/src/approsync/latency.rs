//! Latency of reads by number of values: Fig. 1a and Exp#2.

use super::Making;
use super::served::{Served, Subject};
use super::turns::{Operation, medians, timed};
use super::viewed::refused;
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::table::{Cell, Table};
use std::time::Duration;

/// Exponents of the numbers of values.
const EXPONENTS: [u32; 5] = [8, 10, 12, 14, 16];
const QUICK_EXPONENTS: [u32; 2] = [8, 10];

/// Widths of values, in bits.
const WIDTHS: [u32; 2] = [16, 64];

/// Turns of reads.
const TURNS: usize = 31;
const QUICK_TURNS: usize = 5;

/// ns by which a switch's operating system gets a value of 64 bits over PCIe. ApproSync's §VII-B2: this
/// part alone takes tens of ms of 2^16 such values; here it is the least of that, 10 ms.
const PCIE_NS: f64 = 10e6 / 65_536.0;

/// The goals for 2^16 values of 64 bits: how many times as fast as P4Runtime reads are that have
/// what the engine has, a fresh mark, one moment, and no gRPC; and ms of fresh ones.
const GOALS: [f64; 4] = [20.0, 5.0, 3.0, 500.0];
const FRESH_MS: f64 = 10.0;

/// Medians in ns of a program.
#[derive(Clone, Copy, Debug)]
struct Latencies {
    present: f64,
    fresh: f64,
    within: f64,
    /// Of one moment.
    cut: f64,
    p4runtime: f64,
    /// When packets came no more, a fresh view was what P4Runtime read.
    agrees: bool,
}

/// Exp#2.
pub(super) fn reads(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp2",
        "Latency of reads by number of values",
        "below 10 ms for 2^16 values; over the switch's operating system above 1 s, of which PCIe takes \
         tens of ms (64 bits)",
    );
    differs(&mut figure);
    let mut table = Table::new(
        "reads",
        &[
            "bits",
            "values",
            "view (µs)",
            "fresh (µs)",
            "one moment (µs)",
            "in process (µs)",
            "P4Runtime (µs)",
        ],
    );
    let exponents = exponents(making);
    let sizes = (WIDTHS.len() * exponents.len()) as u64;
    making.bar.set_length(sizes);
    let mut agree = 0;
    for bits in WIDTHS {
        let mut curves = [const { Vec::new() }; 4];
        for exponent in exponents {
            making
                .bar
                .set_message(format!("exp2: 2^{exponent} values of {bits} bits"));
            let found = measure(1 << exponent, bits, making.quick)?;
            table.row(row(bits, *exponent, &found));
            let drawn = [found.present, found.fresh, found.cut, found.p4runtime];
            for (curve, ns) in curves.iter_mut().zip(drawn) {
                curve.push((f64::from(1_u32 << exponent), ns / 1e6));
            }
            agree += u64::from(found.agrees);
            if (bits, *exponent) == (64, 16) {
                claims(&mut figure, &found);
            }
            making.bar.inc(1);
        }
        let names = ["view", "fresh", "one moment", "P4Runtime"];
        let series = names.into_iter().zip(curves).map(|(name, points)| Series {
            name: name.to_owned(),
            points,
        });
        let series: Vec<Series> = series.collect();
        figure.curves(&format!("reads-{bits}-bits"), axes(), &series)?;
    }
    figure.claim(
        agree == sizes,
        format!(
            "when packets stop, view and P4Runtime read the same values in {agree} of {sizes} programs \
             (claimed: all)"
        ),
    );
    figure.tables.push(table);
    Ok(figure)
}

fn exponents(making: &Making<'_>) -> &'static [u32] {
    if making.quick {
        &QUICK_EXPONENTS
    } else {
        &EXPONENTS
    }
}

const fn axes() -> Axes<'static> {
    Axes {
        x: "values",
        y: "ms",
        logarithmic: true,
    }
}

/// Differences that figures of real time have in common.
fn differs(figure: &mut Figure) {
    figure.differs(
        "on real time and one machine: a thread is the switch, with 250,000 packets a second drawn by \
         Zipf's law, each counted at one location, and the budget of 1 Gb/s that is set unless a switch's \
         file says otherwise; engine and clients speak UDP and gRPC by the loopback interface",
    );
    figure.differs("medians of single operations that take turns, in one order and in the other");
}

/// Latencies of the view of so many counters, in interleaved turns.
fn measure(locations: u32, bits: u32, quick: bool) -> Result<Latencies, EvalError> {
    let served = Served::start(Subject::counters(locations, bits)?)?;
    let group = &served.plan().groups[0];
    let (register, group) = (&group.registers[0].register, &group.name);
    let (mut present, mut fresh) = (served.views()?, served.views()?);
    let (mut atomic, mut p4runtime) = (served.views()?, served.p4runtime()?);
    let turns = if quick { QUICK_TURNS } else { TURNS };
    let mut of_view = || timed(|| present.read(group));
    let mut of_fresh = || timed(|| fresh.read_fresh(group));
    let mut within = || {
        timed(|| {
            let sum = |values: &[u64]| values.iter().copied().fold(0, u64::wrapping_add);
            served.within(group, sum)
        })
    };
    let mut cut = || timed(|| atomic.cut(group));
    let mut over_p4runtime = || timed(|| p4runtime.read(register));
    let before = served.packets();
    let operations: [Operation<'_>; 5] = [
        &mut of_view,
        &mut of_fresh,
        &mut within,
        &mut cut,
        &mut over_p4runtime,
    ];
    let [present_ns, fresh_ns, within_ns, cut_ns, p4runtime_ns] = medians(turns, operations)?;
    if served.packets() == before {
        return Err(refused("packet counter", "no packets came meanwhile"));
    }
    served.pause(true);
    // A sweep finds what is not sent, and what it queued is sent in another.
    served.settle();
    served.settle();
    Ok(Latencies {
        present: present_ns,
        fresh: fresh_ns,
        within: within_ns,
        cut: cut_ns,
        p4runtime: p4runtime_ns,
        agrees: fresh.read_fresh(group)? == p4runtime.read(register)?,
    })
}

fn row(bits: u32, exponent: u32, found: &Latencies) -> Vec<Cell> {
    let us = |ns: f64| Cell::from(ns / 1e3);
    vec![
        u64::from(bits).into(),
        format!("2^{exponent}").into(),
        us(found.present),
        us(found.fresh),
        us(found.cut),
        us(found.within),
        us(found.p4runtime),
    ]
}

fn claims(figure: &mut Figure, found: &Latencies) {
    let [view, fresh, cut, within] = GOALS;
    let ratios = [
        ("the view", found.p4runtime / found.present, view),
        ("a fresh view", found.p4runtime / found.fresh, fresh),
        ("a view of one moment", found.p4runtime / found.cut, cut),
        ("a view in process", found.p4runtime / found.within, within),
    ];
    for (name, ratio, goal) in ratios {
        figure.claim(
            ratio >= goal,
            format!(
                "2^16 values of 64 bits: {name} is read {ratio:.1} times as fast as by P4Runtime \
                 (claimed: {goal})"
            ),
        );
    }
    let ms = found.fresh / 1e6;
    figure.claim(
        ms <= FRESH_MS,
        format!("2^16 values of 64 bits: a fresh view takes {ms:.1} ms (claimed: {FRESH_MS})"),
    );
}

/// Fig. 1a.
pub(super) fn os_path(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-fig1a",
        "Latency of the path over a switch's operating system, by number of values of 64 bits",
        "hundreds of ms by PCIe and as many by TCP; several seconds for 2^16 values",
    );
    differs(&mut figure);
    figure.differs(
        "the part by PCIe is a model, 153 ns a value: the least that ApproSync's Exp#2 says of it, tens of \
         ms for 2^16 values; the paper's Fig. 1a shows hundreds",
    );
    figure.differs(
        "the part by TCP is measured: this project's P4Runtime by gRPC, in the place of the interfaces \
         of the switch's vendor and ZeroMQ",
    );
    let mut table = Table::new(
        "latency",
        &[
            "values",
            "PCIe, a model (ms)",
            "P4Runtime (ms)",
            "both (ms)",
        ],
    );
    let exponents = exponents(making);
    making.bar.set_length(exponents.len() as u64);
    let mut curves = [const { Vec::new() }; 3];
    for exponent in exponents {
        making
            .bar
            .set_message(format!("fig1a: 2^{exponent} values"));
        let values = f64::from(1_u32 << exponent);
        let pcie = values * PCIE_NS / 1e6;
        let network = p4runtime(1 << exponent, making.quick)?.as_secs_f64() * 1e3;
        let parts = [pcie, network, pcie + network];
        let mut row = vec![Cell::from(format!("2^{exponent}"))];
        row.extend(parts.map(Cell::from));
        table.row(row);
        for (curve, ms) in curves.iter_mut().zip(parts) {
            curve.push((values, ms));
        }
        making.bar.inc(1);
    }
    let names = ["PCIe, a model", "P4Runtime", "both"];
    let series = names.into_iter().zip(curves).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    figure.curves("latency", axes(), &series.collect::<Vec<_>>())?;
    figure.tables.push(table);
    Ok(figure)
}

/// Median time in which P4Runtime reads so many counters of 64 bits.
fn p4runtime(locations: u32, quick: bool) -> Result<Duration, EvalError> {
    let served = Served::start(Subject::counters(locations, 64)?)?;
    let register = &served.plan().groups[0].registers[0].register;
    let mut client = served.p4runtime()?;
    let mut read = || timed(|| client.read(register));
    let turns = if quick { QUICK_TURNS } else { TURNS };
    let [ns] = medians(turns, [&mut read])?;
    Ok(Duration::from_nanos(ns as u64))
}
