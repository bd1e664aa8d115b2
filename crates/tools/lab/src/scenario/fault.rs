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
/// Times for which a switch stands still while its flows stay with it.
const STANDS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
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
}

impl Fault {
    /// All of them, in an order in which each finds the first switch in use.
    pub const ALL: [Self; 6] = [
        Self::Reroute,
        Self::LinkDown,
        Self::LinkFlap,
        Self::StandStill,
        Self::Kill,
        Self::Restart,
    ];

    /// Number of phases for which the fault lets traffic settle.
    pub(super) const fn phases(self) -> u64 {
        match self {
            Self::StandStill => 3,
            Self::Reroute | Self::LinkDown => 2,
            Self::LinkFlap | Self::Kill | Self::Restart => 1,
        }
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
                    let began = now_us();
                    lab.signal(SWITCH, "STOP")?;
                    pause(time)?;
                    lab.signal(SWITCH, "CONT")?;
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
        })
    }
}
