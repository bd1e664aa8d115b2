//! The controller's log of changes: servers and switches that are lost or back, chains that are
//! shorter or longer or without any member that lives, groups of multicast without a leader.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::view::{
    ControllerView, CoordinationView, MemberView, MulticastGroupView, MulticastView,
};

/// µs between looks at what changed.
const PERIOD: u64 = 100_000;

/// Words for one of the systems.
struct Words {
    member: &'static str,
    chains: &'static str,
}

const STORE: Words = Words {
    member: "store server",
    chains: "chains",
};
const COORDINATION: Words = Words {
    member: "coordination switch",
    chains: "groups of coordination",
};
const MULTICAST: Words = Words {
    member: "multicast switch",
    chains: "groups of multicast",
};

/// State of one system that was told last.
#[derive(Debug, Default)]
struct System {
    alive: BTreeMap<Ipv4Addr, bool>,
    chains: BTreeMap<u16, BTreeSet<Ipv4Addr>>,
    /// Chains without any member that lives.
    down: BTreeSet<u16>,
    settled: bool,
}

/// A group of multicast, as it was told last.
#[derive(Debug, Default)]
struct Led {
    /// Its leader, once that takes messages.
    leader: Option<Ipv4Addr>,
    receivers: BTreeSet<Ipv4Addr>,
}

/// State of all systems that was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    next: u64,
    store: System,
    coordination: System,
    multicast: System,
    led: BTreeMap<u8, Led>,
}

/// A chain as it is: its number, its members, and whether any of them lives.
type Chain = (u16, BTreeSet<Ipv4Addr>, bool);

/// Chains that lost and got the same members, by their number of members after it.
type Changes = BTreeMap<(Vec<Ipv4Addr>, Vec<Ipv4Addr>, usize), usize>;

impl Told {
    /// True if it is time to look again.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + PERIOD;
        }
        due
    }

    /// Tells what changed in `view`.
    pub(super) fn store(&mut self, view: &ControllerView) {
        let alive = view.servers.iter().map(|it| (it.address, it.alive));
        let chains = view.chains.iter();
        let chains = chains.map(|it| chain(it.chain, &it.members));
        self.store
            .tell(&STORE, alive, chains, view.replicas, view.settled);
    }

    /// Tells what changed in `view`.
    pub(super) fn coordination(&mut self, view: &CoordinationView) {
        let alive = view.switches.iter().map(|it| (it.address, it.alive));
        let chains = view.groups.iter();
        let chains = chains.map(|it| chain(it.group, &it.members));
        self.coordination
            .tell(&COORDINATION, alive, chains, view.replicas, view.settled);
    }

    /// Tells what changed in `view`.
    pub(super) fn multicast(&mut self, view: &MulticastView) {
        let alive = view.switches.iter();
        let alive = alive
            .filter(|it| it.incarnation.is_some())
            .map(|it| (it.address, it.alive));
        let groups = view.groups.iter().map(|it| {
            let members = it.members.iter().map(|it| it.address);
            // A group without its majority is told as one without a leader.
            (it.group.into(), members.collect(), true)
        });
        self.multicast
            .tell(&MULTICAST, alive, groups, view.replicas, view.settled);
        for group in &view.groups {
            self.led.entry(group.group).or_default().tell(group);
        }
    }
}

fn chain(number: u16, members: &[MemberView]) -> Chain {
    let lives = members.iter().any(|it| it.alive);
    (number, members.iter().map(|it| it.address).collect(), lives)
}

impl Led {
    fn tell(&mut self, view: &MulticastGroupView) {
        let (group, epoch) = (view.group, view.epoch);
        let leader = view.leader.filter(|_| view.established);
        match (std::mem::replace(&mut self.leader, leader), leader) {
            (before, Some(leader)) if before != Some(leader) => {
                tracing::info!(group, epoch, %leader, "the group takes messages");
            }
            (Some(before), None) => tracing::warn!(
                group, epoch, %before,
                "the group takes no messages until it has another leader"
            ),
            _ => {}
        }
        let receivers: BTreeSet<Ipv4Addr> = view.receivers.iter().map(|it| it.address).collect();
        if receivers != self.receivers {
            let left: Vec<_> = self.receivers.difference(&receivers).collect();
            let came: Vec<_> = receivers.difference(&self.receivers).collect();
            let count = receivers.len();
            tracing::info!(
                group,
                ?left,
                ?came,
                count,
                "the group has other receivers: those left asked for it, or were silent"
            );
            self.receivers = receivers;
        }
    }
}

impl System {
    fn tell(
        &mut self,
        words: &Words,
        alive: impl Iterator<Item = (Ipv4Addr, bool)>,
        chains: impl Iterator<Item = Chain>,
        replicas: usize,
        settled: bool,
    ) {
        let member = words.member;
        for (address, alive) in alive {
            match (self.alive.insert(address, alive), alive) {
                (None, true) => tracing::info!(%address, "{member} is there"),
                (Some(false), true) => tracing::info!(%address, "{member} is back"),
                (Some(true), false) => tracing::warn!(
                    %address,
                    "{member} is lost: no heartbeat for the detection time"
                ),
                _ => {}
            }
        }
        let mut changes = Changes::new();
        let (mut lost, mut back) = (Vec::new(), Vec::new());
        for (chain, members, lives) in chains {
            if lives && self.down.remove(&chain) {
                back.push(chain);
            } else if !lives && self.down.insert(chain) {
                lost.push(chain);
            }
            let before = self.chains.insert(chain, members.clone());
            let before = before.unwrap_or_default();
            if before != members {
                let left = before.difference(&members).copied().collect();
                let came = members.difference(&before).copied().collect();
                *changes.entry((left, came, members.len())).or_default() += 1;
            }
        }
        let names = words.chains;
        for ((left, came, members), count) in changes {
            if came.is_empty() {
                tracing::warn!(?left, members, replicas, count, "{names} are shorter");
            } else {
                tracing::info!(
                    ?left,
                    ?came,
                    members,
                    replicas,
                    count,
                    "{names} have other members, or more"
                );
            }
        }
        if !lost.is_empty() {
            tracing::error!(
                ?lost,
                "{names} are down: none of their members lives, and members that begin anew are empty"
            );
        }
        if !back.is_empty() {
            tracing::info!(?back, "{names} that were down have a member that lives");
        }
        if settled && !std::mem::replace(&mut self.settled, settled) {
            tracing::info!("every one of the {names} is as those alive allow");
        }
        self.settled = settled;
    }
}

#[cfg(test)]
mod tests;
