//! Receivers that stand still, one after the other: how much senders still send, whether memory
//! grows, and how soon messages go on.

use super::hosts::QUEUE;
use super::{GROUPS, Options, Part, RECEIVERS, Service, report};
use crate::error::LabError;
use crate::interrupt;
use serde::Serialize;
use stateplane_history::multicast::{EventKind, History, MulticastEvent};
use stateplane_host::clock::boot_time_us;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// Time without faults before each stop.
const QUIET: Duration = Duration::from_millis(500);
/// Time within which senders come to a stand.
const FILLS: Duration = Duration::from_millis(200);
/// Time for which a receiver that is to return stands still: half of `receiver_ttl_ms`.
const STANDS: Duration = Duration::from_secs(1);
/// Time within which a receiver that does not return is taken off its list, and within which it is
/// listed again.
const LISTS: Duration = Duration::from_secs(20);
/// Time for which messages go on before the next stop.
const GOES_ON: Duration = Duration::from_millis(500);
/// Longest time in ms from the end of a stop to the first message that is complete.
const RESUMES_MS: u64 = 100;
/// Most KiB by which a process may grow while a receiver stands still.
const GROWS_KIB: u64 = 1024;

/// End of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The receiver goes on.
    Returns,
    /// The controller takes it off its list. The time counts from the last moment at which it was
    /// seen on the list.
    TakenOff,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Returns => "returns",
            Self::TakenOff => "taken off",
        })
    }
}

/// One stop.
#[derive(Clone, Debug, Serialize)]
pub struct Stop {
    /// The receiver's name.
    pub receiver: String,
    /// Its group.
    pub group: u8,
    /// End of the stop.
    pub end: End,
    /// Messages to its group that were sent while it stood still.
    pub sent: u64,
    /// Time in ms from its end until a message to the group was complete.
    pub resumes_ms: f64,
    /// KiB by which the process grew most that grew most.
    pub grew_kib: u64,
}

/// The worst of the stops that ended in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Worst {
    /// Number of stops.
    pub stops: usize,
    /// Most messages that were sent while the receiver stood still.
    pub sent: u64,
    /// Longest time in ms until messages went on.
    pub resumes_ms: f64,
    /// Most KiB by which a process grew.
    pub grew_kib: u64,
}

impl Worst {
    fn add(&mut self, stop: &Stop) {
        self.stops += 1;
        self.sent = self.sent.max(stop.sent);
        self.resumes_ms = self.resumes_ms.max(stop.resumes_ms);
        self.grew_kib = self.grew_kib.max(stop.grew_kib);
    }

    fn is_kept(&self) -> bool {
        self.sent <= u64::from(QUEUE)
            && self.resumes_ms <= RESUMES_MS as f64
            && self.grew_kib <= GROWS_KIB
    }
}

/// Report of the stops.
#[derive(Clone, Debug, Serialize)]
pub struct StopsReport {
    /// The seed.
    pub seed: u64,
    /// Counts of the history.
    #[serde(flatten)]
    pub counts: report::Counts,
    /// The stops, in their order.
    pub stops: Vec<Stop>,
    /// The worst of them, by their ends.
    pub ends: BTreeMap<End, Worst>,
    /// Objections of the checkers.
    pub violations: Vec<String>,
}

impl StopsReport {
    /// True if no checker objected and every stop kept what is promised.
    pub fn met(&self) -> bool {
        self.violations.is_empty() && self.ends.values().all(Worst::is_kept)
    }
}

impl fmt::Display for StopsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, stops) = (self.seed, self.stops.len());
        writeln!(f, "multicast, seed {seed}: {stops} receivers stood still")?;
        write!(f, "{}", self.counts)?;
        writeln!(
            f,
            "  end         stops  sent meanwhile  goes on after ms  grew KiB"
        )?;
        for (end, worst) in &self.ends {
            writeln!(
                f,
                "  {end:10} {:6} {:15} {:17.1} {:9}",
                worst.stops, worst.sent, worst.resumes_ms, worst.grew_kib
            )?;
        }
        for violation in &self.violations {
            writeln!(f, "  VIOLATION   {violation}")?;
        }
        let verdict = if self.met() { "kept" } else { "NOT kept" };
        writeln!(
            f,
            "  {verdict}: at most {QUEUE} messages are sent, messages go on within {RESUMES_MS} ms, \
             no process grows by more than {GROWS_KIB} KiB"
        )
    }
}

/// A stop while it is measured. Times are µs of the hosts' clock.
struct Measured {
    receiver: String,
    group: u8,
    end: End,
    from: u64,
    until: u64,
    grew_kib: u64,
}

/// Stops `stops` receivers under the load of `options`, of each group in turn; of two that follow each
/// other in a group one returns, and one is taken off its list.
///
/// # Errors
/// As [`run`](super::run), and `LAB008` if a receiver is not taken off its list or does not come back.
pub fn run(options: &Options, stops: u32) -> Result<StopsReport, LabError> {
    let mut service = Service::start(options)?;
    let mut measured = Vec::new();
    for number in 0..stops {
        measured.push(stop(&mut service, number)?);
    }
    let history = service.finish(options)?;
    let name = format!("stops-{}.txt", options.seed);
    super::write(&options.directory.join(name), &history)?;
    let mut report = StopsReport {
        seed: options.seed,
        counts: report::Counts::of(&history),
        stops: Vec::new(),
        ends: BTreeMap::new(),
        violations: report::violations(&history),
    };
    let messages = Messages::of(&history);
    for stop in measured {
        report.add(stop, &messages);
    }
    Ok(report)
}

fn stop(service: &mut Service, number: u32) -> Result<Measured, LabError> {
    let group = (number % u32::from(GROUPS)) as u8;
    let turn = (number / u32::from(GROUPS)) as usize;
    let nodes = RECEIVERS[usize::from(group)];
    let receiver = nodes[turn % nodes.len()];
    let end = [End::Returns, End::TakenOff][turn % 2];
    await_listed(service, group, receiver, true)?;
    interrupt::wait_until(Instant::now() + QUIET)?;
    let from = boot_time_us();
    service.signal(receiver, "STOP")?;
    interrupt::wait_until(Instant::now() + FILLS)?;
    let before = memory(service)?;
    let until = match end {
        End::Returns => {
            interrupt::wait_until(Instant::now() + STANDS)?;
            None
        }
        End::TakenOff => Some(await_listed(service, group, receiver, false)?),
    };
    let after = memory(service)?;
    let until = until.unwrap_or_else(boot_time_us);
    service.signal(receiver, "CONT")?;
    interrupt::wait_until(Instant::now() + GOES_ON)?;
    Ok(Measured {
        receiver: receiver.to_owned(),
        group,
        end,
        from,
        until,
        grew_kib: growth(&before, &after),
    })
}

/// Waits until `receiver` is on its group's list, or is not. Gives the time of the last look that
/// found it otherwise, or of the beginning.
fn await_listed(
    service: &Service,
    group: u8,
    receiver: &str,
    wanted: bool,
) -> Result<u64, LabError> {
    let address = service.address(receiver)?;
    let deadline = Instant::now() + LISTS;
    let mut otherwise = boot_time_us();
    loop {
        let looked = boot_time_us();
        let view = service.status(None)?;
        let mut groups = view.groups.iter().filter(|of| of.group == group);
        let is_listed = groups.any(|of| of.receivers.iter().any(|of| of.address == address));
        if is_listed == wanted {
            return Ok(otherwise);
        }
        otherwise = looked;
        if Instant::now() > deadline {
            let what = if wanted { "on" } else { "off" };
            let failure = format!("is not {what} its list within {} s", LISTS.as_secs());
            return Err(match service.agents.get(receiver) {
                Some(agent) => agent.process.failure(failure),
                None => LabError::Options(format!("{receiver} {failure}")),
            });
        }
        interrupt::wait_until(Instant::now() + Duration::from_millis(5))?;
    }
}

/// Resident KiB of every process that goes on, by id.
fn memory(service: &mut Service) -> Result<BTreeMap<u32, u64>, LabError> {
    let switches: Vec<String> = service.switches().collect();
    let names = switches.into_iter().chain(["controller".to_owned()]);
    let mut ids = Vec::new();
    for name in names {
        ids.extend(service.lab.process(&name).map(|process| process.id()));
    }
    let senders = service.agents.values();
    let senders = senders.filter(|agent| agent.part == Part::Sender);
    ids.extend(senders.map(|agent| agent.process.id()));
    let resident = |id: u32| {
        let path = format!("/proc/{id}/status");
        let status = fs::read_to_string(&path)
            .map_err(|reason| LabError::file(std::path::Path::new(&path), reason))?;
        Ok((id, resident_kib(&status).unwrap_or_default()))
    };
    ids.into_iter().map(resident).collect()
}

/// The resident KiB in a `/proc/PID/status` (proc(5)).
fn resident_kib(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Most KiB by which a process grew.
fn growth(before: &BTreeMap<u32, u64>, after: &BTreeMap<u32, u64>) -> u64 {
    let grew = after.iter().filter_map(|(id, kib)| {
        let was = before.get(id)?;
        Some(kib.saturating_sub(*was))
    });
    grew.max().unwrap_or_default()
}

/// Times of the messages to each group, in their order.
struct Messages {
    sent: BTreeMap<u8, Vec<u64>>,
    completed: BTreeMap<u8, Vec<u64>>,
}

impl Messages {
    fn of(history: &History) -> Self {
        let mut all = Self {
            sent: BTreeMap::new(),
            completed: BTreeMap::new(),
        };
        let mut groups: BTreeMap<u64, BTreeSet<u8>> = BTreeMap::new();
        for event in &history.events {
            match event.kind {
                EventKind::Of(MulticastEvent::Sent { message, to, .. }) => {
                    let to: BTreeSet<u8> = (0..GROUPS).filter(|of| to >> of & 1 == 1).collect();
                    for group in &to {
                        all.sent.entry(*group).or_default().push(event.at);
                    }
                    groups.insert(message, to);
                }
                EventKind::Of(MulticastEvent::Completed { message, .. }) => {
                    for group in groups.remove(&message).unwrap_or_default() {
                        all.completed.entry(group).or_default().push(event.at);
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// Messages to `group` that were sent in a time.
    fn sent(&self, group: u8, from: u64, until: u64) -> u64 {
        let times = self.sent.get(&group).map_or(&[][..], Vec::as_slice);
        let begins = times.partition_point(|at| *at <= from);
        let ends = times.partition_point(|at| *at < until);
        ends.saturating_sub(begins) as u64
    }

    /// Time in ms from `until` to the first message to `group` that is complete behind it; that to
    /// the end of time if there is none.
    fn resumes_ms(&self, group: u8, until: u64) -> f64 {
        let times = self.completed.get(&group).map_or(&[][..], Vec::as_slice);
        let first = times.get(times.partition_point(|at| *at <= until));
        first.map_or(f64::INFINITY, |at| (at - until) as f64 / 1000.0)
    }
}

impl StopsReport {
    fn add(&mut self, of: Measured, messages: &Messages) {
        let stop = Stop {
            sent: messages.sent(of.group, of.from, of.until),
            resumes_ms: messages.resumes_ms(of.group, of.until),
            receiver: of.receiver,
            group: of.group,
            end: of.end,
            grew_kib: of.grew_kib,
        };
        self.ends.entry(stop.end).or_default().add(&stop);
        self.stops.push(stop);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record;
    use super::*;

    fn messages() -> Messages {
        let lines = "\
            1000 sent node=1 message=1 to=0 digest=1\n\
            2000 sent node=1 message=2 to=0,1 digest=2\n\
            3000 completed node=1 message=1\n\
            4000 sent node=1 message=3 to=1 digest=3\n\
            9000 completed node=1 message=2\n\
            9500 completed node=1 message=3\n";
        let events = record::events(lines).unwrap();
        Messages::of(&record::history(events, 1, 1))
    }

    fn stopped(group: u8, from: u64, until: u64, grew_kib: u64) -> Measured {
        Measured {
            receiver: "h1".to_owned(),
            group,
            end: End::Returns,
            from,
            until,
            grew_kib,
        }
    }

    fn report() -> StopsReport {
        StopsReport {
            seed: 1,
            counts: report::Counts::default(),
            stops: Vec::new(),
            ends: BTreeMap::new(),
            violations: Vec::new(),
        }
    }

    #[test]
    fn messages_count_for_each_group_that_they_address() {
        let of = messages();
        assert_eq!(of.sent(0, 1000, 8000), 1);
        assert_eq!(of.sent(1, 1000, 8000), 2);
        assert_eq!(of.sent(1, 1000, 4000), 1);
        assert_eq!(of.resumes_ms(0, 3000), 6.0);
        assert_eq!(of.resumes_ms(1, 3000), 6.0);
        assert_eq!(of.resumes_ms(1, 9000), 0.5);
        assert_eq!(of.resumes_ms(0, 9000), f64::INFINITY);
    }

    #[test]
    fn a_stop_is_judged_by_messages_time_and_memory() {
        let of = messages();
        let mut report = report();
        report.add(stopped(1, 1000, 8000, 12), &of);
        assert!(report.met());
        assert_eq!(report.ends[&End::Returns].sent, 2);
        assert_eq!(report.ends[&End::Returns].resumes_ms, 1.0);
        report.add(stopped(1, 1000, 8000, GROWS_KIB + 1), &of);
        assert!(!report.met());
        assert!(report.to_string().contains("NOT kept"));
    }

    #[test]
    fn messages_that_do_not_go_on_are_not_what_is_promised() {
        let mut report = report();
        report.add(stopped(0, 1000, 9400, 0), &messages());
        assert!(!report.met());
    }

    #[test]
    fn memory_is_what_the_system_says_and_grows_by_process() {
        let status = "Name:\tstateplane\nVmRSS:\t   5120 kB\nThreads:\t3\n";
        assert_eq!(resident_kib(status), Some(5120));
        assert_eq!(resident_kib("Name:\tstateplane\n"), None);
        let before = BTreeMap::from([(1, 100), (2, 100), (3, 50)]);
        let after = BTreeMap::from([(1, 90), (2, 130), (4, 900)]);
        assert_eq!(growth(&before, &after), 30);
    }
}
