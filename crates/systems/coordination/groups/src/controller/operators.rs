//! Requests and views of operators.

use core::net::Ipv4Addr;

use stateplane_wire::coordination_control::Lanes;

use super::Controller;
use crate::decision::{GroupConfig, Member};

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
    /// True if it answered a PING lately.
    pub alive: bool,
    /// True if it is to lose its groups.
    pub drained: bool,
}

/// Why a group cannot be founded anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefoundError {
    /// There is no such group.
    #[error("there is no group {0}")]
    NoGroup(u16),
    /// A member lives, and has the state.
    #[error(
        "switch {switch} keeps group {group}: it is founded anew only if all its members are lost"
    )]
    NotDown {
        /// The group.
        group: u16,
        /// A member that lives.
        switch: u32,
    },
    /// The switches that live are too few, or the last configuration is not stored yet.
    #[error("group {0} cannot begin: too few switches live, or it is being founded")]
    NotNow(u16),
    /// The group had all generations or configuration numbers.
    #[error("group {0} has no generation or configuration number left")]
    Exhausted(u16),
}

impl RefoundError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            RefoundError::NoGroup(_) => "K111",
            RefoundError::NotDown { .. } => "K112",
            RefoundError::NotNow(_) => "K113",
            RefoundError::Exhausted(_) => "K114",
        }
    }
}

/// The groups that would lose their state if a switch stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsafeStop(
    /// The groups, by number.
    pub Vec<u16>,
);

impl Controller {
    /// Lets a switch, known or not, lose its groups, or take part again. When no group names it
    /// any more it can be stopped.
    pub fn drain(&mut self, now: u64, switch: u32, drained: bool) {
        self.servers.drain(switch, drained);
        self.place_anew(now);
        self.reconsider(now);
    }

    /// Founds a group anew, empty, whose members are all lost: an operator's word that they are
    /// stopped (rule 17). It takes the next generation; configuration numbers go on.
    ///
    /// A switch that lives and had not joined yet is a founder: nothing is answered before it
    /// knows that the group begins anew, so that it answers nothing of before.
    ///
    /// # Errors
    ///
    /// [`RefoundError`]; nothing is decided then.
    pub fn refound(&mut self, now: u64, number: u16) -> Result<(), RefoundError> {
        if number >= self.settings.groups {
            return Err(RefoundError::NoGroup(number));
        }
        let group = self.groups.get(&number);
        let seen = self.seen.get(&number).copied().unwrap_or_default();
        if group.is_some_and(|group| !group.is_stored()) {
            return Err(RefoundError::NotNow(number));
        }
        let known = group.map(|group| &group.config);
        let alive = |member: &&Member| self.servers.is_alive(member);
        let joining = known.and_then(|known| known.joining.filter(|it| alive(&it)));
        let joined = joining.filter(|_| group.is_some_and(|group| group.joined));
        let keeper = known.and_then(|known| known.members.iter().copied().find(|it| alive(&it)));
        if let Some(member) = keeper.or(joined) {
            let switch = member.switch;
            return Err(RefoundError::NotDown {
                group: number,
                switch,
            });
        }
        let known = known.map_or((0, 0), |config| (config.generation, config.epoch));
        if known == (0, 0) && seen == (0, 0) {
            // It will be founded as every group is.
            return Err(RefoundError::NotNow(number));
        }
        let generation = known.0.max(seen.0).checked_add(1);
        let epoch = known.1.max(seen.1).checked_add(1);
        let (Some(generation), Some(epoch)) = (generation, epoch) else {
            return Err(RefoundError::Exhausted(number));
        };
        let mut members = self.founders(number);
        if members.is_empty() {
            return Err(RefoundError::NotNow(number));
        }
        if let Some(joining) = joining.filter(|it| !members.contains(it)) {
            members.truncate(usize::from(self.settings.replicas).saturating_sub(1));
            members.push(joining);
        }
        let config = GroupConfig {
            group: number,
            generation,
            epoch,
            founds: true,
            hash_key: self.hash_key(number, generation),
            members,
            joining: None,
        };
        // What switches said of the group is what the operator knows.
        self.ahead.doubt(|_, group| group != number);
        self.seen.remove(&number);
        self.propose(now, config);
        self.stale.extend(0..self.settings.groups);
        Ok(())
    }

    /// The present configurations, by group.
    pub fn configurations(&self) -> impl Iterator<Item = &GroupConfig> {
        self.groups.values().map(|group| &group.config)
    }

    /// The present configuration of a group.
    pub fn configuration(&self, group: u16) -> Option<&GroupConfig> {
        self.groups.get(&group).map(|group| &group.config)
    }

    /// Members that each group is to have.
    pub fn replicas(&self) -> usize {
        self.settings.replicas.into()
    }

    /// Time, as [`Controller::handle_timeout`] was told, since which `group` has fewer members that
    /// are alive and follow its configuration than it is to have. `None`: it has all.
    pub fn lacking_since(&self, group: u16) -> Option<u64> {
        self.groups.get(&group)?.lacking_since
    }

    /// Notes which groups have too few whole members, and since when.
    pub(super) fn note_lacking(&mut self, now: u64) {
        let replicas = self.replicas();
        let servers = &self.servers;
        for group in self.groups.values_mut() {
            let members = group.config.members.iter();
            let whole = members.filter(|it| group.is_confirmed(it) && servers.is_alive(it));
            group.lacking_since = if whole.count() < replicas {
                group.lacking_since.or(Some(now))
            } else {
                None
            };
        }
    }

    /// True if a start of a switch is alive.
    pub fn is_alive(&self, member: &Member) -> bool {
        self.servers.is_alive(member)
    }

    /// True if `member` reported that it follows the present configuration of a group.
    pub fn follows(&self, group: u16, member: &Member) -> bool {
        let group = self.groups.get(&group);
        group.is_some_and(|group| group.is_confirmed(member))
    }

    /// Number of the newest entry that a switch last said that it has of a group, in the present
    /// configuration.
    pub fn newest(&self, group: u16, switch: u32) -> Option<u64> {
        self.groups.get(&group)?.newest.get(&switch).copied()
    }

    /// True if every group has all its members, where placement wants them, and all of them follow
    /// the present configuration.
    pub fn is_settled(&self) -> bool {
        self.unfounded.is_empty()
            && self.groups.iter().all(|(number, group)| {
                let wanted = self.wanted(*number);
                let mut members = group.config.members.iter();
                group.is_stored()
                    && group.config.joining.is_none()
                    && group.needs().next().is_none()
                    && group.config.members.len() == wanted.len()
                    && members.all(|member| wanted.contains(&member.switch))
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

    /// Members that each group of `switch` still has when that stops: the fewest, counting those
    /// that live and follow the present configuration. `None` if no group has the switch.
    ///
    /// # Errors
    ///
    /// The groups that would then have lost their state.
    pub fn can_stop(&self, switch: u32) -> Result<Option<usize>, UnsafeStop> {
        let (mut fewest, mut lost) = (None::<usize>, Vec::new());
        for (number, group) in &self.groups {
            if !group.config.all().any(|member| member.switch == switch) {
                continue;
            }
            let members = group.config.members.iter();
            let whole = members.filter(|it| self.is_alive(it) && group.is_confirmed(it));
            let left = whole.filter(|member| member.switch != switch).count();
            if left == 0 {
                lost.push(*number);
            }
            fewest = Some(fewest.map_or(left, |fewest| fewest.min(left)));
        }
        if lost.is_empty() {
            Ok(fewest)
        } else {
            Err(UnsafeStop(lost))
        }
    }

    /// Addresses of failed switches of which the others send requests on, by place.
    pub fn redirected(&self) -> impl Iterator<Item = Ipv4Addr> {
        let addresses = self.redirects.addresses();
        addresses.filter(|address| !address.is_unspecified())
    }

    /// The sessions that are not closed, by number.
    pub fn sessions(&self) -> impl Iterator<Item = Lanes> {
        let sessions = self.lanes.sessions.values();
        sessions.map(|session| session.open.lanes)
    }
}
