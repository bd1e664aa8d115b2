//! One chain: the way to its head and its tail, and its flows as the tail told them.

use core::net::SocketAddrV4;
use std::collections::{BTreeMap, VecDeque};

use stateplane_store::newer;
use stateplane_wire::observe::{self, Answer, MOST_PARTS, Record, answer_flag};
use stateplane_wire::replication::{Key, MessageType, RefusalCode, Repr};

use crate::flow::{Flow, Flows};
use crate::settings::Settings;

/// µs without an answer after which a chain counts as silent.
const SILENCE_US: u64 = 3_000_000;

/// Questions to one tail without an answer before the chain is probed again.
const MOST_TRIES: u32 = 3;

/// Most µs between two repeats, in multiples of the first.
const LONGEST_RETRY: u64 = 16;

/// The observer's step with a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It waits until the next look is due.
    Resting,
    /// The head is asked by a probe, sent at this time.
    Probing { sent: u64 },
    /// The tail, a place in the stores, is asked; it answered a probe that was sent at `proven`.
    Asking { tail: usize, proven: u64 },
}

/// Datagrams of the answer to one question. One that came twice was answered twice.
#[derive(Debug, Clone, Default)]
struct Parts {
    /// Stream and last entry of the tail as it answered.
    moment: (u64, u64),
    bodies: Vec<Option<Vec<u8>>>,
}

/// Effect of a datagram of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It answers no question that is open.
    Late,
    /// More of the answer is to come.
    Part,
    /// The server is not the chain's tail.
    Elsewhere,
    /// A record that is none: the answer counts as lost.
    Malformed,
    /// The answer is taken in, and the view is whole as of the probe.
    Whole,
    /// The answer is taken in, and more is to be asked.
    More,
}

/// A chain that is followed.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    number: u16,
    /// Configuration number, as far as known.
    pub(crate) epoch: u32,
    /// Place of the head among the stores, as far as known.
    pub(crate) head: usize,
    step: Step,
    /// The tail that gave the last whole answer.
    tail: Option<usize>,
    /// Number of the last probe or question.
    asked: u32,
    tries: u32,
    due: u64,
    /// A look that was asked for while another one was under way.
    again: bool,
    stream: u64,
    after: u64,
    scan: (u16, u32),
    parts: Parts,
    flows: Flows,
    /// While all records are told anew: those that came.
    anew: Option<Flows>,
    /// Otherwise, flows that changed, or `None` for one that is gone, since the view's moment.
    held: BTreeMap<(u16, Key), Option<Flow>>,
    /// Every write that was acknowledged before is in the flows.
    as_of: Option<u64>,
    heard: u64,
    silent: bool,
    /// It was silent, and was heard since.
    back: bool,
    /// There were more flows than are followed.
    overflowed: bool,
    /// Flows of the told classes that changed.
    changed: VecDeque<(u16, Key)>,
}

impl Chain {
    pub(crate) fn new(number: u16, now: u64) -> Chain {
        Chain {
            number,
            epoch: 0,
            head: 0,
            step: Step::Resting,
            tail: None,
            asked: 0,
            tries: 0,
            due: now,
            again: false,
            stream: 0,
            after: 0,
            scan: (0, 0),
            parts: Parts::default(),
            flows: Flows::default(),
            anew: None,
            held: BTreeMap::new(),
            as_of: None,
            heard: now,
            silent: false,
            back: false,
            overflowed: false,
            changed: VecDeque::new(),
        }
    }

    pub(crate) fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Time before which every acknowledged write is in the flows; `None` before all were told.
    pub(crate) fn as_of(&self) -> Option<u64> {
        self.as_of.filter(|_| !self.overflowed)
    }

    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Looks again at `now`: at once, or when the look that is under way has ended.
    pub(crate) fn look_again(&mut self, now: u64) {
        match self.step {
            Step::Resting => self.due = now,
            _ => self.again = true,
        }
    }

    /// True once when the chain has been silent for long at `now`.
    pub(crate) fn falls_silent(&mut self, now: u64) -> bool {
        let silent = now.saturating_sub(self.heard) >= SILENCE_US;
        silent && !core::mem::replace(&mut self.silent, true)
    }

    /// The next flow of the told classes that changed or is gone.
    pub(crate) fn poll_changed(&mut self) -> Option<(u16, Key)> {
        self.changed.pop_front()
    }

    /// True once after the chain was silent and is heard.
    pub(crate) fn comes_back(&mut self) -> bool {
        core::mem::take(&mut self.back)
    }

    /// Notes that a server of the chain answered.
    fn hear(&mut self, now: u64) {
        self.heard = now;
        self.back |= core::mem::take(&mut self.silent);
    }

    /// The datagram that is due at `now`, and to which of the stores.
    pub(crate) fn next(&mut self, now: u64, settings: &Settings) -> Option<(usize, Vec<u8>)> {
        if now < self.due {
            return None;
        }
        match self.step {
            Step::Resting => {
                self.tries = 0;
                self.again = false;
                if settings.faults.unproven
                    && let Some(tail) = self.tail
                {
                    return Some(self.ask(now, tail, now, settings));
                }
            }
            // Another may be the head by this time.
            Step::Probing { .. } => self.head = (self.head + 1) % settings.stores.len(),
            Step::Asking { tail, proven } if self.tries < MOST_TRIES => {
                return Some(self.ask(now, tail, proven, settings));
            }
            Step::Asking { .. } => self.tries = 0,
        }
        Some(self.probe(now, settings))
    }

    fn wait(&mut self, now: u64, settings: &Settings) {
        let times = (1 << self.tries.min(8)).min(LONGEST_RETRY);
        self.tries = self.tries.saturating_add(1);
        self.due = now.saturating_add(settings.retry_us.saturating_mul(times));
    }

    fn probe(&mut self, now: u64, settings: &Settings) -> (usize, Vec<u8>) {
        self.asked = self.asked.wrapping_add(1).max(1);
        self.step = Step::Probing { sent: now };
        self.wait(now, settings);
        let probe = Repr {
            shard: self.number,
            chain_epoch: self.epoch,
            switch_id: settings.switch,
            incarnation: settings.incarnation,
            request: self.asked,
            ..Repr::new(MessageType::ProbeRequest, Key::default())
        };
        // A probe has no field that may not fit.
        (self.head, probe.to_vec().unwrap_or_default())
    }

    fn ask(&mut self, now: u64, tail: usize, proven: u64, settings: &Settings) -> (usize, Vec<u8>) {
        self.asked = self.asked.wrapping_add(1).max(1);
        self.parts = Parts::default();
        self.step = Step::Asking { tail, proven };
        self.wait(now, settings);
        let question = observe::Observe {
            parts: MOST_PARTS,
            incarnation: settings.incarnation,
            switch_id: settings.switch,
            number: self.asked,
            chain: self.number,
            scan_shard: self.scan.0,
            scan: self.scan.1,
            stream: self.stream,
            after: self.after,
        };
        (tail, question.to_vec())
    }

    /// Learns from the refusal of the server at `from` which configuration is newer, or where the head is
    /// not.
    pub(crate) fn refused(&mut self, from: usize, reply: &Repr<'_>, settings: &Settings) {
        match RefusalCode::from_u8(reply.code) {
            Some(RefusalCode::WrongChainEpoch) if newer(reply.chain_epoch, self.epoch) => {
                self.epoch = reply.chain_epoch;
            }
            // It is not the head, or that of an older configuration.
            Some(RefusalCode::WrongChainEpoch | RefusalCode::WrongServer) if from == self.head => {
                self.head = (self.head + 1) % settings.stores.len();
            }
            _ => {}
        }
    }

    /// Takes the answer of the server at `from` to a probe, or a refusal of it. Gives the datagram that
    /// follows.
    pub(crate) fn probed(
        &mut self,
        now: u64,
        from: usize,
        reply: &Repr<'_>,
        settings: &Settings,
    ) -> Option<(usize, Vec<u8>)> {
        let Step::Probing { sent } = self.step else {
            return None;
        };
        if reply.request != self.asked {
            return None;
        }
        if reply.message_type == MessageType::ProbeReply {
            self.hear(now);
            self.tries = 0;
            return Some(self.ask(now, from, sent, settings));
        }
        self.refused(from, reply, settings);
        // Each server is asked at once, and then all of them after a while.
        if (self.tries as usize) < 2 * settings.stores.len() {
            return Some(self.probe(now, settings));
        }
        self.step = Step::Resting;
        None
    }

    /// Takes a datagram of an answer that came at `now` from `from`. `room` is how many flows more are
    /// followed, `revision` that of the view if it changes; true beside the outcome if it did.
    pub(crate) fn answered(
        &mut self,
        now: u64,
        from: usize,
        answer: &Answer<'_>,
        settings: &Settings,
        room: usize,
        revision: u64,
    ) -> (Heard, bool) {
        let Step::Asking { tail, proven } = self.step else {
            return (Heard::Late, false);
        };
        if answer.number != self.asked || from != tail {
            return (Heard::Late, false);
        }
        if answer.flags & answer_flag::ELSEWHERE != 0 {
            // It answered the probe, and so is the tail, or was: a replica joins behind it.
            self.step = Step::Resting;
            self.due = now.saturating_add(settings.retry_us);
            return (Heard::Elsewhere, false);
        }
        let moment = (answer.stream, answer.applied);
        let count = usize::from(answer.parts);
        let is_other = self.parts.moment != moment && !settings.faults.mixed_parts;
        if is_other || self.parts.bodies.len() != count {
            self.parts = Parts {
                moment,
                bodies: vec![None; count],
            };
        }
        if let Some(place) = self.parts.bodies.get_mut(usize::from(answer.part)) {
            *place = Some(answer.body.to_vec());
        }
        if self.parts.bodies.iter().any(Option::is_none) && !settings.faults.first_part {
            return (Heard::Part, false);
        }
        let bodies = core::mem::take(&mut self.parts).bodies;
        let is_sound = |body: &Vec<u8>| {
            let part = Answer { body, ..*answer };
            part.records().all(|record| record.is_ok())
        };
        if !bodies.iter().flatten().all(is_sound) {
            return (Heard::Malformed, false);
        }
        self.hear(now);
        self.tries = 0;
        self.epoch = answer.chain_epoch;
        if answer.flags & answer_flag::ANEW != 0 || answer.stream != self.stream {
            self.anew = Some(Flows::default());
            self.held.clear();
            self.overflowed = false;
        }
        for body in bodies.iter().flatten() {
            let part = Answer { body, ..*answer };
            for record in part.records().flatten() {
                let followed = &settings.classes;
                if followed.is_empty() || followed.contains(&record.key.class()) {
                    self.hold(&record, room, revision);
                }
            }
        }
        (self.stream, self.after) = (answer.stream, answer.upto);
        self.scan = (answer.scan_shard, answer.scan);
        let whole = answer_flag::SCANNED | answer_flag::LATEST;
        if answer.flags & whole != whole {
            return (Heard::More, false);
        }
        let changed = self.show_held(settings, room);
        self.as_of = Some(if settings.faults.as_of_answer {
            now
        } else {
            proven
        });
        self.tail = Some(tail);
        self.step = Step::Resting;
        self.due = if core::mem::take(&mut self.again) {
            now
        } else {
            now.saturating_add(settings.poll_us)
        };
        (Heard::Whole, changed)
    }

    /// Holds a record back until the view has all of one moment.
    fn hold(&mut self, record: &Record<'_>, room: usize, revision: u64) {
        let is_new = record.lease.is_some();
        if let Some(anew) = &mut self.anew {
            let is_new = is_new && anew.get(record.shard, &record.key).is_none();
            if is_new && anew.len() >= room {
                self.overflowed = true;
            } else {
                anew.set((record.shard, record.key), Flow::of(record, revision));
            }
        } else if self.held.len() < room || !is_new {
            let place = (record.shard, record.key);
            self.held.insert(place, Flow::of(record, revision));
        } else {
            self.overflowed = true;
        }
    }

    /// Shows what was held back; true if that changes the view.
    fn show_held(&mut self, settings: &Settings, room: usize) -> bool {
        let mut places = match self.anew.take() {
            Some(whole) => self.flows.replace(whole),
            None => Vec::new(),
        };
        for (place, flow) in core::mem::take(&mut self.held) {
            let is_new = flow.is_some() && self.flows.get(place.0, &place.1).is_none();
            if is_new && self.flows.len() >= room {
                self.overflowed = true;
            } else if self.flows.set(place, flow) {
                places.push(place);
            }
        }
        let changed = !places.is_empty();
        let told = |(_, key): &(u16, Key)| settings.told_classes.contains(&key.class());
        self.changed.extend(places.into_iter().filter(told));
        changed
    }

    /// The next question to the tail that gave an answer, since it has more.
    pub(crate) fn ask_on(&mut self, now: u64, settings: &Settings) -> Option<(usize, Vec<u8>)> {
        match self.step {
            Step::Asking { tail, proven } => Some(self.ask(now, tail, proven, settings)),
            _ => None,
        }
    }
}

/// Place of a server among the stores.
pub(crate) fn place_of(settings: &Settings, from: SocketAddrV4) -> Option<usize> {
    settings.stores.iter().position(|store| *store == from)
}
