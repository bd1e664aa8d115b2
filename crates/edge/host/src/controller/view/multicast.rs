//! View of a controller's groups of multicast for operators.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use stateplane_multicast_groups::{Controller, GroupState};

/// A controller and what it knows of multicast.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastView {
    /// True if this controller leads; otherwise another one does, and the rest is empty.
    pub leads: bool,
    /// True if switches promised epochs that this controller does not know, so that it begins none.
    pub behind: bool,
    /// True if every group has an established leader and the members that the controller wants with
    /// the switches that are alive.
    pub settled: bool,
    /// Members that each group is to have.
    pub replicas: usize,
    /// Entries of each group's window.
    pub window: u32,
    /// Sessions that are open.
    pub sessions: usize,
    /// Ended sessions of which logs may hold entries, so that their slots are not free.
    pub ended: usize,
    /// Lanes granted.
    pub lanes: u32,
    /// Most lanes that can be granted.
    pub most_lanes: u32,
    /// The switches, by number.
    pub switches: Vec<MulticastSwitchView>,
    /// The groups, by number; those that were never founded are left out.
    pub groups: Vec<MulticastGroupView>,
}

/// A switch of multicast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastSwitchView {
    /// Its number.
    pub number: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// Incarnation of its latest start, if it was ever heard.
    pub incarnation: Option<u32>,
    /// True if its host was heard lately.
    pub alive: bool,
    /// True if it is to lose its groups.
    pub drained: bool,
}

/// A group of multicast.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastGroupView {
    /// The group.
    pub group: u8,
    /// Its epoch.
    pub epoch: u32,
    /// Address of its leader, once one is appointed.
    pub leader: Option<Ipv4Addr>,
    /// True if the leader's own no-op is committed: it takes messages.
    pub established: bool,
    /// The members.
    pub members: Vec<MulticastMemberView>,
    /// The switch that learns.
    pub learner: Option<Ipv4Addr>,
    /// Version of the list of receivers.
    pub list: u16,
    /// The receivers.
    pub receivers: Vec<MulticastReceiverView>,
    /// The leader's log; none before it was heard.
    pub log: Option<MulticastLogView>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastMemberView {
    /// Its number in the group.
    pub number: u8,
    /// Its address.
    pub address: Ipv4Addr,
    /// True if that start of the switch is alive.
    pub alive: bool,
    /// True if it promised the epoch, while that has no leader.
    pub promised: bool,
}

/// A receiver of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastReceiverView {
    /// Its number in the list.
    pub number: u8,
    /// Its address.
    pub address: Ipv4Addr,
    /// Committed entries that it has not said to have; none before the leader was heard.
    pub behind: Option<u32>,
}

/// The log of a leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastLogView {
    /// Index up to which it is freed.
    pub base: u32,
    /// Index up to which it is committed.
    pub commit: u32,
    /// Its last index.
    pub end: u32,
    /// Reason for which the oldest entry waits, if there is one.
    pub oldest: Option<MulticastWaitsView>,
}

/// Reason for which the oldest entry of a log waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastWaitsView {
    /// Members whose logs lack it, while it is not committed.
    pub members: Vec<Ipv4Addr>,
    /// Receivers that lack it.
    pub receivers: Vec<Ipv4Addr>,
    /// Groups that did not decide it.
    pub undecided: Vec<u8>,
    /// Groups whose receivers may lack it.
    pub not_done: Vec<u8>,
}

/// Numbers of the bits of a map.
fn numbers(map: u32) -> impl Iterator<Item = u8> {
    (0..32).filter(move |bit| map & (1 << bit) != 0)
}

impl MulticastGroupView {
    fn of(controller: &Controller, state: &GroupState) -> MulticastGroupView {
        let config = &state.config;
        let members = config.members().iter().map(|member| MulticastMemberView {
            number: member.number,
            address: member.address,
            alive: controller.is_alive(member),
            promised: state.promised & (1 << member.number) != 0,
        });
        let standing = state.standing;
        let received: Vec<u32> = standing.map_or(Vec::new(), |it| it.received_by().collect());
        let receivers = config.receivers.iter().map(|listed| MulticastReceiverView {
            number: listed.number,
            address: listed.address,
            behind: standing.and_then(|standing| {
                let has = received.get(usize::from(listed.number))?;
                let behind = standing.commit.wrapping_sub(*has);
                Some(if behind.cast_signed() > 0 { behind } else { 0 })
            }),
        });
        let address_of = |number: u8| {
            let mut members = config.members().iter();
            let member = members.find(|member| member.number == number);
            member.map(|member| member.address)
        };
        let receiver = |number: u8| {
            let mut receivers = config.receivers.iter();
            let listed = receivers.find(|listed| listed.number == number);
            listed.map(|listed| listed.address)
        };
        let waits = state.waits;
        let oldest = || MulticastWaitsView {
            members: numbers(waits.members.into())
                .filter_map(address_of)
                .collect(),
            receivers: numbers(waits.receivers.into())
                .filter_map(receiver)
                .collect(),
            undecided: numbers(waits.decided).collect(),
            not_done: numbers(waits.done).collect(),
        };
        let log = standing.map(|standing| MulticastLogView {
            base: standing.base,
            commit: standing.commit,
            end: standing.end,
            oldest: (standing.base != standing.end).then(oldest),
        });
        MulticastGroupView {
            group: config.group,
            epoch: config.epoch,
            leader: config.leading().map(|leader| leader.address),
            established: state.established,
            members: members.collect(),
            learner: config.learner.map(|learner| learner.address),
            list: config.list,
            receivers: receivers.collect(),
            log,
        }
    }

    /// Entries of the window that are taken.
    pub fn taken(&self) -> u32 {
        let log = self.log.as_ref();
        log.map_or(0, |log| log.end.wrapping_sub(log.base))
    }
}

impl MulticastView {
    /// View of `controller`, which leads.
    pub(crate) fn of(controller: &Controller) -> MulticastView {
        let switches = controller.switches().map(|switch| MulticastSwitchView {
            number: switch.number,
            address: switch.address,
            incarnation: switch.incarnation,
            alive: switch.alive,
            drained: switch.drained,
        });
        let groups = (0..controller.groups()).filter_map(|group| controller.group(group));
        let groups = groups.map(|state| MulticastGroupView::of(controller, &state));
        let (sessions, ended) = controller.sessions();
        let (lanes, most_lanes) = controller.lanes();
        MulticastView {
            leads: true,
            behind: controller.is_behind(),
            settled: controller.is_settled(),
            replicas: controller.replicas(),
            window: controller.settings().window,
            sessions,
            ended,
            lanes,
            most_lanes,
            switches: switches.collect(),
            groups: groups.collect(),
        }
    }

    /// Groups that take no messages: they have no leader whose own no-op is committed.
    pub fn down(&self) -> usize {
        self.groups
            .iter()
            .filter(|group| !group.established)
            .count()
    }
}
