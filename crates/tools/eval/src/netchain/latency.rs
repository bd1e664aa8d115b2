//! Fig. 9e: latency by throughput, of reads and of writes.

use super::lab::Network;
use super::order::Order;
use super::throughput::{SIZES, usual};
use super::{Setting, lab_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::Table;
use stateplane_lab::{LabError, interrupt};
use stateplane_peers::Load;

/// Fig. 9e.
pub(super) fn run(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let in_flight: &[usize] = if setting.plan.quick {
        &[1, 16]
    } else {
        &[1, 2, 4, 8, 16, 32, 64, 128, 256]
    };
    let mut figure = Figure::new(
        "netchain-fig9e",
        "Latency by throughput",
        "9.7 µs, of reads and of writes, up to 82 million/s; ZooKeeper 170 µs for reads and 2350 µs \
         for writes at low throughput",
    );
    figure.differs("throughput grows by requests in flight, from 1 on");
    let mut network = Network::up(setting.place, figure.id, SIZES, &[])?;
    let most = in_flight.last().copied().unwrap_or(1);
    network.serve(setting.systems, most as u16)?;
    lab_differs(&mut figure, &network);
    let systems = network.systems();
    let usual = usual(setting);
    let (keys, value) = (usual.keys, usual.value);
    for system in &systems {
        network.of(*system)?.ask(&Order::Fill { keys, value })?;
    }
    let mut table = Table::new(
        "latency",
        &[
            "requests",
            "service",
            "a write is kept in",
            "in flight",
            "requests/s",
            "median (µs)",
            "99 % (µs)",
            "99.9 % (µs)",
        ],
    );
    let bar = setting.bar;
    let measurements = 2 * in_flight.len() * setting.plan.runs * systems.len();
    bar.set_length(measurements as u64);
    let mut alone = Vec::new();
    for (name, writes_ppm) in [("reads", 0), ("writes", 1_000_000)] {
        let mut series: Vec<Series> = systems
            .iter()
            .map(|system| Series {
                name: system.name().to_owned(),
                points: Vec::new(),
            })
            .collect();
        for &in_flight in in_flight {
            let load = Load {
                in_flight,
                writes_ppm,
                ..usual
            };
            let mut told = vec![Vec::new(); systems.len()];
            for run in 0..setting.plan.runs {
                for turn in 0..systems.len() {
                    if interrupt::requested() {
                        return Err(LabError::Interrupted.into());
                    }
                    let at = match run % 2 {
                        0 => turn,
                        _ => systems.len() - 1 - turn,
                    };
                    let system = systems[at];
                    bar.set_message(format!("{}: {name} of {}", figure.id, system.name()));
                    told[at].push(network.of(system)?.ask(&Order::Load(load))?);
                    bar.inc(1);
                }
            }
            for (at, system) in systems.iter().enumerate() {
                let runs = &told[at];
                let rates: Vec<f64> = runs.iter().map(|told| told.per_second()).collect();
                let rate = median(&rates).unwrap_or(0.0);
                let [p50, p99, p999] = [0, 1, 2].map(|share| {
                    let of: Vec<f64> = runs.iter().map(|told| told.within_us[share]).collect();
                    median(&of).unwrap_or(0.0)
                });
                table.row(vec![
                    name.into(),
                    system.name().into(),
                    system.kept().into(),
                    (in_flight as u64).into(),
                    rate.round().into(),
                    p50.into(),
                    p99.into(),
                    p999.into(),
                ]);
                series[at].points.push((rate, p50));
                if in_flight == 1 {
                    alone.push((name, *system, p50));
                }
            }
        }
        let axes = Axes {
            x: "requests/s",
            y: "median latency (µs)",
            logarithmic: true,
        };
        figure.curves(name, axes, &series)?;
    }
    network.down()?;
    claim(setting, &mut figure, &alone);
    figure.tables.push(table);
    Ok(figure)
}

type Alone = (&'static str, super::client::System, f64);

/// Claims about one request in flight.
fn claim(setting: &Setting<'_>, figure: &mut Figure, alone: &[Alone]) {
    use super::client::System;
    for (name, part) in [("writes", 8.0), ("reads", 5.0)] {
        let of = |system: System| {
            let mut found = alone.iter().filter(|of| of.0 == name && of.1 == system);
            found.next().map(|(_, _, us)| *us)
        };
        if let (Some(ours), Some(theirs)) = (of(System::Stateplane), of(System::Etcd)) {
            let claim = format!(
                "{name}, one in flight: median {ours:.0} µs, etcd's {theirs:.0} µs (claimed: 1/{part})"
            );
            setting.plan.claim(figure, ours * part <= theirs, claim);
        }
    }
}
