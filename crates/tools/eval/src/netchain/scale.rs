//! Fig. 9f: most throughput of spines and leaves, by the paper's model, checked in virtual time.

use super::Setting;
use super::spine_leaf::{Asked, Layers, Run};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::linear_fit;
use crate::table::{Cell, Table};

/// Packets per second of a switch of the paper.
const PAPER_RATE: f64 = 4e9;
/// Switches of the run in virtual time.
const CHECKED: usize = 6;

/// Fig. 9f.
pub(super) fn run(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let sizes: &[usize] = if setting.plan.quick {
        &[6, 12, 24]
    } else {
        &[6, 12, 24, 48, 72, 96]
    };
    let mut figure = Figure::new(
        "netchain-fig9f",
        "Most throughput of 6 to 96 switches in two layers",
        "grows linearly, of reads and of writes; of writes it is lower, as they pass more switches",
    );
    figure.differs(
        "as in the paper it is computed: switches of 4 billion packets/s, chains of three of all \
         switches with equal chance, clients at all leaves, the shortest ways. The layer that has \
         most to do stops it",
    );
    figure.differs(
        "besides the paper: the same network of 6 switches in virtual time, with the program and the \
         clients that ship, and switches that need 1 µs for a packet; its figure is scaled to the \
         paper's switches. It has promises of leases besides, and acknowledgements of each 16th write",
    );
    let mut table = Table::new(
        "throughput",
        &[
            "requests",
            "switches",
            "spines",
            "leaves",
            "packets at spines for each",
            "at leaves",
            "most (billion/s)",
            "in virtual time (billion/s)",
        ],
    );
    let mut series = Vec::new();
    setting.bar.set_length(2);
    for (name, asked) in [("reads", Asked::Reads), ("writes", Asked::Writes)] {
        setting.bar.set_message(format!("{}: {name}", figure.id));
        let mut points = Vec::new();
        for &switches in sizes {
            let layers = Layers::of(switches);
            let [spines, leaves] = layers.load(asked);
            let most = layers.throughput(asked, PAPER_RATE);
            let mut measured = Cell::None;
            if switches == CHECKED {
                let run = Run {
                    layers,
                    asked,
                    service_us: 1,
                    in_flight: 256,
                    measured_us: if setting.plan.quick { 5_000 } else { 100_000 },
                };
                let found = run.throughput()? * PAPER_RATE / 1e6;
                let ratio = found / most;
                let claim = format!(
                    "{name}: 6 switches in virtual time do {ratio:.3} of the model's (claimed: within \
                     10 %)"
                );
                setting
                    .plan
                    .claim(&mut figure, (0.9..=1.1).contains(&ratio), claim);
                measured = (found / 1e9).into();
            }
            table.row(vec![
                name.into(),
                (switches as u64).into(),
                (layers.spines as u64).into(),
                (layers.leaves as u64).into(),
                spines.into(),
                leaves.into(),
                (most / 1e9).into(),
                measured,
            ]);
            points.push((switches as f64, most / 1e9));
        }
        let fit = linear_fit(&points).map_or(0.0, |fit| fit.r_squared);
        figure.claim(
            fit >= 0.99,
            format!("{name}: linear with R² = {fit:.5} (claimed: 0.99)"),
        );
        series.push(Series {
            name: name.to_owned(),
            points,
        });
        setting.bar.inc(1);
    }
    let axes = Axes {
        x: "switches",
        y: "billion requests/s",
        logarithmic: false,
    };
    figure.curves("throughput", axes, &series)?;
    figure.tables.push(table);
    Ok(figure)
}
