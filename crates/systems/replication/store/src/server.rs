//! A store server: a place in each of any number of chains, as one state machine
//! without IO.
//!
//! With a controller each shard has a chain of its own, whose number is the
//! shard's, and the controller says who is where. Without one, a single chain keeps
//! all shards and never changes.

mod persist;
mod terms;

pub use persist::{Recovery, SavedState, Setup, StateCopy};
pub use terms::LongerBacking;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use core::net::SocketAddrV4;

use persist::Unsaved;
use serde::Serialize;
use stateplane_invariant::{Broken, BrokenCounts, Invariants, invariant};
use stateplane_wire::Error;
use stateplane_wire::chain;
use stateplane_wire::control::{ChainConfig, ChainStatus, Heartbeat, MOST_ROWS, Member, Message};
use stateplane_wire::observe::{self, is_observe};
use stateplane_wire::replication::{MessageType, Packet, RefusalCode, Repr, older};
use stateplane_wire::term::is_term;
use terms::Terms;

use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::promise::Promises;
use crate::replica::{Destination, Place, Replica, echo, fetch};

/// Destination of a server's datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Recipient {
    /// To a switch, from the request port.
    Switch(SocketAddrV4),
    /// To the chain port of another server, from the own one.
    Neighbour(SocketAddrV4),
    /// To the controller, from the chain port.
    Controller,
}

/// A datagram that a server sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Destination of the datagram.
    pub to: Recipient,
    /// The datagram's bytes.
    pub bytes: Arc<Vec<u8>>,
}

/// Counts of what concerns no single chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ServerCounters {
    /// Requests for a shard that this server has no place in, refused.
    pub not_here: u64,
    /// Chain messages of a chain that this server has no place in, or from an
    /// address without one, dropped.
    pub unknown_neighbour: u64,
    /// Control messages that are none, dropped.
    pub control_malformed: u64,
    /// Configurations that were not newer than the one followed.
    pub configuration_old: u64,
    /// Chains left because the controller gave the place to another.
    pub chains_left: u64,
    /// Chains left because the disk lost entries that others have.
    pub chains_lost: u64,
    /// Heartbeats sent.
    pub heartbeats: u64,
    /// Heartbeats of switches that were answered.
    pub promised: u64,
    /// Heartbeats of switches that were dropped: too many starts of switches are remembered.
    pub too_many_switches: u64,
    /// Questions for backing sent.
    pub backing_asked: u64,
    /// Answers to questions of others.
    pub backing_answered: u64,
    /// Questions of others that were not answered: they are to be backed for longer than this server
    /// backs.
    pub backing_too_long: u64,
    /// Datagrams of terms that are none, or not for a server, dropped.
    pub term_malformed: u64,
    /// Requests of switches that speak an older version, refused in that.
    pub older_version: u64,
    /// Datagrams of observers that are none, or not for a server, dropped.
    pub observe_malformed: u64,
    /// Questions of observers about a chain that this server has no place in, refused.
    pub observe_not_here: u64,
}

/// A disk lost entries of a chain that never changes, so that no other can give them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostEntries {
    /// Number of the last entry that is there.
    pub applied: u64,
    /// Number of one that another replica has, and that this server had once too.
    pub known: u64,
}

/// A place in one chain.
#[derive(Debug, Clone)]
struct Hosted {
    replica: Replica,
    /// Chain ports by position; the last may be that of a replica that joins.
    links: Vec<SocketAddrV4>,
    /// The configuration that gave the place; none if the chain never changes.
    config: Option<ChainConfig>,
    due: Option<u64>,
    had_joined: bool,
    /// The replica was seen silenced.
    was_silenced: bool,
    /// As tail it has reported in this configuration that a replica joined, or may have.
    told_joined: bool,
    /// How much must be on the disk before this configuration counts for others.
    settled: u64,
    /// Number of the newest configuration that the controller told since the replica fell silent.
    told: u32,
}

impl Hosted {
    fn new(replica: Replica, links: Vec<SocketAddrV4>) -> Hosted {
        Hosted {
            replica,
            links,
            config: None,
            due: None,
            had_joined: false,
            was_silenced: false,
            told_joined: false,
            settled: 0,
            told: 0,
        }
    }

    /// Number of the newest configuration known.
    fn epoch(&self) -> u32 {
        self.replica.place().epoch.max(self.told)
    }
}

/// Most switches that are told of as they speak an older version.
const MOST_OLDER: usize = 1024;

/// Source of the server's positions in chains.
#[derive(Debug, Clone)]
enum Management {
    /// No controller: chain 0 keeps all shards.
    Fixed,
    Controller(Reporting),
}

#[derive(Debug, Clone)]
struct Reporting {
    identity: Member,
    period: u64,
    next: u64,
    number: u64,
    /// Chains of which the controller is to hear first.
    urgent: BTreeSet<u16>,
    /// The last chain whose turn it was.
    turn: u16,
    /// Newest configuration number of chains without a place here.
    left: BTreeMap<u16, u32>,
    /// Of these, chains with a place here that was left, since the disk lost entries.
    lost: BTreeSet<u16>,
}

/// One store server.
///
/// After each `handle_*`, take everything out with [`Server::poll_record`], if it keeps a
/// disk, and [`Server::poll_transmit`], then
/// ask [`Server::poll_timeout`] when to call [`Server::handle_timeout`]. Times are
/// µs and never decrease from call to call.
#[derive(Debug, Clone)]
pub struct Server {
    template: Config,
    incarnation: u32,
    management: Management,
    chains: BTreeMap<u16, Hosted>,
    /// Servers of services that are said to be unhealthy.
    unhealthy: BTreeSet<SocketAddrV4>,
    /// Chains that may have something to send.
    ready: BTreeSet<u16>,
    due: BTreeSet<(u64, u16)>,
    outbox: VecDeque<Datagram>,
    counters: ServerCounters,
    invariants: Invariants,
    /// What its replicas have promised to switches.
    promises: Promises,
    terms: Terms,
    /// Lists of changes for observers that were begun in this process.
    lists: u32,
    /// Switches that speak an older version, and those of them to be told of.
    older: BTreeSet<u32>,
    older_untold: VecDeque<(u32, u8)>,
    /// Counts of replicas that are gone.
    past: Counters,
    past_broken: BrokenCounts,
    unsaved: Unsaved,
    /// Number of restarts from the disk.
    starts: u32,
}

impl Server {
    /// A server in a chain that never changes. `links` are the chain ports, head
    /// first.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Config::check`].
    pub fn fixed(
        config: Config,
        incarnation: u32,
        links: Vec<SocketAddrV4>,
    ) -> Result<Server, ConfigError> {
        let hosted = Hosted::new(Replica::new(config.clone(), incarnation)?, links);
        let mut server = Server::empty(config, incarnation, Management::Fixed);
        server.chains.insert(0, hosted);
        Ok(server)
    }

    /// A server without any place yet, that tells the controller of itself every
    /// `period` µs from `now` on. Of `template`, place and epoch do not matter.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Config::check`].
    pub fn managed(
        template: Config,
        identity: Member,
        period: u64,
        now: u64,
    ) -> Result<Server, ConfigError> {
        template.check()?;
        if period == 0 {
            return Err(ConfigError::Zero {
                name: "heartbeat period",
            });
        }
        let reporting = Reporting {
            identity,
            period,
            next: now,
            number: 0,
            urgent: BTreeSet::new(),
            turn: 0,
            left: BTreeMap::new(),
            lost: BTreeSet::new(),
        };
        let management = Management::Controller(reporting);
        Ok(Server::empty(template, identity.incarnation, management))
    }

    fn empty(template: Config, incarnation: u32, management: Management) -> Server {
        Server {
            invariants: Invariants::new(template.authentic),
            promises: Promises::default(),
            terms: Terms::new(template.stream),
            lists: 0,
            older: BTreeSet::new(),
            older_untold: VecDeque::new(),
            template,
            incarnation,
            management,
            chains: BTreeMap::new(),
            unhealthy: BTreeSet::new(),
            ready: BTreeSet::new(),
            due: BTreeSet::new(),
            outbox: VecDeque::new(),
            counters: ServerCounters::default(),
            past: Counters::default(),
            past_broken: BrokenCounts::default(),
            unsaved: Unsaved::default(),
            starts: 0,
        }
    }

    /// Sets whether `server`, of any service, gets flows from the chains of which this server is
    /// the head; see [`Replica::set_healthy`].
    pub fn set_healthy(&mut self, server: SocketAddrV4, healthy: bool) {
        if healthy {
            self.unhealthy.remove(&server)
        } else {
            self.unhealthy.insert(server)
        };
        for hosted in self.chains.values_mut() {
            hosted.replica.set_healthy(server, healthy);
        }
    }

    /// Takes a datagram that came from `from` to the request port at `now`.
    pub fn handle_request(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        if is_term(bytes) {
            self.handle_heartbeat(now, from, bytes);
            return;
        }
        if is_observe(bytes) {
            self.handle_observe(from, bytes);
            return;
        }
        // The chain of anything that is not a message is of no interest.
        let packet = Packet::new_unsummed(bytes);
        if let Err(Error::Version { .. }) = packet
            && self.refuse_older(from, bytes)
        {
            return;
        }
        let chain = packet.map_or(0, |packet| self.chain_of(&packet));
        let known = self.with_replica(chain, |replica| {
            replica.handle_request(now, from, bytes);
        });
        match known {
            Some(()) => self.touched(chain),
            None => self.refuse(from, bytes),
        }
    }

    /// Lends the replica of `chain` the promises for as long as `work` takes.
    fn with_replica<R>(&mut self, chain: u16, work: impl FnOnce(&mut Replica) -> R) -> Option<R> {
        let hosted = self.chains.get_mut(&chain)?;
        hosted.replica.promises = core::mem::take(&mut self.promises);
        let result = work(&mut hosted.replica);
        self.promises = core::mem::take(&mut hosted.replica.promises);
        Some(result)
    }

    /// Refuses a request of version 1 in version 1; `false` if it is none. A switch of the present
    /// version that asks whether this server is older learns by silence that it is not.
    fn refuse_older(&mut self, to: SocketAddrV4, bytes: &[u8]) -> bool {
        if older::is_probe(bytes) {
            return true;
        }
        let Some((switch, refusal)) = older::refusal(bytes, RefusalCode::WrongServer) else {
            return false;
        };
        self.counters.older_version += 1;
        if self.older.len() < MOST_OLDER && self.older.insert(switch) {
            self.older_untold.push_back((switch, older::VERSION));
        }
        self.outbox.push_back(Datagram {
            to: Recipient::Switch(to),
            bytes: Arc::new(refusal),
        });
        true
    }

    /// The next switch that speaks an older version, and which, to be told to whoever runs the
    /// server; each is given once.
    pub fn poll_older(&mut self) -> Option<(u32, u8)> {
        self.older_untold.pop_front()
    }

    /// [`Replica::look_ahead`] for requests to any of its replicas.
    pub fn look_ahead<'a>(&self, requests: impl Iterator<Item = &'a [u8]>) {
        fetch(requests.map(|request| {
            let packet = Packet::new_unsummed(request).ok()?;
            let hosted = self.chains.get(&self.chain_of(&packet))?;
            hosted.replica.sought(&packet)
        }));
    }

    /// The chain that keeps what `request` is about.
    fn chain_of(&self, request: &Packet<'_>) -> u16 {
        match &self.management {
            Management::Fixed => 0,
            Management::Controller(_) => request.shard(),
        }
    }

    fn refuse(&mut self, to: SocketAddrV4, bytes: &[u8]) {
        self.counters.not_here += 1;
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        if !packet.message_type().is_request() || packet.incarnation() == 0 {
            return;
        }
        let reply = Repr {
            message_type: MessageType::Refusal,
            code: RefusalCode::WrongServer as u8,
            ..echo(&packet, 0)
        };
        if let Ok(bytes) = reply.to_vec() {
            self.outbox.push_back(Datagram {
                to: Recipient::Switch(to),
                bytes: Arc::new(bytes),
            });
        }
    }

    /// Answers an observer (rule 30). The answer waits for the disk, as all that follows from entries.
    fn handle_observe(&mut self, from: SocketAddrV4, bytes: &[u8]) {
        let Ok(observe::Message::Observe(question)) = observe::Message::parse(bytes) else {
            self.counters.observe_malformed += 1;
            return;
        };
        let chains = match &self.management {
            Management::Fixed => 1,
            Management::Controller(_) => self.template.shards.max(1),
        };
        let list = self.lists.wrapping_add(1).max(1);
        let stream = u64::from(self.template.stream) << 32 | u64::from(list);
        let answer = match self.chains.get_mut(&question.chain) {
            Some(hosted) => hosted.replica.observed(&question, stream, chains),
            None => {
                self.counters.observe_not_here += 1;
                vec![observe::Answer::elsewhere(&question, chains, 0).to_vec()]
            }
        };
        self.lists = list;
        for part in answer {
            self.outbox.push_back(Datagram {
                to: Recipient::Switch(from),
                bytes: Arc::new(part),
            });
        }
    }

    /// Takes a datagram that came from `from`, another server, to the chain port at
    /// `now`.
    pub fn handle_link(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        if is_term(bytes) {
            self.handle_backing(now, from, bytes);
            return;
        }
        let chain = chain::Packet::new_checked(bytes).map_or(0, |packet| packet.chain());
        let hosted = self.chains.get(&chain);
        // An address in no known configuration has no position.
        let anyone = self.template.faults.ignore_neighbour;
        let position = hosted.and_then(|hosted| {
            let position = hosted.links.iter().position(|address| *address == from);
            let position = position.or(anyone.then_some(usize::from(u8::MAX)))?;
            u8::try_from(position).ok()
        });
        let Some(position) = position else {
            self.counters.unknown_neighbour += 1;
            return;
        };
        self.with_replica(chain, |replica| {
            replica.handle_chain(now, position, bytes);
        });
        self.touched(chain);
    }

    /// Takes a datagram that came from the controller to the chain port at `now`.
    pub fn handle_control(&mut self, now: u64, bytes: &[u8]) {
        match Message::parse(bytes) {
            Ok(Message::Configure { config, .. }) => {
                self.configure(now, &config, false);
            }
            _ => self.counters.control_malformed += 1,
        }
    }

    /// Takes a configuration, from the controller or `saved` on the disk; `false` if it is
    /// not newer than the one known, or none.
    fn configure(&mut self, now: u64, config: &ChainConfig, saved: bool) -> bool {
        let number = config.chain;
        let Management::Controller(reporting) = &mut self.management else {
            self.counters.control_malformed += 1;
            return false;
        };
        if number >= self.template.shards || config.epoch == 0 {
            self.counters.control_malformed += 1;
            return false;
        }
        reporting.urgent.insert(number);
        reporting.next = now;
        let hosted = self.chains.get(&number);
        let known = hosted.map(Hosted::epoch);
        let known = known.or(reporting.left.get(&number).copied());
        if known.is_some_and(|known| config.epoch <= known) {
            self.counters.configuration_old += 1;
            let own = hosted.and_then(|hosted| hosted.config.as_ref());
            let own = own.filter(|own| own.epoch == config.epoch && !saved);
            invariant!(
                self.invariants,
                Configuration,
                own.is_none_or(|own| own == config),
                "two configurations of chain {number} have number {}",
                config.epoch
            );
            return false;
        }
        if let Some(hosted) = self.chains.get_mut(&number)
            && hosted.replica.is_silenced()
        {
            // The replica's state stays as it is; the controller learns that it is of no use.
            hosted.told = config.epoch;
            return false;
        }
        let own = reporting.identity;
        reporting.lost.remove(&number);
        self.save_configuration(config);
        let is_own = |m: &Member| m.server == own.server && m.incarnation == own.incarnation;
        let all: Vec<&Member> = config.members.iter().chain(&config.joining).collect();
        let position = all.iter().position(|member| is_own(member));
        let (Some(position), Ok(length)) = (
            position.and_then(|at| u8::try_from(at).ok()),
            u8::try_from(config.members.len()),
        ) else {
            if let Management::Controller(reporting) = &mut self.management {
                reporting.left.insert(number, config.epoch);
            }
            self.leave(number);
            return true;
        };
        let place = Place {
            epoch: config.epoch,
            length,
            position,
            feeds: config.joining.is_some(),
        };
        let links = all.iter().map(|member| member.links).collect();
        let is_new = !self.chains.contains_key(&number);
        // A member that is new in a later configuration joined in an earlier one.
        if is_new && position < length && config.epoch > 1 && self.starts > 0 && !saved {
            self.has_lost(number, config.epoch);
            return true;
        }
        if is_new {
            let own = Config {
                chain: number,
                chain_epoch: 0,
                chain_length: 1,
                position: 0,
                served: BTreeSet::from([number]),
                ..self.template.clone()
            };
            let Ok(mut replica) = Replica::new(own, self.incarnation) else {
                self.counters.control_malformed += 1;
                return false;
            };
            for &server in &self.unhealthy {
                replica.set_healthy(server, false);
            }
            let hosted = Hosted::new(replica, Vec::new());
            self.chains.insert(number, hosted);
        }
        if let Some(hosted) = self.chains.get_mut(&number) {
            hosted.links = links;
            hosted.config = Some(config.clone());
            hosted.told_joined = false;
            hosted.settled = self.unsaved.saved_upto();
        }
        self.with_replica(number, |replica| replica.reconfigure(now, place));
        self.touched(number);
        self.terms.look_again();
        true
    }

    /// Leaves a chain if its replica lacks entries that it had: it waits until the
    /// controller has cut it out, and takes a copy again.
    fn leave_if_lost(&mut self, number: u16) {
        let hosted = self.chains.get(&number);
        let Some(hosted) = hosted.filter(|hosted| hosted.replica.lacks().is_some()) else {
            return;
        };
        let epoch = hosted.replica.place().epoch;
        if let Management::Controller(_) = &self.management {
            self.has_lost(number, epoch);
        }
    }

    /// The disk lost what it had of a chain, in which it has a place as configuration
    /// `epoch` is.
    fn has_lost(&mut self, number: u16, epoch: u32) {
        let Management::Controller(reporting) = &mut self.management else {
            return;
        };
        reporting.left.insert(number, epoch);
        reporting.lost.insert(number);
        reporting.next = 0;
        self.save_lost(number, epoch);
        self.leave(number);
        self.counters.chains_lost += 1;
    }

    /// Chains with a place here that this server has left, since its disk lost what it had of
    /// them, and that it has no newer configuration of.
    pub fn lost_chains(&self) -> impl Iterator<Item = u16> {
        let lost = match &self.management {
            Management::Fixed => None,
            Management::Controller(reporting) => Some(&reporting.lost),
        };
        lost.into_iter().flatten().copied()
    }

    /// Entries of an unmanaged chain that the disk has lost. If there are any, the server stops
    /// working.
    pub fn lost_entries(&self) -> Option<LostEntries> {
        let Management::Fixed = self.management else {
            return None;
        };
        let replica = &self.chains.get(&0)?.replica;
        Some(LostEntries {
            applied: replica.applied(),
            known: replica.lacks()?,
        })
    }

    /// Forgets a chain in which it has no place any more.
    fn leave(&mut self, number: u16) {
        self.promises.let_go_all(number);
        self.terms.look_again();
        if let Some(hosted) = self.chains.remove(&number) {
            self.counters.chains_left += 1;
            self.past += *hosted.replica.counters();
            self.past_broken += hosted.replica.broken();
            self.ready.remove(&number);
            if let Some(due) = hosted.due {
                self.due.remove(&(due, number));
            }
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64) {
        while let Some(&(due, number)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            if let Some(hosted) = self.chains.get_mut(&number) {
                hosted.due = None;
                // Rescheduled when it has nothing more to send.
                self.ready.insert(number);
            }
            self.with_replica(number, |replica| replica.handle_timeout(now));
            self.look_if_silenced(number);
            self.collect_unsaved(number);
        }
        self.ask_for_backing(now);
        self.report(now);
    }

    /// Tells the controller, if it is time to.
    fn report(&mut self, now: u64) {
        let Management::Controller(reporting) = &mut self.management else {
            return;
        };
        if now < reporting.next {
            return;
        }
        for (number, hosted) in &mut self.chains {
            if hosted.replica.suspects_successor(now) {
                reporting.urgent.insert(*number);
            }
            if hosted.replica.has_joined() && !core::mem::replace(&mut hosted.told_joined, true) {
                self.terms.look_again();
            }
        }
        reporting.urgent.extend(&reporting.lost);
        let silenced = self
            .chains
            .iter()
            .filter(|(_, it)| it.replica.is_silenced());
        reporting.urgent.extend(silenced.map(|(number, _)| *number));
        let mut chosen = BTreeSet::new();
        while chosen.len() < MOST_ROWS
            && let Some(number) = reporting.urgent.pop_first()
        {
            chosen.insert(number);
        }
        let after = self.chains.range(reporting.turn.saturating_add(1)..);
        let around = after.chain(self.chains.range(..=reporting.turn));
        for (number, _) in around {
            if chosen.len() >= MOST_ROWS {
                break;
            }
            if chosen.insert(*number) {
                reporting.turn = *number;
            }
        }
        let statuses = chosen.iter().filter_map(|number| {
            let (epoch, replica) = match self.chains.get(number) {
                Some(hosted) => (hosted.epoch(), Some(&hosted.replica)),
                None => (*reporting.left.get(number)?, None),
            };
            Some(ChainStatus {
                chain: *number,
                epoch,
                joined: replica.is_some_and(Replica::has_joined),
                lost: match replica {
                    Some(replica) => replica.is_silenced(),
                    None => reporting.lost.contains(number),
                },
                suspects: replica.is_some_and(|replica| replica.suspects_successor(now)),
                applied: replica.map_or(0, Replica::applied),
                base: replica.map_or(0, Replica::base),
            })
        });
        reporting.number += 1;
        let heartbeat = Message::Heartbeat(Heartbeat {
            from: reporting.identity,
            number: reporting.number,
            statuses: statuses.collect(),
        });
        reporting.next = if reporting.urgent.is_empty() {
            now.saturating_add(reporting.period)
        } else {
            now
        };
        self.counters.heartbeats += 1;
        self.outbox.push_back(Datagram {
            to: Recipient::Controller,
            bytes: Arc::new(heartbeat.to_vec()),
        });
    }

    /// A head that falls silent covers nothing any more.
    fn look_if_silenced(&mut self, number: u16) {
        if let Some(hosted) = self.chains.get_mut(&number)
            && hosted.replica.is_silenced()
            && !core::mem::replace(&mut hosted.was_silenced, true)
        {
            self.terms.look_again();
        }
    }

    /// Notes that a replica was given something to do.
    fn touched(&mut self, number: u16) {
        self.ready.insert(number);
        self.look_if_silenced(number);
        self.collect_unsaved(number);
        if let Some(hosted) = self.chains.get_mut(&number) {
            let joined = hosted.replica.has_joined();
            if joined && !core::mem::replace(&mut hosted.told_joined, true) {
                self.terms.look_again();
            }
            if joined != core::mem::replace(&mut hosted.had_joined, joined)
                && let Management::Controller(reporting) = &mut self.management
            {
                reporting.urgent.insert(number);
                // At once: the next `handle_timeout` reports.
                reporting.next = 0;
            }
        }
        self.leave_if_lost(number);
    }

    /// The next datagram to send at `now`. Where the configuration says `durable`, there is
    /// none as long as something is not on the disk ([`Server::poll_record`]).
    pub fn poll_transmit(&mut self, now: u64) -> Option<Datagram> {
        if self.lost_entries().is_some() {
            return None;
        }
        // What terms rest on waits for no disk.
        if let Some(datagram) = self.terms.poll_transmit() {
            return Some(datagram);
        }
        if self.must_save_first() {
            return None;
        }
        if let Some(datagram) = self.outbox.pop_front() {
            return Some(datagram);
        }
        while let Some(&number) = self.ready.first() {
            let Some(hosted) = self.chains.get_mut(&number) else {
                self.ready.pop_first();
                continue;
            };
            if let Some(transmit) = hosted.replica.poll_transmit(now) {
                let to = match transmit.to {
                    Destination::Switch(address) => Recipient::Switch(address),
                    Destination::Replica(position) => {
                        match hosted.links.get(usize::from(position)) {
                            Some(address) => Recipient::Neighbour(*address),
                            None => continue,
                        }
                    }
                };
                let bytes = transmit.bytes;
                return Some(Datagram { to, bytes });
            }
            let due = hosted.replica.poll_timeout();
            if due != hosted.due {
                if let Some(before) = hosted.due {
                    self.due.remove(&(before, number));
                }
                hosted.due = due;
                if let Some(due) = due {
                    self.due.insert((due, number));
                }
            }
            self.ready.pop_first();
        }
        None
    }

    /// When [`Server::handle_timeout`] has something to do next, in µs. Ask when
    /// [`Server::poll_transmit`] has nothing more.
    pub fn poll_timeout(&self) -> Option<u64> {
        let due = self.due.first().map(|(due, _)| *due);
        let next = match &self.management {
            Management::Fixed => None,
            Management::Controller(reporting) => Some(reporting.next),
        };
        [due, next, self.terms.due()].into_iter().flatten().min()
    }

    /// The number that tells this start from others; from a disk it comes back with it.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// The replica in chain `number`; without a controller, the only chain is 0.
    pub fn replica(&self, number: u16) -> Option<&Replica> {
        self.chains.get(&number).map(|hosted| &hosted.replica)
    }

    /// As [`Replica::mark`] for the replica in chain `number`; `false` if there is none.
    pub fn mark(&mut self, number: u16, at: u64) -> bool {
        let hosted = self.chains.get_mut(&number);
        hosted.map(|hosted| hosted.replica.mark(at)).is_some()
    }

    /// All its replicas, by the number of their chain.
    pub fn replicas(&self) -> impl Iterator<Item = (u16, &Replica)> {
        self.chains
            .iter()
            .map(|(number, hosted)| (*number, &hosted.replica))
    }

    /// Sum of the counters of all its chains, those that it left included.
    pub fn counters(&self) -> Counters {
        let mut sum = self.past;
        for hosted in self.chains.values() {
            sum += *hosted.replica.counters();
        }
        sum
    }

    /// Replicas that a broken invariant silences, by the number of their chain.
    pub fn silenced(&self) -> impl Iterator<Item = (u16, Broken)> {
        let chains = self.chains.iter();
        chains.filter_map(|(number, hosted)| Some((*number, hosted.replica.silenced()?)))
    }

    /// The next broken invariant to report; each is given once, of each chain.
    pub fn poll_broken(&mut self) -> Option<Broken> {
        let mut replicas = self.chains.values_mut();
        let broken = replicas.find_map(|hosted| hosted.replica.poll_broken());
        broken.or_else(|| self.invariants.poll())
    }

    /// Counters of broken invariants, of all chains and those that it left included.
    pub fn broken(&self) -> BrokenCounts {
        let mut sum = self.past_broken;
        sum += self.invariants.counts();
        for hosted in self.chains.values() {
            sum += hosted.replica.broken();
        }
        sum
    }

    /// Counters of events that belong to no chain.
    pub fn server_counters(&self) -> &ServerCounters {
        &self.counters
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
