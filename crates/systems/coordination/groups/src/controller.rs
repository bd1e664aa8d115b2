//! Decides what the chains of groups are, and which session has which lanes.

mod clients;
mod operators;
mod plan;
mod standing;
mod switches;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use core::net::{Ipv4Addr, SocketAddrV4};

use serde::Serialize;
use stateplane_invariant::{Broken, BrokenCounts, Invariants, invariant};
use stateplane_membership::{Claims, Ring, Servers, Start};
use stateplane_wire::coordination_control as clients_wire;

use crate::Seed;
use crate::decision::{Decision, GroupConfig, LaneBook, Member};
use crate::lanes::LaneTable;
use crate::redirects::Redirects;
use crate::settings::{Settings, SettingsError};

pub use operators::{RefoundError, SwitchView, UnsafeStop};

/// A datagram of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The switch or client that it goes to.
    pub to: SocketAddrV4,
    /// The message's bytes.
    pub bytes: Vec<u8>,
}

/// Event counters of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ControllerCounters {
    /// Messages that are none, or not for a controller.
    pub malformed: u64,
    /// Messages of switches that the settings do not name.
    pub foreign: u64,
    /// Answers to PING.
    pub pongs: u64,
    /// Switches taken for dead.
    pub deaths: u64,
    /// Configurations made.
    pub configurations: u64,
    /// Switches that joined a group and became members.
    pub joined: u64,
    /// Switches that gave up joining a group, since it took too long.
    pub join_timeouts: u64,
    /// Switches left out of a group that stood still, though they lived.
    pub standstills: u64,
    /// Groups whose members were all lost.
    pub down: u64,
    /// Groups that have no configuration number, or generation, left.
    pub exhausted: u64,
    /// Configurations sent again.
    pub resent: u64,
    /// Failed switches without a place for redirection, counted each time that one fails.
    pub not_redirected: u64,
    /// Messages that show that another controller is ahead of this one.
    pub ahead: u64,
    /// Sessions opened.
    pub opened: u64,
    /// Sessions refused, since no lane was free.
    pub refused: u64,
    /// Sessions closed.
    pub closed: u64,
}

/// A group and what is known of its chain.
#[derive(Debug, Clone)]
struct Group {
    config: GroupConfig,
    /// The last configuration that was stored, and so took effect. Clients learn it: replies of an
    /// earlier one than they know are outdated to them (rule 10), and one that is not stored may
    /// never come.
    shown: Option<GroupConfig>,
    /// Switches, by number and incarnation, that follow this configuration.
    confirmed: BTreeSet<(u32, u32)>,
    /// Switches that may follow an earlier configuration and are not in this one.
    former: BTreeSet<u32>,
    resend_at: u64,
    /// The switch that joins answers: it can be a member.
    joined: bool,
    /// Time at which the configuration took effect.
    since: u64,
    /// Switches that gave up joining, and until when they stay out.
    shunned: BTreeMap<u32, u64>,
    /// Number of the newest entry that each switch said that it has.
    newest: BTreeMap<u32, u64>,
    /// Reports of its members in this configuration.
    pulses: BTreeMap<u32, standing::Pulse>,
    /// How often each switch was left out because the group stood still.
    stood: BTreeMap<u32, u32>,
    /// Version of the row that clients learn; 0 before the first.
    version: u64,
    /// True if no member lives.
    down: bool,
    /// Since when it has fewer whole members than it is to have; `None` if it has all.
    lacking_since: Option<u64>,
}

/// A group that was never founded, as far as this controller knows.
#[derive(Debug, Clone, Default)]
struct Unfounded {
    /// Switches, by number and incarnation, that said that they follow no configuration of it.
    asked: BTreeSet<(u32, u32)>,
    resend_at: u64,
}

/// The controller. See the crate's documentation.
#[derive(Debug, Clone)]
pub struct Controller {
    settings: Settings,
    incarnation: u32,
    seed: Seed,
    began: u64,
    servers: Servers<Member>,
    by_address: BTreeMap<Ipv4Addr, u32>,
    domains: BTreeMap<u32, u32>,
    ring: Ring,
    groups: BTreeMap<u16, Group>,
    unfounded: BTreeMap<u16, Unfounded>,
    lanes: LaneTable,
    redirects: Redirects,
    /// Number of failed switches without a place.
    without_place: usize,
    redirect_at: u64,
    watch_at: u64,
    /// Version of the chains that clients learn.
    version: u64,
    ping_number: u32,
    ping_at: u64,
    records: VecDeque<Decision>,
    outbox: VecDeque<Transmit>,
    /// Groups to look at again.
    stale: BTreeSet<u16>,
    /// Switches and groups in which they say that they follow a configuration that this controller
    /// never made.
    ahead: Claims,
    /// Greatest generation and configuration number that a switch said of each group, if they are
    /// not this controller's.
    seen: BTreeMap<u16, (u16, u32)>,
    wake: u64,
    counters: ControllerCounters,
    invariants: Invariants,
}

impl Controller {
    /// A controller that finds `stored` decisions. `incarnation` must differ from that of every
    /// earlier start and from 0; `seed` gives the keys of the hashes of groups that it founds.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Settings::check`].
    pub fn new(
        settings: Settings,
        incarnation: u32,
        seed: Seed,
        stored: impl IntoIterator<Item = Decision>,
        now: u64,
    ) -> Result<Controller, SettingsError> {
        settings.check()?;
        let (mut groups, mut book) = (BTreeMap::<u16, Group>::new(), None::<LaneBook>);
        for decision in stored {
            match decision {
                Decision::Group(config) => {
                    let known = groups.get(&config.group).map(|group| group.config.epoch);
                    if config.group < settings.groups
                        && known.is_none_or(|known| known < config.epoch)
                    {
                        let mut group = Group::new(config, now);
                        group.take_effect(now);
                        groups.insert(group.config.group, group);
                    }
                }
                Decision::Lanes(newer) => {
                    if book
                        .as_ref()
                        .is_none_or(|book| book.version < newer.version)
                    {
                        book = Some(newer);
                    }
                }
            }
        }
        let switches = settings.switches.iter();
        let by_address = switches.clone().map(|it| (it.address, it.number)).collect();
        let unfounded = (0..settings.groups).filter(|group| !groups.contains_key(group));
        let mut controller = Controller {
            incarnation,
            seed,
            began: now,
            servers: Servers::default(),
            by_address,
            domains: switches.clone().map(|it| (it.number, it.domain)).collect(),
            ring: Ring::default(),
            unfounded: unfounded.map(|it| (it, Unfounded::default())).collect(),
            groups,
            lanes: LaneTable::new(settings.lanes, book.as_ref(), now),
            redirects: Redirects::new(settings.redirects),
            without_place: 0,
            // By then those that fail are known.
            redirect_at: now.saturating_add(settings.detection + settings.ping),
            watch_at: now,
            version: 0,
            ping_number: 0,
            ping_at: now,
            records: VecDeque::new(),
            outbox: VecDeque::new(),
            stale: BTreeSet::new(),
            ahead: Claims::default(),
            seen: BTreeMap::new(),
            wake: now,
            counters: ControllerCounters::default(),
            invariants: Invariants::new(false),
            settings,
        };
        let numbers: Vec<u32> = controller.domains.keys().copied().collect();
        for group in controller.groups.values_mut() {
            // Whoever is not in the last configuration may follow one before it.
            let named: Vec<u32> = group.config.all().map(|member| member.switch).collect();
            let former = numbers.iter().filter(|number| !named.contains(number));
            group.former = former.copied().collect();
            controller.version += 1;
            group.version = controller.version;
            for member in group.config.all() {
                controller.servers.remember(now, *member);
            }
        }
        controller.place_anew(now);
        Ok(controller)
    }

    /// Takes a datagram that came from `from` at `now`.
    pub fn handle_message(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        if self.silenced().is_some() {
            return;
        }
        self.handle_timeout(now);
        if clients_wire::Message::is_one(bytes) {
            self.client_message(now, from, bytes);
        } else {
            self.switch_message(now, from, bytes);
        }
        self.reconsider(now);
    }

    /// Does what is due at `now`: asks switches whether they live, takes the silent for dead, sends
    /// again what had no effect.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.silenced().is_some() {
            return;
        }
        let detection = self.settings.detection;
        self.servers.excuse_own_absence(now, detection);
        let before = self.living();
        if self.servers.bury(now, detection) {
            self.counters.deaths += (before - self.living()) as u64;
            self.place_anew(now);
        }
        if now >= self.wake {
            self.place_anew(now);
        }
        self.ping(now);
        self.watch(now);
        self.reconsider(now);
        self.ask_unfounded(now);
        self.note_lacking(now);
        let late = self.groups.iter();
        let late = late.filter(|(_, group)| group.is_stored() && group.resend_at <= now);
        let late: Vec<u16> = late.map(|(number, _)| *number).collect();
        for number in late {
            self.send_configs(now, number, true);
        }
        self.send_redirects(now);
    }

    /// When [`Controller::handle_timeout`] has something to do next, in µs.
    pub fn poll_timeout(&self) -> u64 {
        let death = self.servers.next_death(self.settings.detection);
        let groups = self.groups.values().filter(|group| group.is_stored());
        let resend = groups.map(|group| group.resend_at).min();
        let asks = self.unfounded.values().map(|group| group.resend_at).min();
        let own = [death, resend, asks].into_iter().flatten();
        own.chain([self.wake, self.ping_at, self.redirect_at, self.watch_at])
            .min()
            .unwrap_or(u64::MAX)
    }

    /// The next decision to store. It takes effect with [`Controller::handle_stored`]; if it cannot
    /// be stored, the controller must not go on.
    pub fn poll_record(&mut self) -> Option<Decision> {
        let lanes = &mut self.lanes;
        let record = self.records.pop_front();
        record
            .or_else(|| lanes.poll_book().map(Decision::Lanes))
            .filter(|_| self.silenced().is_none())
    }

    /// A decision lies where it outlives the controller.
    pub fn handle_stored(&mut self, now: u64, decision: &Decision) {
        let decided = match decision {
            Decision::Group(config) => self.config_stored(now, config),
            Decision::Lanes(book) => self.book_stored(book),
        };
        invariant!(
            self.invariants,
            StoredDecision,
            decided,
            "{decision:?} is stored, which was not decided last"
        );
        self.reconsider(now);
    }

    fn config_stored(&mut self, now: u64, config: &GroupConfig) -> bool {
        let group = self.groups.get_mut(&config.group);
        let Some(group) = group.filter(|group| group.config == *config && !group.is_stored())
        else {
            return false;
        };
        group.take_effect(now);
        self.stale.insert(config.group);
        self.publish(config.group);
        self.send_configs(now, config.group, false);
        true
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

    /// Counters since the start.
    pub fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// True if another controller made configurations that this one does not know: it then decides
    /// nothing itself. A switch says so, and goes on saying so.
    pub fn is_behind(&self) -> bool {
        !self.ahead.is_empty()
    }

    fn living(&self) -> usize {
        self.servers.all.values().filter(|it| it.alive).count()
    }

    /// The row of a group changed: clients learn it.
    fn publish(&mut self, group: u16) {
        if let Some(group) = self.groups.get_mut(&group) {
            self.version += 1;
            group.version = self.version;
        }
    }

    fn send(&mut self, to: SocketAddrV4, bytes: Vec<u8>) {
        self.outbox.push_back(Transmit { to, bytes });
    }
}

impl Group {
    fn new(config: GroupConfig, now: u64) -> Group {
        Group {
            config,
            shown: None,
            confirmed: BTreeSet::new(),
            former: BTreeSet::new(),
            resend_at: now,
            joined: false,
            since: now,
            shunned: BTreeMap::new(),
            newest: BTreeMap::new(),
            pulses: BTreeMap::new(),
            stood: BTreeMap::new(),
            version: 0,
            down: false,
            lacking_since: None,
        }
    }

    /// True if the configuration is stored; only then it takes effect.
    fn is_stored(&self) -> bool {
        let shown = self.shown.as_ref();
        shown.is_some_and(|shown| shown.epoch == self.config.epoch)
    }

    /// The configuration is stored.
    fn take_effect(&mut self, now: u64) {
        self.since = now;
        self.shown = Some(self.config.clone());
    }

    /// Members, and the one that joins, that have not reported that they follow the configuration.
    fn needs(&self) -> impl Iterator<Item = &Member> {
        let confirmed = |member: &&Member| self.is_confirmed(member);
        self.config.all().filter(move |member| !confirmed(member))
    }

    fn is_confirmed(&self, member: &Member) -> bool {
        let start = (member.server(), member.incarnation());
        self.confirmed.contains(&start)
    }
}

#[cfg(test)]
mod tests;
