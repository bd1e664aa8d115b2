//! Fig. 14: throughput and connections over a switch's failure and return, beside Linux's NAT
//! with keepalived and conntrackd.

use super::{Place, Plan};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::{Cell, Table};
use indicatif::ProgressBar;
use stateplane_lab::demo::{self, Kind, RunReport};
use stateplane_lab::scenario::{self, Fault, ScenarioReport};
use stateplane_lab::{Topology, require};
use std::collections::BTreeMap;

const FAULTS: [Fault; 3] = [Fault::LinkDown, Fault::Kill, Fault::Restart];
const SCENARIO: &str = "nat";
const TOOLS: [(&str, &str); 4] = [
    ("nft", "nftables"),
    ("conntrack", "conntrack"),
    ("conntrackd", "conntrackd"),
    ("keepalived", "keepalived"),
];

/// Fig. 14.
pub(super) fn run(place: &Place, plan: Plan, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig14",
        "TCP through a NAT while its switch fails and returns",
        "with RedPlane throughput recovers after 0.9 s at the failure and 1.0 s at the return \
         (lease period 1 s); without it the connection breaks",
    );
    figure.differs(
        "one machine: switches, stores, routers and hosts are processes in network namespaces",
    );
    figure.differs(
        "a stream of 20 Mb/s and 120 connections that check every byte, not one stream at line \
         rate",
    );
    figure.differs(
        "routers see a dead switch by their link's carrier at once, and routing tells the other \
         router of a lost link after 50 ms",
    );
    figure.differs(
        "besides the paper: a link that fails with its switch alive, and Linux's NAT with \
         keepalived (VRRP, one message each 0.3 s, so that a dead master is found after 0.9 to \
         1.2 s, about a lease period of the paper's) with and without conntrackd (FTFW)",
    );
    figure.differs(
        "a switch has what heads of chains promise it for 0.1 s (`term_ms`), not each flow a lease of \
         1 s",
    );
    let mut systems: Vec<(&str, Topology)> = vec![(
        "switches, replicated",
        Topology::load(place.lab.join("apps.toml"))?,
    )];
    match require(&TOOLS) {
        Ok(()) => {
            let synced = Topology::load(place.lab.join("linux/nat.toml"))?;
            let mut alone = synced.clone();
            let is_sync = |name: &str| name.starts_with("sync");
            alone.processes.retain(|process| !is_sync(&process.name));
            systems.push(("Linux, keepalived and conntrackd", synced));
            systems.push(("Linux, keepalived alone", alone));
        }
        Err(error) => figure
            .missing
            .push(format!("Linux, keepalived and conntrackd: {error}")),
    }
    bar.set_length((1 + plan.runs * systems.len()) as u64);
    timeline(&mut figure, place, plan, bar)?;
    let mut reports: BTreeMap<&str, Vec<ScenarioReport>> = BTreeMap::new();
    for _ in 0..plan.runs {
        for (number, (name, topology)) in systems.iter().enumerate() {
            bar.set_message(format!("fig14: {name}"));
            let options = scenario::Options {
                scenarios: vec![SCENARIO.to_owned()],
                faults: FAULTS.to_vec(),
                phase_ms: if plan.quick { 4000 } else { 6000 },
                flows: 1,
                interval_ms: 50,
                seed: 1,
                topology: topology.path.clone(),
                logs: place.logs.join(format!("fig14-{number}")),
                switch_workers: 1,
                json: false,
            };
            let found = scenario::run_in(topology, &options)?;
            reports.entry(name).or_default().extend(found);
            bar.inc(1);
        }
    }
    let names: Vec<&str> = systems.iter().map(|(name, _)| *name).collect();
    figure.tables.push(stalls(&names, &reports));
    if let Some(ours) = reports.get(names[0]) {
        let broken: u64 = ours.iter().map(broken_of).sum();
        let opened: u64 = ours.iter().map(opened_of).sum();
        figure.claim(
            broken == 0,
            format!("{broken} of {opened} connections broke through the replicated switches (claimed: 0)"),
        );
    }
    Ok(figure)
}

fn broken_of(report: &ScenarioReport) -> u64 {
    report
        .sessions
        .as_ref()
        .map_or(0, |sessions| sessions.broken)
}

fn opened_of(report: &ScenarioReport) -> u64 {
    report
        .sessions
        .as_ref()
        .map_or(0, |sessions| sessions.opened)
}

/// Throughput over time: the paper's own figure.
fn timeline(
    figure: &mut Figure,
    place: &Place,
    plan: Plan,
    bar: &ProgressBar,
) -> Result<(), EvalError> {
    bar.set_message("fig14: throughput over time");
    let runs = if plan.quick {
        vec![Kind::Protected]
    } else {
        Kind::ALL.to_vec()
    };
    let options = demo::Options {
        topology: place.lab.join("nat.toml"),
        output: place.logs.join("fig14-demo"),
        logs: place.logs.clone(),
        runs,
        seconds: if plan.quick { 18 } else { 38 },
        kill_at: if plan.quick { 7 } else { 12 },
        restart_at: if plan.quick { 11 } else { 24 },
        connections: 120,
        interval_ms: 95,
        new_per_second: 5.0,
        rate_mbps: Some(20),
        keys: false,
    };
    let report = demo::run(&options)?;
    bar.inc(1);
    let mut table = Table::new("throughput", &["run", "second", "Mb/s"]);
    let mut summary = Table::new(
        "demo",
        &[
            "run",
            "connections",
            "broken",
            "Mb/s before",
            "Mb/s during",
            "Mb/s after",
            "longest stall at the failure (ms)",
            "at the return (ms)",
        ],
    );
    let mut series = Vec::new();
    for run in &report.runs {
        for &(second, mbps) in &run.throughput_mbps {
            table.row(vec![run.name.name().into(), second.into(), mbps.into()]);
        }
        summary.row(summary_row(run));
        series.push(Series {
            name: run.name.name().to_owned(),
            points: run.throughput_mbps.clone(),
        });
    }
    let axes = Axes {
        x: "time (s)",
        y: "iperf3 throughput (Mb/s)",
        logarithmic: false,
    };
    figure.curves("throughput", axes, &series)?;
    for run in report.runs.iter().filter(|run| run.name == Kind::Protected) {
        figure.claim(
            run.broken == 0 && run.iperf_completed,
            format!(
                "of {} connections and the stream {} broke (claimed: 0)",
                run.opened, run.broken
            ),
        );
    }
    figure.tables.extend([summary, table]);
    Ok(())
}

fn summary_row(run: &RunReport) -> Vec<Cell> {
    let failed = |ms: u64| run.name.fails().then_some(ms);
    vec![
        run.name.name().into(),
        run.opened.into(),
        run.broken.into(),
        run.throughput_before_mbps.into(),
        run.throughput_during_mbps.into(),
        run.throughput_after_mbps.into(),
        failed(run.stall_failover_ms).into(),
        failed(run.stall_failback_ms).into(),
    ]
}

/// Stall times of each system at each fault, over all runs.
fn stalls(names: &[&str], reports: &BTreeMap<&str, Vec<ScenarioReport>>) -> Table {
    let mut table = Table::new(
        "faults",
        &[
            "system",
            "what happens",
            "TCP stall, median of runs (ms)",
            "longest (ms)",
            "connections",
            "broken",
            "for which reasons",
        ],
    );
    for name in names {
        let Some(of) = reports.get(name) else {
            continue;
        };
        let mut moves: Vec<(String, Vec<f64>)> = Vec::new();
        for moved in of.iter().flat_map(|report| &report.moves) {
            let what = &moved.moved.what;
            let stall = moved.tcp_stall_ms.unwrap_or(0) as f64;
            match moves.iter_mut().find(|(known, _)| known == what) {
                Some((_, stalls)) => stalls.push(stall),
                None => moves.push((what.clone(), vec![stall])),
            }
        }
        for (what, stalls) in moves {
            table.row(vec![
                (*name).into(),
                what.into(),
                median(&stalls).into(),
                stalls.iter().copied().reduce(f64::max).into(),
            ]);
        }
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for report in of {
            for (reason, count) in report.sessions.iter().flat_map(|s| &s.reasons) {
                *reasons.entry(reason).or_default() += count;
            }
        }
        let reasons: Vec<String> = reasons
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        table.row(vec![
            (*name).into(),
            "all of these".into(),
            Cell::None,
            Cell::None,
            of.iter().map(opened_of).sum::<u64>().into(),
            of.iter().map(broken_of).sum::<u64>().into(),
            reasons.join(", ").into(),
        ]);
    }
    table
}
