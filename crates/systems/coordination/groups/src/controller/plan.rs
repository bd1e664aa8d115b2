//! Planning: one step at a time towards the wanted chain of every group.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use stateplane_invariant::invariant;
use stateplane_membership::Ring;
use stateplane_wire::coordination::MAX_CHAIN;

use super::{Controller, Group};
use crate::decision::{Decision, GroupConfig, Member};

/// PINGs without an answer behind which a switch may have died, though it is not yet taken for dead.
const PINGS: u64 = 2;

/// The next configuration of a group.
struct Step {
    members: Vec<Member>,
    joining: Option<Member>,
    /// The switch that takes too long to join.
    gives_up: Option<Member>,
    /// The switch that is left out because the group stands still.
    stands: Option<Member>,
}

impl Step {
    fn to(members: Vec<Member>, joining: Option<Member>) -> Step {
        Step {
            members,
            joining,
            gives_up: None,
            stands: None,
        }
    }
}

impl Controller {
    /// The switches that should keep a group, those of different failure domains first. A switch
    /// that died lately keeps its place: it may be back soon.
    pub(super) fn wanted(&self, group: u16) -> Vec<u32> {
        let shunned = self.groups.get(&group).map(|group| &group.shunned);
        let domain = |switch: u32| {
            let stays_out = shunned.is_some_and(|shunned| shunned.contains_key(&switch));
            self.domains.get(&switch).filter(|_| !stays_out)
        };
        let count = self.settings.replicas.into();
        self.ring.servers_apart(group, count, domain)
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
        if !self.unfounded.is_empty() {
            let founds = self.began.saturating_add(self.settings.found_after);
            wake = wake.min(if founds > now { founds } else { u64::MAX });
        }
        self.wake = wake;
        self.ring = Ring::new(on_ring, self.settings.virtual_nodes);
        self.place_redirects(now);
        self.note_down();
        self.stale.extend(0..self.settings.groups);
        for group in 0..self.settings.groups {
            self.wake_for(now, group);
        }
    }

    /// Clients learn which groups have no member that lives.
    fn note_down(&mut self) {
        let mut changed = Vec::new();
        for (number, group) in &mut self.groups {
            let mut members = group.config.members.iter();
            let down = !members.any(|member| self.servers.is_alive(member));
            if down != group.down {
                group.down = down;
                self.counters.down += u64::from(down);
                changed.push(*number);
            }
        }
        for number in changed {
            self.publish(number);
        }
    }

    /// Looks at a group again when a switch may try again to join, or has tried too long.
    fn wake_for(&mut self, now: u64, group: u16) {
        let Some(group) = self.groups.get(&group) else {
            return;
        };
        let joins = group.is_stored() && group.config.joining.is_some() && !group.joined;
        let timeout = joins.then(|| group.since.saturating_add(self.settings.join_timeout));
        let times = group.shunned.values().copied().chain(timeout);
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
        if self.stale.is_empty() {
            return;
        }
        // Groups with the fewest members first: they lose the most by another failure.
        let mut stale: Vec<u16> = core::mem::take(&mut self.stale).into_iter().collect();
        let members = |group: &Group| group.config.members.len();
        stale.sort_by_key(|number| self.groups.get(number).map_or(0, members));
        let mut busy = self.busy();
        for number in stale {
            let Some(group) = self.groups.get_mut(&number) else {
                if let Some(config) = self.found(now, number) {
                    self.propose(now, config);
                }
                continue;
            };
            // One at a time: the one before must be in effect.
            if !group.is_stored() {
                continue;
            }
            group.shunned.retain(|_, until| *until > now);
            let was_joining = group.config.joining.is_some();
            self.wake_for(now, number);
            let Some(step) = self.next_step(now, number, &busy) else {
                continue;
            };
            if step.members.iter().all(|it| self.is_silent(now, it)) {
                // If they have just died, who is left out is the last with the state.
                self.wake = self.wake.min(now.saturating_add(self.settings.ping));
                continue;
            }
            if let Some(joining) = step.joining {
                busy.insert(joining.switch);
                busy.extend(step.members.last().map(|tail| tail.switch));
            } else if was_joining {
                // Another group may begin.
                self.wake = now;
            }
            self.take_step(now, number, step);
        }
    }

    /// True of a member that may have died a moment ago: it answered none of the last PINGs.
    fn is_silent(&self, now: u64, member: &Member) -> bool {
        let health = self.servers.all.get(&member.switch);
        let patience = self.settings.ping.saturating_mul(PINGS);
        health.is_none_or(|health| health.heard.saturating_add(patience) < now)
    }

    /// Switches that take part in a join: a switch copies one group at a time (rule 15).
    fn busy(&self) -> BTreeSet<u32> {
        let configs = self.groups.values().map(|group| &group.config);
        let joins = configs.filter(|config| config.joining.is_some());
        let pairs =
            joins.flat_map(|config| config.members.last().into_iter().chain(&config.joining));
        pairs.map(|member| member.switch).collect()
    }

    fn take_step(&mut self, now: u64, number: u16, step: Step) {
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        let Some(epoch) = group.config.epoch.checked_add(1) else {
            // Rule 18.
            self.counters.exhausted += 1;
            return;
        };
        if let Some(switch) = step.gives_up {
            let until = now.saturating_add(self.settings.retry_after);
            group.shunned.insert(switch.switch, until);
            self.counters.join_timeouts += 1;
        }
        if let Some(switch) = step.stands {
            let out = group.stays_out(switch.switch, self.settings.retry_after);
            group.shunned.insert(switch.switch, now.saturating_add(out));
            self.counters.standstills += 1;
        }
        let joined = |member: &&Member| group.config.joining == Some(**member);
        self.counters.joined += step.members.iter().filter(joined).count() as u64;
        let config = GroupConfig {
            epoch,
            founds: false,
            members: step.members,
            joining: step.joining,
            ..group.config.clone()
        };
        self.propose(now, config);
    }

    pub(super) fn propose(&mut self, now: u64, config: GroupConfig) {
        let number = config.group;
        let before = self.groups.get(&number);
        let before = before.map_or(0, |group| group.config.epoch);
        if !invariant!(
            self.invariants,
            DecisionNumber,
            config.epoch > before,
            "configuration {} of group {number} would follow number {before}",
            config.epoch
        ) {
            return;
        }
        self.counters.configurations += 1;
        self.records.push_back(Decision::Group(config.clone()));
        self.unfounded.remove(&number);
        let before = self.groups.remove(&number);
        let mut group = Group::new(config, now);
        if let Some(before) = before {
            let named = |switch: &u32| group.config.all().any(|it| it.switch == *switch);
            let left = before.config.all().map(|member| member.switch);
            let former = before.former.into_iter().chain(left);
            group.former = former.filter(|switch| !named(switch)).collect();
            group.stood = before.stood;
            group.shunned = before.shunned;
            group.version = before.version;
            group.shown = before.shown;
            group.down = before.down;
        }
        self.groups.insert(number, group);
        self.note_down();
    }

    /// The first configuration of a group, when enough switches are there.
    fn found(&self, now: u64, number: u16) -> Option<GroupConfig> {
        let unfounded = self.unfounded.get(&number)?;
        let alive = self.servers.all.values().filter(|health| health.alive);
        let alive: Vec<Member> = alive.map(|health| health.start).collect();
        let in_time = alive.len() >= self.settings.switches.len()
            || now >= self.began.saturating_add(self.settings.found_after);
        let asked = |it: &Member| unfounded.asked.contains(&(it.switch, it.incarnation));
        if !in_time || !alive.iter().all(asked) {
            return None;
        }
        let members = self.founders(number);
        (members.len() >= self.settings.replicas.into()).then(|| GroupConfig {
            group: number,
            generation: 1,
            epoch: 1,
            founds: true,
            hash_key: self.hash_key(number, 1),
            members,
            joining: None,
        })
    }

    /// Switches that live, where a group is to begin.
    pub(super) fn founders(&self, number: u16) -> Vec<Member> {
        let wanted = self.wanted(number).into_iter();
        let known = wanted.filter_map(|switch| self.servers.all.get(&switch));
        let alive = known.filter(|health| health.alive);
        alive.map(|health| health.start).collect()
    }

    /// Key of the hash by which the switches of a group place keys in buckets: a client cannot
    /// choose keys that fill one.
    pub(super) fn hash_key(&self, group: u16, generation: u16) -> [u8; 16] {
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(group.to_be_bytes());
        hash.update(generation.to_be_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hash.finalize()[..16]);
        key
    }

    /// Next configuration for a group; `None` if it may stay.
    fn next_step(&self, now: u64, number: u16, busy: &BTreeSet<u32>) -> Option<Step> {
        let wanted = self.wanted(number);
        let group = self.groups.get(&number)?;
        let present = &group.config;
        let alive = |member: &&Member| self.servers.is_alive(member);
        let survivors: Vec<Member> = present.members.iter().filter(alive).copied().collect();
        let joining = present.joining.filter(|member| alive(&member));
        if let Some(joined) = joining.filter(|_| group.joined) {
            // It has all that was ever answered, and is what answers.
            let members = survivors.into_iter().chain([joined]);
            return Some(Step::to(members.collect(), None));
        }
        if survivors.is_empty() {
            // Nobody has the state. A switch that was only cut off still has it.
            return None;
        }
        if present.founds && group.needs().any(|member| alive(&member)) {
            // Who begins empty has to know that it does.
            return None;
        }
        if survivors.len() < present.members.len() || joining != present.joining {
            return Some(Step::to(survivors, joining));
        }
        if let Some(stands) = group.standing(now, self.settings.standstill) {
            let stay = survivors.into_iter().filter(|it| *it != stands);
            return Some(Step {
                stands: Some(stands),
                ..Step::to(stay.collect(), joining.filter(|it| *it != stands))
            });
        }
        if let Some(joining) = joining {
            let timeout = group.since.saturating_add(self.settings.join_timeout);
            if timeout <= now {
                let gives_up = Some(joining);
                return Some(Step {
                    gives_up,
                    ..Step::to(survivors, None)
                });
            }
            let is_wanted = wanted.contains(&joining.switch);
            return (!is_wanted).then(|| Step::to(survivors, None));
        }
        if group.needs().next().is_some() {
            return None;
        }
        let is_member = |server: &u32| survivors.iter().any(|m| m.switch == *server);
        let missing: Vec<u32> = wanted.iter().filter(|s| !is_member(s)).copied().collect();
        // An unwanted member leaves when enough others are there, and all do when all wanted ones
        // are there.
        let is_surplus = |member: &&Member| !wanted.contains(&member.switch);
        let surplus: Vec<Member> = survivors.iter().filter(is_surplus).copied().collect();
        let replicas = usize::from(self.settings.replicas);
        let leave = if missing.is_empty() {
            surplus.len()
        } else {
            survivors.len().saturating_sub(replicas).min(surplus.len())
        };
        if leave > 0 {
            let leave = self.first_to_leave(surplus, leave);
            let stay = survivors.into_iter().filter(|it| !leave.contains(it));
            return Some(Step::to(stay.collect(), None));
        }
        let tail = survivors.last()?;
        if survivors.len() >= MAX_CHAIN || busy.contains(&tail.switch) {
            return None;
        }
        let newcomer = missing.into_iter().find_map(|switch| {
            let start = &self.servers.all.get(&switch)?.start;
            (alive(&start) && !busy.contains(&switch)).then_some(*start)
        });
        newcomer.map(|newcomer| Step::to(survivors, Some(newcomer)))
    }

    /// `count` of `surplus`, the drained ones first.
    fn first_to_leave(&self, mut surplus: Vec<Member>, count: usize) -> Vec<Member> {
        let is_drained = |member: &Member| {
            let health = self.servers.all.get(&member.switch);
            health.is_some_and(|health| health.drained)
        };
        surplus.sort_by_key(|member| !is_drained(member));
        surplus.truncate(count);
        surplus
    }
}
