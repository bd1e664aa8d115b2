//! A switch's terms: heartbeats to the heads of its chains, and what their replies are good for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use core::net::Ipv4Addr;

use stateplane_wire::replication::older;
use stateplane_wire::term::{Heartbeat, Message, Reply, is_term, row_flag};

use crate::Received;

/// µs of a promise, until a reply says how long it is.
const PROMISE: u64 = 100_000;

/// µs without a reply after which a head is asked in version 1 whether it is older, and
/// between two such questions.
const PROBE_OLDER: u64 = 1_000_000;

/// Most µs between two heartbeats to a head that answers, however long it promises: ports depend
/// on the answers.
const LONGEST_BEAT: u64 = 250_000;

/// µs between two heartbeats of which `parts` are in a promise.
fn between(promise: u64, parts: u64) -> u64 {
    (promise / parts).clamp(1, LONGEST_BEAT)
}

/// A switch's term for one shard (rule 1d).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Term {
    /// What was asked for then or before is not used any more.
    pub since: u64,
    /// Until when the switch uses what it was granted.
    pub deadline: u64,
}

impl Term {
    /// True if the switch may use at `now` what it asked for at `asked`.
    pub fn permits(&self, now: u64, asked: u64) -> bool {
        asked > self.since && now < self.deadline
    }
}

/// Rules turned off, so that a test can show that a checker misses them. All are `false` in
/// service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// A lapse is not noticed: what was granted before it is used again.
    pub ignore_lapse: bool,
    /// What was granted counts from when the heartbeat was sent, not from its reply.
    pub since_asked: bool,
    /// A deadline counts from the reply's arrival, not from when the heartbeat was sent.
    pub deadline_from_arrival: bool,
}

#[derive(Debug, Clone, Copy)]
struct Shard {
    /// Head of its chain, and number of the configuration, as the switch was told.
    chain: Option<(Ipv4Addr, u32)>,
    /// Configuration that the term is of, and stream of the reply.
    epoch: u32,
    stream: u32,
    term: Term,
}

#[derive(Debug, Clone)]
struct Head {
    rows: Received,
    /// Number of shards whose chains it heads.
    shards: usize,
    /// When the next heartbeat is due.
    due: u64,
    /// When the last one was sent.
    sent: u64,
    number: u16,
    /// Send time of the newest heartbeat that was answered.
    answered: Option<u64>,
    /// When it was heard last, or first asked.
    heard: u64,
    /// When it is asked whether it is older.
    probe: u64,
    /// It was said to be older.
    is_older: bool,
}

/// A switch's terms with the heads of its chains.
///
/// Tell it heads with [`Terms::set_head`]. Send what [`Terms::poll_heartbeat`] gives, once every
/// worker has what [`Terms::poll_change`] gave before; ask [`Terms::poll_timeout`] when to call
/// again.
#[derive(Debug, Clone)]
pub struct Terms {
    switch_id: u32,
    incarnation: u32,
    shards: Vec<Shard>,
    heads: BTreeMap<Ipv4Addr, Head>,
    /// µs of the promise that a reply named last.
    promise: u64,
    changed: BTreeSet<u16>,
    older: VecDeque<Ipv4Addr>,
    lapses: u64,
    faults: Faults,
}

impl Terms {
    /// The terms of one start of a switch in a world of `shards` shards. It has none yet.
    pub fn new(switch_id: u32, incarnation: u32, shards: u16) -> Terms {
        let shard = Shard {
            chain: None,
            epoch: 0,
            stream: 0,
            term: Term::default(),
        };
        Terms {
            switch_id,
            incarnation,
            shards: vec![shard; shards.into()],
            heads: BTreeMap::new(),
            promise: PROMISE,
            changed: BTreeSet::new(),
            older: VecDeque::new(),
            lapses: 0,
            faults: Faults::default(),
        }
    }

    /// The same with rules turned off, for tests.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Terms {
        self.faults = faults;
        self
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The head of the chain of `shard` is there from `now` on, as configuration `epoch` has it.
    /// Another than before is asked soon: the one before may have ceased to cover the shard up to
    /// half a promise after it was last asked. So is the same one for a shard whose term has ended.
    pub fn set_head(&mut self, now: u64, shard: u16, head: Ipv4Addr, epoch: u32) {
        let Some(of) = self.shards.get_mut(usize::from(shard)) else {
            return;
        };
        let before = of.chain.replace((head, epoch)).map(|(before, _)| before);
        if before == Some(head) && now < of.term.deadline {
            return;
        }
        let soon = between(self.promise, 10);
        let known = self.heads.entry(head).or_insert(Head {
            rows: Received::default(),
            shards: 0,
            due: now,
            sent: 0,
            number: 0,
            answered: None,
            heard: now,
            probe: now.saturating_add(PROBE_OLDER),
            is_older: false,
        });
        known.due = known.due.min(now.max(known.sent.saturating_add(soon)));
        if before == Some(head) {
            return;
        }
        known.shards += 1;
        if let Some(before) = before
            && let Some(left) = self.heads.get_mut(&before)
        {
            left.shards -= 1;
            if left.shards == 0 {
                self.heads.remove(&before);
            }
        }
    }

    /// The next heartbeat, or question whether a head is older, that is due at `now`: to which
    /// head, and the datagram.
    pub fn poll_heartbeat(&mut self, now: u64) -> Option<(Ipv4Addr, Vec<u8>)> {
        let (&address, head) = self.heads.iter_mut().find(|(_, head)| head.due <= now)?;
        if head.probe <= now {
            head.probe = now.saturating_add(PROBE_OLDER);
            let mut shards = (0..).zip(&self.shards);
            let chain = shards.find_map(|(number, shard)| {
                let (_, epoch) = shard.chain.filter(|(head, _)| *head == address)?;
                Some((number, epoch))
            });
            if let Some((shard, epoch)) = chain
                && let Ok(probe) = older::probe(self.switch_id, self.incarnation, shard, epoch, now)
            {
                return Some((address, probe));
            }
        }
        head.number = head.number.wrapping_add(1);
        head.sent = now;
        // Sooner while a lapse can still be prevented.
        let quiet = now.saturating_sub(head.heard) < self.promise;
        let again = if quiet { 10 } else { 2 };
        head.due = now.saturating_add(between(self.promise, again));
        let (stream, version) = head.rows.known();
        let heartbeat = Heartbeat {
            switch_id: self.switch_id,
            incarnation: self.incarnation,
            number: head.number,
            send_time: now,
            stream,
            version,
        };
        Some((address, heartbeat.to_vec().ok()?))
    }

    /// When [`Terms::poll_heartbeat`] has something to send next.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.heads.values().map(|head| head.due).min()
    }

    /// Takes a datagram that came from `head` at `now`; `false` if it is none that a head sends
    /// to this start of the switch.
    pub fn handle_reply(&mut self, now: u64, head: Ipv4Addr, bytes: &[u8]) -> bool {
        if is_term(bytes) {
            let Ok(Message::Reply(reply)) = Message::parse(bytes) else {
                return false;
            };
            let ours = reply.switch_id == self.switch_id && reply.incarnation == self.incarnation;
            if !ours || reply.send_time > now {
                return false;
            }
            self.answered(now, head, &reply);
            return true;
        }
        let is_older = older::is_answer(bytes, self.switch_id, self.incarnation);
        if is_older
            && let Some(known) = self.heads.get_mut(&head)
            && !known.is_older
        {
            known.is_older = true;
            self.older.push_back(head);
        }
        is_older
    }

    fn answered(&mut self, now: u64, address: Ipv4Addr, reply: &Reply) {
        let Some(head) = self.heads.get_mut(&address) else {
            return;
        };
        let changes = &reply.changes;
        let is_late = head.answered.is_some_and(|newest| reply.send_time < newest);
        // One of a stream that was left may still come.
        if is_late && head.rows.known().0 != changes.stream {
            return;
        }
        let whole = head.rows.take(changes);
        if !is_late {
            head.answered = Some(reply.send_time);
            head.heard = now;
            head.probe = now.saturating_add(PROBE_OLDER);
            head.is_older = false;
            head.due = if reply.promise == 0 && !changes.rows.is_empty() {
                now
            } else if reply.send_time == head.sent {
                head.sent.saturating_add(between(self.promise, 2))
            } else {
                head.due
            };
        }
        if !whole || reply.promise == 0 {
            return;
        }
        let promise = u64::from(reply.promise);
        self.promise = promise;
        let from = if self.faults.deadline_from_arrival {
            now
        } else {
            reply.send_time
        };
        // Rule 1: on the safe side of any clock's rate.
        let deadline = from + promise - (promise >> 9);
        if deadline <= now {
            return;
        }
        // Shards of this head with which all is as it is to be.
        let mut settled = 0;
        for row in head.rows.rows() {
            let holds = row.flags & row_flag::HOLDS != 0;
            let withheld = reply.withheld.contains(&row.shard);
            let Some(shard) = self.shards.get_mut(usize::from(row.shard)) else {
                continue;
            };
            // Others than the head of the shard's chain promise nothing about its leases: fixed
            // chains beside each other have the same number of configuration.
            let is_head = shard.chain.is_some_and(|(head, _)| head == address);
            if !is_head || !holds || row.epoch < shard.epoch {
                continue;
            }
            settled += 1;
            if withheld {
                continue;
            }
            let began_anew = row.epoch == shard.epoch && shard.stream != changes.stream;
            let lapsed = now >= shard.term.deadline;
            let is_first = shard.term.deadline == 0;
            if (lapsed || began_anew) && (is_first || !self.faults.ignore_lapse) {
                self.lapses += u64::from(!is_first);
                shard.term.since = if self.faults.since_asked {
                    reply.send_time
                } else {
                    now
                };
                shard.term.deadline = 0;
            }
            (shard.epoch, shard.stream) = (row.epoch, changes.stream);
            shard.term.deadline = shard.term.deadline.max(deadline);
            self.changed.insert(row.shard);
        }
        // In a new configuration nobody covers the shard until it is backed, which takes some ms.
        // Sooner while a lapse can still be prevented.
        let ends = |(number, shard): (u16, &Shard)| {
            let of_head = shard.chain.is_some_and(|(head, _)| head == address);
            let term = (now + 1..deadline).contains(&shard.term.deadline);
            of_head && term && !reply.withheld.contains(&number)
        };
        if settled < head.shards && (0..).zip(&self.shards).any(ends) {
            let soon = head.sent.saturating_add(between(self.promise, 10));
            head.due = head.due.min(soon.max(now));
        }
    }

    /// The program was changed at `now`: what it was granted before is not used any more.
    pub fn program_changed(&mut self, now: u64) {
        for (number, shard) in (0..).zip(&mut self.shards) {
            shard.term.since = now;
            self.changed.insert(number);
        }
    }

    /// The next shard whose term changed, to be written to the program's register; each change
    /// is given once.
    pub fn poll_change(&mut self) -> Option<(u16, Term)> {
        let shard = self.changed.pop_first()?;
        Some((shard, self.term(shard)))
    }

    /// The term for `shard`.
    pub fn term(&self, shard: u16) -> Term {
        let shard = self.shards.get(usize::from(shard));
        shard.map_or(Term::default(), |shard| shard.term)
    }

    /// The next head that speaks an older version, to be told to whoever runs the switch; each
    /// is given once, until it answers in this version.
    pub fn poll_older(&mut self) -> Option<Ipv4Addr> {
        self.older.pop_front()
    }

    /// When each head was heard last; of one that never was, when it was first asked.
    pub fn heard(&self) -> impl Iterator<Item = (Ipv4Addr, u64)> {
        self.heads
            .iter()
            .map(|(address, head)| (*address, head.heard))
    }

    /// Number of times that the term for a shard had ended before it went on.
    pub fn lapses(&self) -> u64 {
        self.lapses
    }
}

#[cfg(test)]
mod tests;
