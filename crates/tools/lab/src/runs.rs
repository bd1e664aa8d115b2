//! Records of running labs, and removal of what dead ones left.
//!
//! A run's namespaces are called `sp<pid>n<number>-<node>` after the process that
//! owns them. Its record in `/run/stateplane-lab` holds when that process started, so
//! that a process which got the same number later is not taken for the owner.

use crate::error::LabError;
use crate::tool;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const RECORDS: &str = "/run/stateplane-lab";
const NAMESPACES: &str = "/run/netns";

/// A lab that was brought up and has not been taken down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Prefix of its namespaces' names, without the dash.
    pub prefix: String,
    /// The topology's name.
    pub topology: String,
    /// Process id of the owner.
    pub owner: u32,
    /// When the owner started, in clock ticks since boot.
    started: u64,
}

impl Run {
    /// A new run of this process.
    pub(crate) fn new(topology: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let owner = std::process::id();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self {
            prefix: format!("sp{owner}n{number}"),
            topology: topology.to_owned(),
            owner,
            started: started(owner).unwrap_or(0),
        }
    }

    /// The name of a node's namespace.
    pub fn namespace(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    /// True if the process that owns it still runs.
    pub fn is_alive(&self) -> bool {
        started(self.owner) == Some(self.started)
    }

    /// True if it was brought up for other commands to enter, and still is: its owner takes requests.
    /// Labs of other commands (a demo, a run of scenarios) are theirs alone.
    pub fn stands(&self) -> bool {
        self.is_alive() && self.socket().exists()
    }

    fn record(&self) -> PathBuf {
        Path::new(RECORDS).join(&self.prefix)
    }

    /// Socket at which its owner takes requests.
    pub(crate) fn socket(&self) -> PathBuf {
        Path::new(RECORDS).join(format!("{}.socket", self.prefix))
    }

    /// Must be called before the first namespace is made.
    pub(crate) fn write_record(&self) -> Result<(), LabError> {
        let path = self.record();
        let text = serde_json::to_string(self).map_err(std::io::Error::other);
        std::fs::create_dir_all(RECORDS)
            .and_then(|()| std::fs::write(&path, text?))
            .map_err(|reason| LabError::file(path, reason))
    }

    /// Its namespaces that exist.
    pub fn namespaces(&self) -> Vec<String> {
        let prefix = self.namespace("");
        let mut names: Vec<_> = entries(NAMESPACES)
            .filter(|name| name.starts_with(&prefix))
            .collect();
        names.sort();
        names
    }

    /// Kills what runs in its namespaces, removes them and the record.
    pub(crate) fn remove(&self) -> Result<(), LabError> {
        let mut first = Ok(());
        let mut keep = |result: Result<String, LabError>| {
            if let (Err(error), true) = (result, first.is_ok()) {
                first = Err(error);
            }
        };
        for namespace in self.namespaces() {
            let pids = tool::run(&["ip", "netns", "pids", &namespace], "");
            let listed = pids.as_deref().unwrap_or_default();
            // A process that ended by itself meanwhile is as good.
            let _ = signal("KILL", listed.split_whitespace());
            keep(tool::run(&["ip", "netns", "delete", &namespace], ""));
        }
        if first.is_ok() {
            let _ = std::fs::remove_file(self.socket());
            let _ = std::fs::remove_file(self.record());
        }
        first
    }
}

/// The labs that have a record, the oldest first.
pub fn list() -> Vec<Run> {
    let mut runs: Vec<(std::time::SystemTime, Run)> = entries(RECORDS)
        .filter_map(|name| {
            let path = Path::new(RECORDS).join(name);
            let written = path.metadata().and_then(|data| data.modified()).ok()?;
            let run = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
            Some((written, run))
        })
        .collect();
    runs.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.prefix.cmp(&b.1.prefix)));
    runs.into_iter().map(|(_, run)| run).collect()
}

/// Removes what labs left whose owner is dead; gives their number.
///
/// # Errors
/// `LAB006` if a namespace cannot be removed.
pub fn sweep() -> Result<usize, LabError> {
    let mut swept = 0;
    for run in list().into_iter().filter(|run| !run.is_alive()) {
        run.remove()?;
        swept += 1;
    }
    Ok(swept)
}

/// Takes down the labs that stand, or `all` labs, also those of commands that run: asks living
/// owners to stop (SIGTERM), then removes what is left, also of dead owners; gives the number of
/// labs.
///
/// # Errors
/// `LAB001` without root, `LAB006` if an owner does not stop within 20 s or a
/// namespace cannot be removed.
pub fn down(all: bool) -> Result<usize, LabError> {
    tool::require_root()?;
    tool::require(&tool::BUILDING)?;
    let mut runs = list();
    runs.retain(|run| all || run.stands() || !run.is_alive());
    for run in runs.iter().filter(|run| run.is_alive()) {
        let owner = run.owner.to_string();
        signal("TERM", [owner.as_str()])?;
        let deadline = Instant::now() + Duration::from_secs(20);
        while run.is_alive() {
            if Instant::now() > deadline {
                return Err(LabError::Tool {
                    command: format!("kill -TERM {owner}"),
                    status: "still running after 20 s".to_owned(),
                    output: format!(
                        "the owner of {} did not stop; end process {owner}",
                        run.prefix
                    ),
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    sweep()?;
    Ok(runs.len())
}

/// Sends a signal to processes, given by their numbers.
pub(crate) fn signal<'a>(
    name: &str,
    processes: impl IntoIterator<Item = &'a str>,
) -> Result<(), LabError> {
    let processes: Vec<&str> = processes.into_iter().collect();
    if processes.is_empty() {
        return Ok(());
    }
    // A shell has `kill` of its own, which small systems lack as a program.
    let script = format!("kill -{name} {}", processes.join(" "));
    tool::run(&["sh", "-c", &script], "").map(drop)
}

fn entries(directory: &str) -> impl Iterator<Item = String> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
}

/// Start time of a process that runs, from field 22 of `/proc/<pid>/stat` (proc(5)).
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name in parentheses may hold anything; fields 3 and on follow it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_start_is_not() {
        let run = Run::new("t");
        assert!(run.is_alive());
        let earlier = Run {
            started: run.started.wrapping_sub(1),
            ..run.clone()
        };
        assert!(!earlier.is_alive());
        assert_ne!(Run::new("t").prefix, run.prefix);
    }
}
