//! Groups that stand still though all their members live: nothing passes between two of them.

use stateplane_wire::coordination::{Repr, flag};

use super::{Controller, Group};
use crate::decision::Member;

/// Answers in a row that show a member without its neighbour, before that counts: one alone may be
/// of a moment in which a round of promises was lost.
const ANSWERS: u32 = 3;

/// Doublings of the time for which a switch stays out that was left out again and again.
const MOST_DOUBLINGS: u32 = 6;

/// Something that goes on at a member.
#[derive(Debug, Clone, Copy)]
struct Lasting {
    since: u64,
    answers: u32,
}

impl Lasting {
    /// Notes whether it goes on at `now`.
    fn note(of: &mut Option<Lasting>, now: u64, goes_on: bool) {
        let before = of.filter(|_| goes_on);
        let begun = before.unwrap_or(Lasting {
            since: now,
            answers: 0,
        });
        *of = goes_on.then_some(Lasting {
            since: begun.since,
            answers: begun.answers.saturating_add(1),
        });
    }

    fn lasts(&self, now: u64, time: u64) -> bool {
        self.answers >= ANSWERS && self.since.saturating_add(time) <= now
    }
}

/// Last report of a member of the present configuration.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pulse {
    /// Number of its newest entry.
    newest: u64,
    /// No round of promises came to it within the time of a promise (rule 14).
    without_round: Option<Lasting>,
    /// Its newest number stays below that of its predecessor.
    behind: Option<Lasting>,
}

impl Group {
    /// Takes what a member says of itself.
    pub(super) fn pulse(&mut self, now: u64, switch: u32, message: &Repr<'_>) {
        let members = self.config.members.iter();
        let Some(place) = members.clone().position(|it| it.switch == switch) else {
            return;
        };
        let before = place
            .checked_sub(1)
            .map(|it| self.config.members[it].switch);
        let ahead = before.and_then(|it| self.pulses.get(&it));
        let ahead = ahead.map_or(0, |pulse| pulse.newest);
        let pulse = self.pulses.entry(switch).or_default();
        let moved = pulse.newest != message.newest;
        pulse.newest = message.newest;
        let rounds = message.flags & flag::LEASED == 0;
        Lasting::note(&mut pulse.without_round, now, rounds);
        Lasting::note(&mut pulse.behind, now, !moved && message.newest < ahead);
    }

    /// The switch to leave out of a group that has stood still for `time`: of the two between which
    /// nothing passes the one that is later in the chain.
    pub(super) fn standing(&self, now: u64, time: u64) -> Option<Member> {
        let members = &self.config.members;
        // Who is alone needs no rounds, and feeds a joiner for as long as a join may take.
        if members.len() < 2 {
            return None;
        }
        let pulse = |member: &Member| self.pulses.get(&member.switch);
        let mut without = members.iter().map(|it| pulse(it)?.without_round);
        let lasts = |it: &Option<Lasting>| it.is_some_and(|it| it.lasts(now, time));
        if without.clone().any(|it| lasts(&it)) {
            // A round begins at the answerer and goes from the head along the chain: the first who
            // does not get it has it from the one before.
            return match (self.config.joining, without.position(|it| it.is_some())?) {
                (Some(joining), _) => Some(joining),
                (None, 0) => members.last().copied(),
                (None, place) => members.get(place).copied(),
            };
        }
        let behind = |it: &&Member| pulse(it).is_some_and(|pulse| lasts(&pulse.behind));
        members.iter().find(behind).copied()
    }

    /// Time for which a switch stays out that is left out because the group stood still, the longer
    /// the more often that was so.
    pub(super) fn stays_out(&mut self, switch: u32, time: u64) -> u64 {
        let stood = self.stood.entry(switch).or_default();
        let time = time.saturating_mul(1 << (*stood).min(MOST_DOUBLINGS));
        *stood = stood.saturating_add(1);
        time
    }
}

impl Controller {
    /// Asks members how far they are, by the configuration that they follow already.
    pub(super) fn watch(&mut self, now: u64) {
        if now < self.watch_at {
            return;
        }
        self.watch_at = u64::MAX;
        if self.settings.standstill == 0 {
            return;
        }
        self.watch_at = now.saturating_add(self.settings.standstill / 4);
        let mut asked = Vec::new();
        for group in self.groups.values() {
            if group.is_stored() && group.config.members.len() > 1 {
                let members = group.config.members.iter();
                let alive =
                    members.filter(|it| self.servers.is_alive(it) && group.is_confirmed(it));
                asked.extend(alive.map(|member| (group.config.clone(), *member)));
            }
        }
        for (config, member) in asked {
            self.send_config(&config, &member);
        }
    }
}
