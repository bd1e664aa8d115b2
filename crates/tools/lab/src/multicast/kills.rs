//! Leaders killed one after the other, and how long deliveries pause for that.

use super::{GROUPS, Options, Service, report};
use crate::error::LabError;
use crate::interrupt;
use serde::Serialize;
use stateplane_history::multicast::{EventKind, History, MulticastEvent};
use stateplane_host::clock::boot_time_us;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time without faults before each kill.
const QUIET: Duration = Duration::from_secs(1);
/// Time for which a leader stays dead.
const DEAD: Duration = Duration::from_millis(1500);
/// Time in ms after which the controller takes a silent switch for dead, in
/// `lab/multicast/deployment.toml`.
const DETECTION_MS: u64 = 50;
/// Time in ms after detection within which deliveries go on.
const REPAIR_MS: u64 = 50;
/// Longest time in ms between two deliveries in a group that shares no message with the victim's.
const APART_MS: u64 = 10;

/// Effect of a kill on a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The victim led it.
    Led,
    /// Another switch leads it, and messages address it together with a group that the victim led.
    Shares,
    /// Another switch leads it, and no message addresses it together with another group.
    Apart,
}

impl Role {
    fn of(group: u8, led: &[u8], several: u32) -> Role {
        match (led.contains(&group), several) {
            (true, _) => Role::Led,
            (false, 0) => Role::Apart,
            (false, _) => Role::Shares,
        }
    }

    /// Longest time in ms that may lie between two deliveries.
    fn bound_ms(self) -> u64 {
        match self {
            Role::Led | Role::Shares => DETECTION_MS + REPAIR_MS,
            Role::Apart => APART_MS,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Led => "led",
            Role::Shares => "shares",
            Role::Apart => "apart",
        })
    }
}

/// One kill.
#[derive(Clone, Debug, Serialize)]
pub struct Kill {
    /// The switch's name.
    pub switch: String,
    /// Groups that it led.
    pub led: Vec<u8>,
    /// Longest time in ms between two deliveries of a receiver until the switch was started again, by
    /// group.
    pub gaps_ms: Vec<f64>,
    /// Longest such time of all groups that began and ended in the second before the kill.
    pub quiet_ms: f64,
    /// Longest such time of all groups that began and ended while the switch came back.
    pub return_ms: f64,
}

/// Pauses of the groups to which a kill meant one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gaps {
    /// Longest time in ms between two deliveries of a receiver, for each kill and group, in ascending
    /// order.
    pub gaps_ms: Vec<f64>,
    /// Longest time in ms that is promised.
    pub bound_ms: u64,
}

impl Gaps {
    fn add(&mut self, gap_ms: f64) {
        let at = self.gaps_ms.partition_point(|it| *it <= gap_ms);
        self.gaps_ms.insert(at, gap_ms);
    }

    /// Groups, once for each kill.
    pub fn kills(&self) -> usize {
        self.gaps_ms.len()
    }

    /// The upper one of the two in the middle, if there are two; 0 without a kill.
    pub fn median_ms(&self) -> f64 {
        let middle = self.gaps_ms.get(self.kills() / 2);
        middle.copied().unwrap_or_default()
    }

    /// The longest; 0 without a kill.
    pub fn longest_ms(&self) -> f64 {
        self.gaps_ms.last().copied().unwrap_or_default()
    }

    /// Those that are within what is promised.
    pub fn within(&self) -> usize {
        let bound = self.bound_ms as f64;
        self.gaps_ms.partition_point(|gap| *gap <= bound)
    }
}

/// Report of the kills.
#[derive(Clone, Debug, Serialize)]
pub struct KillsReport {
    /// The seed.
    pub seed: u64,
    /// Counts of the history.
    #[serde(flatten)]
    pub counts: report::Counts,
    /// Time in ms after which a silent switch is taken for dead.
    pub detection_ms: u64,
    /// The kills, in their order.
    pub kills: Vec<Kill>,
    /// All of them, by what they meant to groups.
    pub roles: BTreeMap<Role, Gaps>,
    /// Pauses that began and ended in the seconds before the kills.
    pub quiet: Gaps,
    /// Pauses that began and ended while switches came back: each loads its program on processors that
    /// forward.
    pub returns: Gaps,
    /// Objections of the checkers.
    pub violations: Vec<String>,
}

impl KillsReport {
    /// True if no checker objected and no deliveries paused longer than is promised.
    pub fn met(&self) -> bool {
        let all_within = |gaps: &Gaps| gaps.within() == gaps.kills();
        self.violations.is_empty() && self.roles.values().all(all_within)
    }
}

impl fmt::Display for KillsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, kills) = (self.seed, self.kills.len());
        writeln!(f, "multicast, seed {seed}: {kills} leaders killed")?;
        write!(f, "{}", self.counts)?;
        writeln!(
            f,
            "  group       kills  median pause ms  longest ms  promised ms  within"
        )?;
        for (role, gaps) in &self.roles {
            writeln!(
                f,
                "  {role:10} {:6} {:16.1} {:11.1} {:12} {:7}",
                gaps.kills(),
                gaps.median_ms(),
                gaps.longest_ms(),
                gaps.bound_ms,
                gaps.within()
            )?;
        }
        for (name, gaps) in [("returns", &self.returns), ("no fault", &self.quiet)] {
            let (median, longest) = (gaps.median_ms(), gaps.longest_ms());
            writeln!(f, "  {name:10} {kills:6} {median:16.1} {longest:11.1}")?;
        }
        for violation in &self.violations {
            writeln!(f, "  VIOLATION   {violation}")?;
        }
        let verdict = if self.met() { "kept" } else { "NOT kept" };
        writeln!(
            f,
            "  {verdict}: deliveries pause for {} ms at most (detection {} ms and {REPAIR_MS} ms), \
             and for {APART_MS} ms in groups that share no message",
            self.detection_ms + REPAIR_MS,
            self.detection_ms
        )
    }
}

/// A kill while it is measured. Times are µs of the hosts' clock.
struct Measured {
    switch: String,
    led: Vec<u8>,
    quiet: u64,
    from: u64,
    /// The switch is started again.
    returns: u64,
    until: u64,
}

/// Kills `kills` leaders under the load of `options`, of each group in turn, and starts each again.
/// Every group is whole before the next kill.
///
/// # Errors
/// As [`run`](super::run).
pub fn run(options: &Options, kills: u32) -> Result<KillsReport, LabError> {
    let mut service = Service::start(options)?;
    let mut measured = Vec::new();
    for number in 0..kills {
        let group = (number % u32::from(GROUPS)) as u8;
        measured.push(kill(&mut service, group)?);
    }
    let history = service.finish(options)?;
    super::write(
        &options
            .directory
            .join(format!("kills-{}.txt", options.seed)),
        &history,
    )?;
    let mut report = KillsReport {
        seed: options.seed,
        counts: report::Counts::of(&history),
        detection_ms: DETECTION_MS,
        kills: Vec::new(),
        roles: BTreeMap::new(),
        quiet: Gaps::default(),
        returns: Gaps::default(),
        violations: report::violations(&history),
    };
    let deliveries = Deliveries::of(&history);
    for kill in &measured {
        report.add(kill, &deliveries, options.load.several);
    }
    Ok(report)
}

fn kill(service: &mut Service, group: u8) -> Result<Measured, LabError> {
    service.wait_whole()?;
    let quiet = boot_time_us();
    interrupt::wait_until(Instant::now() + QUIET)?;
    let leaders = service.leaders()?;
    let switch = leaders.get(&group).cloned();
    let switch = switch.ok_or_else(|| LabError::Options(format!("group {group} has no leader")))?;
    let led = leaders.iter().filter(|(_, of)| **of == switch);
    let led = led.map(|(group, _)| *group).collect();
    let from = boot_time_us();
    if let Some(process) = service.lab.process(&switch) {
        process.kill();
    }
    interrupt::wait_until(Instant::now() + DEAD)?;
    let returns = boot_time_us();
    service.lab.start(&switch)?;
    service.wait_whole()?;
    Ok(Measured {
        switch,
        led,
        quiet,
        from,
        returns,
        until: boot_time_us(),
    })
}

/// Times of the deliveries of each receiver, by group.
struct Deliveries(BTreeMap<(u8, u32), Vec<u64>>);

impl Deliveries {
    fn of(history: &History) -> Self {
        let mut times: BTreeMap<(u8, u32), Vec<u64>> = BTreeMap::new();
        for event in &history.events {
            if let EventKind::Of(MulticastEvent::Delivered { node, group, .. }) = event.kind {
                times.entry((group, node)).or_default().push(event.at);
            }
        }
        Self(times)
    }

    /// Longest time in ms between two deliveries of a receiver of `group`, of which one is later
    /// than `from` and the other earlier than `until`.
    fn longest_ms(&self, group: u8, from: u64, until: u64) -> f64 {
        self.longest(group, until - from, |times| {
            let first = times.partition_point(|at| *at <= from).saturating_sub(1);
            let last = times.partition_point(|at| *at < until);
            first..(last + 1).min(times.len()).max(first)
        })
    }

    /// Longest time in ms between two deliveries of a receiver of `group`, both of them in the time
    /// from `from` to `until`: a kill at `until` has no part in it.
    fn longest_within_ms(&self, group: u8, from: u64, until: u64) -> f64 {
        self.longest(group, until - from, |times| {
            let first = times.partition_point(|at| *at < from);
            first..times.partition_point(|at| *at <= until)
        })
    }

    /// Longest time in ms between two deliveries that `part` takes of each receiver of `group`; `all`
    /// µs if there are none.
    fn longest(&self, group: u8, all: u64, part: impl Fn(&[u64]) -> Range<usize>) -> f64 {
        let receivers = self.0.iter().filter(|((of, _), _)| *of == group);
        let gaps = receivers.flat_map(|(_, times)| {
            let taken = &times[part(times)];
            taken.windows(2).map(|pair| pair[1] - pair[0])
        });
        gaps.max().unwrap_or(all) as f64 / 1000.0
    }
}

impl KillsReport {
    fn add(&mut self, kill: &Measured, deliveries: &Deliveries, several: u32) {
        let groups = 0..GROUPS;
        let during = |group| deliveries.longest_ms(group, kill.from, kill.returns);
        let during: Vec<f64> = groups.clone().map(during).collect();
        let within = |from, until| {
            let longest = |group| deliveries.longest_within_ms(group, from, until);
            groups.clone().map(longest).fold(0.0, f64::max)
        };
        let quiet_ms = within(kill.quiet, kill.from);
        let return_ms = within(kill.returns, kill.until);
        self.quiet.add(quiet_ms);
        self.returns.add(return_ms);
        for (group, gap) in groups.zip(&during) {
            let role = Role::of(group, &kill.led, several);
            let all = self.roles.entry(role).or_default();
            all.bound_ms = role.bound_ms();
            all.add(*gap);
        }
        self.kills.push(Kill {
            switch: kill.switch.clone(),
            led: kill.led.clone(),
            gaps_ms: during,
            quiet_ms,
            return_ms,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliveries(of: &[(u8, u32, &[u64])]) -> Deliveries {
        let times = of
            .iter()
            .map(|(group, node, times)| ((*group, *node), times.to_vec()));
        Deliveries(times.collect())
    }

    #[test]
    fn the_deployment_of_the_lab_has_the_detection_time_and_the_groups() {
        let text = include_str!("../../../../../lab/multicast/deployment.toml");
        let file: toml::Table = toml::from_str(text).unwrap();
        let number = |key: &str| file["multicast"][key].as_integer();
        assert_eq!(number("detection_ms"), Some(DETECTION_MS as i64));
        assert_eq!(number("groups"), Some(GROUPS.into()));
    }

    #[test]
    fn a_pause_counts_if_part_of_it_is_behind_the_kill() {
        let of = deliveries(&[
            (0, 1, &[1_000, 9_000, 10_000, 90_000, 91_000, 200_000]),
            (0, 2, &[9_500, 60_000, 100_000]),
            (1, 3, &[9_000]),
        ]);
        assert_eq!(of.longest_ms(0, 10_500, 95_000), 109.0);
        assert_eq!(of.longest_ms(0, 10_500, 90_500), 80.0);
        assert_eq!(of.longest_ms(0, 9_200, 9_600), 50.5);
        // Nothing came any more.
        assert_eq!(of.longest_ms(1, 10_000, 30_000), 20.0);
        assert_eq!(of.longest_ms(2, 10_000, 30_000), 20.0);
    }

    #[test]
    fn the_pause_of_a_kill_is_not_one_of_the_time_before_it() {
        let of = deliveries(&[
            (0, 1, &[1_000, 9_000, 10_000, 90_000]),
            (0, 2, &[500, 7_000, 11_000, 95_000]),
        ]);
        assert_eq!(of.longest_within_ms(0, 900, 12_000), 8.0);
        assert_eq!(of.longest_within_ms(0, 8_000, 12_000), 1.0);
        assert_eq!(of.longest_ms(0, 8_000, 12_000), 84.0);
        // Nothing came.
        assert_eq!(of.longest_within_ms(0, 12_000, 80_000), 68.0);
    }

    #[test]
    fn pauses_are_judged_by_what_the_kill_means_to_the_group() {
        let kill = Measured {
            switch: "leaf1".to_owned(),
            led: vec![1],
            quiet: 0,
            from: 10_000,
            returns: 200_000,
            until: 300_000,
        };
        let mut report = KillsReport {
            seed: 1,
            counts: report::Counts::default(),
            detection_ms: DETECTION_MS,
            kills: Vec::new(),
            roles: BTreeMap::new(),
            quiet: Gaps::default(),
            returns: Gaps::default(),
            violations: Vec::new(),
        };
        let of = deliveries(&[
            (0, 1, &[9_000, 12_000, 199_000, 201_000, 240_000]),
            (1, 2, &[8_000, 100_000, 199_500, 201_000, 230_000, 290_000]),
        ]);
        report.add(&kill, &of, 300);
        assert_eq!(report.returns.longest_ms(), 60.0);
        assert_eq!(report.roles[&Role::Led].longest_ms(), 99.5);
        assert_eq!(report.roles[&Role::Shares].longest_ms(), 187.0);
        assert_eq!(report.roles[&Role::Led].within(), 1);
        assert_eq!(report.roles[&Role::Shares].within(), 0);
        assert!(!report.met());
        assert!(report.to_string().contains("NOT kept"));
        report.roles.remove(&Role::Shares);
        assert!(report.met());
        report.add(&kill, &of, 0);
        assert_eq!(report.roles[&Role::Apart].bound_ms, APART_MS);
        assert!(!report.met());
    }

    #[test]
    fn of_pauses_the_median_the_longest_and_those_within_are_told() {
        let mut gaps = Gaps {
            bound_ms: 100,
            ..Gaps::default()
        };
        assert_eq!(
            (gaps.kills(), gaps.median_ms(), gaps.longest_ms()),
            (0, 0.0, 0.0)
        );
        for gap in [120.0, 40.0, 100.0, 60.0] {
            gaps.add(gap);
        }
        assert_eq!(
            (gaps.kills(), gaps.median_ms(), gaps.longest_ms()),
            (4, 100.0, 120.0)
        );
        assert_eq!(gaps.within(), 3);
    }
}
