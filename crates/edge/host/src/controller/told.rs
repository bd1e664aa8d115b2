//! The controller's log of changes: servers and switches that are lost or back, chains that are
//! shorter or longer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::view::{ControllerView, CoordinationView, MemberView};

/// µs between looks at what changed.
const PERIOD: u64 = 100_000;

/// Words for one of the two systems.
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
    chains: "groups",
};

/// What was told last of one system.
#[derive(Debug, Default)]
struct System {
    alive: BTreeMap<Ipv4Addr, bool>,
    chains: BTreeMap<u16, BTreeSet<Ipv4Addr>>,
    settled: bool,
}

/// What was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    next: u64,
    store: System,
    coordination: System,
}

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
        let chains = view.chains.iter().map(|it| (it.chain, &it.members[..]));
        self.store
            .tell(&STORE, alive, chains, view.replicas, view.settled);
    }

    /// Tells what changed in `view`.
    pub(super) fn coordination(&mut self, view: &CoordinationView) {
        let alive = view.switches.iter().map(|it| (it.address, it.alive));
        let chains = view.groups.iter().map(|it| (it.group, &it.members[..]));
        self.coordination
            .tell(&COORDINATION, alive, chains, view.replicas, view.settled);
    }
}

impl System {
    fn tell<'a>(
        &mut self,
        words: &Words,
        alive: impl Iterator<Item = (Ipv4Addr, bool)>,
        chains: impl Iterator<Item = (u16, &'a [MemberView])>,
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
        for (chain, members) in chains {
            let members: BTreeSet<Ipv4Addr> = members.iter().map(|it| it.address).collect();
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
        if settled && !std::mem::replace(&mut self.settled, settled) {
            tracing::info!("every one of the {names} is as the servers alive allow");
        }
        self.settled = settled;
    }
}
