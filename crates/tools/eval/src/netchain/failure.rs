//! Fig. 10: throughput over the failure of a switch and the recovery of its groups, with one group
//! and with 100, beside the paper's Algorithm 3.

#![allow(clippy::disallowed_methods, reason = "a trial waits for its processes")]

use super::agent::P4RUNTIME;
use super::algorithm3::{Chains, Recovery};
use super::client::System;
use super::lab::{Network, Sizes};
use super::order::{Order, Series as Asked, Slow, Times, Told};
use super::{Setting, lab_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::median;
use crate::table::{Cell, Table};
use stateplane_host::clock::boot_time_us;
use stateplane_lab::interrupt;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The switch that stands by.
const SPARE: u8 = 4;
/// Workers, each with one request in flight.
const WORKERS: usize = 200;
/// µs between two requests of a worker.
const PERIOD_US: u64 = 40_000;
/// Time over which answers are counted together.
const BUCKET_MS: u64 = 50;
/// Requests that take longer are stalled, in µs.
const SLOW_US: u64 = 2_000;
/// Least time over which a throughput is taken, in µs.
const LEAST_WINDOW_US: u64 = 500_000;
/// Lanes: one for each worker, and some.
const LANES: u16 = 256;

/// The controller that brings groups back to three members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Controller {
    /// The one that ships.
    Ours,
    /// The paper's Algorithm 3 as printed.
    Algorithm3,
}

impl Controller {
    const fn name(self) -> &'static str {
        match self {
            Self::Ours => "stateplane",
            Self::Algorithm3 => "Algorithm 3",
        }
    }
}

/// When things happen, in s after the begin of the series.
#[derive(Clone, Copy)]
struct Plan {
    fail: f64,
    recover: f64,
    end: f64,
}

/// Result of a trial.
struct Trial {
    times: Times,
    failed_us: u64,
    /// Begin and end of the recovery; the end is that of the series if it took longer.
    recovery: (u64, u64),
    recovered: bool,
    told: Told,
    /// Groups that the failed switch was in.
    affected: Vec<u16>,
    /// Times for which Algorithm 3 stopped groups.
    stopped: Vec<Duration>,
}

/// Fig. 10.
pub(super) fn run(setting: &Setting<'_>) -> Result<Figure, EvalError> {
    let quick = setting.plan.quick;
    let mut figure = Figure::new(
        "netchain-fig10",
        "Throughput over a switch's failure and the recovery of its groups",
        "with 1 group writes, half of the requests, stop for the 150 s of the recovery; with 100 the \
         throughput falls by 0.5 %. The failover shows in one second that was added on purpose",
    );
    figure.differs(
        "200 workers ask at a steady rate, 5000 requests/s, half of them writes: a group that stalls \
         does not give its processor to others",
    );
    figure.differs(
        "chains of three of four switches; the fourth stands by, and joins 3 s after one of the \
         others failed. The failed switch is the middle of the first group's chain, and the head, the \
         middle or the tail of other groups'",
    );
    figure.differs(
        "Algorithm 3: registers are read and written over P4Runtime by an agent in each switch's \
         node, while the controller that ships is ended. It copies values, then numbers, then lanes. \
         The head refuses requests of a stopped group, and leased reads, whose leases pass the head, \
         end with the lease after 49 ms",
    );
    let mut summary = Table::new(
        "recovery",
        &[
            "controller",
            "groups",
            "answers/s before",
            "kept during the recovery (%)",
            "recovery (s)",
            "groups recovered",
            "stall of a group, median (ms)",
            "longest (ms)",
            "stopped, median (ms)",
            "stall at the failure, longest (ms)",
            "groups change within (ms)",
            "failed",
        ],
    );
    let mut over_time = Table::new(
        "throughput",
        &["controller", "groups", "second", "reads/s", "writes/s"],
    );
    let counts: &[u16] = if quick { &[4] } else { &[1, 100] };
    setting.bar.set_length(2 * counts.len() as u64);
    for &groups in counts {
        let mut series = Vec::new();
        for controller in [Controller::Ours, Controller::Algorithm3] {
            setting.bar.set_message(format!(
                "{}: {groups} groups, {}",
                figure.id,
                controller.name()
            ));
            let trial = trial(setting, &mut figure, groups, controller)?;
            let points = tell(&mut over_time, groups, controller, &trial);
            series.push(Series {
                name: controller.name().to_owned(),
                points,
            });
            judge(
                setting,
                &mut figure,
                &mut summary,
                (groups, controller),
                &trial,
            );
            setting.bar.inc(1);
        }
        let axes = Axes {
            x: "time (s)",
            y: "answers/s",
            logarithmic: false,
        };
        figure.curves(&format!("groups-{groups}"), axes, &series)?;
    }
    figure.tables.extend([summary, over_time]);
    Ok(figure)
}

fn plan(controller: Controller, groups: u16, quick: bool) -> Plan {
    let end = match (controller, quick) {
        (_, true) => 8.0,
        (Controller::Ours, false) => 15.0,
        (Controller::Algorithm3, false) if groups == 1 => 40.0,
        (Controller::Algorithm3, false) => 60.0,
    };
    Plan {
        fail: if quick { 1.0 } else { 3.0 },
        recover: if quick { 2.5 } else { 6.0 },
        end,
    }
}

fn trial(
    setting: &Setting<'_>,
    figure: &mut Figure,
    groups: u16,
    controller: Controller,
) -> Result<Trial, EvalError> {
    let quick = setting.plan.quick;
    let keys: u64 = if quick { 200 } else { 5000 };
    // Twice as many slots as keys, a power of two.
    let slots = (2 * keys / u64::from(groups)).next_power_of_two().max(64) as u16;
    let sizes = Sizes {
        groups,
        slots,
        lanes: LANES,
    };
    let plan = plan(controller, groups, quick);
    let name = format!("netchain-fig10-{groups}-{controller:?}");
    let mut network = Network::up(setting.place, &name, sizes, &["--p4runtime", P4RUNTIME])?;
    let spare = format!("10.20.0.{SPARE}");
    network.operate(&["drain", &spare, "--wait", "60"])?;
    network.serve(&[System::Stateplane], LANES)?;
    if figure.differs.len() < 5 {
        lab_differs(figure, &network);
    }
    let client = network.of(System::Stateplane)?;
    client.ask(&Order::Fill { keys, value: 64 })?;
    let mut chains = Vec::new();
    for group in 0..groups {
        let before = client.ask(&Order::Chain { group })?.chain;
        chains.push(Chains { group, before });
    }
    let middle = chains[0].before.get(1).map_or(0, |of| of.octets()[3]);
    chains.retain(|of| of.before.iter().any(|member| member.octets()[3] == middle));
    let asked = Asked {
        value: 64,
        writes_ppm: 500_000,
        workers: WORKERS,
        period_us: PERIOD_US,
        duration_ms: (plan.end * 1000.0) as u64,
        bucket_ms: BUCKET_MS,
        slow_us: SLOW_US,
    };
    client.tell(&Order::Series(asked))?;
    let begun = Instant::now();
    let wait = |seconds: f64| interrupt::wait_until(begun + Duration::from_secs_f64(seconds));
    wait(plan.fail)?;
    let failed_us = boot_time_us();
    if let Some(process) = network.lab.process(&format!("s{middle}")) {
        process.kill();
    }
    let mut stopped = Vec::new();
    let begin_us;
    let mut recovered = true;
    match controller {
        Controller::Ours => {
            wait(plan.recover)?;
            begin_us = boot_time_us();
            network.operate(&["undrain", &spare])?;
            let left = (plan.end - plan.recover).ceil().to_string();
            recovered = network.operate(&["wait", &left]).is_ok();
        }
        Controller::Algorithm3 => {
            wait(plan.recover - 1.0)?;
            if let Some(process) = network.lab.process("controller") {
                process.kill();
            }
            let mut recovery = Recovery::begin(&network, sizes, middle, SPARE)?;
            wait(plan.recover)?;
            begin_us = boot_time_us();
            for of in &chains {
                if begun.elapsed().as_secs_f64() > plan.end - 0.5 {
                    recovered = false;
                    break;
                }
                stopped.push(recovery.recover(of)?);
            }
        }
    }
    let end_us = boot_time_us();
    let told = network.of(System::Stateplane)?.hear()?;
    let times = told.times.clone().unwrap_or_default();
    network.down()?;
    let series_end = times.begun_us + asked.duration_ms * 1000;
    Ok(Trial {
        failed_us,
        recovery: (begin_us, end_us.min(series_end)),
        recovered: recovered && end_us <= series_end,
        told,
        affected: chains.iter().map(|of| of.group).collect(),
        stopped,
        times,
    })
}

/// Rows of answers over time; gives their sums for the plot.
fn tell(table: &mut Table, groups: u16, controller: Controller, trial: &Trial) -> Vec<(f64, f64)> {
    let rate = |count: u64| count as f64 * 1000.0 / BUCKET_MS as f64;
    let mut points = Vec::new();
    for (at, [reads, writes]) in trial.times.buckets.iter().enumerate() {
        let second = at as f64 * BUCKET_MS as f64 / 1000.0;
        table.row(vec![
            controller.name().into(),
            u64::from(groups).into(),
            second.into(),
            rate(*reads).into(),
            rate(*writes).into(),
        ]);
        points.push((second, rate(reads + writes)));
    }
    points
}

impl Trial {
    /// Answers per second from one time to another, in µs of the system's clock.
    fn rate(&self, from: u64, to: u64) -> f64 {
        let at =
            |time: u64| (time.saturating_sub(self.times.begun_us) / (BUCKET_MS * 1000)) as usize;
        let (from, to) = (at(from), at(to).min(self.times.buckets.len()));
        let buckets = self.times.buckets.get(from..to).unwrap_or_default();
        let answers: u64 = buckets.iter().flatten().sum();
        answers as f64 * 1000.0 / (BUCKET_MS as f64 * buckets.len().max(1) as f64)
    }

    /// The longest time that a request of each group took, of those under way between two times.
    fn stalls(&self, from: u64, to: u64) -> BTreeMap<u16, Slow> {
        let mut longest: BTreeMap<u16, Slow> = BTreeMap::new();
        let within = |slow: &&Slow| slow.ended_us >= from && slow.asked_us <= to;
        for slow in self.times.slow.iter().filter(within) {
            let known = longest.entry(slow.group).or_insert(*slow);
            if spent(slow) > spent(known) {
                *known = *slow;
            }
        }
        longest
    }
}

fn spent(slow: &Slow) -> u64 {
    slow.ended_us - slow.asked_us
}

/// A row of the summary, and what is claimed.
fn judge(
    setting: &Setting<'_>,
    figure: &mut Figure,
    summary: &mut Table,
    (groups, controller): (u16, Controller),
    trial: &Trial,
) {
    let begun = trial.times.begun_us;
    let before = trial.rate(begun + 500_000, trial.failed_us);
    let (from, to) = trial.recovery;
    let kept = trial.rate(from, to.max(from + LEAST_WINDOW_US)) / before;
    let stalls = trial.stalls(from, to);
    let ms = |us: u64| us as f64 / 1000.0;
    // A group none of whose requests was slow did not stall.
    let of_group = |group: &u16| stalls.get(group).map_or(0.0, |slow| ms(spent(slow)));
    let of_groups: Vec<f64> = trial.affected.iter().map(of_group).collect();
    let middle = median(&of_groups).unwrap_or(0.0);
    let longest = of_groups.iter().copied().fold(0.0, f64::max);
    let stopped: Vec<f64> = trial
        .stopped
        .iter()
        .map(|of| of.as_secs_f64() * 1000.0)
        .collect();
    let failover = trial.stalls(trial.failed_us, from.min(trial.failed_us + 1_000_000));
    let failover: Vec<&Slow> = trial
        .affected
        .iter()
        .filter_map(|of| failover.get(of))
        .collect();
    let outage = failover
        .iter()
        .map(|slow| ms(spent(slow)))
        .fold(0.0, f64::max);
    let ends = failover.iter().map(|slow| slow.ended_us);
    let change = match (ends.clone().min(), ends.max()) {
        (Some(first), Some(last)) => ms(last - first),
        _ => 0.0,
    };
    let count = match controller {
        Controller::Ours if trial.recovered => trial.affected.len() as u64,
        Controller::Ours => 0,
        Controller::Algorithm3 => trial.stopped.len() as u64,
    };
    summary.row(vec![
        controller.name().into(),
        u64::from(groups).into(),
        before.round().into(),
        (100.0 * kept).into(),
        ((to - from) as f64 / 1e6).into(),
        count.into(),
        middle.into(),
        longest.into(),
        Cell::from(median(&stopped)),
        outage.into(),
        change.into(),
        trial.told.failed.into(),
    ]);
    for (why, count) in &trial.told.failures {
        let name = controller.name();
        figure.limits.push(format!(
            "{name}, {groups} groups: {count} requests failed: {why}"
        ));
    }
    if controller == Controller::Algorithm3 {
        return;
    }
    let percent = 100.0 * kept;
    for (met, claim) in [
        (
            trial.recovered && kept >= 0.85,
            format!(
                "{groups} groups: recovery keeps {percent:.1} % of the throughput (claimed: 85 %)"
            ),
        ),
        (
            middle <= 5.0 && longest <= 30.0,
            format!(
                "{groups} groups: a group stalls for {middle:.1} ms in the median, {longest:.1} ms at \
                 most (claimed: 5 and 30 ms)"
            ),
        ),
        (
            change <= 50.0,
            format!("{groups} groups change within {change:.1} ms (claimed: 50 ms)"),
        ),
    ] {
        setting.plan.claim(figure, met, claim);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial_of(slow: Vec<Slow>) -> Trial {
        Trial {
            times: Times {
                begun_us: 1_000_000,
                buckets: vec![[10, 30], [0, 20], [5, 5]],
                slow,
            },
            failed_us: 1_050_000,
            recovery: (1_100_000, 1_150_000),
            recovered: true,
            told: Told::default(),
            affected: vec![0, 1],
            stopped: Vec::new(),
        }
    }

    #[test]
    fn rates_are_of_whole_buckets_between_two_times() {
        let trial = trial_of(Vec::new());
        assert_eq!(trial.rate(1_000_000, 1_050_000), 800.0);
        assert_eq!(trial.rate(1_000_000, 1_100_000), 600.0);
        assert_eq!(trial.rate(1_100_000, 9_000_000), 200.0);
    }

    #[test]
    fn a_stall_is_the_longest_request_that_was_under_way() {
        let slow = |group, asked_us, ended_us| Slow {
            group,
            asked_us,
            ended_us,
            write: true,
        };
        let trial = trial_of(vec![
            slow(0, 1_090_000, 1_101_000),
            slow(0, 1_110_000, 1_115_000),
            slow(1, 1_000_000, 1_050_000),
        ]);
        let stalls = trial.stalls(1_100_000, 1_150_000);
        assert_eq!(stalls.len(), 1);
        assert_eq!(spent(&stalls[&0]), 11_000);
    }
}
