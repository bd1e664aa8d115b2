//! Epochs: promises, the choice of a leader, and what the leader says (rules 6 to 11).

use stateplane_invariant::invariant;

use super::{Controller, Group};
use crate::decision::{Decision, GroupConfig, Member};

/// Promise of a member: how far its log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Promise {
    /// Term of its last entry.
    pub(super) term: u32,
    /// Index of its last entry.
    pub(super) index: u32,
}

/// A leader's report in its epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Led {
    /// Its own no-op is committed.
    pub(super) established: bool,
    /// Time at which it last answered, or was first asked.
    pub(super) heard: u64,
    /// Version of the list of receivers that it has, once it answered.
    pub(super) list: Option<u16>,
    /// Index up to which its log is freed.
    pub(super) base: u32,
    /// Index up to which its log is committed.
    pub(super) commit: u32,
    /// Timestamp of its last entry.
    pub(super) time: u64,
}

impl Led {
    pub(super) fn since(now: u64) -> Led {
        Led {
            heard: now,
            ..Led::default()
        }
    }
}

/// True if `newer` follows `than`, of serial numbers.
pub(super) fn is_newer(newer: u32, than: u32) -> bool {
    newer.wrapping_sub(than).cast_signed() > 0
}

impl Promise {
    /// True if its log is behind that of `other` (rule 7).
    fn is_behind(&self, other: &Promise) -> bool {
        is_newer(other.term, self.term)
            || (self.term == other.term && is_newer(other.index, self.index))
    }
}

/// The next step of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// An epoch begins with these configurations.
    Epoch(Vec<Vec<Member>>),
    /// The same, since only a member that was taken out could lead (rule 11).
    Restore(Vec<Vec<Member>>),
    /// The present configuration, with which no leader was appointed, is left for the one before.
    Abandon,
    /// The member leads.
    Appoint(u8),
    /// The present configuration is established.
    Settle,
    /// The switch learns, or nobody does.
    Learn(Option<Member>),
    /// The learner gives up.
    GiveUp(Member),
}

/// True if a majority of `config` is in `promised`.
fn has_majority(config: &[Member], promised: impl Fn(&Member) -> bool) -> bool {
    let votes = config.iter().filter(|member| promised(member)).count();
    votes * 2 > config.len()
}

impl Group {
    /// True if a majority of every configuration that is not settled promised (rules 1, 11), of those
    /// that `count`.
    fn has_majorities(&self, count: impl Fn(&Member) -> bool) -> bool {
        let promised =
            |member: &Member| self.promises.contains_key(&member.number) && count(member);
        let configs = &self.config.configs;
        configs.iter().all(|config| has_majority(config, promised))
    }

    /// The promisers with the longest log (rule 7): of the members alone, if these are majorities
    /// without those that were taken out. Nothing is committed then that only one of these has.
    fn longest(&self) -> Vec<u8> {
        let members = self.config.members();
        let suffice = self.has_majorities(|member| members.contains(member));
        let is_member = |number: u8| members.iter().any(|it| it.number == number);
        let counts = |(number, _): &(&u8, &Promise)| !suffice || is_member(**number);
        let promises = || self.promises.iter().filter(counts);
        let is_longest = |promise: &Promise| !promises().any(|(_, it)| promise.is_behind(it));
        let longest = promises().filter(|(_, promise)| is_longest(promise));
        longest.map(|(number, _)| *number).collect()
    }

    /// Forgets what was said in the epoch before.
    pub(super) fn begin(&mut self, learner: Option<Member>) {
        self.promises.clear();
        self.enough_since = None;
        self.spent = learner.iter().map(|it| it.number).collect();
        self.joined = false;
    }

    /// Takes a promise of the present epoch.
    pub(super) fn promise(&mut self, now: u64, number: u8, promise: Promise) {
        if self.config.leader.is_some() {
            return;
        }
        self.promises.insert(number, promise);
        if self.has_majorities(|_| true) {
            self.enough_since.get_or_insert(now);
        }
    }
}

impl Controller {
    /// The step of an epoch that has no leader.
    pub(super) fn elect(&self, now: u64, number: u8) -> Option<Step> {
        let group = self.groups.get(&number)?;
        let enough_since = group.enough_since?;
        let alive = |member: &&Member| self.servers.is_alive(member);
        let voters = group.config.voters();
        let mut living = voters.iter().filter(alive);
        let all = living.all(|member| group.promises.contains_key(&member.number));
        if !all && now < enough_since.saturating_add(self.settings.patience) {
            return None;
        }
        let longest = group.longest();
        let members = group.config.members();
        let can_lead = |number: u8| {
            let mut members = members.iter();
            longest.contains(&number) && members.any(|it| it.number == number)
        };
        if let Some(again) = group.led_before.filter(|it| can_lead(*it)) {
            return Some(Step::Appoint(again));
        }
        let wanted = self.wanted(number).into_iter();
        let wanted = wanted.filter_map(|switch| members.iter().find(|it| it.switch == switch));
        let numbers = wanted.chain(members).map(|member| member.number);
        if let Some(leader) = numbers.into_iter().find(|it| can_lead(*it)) {
            return Some(Step::Appoint(leader));
        }
        // Only one that was taken out has the longest log: its configuration is restored.
        if group.config.untried && group.config.configs.len() > 1 {
            return Some(Step::Abandon);
        }
        let has = |config: &&Vec<Member>| config.iter().any(|it| longest.contains(&it.number));
        let restored = group.config.configs.iter().rev().find(has)?.clone();
        let mut configs = group.config.configs.clone();
        configs.retain(|config| *config != restored);
        configs.push(restored);
        Some(Step::Restore(configs))
    }

    /// Makes `config` that of the next epoch, with these configurations; false if there is no
    /// number left.
    fn begin_epoch(
        &mut self,
        number: u8,
        config: &mut GroupConfig,
        configs: Vec<Vec<Member>>,
    ) -> bool {
        let Some(epoch) = config.epoch.checked_add(1) else {
            self.counters.exhausted += 1;
            return false;
        };
        config.epoch = epoch;
        config.untried |= config.configs.last() != configs.last();
        let voters = config.voters().into_iter();
        config.configs = configs;
        let stay = config.voters();
        config.former.extend(voters.filter(|it| !stay.contains(it)));
        if let Some(learner) = config.learner.filter(|it| config.members().contains(it)) {
            self.counters.joined += 1;
            config.former.retain(|it| *it != learner);
            config.learner = None;
        }
        if let Some(group) = self.groups.get_mut(&number) {
            group.led_before = config.leader.or(group.led_before);
            group.begin(config.learner);
        }
        config.leader = None;
        self.counters.epochs += 1;
        true
    }

    pub(super) fn take_step(&mut self, now: u64, number: u8, step: Step) {
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        let mut config = group.config.clone();
        match step {
            Step::Epoch(configs) => {
                if !self.begin_epoch(number, &mut config, configs) {
                    return;
                }
            }
            Step::Restore(configs) => {
                self.counters.restored += 1;
                if !self.begin_epoch(number, &mut config, configs) {
                    return;
                }
                config.untried = false;
            }
            Step::Abandon => {
                self.counters.restored += 1;
                let mut configs = config.configs.clone();
                configs.pop();
                if !self.begin_epoch(number, &mut config, configs) {
                    return;
                }
                config.untried = false;
            }
            Step::Appoint(leader) => {
                config.leader = Some(leader);
                config.untried = false;
                self.counters.appointed += 1;
            }
            Step::Settle => {
                let present = config.members().to_vec();
                let voters = config.voters().into_iter();
                let left = voters.filter(|it| !present.contains(it));
                let left: Vec<Member> = left.collect();
                self.counters.left += left.len() as u64;
                config.former.extend(left);
                config.configs = vec![present];
            }
            Step::Learn(learner) => {
                config.former.extend(config.learner);
                config.former.retain(|it| Some(*it) != learner);
                group.spent.extend(learner.iter().map(|it| it.number));
                config.learner = learner;
                config.list = config.list.wrapping_add(1);
                group.joined = false;
                group.learns_since = now;
            }
            Step::GiveUp(learner) => {
                config.former.push(learner);
                config.learner = None;
                config.list = config.list.wrapping_add(1);
                group.joined = false;
                let until = now.saturating_add(self.settings.retry_after);
                group.shunned.insert(learner.switch, until);
                self.counters.join_timeouts += 1;
            }
        }
        self.decide(now, config);
    }

    /// Lets a decision be stored.
    pub(super) fn decide(&mut self, now: u64, mut config: GroupConfig) {
        let number = config.group;
        let before = self.groups.get(&number);
        let record = before.map_or(0, |group| group.config.record);
        let Some(next) = record.checked_add(1) else {
            self.counters.exhausted += 1;
            return;
        };
        config.record = next;
        let released = config.former.iter().map(|it| self.is_released(number, it));
        let released: Vec<bool> = released.collect();
        let mut released = released.into_iter();
        config.former.retain(|_| released.next() == Some(false));
        let stored = before.is_none_or(|group| group.stored);
        if !invariant!(
            self.invariants,
            DecisionNumber,
            stored,
            "decision {next} of group {number} would follow one that is not stored"
        ) {
            return;
        }
        self.records.push_back(Decision::Group(config.clone()));
        let group = self.groups.entry(number);
        let group = group.or_insert_with(|| Group::new(GroupConfig::default(), now));
        group.config = config;
        group.stored = false;
    }

    /// True if `former`, which is in no configuration of the group, knows that: it answers no more
    /// by the number that it had.
    pub(super) fn is_released(&self, number: u8, former: &Member) -> bool {
        let Some(known) = self.servers.all.get(&former.switch) else {
            // The settings do not name it any more: an operator's word.
            return !self.domains.contains_key(&former.switch);
        };
        if known.start.incarnation != former.incarnation {
            return true;
        }
        let (Some(host), Some(group)) = (self.hosts.get(&former.switch), self.groups.get(&number))
        else {
            return false;
        };
        let named = group.shown.voters().into_iter().chain(group.shown.learner);
        host.incarnation == former.incarnation
            && host.version >= group.row
            && !named.into_iter().any(|it| it == *former)
    }

    /// A decision about a group is stored; false if it is another than the last.
    pub(super) fn config_stored(&mut self, now: u64, config: &GroupConfig) -> bool {
        let group = self.groups.get_mut(&config.group);
        let Some(group) = group.filter(|group| group.config == *config && !group.stored) else {
            return false;
        };
        group.stored = true;
        let (epoch, leader) = (group.shown.epoch, group.shown.leader);
        if (epoch, leader) != (config.epoch, config.leader) {
            group.led = Led::since(now);
        }
        if epoch != config.epoch {
            group.own = true;
            // A new leader takes the list anew, with all numbers.
            group.cooling.clear();
        }
        group.shown = config.clone();
        self.version += 1;
        group.row = self.version;
        group.resend_at = now;
        self.stale.insert(config.group);
        if epoch != config.epoch {
            self.ask_lists_anew(config.group);
        }
        self.speak(now, config.group);
        true
    }
}
