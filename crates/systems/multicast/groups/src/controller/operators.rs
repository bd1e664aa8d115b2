//! Requests and views of operators.

use core::net::Ipv4Addr;

use stateplane_wire::multicast_control::{MOST_NUMBERS, Standing};

use super::Controller;
use crate::decision::{GroupConfig, Member, SlotState};

/// The controller's view of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchView {
    /// Its number.
    pub number: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its failure domain.
    pub domain: u32,
    /// Incarnation of its present start, if it was ever heard.
    pub incarnation: Option<u32>,
    /// True if its host was heard lately.
    pub alive: bool,
    /// True if it is to lose its groups.
    pub drained: bool,
}

/// Reasons for which the oldest entry of a leader's log waits. All are 0 if there is no entry, or if it can
/// be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Map of the members whose logs lack it, while it is not committed.
    pub members: u8,
    /// Map of the receivers that lack it.
    pub receivers: u8,
    /// Map of the groups that did not decide it.
    pub decided: u32,
    /// Map of the groups whose receivers may lack it.
    pub done: u32,
}

/// State of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// Epoch, members and receivers, as they are in effect.
    pub config: GroupConfig,
    /// True if a leader is appointed and its own no-op is committed.
    pub established: bool,
    /// How far the leader is, as its host said last.
    pub standing: Option<Standing>,
    /// Reasons for which its oldest entry waits.
    pub waits: Waits,
    /// Members that promised the epoch, while it has no leader, as a map.
    pub promised: u8,
}

/// Why a group cannot be founded anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefoundError {
    /// There is no such group, or it was never founded.
    #[error("there is no group {0} that was founded")]
    NoGroup(u8),
    /// A member lives, and has its log.
    #[error(
        "switch {switch} has the log of group {group}: it is founded anew only if all its members \
         are lost"
    )]
    NotDown {
        /// The group.
        group: u8,
        /// A member that lives.
        switch: u32,
    },
    /// The switches that live are too few, or a decision is being stored.
    #[error("group {0} cannot begin: too few switches live, or a decision is being stored")]
    NotNow(u8),
}

impl RefoundError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            RefoundError::NoGroup(_) => "K131",
            RefoundError::NotDown { .. } => "K132",
            RefoundError::NotNow(_) => "K133",
        }
    }
}

impl Controller {
    /// Founds a group anew, with empty logs, whose members are all lost: an operator's word that
    /// they are stopped. Its epochs go on, its receivers have to join anew.
    ///
    /// # Errors
    ///
    /// [`RefoundError`]; nothing is decided then.
    pub fn refound(&mut self, now: u64, number: u8) -> Result<(), RefoundError> {
        let Some(group) = self.groups.get(&number) else {
            return Err(RefoundError::NoGroup(number));
        };
        let holders = group.config.holders();
        if let Some(member) = holders.iter().find(|it| self.servers.is_alive(it)) {
            let switch = member.switch;
            return Err(RefoundError::NotDown {
                group: number,
                switch,
            });
        }
        let exhausted = group.config.epoch == u32::MAX;
        if !group.stored || self.is_behind() || exhausted {
            return Err(RefoundError::NotNow(number));
        }
        let mut config = group.config.clone();
        config.former = holders;
        config.former.retain(|it| !self.is_released(number, it));
        let taken = |number: &u8| config.former.iter().any(|it| it.number == *number);
        let free = (0..MOST_NUMBERS).filter(|number| !taken(number));
        let founders = self.founders(number);
        let members = free
            .zip(founders)
            .map(|(number, member)| Member { number, ..member });
        let members: Vec<Member> = members.collect();
        if members.len() < self.settings.replicas.into() {
            return Err(RefoundError::NotNow(number));
        }
        config.epoch += 1;
        config.leader = None;
        config.configs = vec![members];
        config.untried = false;
        config.learner = None;
        config.list = config.list.wrapping_add(1);
        config.receivers.clear();
        if let Some(group) = self.groups.get_mut(&number) {
            group.begin(None);
            group.receptions.clear();
            group.led_before = None;
        }
        self.counters.epochs += 1;
        self.decide(now, config);
        self.settle(now);
        Ok(())
    }

    /// Lets a switch, known or not, lose its groups, or take part again. When no group names it
    /// any more it can be stopped.
    pub fn drain(&mut self, now: u64, switch: u32, drained: bool) {
        self.servers.drain(switch, drained);
        self.place_anew(now);
        self.settle(now);
    }

    /// Number of groups.
    pub fn groups(&self) -> u8 {
        self.settings.groups
    }

    /// Members that each group is to have.
    pub fn replicas(&self) -> usize {
        self.settings.replicas.into()
    }

    /// State of a group; `None` before it is founded.
    pub fn group(&self, number: u8) -> Option<GroupState> {
        let group = self.groups.get(&number)?;
        let config = group.shown.clone();
        let leader = config.leading();
        let host = leader.and_then(|leader| self.hosts.get(&leader.switch));
        let standing = host.and_then(|host| host.standings.get(&number));
        let standing = standing.filter(|it| it.promised == config.epoch).copied();
        let waits = standing.map_or(Waits::default(), |it| Waits {
            members: it.lacks_members,
            receivers: it.lacks_receivers,
            decided: it.lacks_decided,
            done: it.lacks_done,
        });
        let promised = group.promises.keys();
        Some(GroupState {
            established: leader.is_some() && group.led.established,
            standing,
            waits,
            promised: promised.fold(0, |map, number| map | (1 << number)),
            config,
        })
    }

    /// True if this start of a switch is alive.
    pub fn is_alive(&self, member: &Member) -> bool {
        self.servers.is_alive(member)
    }

    /// True if every group has an established leader and all its members, where placement wants
    /// them, and none else.
    pub fn is_settled(&self) -> bool {
        (0..self.settings.groups).all(|number| {
            let wanted = self.wanted(number);
            self.groups.get(&number).is_some_and(|group| {
                let config = &group.config;
                let members = config.members();
                group.stored
                    && group.led.established
                    && config.leader.is_some()
                    && config.configs.len() == 1
                    && config.learner.is_none()
                    && members.len() == wanted.len()
                    && members
                        .iter()
                        .all(|it| wanted.contains(&it.switch) && self.is_alive(it))
            })
        })
    }

    /// All switches of the settings, by number.
    pub fn switches(&self) -> impl Iterator<Item = SwitchView> {
        let mut switches = self.settings.switches.clone();
        switches.sort_by_key(|switch| switch.number);
        switches.into_iter().map(|switch| {
            let health = self.servers.all.get(&switch.number);
            SwitchView {
                number: switch.number,
                address: switch.address,
                domain: switch.domain,
                incarnation: health.map(|health| health.start.incarnation),
                alive: health.is_some_and(|health| health.alive),
                drained: self.servers.is_drained(switch.number),
            }
        })
    }

    /// Slots of sessions that are open, and of ended ones of which logs may hold entries.
    pub fn sessions(&self) -> (usize, usize) {
        let count = |counts: fn(&SlotState) -> bool| {
            let slots = self.slots.all().map(|(_, entry)| entry.slot().state);
            slots.filter(counts).count()
        };
        (
            count(|state| matches!(state, SlotState::Open { .. })),
            count(|state| matches!(state, SlotState::Ended { .. })),
        )
    }

    /// Lanes that are granted, of the most that can be.
    pub fn lanes(&self) -> (u32, u32) {
        (self.slots.granted(), self.settings.most_lanes())
    }
}
