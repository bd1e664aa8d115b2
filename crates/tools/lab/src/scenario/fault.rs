//! Faults, and how the lab causes them.
//!
//! All packets pass the first switch until it fails or the routes change, so every flow moves.

use super::report::Move;
use crate::agent::now_us;
use crate::error::LabError;
use crate::interrupt;
use crate::running::Lab;
use crate::topology::{End, Topology};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, Instant};

/// The switch that fails.
const SWITCH: &str = "s1";
/// Its interface to the inside.
const INSIDE: &str = "eth0";
/// The routers on both sides.
const ROUTERS: [&str; 2] = ["r_in", "r_out"];
/// Time until routing has informed the router of the other side of a lost link.
const CONVERGENCE: Duration = Duration::from_millis(50);
/// Time for which a killed switch is away before it comes back.
const ABSENCE: Duration = Duration::from_millis(1000);
/// Times for which a switch or a server stands still while its flows stay with it.
const STANDS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
/// The same, longer than switches and servers wait for each other.
const LONG_STAND: Duration = Duration::from_secs(5);
/// Times for which the power of the servers is away.
const POWER_CUTS: [Duration; 2] = [Duration::ZERO, ABSENCE];
const FLAPS: u32 = 5;
/// Time for which a flapping link is down, and for which it is up.
const FLAP: Duration = Duration::from_millis(100);

/// Fault of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The routers send everything by the other switch, and back; nothing is broken.
    Reroute,
    /// The link of the switch to the inside is lost; the switch lives on.
    LinkDown,
    /// That link goes down and up five times in a second.
    LinkFlap,
    /// The switch stands still (SIGSTOP) for 50 ms and for half a second, and then until its flows have
    /// moved to the other one; when it goes on, packets wait in its queues.
    StandStill,
    /// The switch is killed and all its links go down.
    Kill,
    /// The switch comes back (killed a second before, if it runs).
    Restart,
    /// The switch stands still for 5 s.
    LongStandStill,
    /// The store servers stand still (SIGSTOP) one after the other, from the head of their chain to its
    /// tail, for 50 ms and for half a second.
    ServerStandStill,
    /// The head of the chain stands still for 5 s.
    ServerLongStandStill,
    /// All store servers are killed at once (SIGKILL), and start again: at once from the head of their
    /// chain to its tail, and after a second from the tail to the head. They keep their state on a disk
    /// for the whole run.
    PowerCut,
}

impl Fault {
    /// Those that happen where none is named, in an order in which each finds the first switch in use:
    /// of switches and their links, and so many that checkers can take their histories at once.
    pub const USUAL: [Self; 6] = [
        Self::Reroute,
        Self::LinkDown,
        Self::LinkFlap,
        Self::StandStill,
        Self::Kill,
        Self::Restart,
    ];

    /// True if it is the store that fails, and not a switch.
    pub(super) const fn is_of_store(self) -> bool {
        matches!(
            self,
            Self::ServerStandStill | Self::ServerLongStandStill | Self::PowerCut
        )
    }

    /// True if packets of a flow may wait for seconds, so that checkers have to order them all.
    pub(super) const fn is_long(self) -> bool {
        matches!(self, Self::LongStandStill | Self::ServerLongStandStill)
    }

    /// About how long it takes with phases of this length.
    pub(super) fn duration(self, phase: Duration) -> Duration {
        let half = phase / 2;
        let stands: Duration = STANDS.iter().sum();
        match self {
            Self::Reroute | Self::LinkDown => 4 * half,
            Self::LinkFlap => 2 * half + FLAPS * 2 * FLAP,
            Self::StandStill => 6 * half + stands,
            Self::LongStandStill | Self::ServerLongStandStill => 2 * half + LONG_STAND,
            Self::Kill => 2 * half,
            Self::Restart => 2 * half + ABSENCE,
            Self::ServerStandStill => 6 * half + 3 * stands,
            Self::PowerCut => 4 * half + POWER_CUTS.iter().sum::<Duration>(),
        }
    }

    /// Processes that stand still one after the other, and for how long.
    fn stands(self, topology: &Topology) -> Result<Vec<(String, Duration)>, LabError> {
        let long = |process: String| (process, LONG_STAND);
        if self == Self::LongStandStill {
            return Ok(vec![long(SWITCH.to_owned())]);
        }
        let servers = servers(topology)?.into_iter();
        Ok(if self.is_long() {
            servers.take(1).map(long).collect()
        } else {
            let each = |server: String| STANDS.map(|time| (server.clone(), time));
            servers.flat_map(each).collect()
        })
    }

    /// Brings it about and waits until `phase` has passed since each change; gives the
    /// times at which flows had to move.
    pub(super) fn happen(
        self,
        lab: &mut Lab,
        mut wait: impl FnMut(&mut Lab, Duration) -> Result<(), LabError>,
        phase: Duration,
    ) -> Result<Vec<Move>, LabError> {
        let mut moves = Vec::new();
        let mut note = |what: &str, began_us: u64, owner_alive: bool, left_alone: bool| {
            moves.push(Move {
                what: what.to_owned(),
                began_us,
                at_us: now_us(),
                owner_alive,
                left_alone,
            });
        };
        let (node, interface) = far_end(lab.topology())?;
        let began = now_us();
        match self {
            Self::Reroute => {
                for router in ROUTERS {
                    lab.steer(router)?;
                }
                note("rerouted", began, true, true);
                wait(lab, phase)?;
                let began = now_us();
                for router in ROUTERS {
                    lab.release(router)?;
                }
                note("rerouted back", began, true, true);
                wait(lab, phase)?;
            }
            Self::LinkDown => {
                lab.lower(&node, &interface)?;
                pause(CONVERGENCE)?;
                for router in &ROUTERS[1..] {
                    lab.steer(router)?;
                }
                note("link down", began, true, true);
                wait(lab, phase)?;
                let began = now_us();
                lab.raise(&node, std::slice::from_ref(&interface))?;
                for router in &ROUTERS[1..] {
                    lab.release(router)?;
                }
                note("link up", began, true, true);
                wait(lab, phase)?;
            }
            Self::LinkFlap => {
                note("link flaps", began, true, false);
                for _ in 0..FLAPS {
                    lab.lower(&node, &interface)?;
                    pause(FLAP)?;
                    lab.raise(&node, std::slice::from_ref(&interface))?;
                    pause(FLAP)?;
                }
                note("link up for good", began, true, true);
                wait(lab, phase)?;
            }
            Self::StandStill => {
                for time in STANDS {
                    let began = stand(lab, SWITCH, time)?;
                    note("stood still", began, true, true);
                    wait(lab, phase / 2)?;
                }
                let began = now_us();
                lab.signal(SWITCH, "STOP")?;
                pause(CONVERGENCE)?;
                for router in ROUTERS {
                    lab.steer(router)?;
                }
                note("stands still", began, false, true);
                wait(lab, phase)?;
                let began = now_us();
                lab.signal(SWITCH, "CONT")?;
                pause(CONVERGENCE)?;
                for router in ROUTERS {
                    lab.release(router)?;
                }
                note("goes on", began, true, true);
                wait(lab, phase)?;
            }
            Self::Kill => {
                lab.fail(SWITCH)?;
                note("killed", began, false, true);
                wait(lab, phase)?;
            }
            Self::Restart => {
                if lab.process(SWITCH).is_some() {
                    lab.fail(SWITCH)?;
                    note("killed", began, false, false);
                    pause(ABSENCE)?;
                }
                lab.recover(SWITCH)?;
                note("back", began, true, true);
                wait(lab, phase)?;
            }
            Self::LongStandStill | Self::ServerStandStill | Self::ServerLongStandStill => {
                for (process, time) in self.stands(lab.topology())? {
                    let began = stand(lab, &process, time)?;
                    note(&format!("{process} stood still"), began, true, true);
                    wait(lab, if self.is_long() { phase } else { phase / 2 })?;
                }
            }
            Self::PowerCut => {
                let mut servers = servers(lab.topology())?;
                for absence in POWER_CUTS {
                    let began = cut_power(lab, &servers, absence)?;
                    note("lost power", began, true, true);
                    wait(lab, phase)?;
                    servers.reverse();
                }
            }
        }
        Ok(moves)
    }
}

/// Node and interface at the far end of the switch's link to the inside: a router's, or that
/// of a bridge before it.
fn far_end(topology: &Topology) -> Result<(String, String), LabError> {
    let at_switch = |end: &End| end.node == SWITCH && end.interface == INSIDE;
    let link = topology
        .links
        .iter()
        .find(|link| link.ends.iter().any(at_switch));
    let far = link.and_then(|link| link.ends.iter().find(|end| !at_switch(end)));
    let far = far.ok_or_else(|| LabError::Topology {
        path: topology.path.clone(),
        place: format!("node {SWITCH}"),
        problem: format!("no link has its interface {INSIDE}, which faults take down"),
        help: "name its interface to the inside so".to_owned(),
    })?;
    Ok((far.node.clone(), far.interface.clone()))
}

/// The processes of the store, from the head of their chain to its tail.
fn servers(topology: &Topology) -> Result<Vec<String>, LabError> {
    let servers = topology.store_servers();
    if servers.is_empty() {
        return Err(LabError::Topology {
            path: topology.path.clone(),
            place: "processes".to_owned(),
            problem: "there is no store server, which faults stop and kill".to_owned(),
            help: "name faults of switches alone by --faults".to_owned(),
        });
    }
    Ok(servers)
}

/// Lets a process stand still for some time, and gives when that began.
fn stand(lab: &mut Lab, process: &str, time: Duration) -> Result<u64, LabError> {
    let began = now_us();
    lab.signal(process, "STOP")?;
    pause(time)?;
    lab.signal(process, "CONT")?;
    Ok(began)
}

/// Kills processes at once, starts them in this order after some time, and gives when that began.
fn cut_power(lab: &mut Lab, processes: &[String], time: Duration) -> Result<u64, LabError> {
    let began = now_us();
    lab.kill(processes)?;
    pause(time)?;
    for process in processes {
        lab.start(process)?;
    }
    Ok(began)
}

fn pause(time: Duration) -> Result<(), LabError> {
    interrupt::wait_until(Instant::now() + time)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reroute => "reroute",
            Self::LinkDown => "link-down",
            Self::LinkFlap => "link-flap",
            Self::StandStill => "stand-still",
            Self::Kill => "kill",
            Self::Restart => "restart",
            Self::LongStandStill => "long-stand-still",
            Self::ServerStandStill => "server-stand-still",
            Self::ServerLongStandStill => "server-long-stand-still",
            Self::PowerCut => "power-cut",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_servers_of_the_chain_stand_still_in_turn_and_its_head_for_longest() {
        let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab");
        let load = |name| Topology::load(lab.join(name)).unwrap();
        let apps = load("apps.toml");
        let stands = Fault::ServerStandStill.stands(&apps).unwrap();
        let whose: Vec<_> = stands.iter().map(|(server, _)| server.as_str()).collect();
        assert_eq!(whose, ["st0", "st0", "st1", "st1", "st2", "st2"]);
        let long = |fault: Fault| fault.stands(&apps).unwrap();
        assert_eq!(long(Fault::LongStandStill), [("s1".to_owned(), LONG_STAND)]);
        let head = [("st0".to_owned(), LONG_STAND)];
        assert_eq!(long(Fault::ServerLongStandStill), head);
        let refused = Fault::ServerStandStill.stands(&load("forward.toml"));
        assert_eq!(refused.unwrap_err().code(), "LAB005");
    }
}
