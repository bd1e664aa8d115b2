//! Decides what the chains are.

mod plan;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use core::net::SocketAddrV4;

use serde::Serialize;
use stateplane_invariant::{Broken, BrokenCounts, Invariants, invariant};
use stateplane_membership::{Beat, Claims, MOST_SERVERS, Ring, Servers};
use stateplane_wire::control::{
    ChainConfig, ChainStatus, Heartbeat, MOST_ROWS, Member, Message, Row,
};

use crate::settings::{Settings, SettingsError};

/// Maximum number of remembered switches; any further one gets configurations only when it asks.
const MOST_SWITCHES: usize = 1024;

/// A datagram of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The server or switch that it goes to.
    pub to: SocketAddrV4,
    /// The message's bytes.
    pub bytes: Vec<u8>,
}

/// Event counters of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ControllerCounters {
    /// Messages that are none, or not for a controller.
    pub malformed: u64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// Heartbeats of servers beyond those that can be remembered.
    pub refused: u64,
    /// Servers taken for dead.
    pub deaths: u64,
    /// Servers cut out of a chain because a neighbour did not hear them.
    pub suspected: u64,
    /// Configurations made.
    pub configurations: u64,
    /// Replicas that joined and became members.
    pub joined: u64,
    /// Configurations sent again.
    pub resent: u64,
    /// Messages that show that another controller is ahead of this one.
    pub ahead: u64,
}

/// The controller's view of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerView {
    /// Its present start.
    pub member: Member,
    /// True if a heartbeat was received lately.
    pub alive: bool,
    /// True if the server is to lose its shards.
    pub drained: bool,
}

#[derive(Debug, Clone)]
struct Chain {
    config: ChainConfig,
    /// True if the configuration is stored; only then it takes effect.
    stored: bool,
    /// Members and others that follow this configuration.
    confirmed: BTreeSet<(u32, u32)>,
    resend_at: u64,
    /// The tail says that the joining replica can be a member.
    joined: bool,
    /// Starts of servers that a neighbour does not hear, and until when they stay
    /// out.
    shunned: BTreeMap<(u32, u32), u64>,
    /// Version of the row that names its head; 0 before the first.
    version: u64,
    /// Time at which it was first seen with too few whole replicas, if it still is.
    lacking_since: Option<u64>,
}

#[derive(Debug, Clone)]
struct Subscriber {
    address: SocketAddrV4,
    version: u64,
}

/// The controller. See the crate's documentation.
#[derive(Debug, Clone)]
pub struct Controller {
    settings: Settings,
    incarnation: u32,
    servers: Servers<Member>,
    ring: Ring,
    chains: BTreeMap<u16, Chain>,
    /// Shard by version of its row.
    rows: BTreeMap<u64, u16>,
    heads: BTreeMap<u16, Row>,
    switches: BTreeMap<u32, Subscriber>,
    records: VecDeque<ChainConfig>,
    outbox: VecDeque<Transmit>,
    /// Chains to look at again.
    stale: BTreeSet<u16>,
    /// Servers and chains in which they say that they follow a configuration that this controller
    /// never made.
    ahead: Claims,
    wake: u64,
    counters: ControllerCounters,
    /// Number of servers that stored configurations name.
    named: usize,
    invariants: Invariants,
}

impl Controller {
    /// A controller that finds `stored` configurations, in the order in which they
    /// were stored. `incarnation` must differ from that of every earlier start.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Settings::check`].
    pub fn new(
        settings: Settings,
        incarnation: u32,
        stored: impl IntoIterator<Item = ChainConfig>,
        now: u64,
    ) -> Result<Controller, SettingsError> {
        settings.check()?;
        let mut controller = Controller {
            ring: Ring::default(),
            settings,
            incarnation,
            servers: Servers::default(),
            chains: BTreeMap::new(),
            rows: BTreeMap::new(),
            heads: BTreeMap::new(),
            switches: BTreeMap::new(),
            records: VecDeque::new(),
            outbox: VecDeque::new(),
            stale: BTreeSet::new(),
            ahead: Claims::default(),
            wake: now,
            counters: ControllerCounters::default(),
            named: 0,
            invariants: Invariants::new(false),
        };
        for config in stored {
            let known = controller.chains.get(&config.chain);
            if config.chain < controller.settings.shards
                && known.is_none_or(|known| known.config.epoch < config.epoch)
            {
                let mut chain = Chain::new(config, now);
                chain.stored = true;
                controller.chains.insert(chain.config.chain, chain);
            }
        }
        for chain in controller.chains.values() {
            for member in chain.config.members.iter().chain(&chain.config.joining) {
                controller.servers.remember(now, *member);
            }
        }
        controller.named = controller.servers.all.len();
        controller.place_anew(now);
        Ok(controller)
    }

    /// Takes a datagram that came from `from` at `now`.
    pub fn handle_message(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        if self.silenced().is_some() {
            return;
        }
        self.handle_timeout(now);
        match Message::parse(bytes) {
            Ok(Message::Heartbeat(heartbeat)) => self.heartbeat(now, from, &heartbeat),
            Ok(Message::Subscribe {
                switch,
                controller,
                version,
            }) => self.subscribe(from, switch, controller, version),
            _ => self.counters.malformed += 1,
        }
        self.reconsider(now);
    }

    fn heartbeat(&mut self, now: u64, from: SocketAddrV4, heartbeat: &Heartbeat) {
        self.counters.heartbeats += 1;
        let member = heartbeat.from;
        let is_named = |server| {
            let mut named = self.chains.values().flat_map(Chain::all);
            named.any(|it| it.server == server)
        };
        if !self.servers.make_room(member.server, is_named) {
            self.counters.refused += 1;
            return;
        }
        let (number, detection) = (heartbeat.number, self.settings.detection);
        match self.servers.heard(now, from, member, number, detection) {
            Beat::Old => return,
            Beat::Same => {}
            Beat::Changed => self.place_anew(now),
        }
        if !self.judge_servers(member.server) {
            return;
        }
        self.doubt_what_is_not_repeated(member.server);
        for status in &heartbeat.statuses {
            self.status(now, &member, status);
        }
    }

    /// Checks that the servers remembered are no more than may be, or than stored configurations
    /// name; otherwise forgets `server`, which was just heard.
    fn judge_servers(&mut self, server: u32) -> bool {
        let (known, named) = (self.servers.all.len(), self.named);
        let within = invariant!(
            self.invariants,
            ControllerTable,
            known <= MOST_SERVERS.max(named),
            "{known} servers are remembered"
        );
        if !within {
            self.servers.all.remove(&server);
        }
        within
    }

    /// Heartbeats of a server that really follows a configuration tell of it again and again;
    /// a damaged or forged one is contradicted by those that come after it.
    fn doubt_what_is_not_repeated(&mut self, server: u32) {
        if self.ahead.is_empty() {
            return;
        }
        self.ahead.heard(server);
        if self.ahead.is_empty() {
            self.stale.extend(0..self.settings.shards);
        }
    }

    /// What a server follows counts no more when it was silent for so long that another would
    /// take its place, unless it may keep what nobody else has: as a member of the chain, or of
    /// one that this controller never founded.
    fn doubt_the_silent(&mut self, now: u64) {
        if self.ahead.is_empty() {
            return;
        }
        let Controller {
            settings,
            servers,
            chains,
            ahead,
            ..
        } = self;
        ahead.doubt(|server, number| {
            let may_keep = match chains.get(&number) {
                Some(chain) => chain.config.members.iter().any(|m| m.server == server),
                None => number < settings.shards,
            };
            may_keep || !servers.is_gone(now, server, settings.replace_after)
        });
        if ahead.is_empty() {
            self.stale.extend(0..self.settings.shards);
        }
    }

    /// A server follows a configuration of `chain` that this controller never made.
    fn is_ahead(&mut self, server: u32, chain: u16) {
        // Twice as many as a server needs to tell of all its chains.
        let turns = u32::from(self.settings.shards).div_ceil(MOST_ROWS as u32);
        self.ahead.note(server, chain, 2 * turns + 2);
        self.counters.ahead += 1;
    }

    fn status(&mut self, now: u64, from: &Member, status: &ChainStatus) {
        let Some(chain) = self.chains.get_mut(&status.chain) else {
            if status.epoch > 0 {
                self.is_ahead(from.server, status.chain);
            }
            return;
        };
        let epoch = chain.config.epoch;
        if status.epoch > epoch {
            self.is_ahead(from.server, status.chain);
            return;
        }
        if status.epoch < epoch {
            // It does not know yet, and is told now if it is not told anyway.
            if chain.stored && !chain.needs().any(|member| member == from) {
                self.send_config(status.chain, from);
            }
            return;
        }
        if status.lost {
            // It is cut out if others are there, and takes a copy again.
            if chain.stored && chain.all().any(|member| member == from) {
                let until = now.saturating_add(self.settings.retry_after);
                let from = (from.server, from.incarnation);
                if chain.shunned.insert(from, until).is_none() {
                    self.counters.suspected += 1;
                }
            }
            self.stale.insert(status.chain);
            return;
        }
        let fresh = chain.confirmed.insert((from.server, from.incarnation));
        let members = &chain.config.members;
        let is = |member: Option<&Member>| {
            member.is_some_and(|m| (m.server, m.incarnation) == (from.server, from.incarnation))
        };
        chain.joined |= status.joined && chain.config.joining.is_some() && is(members.last());
        if fresh && is(members.first()) {
            self.publish(status.chain);
        }
        let Some(chain) = self.chains.get_mut(&status.chain) else {
            return;
        };
        if status.suspects && chain.stored {
            let all: Vec<Member> = chain.all().copied().collect();
            let place = all.iter().position(|member| is(Some(member)));
            if let Some(silent) = place.and_then(|place| all.get(place + 1)) {
                let until = now.saturating_add(self.settings.retry_after);
                let silent = (silent.server, silent.incarnation);
                if chain.shunned.insert(silent, until).is_none() {
                    self.counters.suspected += 1;
                }
            }
        }
        self.stale.insert(status.chain);
    }

    /// The head of the chain of `shard` serves its present configuration: switches
    /// may send there.
    fn publish(&mut self, shard: u16) {
        let next = self
            .rows
            .last_key_value()
            .map_or(1, |(version, _)| version + 1);
        let Some(chain) = self.chains.get_mut(&shard) else {
            return;
        };
        let Some(head) = chain.config.members.first() else {
            return;
        };
        let row = Row {
            shard,
            epoch: chain.config.epoch,
            head: head.requests,
        };
        self.rows.remove(&chain.version);
        chain.version = next;
        self.rows.insert(next, shard);
        self.heads.insert(shard, row);
        let waiting: Vec<u32> = self.switches.keys().copied().collect();
        for switch in waiting {
            self.send_rows(switch);
        }
    }

    fn subscribe(&mut self, from: SocketAddrV4, switch: u32, controller: u32, version: u64) {
        let version = if controller == self.incarnation {
            version
        } else {
            0
        };
        let known = self.switches.len();
        if known >= MOST_SWITCHES && !self.switches.contains_key(&switch) {
            self.switches.pop_first();
        }
        self.switches.insert(
            switch,
            Subscriber {
                address: from,
                version,
            },
        );
        let known = self.switches.len();
        if !invariant!(
            self.invariants,
            ControllerTable,
            known <= MOST_SWITCHES,
            "{known} switches are remembered"
        ) {
            self.switches.clear();
        }
        self.send_rows(switch);
    }

    fn send_rows(&mut self, switch: u32) {
        let Some(subscriber) = self.switches.get(&switch) else {
            return;
        };
        let after = subscriber.version;
        let changed = self.rows.range(after + 1..).take(MOST_ROWS);
        let changed: Vec<(u64, u16)> = changed.map(|(v, shard)| (*v, *shard)).collect();
        let Some((version, _)) = changed.last() else {
            return;
        };
        let rows = changed
            .iter()
            .filter_map(|(_, shard)| self.heads.get(shard));
        let message = Message::Rows {
            controller: self.incarnation,
            after,
            version: *version,
            rows: rows.copied().collect(),
        };
        self.outbox.push_back(Transmit {
            to: subscriber.address,
            bytes: message.to_vec(),
        });
    }

    /// Does what is due at `now`: takes the silent for dead, sends configurations
    /// again.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.silenced().is_some() {
            return;
        }
        let detection = self.settings.detection;
        self.servers.excuse_own_absence(now, detection);
        let alive = |servers: &Servers<Member>| servers.all.values().filter(|h| h.alive).count();
        let before = alive(&self.servers);
        if self.servers.bury(now, detection) {
            self.counters.deaths += (before - alive(&self.servers)) as u64;
            self.place_anew(now);
        }
        if now >= self.wake {
            self.place_anew(now);
        }
        self.doubt_the_silent(now);
        self.reconsider(now);
        self.note_lacking(now);
        let late: Vec<u16> = self
            .chains
            .iter()
            .filter(|(_, chain)| chain.stored && chain.resend_at <= now)
            .map(|(number, _)| *number)
            .collect();
        for number in late {
            self.send_configs(now, number, true);
        }
    }

    /// When [`Controller::handle_timeout`] has something to do next, in µs.
    pub fn poll_timeout(&self) -> u64 {
        let death = self.servers.next_death(self.settings.detection);
        let resends = self.chains.values().filter(|chain| chain.stored);
        let resend = resends.map(|chain| chain.resend_at).min();
        let own = [death, resend].into_iter().flatten().min();
        own.map_or(self.wake, |own| own.min(self.wake))
    }

    /// The next configuration to store. It takes effect with
    /// [`Controller::handle_stored`]; if it cannot be stored, the controller must not
    /// go on.
    pub fn poll_record(&mut self) -> Option<ChainConfig> {
        self.records
            .pop_front()
            .filter(|_| self.silenced().is_none())
    }

    /// A configuration lies where it outlives the controller.
    pub fn handle_stored(&mut self, now: u64, config: &ChainConfig) {
        let decided = self.chains.get_mut(&config.chain);
        let decided = decided.filter(|chain| chain.config == *config && !chain.stored);
        invariant!(
            self.invariants,
            StoredDecision,
            decided.is_some(),
            "configuration {} of chain {} is stored, which was not decided last",
            config.epoch,
            config.chain
        );
        if let Some(chain) = decided {
            chain.stored = true;
            self.send_configs(now, config.chain, false);
        }
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox
            .pop_front()
            .filter(|_| self.silenced().is_none())
    }

    /// The broken invariant that silences this controller: it decides and sends nothing more.
    pub fn silenced(&self) -> Option<Broken> {
        self.invariants.silenced()
    }

    /// The next broken invariant to report; each is given once.
    pub fn poll_broken(&mut self) -> Option<Broken> {
        self.invariants.poll()
    }

    /// Counters of broken invariants since the start.
    pub fn broken(&self) -> BrokenCounts {
        self.invariants.counts()
    }

    /// Sends the configuration of a chain to its members, and to the joining server, if they do not
    /// follow it yet.
    fn send_configs(&mut self, now: u64, number: u16, again: bool) {
        let Some(chain) = self.chains.get_mut(&number) else {
            return;
        };
        let waiting: Vec<Member> = chain.needs().copied().collect();
        chain.resend_at = if waiting.is_empty() {
            u64::MAX
        } else {
            now.saturating_add(self.settings.resend)
        };
        for member in waiting {
            if self.servers.is_alive(&member) {
                self.counters.resent += u64::from(again);
                self.send_config(number, &member);
            }
        }
    }

    fn send_config(&mut self, number: u16, member: &Member) {
        let health = self.servers.all.get(&member.server);
        let control = health.and_then(|health| health.control);
        if let (Some(chain), Some(to)) = (self.chains.get(&number), control) {
            let message = Message::Configure {
                controller: self.incarnation,
                config: chain.config.clone(),
            };
            let bytes = message.to_vec();
            self.outbox.push_back(Transmit { to, bytes });
        }
    }

    /// Lets a server, known or not, lose its shards, or take part again. When no chain
    /// names it any more it can be stopped.
    pub fn drain(&mut self, now: u64, server: u32, drained: bool) {
        self.servers.drain(server, drained);
        self.place_anew(now);
        self.reconsider(now);
    }

    /// The present configurations, by shard.
    pub fn configurations(&self) -> impl Iterator<Item = &ChainConfig> {
        self.chains.values().map(|chain| &chain.config)
    }

    /// The present configuration of a shard's chain.
    pub fn configuration(&self, shard: u16) -> Option<&ChainConfig> {
        self.chains.get(&shard).map(|chain| &chain.config)
    }

    /// True if a start of a server is alive.
    pub fn is_alive(&self, member: &Member) -> bool {
        self.servers.is_alive(member)
    }

    /// True if `member` reported that it follows the present configuration of a shard's chain.
    pub fn follows(&self, shard: u16, member: &Member) -> bool {
        let confirmed = self.chains.get(&shard).map(|chain| &chain.confirmed);
        confirmed.is_some_and(|all| all.contains(&(member.server, member.incarnation)))
    }

    /// True if every chain has all its members, where placement wants them, and all of them follow
    /// the present configuration.
    pub fn is_settled(&self) -> bool {
        self.chains.len() == usize::from(self.settings.shards)
            && self.chains.iter().all(|(shard, chain)| {
                let wanted = self.wanted(*shard);
                chain.stored
                    && chain.config.joining.is_none()
                    && chain.needs().next().is_none()
                    && chain.config.members.len() == wanted.len()
                    && chain
                        .config
                        .members
                        .iter()
                        .all(|m| wanted.contains(&m.server))
            })
    }

    /// Replicas that each chain is to have.
    pub fn replicas(&self) -> usize {
        self.settings.replicas.into()
    }

    /// Time, as [`Controller::handle_timeout`] was told, since which `chain` has fewer whole
    /// replicas than it is to have. `None`: it has all.
    pub fn lacking_since(&self, chain: u16) -> Option<u64> {
        self.chains.get(&chain)?.lacking_since
    }

    fn whole(&self, chain: &Chain) -> usize {
        let members = chain.config.members.iter();
        let whole = members.filter(|member| {
            let start = (member.server, member.incarnation);
            chain.confirmed.contains(&start) && self.is_alive(member)
        });
        whole.count()
    }

    /// Notes which chains have too few whole replicas, and since when.
    fn note_lacking(&mut self, now: u64) {
        let lacks = |chain: &Chain| self.whole(chain) < self.replicas();
        let lacking: Vec<bool> = self.chains.values().map(lacks).collect();
        for (chain, lacks) in self.chains.values_mut().zip(lacking) {
            chain.lacking_since = match (lacks, chain.lacking_since) {
                (false, _) => None,
                (true, None) => Some(now),
                (true, since) => since,
            };
        }
    }

    /// All servers known, by number.
    pub fn servers(&self) -> impl Iterator<Item = ServerView> {
        self.servers.all.values().map(|health| ServerView {
            member: health.start,
            alive: health.alive,
            drained: health.drained,
        })
    }

    /// Counters since the start.
    pub fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    /// True if another controller made configurations that this one does not know:
    /// it then makes none itself. A server says so, and goes on saying so or is silent; the
    /// silence of one that keeps nothing of the chain counts for `replace_after` only.
    pub fn is_behind(&self) -> bool {
        !self.ahead.is_empty()
    }
}

impl Chain {
    fn new(config: ChainConfig, now: u64) -> Chain {
        Chain {
            config,
            stored: false,
            confirmed: BTreeSet::new(),
            resend_at: now,
            joined: false,
            shunned: BTreeMap::new(),
            version: 0,
            lacking_since: None,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Member> {
        self.config.members.iter().chain(&self.config.joining)
    }

    /// Members that must follow the configuration and have not reported it.
    fn needs(&self) -> impl Iterator<Item = &Member> {
        self.all()
            .filter(|m| !self.confirmed.contains(&(m.server, m.incarnation)))
    }
}

#[cfg(test)]
mod tests;
