//! Connections that each switch carries, from the reports of taps at the switches.

use super::trial::no_report;
use crate::agent::tap::{Flow, TapReport};
use crate::error::LabError;
use crate::process::Process;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(3);

/// Traffic that leaves through each switch.
pub(super) struct Sight {
    /// The switch that carries the most bytes to `iperf3`'s server.
    pub iperf_switch: String,
    /// Share of the planned connections that each switch carries; a connection seen at two counts
    /// where it had more frames.
    pub shares: BTreeMap<String, f64>,
}

impl Sight {
    /// Waits for the taps and reads what they saw.
    pub(super) fn new(
        taps: Vec<(String, Process)>,
        planned: &BTreeSet<(SocketAddrV4, SocketAddrV4)>,
        iperf_port: u16,
    ) -> Result<Self, LabError> {
        let mut seen = BTreeMap::new();
        for (switch, mut tap) in taps {
            tap.wait_until(Instant::now() + PATIENCE)?;
            let output = std::fs::read(tap.output()).unwrap_or_default();
            let report: TapReport = serde_json::from_slice(&output).map_err(|_| no_report(&tap))?;
            seen.insert(switch, report.flows);
        }
        Ok(Self::of(&seen, planned, iperf_port))
    }

    fn of(
        seen: &BTreeMap<String, Vec<Flow>>,
        planned: &BTreeSet<(SocketAddrV4, SocketAddrV4)>,
        iperf_port: u16,
    ) -> Self {
        let mut best: BTreeMap<(SocketAddrV4, SocketAddrV4), (u64, &str)> = BTreeMap::new();
        let mut iperf = (0, "");
        for (switch, flows) in seen {
            for flow in flows {
                let ends = (flow.source, flow.destination);
                if planned.contains(&ends) {
                    let carried = best.entry(ends).or_default();
                    *carried = (*carried).max((flow.frames, switch));
                }
                if flow.destination.port() == iperf_port && flow.bytes > iperf.0 {
                    iperf = (flow.bytes, switch);
                }
            }
        }
        let shares = seen
            .keys()
            .map(|switch| {
                let carried = best.values().filter(|(_, at)| at == switch).count();
                (switch.clone(), carried as f64 / planned.len().max(1) as f64)
            })
            .collect();
        Self {
            iperf_switch: iperf.1.to_owned(),
            shares,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source: u16, destination: u16, frames: u64) -> Flow {
        let at = |port| SocketAddrV4::new([10, 0, 0, 1].into(), port);
        Flow {
            source: at(source),
            destination: at(destination),
            frames,
            bytes: frames * 100,
        }
    }

    #[test]
    fn each_connection_counts_once_and_iperf_by_its_bytes() {
        let seen = BTreeMap::from([
            (
                "s1".to_owned(),
                vec![
                    flow(1, 7, 5),
                    flow(2, 7, 1),
                    flow(9, 5201, 3),
                    flow(8, 7, 9),
                ],
            ),
            (
                "s2".to_owned(),
                vec![flow(2, 7, 4), flow(3, 7, 4), flow(10, 5201, 900)],
            ),
        ]);
        let planned = [1, 2, 3, 4]
            .map(|port| flow(port, 7, 0))
            .map(|flow| (flow.source, flow.destination))
            .into();
        let sight = Sight::of(&seen, &planned, 5201);
        assert_eq!(sight.iperf_switch, "s2");
        assert!((sight.shares["s1"] - 0.25).abs() < 1e-9);
        assert!((sight.shares["s2"] - 0.5).abs() < 1e-9);
    }
}
