//! View of a controller for operators.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use stateplane_chains::Controller;
use stateplane_groups as groups;

/// A controller and what it knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerView {
    /// True if this controller leads; otherwise another one does, and the rest is empty.
    pub leads: bool,
    /// True if servers follow configurations that this controller does not know, so that it makes
    /// none.
    pub behind: bool,
    /// True if every chain has the configuration that the controller wants.
    pub settled: bool,
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

/// A controller and what it knows of coordination.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinationView {
    /// True if this controller leads; otherwise another one does, and the rest is empty.
    pub leads: bool,
    /// True if switches follow configurations that this controller does not know, so that it
    /// makes none.
    pub behind: bool,
    /// True if every group has the chain that the controller wants.
    pub settled: bool,
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
}

impl CoordinationView {
    /// View of `controller`, which leads.
    pub(crate) fn of(controller: &groups::Controller) -> CoordinationView {
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
            }
        });
        CoordinationView {
            leads: true,
            behind: controller.is_behind(),
            settled: controller.is_settled(),
            switches: switches.collect(),
            groups: groups.collect(),
            redirected: controller.redirected().collect(),
            sessions: controller.sessions().count(),
        }
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

impl ControllerView {
    /// View of `controller`, which leads.
    pub(crate) fn of(controller: &Controller) -> ControllerView {
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
            }
        });
        ControllerView {
            leads: true,
            behind: controller.is_behind(),
            settled: controller.is_settled(),
            servers: servers.collect(),
            chains: chains.collect(),
        }
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
            let whole = chain.members.iter().filter(|m| m.alive && m.follows);
            whole.filter(|member| member.address != address).count()
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
        }
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
