//! Assignment of processors to processes, and prevention of their sleep: the processor of a
//! process, and how deep it slept when a packet came, change a round trip by more than the compared
//! differences.

use crate::network::SWITCH;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// File that takes the longest time, in µs, that idle processors may need to wake up (kernel
/// documentation, "PM Quality Of Service Interface"). It counts as long as the file stays open.
const WAKE_UP_LATENCY: &str = "/dev/cpu_dma_latency";
/// Commands that run another command on some processors, or change its priority.
const TASKSET: &str = "taskset";
const CHRT: &str = "chrt";
/// The programs that placed commands begin with, and their Debian package.
pub const TOOLS: [(&str, &str); 2] = [(TASKSET, "util-linux"), (CHRT, "util-linux")];

/// Lists of processors, as `taskset --cpu-list` takes them: one for the switch alone, one for
/// the measuring host, and the rest for stores and controllers, who share the host's if there
/// is no rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processors {
    /// The switch's.
    pub switch: String,
    /// The measuring host's.
    pub host: String,
    /// All others'.
    pub others: String,
    /// True if the measuring host may go before all others, which takes rights that root of a user
    /// namespace lacks.
    pub host_first: bool,
}

impl Processors {
    /// Processors that this process may use; `None` if there is just one, or if they cannot be
    /// determined.
    pub fn here() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let name = "Cpus_allowed_list:";
        let allowed = status.lines().find_map(|line| line.strip_prefix(name))?;
        let mut words = vec!["true".to_owned()];
        go_first(&mut words);
        let mut trial = Command::new(&words[0]);
        let trial = trial.args(&words[1..]).stderr(Stdio::null()).status();
        Some(Self {
            host_first: trial.is_ok_and(|status| status.success()),
            ..Self::of(allowed.trim())?
        })
    }

    /// Shares out a list of numbers and ranges, such as `0-2,5`.
    fn of(allowed: &str) -> Option<Self> {
        let mut numbers: Vec<u32> = Vec::new();
        for part in allowed.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().ok();
            numbers.extend(number(first)?..=number(last)?);
        }
        let (host, rest) = numbers.split_first()?;
        let (switch, rest) = rest.split_first()?;
        let others: Vec<String> = rest.iter().map(u32::to_string).collect();
        Some(Self {
            switch: switch.to_string(),
            host: host.to_string(),
            others: if others.is_empty() {
                host.to_string()
            } else {
                others.join(",")
            },
            host_first: false,
        })
    }

    /// Puts in front of a command what runs it on its processors.
    pub fn place(&self, process: &str, command: &mut Vec<String>) {
        let list = match process {
            SWITCH => &self.switch,
            _ => &self.others,
        };
        pin(list, command);
    }

    /// Places the measuring host. No other process runs before it on its processor, so that times
    /// are the switch's; but a host that sends without a pause has low priority, or the stores
    /// would never run.
    pub fn place_host(&self, floods: bool, command: &mut Vec<String>) {
        pin(&self.host, command);
        if floods {
            command.splice(..0, [CHRT, "--idle", "0"].map(str::to_owned));
        } else if self.host_first {
            go_first(command);
        }
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "processor {} for the switch alone, {} for the measuring host, {} for all others",
            self.switch, self.host, self.others
        )?;
        if self.host_first {
            write!(
                f,
                "; the host that takes times goes before others on its own"
            )
        } else {
            Ok(())
        }
    }
}

fn go_first(command: &mut Vec<String>) {
    command.splice(..0, [CHRT, "--rr", "1"].map(str::to_owned));
}

fn pin(list: &str, command: &mut Vec<String>) {
    let words = [TASKSET, "--cpu-list", list].map(str::to_owned);
    command.splice(..0, words);
}

/// Time that a processor has worked since the machine started, in the system's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worked {
    busy: u64,
    all: u64,
}

impl Worked {
    /// Working time of each processor, by its number; empty where the system does not tell.
    pub fn so_far() -> BTreeMap<u32, Self> {
        Self::of(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// Reads the lines of `/proc/stat` (proc_stat(5)): processor, then time in user mode, at
    /// low priority, in the kernel, idle, waiting for disks, for interrupts, for what they
    /// leave to do, and taken by the hypervisor for others.
    fn of(text: &str) -> BTreeMap<u32, Self> {
        let line = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split(' ');
            let number = words.next()?.parse().ok()?;
            let times: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
            let [user, nice, system, idle, disks, interrupts, later, taken] = times[..] else {
                return None;
            };
            let busy = user + nice + system + interrupts + later;
            let all = busy + idle + disks + taken;
            Some((number, Self { busy, all }))
        };
        text.lines().filter_map(line).collect()
    }

    /// Share of the time since `before` in which the processor worked; `None` if no time has
    /// passed.
    pub fn share_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all != 0)?;
        Some(self.busy.saturating_sub(before.busy) as f64 / all as f64)
    }
}

/// While it lives, idle processors wait for work without sleeping.
#[derive(Debug)]
pub struct Awake {
    _open: File,
}

impl Awake {
    /// Asks the kernel for it; `None` where it does not take such wishes.
    pub fn keep() -> Option<Self> {
        Self::keep_by(Path::new(WAKE_UP_LATENCY))
    }

    fn keep_by(path: &Path) -> Option<Self> {
        let mut file = OpenOptions::new().write(true).open(path).ok()?;
        // In one write: the kernel takes a number in binary, of just this length.
        let written = file.write(&0i32.to_ne_bytes()).ok()?;
        (written == size_of::<i32>()).then_some(Self { _open: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_shared_out() {
        let of = |list| {
            let it = Processors::of(list)?;
            Some([it.host, it.switch, it.others])
        };
        let owned = |all: [&str; 3]| Some(all.map(str::to_owned));
        assert_eq!(of("0-1"), owned(["0", "1", "0"]));
        assert_eq!(of("2,5-7"), owned(["2", "5", "6,7"]));
        assert_eq!(of("3"), None);
        for wrong in ["", "a", "1-", "-2"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_switch_runs_where_nobody_else_does() {
        let processors = Processors::of("0-1").unwrap();
        let command = |process| {
            let mut words = vec!["stateplane".to_owned()];
            processors.place(process, &mut words);
            words.join(" ")
        };
        assert_eq!(command(SWITCH), "taskset --cpu-list 1 stateplane");
        assert_eq!(command("st0"), "taskset --cpu-list 0 stateplane");
        assert_eq!(command("controller"), "taskset --cpu-list 0 stateplane");
    }

    #[test]
    fn the_host_goes_first_where_it_may_and_takes_times() {
        let mut processors = Processors::of("0-1").unwrap();
        for (may, floods, expected) in [
            (false, false, "taskset --cpu-list 0 probe"),
            (true, false, "chrt --rr 1 taskset --cpu-list 0 probe"),
            (true, true, "chrt --idle 0 taskset --cpu-list 0 probe"),
        ] {
            processors.host_first = may;
            let mut words = vec!["probe".to_owned()];
            processors.place_host(floods, &mut words);
            assert_eq!(words.join(" "), expected);
        }
    }

    #[test]
    fn work_is_told_from_waiting() {
        let before =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n";
        let after =
            "cpu1 1 0 2 3 0 0 0 0 0 0\nintr 5 6\ncpu0 11 12 13 34 15 16 17 28 9 0\ncpu2 1 2";
        let [before, after] = [before, after].map(Worked::of);
        assert_eq!(before.keys().collect::<Vec<_>>(), [&0, &1]);
        let share = |number: u32| after[&number].share_since(before[&number]);
        assert_eq!(share(0), Some(50.0 / 110.0));
        assert_eq!(share(1), Some(0.5));
        assert_eq!(after[&0].share_since(after[&0]), None);
    }

    #[test]
    fn the_wish_is_a_zero_in_binary() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("latency");
        assert!(Awake::keep_by(&path).is_none());
        fs::write(&path, "").unwrap();
        assert!(Awake::keep_by(&path).is_some());
        assert_eq!(fs::read(&path).unwrap(), [0; 4]);
    }
}
