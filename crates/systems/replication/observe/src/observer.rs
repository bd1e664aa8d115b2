//! The observer of all chains of a store.

use core::net::SocketAddrV4;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use stateplane_wire::observe::{Answer, Message, is_observe};
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};

use crate::chain::{Chain, Heard, place_of};
use crate::change::{Change, ChangeError, Changing, Outcome, Step};
use crate::flow::Flow;
use crate::settings::{Settings, SettingsError};

/// Most changes that wait at one time.
const MOST_CHANGES: usize = 1_024;

/// Promise that is made of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// µs: every write that a switch was told of longer ago is in the view, and each flow had the view's
    /// state at some moment since.
    pub age_us: u64,
    /// Chains that are followed.
    pub chains: u16,
    /// Flows in the view.
    pub flows: usize,
}

/// News for whoever runs the observer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// All flows of all chains are in the view.
    Complete,
    /// A chain did not answer for 3 s. It is told once, until the chain is heard.
    Silent {
        /// Number of the chain.
        chain: u16,
    },
    /// A chain that was silent answers.
    Back {
        /// Number of the chain.
        chain: u16,
    },
    /// A change has ended.
    Done {
        /// The ticket that [`Observer::begin`] gave.
        ticket: u64,
        /// Its end.
        outcome: Outcome,
    },
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Datagrams that came.
    pub received: u64,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Questions to tails that were answered in full.
    pub answered: u64,
    /// Records that changed the view.
    pub changed: u64,
    /// Answers of servers that are not the chain's tail, or head.
    pub elsewhere: u64,
    /// Datagrams that are none, or not for this start of the observer, dropped.
    pub foreign: u64,
    /// Datagrams that answer no question that is open, dropped.
    pub late: u64,
    /// Changes that ended, whatever came of them.
    pub changes: u64,
}

/// An observer.
///
/// After each `handle_*`, take everything out with [`Observer::poll_transmit`] and
/// [`Observer::poll_event`], then ask [`Observer::poll_timeout`] when to call
/// [`Observer::handle_timeout`]. Times are µs and never decrease from call to call.
#[derive(Debug, Clone)]
pub struct Observer {
    settings: Settings,
    chains: Vec<Chain>,
    /// When chains and changes have something to do.
    due: BTreeSet<(u64, u16)>,
    changes: BTreeMap<u64, Changing>,
    /// Changes of one flow, in their order.
    turns: BTreeMap<(u16, Key), VecDeque<u64>>,
    claims: BTreeMap<u32, u64>,
    last_claim: u32,
    last_ticket: u64,
    outbox: VecDeque<(SocketAddrV4, Vec<u8>)>,
    events: VecDeque<Event>,
    revision: u64,
    was_complete: bool,
    counters: Counters,
}

impl Observer {
    /// An observer that begins at `now`.
    ///
    /// # Errors
    ///
    /// [`SettingsError`].
    pub fn new(settings: Settings, now: u64) -> Result<Observer, SettingsError> {
        settings.check()?;
        let mut observer = Observer {
            settings,
            chains: Vec::new(),
            due: BTreeSet::new(),
            changes: BTreeMap::new(),
            turns: BTreeMap::new(),
            claims: BTreeMap::new(),
            last_claim: 0,
            last_ticket: 0,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            revision: 0,
            was_complete: false,
            counters: Counters::default(),
        };
        observer.follow(now, 1);
        Ok(observer)
    }

    /// Follows the first `chains` chains.
    fn follow(&mut self, now: u64, chains: u16) {
        for number in self.chains.len() as u16..chains {
            self.chains.push(Chain::new(number, now));
            self.due.insert((now, number));
        }
    }

    fn send(&mut self, (place, bytes): (usize, Vec<u8>)) {
        if let Some(store) = self.settings.stores.get(place) {
            self.counters.sent += 1;
            self.outbox.push_back((*store, bytes));
        }
    }

    /// Lets `work` change a chain, and notes when that has something to do next.
    fn with_chain<R>(
        &mut self,
        number: u16,
        work: impl FnOnce(&mut Chain, &Settings) -> R,
    ) -> Option<R> {
        let chain = self.chains.get_mut(usize::from(number))?;
        let before = chain.due();
        let result = work(chain, &self.settings);
        let due = chain.due();
        if due != before {
            self.due.remove(&(before, number));
            self.due.insert((due, number));
        }
        Some(result)
    }

    /// The chain that keeps `shard`.
    fn chain_of(&self, shard: u16) -> u16 {
        if self.chains.len() == 1 { 0 } else { shard }
    }

    /// Takes a datagram that came from `from`.
    pub fn handle_datagram(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        self.counters.received += 1;
        let Some(place) = place_of(&self.settings, from) else {
            self.counters.foreign += 1;
            return;
        };
        if is_observe(bytes) {
            match Message::parse(bytes) {
                Ok(Message::Answer(answer))
                    if self.is_own(answer.switch_id, answer.incarnation) =>
                {
                    self.told_records(now, place, &answer);
                }
                _ => self.counters.foreign += 1,
            }
        } else {
            let reply = Packet::new_checked(bytes).map(|packet| Repr::parse(&packet));
            match reply {
                Ok(reply) if self.is_own(reply.switch_id, reply.incarnation) => {
                    self.replied(now, place, &reply);
                }
                _ => self.counters.foreign += 1,
            }
        }
        self.end_changes(now);
    }

    fn is_own(&self, switch: u32, incarnation: u32) -> bool {
        (switch, incarnation) == (self.settings.switch, self.settings.incarnation)
    }

    fn told_records(&mut self, now: u64, place: usize, answer: &Answer<'_>) {
        let others = self.chains.iter().enumerate();
        let others = others.filter(|(number, _)| *number != usize::from(answer.chain));
        let others: usize = others.map(|(_, chain)| chain.flows().len()).sum();
        let room = self.settings.most_flows.saturating_sub(others);
        let revision = self.revision + 1;
        let heard = self.with_chain(answer.chain, |chain, settings| {
            chain.answered(now, place, answer, settings, room, revision)
        });
        let Some((heard, changed)) = heard else {
            self.counters.late += 1;
            return;
        };
        self.note_return(answer.chain);
        if changed {
            self.revision = revision;
            self.counters.changed += 1;
        }
        match heard {
            Heard::Late => self.counters.late += 1,
            Heard::Part => {}
            Heard::Malformed => self.counters.foreign += 1,
            Heard::Elsewhere => self.counters.elsewhere += 1,
            Heard::Whole | Heard::More => {
                self.counters.answered += 1;
                self.follow(now, answer.chains);
            }
        }
        if heard == Heard::More {
            let next = self.with_chain(answer.chain, |chain, settings| chain.ask_on(now, settings));
            if let Some(datagram) = next.flatten() {
                self.send(datagram);
            }
        }
        if heard == Heard::Whole && !self.was_complete && self.as_of().is_some() {
            self.was_complete = true;
            self.events.push_back(Event::Complete);
        }
    }

    /// An answer of the store to a probe or to a request of a change.
    fn replied(&mut self, now: u64, place: usize, reply: &Repr<'_>) {
        let number = self.chain_of(reply.shard);
        if reply.claim == 0 {
            let probed = self.with_chain(number, |chain, settings| {
                chain.probed(now, place, reply, settings)
            });
            if reply.message_type == MessageType::Refusal {
                self.counters.elsewhere += 1;
            }
            self.note_return(number);
            if let Some(datagram) = probed.flatten() {
                self.send(datagram);
            }
            return;
        }
        let ticket = self.claims.get(&reply.claim).copied();
        let Some(changing) = ticket.and_then(|ticket| self.changes.get_mut(&ticket)) else {
            self.counters.late += 1;
            self.give_back(number, reply);
            return;
        };
        let step = changing.answered(now, reply, &self.settings);
        if reply.message_type == MessageType::Refusal {
            self.with_chain(number, |chain, settings| {
                chain.refused(place, reply, settings);
            });
        }
        let Some(ticket) = ticket else { return };
        match step {
            Step::None => {}
            Step::Send => {
                if let Some(changing) = self.changes.get_mut(&ticket)
                    && reply.message_type != MessageType::Refusal
                {
                    changing.hasten(now);
                }
                self.send_change(now, ticket);
            }
            Step::Written => {
                self.release(number, ticket);
                self.with_chain(number, |chain, _| chain.look_again(now));
            }
            Step::Ended(outcome) => {
                self.release(number, ticket);
                self.end(now, ticket, outcome);
            }
        }
    }

    /// Tells once that a chain which was silent answers.
    fn note_return(&mut self, number: u16) {
        let back = self.with_chain(number, |chain, _| chain.comes_back());
        if back == Some(true) {
            self.events.push_back(Event::Back { chain: number });
        }
    }

    /// Gives up a lease that came when its change had ended.
    fn give_back(&mut self, number: u16, reply: &Repr<'_>) {
        if reply.message_type != MessageType::LeaseReply {
            return;
        }
        let release = Repr {
            message_type: MessageType::ReleaseRequest,
            shared: false,
            state: &[],
            packet: None,
            ..*reply
        };
        let head = self.chains.get(usize::from(number)).map(|chain| chain.head);
        if let (Some(head), Ok(bytes)) = (head, release.to_vec()) {
            self.send((head, bytes));
        }
    }

    fn release(&mut self, number: u16, ticket: u64) {
        let Some(changing) = self.changes.get(&ticket) else {
            return;
        };
        let Some(chain) = self.chains.get(usize::from(number)) else {
            return;
        };
        let head = chain.head;
        if let Some(bytes) = changing.release(chain.epoch, &self.settings) {
            self.send((head, bytes));
        }
    }

    /// Sends the request of a change that is due.
    fn send_change(&mut self, now: u64, ticket: u64) {
        let Some(shard) = self.changes.get(&ticket).map(|it| it.shard) else {
            return;
        };
        let number = usize::from(self.chain_of(shard));
        let (Some(chain), Some(changing)) =
            (self.chains.get(number), self.changes.get_mut(&ticket))
        else {
            return;
        };
        let head = chain.head;
        if let Some(bytes) = changing.next(now, chain.epoch, &self.settings) {
            self.send((head, bytes));
        }
    }

    fn end(&mut self, now: u64, ticket: u64, outcome: Outcome) {
        let Some(changing) = self.changes.remove(&ticket) else {
            return;
        };
        self.counters.changes += 1;
        self.claims.remove(&changing.claim);
        self.events.push_back(Event::Done { ticket, outcome });
        let flow = (changing.shard, changing.key);
        let Some(turns) = self.turns.get_mut(&flow) else {
            return;
        };
        turns.retain(|it| *it != ticket);
        let Some(&next) = turns.front() else {
            self.turns.remove(&flow);
            return;
        };
        if let Some(changing) = self.changes.get_mut(&next)
            && changing.waits()
        {
            changing.start(now);
            self.send_change(now, next);
        }
    }

    /// Ends the changes whose time is over, or that the view has.
    fn end_changes(&mut self, now: u64) {
        let ended: Vec<(u64, Outcome)> = self
            .changes
            .iter()
            .filter_map(|(ticket, changing)| {
                let chain = self.chains.get(usize::from(self.chain_of(changing.shard)));
                let as_of = chain.and_then(Chain::as_of);
                Some((*ticket, changing.ends(now, as_of)?))
            })
            .collect();
        for (ticket, outcome) in ended {
            self.end(now, ticket, outcome);
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64) {
        while let Some(&(due, number)) = self.due.first()
            && due <= now
        {
            let next = self.with_chain(number, |chain, settings| {
                let next = chain.next(now, settings);
                (next, chain.falls_silent(now))
            });
            let Some((next, silent)) = next else {
                self.due.remove(&(due, number));
                continue;
            };
            if silent {
                self.events.push_back(Event::Silent { chain: number });
            }
            match next {
                Some(datagram) => self.send(datagram),
                // A chain that is due has a datagram.
                None => break,
            }
        }
        let due = self.changes.iter().filter(|(_, it)| it.due() <= now);
        let due: Vec<u64> = due.map(|(ticket, _)| *ticket).collect();
        for ticket in due {
            self.send_change(now, ticket);
        }
        self.end_changes(now);
    }

    /// The next datagram to send, and to whom.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddrV4, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// When [`Observer::handle_timeout`] has something to do next, in µs.
    pub fn poll_timeout(&self) -> Option<u64> {
        let chains = self.due.first().map(|(due, _)| *due);
        let changes = self.changes.values().map(Changing::due).min();
        [chains, changes].into_iter().flatten().min()
    }

    /// The next piece of news.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next flow of [`Settings::told_classes`] that changed in the view or is gone: its shard and key,
    /// and the flow. Take all after each `handle_*`.
    pub fn poll_changed(&mut self) -> Option<(u16, Key, Option<&Flow>)> {
        let mut chains = (0..self.chains.len()).rev();
        let chain = chains.find_map(|at| Some((at, self.chains[at].poll_changed()?)));
        let (at, (shard, key)) = chain?;
        Some((shard, key, self.chains[at].flows().get(shard, &key)))
    }

    /// Time in µs before which every write that a switch was told of is in the view; `None` until all
    /// chains were read whole, and while there are more flows than are followed.
    pub fn as_of(&self) -> Option<u64> {
        let mut least = u64::MAX;
        for chain in &self.chains {
            least = least.min(chain.as_of()?);
        }
        Some(least)
    }

    /// Promise of the view at `now`; `None` as for [`Observer::as_of`].
    pub fn told(&self, now: u64) -> Option<Told> {
        let as_of = self.as_of()?;
        Some(Told {
            age_us: now.saturating_sub(as_of),
            chains: self.chains.len() as u16,
            flows: self.flow_count(),
        })
    }

    /// Flows in the view, complete or not.
    pub fn flow_count(&self) -> usize {
        self.chains.iter().map(|chain| chain.flows().len()).sum()
    }

    /// Asks all chains at once, for a view that is younger than `now`.
    pub fn look_again(&mut self, now: u64) {
        for number in 0..self.chains.len() as u16 {
            self.with_chain(number, |chain, _| chain.look_again(now));
        }
    }

    /// All flows with their shards, ordered by chain, shard and key.
    pub fn flows(&self) -> impl Iterator<Item = (u16, &Key, &Flow)> {
        self.chains.iter().flat_map(|chain| chain.flows().iter())
    }

    /// The flow with `key` in each shard that has one.
    pub fn flow<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = (u16, &'a Flow)> {
        let chains = self.chains.iter();
        chains.flat_map(move |chain| chain.flows().in_shards(key))
    }

    /// A number that grows with each change of the view.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Begins a change at `now`. Gives the ticket by which [`Event::Done`] names it.
    ///
    /// # Errors
    ///
    /// [`ChangeError`]: nothing was begun.
    pub fn begin(&mut self, now: u64, change: Change) -> Result<u64, ChangeError> {
        if self.changes.len() >= MOST_CHANGES {
            return Err(ChangeError::Busy(MOST_CHANGES));
        }
        let shard = match change.shard {
            Some(shard) => shard,
            None => self.shard_of(&change.key)?,
        };
        if usize::from(self.chain_of(shard)) >= self.chains.len() {
            return Err(ChangeError::UnknownFlow);
        }
        self.last_ticket += 1;
        self.last_claim = self.last_claim.wrapping_add(1).max(1);
        let (ticket, claim, key) = (self.last_ticket, self.last_claim, change.key);
        self.claims.insert(claim, ticket);
        self.changes
            .insert(ticket, Changing::new(shard, change, claim));
        let turns = self.turns.entry((shard, key)).or_default();
        turns.push_back(ticket);
        if turns.len() == 1 {
            if let Some(changing) = self.changes.get_mut(&ticket) {
                changing.start(now);
            }
            self.send_change(now, ticket);
        }
        Ok(ticket)
    }

    fn shard_of(&self, key: &Key) -> Result<u16, ChangeError> {
        if self.as_of().is_none() {
            return Err(ChangeError::Incomplete);
        }
        let shards: Vec<u16> = self.flow(key).map(|(shard, _)| shard).collect();
        match shards.as_slice() {
            [] => Err(ChangeError::UnknownFlow),
            [shard] => Ok(*shard),
            _ => Err(ChangeError::SeveralShards(shards)),
        }
    }

    /// Counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
