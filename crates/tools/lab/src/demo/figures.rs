//! Figures of a run from what clients, servers and `iperf3` reported.

use super::iperf;
use super::report::Point;
use crate::agent::client::{ClientReport, Progress};
use crate::agent::server::ServerReport;
use std::collections::{BTreeMap, BTreeSet};

/// A stall that began at most this long before the restart belongs to it: a
/// connection's last step lies before the moment at which the routes change.
const JUST_BEFORE_MS: u64 = 500;

/// The longest stalls that belong to the failure and to the restart, both given in
/// milliseconds since the Unix epoch.
pub(super) fn stalls(clients: &[&ClientReport], kill: u64, restart: u64) -> (u64, u64) {
    let (mut failover, mut failback) = (0, 0);
    for stall in clients.iter().flat_map(|client| &client.stalls) {
        let ended = stall.from_ms + stall.length_ms;
        if ended > restart && stall.from_ms + JUST_BEFORE_MS > restart {
            failback = stall.length_ms.max(failback);
        } else if ended > kill {
            failover = stall.length_ms.max(failover);
        }
    }
    (failover, failback)
}

/// Number of exchanges completed at a time, which may lie between two reports.
pub(super) fn exchanges_at(progress: &[Progress], at_ms: u64) -> f64 {
    let next = progress.partition_point(|p| p.at_ms < at_ms);
    let none = Progress::default();
    let before = next.checked_sub(1).map_or(&none, |index| &progress[index]);
    let Some(after) = progress.get(next) else {
        return before.exchanges as f64;
    };
    if before.at_ms == 0 {
        return 0.0;
    }
    let part = (at_ms - before.at_ms) as f64 / (after.at_ms - before.at_ms) as f64;
    before.exchanges as f64 + part * after.exchanges.saturating_sub(before.exchanges) as f64
}

/// Mean of the values from second `from` to second `to`; 0 without any.
pub(super) fn mean(points: &[Point], from: f64, to: f64) -> f64 {
    // A stream that broke prints no more intervals, which count as nothing received.
    let slots = ((to - from) / iperf::INTERVAL_S).max(1.0);
    let within = points.iter().filter(|(at, _)| (from..to).contains(at));
    let (sum, count) = within.fold((0.0, 0.0), |(sum, count), (_, value)| {
        (sum + value, count + 1.0)
    });
    if count >= slots - 3.0 {
        sum / f64::max(count, 1.0)
    } else {
        sum / slots
    }
}

/// Connections that either end saw break, and what the client says of each, or else
/// the server.
pub(crate) fn broken(
    clients: &[&ClientReport],
    servers: &[ServerReport],
) -> (u64, BTreeMap<String, u64>) {
    let mut seen = BTreeSet::new();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    let client_side = clients.iter().flat_map(|client| &client.broken);
    let server_side = servers.iter().flat_map(|server| &server.broken);
    let told = client_side.map(|broken| (broken, "")).chain(
        // Before its hello arrived, a connection has no number here; the client tells.
        server_side
            .filter(|broken| broken.connection != 0)
            .map(|broken| (broken, " (server)")),
    );
    for (broken, side) in told {
        if seen.insert(broken.connection) {
            *reasons
                .entry(format!("{}{side}", broken.reason))
                .or_default() += 1;
        }
    }
    (seen.len() as u64, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Broken;
    use crate::agent::client::Stall;

    fn broken_one(connection: u64, reason: &str) -> Broken {
        Broken {
            connection,
            reason: reason.to_owned(),
            at_ms: 0,
        }
    }

    #[test]
    fn a_connection_broken_at_both_ends_counts_once() {
        let client = ClientReport {
            broken: vec![broken_one(1, "reset"), broken_one(2, "refused")],
            ..ClientReport::default()
        };
        let server = ServerReport {
            broken: vec![
                broken_one(1, "timeout"),
                broken_one(3, "timeout"),
                broken_one(0, "reset"),
            ],
            ..ServerReport::default()
        };
        let (count, reasons) = broken(&[&client], &[server]);
        assert_eq!(count, 3);
        assert_eq!(reasons["reset"], 1);
        assert_eq!(reasons["timeout (server)"], 1);
    }

    #[test]
    fn exchanges_between_two_reports_are_shared_out() {
        let report = |at_ms, exchanges| Progress {
            at_ms,
            exchanges,
            ..Progress::default()
        };
        let progress = [report(1000, 0), report(1200, 20), report(1400, 30)];
        let at = |ms| exchanges_at(&progress, ms) as u64;
        let read = [900, 1000, 1100, 1200, 1300, 1400, 2000].map(at);
        assert_eq!(read, [0, 0, 10, 20, 25, 30, 30]);
        assert!(exchanges_at(&[], 5).abs() < 1e-9);
    }

    #[test]
    fn a_stream_that_ends_lowers_the_mean() {
        let points: Vec<Point> = (0..50).map(|i| (f64::from(i) * 0.2, 20.0)).collect();
        assert!((mean(&points, 0.0, 10.0) - 20.0).abs() < 1e-9);
        assert!((mean(&points, 0.0, 20.0) - 10.0).abs() < 1e-9);
        assert!(mean(&points, 30.0, 40.0).abs() < 1e-9);
    }

    #[test]
    fn a_stall_belongs_to_the_failure_or_to_the_restart() {
        let stall = |from_ms, length_ms| Stall {
            connection: 1,
            from_ms,
            length_ms,
        };
        let client = ClientReport {
            stalls: vec![
                stall(100, 700),    // before both
                stall(9_950, 300),  // over the failure
                stall(12_000, 200), // in the outage
                stall(19_600, 450), // over the restart
                stall(25_000, 400), // after it
            ],
            ..ClientReport::default()
        };
        assert_eq!(stalls(&[&client], 10_000, 20_000), (300, 450));
    }
}
