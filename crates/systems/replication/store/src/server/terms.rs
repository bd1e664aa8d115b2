//! Terms of switches with this server, and what it promises them on (rules 1 to 1c): which
//! shards it covers, who backs it in their chains, and whom it backs itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use core::net::SocketAddrV4;

use stateplane_term::{Received, Stream};
use stateplane_wire::term::{
    Answer, Heartbeat, MOST_WITHHELD, Message, Question, Reply, Row, row_flag,
};

use super::{Datagram, Hosted, Management, Recipient, Server};
use crate::record::Owner;

/// Most servers that are told of as they ask for a longer backing.
const MOST_LONGER: usize = 1024;

/// Most questions to one server whose answers still count.
const MOST_QUESTIONS: usize = 256;

/// Another server, as one that backs this one in its chains.
#[derive(Debug, Clone, Default)]
struct Backer {
    /// Chains that it follows.
    rows: Received,
    /// Questions without an answer, and when they were sent.
    questions: BTreeMap<u32, u64>,
    /// When the newest question was sent that it has answered in full.
    answered: Option<u64>,
    /// When it is asked next.
    due: u64,
    /// Since when it has been asked without an answer.
    silent_since: Option<u64>,
    /// It does not back each chain yet that it is in.
    lacks: bool,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// Shards that this server covers, for switches.
    covered: Stream,
    /// Chains that it follows, for their heads.
    followed: Stream,
    backers: BTreeMap<SocketAddrV4, Backer>,
    /// Number of the last question.
    number: u32,
    /// Something changed that rows depend on.
    changed: bool,
    /// When a row ceases to be true.
    lapses: Option<u64>,
    /// Servers that ask for a longer backing than this one gives, and those of them to be told of.
    longer: BTreeSet<SocketAddrV4>,
    longer_untold: VecDeque<LongerBacking>,
    outbox: VecDeque<Datagram>,
}

/// A server asks for a longer backing than this one gives: their settings differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongerBacking {
    /// Chain port of the server.
    pub from: SocketAddrV4,
    /// µs for which it is to be backed.
    pub asked: u32,
    /// µs for which this server backs.
    pub given: u32,
}

impl Terms {
    /// `stream` is drawn anew at each start of the process.
    pub(super) fn new(stream: u32) -> Terms {
        Terms {
            covered: Stream::new(stream),
            followed: Stream::new(stream),
            backers: BTreeMap::new(),
            number: stream,
            changed: true,
            lapses: None,
            longer: BTreeSet::new(),
            longer_untold: VecDeque::new(),
            outbox: VecDeque::new(),
        }
    }

    /// Something changed that rows depend on.
    pub(super) fn look_again(&mut self) {
        self.changed = true;
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Datagram> {
        self.outbox.pop_front()
    }

    /// When the next question is due.
    pub(super) fn due(&self) -> Option<u64> {
        if self.changed {
            return Some(0);
        }
        self.backers.values().map(|backer| backer.due).min()
    }

    fn send(&mut self, to: Recipient, bytes: Vec<u8>) {
        self.outbox.push_back(Datagram {
            to,
            bytes: Arc::new(bytes),
        });
    }
}

impl Server {
    /// The time from which no promise stands in the way of outwaiting the lease of `owner` on a
    /// flow of `shard`.
    pub fn promised(&self, shard: u16, owner: &Owner) -> u64 {
        self.promises.until(shard, owner)
    }

    /// A heartbeat of a switch.
    pub(super) fn handle_heartbeat(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        let heartbeat = match Message::parse(bytes) {
            Ok(Message::Heartbeat(heartbeat)) if heartbeat.incarnation != 0 => heartbeat,
            _ => {
                self.counters.term_malformed += 1;
                return;
            }
        };
        self.look_at_terms(now);
        let Heartbeat {
            switch_id,
            incarnation,
            ..
        } = heartbeat;
        let start = (switch_id, incarnation);
        let (changes, whole) = self
            .terms
            .covered
            .changes(heartbeat.stream, heartbeat.version);
        let mut withheld: Vec<u16> = self.promises.withheld(start).collect();
        let covers = whole && withheld.len() <= MOST_WITHHELD;
        if covers {
            let term = self.template.lengthened(self.template.term);
            let until = now.saturating_add(term);
            if !self.promises.promise(now, start, until) {
                self.counters.too_many_switches += 1;
                return;
            }
        } else {
            withheld.clear();
        }
        let reply = Reply {
            switch_id,
            incarnation,
            number: heartbeat.number,
            send_time: heartbeat.send_time,
            promise: if covers { self.template.term } else { 0 },
            withheld,
            changes,
        };
        if let Ok(bytes) = reply.to_vec() {
            self.counters.promised += 1;
            self.terms.send(Recipient::Switch(from), bytes);
        }
    }

    /// A question of another server for backing, or its answer.
    pub(super) fn handle_backing(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        match Message::parse(bytes) {
            Ok(Message::Question(question)) if question.backing > self.template.backing => {
                self.longer_backing(from, question.backing);
            }
            Ok(Message::Question(question)) => {
                self.look_at_terms(now);
                let (changes, whole) = self
                    .terms
                    .followed
                    .changes(question.stream, question.version);
                let answer = Answer {
                    server: question.server,
                    incarnation: question.incarnation,
                    number: question.number,
                    whole,
                    changes,
                };
                self.counters.backing_answered += 1;
                self.terms.send(Recipient::Neighbour(from), answer.to_vec());
            }
            Ok(Message::Answer(answer)) => self.backed(now, from, &answer),
            _ => self.counters.term_malformed += 1,
        }
    }

    /// This server outwaits others after its own time (rule 1c), so it backs nobody for longer.
    fn longer_backing(&mut self, from: SocketAddrV4, asked: u32) {
        self.counters.backing_too_long += 1;
        let terms = &mut self.terms;
        if terms.longer.len() < MOST_LONGER && terms.longer.insert(from) {
            terms.longer_untold.push_back(LongerBacking {
                from,
                asked,
                given: self.template.backing,
            });
        }
    }

    /// The next server that asks for a longer backing than this one gives, to be told to whoever
    /// runs it; each is given once.
    pub fn poll_longer_backing(&mut self) -> Option<LongerBacking> {
        self.terms.longer_untold.pop_front()
    }

    fn backed(&mut self, now: u64, from: SocketAddrV4, answer: &Answer) {
        let Some(backer) = self.terms.backers.get_mut(&from) else {
            return;
        };
        let Some(sent) = backer.questions.remove(&answer.number) else {
            return;
        };
        backer.silent_since = None;
        if !backer.rows.take(&answer.changes) {
            return;
        }
        let backed = backer.answered;
        let had_ended =
            backed.is_none_or(|at| at.saturating_add(self.template.backed_time()) <= now);
        if answer.whole {
            backer.answered = backer.answered.max(Some(sent));
        } else {
            backer.due = now;
        }
        self.terms.changed |= had_ended || backer.lacks || !answer.changes.rows.is_empty();
    }

    /// Asks for backing what is due at `now`, while nothing else may be done as a disk is waited
    /// for; and when it is to be called again, in µs. [`Server::poll_transmit`] gives what terms
    /// rest on even then.
    pub fn ask_again(&mut self, now: u64) -> Option<u64> {
        self.ask_for_backing(now);
        self.terms.due()
    }

    /// Asks the servers of its chains for backing, if it is time to.
    pub(super) fn ask_for_backing(&mut self, now: u64) {
        let Management::Controller(reporting) = &self.management else {
            self.look_at_terms(now);
            return;
        };
        let own = reporting.identity;
        self.look_at_terms(now);
        let limits = self.template.limits;
        let terms = &mut self.terms;
        for (to, backer) in &mut terms.backers {
            if backer.due > now {
                continue;
            }
            terms.number = terms.number.wrapping_add(1);
            let (stream, version) = backer.rows.known();
            let question = Question {
                server: own.server,
                incarnation: own.incarnation,
                number: terms.number,
                backing: self.template.backing,
                stream,
                version,
            };
            if backer.questions.len() >= MOST_QUESTIONS {
                let oldest = backer.questions.iter().min_by_key(|(_, sent)| **sent);
                let oldest = oldest.map(|(number, _)| *number);
                oldest.map(|number| backer.questions.remove(&number));
            }
            backer.questions.insert(terms.number, now);
            let since = *backer.silent_since.get_or_insert(now);
            // A server that is dead for long is not asked as often.
            let is_dead = now.saturating_sub(since) >= u64::from(self.template.backing);
            let interval = if backer.lacks && !is_dead {
                limits.backing_first
            } else {
                limits.backing_interval
            };
            backer.due = now.saturating_add(interval);
            self.counters.backing_asked += 1;
            terms.outbox.push_back(Datagram {
                to: Recipient::Neighbour(*to),
                bytes: Arc::new(question.to_vec()),
            });
        }
    }

    /// Brings rows up to date with what is true at `now`.
    pub(super) fn look_at_terms(&mut self, now: u64) {
        if !self.terms.changed && self.terms.lapses.is_none_or(|at| now < at) {
            return;
        }
        self.terms.changed = false;
        self.terms.lapses = None;
        if let Management::Fixed = self.management {
            self.cover_fixed();
            return;
        }
        let mut backers: BTreeMap<SocketAddrV4, Backer> = BTreeMap::new();
        let mut former = core::mem::take(&mut self.terms.backers);
        for hosted in self.chains.values().filter(|hosted| hosted.is_head()) {
            for link in hosted.others() {
                backers.entry(link).or_insert_with(|| {
                    former.remove(&link).unwrap_or(Backer {
                        due: now,
                        ..Backer::default()
                    })
                });
            }
        }
        for backer in backers.values_mut() {
            backer.lacks = false;
        }
        self.terms.backers = backers;
        let numbers = self.terms.rows().chain(self.chains.keys().copied());
        let numbers: BTreeSet<u16> = numbers.collect();
        for number in numbers {
            let Some(hosted) = self.chains.get(&number) else {
                self.terms.set(number, 0, 0, 0);
                continue;
            };
            let epoch = hosted.replica.place().epoch;
            let settled = self.unsaved.has(hosted.settled) || !self.template.durable;
            if !settled {
                // After a restart it might follow an older one again.
                self.terms.set(number, epoch, 0, 0);
                continue;
            }
            let joined = u8::from(hosted.told_joined) * row_flag::JOINED;
            let (until, lacking) = self.covered_until(number, hosted);
            for link in lacking {
                if let Some(backer) = self.terms.backers.get_mut(&link) {
                    backer.lacks = true;
                    if backer.silent_since.is_none() {
                        backer.due = backer
                            .due
                            .min(now.saturating_add(self.template.limits.backing_first));
                    }
                }
            }
            let covers = until.is_some_and(|until| now < until);
            if let Some(until) = until.filter(|_| covers) {
                let first = self.terms.lapses.unwrap_or(until);
                self.terms.lapses = Some(first.min(until)).filter(|at| *at < u64::MAX);
            }
            let covers = u8::from(covers) * row_flag::HOLDS;
            self.terms
                .set(number, epoch, covers, row_flag::HOLDS | joined);
        }
    }

    /// The rows of a chain that never changes: its head needs nobody's backing.
    fn cover_fixed(&mut self) {
        let Some(hosted) = self.chains.get(&0) else {
            return;
        };
        let covers = hosted.is_head() && !hosted.replica.is_silenced();
        for shard in &self.template.served {
            self.terms.covered.set(Row {
                shard: *shard,
                epoch: hosted.replica.place().epoch,
                flags: u8::from(covers) * row_flag::HOLDS,
            });
        }
    }

    /// Until when this server covers a chain, by the backing that it has; and who does not back
    /// it.
    fn covered_until(&self, number: u16, hosted: &Hosted) -> (Option<u64>, Vec<SocketAddrV4>) {
        if !hosted.is_head() || hosted.replica.is_silenced() {
            return (None, Vec::new());
        }
        let faults = &self.template.faults;
        if faults.need_no_backing {
            return (Some(u64::MAX), Vec::new());
        }
        let place = hosted.replica.place();
        let members = usize::from(place.length);
        let row_of = |link| self.terms.backers.get(link)?.rows.row(number).copied();
        let tail = hosted.links.get(members - 1).and_then(row_of);
        let tail = tail.filter(|row| row.epoch == place.epoch);
        let told = hosted.told_joined || tail.is_some_and(|row| row.flags & row_flag::JOINED != 0);
        let (mut until, mut lacking) = (Some(u64::MAX), Vec::new());
        for (position, link) in hosted.links.iter().enumerate().skip(1) {
            let backer = self.terms.backers.get(link);
            let row = row_of(link).filter(|row| {
                let follows = row.epoch == place.epoch && row.flags & row_flag::HOLDS != 0;
                follows || faults.back_any_epoch
            });
            let answered = backer.and_then(|backer| backer.answered);
            let backed = answered.zip(row).map(|(asked, _)| asked);
            if backed.is_none() {
                lacking.push(*link);
            }
            if position < members || told && !faults.ignore_joiner {
                let backed = backed.map(|at| at.saturating_add(self.template.backed_time()));
                until = until.zip(backed).map(|(until, backed)| until.min(backed));
            }
        }
        (until, lacking)
    }
}

impl Terms {
    /// Shards with a row.
    fn rows(&self) -> impl Iterator<Item = u16> {
        self.followed.shards()
    }

    fn set(&mut self, shard: u16, epoch: u32, covered: u8, followed: u8) {
        let row = |flags| Row {
            shard,
            epoch,
            flags,
        };
        self.covered.set(row(covered));
        self.followed.set(row(followed));
    }
}

impl Hosted {
    fn is_head(&self) -> bool {
        self.replica.is_head()
    }

    /// Links of the other members and of a replica that joins.
    fn others(&self) -> impl Iterator<Item = SocketAddrV4> {
        self.links.iter().skip(1).copied()
    }
}

#[cfg(test)]
mod tests;
