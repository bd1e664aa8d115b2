//! Fig. 11: transactions that hold ten locks, by contention.

use super::client::System;
use super::lab::Network;
use super::order::{Order, Told};
use super::throughput::SIZES;
use super::{Setting, lab_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::Table;
use stateplane_lab::{LabError, interrupt};
use stateplane_peers::Contest;
use std::collections::BTreeMap;

/// Items that are not hot: so many that nearly none is held twice.
const COLD: u64 = 1_000_000;

/// A contestant that runs transactions: a service, and whether it asks for all ten locks at once.
type Contestant = (System, bool);

fn name((system, together): Contestant) -> String {
    if together {
        format!("{}, ten locks in one transaction", system.name())
    } else {
        system.name().to_owned()
    }
}

/// Fig. 11.
pub(super) fn run(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let quick = setting.plan.quick;
    let clients: &[usize] = if quick { &[4] } else { &[1, 10, 100] };
    let hot: &[u64] = if quick {
        &[100, 1]
    } else {
        &[1000, 100, 10, 1]
    };
    let mut figure = Figure::new(
        "netchain-fig11",
        "Transactions of ten locks, by contention",
        "orders of magnitude more than with ZooKeeper; 100 clients do more than 1 at contention \
         0.001, and a little less at 1",
    );
    figure.differs(
        "one lock algorithm for all: the hot item's lock first, then the other nine at once; who is \
         refused gives back what it has, and pauses 50 µs to 10 ms. ZooKeeper's locks are ephemeral \
         nodes, etcd's records with a lease that a transaction makes if there is none",
    );
    figure.differs("besides the paper: etcd that takes and gives back all ten in one transaction");
    let mut network = Network::up(setting.place, figure.id, SIZES, &[])?;
    let wanted: Vec<System> = setting.systems.iter().copied().filter(has_locks).collect();
    let most = clients.last().copied().unwrap_or(1);
    network.serve(&wanted, most as u16)?;
    lab_differs(&mut figure, &network);
    let mut contestants: Vec<Contestant> = Vec::new();
    for system in network.systems() {
        contestants.push((system, false));
        if matches!(system, System::Etcd | System::EtcdMemory) {
            contestants.push((system, true));
        }
    }
    let mut table = Table::new(
        "transactions",
        &[
            "clients",
            "contention index",
            "service",
            "a lock is kept in",
            "transactions/s",
            "median (ms)",
            "99 % (ms)",
            "locks refused for each",
            "failed",
        ],
    );
    let bar = setting.bar;
    let measurements = clients.len() * hot.len() * setting.plan.runs * contestants.len();
    bar.set_length(measurements as u64);
    let mut rates: BTreeMap<(usize, u64), Vec<(Contestant, f64)>> = BTreeMap::new();
    let mut curves: BTreeMap<(usize, Contestant), Vec<(f64, f64)>> = BTreeMap::new();
    for &clients in clients {
        for &hot in hot {
            let mut told: BTreeMap<Contestant, Vec<Told>> = BTreeMap::new();
            for run in 0..setting.plan.runs {
                let mut turn = contestants.clone();
                if run % 2 == 1 {
                    turn.reverse();
                }
                for contestant in turn {
                    if interrupt::requested() {
                        return Err(LabError::Interrupted.into());
                    }
                    bar.set_message(format!("{}: {}", figure.id, name(contestant)));
                    let contest = Contest {
                        clients,
                        hot,
                        cold: COLD,
                        duration_ms: if quick { 500 } else { 2000 },
                        together: contestant.1,
                    };
                    let answer = network.of(contestant.0)?;
                    let answer = answer.ask(&Order::Transactions(contest))?;
                    told.entry(contestant).or_default().push(answer);
                    bar.inc(1);
                }
            }
            for (contestant, runs) in told {
                let rate = row(&mut table, clients, hot, contestant, &runs);
                rates
                    .entry((clients, hot))
                    .or_default()
                    .push((contestant, rate));
                let curve = curves.entry((clients, contestant)).or_default();
                curve.push((1.0 / hot as f64, rate));
            }
        }
    }
    network.down()?;
    for &clients in clients {
        let series: Vec<Series> = curves
            .iter()
            .filter(|((of, _), _)| *of == clients)
            .map(|((_, contestant), points)| Series {
                name: name(*contestant),
                points: points.clone(),
            })
            .collect();
        let axes = Axes {
            x: "contention index",
            y: "transactions/s",
            logarithmic: true,
        };
        figure.curves(&format!("clients-{clients}"), axes, &series)?;
    }
    claim(setting, &mut figure, &rates);
    figure.tables.push(table);
    Ok(figure)
}

fn has_locks(system: &System) -> bool {
    *system != System::Redis
}

fn row(table: &mut Table, clients: usize, hot: u64, contestant: Contestant, runs: &[Told]) -> f64 {
    let of = |value: fn(&Told) -> f64| runs.iter().map(value).collect::<Vec<f64>>();
    let rate = median(&of(Told::per_second)).unwrap_or(0.0);
    let refused = of(|told| told.refused as f64 / told.done.max(1) as f64);
    table.row(vec![
        (clients as u64).into(),
        (1.0 / hot as f64).into(),
        name(contestant).into(),
        contestant.0.kept().into(),
        rate.round().into(),
        median(&of(|told| told.within_us[0] / 1000.0)).into(),
        median(&of(|told| told.within_us[1] / 1000.0)).into(),
        median(&refused).into(),
        runs.iter().map(|told| told.failed).sum::<u64>().into(),
    ]);
    rate
}

/// Claims about most clients: ten times the others' at contention 0.001, and not less at 1.
fn claim(
    setting: &Setting<'_>,
    figure: &mut Figure,
    rates: &BTreeMap<(usize, u64), Vec<(Contestant, f64)>>,
) {
    let most = rates.keys().map(|(clients, _)| *clients).max();
    for ((clients, hot), of) in rates {
        let times = match hot {
            1000 => 10.0,
            1 => 1.0,
            _ => continue,
        };
        let ours = of.iter().find(|(of, _)| of.0 == System::Stateplane);
        let (true, Some((_, ours))) = (Some(*clients) == most, ours) else {
            continue;
        };
        for (contestant, theirs) in of.iter().filter(|(of, _)| of.0 != System::Stateplane) {
            let whose = name(*contestant);
            let at = format!("{clients} clients, contention {}", 1.0 / *hot as f64);
            if *theirs == 0.0 {
                let limit = format!("{at}: {whose} ended no transaction; there is no ratio");
                figure.limits.push(limit);
                continue;
            }
            let ratio = ours / theirs;
            let claim = format!("{at}: {ratio:.1} times {whose} (claimed: {times})");
            if contestant.1 {
                // That is another algorithm than the paper's.
                figure.limits.push(claim);
            } else {
                setting.plan.claim(figure, ratio >= times, claim);
            }
        }
    }
}
