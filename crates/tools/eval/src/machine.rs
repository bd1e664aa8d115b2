//! The machine that figures were taken on.

#![allow(clippy::disallowed_methods, reason = "figures bear their day")]

use serde::Serialize;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Properties of a machine on which figures depend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// The memory, in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The day, as year-month-day in UTC.
    pub day: String,
    /// The kernel's mean number of runnable tasks over the last minute, before the experiment:
    /// above 0 something else may have run.
    pub load: String,
}

impl Machine {
    /// This machine, today. What cannot be read is `unknown`.
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            let value = line.and_then(|line| line.split_once(':'));
            value.map(|(_, value)| value.trim().to_owned())
        };
        let unknown = || "unknown".to_owned();
        let memory = value(&read("/proc/meminfo"), "MemTotal");
        let kib = memory.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        let seconds = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let load = read("/proc/loadavg");
        Self {
            processor: value(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib.unwrap_or(0) / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            day: day(seconds / 86_400),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}, {} processors, {} MiB, Linux {}, {}, load {}",
            self.processor, self.processors, self.memory_mib, self.kernel, self.day, self.load
        )
    }
}

/// A day counted from 1970-01-01, in the Gregorian calendar (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", 2014).
fn day(since_1970: u64) -> String {
    let days = since_1970 + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{date:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_named_by_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(59), "1970-03-01");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(20_454), "2026-01-01");
    }

    #[test]
    fn this_machine_has_a_processor() {
        let here = Machine::here();
        assert!(here.processors >= 1);
        assert!(!here.kernel.is_empty());
    }
}
