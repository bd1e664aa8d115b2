//! Faults of switches, hosts, the controller and the network between them, one after the other.

use super::Service;
use crate::coordination::fault::{BRIDGE, Frames, deafen, hear, lose, lost, stop_losing};
use crate::error::LabError;
use crate::interrupt;
use crate::running::Lab;
use crate::tool;
use serde::{Deserialize, Serialize};
use stateplane_apps::Random;
use std::fmt;
use std::time::{Duration, Instant};

/// Table of the rules that let frames go a way round.
const DETOUR: &str = "detour";

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The leader of a group gets SIGKILL, and is started again, empty.
    KillLeader,
    /// A switch that may lead no group gets SIGKILL, and is started again, empty.
    KillSwitch,
    /// A switch gets SIGSTOP, and SIGCONT.
    Pause,
    /// The controller gets SIGKILL, and is started again.
    KillController,
    /// A sender or a client of the store gets SIGKILL, and another takes its place.
    KillSender,
    /// A receiver or a replica of the store gets SIGKILL, and another joins in its place.
    KillReceiver,
    /// A receiver or a replica of the store gets SIGSTOP, and SIGCONT.
    PauseReceiver,
    /// The fabric's port to a switch goes down.
    Cut,
    /// The fabric's frames to a switch go elsewhere; those of the switch arrive.
    Deaf,
    /// The fabric's port to a switch or host loses a fifth of the frames to it and doubles a tenth.
    Lossy,
    /// A tenth of the frames to a switch or host go a slow way round, and arrive behind later ones.
    Reorder,
}

impl FaultKind {
    const ALL: [Self; 11] = [
        Self::KillLeader,
        Self::KillSwitch,
        Self::Pause,
        Self::KillController,
        Self::KillSender,
        Self::KillReceiver,
        Self::PauseReceiver,
        Self::Cut,
        Self::Deaf,
        Self::Lossy,
        Self::Reorder,
    ];

    /// True if a switch loses its memory.
    fn forgets(self) -> bool {
        matches!(self, Self::KillLeader | Self::KillSwitch)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillLeader => "kill-leader",
            Self::KillSwitch => "kill-switch",
            Self::Pause => "pause",
            Self::KillController => "kill-controller",
            Self::KillSender => "kill-sender",
            Self::KillReceiver => "kill-receiver",
            Self::PauseReceiver => "pause-receiver",
            Self::Cut => "cut",
            Self::Deaf => "deaf",
            Self::Lossy => "lossy",
            Self::Reorder => "reorder",
        })
    }
}

/// A fault that was. Times are ms since the hosts were started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// The process, or the node at the fabric's port.
    pub target: String,
    /// When it began.
    pub from_ms: u64,
    /// When all was well again.
    pub until_ms: u64,
    /// Frames that a [`FaultKind::Lossy`] port lost and doubled.
    pub frames: Option<Frames>,
    /// Frames that went the way round of a [`FaultKind::Reorder`].
    pub detours: Option<u64>,
}

/// Lets faults happen for `seconds`; each kind once before one comes again. All are over then. No
/// switch loses its memory before every group has all its members again: a group whose majority
/// forgets is lost. No replica of the store is killed before all others have a state: a shard that
/// nobody has is lost.
///
/// # Errors
/// `LAB006` to `LAB008` if a fault cannot be made or healed, or a group does not get its members
/// back; `LAB130` when interrupted.
pub(super) fn run(
    service: &mut Service,
    random: &mut Random,
    seconds: u64,
) -> Result<Vec<Fault>, LabError> {
    let started = service.started;
    let end = started + Duration::from_secs(seconds);
    let since = |at: Instant| at.duration_since(started).as_millis() as u64;
    let mut faults = Vec::new();
    let mut kinds = Vec::new();
    while Instant::now() < end {
        let quiet = Duration::from_millis(random.between(200, 600));
        interrupt::wait_until((Instant::now() + quiet).min(end))?;
        if Instant::now() >= end {
            break;
        }
        if kinds.is_empty() {
            kinds = FaultKind::ALL.to_vec();
        }
        let kind = kinds.swap_remove(random.place(kinds.len()));
        if kind.forgets() {
            service.wait_whole()?;
        }
        if kind == FaultKind::KillReceiver {
            service.wait_ready()?;
        }
        let target = target(service, kind, random)?;
        let lasts = Duration::from_millis(random.between(100, 1200));
        let from_ms = since(Instant::now());
        begin(service, kind, &target)?;
        interrupt::wait_until((Instant::now() + lasts).min(end))?;
        let (mut frames, mut detours) = (None, None);
        match kind {
            FaultKind::Lossy => frames = lost(&service.lab)?,
            FaultKind::Reorder => detours = went_round(&service.lab)?,
            _ => {}
        }
        heal(service, kind, &target)?;
        faults.push(Fault {
            kind,
            target,
            from_ms,
            until_ms: since(Instant::now()),
            frames,
            detours,
        });
    }
    Ok(faults)
}

fn target(service: &Service, kind: FaultKind, random: &mut Random) -> Result<String, LabError> {
    let mut pick = |names: Vec<String>| names[random.place(names.len())].clone();
    Ok(match kind {
        FaultKind::KillController => "controller".to_owned(),
        FaultKind::KillLeader => {
            let leaders = service.leaders()?.into_values().collect::<Vec<_>>();
            if leaders.is_empty() {
                return Err(LabError::Options("no group has a leader".to_owned()));
            }
            pick(leaders)
        }
        FaultKind::KillSender => pick(service.names(false)),
        FaultKind::KillReceiver | FaultKind::PauseReceiver => pick(service.names(true)),
        FaultKind::Lossy | FaultKind::Reorder => {
            let hosts = service.hosts().chain(service.switches());
            pick(hosts.collect())
        }
        _ => pick(service.switches().collect()),
    })
}

fn begin(service: &mut Service, kind: FaultKind, target: &str) -> Result<(), LabError> {
    match kind {
        FaultKind::KillLeader | FaultKind::KillSwitch | FaultKind::KillController => {
            if let Some(process) = service.lab.process(target) {
                process.kill();
            }
            Ok(())
        }
        FaultKind::KillSender | FaultKind::KillReceiver => service.kill(target),
        FaultKind::Pause => service.lab.signal(target, "STOP"),
        FaultKind::PauseReceiver => service.signal(target, "STOP"),
        FaultKind::Cut => service.lab.lower(BRIDGE, target),
        FaultKind::Deaf => deafen(&service.lab, target, super::ELSEWHERE),
        FaultKind::Lossy => lose(&service.lab, target),
        FaultKind::Reorder => go_round(&service.lab, target),
    }
}

fn heal(service: &mut Service, kind: FaultKind, target: &str) -> Result<(), LabError> {
    match kind {
        FaultKind::KillLeader | FaultKind::KillSwitch | FaultKind::KillController => {
            service.lab.start(target)
        }
        FaultKind::KillSender | FaultKind::KillReceiver => service.replace(target),
        FaultKind::Pause => service.lab.signal(target, "CONT"),
        FaultKind::PauseReceiver => service.signal(target, "CONT"),
        FaultKind::Cut => service.lab.raise(BRIDGE, &[target.to_owned()]),
        FaultKind::Deaf => hear(&service.lab, target, super::ELSEWHERE),
        FaultKind::Lossy => stop_losing(&service.lab),
        FaultKind::Reorder => go_straight(&service.lab),
    }
}

/// Runs `script` in the fabric's node.
fn in_fabric(lab: &Lab, script: &str) -> Result<String, LabError> {
    let namespace = lab.run().namespace(BRIDGE);
    tool::run(&["ip", "netns", "exec", &namespace, "sh", "-e"], script)
}

/// Lets a tenth of the frames to `target` go through a pair of interfaces that sends 0.5 Mbit/s: those
/// that follow pass by them.
fn go_round(lab: &Lab, target: &str) -> Result<(), LabError> {
    let script = format!(
        "ip link add round0 type veth peer name round1
        ip link set round0 up
        ip link set round1 up
        tc qdisc add dev round0 root tbf rate 500kbit burst 1600 limit 16kb
        nft -f - <<'END'
table netdev {DETOUR} {{
    chain out {{
        type filter hook egress device \"{target}\" priority 0;
        meta mark != 7 numgen random mod 100 < 10 counter meta mark set 7 fwd to \"round0\"
    }}
    chain back {{
        type filter hook ingress device \"round1\" priority 0;
        meta mark set 7 fwd to \"{target}\"
    }}
}}
END
"
    );
    in_fabric(lab, &script).map(drop)
}

fn go_straight(lab: &Lab) -> Result<(), LabError> {
    let script = format!("nft delete table netdev {DETOUR}\nip link delete round0\n");
    in_fabric(lab, &script).map(drop)
}

/// Frames that went the way round.
fn went_round(lab: &Lab) -> Result<Option<u64>, LabError> {
    let listed = in_fabric(lab, &format!("nft list table netdev {DETOUR}\n"))?;
    let counter = listed.split("counter packets ").nth(1);
    let count = counter.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    Ok(count)
}
