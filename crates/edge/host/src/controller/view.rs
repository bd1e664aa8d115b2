//! View of a controller for operators.

mod multicast;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use stateplane_chains::Controller;
use stateplane_groups as groups;

pub use multicast::{
    MulticastGroupView, MulticastLogView, MulticastMemberView, MulticastReceiverView,
    MulticastSwitchView, MulticastView, MulticastWaitsView,
};

/// A controller and what it knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerView {
    /// True if this controller leads; otherwise another one does, and the rest is empty.
    pub leads: bool,
    /// True if servers follow configurations that this controller does not know, so that it makes
    /// none.
    pub behind: bool,
    /// True if every chain has the configuration that the controller wants with the servers that
    /// are alive. It may lack replicas where these are too few.
    pub settled: bool,
    /// Replicas that each chain is to have.
    pub replicas: usize,
    /// The servers, by number.
    pub servers: Vec<ServerView>,
    /// The chains, by number.
    pub chains: Vec<ChainView>,
}

/// A store server, as the controller sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerView {
    /// Its address.
    pub address: Ipv4Addr,
    /// Incarnation of the server's latest start.
    pub incarnation: u32,
    /// True if a heartbeat was received lately.
    pub alive: bool,
    /// True if the server is to lose its shards.
    pub drained: bool,
}

/// The present configuration of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainView {
    /// Its number, which is its shard's.
    pub chain: u16,
    /// Configuration number.
    pub epoch: u32,
    /// The members, head first.
    pub members: Vec<MemberView>,
    /// The server that joins behind the tail.
    pub joining: Option<Ipv4Addr>,
    /// Milliseconds since it has fewer [whole](ChainView::whole) members than
    /// [`ControllerView::replicas`]; `None` if it has all.
    pub lacking_for_ms: Option<u64>,
}

/// Chains without all their members: of a store's shards, or of groups of coordination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Degraded {
    /// Number of chains by number of whole members that they lack.
    pub chains: BTreeMap<usize, usize>,
    /// Milliseconds since the first of them lacks one.
    pub for_ms: u64,
    /// Servers or switches whose death would leave chains without any member, with the number of
    /// these.
    pub critical: BTreeMap<Ipv4Addr, usize>,
    /// Chains without any whole member.
    pub down: usize,
}

impl Degraded {
    /// Of chains that are to have `replicas` members: the members of each, and for how many
    /// milliseconds it has too few. `None` if all have all.
    fn of<'a>(
        replicas: usize,
        chains: impl Iterator<Item = (&'a [MemberView], Option<u64>)>,
    ) -> Option<Degraded> {
        let mut degraded = Degraded::default();
        for (members, lacking_for_ms) in chains {
            let whole: Vec<&MemberView> = members.iter().filter(|it| it.is_whole()).collect();
            let lacks = replicas.saturating_sub(whole.len());
            if lacks == 0 {
                continue;
            }
            *degraded.chains.entry(lacks).or_default() += 1;
            degraded.for_ms = degraded.for_ms.max(lacking_for_ms.unwrap_or(0));
            match whole.as_slice() {
                [] => degraded.down += 1,
                [last] => *degraded.critical.entry(last.address).or_default() += 1,
                _ => {}
            }
        }
        (!degraded.chains.is_empty()).then_some(degraded)
    }
}

/// A member of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberView {
    /// Its server.
    pub address: Ipv4Addr,
    /// True if that start of the server is alive.
    pub alive: bool,
    /// True if the server reported that it follows the configuration.
    pub follows: bool,
}

impl MemberView {
    /// True if it is alive and follows the configuration: it has the whole state.
    pub fn is_whole(&self) -> bool {
        self.alive && self.follows
    }
}

/// A controller and what it knows of coordination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinationView {
    /// True if this controller leads; otherwise another one does, and the rest is empty.
    pub leads: bool,
    /// True if switches follow configurations that this controller does not know, so that it
    /// makes none.
    pub behind: bool,
    /// True if every group has the chain that the controller wants with the switches that are
    /// alive. It may lack members where these are too few.
    pub settled: bool,
    /// Members that each group is to have.
    pub replicas: usize,
    /// The switches, by number.
    pub switches: Vec<SwitchView>,
    /// The groups, by number.
    pub groups: Vec<GroupView>,
    /// Addresses of failed switches whose requests the others send on.
    pub redirected: Vec<Ipv4Addr>,
    /// Number of sessions that are not closed.
    pub sessions: usize,
}

/// A switch of coordination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchView {
    /// Its number.
    pub number: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// Incarnation of its latest start, if it was ever heard.
    pub incarnation: Option<u32>,
    /// True if it answered lately.
    pub alive: bool,
    /// True if it is to lose its groups.
    pub drained: bool,
    /// Members that each of its groups still has when it stops, the fewest; none if no group has
    /// it, or if it cannot stop.
    pub left: Option<usize>,
    /// The groups that would lose their state if it stopped.
    pub lost: Vec<u16>,
}

/// The present chain of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupView {
    /// The group.
    pub group: u16,
    /// Which founding of it.
    pub generation: u16,
    /// Configuration number.
    pub epoch: u32,
    /// The members, head first.
    pub members: Vec<MemberView>,
    /// The switch that joins behind the tail.
    pub joining: Option<Ipv4Addr>,
    /// Number of the newest entry that any member said that it has, in this configuration.
    pub newest: Option<u64>,
    /// Milliseconds since it has fewer [whole](MemberView::is_whole) members than
    /// [`CoordinationView::replicas`]; `None` if it has all.
    pub lacking_for_ms: Option<u64>,
}

impl CoordinationView {
    /// View at `now` of `controller`, which leads.
    pub(crate) fn of(controller: &groups::Controller, now: u64) -> CoordinationView {
        let switches = controller.switches().map(|switch| {
            let (left, lost) = match controller.can_stop(switch.number) {
                Ok(left) => (left, Vec::new()),
                Err(groups::UnsafeStop(lost)) => (None, lost),
            };
            SwitchView {
                number: switch.number,
                address: switch.address,
                incarnation: switch.incarnation,
                alive: switch.alive,
                drained: switch.drained,
                left,
                lost,
            }
        });
        let groups = controller.configurations().map(|config| {
            let members = config.members.iter().map(|member| MemberView {
                address: member.address,
                alive: controller.is_alive(member),
                follows: controller.follows(config.group, member),
            });
            let newest = config.members.iter();
            let newest = newest.filter_map(|it| controller.newest(config.group, it.switch));
            GroupView {
                group: config.group,
                generation: config.generation,
                epoch: config.epoch,
                members: members.collect(),
                joining: config.joining.map(|member| member.address),
                newest: newest.max(),
                lacking_for_ms: controller
                    .lacking_since(config.group)
                    .map(|since| now.saturating_sub(since) / 1000),
            }
        });
        CoordinationView {
            leads: true,
            behind: controller.is_behind(),
            settled: controller.is_settled(),
            replicas: controller.replicas(),
            switches: switches.collect(),
            groups: groups.collect(),
            redirected: controller.redirected().collect(),
            sessions: controller.sessions().count(),
        }
    }

    /// The groups without all their members; `None` if there are none.
    pub fn degraded(&self) -> Option<Degraded> {
        let groups = self.groups.iter();
        let groups = groups.map(|group| (group.members.as_slice(), group.lacking_for_ms));
        Degraded::of(self.replicas, groups)
    }

    /// True if every group has all its members, on the switches that the controller wants.
    pub fn is_whole(&self) -> bool {
        self.settled && self.degraded().is_none()
    }

    /// The switch at `address`.
    pub fn switch(&self, address: Ipv4Addr) -> Option<&SwitchView> {
        self.switches
            .iter()
            .find(|switch| switch.address == address)
    }

    /// Number of groups of which the switch at `address` is a member, or which it joins.
    pub fn groups_of(&self, address: Ipv4Addr) -> usize {
        let has = |group: &&GroupView| {
            group.joining == Some(address) || group.members.iter().any(|it| it.address == address)
        };
        self.groups.iter().filter(has).count()
    }
}

impl ChainView {
    /// Members that are alive and follow the configuration: those that have the whole state.
    pub fn whole(&self) -> impl Iterator<Item = &MemberView> {
        self.members.iter().filter(|member| member.is_whole())
    }
}

impl ControllerView {
    /// View at `now` of `controller`, which leads.
    pub(crate) fn of(controller: &Controller, now: u64) -> ControllerView {
        let servers = controller.servers().map(|server| ServerView {
            address: *server.member.requests.ip(),
            incarnation: server.member.incarnation,
            alive: server.alive,
            drained: server.drained,
        });
        let chains = controller.configurations().map(|config| {
            let members = config.members.iter().map(|member| MemberView {
                address: *member.requests.ip(),
                alive: controller.is_alive(member),
                follows: controller.follows(config.chain, member),
            });
            ChainView {
                chain: config.chain,
                epoch: config.epoch,
                members: members.collect(),
                joining: config.joining.map(|member| *member.requests.ip()),
                lacking_for_ms: controller
                    .lacking_since(config.chain)
                    .map(|since| now.saturating_sub(since) / 1000),
            }
        });
        ControllerView {
            leads: true,
            behind: controller.is_behind(),
            settled: controller.is_settled(),
            replicas: controller.replicas(),
            servers: servers.collect(),
            chains: chains.collect(),
        }
    }

    /// The chains without all their replicas; `None` if there are none.
    pub fn degraded(&self) -> Option<Degraded> {
        let chains = self.chains.iter();
        let chains = chains.map(|chain| (chain.members.as_slice(), chain.lacking_for_ms));
        Degraded::of(self.replicas, chains)
    }

    /// True if every chain has all its replicas, on the servers that the controller wants.
    pub fn is_whole(&self) -> bool {
        self.settled && self.degraded().is_none()
    }

    /// The server at `address`.
    pub fn server(&self, address: Ipv4Addr) -> Option<&ServerView> {
        self.servers.iter().find(|server| server.address == address)
    }

    /// Replicas that each chain of the server at `address` still has when that stops: the
    /// fewest, counting those that are alive and follow the present configuration. `None`
    /// if no chain has the server.
    ///
    /// # Errors
    ///
    /// The chains that would then have no member with the whole state.
    pub fn left_without(&self, address: Ipv4Addr) -> Result<Option<usize>, Vec<u16>> {
        let left = |chain: &ChainView| {
            let others = chain.whole().filter(|member| member.address != address);
            others.count()
        };
        let concerned = |chain: &&ChainView| {
            chain.joining == Some(address) || chain.members.iter().any(|m| m.address == address)
        };
        let chains: Vec<&ChainView> = self.chains.iter().filter(concerned).collect();
        let lost = chains.iter().filter(|chain| left(chain) == 0);
        let lost: Vec<u16> = lost.map(|chain| chain.chain).collect();
        if lost.is_empty() {
            Ok(chains.into_iter().map(left).min())
        } else {
            Err(lost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, host)
    }

    fn chain(chain: u16, members: &[(u8, bool, bool)]) -> ChainView {
        let members = members.iter().map(|(host, alive, follows)| MemberView {
            address: address(*host),
            alive: *alive,
            follows: *follows,
        });
        ChainView {
            chain,
            epoch: 1,
            members: members.collect(),
            joining: None,
            lacking_for_ms: None,
        }
    }

    #[test]
    fn chains_that_lack_replicas_are_counted_with_the_cost_of_one_more_death() {
        let whole = |host| (host, true, true);
        let lacking = |for_ms, chain| ChainView {
            lacking_for_ms: Some(for_ms),
            ..chain
        };
        let view = ControllerView {
            settled: true,
            replicas: 3,
            chains: vec![
                chain(0, &[whole(1), whole(2), whole(3)]),
                lacking(70, chain(1, &[whole(1), whole(2)])),
                lacking(50, chain(2, &[whole(2), (3, true, false)])),
                lacking(90, chain(3, &[(3, false, true)])),
            ],
            ..ControllerView::default()
        };
        let degraded = view.degraded().unwrap();
        assert_eq!(degraded.chains, BTreeMap::from([(1, 1), (2, 1), (3, 1)]));
        assert_eq!(degraded.for_ms, 90);
        assert_eq!(degraded.critical, BTreeMap::from([(address(2), 1)]));
        assert_eq!(degraded.down, 1);
        assert!(!view.is_whole());
        let view = ControllerView {
            chains: vec![chain(0, &[whole(1), whole(2), whole(3)])],
            ..view
        };
        assert_eq!(view.degraded(), None);
        assert!(view.is_whole());
        let changing = ControllerView {
            settled: false,
            ..view
        };
        assert!(!changing.is_whole());
    }

    #[test]
    fn a_server_can_stop_while_each_of_its_chains_has_another_whole_replica() {
        let whole = |host| (host, true, true);
        let view = ControllerView {
            chains: vec![
                chain(0, &[whole(1), whole(2), whole(3)]),
                chain(1, &[whole(2), whole(3)]),
                chain(2, &[whole(3), (1, true, false)]),
                chain(3, &[whole(4)]),
            ],
            ..ControllerView::default()
        };
        assert_eq!(view.left_without(address(1)), Ok(Some(1)));
        assert_eq!(view.left_without(address(3)), Err(vec![2]));
        assert_eq!(view.left_without(address(4)), Err(vec![3]));
        assert_eq!(view.left_without(address(9)), Ok(None));
    }
}
