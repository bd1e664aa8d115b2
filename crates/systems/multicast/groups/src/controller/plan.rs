//! Planning: one step at a time towards the wanted members of every group.

use stateplane_membership::Ring;
use stateplane_wire::multicast_control::MOST_NUMBERS;

use super::epochs::Step;
use super::{Controller, Group};
use crate::decision::{GroupConfig, Member};

impl Controller {
    /// The switches that should be members of a group, those of different failure domains first. A
    /// switch that died lately keeps its place: it may be back soon.
    pub(super) fn wanted(&self, group: u8) -> Vec<u32> {
        let shunned = self.groups.get(&group).map(|group| &group.shunned);
        let domain = |switch: u32| {
            let stays_out = shunned.is_some_and(|shunned| shunned.contains_key(&switch));
            self.domains.get(&switch).filter(|_| !stays_out)
        };
        let count = self.settings.replicas.into();
        self.ring.servers_apart(group.into(), count, domain)
    }

    /// Makes the ring of all switches that are alive, or died lately, and not drained; every group
    /// is looked at again.
    pub(super) fn place_anew(&mut self, now: u64) {
        let patience = self.settings.replace_after;
        let mut wake = u64::MAX;
        let mut on_ring = Vec::new();
        for (number, health) in &self.servers.all {
            let gone = health.heard.saturating_add(patience);
            if !health.alive && gone > now {
                wake = wake.min(gone);
            }
            if !health.drained && (health.alive || gone > now) {
                on_ring.push(*number);
            }
        }
        if self.groups.len() < self.settings.groups.into() {
            let founds = self.began.saturating_add(self.settings.found_after);
            wake = wake.min(if founds > now { founds } else { u64::MAX });
        }
        self.wake = wake;
        self.ring = Ring::new(on_ring, self.settings.virtual_nodes);
        self.stale.extend(0..self.settings.groups);
        for group in 0..self.settings.groups {
            self.wake_for(now, group);
        }
    }

    /// Looks at a group again when something of it is due.
    fn wake_for(&mut self, now: u64, number: u8) {
        let Some(group) = self.groups.get(&number) else {
            return;
        };
        let patience = self.settings.patience;
        let enough = group.enough_since.map(|it| it.saturating_add(patience));
        let deaf = group.config.leader.is_some() && group.stored;
        let deaf = deaf.then(|| group.led.heard.saturating_add(self.settings.detection));
        let learns = group.config.learner.is_some() && !group.joined;
        let timeout = self.settings.join_timeout;
        let learns = learns.then(|| group.learns_since.saturating_add(timeout));
        let times = group.shunned.values().copied();
        let times = times.chain(enough).chain(deaf).chain(learns);
        if let Some(next) = times.filter(|time| *time > now).min() {
            self.wake = self.wake.min(next);
        }
    }

    /// Looks again at the groups that may have to change.
    pub(super) fn reconsider(&mut self, now: u64) {
        if self.is_behind() {
            self.stale.clear();
            return;
        }
        while let Some(number) = self.stale.pop_first() {
            let Some(group) = self.groups.get_mut(&number) else {
                if let Some(config) = self.found(now, number) {
                    self.counters.epochs += 1;
                    self.decide(now, config);
                }
                continue;
            };
            // One at a time: the one before must be in effect.
            if !group.stored {
                continue;
            }
            group.shunned.retain(|_, until| *until > now);
            self.wake_for(now, number);
            if let Some(step) = self.next_step(now, number) {
                self.take_step(now, number, step);
            } else {
                self.change_list(now, number);
            }
        }
    }

    /// The first configuration of a group, when enough switches are there.
    fn found(&self, now: u64, number: u8) -> Option<GroupConfig> {
        let alive = self.servers.all.values().filter(|health| health.alive);
        let alive: Vec<Member> = alive.map(|health| health.start).collect();
        let in_time = alive.len() >= self.settings.switches.len()
            || now >= self.began.saturating_add(self.settings.found_after);
        // Who promised an epoch of it says so: then the group is another's, whose decisions this
        // controller has not read.
        let was_heard = |member: &Member| {
            let host = self.hosts.get(&member.switch);
            host.is_some_and(|host| host.incarnation == member.incarnation)
        };
        if !in_time || !alive.iter().all(was_heard) {
            return None;
        }
        let wanted = self.wanted(number).into_iter();
        let founders = wanted.filter_map(|it| alive.iter().find(|member| member.switch == it));
        let members = (0..)
            .zip(founders)
            .map(|(number, member)| Member { number, ..*member });
        let members: Vec<Member> = members.collect();
        (members.len() >= self.settings.replicas.into()).then(|| GroupConfig {
            group: number,
            epoch: 1,
            configs: vec![members],
            ..GroupConfig::default()
        })
    }

    /// Switches that live, where a group is to begin.
    pub(super) fn founders(&self, number: u8) -> Vec<Member> {
        let wanted = self.wanted(number).into_iter();
        let known = wanted.filter_map(|switch| self.servers.all.get(&switch));
        let alive = known.filter(|health| health.alive);
        alive.map(|health| health.start).collect()
    }

    /// Next step of a group; `None` if it may stay.
    pub(super) fn next_step(&mut self, now: u64, number: u8) -> Option<Step> {
        let group = self.groups.get(&number)?;
        let again = || Some(Step::Epoch(group.config.configs.clone()));
        if !group.own {
            // Who restarts does not know whether it appointed (rule 6).
            return again();
        }
        let Some(leader) = group.config.leading() else {
            return self.elect(now, number).or_else(|| self.abandon(group));
        };
        if !self.servers.is_alive(&leader) {
            return again();
        }
        if now >= group.led.heard.saturating_add(self.settings.detection) {
            self.counters.deaf += 1;
            return again();
        }
        if !group.led.established {
            return None;
        }
        if group.config.configs.len() > 1 {
            return Some(Step::Settle);
        }
        if let Some(learner) = group.config.learner {
            return self.teach(now, group, learner);
        }
        self.exchange(number)
    }

    /// The step of a group without a leader whose present configuration, with which none was
    /// appointed, has lost its majority before it counted.
    fn abandon(&self, group: &Group) -> Option<Step> {
        let config = &group.config;
        let alive = |member: &&Member| self.servers.is_alive(member);
        let living = config.members().iter().filter(alive).count();
        let lost = living * 2 <= config.members().len();
        (config.untried && config.configs.len() > 1 && lost).then_some(Step::Abandon)
    }

    /// The step of a group in which a switch learns.
    fn teach(&self, now: u64, group: &Group, learner: Member) -> Option<Step> {
        let members = group.config.members();
        if !self.servers.is_alive(&learner) {
            return Some(Step::Learn(None));
        }
        if group.joined {
            // A member that lost its memory leaves first: otherwise the next configuration needs the
            // vote of the one that comes, which may be gone in a moment too. One that is silent may
            // come back, and its memory be needed.
            let gone = members.iter().find(|member| {
                let known = self.servers.all.get(&member.switch);
                known.is_some_and(|it| it.start.incarnation != member.incarnation)
            });
            if let Some(gone) = gone.filter(|_| members.len() >= self.settings.replicas.into()) {
                let stay = members.iter().filter(|it| *it != gone).copied();
                return self.without(members, stay.collect());
            }
            let with: Vec<Member> = members.iter().copied().chain([learner]).collect();
            return Some(Step::Epoch(vec![members.to_vec(), with]));
        }
        let timeout = self.settings.join_timeout;
        if now >= group.learns_since.saturating_add(timeout) {
            return Some(Step::GiveUp(learner));
        }
        let is_wanted = self.wanted(group.config.group).contains(&learner.switch);
        (!is_wanted).then_some(Step::Learn(None))
    }

    /// The step from `members` to those that `stay`, if a majority of these is alive.
    fn without(&self, members: &[Member], stay: Vec<Member>) -> Option<Step> {
        let alive = |member: &&Member| self.servers.is_alive(member);
        let living = stay.iter().filter(alive).count();
        (living * 2 > stay.len()).then(|| Step::Epoch(vec![members.to_vec(), stay]))
    }

    /// The step of a group that is established: one member too many leaves, one that lacks learns.
    fn exchange(&mut self, number: u8) -> Option<Step> {
        let group = self.groups.get(&number)?;
        let members = group.config.members().to_vec();
        let wanted = self.wanted(number);
        let alive = |member: &Member| self.servers.is_alive(member);
        if members.len() > self.settings.replicas.into() {
            let leaves = members.iter().min_by_key(|member| {
                let drained = self.servers.is_drained(member.switch);
                let is_wanted = wanted.contains(&member.switch);
                (alive(member), !drained, is_wanted)
            })?;
            let stay: Vec<Member> = members.iter().filter(|it| *it != leaves).copied().collect();
            let living = stay.iter().filter(|member| alive(member)).count();
            return (living * 2 > stay.len()).then(|| Step::Epoch(vec![members.clone(), stay]));
        }
        let starts = wanted.iter().filter_map(|it| self.servers.all.get(it));
        let mut starts = starts.filter(|health| health.alive).map(|it| it.start);
        let lacks = |start: &Member| {
            let same = |member: &&Member| {
                (member.switch, member.incarnation) == (start.switch, start.incarnation)
            };
            !members.iter().any(|member| same(&member))
        };
        let start = starts.find(|start| lacks(start))?;
        match group.free_number(&start) {
            Some(number) => Some(Step::Learn(Some(Member { number, ..start }))),
            None => {
                self.counters.no_number += 1;
                None
            }
        }
    }
}

impl Group {
    /// A number for a start: the one that it has still, or one that nobody has.
    fn free_number(&self, start: &Member) -> Option<u8> {
        let same = |it: &&Member| (it.switch, it.incarnation) == (start.switch, start.incarnation);
        let former = self.config.former.iter().find(same);
        if let Some(former) = former.filter(|it| !self.spent.contains(&it.number)) {
            return Some(former.number);
        }
        let holders = self.config.holders();
        let is_free = |number: &u8| {
            !self.spent.contains(number) && !holders.iter().any(|it| it.number == *number)
        };
        (0..MOST_NUMBERS).find(is_free)
    }
}
