//! A survey of one group: what each member of its chain holds, and whether the members agree.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sha2::{Digest, Sha256};
use stateplane_wire::coordination::{Key, Kind};

use crate::{Action, Agent, Answer, Event, Operation, Place, Reading, Record, Ticket};

/// Rounds of reads after which a record that goes on changing is left undecided.
const MOST_ROUNDS: u32 = 50;

/// Most reads under way.
const WINDOW: usize = 64;

/// A member's view of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Number of the newest entry that the member had then.
    pub newest: u64,
    /// The record, if it had one; also one that is kept empty for its token.
    pub record: Option<Record>,
}

/// How what two members showed of one key compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Same,
    /// No log explains both.
    Different,
    /// An entry that one of them did not have yet may explain it.
    Undecided,
}

/// A key of which two members hold different records, although the same entries made them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key.
    pub key: Key,
    /// View of each member, in the order of the chain.
    pub seen: Vec<Seen>,
}

/// The result of a survey.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Surveyed {
    /// Records of the first member by kind: values, locks, and those kept empty for their token.
    pub values: usize,
    /// See `values`.
    pub locks: usize,
    /// See `values`.
    pub empty: usize,
    /// Of the first member: sessions, with the values that they own and the locks that they hold.
    pub owned: BTreeMap<u32, (usize, usize)>,
    /// Keys of which members differ.
    pub different: Vec<Difference>,
    /// Keys that changed so often that they could not be compared.
    pub undecided: usize,
    /// First half of the SHA-256 of all records that the members agree on.
    pub digest: u128,
}

#[derive(Debug, Clone, Copy)]
enum Job {
    Scan { member: usize, slot: u16 },
    Read { member: usize, key: Key },
}

/// A survey under way.
///
/// Each member is scanned by itself, and shows the number of its newest entry with each record. A
/// record that differs is read again from all members until an entry explains the difference, or
/// none can: one member had the other's entry, and holds another record.
#[derive(Debug)]
pub struct Survey {
    group: u16,
    members: Vec<Ipv4Addr>,
    seen: Vec<BTreeMap<Key, Seen>>,
    queue: VecDeque<Job>,
    asked: BTreeMap<Ticket, Job>,
    rounds: u32,
    failed: Option<Ipv4Addr>,
}

impl Survey {
    /// A survey of `members`, at least one, of a group's chain.
    pub fn new(group: u16, members: &[Ipv4Addr]) -> Survey {
        Survey {
            group,
            members: members.to_vec(),
            seen: vec![BTreeMap::new(); members.len()],
            queue: (0..members.len())
                .map(|member| Job::Scan { member, slot: 0 })
                .collect(),
            asked: BTreeMap::new(),
            rounds: 0,
            failed: None,
        }
    }

    /// The group.
    pub fn group(&self) -> u16 {
        self.group
    }

    /// The member that did not answer, which ended the survey.
    pub fn failed(&self) -> Option<Ipv4Addr> {
        self.failed
    }

    /// True if nothing is left to ask.
    pub fn is_done(&self) -> bool {
        self.failed.is_some() || (self.queue.is_empty() && self.asked.is_empty())
    }

    /// Asks what is to be asked, as far as the agent takes it.
    pub fn ask(&mut self, now: u64, agent: &mut Agent) {
        while self.failed.is_none()
            && self.asked.len() < WINDOW
            && let Some(job) = self.queue.pop_front()
        {
            let reading = |member: usize| Reading::Of(self.members[member]);
            let (key, action) = match job {
                Job::Scan { member, slot } => {
                    let reading = reading(member);
                    (Key::default(), Action::Scan { slot, reading })
                }
                Job::Read { member, key } => (key, Action::Read(reading(member))),
            };
            let operation = Operation::new(Place::within(self.group, key), action);
            match agent.submit(now, operation) {
                Ok(ticket) => {
                    self.asked.insert(ticket, job);
                }
                Err(_) => {
                    self.queue.push_front(job);
                    break;
                }
            }
        }
    }

    /// Takes an event, if it is about the survey; true if it is.
    pub fn handle_event(&mut self, event: &Event) -> bool {
        let Some(job) = event.ticket().and_then(|ticket| self.asked.remove(&ticket)) else {
            return false;
        };
        match (event, job) {
            (Event::Answered { answer, .. }, Job::Scan { member, .. }) => {
                self.scanned(member, answer);
            }
            (Event::Answered { answer, .. }, Job::Read { member, key }) => {
                self.note(member, key, answer);
            }
            (_, Job::Scan { member, .. } | Job::Read { member, .. }) => {
                self.failed = Some(self.members[member]);
            }
        }
        if self.queue.is_empty() && self.asked.is_empty() && self.rounds < MOST_ROUNDS {
            self.rounds += 1;
            self.read_again();
        }
        true
    }

    fn scanned(&mut self, member: usize, answer: &Answer) {
        if let Some(slot) = answer.next_slot() {
            self.queue.push_back(Job::Scan { member, slot });
        }
        if let Some(record) = &answer.record {
            self.note(member, record.key, answer);
        }
    }

    fn note(&mut self, member: usize, key: Key, answer: &Answer) {
        let seen = Seen {
            newest: answer.newest,
            record: answer.record.clone(),
        };
        self.seen[member].insert(key, seen);
    }

    /// Reads again what cannot be compared yet.
    fn read_again(&mut self) {
        for key in self.keys() {
            if self.compared(&key) == Comparison::Undecided {
                let members = 0..self.members.len();
                self.queue
                    .extend(members.map(|member| Job::Read { member, key }));
            }
        }
    }

    fn keys(&self) -> BTreeSet<Key> {
        self.seen.iter().flat_map(BTreeMap::keys).copied().collect()
    }

    fn compared(&self, key: &Key) -> Comparison {
        let all: Option<Vec<&Seen>> = self.seen.iter().map(|seen| seen.get(key)).collect();
        let Some(all) = all else {
            // A scan that passed before the record came shows nothing of it, not even since when.
            return Comparison::Undecided;
        };
        let pairs = all
            .iter()
            .enumerate()
            .flat_map(|(at, a)| all[..at].iter().map(move |b| compare(a, b)));
        pairs.fold(Comparison::Same, |sum, pair| match (sum, pair) {
            (Comparison::Different, _) | (_, Comparison::Different) => Comparison::Different,
            (Comparison::Undecided, _) | (_, Comparison::Undecided) => Comparison::Undecided,
            _ => Comparison::Same,
        })
    }

    /// Result of the survey.
    pub fn result(&self) -> Surveyed {
        let mut result = Surveyed::default();
        let mut digest = Sha256::new();
        for key in self.keys() {
            match self.compared(&key) {
                Comparison::Same => {}
                Comparison::Undecided => result.undecided += 1,
                Comparison::Different => result.different.push(Difference {
                    key,
                    seen: self
                        .seen
                        .iter()
                        .filter_map(|seen| seen.get(&key).cloned())
                        .collect(),
                }),
            }
            let first = self.seen.first().and_then(|seen| seen.get(&key));
            let Some(record) = first.and_then(|seen| seen.record.as_ref()) else {
                continue;
            };
            match record.kind {
                Kind::Value => result.values += 1,
                Kind::Lock => result.locks += 1,
                _ => result.empty += 1,
            }
            if record.kind == Kind::Value && record.session != 0 {
                result.owned.entry(record.session).or_default().0 += 1;
            }
            if let Some(lock) = record.lock() {
                result.owned.entry(lock.owner.session).or_default().1 += 1;
            }
            digest.update(key.0);
            digest.update([record.kind as u8]);
            digest.update(record.number.to_be_bytes());
            digest.update(record.token.to_be_bytes());
            digest.update(record.session.to_be_bytes());
            digest.update((record.value.len() as u64).to_be_bytes());
            digest.update(&record.value);
        }
        let hash = digest.finalize();
        result.digest = hash[..16]
            .iter()
            .fold(0, |sum, byte| sum << 8 | u128::from(*byte));
        result
    }
}

/// Compares what two members showed. The state of a group is a function of its newest number, so
/// that both can hold only if the later one's record is of an entry that the earlier one lacked.
fn compare(a: &Seen, b: &Seen) -> Comparison {
    if a.record == b.record {
        return Comparison::Same;
    }
    let (earlier, later) = if a.newest <= b.newest { (a, b) } else { (b, a) };
    if earlier.newest == later.newest {
        return Comparison::Different;
    }
    match &later.record {
        Some(record) if record.number <= earlier.newest => Comparison::Different,
        _ => Comparison::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(newest: u64, number: u64, value: &[u8]) -> Seen {
        let record = (number != 0).then(|| Record {
            key: Key::default(),
            kind: Kind::Value,
            number,
            token: 0,
            session: 0,
            value: value.to_vec(),
        });
        Seen { newest, record }
    }

    #[test]
    fn equal_records_are_the_same_at_any_number() {
        assert_eq!(
            compare(&seen(5, 3, b"a"), &seen(9, 3, b"a")),
            Comparison::Same
        );
        assert_eq!(
            compare(&seen(5, 0, b""), &seen(9, 0, b"")),
            Comparison::Same
        );
    }

    #[test]
    fn a_member_that_lacked_the_entry_may_show_another_record() {
        for (earlier, later) in [
            (seen(5, 3, b"a"), seen(9, 6, b"b")),
            (seen(5, 0, b""), seen(9, 6, b"b")),
            (seen(5, 3, b"a"), seen(9, 0, b"")),
        ] {
            assert_eq!(compare(&earlier, &later), Comparison::Undecided);
            assert_eq!(compare(&later, &earlier), Comparison::Undecided);
        }
    }

    #[test]
    fn a_member_that_had_the_entry_must_show_its_record() {
        for (one, other) in [
            (seen(6, 3, b"a"), seen(9, 6, b"b")),
            (seen(9, 6, b"a"), seen(9, 6, b"b")),
            (seen(9, 6, b"a"), seen(9, 0, b"")),
            (seen(8, 0, b""), seen(9, 6, b"b")),
        ] {
            assert_eq!(compare(&one, &other), Comparison::Different);
            assert_eq!(compare(&other, &one), Comparison::Different);
        }
    }
}
