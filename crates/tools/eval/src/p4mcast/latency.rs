//! Fig. 4: throughput by bytes of a frame, and latency by throughput.

use super::bed::Messages;
use super::system::{Shape, System};
use super::turns::{Outcomes, take};
use super::{SMALL, Setting, all_differ};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::table::Table;

/// Rates as shares of the throughput.
const SHARES: [f64; 4] = [0.1, 0.25, 0.5, 0.75];

/// A point of the figure: what is sent, and the share of the throughput at which; `None` for the
/// throughput.
#[derive(Clone, Copy, PartialEq)]
struct Point {
    groups: u8,
    frame: usize,
    share: Option<f64>,
}

/// Fig. 4.
pub(super) fn run(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let quick = setting.plan.quick;
    let frames: &[usize] = if quick {
        &[SMALL]
    } else {
        &[SMALL, 300, 600, 900, 1200, 1500]
    };
    let shares: &[f64] = if quick { &SHARES[1..2] } else { &SHARES };
    let mut figure = Figure::new(
        "p4mcast-fig4",
        "Latency and throughput by bytes of a frame",
        "10 times PrimCast's throughput on Tofino switches, with latencies of tens of µs: 12 µs less with \
         1500 bytes",
    );
    let mut points = Vec::new();
    for groups in [1, 2] {
        for &frame in frames {
            let shares = shares.iter().map(|share| Some(*share));
            let shares = std::iter::once(None).chain(shares);
            points.extend(shares.map(|share| Point {
                groups,
                frame,
                share,
            }));
        }
    }
    let turns = points.len() * setting.plan.runs * setting.systems.len();
    setting.bar.set_length(turns as u64);
    let mut outcomes = Outcomes::default();
    for groups in [1, 2] {
        let shape = Shape { groups, members: 3 };
        take(setting, &mut figure, setting.systems, shape, |turn| {
            let mut throughput = 0.0;
            for (at, point) in points.iter().enumerate() {
                if point.groups != groups {
                    continue;
                }
                let messages = Messages {
                    frame: point.frame,
                    rate: point.share.map(|share| share * throughput),
                    several_permille: 1000,
                };
                let measured = turn.load(&messages)?;
                if point.share.is_none() {
                    throughput = measured.per_second.max(1.0);
                }
                outcomes.add(at, turn.system(), measured);
            }
            Ok(())
        })?;
    }
    all_differ(&mut figure);
    figure.differs(
        "open loop: latency counts from the time at which a message was to be sent to its delivery in \
         order, of all receivers; rates are shares of each system's own throughput in the same run",
    );
    show(setting, &mut figure, &points, &outcomes)?;
    claim(setting, &mut figure, &points, &outcomes);
    outcomes.claim_order(setting, &mut figure);
    Ok(figure)
}

fn show(
    setting: &Setting<'_>,
    figure: &mut Figure,
    points: &[Point],
    outcomes: &Outcomes,
) -> Result<(), EvalError> {
    let mut rates = Table::new(
        "throughput",
        &[
            "groups",
            "frame (bytes)",
            "system",
            "messages/s",
            "least of runs",
            "most of runs",
            "median (µs)",
            "99 % (µs)",
            "senders (µs of processor)",
            "receivers (µs of processor)",
        ],
    );
    let mut latencies = Table::new(
        "latency",
        &[
            "groups",
            "frame (bytes)",
            "system",
            "share of throughput",
            "messages/s",
            "median (µs)",
            "99 % (µs)",
        ],
    );
    for (at, point) in points.iter().enumerate() {
        for &system in setting.systems {
            let runs = outcomes.of(at, system);
            if runs.is_empty() {
                continue;
            }
            let rate = outcomes.rate(at, system).map(f64::round);
            let [median, late] = [0, 1].map(|which| outcomes.within(at, system, which));
            let front = [
                u64::from(point.groups).into(),
                (point.frame as u64).into(),
                system.name().into(),
            ];
            let of_runs = |pick: fn(f64, f64) -> f64| {
                let rates = runs.iter().map(|measured| measured.per_second);
                rates.reduce(pick).map(f64::round)
            };
            let hosts = |which: usize| {
                let all: Vec<f64> = runs.iter().map(|run| run.hosts_us[which]).collect();
                crate::statistics::median(&all)
            };
            match point.share {
                None => rates.row(
                    front
                        .into_iter()
                        .chain([
                            rate.into(),
                            of_runs(f64::min).into(),
                            of_runs(f64::max).into(),
                            median.into(),
                            late.into(),
                            hosts(0).into(),
                            hosts(1).into(),
                        ])
                        .collect(),
                ),
                Some(share) => latencies.row(
                    front
                        .into_iter()
                        .chain([share.into(), rate.into(), median.into(), late.into()])
                        .collect(),
                ),
            }
        }
    }
    figure.tables.extend([rates, latencies]);
    for groups in [1, 2] {
        let of = |chosen: &dyn Fn(&Point) -> bool,
                  x: &dyn Fn(usize, System) -> f64,
                  y: &dyn Fn(usize, System) -> Option<f64>| {
            let systems = setting.systems.iter();
            let series = systems.map(|system| Series {
                name: system.name().to_owned(),
                points: (0..points.len())
                    .filter(|at| points[*at].groups == groups && chosen(&points[*at]))
                    .filter_map(|at| Some((x(at, *system), y(at, *system)?)))
                    .collect(),
            });
            series.collect::<Vec<_>>()
        };
        let throughput = of(
            &|point| point.share.is_none(),
            &|at, _| points[at].frame as f64,
            &|at, system| outcomes.rate(at, system),
        );
        let axes = Axes {
            x: "frame (bytes)",
            y: "messages/s",
            logarithmic: false,
        };
        figure.curves(&format!("throughput-{groups}"), axes, &throughput)?;
        let latency = of(
            &|point| point.share.is_some() && point.frame == SMALL,
            &|at, system| outcomes.rate(at, system).unwrap_or(0.0),
            &|at, system| outcomes.within(at, system, 0),
        );
        let axes = Axes {
            x: "messages/s",
            y: "median latency (µs)",
            logarithmic: true,
        };
        figure.curves(&format!("latency-{groups}"), axes, &latency)?;
    }
    Ok(())
}

/// Claims 4 and 5 of the design.
fn claim(setting: &Setting<'_>, figure: &mut Figure, points: &[Point], outcomes: &Outcomes) {
    let place = |groups: u8, share: Option<f64>| {
        let wanted = Point {
            groups,
            frame: SMALL,
            share,
        };
        points.iter().position(|point| *point == wanted)
    };
    let rate = |system| outcomes.rate(place(1, None)?, system);
    for (other, times) in [
        (System::Etcd, 6.0),
        (System::Primcast, 1.0),
        (System::Limit, 0.25),
    ] {
        let (Some(own), Some(theirs)) = (rate(System::Stateplane), rate(other)) else {
            continue;
        };
        let (ratio, name) = (own / theirs, other.name());
        let claim = format!(
            "{SMALL} bytes, one group: {ratio:.2} times the throughput of {name} (claimed: {times})"
        );
        setting.plan.claim(figure, ratio >= times, claim);
    }
    let median = |groups, system| outcomes.within(place(groups, Some(SHARES[0]))?, system, 0);
    for (groups, other, times) in [
        (1, System::Etcd, 0.2),
        (1, System::Primcast, 1.3),
        (1, System::Limit, 5.0),
        (2, System::Limit, 6.5),
    ] {
        let own = median(groups, System::Stateplane);
        let (Some(own), Some(theirs)) = (own, median(groups, other)) else {
            continue;
        };
        let (ratio, name) = (own / theirs, other.name());
        let claim = format!(
            "{SMALL} bytes, groups: {groups}, a tenth of the throughput: {ratio:.2} times the median \
             latency of {name} (claimed: at most {times})"
        );
        setting.plan.claim(figure, ratio <= times, claim);
    }
}
