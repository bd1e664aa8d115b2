//! Report of the demonstration.

use super::Service;
use super::resource::WriteLine;
use crate::expectation::Expectation;
use crate::page::write_table;
use crate::plot::Point;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest wait in ms for a write while a member of a chain is killed: detection 100 ms, and 100 ms.
const LONGEST_WAIT_MS: f64 = 200.0;
/// Time in s from the last write to the end within which a service still serves.
const SERVES_S: f64 = 1.0;
/// Time in s between two points of the plot.
const POINT_S: f64 = 0.1;

/// Something that happened to a service. Times are s since all workers had the lock once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultReport {
    /// The fault, with its victim.
    pub what: String,
    /// When it began.
    pub from_s: f64,
    /// When it was undone.
    pub until_s: f64,
    /// Longest time in ms between two accepted writes that began meanwhile; `None` if an earlier
    /// wait lasted throughout.
    pub longest_wait_ms: Option<f64>,
}

impl FaultReport {
    fn is_kill(&self) -> bool {
        self.what.ends_with("killed")
    }
}

/// The figures of one service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// The service.
    pub service: Service,
    /// Workers that shared the lock.
    pub workers: usize,
    /// Length of the run in s.
    pub seconds: f64,
    /// Writes that the resource accepted.
    pub accepted: usize,
    /// Accepted writes per second before the first fault.
    pub quiet_per_second: f64,
    /// Longest time in ms between two accepted writes before the first fault.
    pub quiet_wait_ms: f64,
    /// Writes that the resource refused because a later holder had written.
    pub refused: usize,
    /// Sessions that were lost.
    pub lost_sessions: usize,
    /// Time in s from the last accepted write to the end.
    pub silent_s: f64,
    /// The faults, in their order.
    pub faults: Vec<FaultReport>,
    /// Accepted writes that contradict the lock.
    pub objections: Vec<String>,
    /// Accepted writes per second, over time.
    pub writes_per_second: Vec<Point>,
}

impl ServiceReport {
    /// Of the resource's log, in its order. `span` is the run's begin and end in µs.
    pub(super) fn new(
        service: Service,
        workers: usize,
        writes: &[WriteLine],
        span: [u64; 2],
        mut faults: Vec<FaultReport>,
        lost_sessions: usize,
    ) -> Self {
        let [started, ended] = span;
        let second = |us: u64| (us as f64 - started as f64) / 1e6;
        let seconds = second(ended);
        let accepted: Vec<&WriteLine> = writes.iter().filter(|write| write.accepted).collect();
        let times = accepted.iter().map(|write| second(write.at_us));
        let times: Vec<f64> = times.filter(|at| *at <= seconds).collect();
        let waits = || times.iter().zip(times.iter().skip(1).chain([&seconds]));
        let longest = |counts: &dyn Fn(f64, f64) -> bool| {
            let counted = waits().filter(|(earlier, later)| counts(**earlier, **later));
            let waited = counted.map(|(earlier, later)| (later - earlier) * 1e3);
            waited.reduce(f64::max)
        };
        // A wait that outlasts its fault is not the next one's too.
        let mut after = 0.0;
        for fault in &mut faults {
            fault.longest_wait_ms = longest(&|earlier, later| {
                later > fault.from_s && earlier < fault.until_s && earlier >= after
            });
            after = fault.until_s;
        }
        let quiet = faults.first().map_or(seconds, |fault| fault.from_s);
        let before = times.iter().filter(|at| (0.0..quiet).contains(*at)).count();
        let points = (seconds / POINT_S).ceil() as usize;
        let mut counts = vec![0.0; points];
        for at in &times {
            if let Some(count) = counts
                .get_mut((at / POINT_S) as usize)
                .filter(|_| *at >= 0.0)
            {
                *count += 1.0 / POINT_S;
            }
        }
        let curve = counts.into_iter().enumerate();
        Self {
            service,
            workers,
            seconds,
            accepted: accepted.len(),
            quiet_per_second: before as f64 / quiet.max(POINT_S),
            quiet_wait_ms: longest(&|earlier, later| earlier >= 0.0 && later <= quiet)
                .unwrap_or(0.0),
            refused: writes.len() - accepted.len(),
            lost_sessions,
            silent_s: seconds - times.last().copied().unwrap_or(0.0),
            faults,
            objections: objections(&accepted),
            writes_per_second: curve
                .map(|(at, rate)| (at as f64 * POINT_S, rate))
                .collect(),
        }
    }

    fn longest_kill_ms(&self) -> f64 {
        let kills = self.faults.iter().filter(|fault| fault.is_kill());
        let waits = kills.filter_map(|fault| fault.longest_wait_ms);
        waits.fold(0.0, f64::max)
    }

    fn expectations(&self) -> Vec<Expectation> {
        let mut all = Vec::new();
        let mut expect = |what: String, found: String, met: bool| {
            all.push(Expectation {
                run: self.service.to_string(),
                what,
                found,
                met,
            });
        };
        let found = match self.objections.first() {
            None => format!("{} writes by {} workers", self.accepted, self.workers),
            Some(first) => format!("{}; first {first}", self.objections.len()),
        };
        let met = self.objections.is_empty() && self.accepted > 0;
        expect(
            "each write adds one to the one before".to_owned(),
            found,
            met,
        );
        expect(
            "the write of the holder that was frozen is refused".to_owned(),
            format!("{} refused", self.refused),
            self.refused > 0,
        );
        expect(
            format!("writes go on to the end, within {SERVES_S} s"),
            format!("last {:.2} s before it", self.silent_s),
            self.silent_s <= SERVES_S,
        );
        if self.service == Service::Stateplane {
            let longest = self.longest_kill_ms();
            expect(
                format!("no write waits longer than {LONGEST_WAIT_MS} ms for a killed switch"),
                format!("longest {longest:.0} ms"),
                longest <= LONGEST_WAIT_MS,
            );
        }
        all
    }
}

/// Accepted writes that a lock with fencing tokens does not allow.
fn objections(accepted: &[&WriteLine]) -> Vec<String> {
    let mut all = Vec::new();
    for pair in accepted.windows(2) {
        let [earlier, later] = pair else { continue };
        if later.value != earlier.value + 1 {
            all.push(format!(
                "worker {} wrote {} after {} was written",
                later.worker, later.value, earlier.value
            ));
        }
        if later.token < earlier.token {
            let (token, before) = (later.token, earlier.token);
            all.push(format!("token {token} came after token {before}"));
        }
        if later.token == earlier.token && later.worker != earlier.worker {
            let (one, other) = (earlier.worker, later.worker);
            all.push(format!(
                "workers {one} and {other} had token {}",
                later.token
            ));
        }
    }
    all
}

/// The figures of all services, and whether they are as they should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocksReport {
    /// The services in the order of their runs.
    pub services: Vec<ServiceReport>,
    /// Expectations, with findings.
    pub expectations: Vec<Expectation>,
}

impl LocksReport {
    pub(super) fn new(services: Vec<ServiceReport>) -> Self {
        let mut expectations: Vec<Expectation> = services
            .iter()
            .flat_map(ServiceReport::expectations)
            .collect();
        let of = |service| services.iter().find(|report| report.service == service);
        if let (Some(own), Some(etcd)) = (of(Service::Stateplane), of(Service::Etcd)) {
            let shortest = etcd.faults.iter().filter(|fault| fault.is_kill());
            let shortest = shortest.filter_map(|fault| fault.longest_wait_ms);
            let shortest = shortest.fold(f64::MAX, f64::min);
            let longest = own.longest_kill_ms();
            expectations.push(Expectation {
                run: own.service.to_string(),
                what: "no wait for a killed switch is longer than a third of the shortest for \
                       etcd's leader"
                    .to_owned(),
                found: format!("{longest:.0} ms, {shortest:.0} ms"),
                met: longest * 3.0 <= shortest,
            });
        }
        Self {
            services,
            expectations,
        }
    }

    /// True if everything that must hold does.
    pub fn met(&self) -> bool {
        !self.services.is_empty() && self.expectations.iter().all(|expectation| expectation.met)
    }

    /// The report as JSON text.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The table's head and rows.
    pub(super) fn table(&self) -> Vec<Vec<String>> {
        let row = |name: &str, cell: &dyn Fn(&ServiceReport) -> String| {
            let cells = self.services.iter().map(cell);
            [name.to_owned()].into_iter().chain(cells).collect()
        };
        let mut rows: Vec<Vec<String>> = vec![
            row("", &|report| report.service.to_string()),
            row("writes/s without faults", &|report| {
                format!("{:.0}", report.quiet_per_second)
            }),
            row("longest wait without faults", &|report| {
                format!("{:.0} ms", report.quiet_wait_ms)
            }),
        ];
        let faults = self.services.iter().map(|report| report.faults.len());
        for at in 0..faults.max().unwrap_or(0) {
            rows.push(row(&format!("longest wait, fault {}", at + 1), &|report| {
                let fault = report.faults.get(at);
                fault.map_or_else(String::new, |fault| match fault.longest_wait_ms {
                    Some(ms) => format!("{}: {ms:.0} ms", fault.what),
                    None => format!("{}: still waiting", fault.what),
                })
            }));
        }
        rows.push(row("writes", &|report| report.accepted.to_string()));
        rows.push(row("late writes refused", &|report| {
            report.refused.to_string()
        }));
        rows.push(row("sessions lost", &|report| {
            report.lost_sessions.to_string()
        }));
        rows
    }
}

/// The table and the expectations, for a terminal.
impl fmt::Display for LocksReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_table(f, &self.table())?;
        writeln!(f)?;
        for expectation in &self.expectations {
            writeln!(f, "{expectation}")?;
        }
        Ok(())
    }
}
