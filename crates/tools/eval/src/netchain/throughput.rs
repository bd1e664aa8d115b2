//! Fig. 9a to 9d: throughput by bytes of a value, number of keys, share of writes, and share of
//! packets lost.

use super::client::System;
use super::lab::{Network, Sizes};
use super::order::{Order, Told};
use super::{Setting, lab_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::Table;
use stateplane_lab::{LabError, interrupt};
use stateplane_peers::Load;
use std::collections::BTreeMap;

/// Sizes of the switches' program: twice as many slots as keys in Fig. 9b.
pub(super) const SIZES: Sizes = Sizes {
    groups: 64,
    slots: 2048,
    lanes: 1024,
};
/// Requests in flight.
const IN_FLIGHT: usize = 256;

/// The paper's default: 64 bytes, 20,000 keys, 1 % writes.
pub(super) fn usual(setting: &Setting<'_>) -> Load {
    let quick = setting.plan.quick;
    Load {
        value: 64,
        keys: if quick { 500 } else { 20_000 },
        writes_ppm: 10_000,
        in_flight: if quick { 32 } else { IN_FLIGHT },
        duration_ms: if quick { 100 } else { 1000 },
    }
}

/// A setting of an experiment.
struct Point {
    /// Its place on the x axis.
    x: f64,
    load: Load,
    /// Share of packets lost.
    loss: f64,
}

/// An experiment.
struct Experiment {
    figure: Figure,
    axes: Axes<'static>,
    points: Vec<Point>,
}

/// Requests per second of the service that is evaluated, by place on the x axis; and of all.
struct Rates(BTreeMap<System, Vec<(f64, f64)>>);

impl Rates {
    fn at(&self, system: System, x: f64) -> Option<f64> {
        let of = self.0.get(&system)?;
        of.iter().find(|(at, _)| *at == x).map(|(_, rate)| *rate)
    }

    /// The least rate divided by the greatest, of places up to `last`.
    fn evenness(&self, system: System, last: f64) -> f64 {
        let of = self.0.get(&system).map_or(&[][..], Vec::as_slice);
        let of = of.iter().filter(|(x, _)| *x <= last).map(|(_, rate)| *rate);
        let least = of.clone().fold(f64::INFINITY, f64::min);
        let most = of.fold(0.0, f64::max);
        least / most
    }
}

/// Fig. 9a.
pub(super) fn by_value(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let values: &[usize] = if setting.plan.quick {
        &[0, 128]
    } else {
        &[0, 16, 32, 64, 96, 128, 256, 512, 1024]
    };
    let usual = usual(setting);
    let mut figure = Figure::new(
        "netchain-fig9a",
        "Throughput by bytes of a value",
        "82 million/s of four servers up to 128 bytes, ZooKeeper 140,000/s: neither depends on it",
    );
    figure.differs(
        "besides the paper: values of 256 to 1,024 bytes; the paper's prototype takes up to 128",
    );
    let points = values.iter().map(|value| Point {
        x: *value as f64,
        load: Load {
            value: *value,
            ..usual
        },
        loss: 0.0,
    });
    let experiment = Experiment {
        figure,
        axes: axes("value (bytes)", false),
        points: points.collect(),
    };
    let (mut figure, rates) = experiment.run(setting)?;
    even(setting, &mut figure, &rates, 128.0, "0 to 128 bytes");
    Ok(figure)
}

/// Fig. 9b.
pub(super) fn by_keys(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let keys: &[u64] = if setting.plan.quick {
        &[500, 1000]
    } else {
        &[1_000, 4_000, 16_000, 64_000]
    };
    let usual = usual(setting);
    let figure = Figure::new(
        "netchain-fig9b",
        "Throughput by number of keys",
        "82 million/s of four servers, ZooKeeper 140,000/s: neither depends on it",
    );
    let points = keys.iter().map(|keys| Point {
        x: *keys as f64,
        load: Load {
            keys: *keys,
            ..usual
        },
        loss: 0.0,
    });
    let experiment = Experiment {
        figure,
        axes: axes("keys", true),
        points: points.collect(),
    };
    let (mut figure, rates) = experiment.run(setting)?;
    even(
        setting,
        &mut figure,
        &rates,
        64_000.0,
        "1,000 to 64,000 keys",
    );
    Ok(figure)
}

/// Fig. 9c.
pub(super) fn by_writes(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let percents: &[u32] = if setting.plan.quick {
        &[0, 100]
    } else {
        &[0, 1, 20, 40, 60, 80, 100]
    };
    let usual = usual(setting);
    let figure = Figure::new(
        "netchain-fig9c",
        "Throughput by share of writes",
        "82 million/s of four servers at any; ZooKeeper 230,000/s without writes, 140,000/s at \
         1 %, 27,000/s at 100 %",
    );
    let points = percents.iter().map(|percent| Point {
        x: f64::from(*percent),
        load: Load {
            writes_ppm: percent * 10_000,
            ..usual
        },
        loss: 0.0,
    });
    let experiment = Experiment {
        figure,
        axes: axes("writes (%)", false),
        points: points.collect(),
    };
    let (mut figure, rates) = experiment.run(setting)?;
    for (system, at, times) in [
        (System::Etcd, 100.0, 15.0),
        (System::EtcdMemory, 100.0, 10.0),
        (System::Redis, 100.0, 2.0),
        (System::Etcd, 0.0, 15.0),
    ] {
        let ours = rates.at(System::Stateplane, at);
        let (Some(ours), Some(theirs)) = (ours, rates.at(system, at)) else {
            continue;
        };
        let ratio = ours / theirs;
        let name = system.name();
        let claim = format!("{at} % writes: {ratio:.1} times {name} (claimed: {times})");
        setting.plan.claim(&mut figure, ratio >= times, claim);
    }
    Ok(figure)
}

/// Fig. 9d.
pub(super) fn by_loss(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let percents: &[f64] = if setting.plan.quick {
        &[0.0, 10.0]
    } else {
        &[0.0, 0.001, 0.01, 0.1, 1.0, 10.0]
    };
    let usual = usual(setting);
    let mut figure = Figure::new(
        "netchain-fig9d",
        "Throughput by share of packets lost",
        "82 million/s of four servers up to 1 %, 48 million/s at 10 %; ZooKeeper 50,000/s at 1 %, \
         3,000/s at 10 %",
    );
    figure.differs(
        "packets are lost on their way to each switch and to the client; of services of others, \
         on the loopback interface",
    );
    let points = percents.iter().map(|percent| Point {
        x: *percent,
        load: usual,
        loss: percent / 100.0,
    });
    let experiment = Experiment {
        figure,
        axes: axes("packets lost (%)", true),
        points: points.collect(),
    };
    let (mut figure, rates) = experiment.run(setting)?;
    let whole = rates.at(System::Stateplane, 0.0);
    for (percent, share) in [(1.0, 0.9), (10.0, 0.4)] {
        let (Some(whole), Some(rate)) = (whole, rates.at(System::Stateplane, percent)) else {
            continue;
        };
        let kept = rate / whole;
        let claim = format!("{percent} % lost: {kept:.3} of the throughput (claimed: {share})");
        setting.plan.claim(&mut figure, kept >= share, claim);
    }
    Ok(figure)
}

fn axes(x: &'static str, logarithmic: bool) -> Axes<'static> {
    Axes {
        x,
        y: "requests/s",
        logarithmic,
    }
}

fn even(setting: &Setting<'_>, figure: &mut Figure, rates: &Rates, last: f64, over: &str) {
    let evenness = rates.evenness(System::Stateplane, last);
    let claim =
        format!("{over}: the lowest throughput is {evenness:.3} of the highest (claimed: 0.85)");
    setting.plan.claim(figure, evenness >= 0.85, claim);
}

impl Experiment {
    /// Measures all points: at each the services in turn, in the other order each time.
    fn run(self, setting: &Setting<'_>) -> Result<(Figure, Rates), EvalError> {
        let Experiment {
            mut figure,
            axes,
            points,
        } = self;
        let bar = setting.bar;
        bar.set_message(figure.id);
        let mut network = Network::up(setting.place, figure.id, SIZES, &[])?;
        let most = points.iter().map(|point| point.load.in_flight).max();
        network.serve(setting.systems, most.unwrap_or(1) as u16)?;
        lab_differs(&mut figure, &network);
        let systems = network.systems();
        bar.set_length((points.len() * setting.plan.runs * systems.len()) as u64);
        let mut table = Table::new(
            "throughput",
            &[
                axes.x,
                "service",
                "a write is kept in",
                "requests/s",
                "least of runs",
                "most of runs",
                "median (µs)",
                "99 % (µs)",
                "failed",
                "client (µs of processor)",
            ],
        );
        let mut rates = Rates(BTreeMap::new());
        let mut filled = None;
        for point in &points {
            let Load { keys, value, .. } = point.load;
            if filled != Some((keys, value)) {
                for system in &systems {
                    bar.set_message(format!("{}: {} is filled", figure.id, system.name()));
                    network.of(*system)?.ask(&Order::Fill { keys, value })?;
                }
                filled = Some((keys, value));
            }
            if point.loss > 0.0 {
                network.lose(point.loss)?;
            }
            let mut told: BTreeMap<System, Vec<Told>> = BTreeMap::new();
            for run in 0..setting.plan.runs {
                let mut turn = systems.clone();
                if run % 2 == 1 {
                    turn.reverse();
                }
                for system in turn {
                    if interrupt::requested() {
                        return Err(LabError::Interrupted.into());
                    }
                    bar.set_message(format!("{}: {} at {}", figure.id, system.name(), point.x));
                    let answer = network.of(system)?.ask(&Order::Load(point.load))?;
                    told.entry(system).or_default().push(answer);
                    bar.inc(1);
                }
            }
            if point.loss > 0.0 {
                network.lose(0.0)?;
            }
            for (system, runs) in &told {
                let rate = row(&mut table, point.x, *system, runs);
                rates.0.entry(*system).or_default().push((point.x, rate));
            }
        }
        network.down()?;
        let series: Vec<Series> = rates
            .0
            .iter()
            .map(|(system, points)| Series {
                name: system.name().to_owned(),
                points: points.clone(),
            })
            .collect();
        figure.curves("throughput", axes, &series)?;
        figure.tables.push(table);
        Ok((figure, rates))
    }
}

/// Adds the runs of one service; gives their median rate.
fn row(table: &mut Table, x: f64, system: System, runs: &[Told]) -> f64 {
    let of = |value: fn(&Told) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
    let rates = of(Told::per_second);
    let rate = median(&rates).unwrap_or(0.0);
    table.row(vec![
        x.into(),
        system.name().into(),
        system.kept().into(),
        rate.round().into(),
        rates
            .iter()
            .copied()
            .reduce(f64::min)
            .map(f64::round)
            .into(),
        rates
            .iter()
            .copied()
            .reduce(f64::max)
            .map(f64::round)
            .into(),
        median(&of(|told| told.within_us[0])).into(),
        median(&of(|told| told.within_us[1])).into(),
        runs.iter().map(|told| told.failed).sum::<u64>().into(),
        median(&of(Told::processor_us)).into(),
    ]);
    rate
}
