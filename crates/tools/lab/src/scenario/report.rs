//! Report of a scenario.

use super::fault::Fault;
use super::sketch::SketchReport;
use super::view::ViewReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A moment at which flows had to move to the other switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Description of the event.
    pub what: String,
    /// When the network began to be changed for it, in µs since the Unix epoch.
    pub began_us: u64,
    /// When that had happened, in µs since the Unix epoch.
    pub at_us: u64,
    /// True if the switch that had the flows lives on, and does not stand still.
    pub owner_alive: bool,
    /// True if the network was left alone for a phase from then on.
    pub left_alone: bool,
}

/// Outcome of the flows over a move. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultReport {
    /// The fault.
    pub fault: Fault,
    /// The move.
    #[serde(flatten)]
    pub moved: Move,
    /// Flows of the hosts that sent after it.
    pub flows: u64,
    /// Of these, such as had no packet through until the end of the run.
    pub silent: u64,
    /// From the first packet of a flow after the move to the first after the move that
    /// came through: the median of all flows.
    pub released_median_ms: f64,
    /// Release time of the slowest flow.
    pub released_slowest_ms: f64,
    /// The time that a packet took to come through, the median of those of the half second
    /// before the move. Where each packet writes, it is a round trip to the store and little
    /// more.
    pub usual_ms: f64,
    /// The longest time in which a flow of the hosts sent what the application was to let
    /// through, and nothing came through.
    pub longest_stall_ms: f64,
    /// The longest gap of a TCP connection; those shorter than its questions are apart
    /// are not counted.
    pub tcp_stall_ms: Option<u64>,
}

/// Outcome of the TCP connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsReport {
    /// Connections begun.
    pub opened: u64,
    /// Connections for which routers had no way while the store was away, as both switches lower their
    /// ports then; they are not among the broken ones.
    #[serde(default)]
    pub unreachable: u64,
    /// Connections that broke: refused, reset, ended early, or 15 s without an answer.
    pub broken: u64,
    /// Number of broken connections for each reason.
    pub reasons: BTreeMap<String, u64>,
    /// Bytes that came wrong, at either end.
    pub wrong_bytes: u64,
    /// Questions and answers, in both directions.
    pub exchanges: u64,
}

/// Report of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioReport {
    /// Its name.
    pub scenario: String,
    /// Packets that the hosts sent.
    pub sent: u64,
    /// Packets that came through to them.
    pub received: u64,
    /// Packets that the application dropped by its own rules.
    pub dropped: u64,
    /// Packets that it was to let through, and that did not come through.
    pub lost: u64,
    /// Packets that it was to let through and that were sent while nothing moved and all flows
    /// had come over the last move.
    pub sent_in_calm: u64,
    /// Of these, such as did not come through.
    pub lost_in_calm: u64,
    /// Violations that the application's checker found, and frames that no host would take.
    pub wrong: Vec<String>,
    /// TCP connections, where the scenario has them.
    pub sessions: Option<SessionsReport>,
    /// Sketches at the store, if the application has any.
    pub sketch: Option<SketchReport>,
    /// Views of what the switches count, if an engine follows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<ViewReport>,
    /// Outcome of the flows over each move.
    pub moves: Vec<FaultReport>,
}

impl ScenarioReport {
    /// True if no answer was wrong, no connection broke, no flow fell silent and at most one packet
    /// in twenty was lost while nothing moved; and the sketches, where there are such, have heavy
    /// flows of each tenant, and the views packets of each switch.
    ///
    /// A busy machine that pauses for a tenth of a second overflows a queue, or takes a switch with
    /// bounded inconsistency beyond its bound, where it has to drop. In the two seconds without a
    /// move of the shortest run that is one packet in twenty.
    pub fn met(&self) -> bool {
        let sessions = self.sessions.as_ref();
        self.wrong.is_empty()
            && sessions.is_none_or(|s| s.broken == 0 && s.wrong_bytes == 0 && s.exchanges > 0)
            && self.sketch.as_ref().is_none_or(SketchReport::bites)
            && self.view.as_ref().is_none_or(ViewReport::bites)
            && self.moves.iter().all(|moved| moved.silent == 0)
            && (self.received > 0 || self.sent == 0)
            && self.lost_in_calm * 20 <= self.sent_in_calm
    }
}

impl fmt::Display for ScenarioReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.met() { "ok  " } else { "FAIL" };
        write!(f, "{mark}  {}:", self.scenario)?;
        if self.sent > 0 {
            write!(
                f,
                " {} packets sent, {} came through, {} dropped by right, {} lost ({} of {} while \
                 nothing moved), {} wrong",
                self.sent,
                self.received,
                self.dropped,
                self.lost,
                self.lost_in_calm,
                self.sent_in_calm,
                self.wrong.len()
            )?;
        }
        if let Some(sessions) = &self.sessions {
            let comma = if self.sent > 0 { ";" } else { "" };
            write!(
                f,
                "{comma} {} connections, {} broken, {} exchanges, {} wrong bytes",
                sessions.opened, sessions.broken, sessions.exchanges, sessions.wrong_bytes
            )?;
            if sessions.unreachable > 0 {
                let count = sessions.unreachable;
                write!(f, ", {count} without a way while the store was away")?;
            }
        }
        writeln!(f)?;
        for moved in &self.moves {
            let owner = if moved.moved.owner_alive {
                "owner alive"
            } else {
                "owner dead"
            };
            write!(
                f,
                "      {:23} {:15} {owner:11}",
                moved.fault.to_string(),
                moved.moved.what,
            )?;
            if moved.flows > 0 {
                write!(
                    f,
                    "  released after {:.1} ms (median",
                    moved.released_median_ms
                )?;
                if moved.usual_ms > 0.0 {
                    let times = moved.released_median_ms / moved.usual_ms;
                    write!(f, ", {times:.1} times as long as a packet before")?;
                }
                write!(
                    f,
                    "), {:.1} ms (slowest of {}), {} silent",
                    moved.released_slowest_ms, moved.flows, moved.silent
                )?;
            }
            if let Some(stall) = moved.tcp_stall_ms {
                write!(f, "  TCP stall {stall} ms")?;
            }
            writeln!(f)?;
        }
        if let Some(sketch) = &self.sketch {
            write!(f, "{sketch}")?;
        }
        if let Some(view) = &self.view {
            write!(f, "{view}")?;
        }
        let reasons = self.sessions.iter().flat_map(|s| &s.reasons);
        for (reason, count) in reasons {
            writeln!(f, "      {count} connections: {reason}")?;
        }
        for what in &self.wrong {
            writeln!(f, "      wrong: {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> ScenarioReport {
        ScenarioReport {
            scenario: "firewall".to_owned(),
            sent: 100,
            received: 90,
            dropped: 6,
            lost: 4,
            sent_in_calm: 80,
            lost_in_calm: 0,
            wrong: Vec::new(),
            sessions: Some(SessionsReport {
                opened: 10,
                exchanges: 100,
                ..SessionsReport::default()
            }),
            sketch: None,
            view: None,
            moves: vec![FaultReport {
                fault: Fault::Reroute,
                moved: Move {
                    what: "rerouted".to_owned(),
                    began_us: 6,
                    at_us: 7,
                    owner_alive: true,
                    left_alone: true,
                },
                flows: 12,
                silent: 0,
                released_median_ms: 3.0,
                released_slowest_ms: 40.0,
                usual_ms: 0.5,
                longest_stall_ms: 40.0,
                tcp_stall_ms: Some(200),
            }],
        }
    }

    #[test]
    fn each_fault_is_found() {
        assert!(good().met(), "{}", good());
        let spoils: [fn(&mut ScenarioReport); 9] = [
            |r| r.sketch = Some(SketchReport::default()),
            |r| r.view = Some(ViewReport::default()),
            |r| r.wrong.push("flow a: no order".to_owned()),
            |r| r.received = 0,
            |r| r.lost_in_calm = 5,
            |r| r.moves[0].silent = 1,
            |r| r.sessions.as_mut().unwrap().broken = 1,
            |r| r.sessions.as_mut().unwrap().wrong_bytes = 1,
            |r| r.sessions.as_mut().unwrap().exchanges = 0,
        ];
        for (number, spoil) in spoils.into_iter().enumerate() {
            let mut report = good();
            spoil(&mut report);
            assert!(!report.met(), "spoil {number}");
            assert!(report.to_string().starts_with("FAIL"), "{report}");
        }
    }

    #[test]
    fn a_move_is_told_in_times_of_a_packet_before() {
        let mut report = good();
        let told = report.to_string();
        assert!(told.contains("3.0 ms (median, 6.0 times as long"), "{told}");
        report.moves[0].usual_ms = 0.0;
        let told = report.to_string();
        assert!(told.contains("3.0 ms (median), 40.0 ms"), "{told}");
    }

    #[test]
    fn reports_read_back_from_json() {
        let text = serde_json::to_string(&good()).unwrap();
        assert_eq!(
            serde_json::from_str::<ScenarioReport>(&text).unwrap(),
            good()
        );
    }
}
