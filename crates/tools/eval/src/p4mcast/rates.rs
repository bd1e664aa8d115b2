//! Throughput by share of messages to two groups, by members of a group, and by share of packets lost.

use super::bed::Messages;
use super::system::{Shape, System};
use super::turns::{Outcomes, take};
use super::{SMALL, Setting, all_differ};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::Table;

/// A setting of an experiment.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// Its place on the x axis.
    x: f64,
    shape: Shape,
    /// Messages to all groups, in thousandths.
    several_permille: u32,
    /// Share of packets lost.
    loss: f64,
}

const ONE: Shape = Shape {
    groups: 1,
    members: 3,
};
const TWO: Shape = Shape {
    groups: 2,
    members: 3,
};

/// Messages to two groups.
pub(super) fn by_share(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let percents: &[u32] = if setting.plan.quick {
        &[0, 50]
    } else {
        &[0, 10, 25, 50, 100]
    };
    let figure = Figure::new(
        "p4mcast-shares",
        "Throughput by share of messages to two groups",
        "no figure of its own",
    );
    let points = percents.iter().map(|percent| Point {
        x: f64::from(*percent),
        shape: TWO,
        several_permille: percent * 10,
        loss: 0.0,
    });
    let points: Vec<Point> = points.collect();
    let (mut figure, outcomes) = run(
        setting,
        figure,
        setting.systems,
        "to two groups (%)",
        &points,
    )?;
    figure.differs("a message to two groups is one; those to one group are to either by chance");
    kept(
        setting,
        &mut figure,
        &points,
        &outcomes,
        50.0,
        "to two groups",
    );
    Ok(figure)
}

/// Groups of several sizes.
pub(super) fn by_members(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let figure = Figure::new(
        "p4mcast-members",
        "Throughput by members of a group",
        "groups of 2f + 1 switches; no figure of its own",
    );
    let points = [3, 5].map(|members| Point {
        x: f64::from(members),
        shape: Shape { groups: 1, members },
        several_permille: 0,
        loss: 0.0,
    });
    let (mut figure, _) = run(setting, figure, setting.systems, "members", &points)?;
    figure.differs("three receivers, whatever the members of the group");
    Ok(figure)
}

/// Packets lost.
pub(super) fn by_loss(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let percents: &[f64] = if setting.plan.quick {
        &[0.0, 1.0]
    } else {
        &[0.0, 0.5, 1.0, 2.0]
    };
    let mut figure = Figure::new(
        "p4mcast-loss",
        "Throughput by share of packets lost",
        "loss is left to future work",
    );
    for system in setting.systems.iter().filter(|of| !of.takes_loss()) {
        let name = system.name();
        figure
            .missing
            .push(format!("{name}: it recovers nothing that is lost"));
    }
    let systems: Vec<System> = setting
        .systems
        .iter()
        .copied()
        .filter(|of| of.takes_loss())
        .collect();
    let points = percents.iter().map(|percent| Point {
        x: *percent,
        shape: ONE,
        several_permille: 0,
        loss: percent / 100.0,
    });
    let points: Vec<Point> = points.collect();
    let (mut figure, outcomes) = run(setting, figure, &systems, "packets lost (%)", &points)?;
    figure.differs("packets are lost in the bridge, on each way from one node to another");
    kept(
        setting,
        &mut figure,
        &points,
        &outcomes,
        1.0,
        "packets lost",
    );
    Ok(figure)
}

/// The throughput at `percent` is at least half of that at 0.
fn kept(
    setting: &Setting<'_>,
    figure: &mut Figure,
    points: &[Point],
    outcomes: &Outcomes,
    percent: f64,
    what: &str,
) {
    let rate = |x: f64| {
        let at = points.iter().position(|point| point.x == x)?;
        outcomes.rate(at, System::Stateplane)
    };
    if let (Some(whole), Some(rate)) = (rate(0.0), rate(percent)) {
        let kept = rate / whole;
        let claim = format!("{percent} % {what}: {kept:.2} of the throughput (claimed: 0.5)");
        setting.plan.claim(figure, kept >= 0.5, claim);
    }
}

/// Measures all points in turns.
fn run(
    setting: &Setting<'_>,
    mut figure: Figure,
    systems: &[System],
    x: &'static str,
    points: &[Point],
) -> Result<(Figure, Outcomes), EvalError> {
    let loads = points.len() * setting.plan.runs * systems.len();
    setting.bar.set_length(loads as u64);
    let mut outcomes = Outcomes::default();
    let mut shapes: Vec<Shape> = points.iter().map(|point| point.shape).collect();
    shapes.dedup();
    for shape in shapes {
        take(setting, &mut figure, systems, shape, |turn| {
            for (at, point) in points.iter().enumerate() {
                if point.shape != shape {
                    continue;
                }
                if point.loss > 0.0 {
                    turn.bed().lose(point.loss)?;
                }
                let messages = Messages {
                    frame: SMALL,
                    rate: None,
                    several_permille: point.several_permille,
                };
                let measured = turn.load(&messages)?;
                if point.loss > 0.0 {
                    turn.bed().lose(0.0)?;
                }
                outcomes.add(at, turn.system(), measured);
            }
            Ok(())
        })?;
    }
    all_differ(&mut figure);
    let mut table = Table::new(
        "throughput",
        &[
            x,
            "system",
            "messages/s",
            "least of runs",
            "most of runs",
            "median (µs)",
            "99 % (µs)",
        ],
    );
    for (at, point) in points.iter().enumerate() {
        for &system in systems {
            let rates: Vec<f64> = outcomes
                .of(at, system)
                .iter()
                .map(|it| it.per_second)
                .collect();
            if rates.is_empty() {
                continue;
            }
            let of_runs = |pick: fn(f64, f64) -> f64| rates.iter().copied().reduce(pick);
            table.row(vec![
                point.x.into(),
                system.name().into(),
                median(&rates).map(f64::round).into(),
                of_runs(f64::min).map(f64::round).into(),
                of_runs(f64::max).map(f64::round).into(),
                outcomes.within(at, system, 0).into(),
                outcomes.within(at, system, 1).into(),
            ]);
        }
    }
    let series = systems.iter().map(|system| Series {
        name: system.name().to_owned(),
        points: (0..points.len())
            .filter_map(|at| Some((points[at].x, outcomes.rate(at, *system)?)))
            .collect(),
    });
    let series: Vec<Series> = series.collect();
    let axes = Axes {
        x,
        y: "messages/s",
        logarithmic: false,
    };
    figure.curves("throughput", axes, &series)?;
    figure.tables.push(table);
    outcomes.claim_order(setting, &mut figure);
    Ok((figure, outcomes))
}
