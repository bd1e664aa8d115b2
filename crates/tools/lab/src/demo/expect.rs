//! Expectations that each run must meet.

use super::report::{Kind, RunReport};
use crate::expectation::Expectation;

/// Longest stall that an open protected connection may have, in milliseconds: what a failure hits is
/// sent again after 200 ms at the soonest and, if that is lost too, 400, 800 and 1,600 ms later
/// (RFC 6298), which on a busy machine comes to pass.
const LONGEST_STALL_MS: u64 = 3000;
/// Longest time in which a protected connection may be opened, in milliseconds: a handshake that a
/// failure hits is sent again after 1 s.
const LONGEST_OPENING_MS: u64 = 3000;
/// Least share of the connections that each switch carries.
const LEAST_SHARE: f64 = 0.3;
/// Least exchanges per second of a long-lived connection while nothing fails.
const LEAST_RATE: f64 = 10.0;

/// The expectations of a run.
pub(super) fn of(run: &RunReport) -> Vec<Expectation> {
    let mut all = Vec::new();
    let mut expect = |what: &str, found: String, met: bool| {
        all.push(Expectation {
            run: run.name.title().to_owned(),
            what: what.to_owned(),
            found,
            met,
        });
    };
    let least = run.switch_shares.values().copied().fold(1.0, f64::min);
    let shares: Vec<_> = run
        .switch_shares
        .iter()
        .map(|(switch, share)| format!("{switch} {:.0} %", share * 100.0))
        .collect();
    expect(
        "each switch carries at least 30 % of the connections",
        shares.join(", "),
        least >= LEAST_SHARE && run.switch_shares.len() > 1,
    );
    if run.name.fails() {
        expect(
            "the switch that carries iperf3 is the one killed",
            format!("{} killed", run.killed_switch.as_deref().unwrap_or("none")),
            run.killed_switch.as_ref() == Some(&run.iperf_switch),
        );
    }
    if run.name == Kind::Unprotected {
        expect(
            "connections break",
            format!("{} of {} broken", run.broken, run.opened),
            run.broken > 0,
        );
        return all;
    }
    expect(
        "no connection breaks",
        format!("{} of {} broken", run.broken, run.opened),
        run.broken == 0 && run.opened >= run.long_lived && run.long_lived > 0,
    );
    expect(
        "no byte is wrong",
        format!("{} wrong", run.wrong_bytes),
        run.wrong_bytes == 0 && run.exchanges > 0,
    );
    expect(
        "no open connection stalls for more than 3 s",
        format!("longest {} ms", run.longest_stall_ms),
        run.longest_stall_ms <= LONGEST_STALL_MS,
    );
    expect(
        "no connection takes more than 3 s to open",
        format!("slowest {} ms", run.longest_opening_ms),
        run.longest_opening_ms <= LONGEST_OPENING_MS,
    );
    expect(
        "iperf3 completes without a stall of more than 3 s",
        format!(
            "{}, longest {} ms",
            if run.iperf_completed {
                "completed"
            } else {
                "broken"
            },
            run.iperf_stall_ms
        ),
        run.iperf_completed && run.iperf_stall_ms <= LONGEST_STALL_MS,
    );
    if run.name == Kind::NoFailure {
        expect(
            "each long-lived connection asks at least 10 times a second both ways",
            format!("slowest {:.1}/s", run.slowest_rate),
            run.slowest_rate >= LEAST_RATE,
        );
    }
    all
}

#[cfg(test)]
pub(super) use tests::run as example;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    pub(in crate::demo) fn run(name: Kind) -> RunReport {
        RunReport {
            name,
            opened: 200,
            long_lived: 120,
            broken: if name == Kind::Unprotected { 50 } else { 0 },
            broken_reasons: BTreeMap::new(),
            wrong_bytes: 0,
            exchanges: 1000,
            slowest_rate: 10.5,
            longest_stall_ms: 420,
            longest_opening_ms: 1030,
            stall_failover_ms: 420,
            stall_failback_ms: 130,
            throughput_before_mbps: 20.0,
            throughput_at_mbps: 10.0,
            throughput_during_mbps: 19.0,
            throughput_after_mbps: 20.0,
            iperf_completed: true,
            iperf_stall_ms: 400,
            iperf_switch: "s1".to_owned(),
            killed_switch: name.fails().then(|| "s1".to_owned()),
            switch_shares: BTreeMap::from([("s1".to_owned(), 0.5), ("s2".to_owned(), 0.5)]),
            killed_at_s: name.fails().then_some(12.0),
            restarted_at_s: name.fails().then_some(24.0),
            seconds: 38,
            throughput_mbps: (0..190).map(|i| (f64::from(i) / 5.0, 20.0)).collect(),
            exchanges_per_second: (0..190).map(|i| (f64::from(i) / 5.0, 1200.0)).collect(),
        }
    }

    fn met(run: &RunReport) -> bool {
        of(run).iter().all(|expectation| expectation.met)
    }

    #[test]
    fn good_runs_meet_them() {
        assert!(Kind::ALL.into_iter().all(|kind| met(&run(kind))));
    }

    #[test]
    fn each_fault_is_found() {
        type Spoil = fn(&mut RunReport);
        let faults: [(Kind, Spoil); 11] = [
            (Kind::Protected, |r| r.broken = 1),
            (Kind::Protected, |r| r.wrong_bytes = 1),
            (Kind::Protected, |r| r.longest_stall_ms = 3001),
            (Kind::Protected, |r| r.longest_opening_ms = 3001),
            (Kind::Protected, |r| r.iperf_completed = false),
            (Kind::Protected, |r| r.iperf_stall_ms = 3200),
            (Kind::Protected, |r| r.killed_switch = Some("s2".to_owned())),
            (Kind::Protected, |r| r.exchanges = 0),
            (Kind::NoFailure, |r| r.slowest_rate = 9.9),
            (Kind::NoFailure, |r| {
                r.switch_shares.insert("s1".to_owned(), 0.29);
            }),
            (Kind::Unprotected, |r| r.broken = 0),
        ];
        for (number, (kind, spoil)) in faults.into_iter().enumerate() {
            let mut spoiled = run(kind);
            spoil(&mut spoiled);
            assert!(!met(&spoiled), "fault {number}");
        }
    }
}
