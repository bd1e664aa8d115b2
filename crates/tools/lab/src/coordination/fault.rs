//! Faults of switches, of the controller and of the network between them, one after the other.

use super::operate;
use crate::error::LabError;
use crate::running::Lab;
use crate::{interrupt, tool};
use serde::{Deserialize, Serialize};
use stateplane_apps::Random;
use std::fmt;
use std::time::{Duration, Instant};

const SWITCHES: u64 = 4;
pub(crate) const BRIDGE: &str = "fabric";
/// Port of the fabric that takes the frames to a switch that is deaf.
const ELSEWHERE: &str = "host";
/// Time between two questions whether a switch may be killed.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Table of the rules that lose and double frames.
const LOSSY: &str = "lossy";

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// A switch gets SIGKILL, and is started again, empty.
    Kill,
    /// A switch gets SIGSTOP, and SIGCONT.
    Pause,
    /// The controller gets SIGKILL, and is started again.
    KillController,
    /// The fabric's port to a switch goes down.
    Cut,
    /// The fabric's frames to a switch go elsewhere; those of the switch arrive.
    Deaf,
    /// The fabric's port to a switch loses a fifth of the frames to it and doubles a tenth.
    Lossy,
}

impl FaultKind {
    const ALL: [Self; 6] = [
        Self::Kill,
        Self::Pause,
        Self::KillController,
        Self::Cut,
        Self::Deaf,
        Self::Lossy,
    ];
}

/// A fault that was. Times are ms since the workers were started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// The process, or the switch at the fabric's port.
    pub target: String,
    /// When it began.
    pub from_ms: u64,
    /// When all was well again.
    pub until_ms: u64,
    /// Frames that a [`FaultKind::Lossy`] port lost and doubled.
    pub frames: Option<Frames>,
}

/// Frames of a port that loses and doubles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// Frames that were lost.
    pub lost: u64,
    /// Frames that came twice.
    pub doubled: u64,
}

impl Frames {
    /// The counters of the two rules, in the order in which nftables lists them.
    fn read(listed: &str) -> Option<Frames> {
        let mut counters = listed.split("counter packets ").skip(1);
        let mut next = || counters.next()?.split_whitespace().next()?.parse().ok();
        Some(Frames {
            lost: next()?,
            doubled: next()?,
        })
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::KillController => "kill-controller",
            Self::Cut => "cut",
            Self::Deaf => "deaf",
            Self::Lossy => "lossy",
        })
    }
}

/// Lets faults happen for `seconds`; each kind once before one comes again. All are over then. A
/// switch is killed once every group has another whole member: with its last one a group loses its
/// state (rule 17).
///
/// # Errors
/// `LAB006` to `LAB008` if a fault cannot be made or healed, `LAB130` when interrupted.
pub fn run(
    lab: &mut Lab,
    random: &mut Random,
    started: Instant,
    seconds: u64,
) -> Result<Vec<Fault>, LabError> {
    let end = started + Duration::from_secs(seconds);
    let mut faults = Vec::new();
    let mut kinds = Vec::new();
    while Instant::now() < end {
        let quiet = Duration::from_millis(random.between(300, 900));
        interrupt::wait_until((Instant::now() + quiet).min(end))?;
        if Instant::now() >= end {
            break;
        }
        if kinds.is_empty() {
            kinds = FaultKind::ALL.to_vec();
        }
        let kind = kinds.swap_remove(random.place(kinds.len()));
        let target = match kind {
            FaultKind::KillController => "controller".to_owned(),
            _ => format!("s{}", random.between(1, SWITCHES)),
        };
        let lasts = Duration::from_millis(random.between(100, 1200));
        if kind == FaultKind::Kill && !wait_expendable(lab, &target, end)? {
            break;
        }
        let since = |at: Instant| at.duration_since(started).as_millis() as u64;
        let from_ms = since(Instant::now());
        begin(lab, kind, &target)?;
        interrupt::wait_until((Instant::now() + lasts).min(end))?;
        let frames = match kind {
            FaultKind::Lossy => lost(lab)?,
            _ => None,
        };
        heal(lab, kind, &target)?;
        faults.push(Fault {
            kind,
            target,
            from_ms,
            until_ms: since(Instant::now()),
            frames,
        });
    }
    Ok(faults)
}

/// Waits until no group loses its last whole member with a switch; false if that lasts until `end`.
fn wait_expendable(lab: &Lab, target: &str, end: Instant) -> Result<bool, LabError> {
    let address = lab.topology().address_of(target);
    let address = address.map_or_else(String::new, |address| address.to_string());
    while Instant::now() < end {
        match operate(lab, &["can-stop", &address]) {
            Ok(_) => return Ok(true),
            Err(LabError::Tool { .. }) => interrupt::wait_until(Instant::now() + ASK_AGAIN)?,
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn begin(lab: &mut Lab, kind: FaultKind, target: &str) -> Result<(), LabError> {
    match kind {
        FaultKind::Kill | FaultKind::KillController => {
            if let Some(process) = lab.process(target) {
                process.kill();
            }
            Ok(())
        }
        FaultKind::Pause => lab.signal(target, "STOP"),
        FaultKind::Cut => lab.lower(BRIDGE, target),
        FaultKind::Deaf => deafen(lab, target, ELSEWHERE),
        FaultKind::Lossy => lose(lab, target),
    }
}

fn heal(lab: &mut Lab, kind: FaultKind, target: &str) -> Result<(), LabError> {
    match kind {
        FaultKind::Kill | FaultKind::KillController => lab.start(target),
        FaultKind::Pause => lab.signal(target, "CONT"),
        FaultKind::Cut => lab.raise(BRIDGE, &[target.to_owned()]),
        FaultKind::Deaf => hear(lab, target, ELSEWHERE),
        FaultKind::Lossy => stop_losing(lab),
    }
}

/// The address of a switch's interface.
fn mac(lab: &Lab, target: &str) -> String {
    let end = lab.topology().ends_of(target).next();
    end.map_or_else(String::new, |(_, end)| end.mac.to_string())
}

fn bridge(lab: &Lab, words: &[&str]) -> Result<(), LabError> {
    let namespace = lab.run().namespace(BRIDGE);
    let mut command = vec!["bridge", "-n", &namespace, "fdb"];
    command.extend(words);
    tool::run(&command, "").map(drop)
}

/// Lets another port take the frames to a node's first interface, whose address nobody has there.
pub(crate) fn deafen(lab: &Lab, target: &str, elsewhere: &str) -> Result<(), LabError> {
    let mac = mac(lab, target);
    let words = [
        "replace", &mac, "dev", elsewhere, "master", "static", "sticky",
    ];
    bridge(lab, &words)?;
    // A frame that the bridge learns from while the entry is made takes it to its own port, where
    // it is sticky too: the second time nothing takes it away.
    bridge(lab, &words)
}

/// Undoes [`deafen`].
pub(crate) fn hear(lab: &Lab, target: &str, elsewhere: &str) -> Result<(), LabError> {
    bridge(lab, &["del", &mac(lab, target), "dev", elsewhere, "master"])
}

/// Lets the fabric's port to a node lose a fifth of the frames and double a tenth.
pub(crate) fn lose(lab: &Lab, target: &str) -> Result<(), LabError> {
    let table = format!(
        "table netdev {LOSSY} {{
            chain to {{
                type filter hook egress device \"{target}\" priority 0;
                numgen random mod 100 < 20 counter drop
                numgen random mod 100 < 10 counter dup to \"{target}\"
            }}
        }}"
    );
    nft(lab, &["-f", "-"], &table).map(drop)
}

/// Frames that the port of [`lose`] lost and doubled.
pub(crate) fn lost(lab: &Lab) -> Result<Option<Frames>, LabError> {
    let listed = nft(lab, &["list", "table", "netdev", LOSSY], "")?;
    Ok(Frames::read(&listed))
}

/// Undoes [`lose`].
pub(crate) fn stop_losing(lab: &Lab) -> Result<(), LabError> {
    nft(lab, &["delete", "table", "netdev", LOSSY], "").map(drop)
}

/// Runs nftables in the bridge's node, with `script` as its input; gives what it prints.
fn nft(lab: &Lab, words: &[&str], script: &str) -> Result<String, LabError> {
    let namespace = lab.run().namespace(BRIDGE);
    let mut command = vec!["ip", "netns", "exec", &namespace, "nft"];
    command.extend(words);
    tool::run(&command, script)
}

#[cfg(test)]
mod tests {
    use super::Frames;

    #[test]
    fn counters_are_those_of_the_rules_in_their_order() {
        let listed = "table netdev lossy {\n\tchain to {\n\t\ttype filter hook egress device \
                      \"s1\" priority 0; policy accept;\n\t\tnumgen random mod 100 < 20 counter \
                      packets 1234 bytes 5 drop\n\t\tnumgen random mod 100 < 10 counter packets 56 \
                      bytes 7 dup to \"s1\"\n\t}\n}\n";
        let frames = Frames::read(listed).expect("two counters");
        assert_eq!((frames.lost, frames.doubled), (1234, 56));
        assert_eq!(Frames::read("table netdev lossy {\n}\n"), None);
    }
}
