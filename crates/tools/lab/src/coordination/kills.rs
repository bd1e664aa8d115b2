//! Switches killed one after the other, and how long operations wait for that.

use super::line::{Line, OperationLine};
use super::workers::group_name;
use super::{Options, Service, operate, wait_whole};
use crate::error::LabError;
use crate::interrupt;
use crate::running::Lab;
use serde::{Deserialize, Serialize};
use stateplane_history::coordination::checkers;
use stateplane_host::clock::boot_time_us;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Switches of `lab/coordination.toml`, by number from 1.
const SWITCHES: u8 = 4;
/// Time without faults before the first kill and between two.
const QUIET: Duration = Duration::from_secs(1);
/// Time for which a switch stays dead. Operations that are invoked then, or wait then, count.
const DEAD: Duration = Duration::from_secs(2);
/// Time in ms after which the controller takes a silent switch for dead, in
/// `lab/coordination/deployment.toml`.
const DETECTION_MS: u64 = 100;
/// Time in ms after detection within which operations are answered (NetChain §8.4 is the figure
/// that this compares with).
const REPAIR_MS: u64 = 100;

/// Place of a switch in a group's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// First member: numbers the writes.
    Head,
    /// Neither first nor last.
    Middle,
    /// Last member: answers reads of the chain.
    Tail,
    /// The group has other members.
    Elsewhere,
}

impl Position {
    fn of(switch: Ipv4Addr, members: &[Ipv4Addr]) -> Position {
        match members.iter().position(|member| *member == switch) {
            None => Position::Elsewhere,
            Some(0) => Position::Head,
            Some(at) if at + 1 == members.len() => Position::Tail,
            Some(_) => Position::Middle,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Position::Head => "head",
            Position::Middle => "middle",
            Position::Tail => "tail",
            Position::Elsewhere => "elsewhere",
        })
    }
}

/// Operations of the groups in which the victim had one position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Waits {
    /// Kills that hit at least one of the groups used.
    pub kills: usize,
    /// Operations that were open while the victim was dead.
    pub operations: usize,
    /// Longest time in ms from an invocation to its response.
    pub longest_ms: f64,
    /// Operations whose outcome nobody knows.
    pub unknown: usize,
}

/// One kill.
#[derive(Clone, Debug, Serialize)]
pub struct Kill {
    /// The switch's name.
    pub switch: String,
    /// Longest time in ms from an invocation to its response, by the victim's position.
    pub longest_ms: BTreeMap<Position, f64>,
}

/// Report of the kills.
#[derive(Clone, Debug, Serialize)]
pub struct KillsReport {
    /// The seed.
    pub seed: u64,
    /// Operations that were asked.
    pub operations: usize,
    /// Time in ms after which a silent switch is taken for dead.
    pub detection_ms: u64,
    /// Bound in ms for operations of the victim's groups.
    pub bound_ms: u64,
    /// The kills, in their order.
    pub kills: Vec<Kill>,
    /// All of them, by the victim's position.
    pub positions: BTreeMap<Position, Waits>,
    /// Objections of the checkers.
    pub violations: Vec<String>,
}

impl KillsReport {
    /// True if no checker objected and no operation waited longer than the bound.
    pub fn met(&self) -> bool {
        let within = |waits: &Waits| waits.longest_ms <= self.bound_ms as f64 && waits.unknown == 0;
        self.violations.is_empty() && self.positions.values().all(within)
    }
}

impl fmt::Display for KillsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "coordination, seed {}: {} kills, {} operations",
            self.seed,
            self.kills.len(),
            self.operations
        )?;
        writeln!(f, "  victim is   kills  operations  longest ms  unknown")?;
        for (position, waits) in &self.positions {
            writeln!(
                f,
                "  {position:10} {:6} {:11} {:11.1} {:8}",
                waits.kills, waits.operations, waits.longest_ms, waits.unknown
            )?;
        }
        for violation in &self.violations {
            writeln!(f, "  VIOLATION   {violation}")?;
        }
        let verdict = if self.met() { "kept" } else { "NOT kept" };
        writeln!(
            f,
            "  {verdict}: no operation waits longer than {} ms (detection {} ms and {REPAIR_MS} ms)",
            self.bound_ms, self.detection_ms
        )
    }
}

/// A line of `stateplane ctl coordination chains --json`.
#[derive(Deserialize)]
pub(crate) struct ChainLine {
    pub(crate) group: u16,
    members: Vec<MemberLine>,
}

#[derive(Deserialize)]
struct MemberLine {
    address: Ipv4Addr,
    alive: bool,
}

impl ChainLine {
    /// Addresses of the members, the head first.
    pub(crate) fn members(&self) -> Vec<Ipv4Addr> {
        self.members.iter().map(|member| member.address).collect()
    }

    /// True if a member lives that the configuration names.
    pub(crate) fn lives(&self) -> bool {
        self.members.iter().any(|member| member.alive)
    }
}

/// The chains of all groups.
///
/// # Errors
/// `LAB006`, or `LAB013` if the controller's answer cannot be read.
pub(crate) fn chains(lab: &Lab) -> Result<Vec<ChainLine>, LabError> {
    let said = operate(lab, &["chains", "--json"])?;
    serde_json::from_str(&said)
        .map_err(|error| LabError::Options(format!("`ctl coordination chains`: {error}")))
}

/// A kill while it is measured. Times are ns of the workers' clock.
struct Measured {
    switch: u8,
    from_ns: u64,
    until_ns: u64,
    positions: BTreeMap<String, Position>,
}

/// Kills the head, the middle and the tail of groups in turn, each `kills` times, under the load of
/// `options`, and starts it again. The victim is the switch that has the position in most groups.
/// Every group is whole before the next kill.
///
/// # Errors
/// As [`run`](super::run).
pub fn run(options: &Options, kills: u32) -> Result<KillsReport, LabError> {
    let mut service = Service::start(options, false)?;
    let mut measured = Vec::new();
    for _ in 0..kills {
        for position in [Position::Head, Position::Middle, Position::Tail] {
            wait_whole(&service.lab)?;
            interrupt::wait_until(Instant::now() + QUIET)?;
            measured.push(kill(&mut service, position, options.load.groups)?);
        }
    }
    wait_whole(&service.lab)?;
    let finished = service.finish(options)?;
    let operations = finished.lines.iter().filter_map(|line| match line {
        Line::Operation(line) => Some(&**line),
        _ => None,
    });
    let operations: Vec<&OperationLine> = operations.collect();
    let violations = checkers::judge(&finished.history).into_iter();
    let violations = violations.map(|violation| violation.to_string());
    let lost = finished.lost.iter();
    let lost = lost.map(|group| format!("{group} lost its members, which were killed one by one"));
    let mut report = KillsReport {
        seed: options.seed,
        operations: operations.len(),
        detection_ms: DETECTION_MS,
        bound_ms: DETECTION_MS + REPAIR_MS,
        kills: Vec::new(),
        positions: BTreeMap::new(),
        violations: violations.chain(lost).collect(),
    };
    for kill in &measured {
        report.add(kill, &operations);
    }
    Ok(report)
}

/// Address of a switch.
fn address(switch: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 20, 0, switch)
}

/// Kills the switch that has `position` in most of the first `groups` groups.
fn kill(service: &mut Service, position: Position, groups: u16) -> Result<Measured, LabError> {
    let chains = chains(&service.lab)?;
    let used = chains.iter().filter(|chain| chain.group < groups);
    let members: BTreeMap<String, Vec<Ipv4Addr>> = used
        .map(|chain| (group_name(chain.group), chain.members()))
        .collect();
    let switch = victim(position, members.values());
    let positions = members
        .into_iter()
        .map(|(group, members)| (group, Position::of(address(switch), &members)))
        .collect();
    let name = format!("s{switch}");
    let from_ns = boot_time_us() * 1000;
    if let Some(process) = service.lab.process(&name) {
        process.kill();
    }
    interrupt::wait_until(Instant::now() + DEAD)?;
    let until_ns = boot_time_us() * 1000;
    service.lab.start(&name)?;
    Ok(Measured {
        switch,
        from_ns,
        until_ns,
        positions,
    })
}

/// The switch that has `position` in most of the chains, the first of several.
fn victim<'a>(position: Position, chains: impl Iterator<Item = &'a Vec<Ipv4Addr>> + Clone) -> u8 {
    let count = |switch: u8| {
        let at = chains.clone();
        at.filter(|members| Position::of(address(switch), members) == position)
            .count()
    };
    let switches = (1..=SWITCHES).rev();
    switches.max_by_key(|switch| count(*switch)).unwrap_or(1)
}

impl KillsReport {
    /// Adds the operations that were open during `kill`.
    fn add(&mut self, kill: &Measured, operations: &[&OperationLine]) {
        let mut waits: BTreeMap<Position, Waits> = BTreeMap::new();
        for line in operations {
            let ended_ns = line.responded_ns.or(line.unknown_ns).unwrap_or(u64::MAX);
            if line.invoked_ns > kill.until_ns || ended_ns < kill.from_ns {
                continue;
            }
            let Some(position) = kill.positions.get(&line.group) else {
                continue;
            };
            let waits = waits.entry(*position).or_default();
            waits.operations += 1;
            match line.responded_ns {
                Some(at) => {
                    let waited = (at - line.invoked_ns) as f64 / 1e6;
                    waits.longest_ms = waits.longest_ms.max(waited);
                }
                None => waits.unknown += 1,
            }
        }
        self.kills.push(Kill {
            switch: format!("s{}", kill.switch),
            longest_ms: waits.iter().map(|(at, of)| (*at, of.longest_ms)).collect(),
        });
        for (position, of) in waits {
            let all = self.positions.entry(position).or_default();
            all.kills += 1;
            all.operations += of.operations;
            all.longest_ms = all.longest_ms.max(of.longest_ms);
            all.unknown += of.unknown;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(group: &str, invoked_ms: u64, responded_ms: Option<u64>) -> OperationLine {
        let text = format!(
            r#"{{"client":1,"operation":1,"group":"{group}","key":"k0","ask":"read","session":1,"handle":0,"invoked_ns":{},"until_ns":9,"responded_ns":null,"outcome":"unknown","number":0}}"#,
            invoked_ms * 1_000_000
        );
        let line: OperationLine = serde_json::from_str(&text).unwrap();
        OperationLine {
            responded_ns: responded_ms.map(|ms| ms * 1_000_000),
            ..line
        }
    }

    #[test]
    fn the_deployment_of_the_lab_has_the_detection_time() {
        let text = include_str!("../../../../../lab/coordination/deployment.toml");
        let file: toml::Table = toml::from_str(text).unwrap();
        let detection = file["coordination"]["detection_ms"].as_integer();
        assert_eq!(detection, Some(DETECTION_MS as i64));
        assert_eq!(
            file["coordination"]["switch"].as_array().map(Vec::len),
            Some(SWITCHES.into())
        );
    }

    #[test]
    fn the_victim_has_the_position_in_most_groups() {
        let chains = [[1, 2, 3], [2, 1, 4], [4, 1, 3]].map(|chain| chain.map(address).to_vec());
        assert_eq!(victim(Position::Head, chains.iter()), 1);
        assert_eq!(victim(Position::Middle, chains.iter()), 1);
        assert_eq!(victim(Position::Tail, chains.iter()), 3);
        assert_eq!(victim(Position::Elsewhere, chains.iter()), 2);
    }

    #[test]
    fn an_operation_counts_for_the_kill_that_it_is_open_in() {
        let [a, b, c] = [1, 2, 3].map(address);
        let positions = [("g0", [a, b, c]), ("g1", [b, c, a]), ("g2", [b, a, c])];
        let mut positions: BTreeMap<String, Position> = positions
            .iter()
            .map(|(group, members)| ((*group).to_owned(), Position::of(a, members)))
            .collect();
        positions.insert("g3".to_owned(), Position::of(a, &[b, c]));
        let kill = Measured {
            switch: 1,
            from_ns: 1_000_000_000,
            until_ns: 3_000_000_000,
            positions,
        };
        let lines = [
            line("g0", 900, Some(1250)),
            line("g0", 900, Some(999)),
            line("g1", 1500, Some(1501)),
            line("g2", 2999, Some(3001)),
            line("g3", 1000, Some(1001)),
            line("g3", 1100, None),
            line("g3", 3001, Some(9000)),
        ];
        let lines: Vec<&OperationLine> = lines.iter().collect();
        let mut report = KillsReport {
            seed: 1,
            operations: lines.len(),
            detection_ms: 200,
            bound_ms: 300,
            kills: Vec::new(),
            positions: BTreeMap::new(),
            violations: Vec::new(),
        };
        report.add(&kill, &lines);
        let waits = |position| {
            let of: &Waits = &report.positions[&position];
            (of.kills, of.operations, of.longest_ms, of.unknown)
        };
        assert_eq!(waits(Position::Head), (1, 1, 350.0, 0));
        assert_eq!(waits(Position::Tail), (1, 1, 1.0, 0));
        assert_eq!(waits(Position::Middle), (1, 1, 2.0, 0));
        assert_eq!(waits(Position::Elsewhere), (1, 2, 1.0, 1));
        assert!(!report.met());
        assert!(report.to_string().contains("NOT kept"));
    }
}
