//! Decides who leads which group with which members, who receives, and which session has which
//! slot.

mod clients;
mod epochs;
mod hosts;
mod members;
mod operators;
mod plan;
mod receivers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use core::net::{Ipv4Addr, SocketAddrV4};

use serde::Serialize;
use stateplane_invariant::{Broken, BrokenCounts, Invariants, invariant};
use stateplane_membership::{Claims, Ring, Servers};
use stateplane_wire::multicast_control::{self as control, Standing};

use crate::decision::{Decision, GroupConfig, Member, SlotBook};
use crate::settings::{Settings, SettingsError};
use crate::slots::SlotTable;

pub use operators::{GroupState, RefoundError, SwitchView, Waits};

use epochs::{Led, Promise};
use receivers::Reception;

/// A datagram of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// The switch or host that it goes to.
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
    /// BEATs of switches.
    pub beats: u64,
    /// Switches taken for dead.
    pub deaths: u64,
    /// Epochs begun.
    pub epochs: u64,
    /// Leaders appointed.
    pub appointed: u64,
    /// Leaders that did not answer, though their switch lived.
    pub deaf: u64,
    /// Configurations taken back, since only a member taken out could lead (rule 11).
    pub restored: u64,
    /// Switches that learned and became members.
    pub joined: u64,
    /// Switches that gave up learning, since it took too long.
    pub join_timeouts: u64,
    /// Members taken out.
    pub left: u64,
    /// Times that a member was needed and no number was free.
    pub no_number: u64,
    /// Groups that have no number of an epoch or a decision left.
    pub exhausted: u64,
    /// Messages that show that another controller is ahead of this one.
    pub ahead: u64,
    /// Receivers put on a list.
    pub listed: u64,
    /// Receivers taken off a list for silence, or since they were too slow.
    pub taken_off: u64,
    /// Sessions opened.
    pub opened: u64,
    /// Sessions refused, since no slot or no lane was free.
    pub refused: u64,
    /// Sessions ended.
    pub ended: u64,
    /// Sessions among them that were ended for silence.
    pub expired: u64,
    /// Slots that passed on.
    pub freed: u64,
}

/// A group and what is known of it.
#[derive(Debug, Clone)]
struct Group {
    /// As it was last decided.
    config: GroupConfig,
    /// As it is stored, which switches and hosts are told.
    shown: GroupConfig,
    /// True if the last decision is stored; only then it takes effect.
    stored: bool,
    /// Version of its row in the view; 0 before the first.
    row: u64,
    /// True if this controller began the epoch (rule 6).
    own: bool,
    /// Promises of the epoch, by number of the member.
    promises: BTreeMap<u8, Promise>,
    /// Time since which majorities promised.
    enough_since: Option<u64>,
    /// Member that led in the epoch before, and is to lead again if it can.
    led_before: Option<u8>,
    /// The leader's report in this epoch.
    led: Led,
    /// The learner has joined.
    joined: bool,
    /// Time from which the learner learns.
    learns_since: u64,
    /// Numbers of learners of this epoch: the leader keeps how far each is, so that none is another's.
    spent: BTreeSet<u8>,
    /// Switches that gave up learning, and until when they stay out.
    shunned: BTreeMap<u32, u64>,
    /// Numbers of receivers that the leader may not know as taken off.
    cooling: BTreeSet<u8>,
    /// The receivers, by nonce.
    receptions: BTreeMap<u64, Reception>,
    /// Time at which what had no effect is sent again.
    resend_at: u64,
}

/// The process around a switch's program.
#[derive(Debug, Clone)]
struct Host {
    /// Which start of the switch it spoke for.
    incarnation: u32,
    /// Version of the view that it follows.
    version: u64,
    /// Version up to which it was sent the view without being asked.
    pushed: u64,
    /// Slots of ended sessions of which its logs hold entries.
    held: [u8; 32],
    /// How far it is in each group.
    standings: BTreeMap<u8, Standing>,
}

/// The controller. See the crate's documentation.
#[derive(Debug, Clone)]
pub struct Controller {
    settings: Settings,
    incarnation: u32,
    began: u64,
    /// Time at which it last ran.
    last: u64,
    servers: Servers<Member>,
    hosts: BTreeMap<u32, Host>,
    by_address: BTreeMap<Ipv4Addr, u32>,
    domains: BTreeMap<u32, u32>,
    ring: Ring,
    groups: BTreeMap<u8, Group>,
    slots: SlotTable,
    /// Version of the view that switches follow.
    version: u64,
    records: VecDeque<Decision>,
    outbox: VecDeque<Transmit>,
    /// Groups to look at again.
    stale: BTreeSet<u8>,
    /// Switches and groups in which they say that they promised an epoch that this controller never
    /// began.
    ahead: Claims,
    wake: u64,
    counters: ControllerCounters,
    invariants: Invariants,
}

impl Controller {
    /// A controller that finds `stored` decisions. `incarnation` must differ from that of every
    /// earlier start and from 0.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Settings::check`].
    pub fn new(
        settings: Settings,
        incarnation: u32,
        stored: impl IntoIterator<Item = Decision>,
        now: u64,
    ) -> Result<Controller, SettingsError> {
        settings.check()?;
        let (mut groups, mut book) = (BTreeMap::<u8, Group>::new(), None::<SlotBook>);
        for decision in stored {
            match decision {
                Decision::Group(config) => {
                    let known = groups.get(&config.group).map(|group| group.config.record);
                    if config.group < settings.groups
                        && known.is_none_or(|known| known < config.record)
                    {
                        groups.insert(config.group, Group::found_stored(config, now));
                    }
                }
                Decision::Slots(newer) => {
                    let known = book.as_ref().map(|book| book.version);
                    if known.is_none_or(|known| known < newer.version) {
                        book = Some(newer);
                    }
                }
            }
        }
        let switches = settings.switches.iter();
        let by_address = switches.clone().map(|it| (it.address, it.number)).collect();
        let most = settings.most_lanes();
        let slots = SlotTable::new(settings.slots, settings.lanes, most, book.as_ref(), now);
        let mut controller = Controller {
            incarnation,
            began: now,
            last: now,
            servers: Servers::default(),
            hosts: BTreeMap::new(),
            by_address,
            domains: switches.map(|it| (it.number, it.domain)).collect(),
            ring: Ring::default(),
            groups,
            slots,
            version: 0,
            records: VecDeque::new(),
            outbox: VecDeque::new(),
            stale: BTreeSet::new(),
            ahead: Claims::default(),
            wake: now,
            counters: ControllerCounters::default(),
            invariants: Invariants::new(false),
            settings,
        };
        for group in controller.groups.values_mut() {
            controller.version += 1;
            group.row = controller.version;
            for member in group.config.holders() {
                controller.servers.remember(now, member);
            }
        }
        let slots: Vec<u16> = controller.slots.all().map(|(slot, _)| slot).collect();
        for slot in slots {
            controller.publish_slot(slot);
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
        if control::Message::is_one(bytes) {
            self.host_message(now, from, bytes);
        } else {
            self.member_message(now, from, bytes);
        }
        self.settle(now);
    }

    /// Does what is due at `now`: takes the silent for dead, sends again what had no effect.
    pub fn handle_timeout(&mut self, now: u64) {
        if self.silenced().is_some() {
            return;
        }
        let detection = self.settings.detection;
        self.servers.excuse_own_absence(now, detection);
        self.excuse(now);
        let before = self.living();
        if self.servers.bury(now, detection) {
            self.counters.deaths += (before - self.living()) as u64;
            self.place_anew(now);
        }
        if now >= self.wake {
            self.place_anew(now);
        }
        self.counters.expired += self.slots.expire(now, self.settings.session_ttl);
        self.expire_receivers(now);
        self.settle(now);
        let due = self.groups.iter();
        let due = due.filter(|(_, group)| group.stored && group.resend_at <= now);
        let due: Vec<u8> = due.map(|(number, _)| *number).collect();
        for number in due {
            self.speak(now, number);
        }
    }

    /// When [`Controller::handle_timeout`] has something to do next, in µs.
    pub fn poll_timeout(&self) -> u64 {
        let death = self.servers.next_death(self.settings.detection);
        let groups = self.groups.values().filter(|group| group.stored);
        let resend = groups.map(|group| group.resend_at).min();
        let ends = self.slots.next_end(self.settings.session_ttl);
        let own = [death, resend, ends, self.next_expiry()];
        let own = own.into_iter().flatten();
        own.chain([self.wake]).min().unwrap_or(u64::MAX)
    }

    /// The next decision to store. It takes effect with [`Controller::handle_stored`]; if it cannot
    /// be stored, the controller must not go on.
    pub fn poll_record(&mut self) -> Option<Decision> {
        let slots = &mut self.slots;
        let record = self.records.pop_front();
        record
            .or_else(|| slots.poll_book().map(Decision::Slots))
            .filter(|_| self.silenced().is_none())
    }

    /// A decision lies where it outlives the controller.
    pub fn handle_stored(&mut self, now: u64, decision: &Decision) {
        let decided = match decision {
            Decision::Group(config) => self.config_stored(now, config),
            Decision::Slots(book) => self.book_stored(book),
        };
        invariant!(
            self.invariants,
            StoredDecision,
            decided,
            "{decision:?} is stored, which was not decided last"
        );
        self.settle(now);
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

    /// True if another controller began epochs that this one does not know: it then decides nothing
    /// itself. A switch says so, and goes on saying so.
    pub fn is_behind(&self) -> bool {
        !self.ahead.is_empty()
    }

    fn living(&self) -> usize {
        self.servers.all.values().filter(|it| it.alive).count()
    }

    /// Decides what follows from what changed, and tells the hosts of switches.
    fn settle(&mut self, now: u64) {
        self.free_slots();
        self.answer_openers();
        self.reconsider(now);
        self.push_views();
    }

    /// A time in which the controller itself did not run is nobody's silence.
    fn excuse(&mut self, now: u64) {
        let absent = now.saturating_sub(core::mem::replace(&mut self.last, now));
        if absent <= self.settings.detection / 2 {
            return;
        }
        self.slots.excuse(now, absent);
        for group in self.groups.values_mut() {
            group.led.heard = group.led.heard.saturating_add(absent).min(now);
            for reception in group.receptions.values_mut() {
                reception.excuse(now, absent);
            }
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
            shown: GroupConfig::default(),
            stored: false,
            row: 0,
            own: true,
            promises: BTreeMap::new(),
            enough_since: None,
            led_before: None,
            led: Led::since(now),
            joined: false,
            learns_since: now,
            spent: BTreeSet::new(),
            shunned: BTreeMap::new(),
            cooling: BTreeSet::new(),
            receptions: BTreeMap::new(),
            resend_at: u64::MAX,
        }
    }

    /// A group as an earlier start of the controller left it.
    fn found_stored(config: GroupConfig, now: u64) -> Group {
        let receptions = config.receivers.iter();
        let receptions = receptions.map(|it| (it.nonce, Reception::since(now)));
        Group {
            shown: config.clone(),
            stored: true,
            own: false,
            receptions: receptions.collect(),
            ..Group::new(config, now)
        }
    }
}

#[cfg(test)]
mod tests;
