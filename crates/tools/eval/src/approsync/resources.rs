//! Resources that sync adds to a program: Exp#1.

use super::Making;
use super::accuracy::HONEST;
use super::bed::Bed;
use super::overload::setting;
use super::programs::{Counted, Counters, Shape, System};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::Series;
use crate::table::Table;

/// Programs that are measured, each with and without a view.
const PROGRAMS: [(&str, Counters); 2] = [
    ("packet counter", Counters::Sources(1 << 16)),
    ("count-min, three rows", Counters::Sketch(1 << 16)),
];

/// Packets each µs whose updates the link carries.
const BUDGET: f64 = 5.0;

/// Exp#1.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp1",
        "Memory and code that sync adds to a program",
        "9.2 % of the switch's SRAM, 15 % of its meter ALUs and 4 % of its stateful ALUs",
    );
    figure.differs(
        "memory is that of registers, code is machine code with its tables' lookups: the paper gives \
         shares of a Tofino",
    );
    let mut table = Table::new(
        "resources",
        &[
            "program",
            "registers (KiB)",
            "code (KiB)",
            "in view: registers (KiB)",
            "in view: code (KiB)",
            "registers (times)",
        ],
    );
    let mut bars = [const { Vec::new() }; 2];
    making.bar.set_length(PROGRAMS.len() as u64);
    for (name, counters) in PROGRAMS {
        let of = |system| {
            let shape = Shape {
                system,
                counted: Counted::Packets,
                counters,
                entries: 1,
            };
            let compiled = shape.compile()?;
            let mut bed = Bed::new(setting(shape, 1 << 16, BUDGET, HONEST), &compiled)?;
            let (registers, code) = bed.resources();
            Ok::<_, EvalError>([registers, code].map(|bytes| bytes as f64 / 1024.0))
        };
        let [plain, seen] = [of(System::Plain)?, of(System::Sync)?];
        table.row(vec![
            name.into(),
            plain[0].into(),
            plain[1].into(),
            seen[0].into(),
            seen[1].into(),
            (seen[0] / plain[0]).into(),
        ]);
        for (bars, side) in bars.iter_mut().zip([plain, seen]) {
            bars.push((0.0, side[0]));
        }
        making.bar.inc(1);
    }
    let [plain, seen] = bars;
    let series = [("plain", plain), ("in view", seen)].map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    let groups = PROGRAMS.map(|(name, _)| name.to_owned());
    figure.bars("registers", "KiB of registers", &groups, &series)?;
    figure.tables.push(table);
    Ok(figure)
}
