//! The authority: it decides epochs, leaders, members, learners and receivers, within the rules (5
//! to 7, 11, 12, 26) and otherwise at will.
//!
//! The world sees it through [`Authority`]'s functions alone, so that a controller can take its
//! place.

mod group;

use crate::options::Rule;
use crate::parcel::{Begin, Parcel, Told};
use crate::places::{AUTHORITY, Places, SWITCHES, switch_address, switch_socket};
use crate::scenario::Scenario;
use crate::sender::session_of;
use group::{Change, Group};
use stateplane_apps::datagram::{datagram, frame};
use stateplane_multicast_setup as setup;
use stateplane_wire::multicast::{MessageType, NO_LEARNER, Packet, Repr, flag};
use stateplane_world::{Node, NodePort, Random};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A switch, and which start of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start {
    pub(crate) switch: usize,
    pub(crate) incarnation: u32,
}

/// Members by their number in the group.
pub(crate) type Members = BTreeMap<u8, Start>;

/// µs between what the authority does.
const TICK: u64 = 2_000;
/// µs without a sign of life after which a leader is deposed.
const DETECTION: u64 = 20_000;
/// Chance in thousandths, at a tick, that a joined learner becomes a member, and that a member that
/// died is replaced.
const HASTE: u32 = 300;

/// The authority.
pub(crate) struct Authority {
    groups: Vec<Group>,
    places: Places,
    scenario: Scenario,
    random: Random,
    without: Option<Rule>,
    /// Starts of the switches that live.
    lives: Vec<Option<u32>>,
    /// Rows of each switch with their version, and the version that a start of it has.
    rows: Vec<(u64, setup::Rows)>,
    confirmed: Vec<(u32, u64)>,
    leaders_version: u64,
    leaders: BTreeMap<u8, core::net::Ipv4Addr>,
    ticks_at: u64,
    outbox: VecDeque<(usize, Parcel)>,
    /// Epochs in which a leader was appointed.
    pub(crate) appointed: u64,
}

impl Authority {
    pub(crate) fn new(
        scenario: &Scenario,
        without: Option<Rule>,
        lives: Vec<Option<u32>>,
        seed: u64,
    ) -> Self {
        let places = Places::new(scenario);
        let starts = lives.iter().enumerate();
        let starts: Vec<Start> = starts
            .filter_map(|(switch, incarnation)| {
                Some(Start {
                    switch,
                    incarnation: (*incarnation)?,
                })
            })
            .collect();
        let groups = (0..scenario.groups).map(|group| {
            let members = (0..scenario.members).map(|number| {
                let place = usize::from(group) * 2 + usize::from(number);
                (number, starts[place % starts.len()])
            });
            let listed = places.receivers_of(group).take(scenario.receivers.into());
            Group::new(
                scenario.first_epoch,
                members.collect(),
                (0..).zip(listed).collect(),
            )
        });
        let mut groups: Vec<Group> = groups.collect();
        for group in &mut groups {
            group.begin(Change::default());
        }
        Self {
            groups,
            places,
            scenario: scenario.clone(),
            random: Random::new(seed),
            without,
            rows: vec![(0, setup::Rows::default()); SWITCHES],
            confirmed: vec![(0, 0); SWITCHES],
            lives,
            leaders_version: 0,
            leaders: BTreeMap::new(),
            ticks_at: 0,
            outbox: VecDeque::new(),
            appointed: 0,
        }
    }

    /// Receivers with which each group begins: their numbers, and the list's version.
    pub(crate) fn founders(&self) -> Vec<(usize, u8, u16)> {
        let listed = self.groups.iter().flat_map(|group| {
            let version = group.list_version;
            let listed = group.receivers.iter();
            listed.map(move |(number, receiver)| (*receiver, *number, version))
        });
        listed.collect()
    }

    /// Which start of each switch lives: the authority sees it.
    pub(crate) fn sees(&mut self, lives: Vec<Option<u32>>) {
        if self.without == Some(Rule::Memory) {
            for group in &mut self.groups {
                group.take_for_same(&lives);
            }
        }
        self.lives = lives;
    }

    fn is_alive(&self, start: Start) -> bool {
        self.lives[start.switch] == Some(start.incarnation)
    }

    /// True if without the switch every configuration that counts has a majority that lives.
    pub(crate) fn may_die(&self, switch: usize) -> bool {
        let remains = |start: &Start| start.switch != switch && self.is_alive(*start);
        self.groups.iter().all(|group| {
            let mut sets = group.sets.iter().chain([&group.members]);
            sets.all(|set| 2 * set.values().filter(|of| remains(of)).count() > set.len())
        })
    }

    /// Switches that lead a group, as the authority knows.
    pub(crate) fn leads(&self) -> Vec<usize> {
        self.leaders_by_group().into_iter().flatten().collect()
    }

    /// The switch that leads each group, as the authority knows.
    pub(crate) fn leaders_by_group(&self) -> Vec<Option<usize>> {
        let groups = self.groups.iter();
        let leads = groups.map(|group| group.leads().map(|start| start.switch));
        leads.collect()
    }

    /// Everything that is not as it should be when faults have been over for long.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let dead = group.members.values().filter(|of| !self.is_alive(**of));
            let dead = dead.count();
            if dead > 0 {
                let learns = match group.learner {
                    None => "nobody learns".to_owned(),
                    Some((learner, _)) => format!(
                        "{learner} learns (promised {}, joined {})",
                        group.learner_promised, group.joined
                    ),
                };
                found.push(format!(
                    "group {number} has {dead} members that are dead, and {learns}"
                ));
            }
            if group.leads().is_none() || !group.established {
                found.push(format!("group {number} has no established leader"));
            }
        }
        found
    }

    /// Begins a new epoch of a group, whatever its leader does.
    pub(crate) fn depose(&mut self, draw: u64) {
        let group = draw as usize % self.groups.len();
        self.groups[group].begin(Change::default());
        self.send_all();
    }

    /// A spare switch is to take a living member's place.
    pub(crate) fn exchange(&mut self, draw: u64) {
        let group = draw as usize % self.groups.len();
        let members = &self.groups[group].members;
        let place = (draw >> 8) as usize % members.len();
        let leaves = members.keys().nth(place).copied();
        self.groups[group].leaves = leaves;
    }

    /// Takes a receiver off its group's list, unless no other one has the group's state; `has` says
    /// who does.
    pub(crate) fn evict(&mut self, draw: u64, has: &dyn Fn(usize) -> bool) {
        let group = draw as usize % self.groups.len();
        let group = &mut self.groups[group];
        let place = (draw >> 8) as usize % group.receivers.len().max(1);
        let Some((&number, &receiver)) = group.receivers.iter().nth(place) else {
            return;
        };
        let mut others = group.receivers.values().filter(|of| **of != receiver);
        if others.any(|of| has(*of)) {
            group.unlist(number);
        }
    }

    /// True if a receiver is on its group's list.
    pub(crate) fn lists(&self, receiver: usize) -> bool {
        let group = &self.groups[usize::from(self.places.group_of(receiver))];
        group.receivers.values().any(|of| *of == receiver)
    }

    /// A receiver that died is taken off.
    pub(crate) fn forget(&mut self, receiver: usize) {
        let group = &mut self.groups[usize::from(self.places.group_of(receiver))];
        let listed = group.receivers.iter().find(|(_, of)| **of == receiver);
        if let Some(number) = listed.map(|(number, _)| *number) {
            group.unlist(number);
        }
    }

    /// Lists a receiver that is on no list.
    pub(crate) fn enlist(&mut self, receiver: usize) {
        if !self.lists(receiver) {
            let group = usize::from(self.places.group_of(receiver));
            self.groups[group].list(receiver, self.without != Some(Rule::NumberCools));
        }
    }

    /// The authority begins anew with what it stored.
    pub(crate) fn restart(&mut self) {
        self.confirmed = vec![(0, 0); SWITCHES];
        for group in &mut self.groups {
            group.forget_what_was_not_stored();
            if self.without != Some(Rule::NewEpochAtRestart) {
                group.begin(Change::default());
            }
        }
    }

    /// A start that could learn in a group.
    fn spare(&mut self, group: usize) -> Option<Start> {
        let lives = self.lives.iter().enumerate();
        let starts = lives.filter_map(|(switch, incarnation)| {
            Some(Start {
                switch,
                incarnation: (*incarnation)?,
            })
        });
        let group = &self.groups[group];
        let free: Vec<Start> = starts
            .filter(|start| !group.involves(start.switch))
            .collect();
        (!free.is_empty()).then(|| free[self.random.place(free.len())])
    }

    /// Members that died or are to leave are replaced, one after another.
    fn exchange_members(&mut self, group: usize) {
        let dead = self.groups[group].members.iter();
        let dead = dead.filter(|(_, start)| !self.is_alive(**start));
        let dead: Option<u8> = dead.map(|(number, _)| *number).next();
        let of = &self.groups[group];
        if of.learner.is_some_and(|(_, start)| !self.is_alive(start)) {
            self.groups[group].learner = None;
            return;
        }
        let leaves = dead.or(of.leaves.filter(|number| of.members.contains_key(number)));
        let Some(leaves) = leaves else {
            return;
        };
        if of.leader.is_none() || !self.random.permille(HASTE) {
            return;
        }
        match self.groups[group].learner {
            Some(learner) if self.groups[group].joined && self.groups[group].established => {
                self.groups[group].begin(Change {
                    leaves: Some(leaves),
                    joins: Some(learner),
                });
            }
            Some(_) => {}
            None => {
                if let Some(start) = self.spare(group) {
                    self.groups[group].learns(start, self.without != Some(Rule::LearnerPromises));
                }
            }
        }
    }

    /// Appoints a leader, once there are the promises for it.
    fn appoint(&mut self, group: usize) {
        let lives = self.lives.clone();
        let alive = |start: Start| lives[start.switch] == Some(start.incarnation);
        let without = self.without;
        let draw = self.random.next();
        if self.groups[group].appoint(&alive, without, draw) {
            self.appointed += 1;
        }
    }

    fn rows_of(&self, switch: usize) -> setup::Rows {
        let mut rows = setup::Rows {
            leaders: self.leaders.clone(),
            ..setup::Rows::default()
        };
        for sender in 0..self.places.senders {
            rows.sessions
                .insert(session_of(sender), self.scenario.lanes);
        }
        for (number, group) in (0..).zip(&self.groups) {
            let start = |start: &Start| self.lives[switch] == Some(start.incarnation);
            let own = group.starts().into_iter();
            let mut own = own.filter(|(_, of)| of.switch == switch && start(of));
            let Some((member, _)) = own.next() else {
                continue;
            };
            let others = group.present().into_iter();
            let others = others.filter(|(number, _)| *number != member);
            let others = others.map(|(number, start)| setup::Member {
                number,
                incarnation: start.incarnation,
                address: switch_address(start.switch),
            });
            let receivers = group.receivers.iter();
            let receivers =
                receivers.map(|(number, receiver)| (*number, Places::receiver_address(*receiver)));
            rows.groups.insert(
                number,
                setup::Group {
                    member,
                    longest: self.scenario.longest,
                    others: others.collect(),
                    receivers: receivers.collect(),
                },
            );
        }
        rows
    }

    fn tell(&mut self, node: usize, told: Told) {
        self.outbox.push_back((node, Parcel::Told(Arc::new(told))));
    }

    fn send(&mut self, start: Start, message: Repr<'_>) {
        let message = Repr {
            incarnation: start.incarnation,
            ..message
        };
        let bytes = message.to_vec().unwrap_or_default();
        let frame = frame(AUTHORITY, switch_socket(start.switch), &bytes);
        self.outbox.push_back((start.switch, Parcel::Frame(frame)));
    }

    fn send_leaders(&mut self) {
        let leaders = (0..).zip(&self.groups);
        let leaders = leaders
            .filter_map(|(number, group)| Some((number, switch_address(group.leads()?.switch))));
        let mut leaders: BTreeMap<u8, _> = leaders.collect();
        // Of a group that has none for the moment the last one stays.
        for (group, address) in &self.leaders {
            leaders.entry(*group).or_insert(*address);
        }
        if leaders != self.leaders {
            self.leaders = leaders;
            self.leaders_version += 1;
        }
        for host in self.places.hosts() {
            let told = Told::Leaders {
                version: self.leaders_version,
                leaders: self.leaders.clone(),
            };
            self.tell(host, told);
        }
    }

    fn send_rows(&mut self) {
        for switch in 0..SWITCHES {
            let rows = self.rows_of(switch);
            if rows != self.rows[switch].1 {
                self.rows[switch] = (self.rows[switch].0 + 1, rows);
            }
            let Some(incarnation) = self.lives[switch] else {
                continue;
            };
            let (version, rows) = self.rows[switch].clone();
            if self.confirmed[switch] != (incarnation, version) {
                let told = Told::Rows {
                    incarnation,
                    version,
                    rows,
                };
                self.tell(switch, told);
            }
        }
    }

    fn send_lists(&mut self) {
        for receiver in 0..self.places.receivers {
            let group = &self.groups[usize::from(self.places.group_of(receiver))];
            let begin = match self.without {
                Some(Rule::SnapshotBehind) => Some(Begin {
                    last: self.scenario.first_index,
                    base: self.scenario.first_index,
                    time: self.scenario.first_time,
                }),
                _ => group.begins_at,
            };
            let told = Told::List {
                version: group.list_version,
                listed: group.listed(receiver),
                begin,
            };
            self.tell(Places::receiver(receiver), told);
        }
    }

    /// PREPARE to whoever has not promised, LEAD to the leader.
    fn send_messages(&mut self, number: u8) {
        let group = &self.groups[usize::from(number)];
        let (epoch, leader) = (group.epoch, group.leader);
        for start in group.unpromised() {
            let prepare = Repr {
                group: number,
                epoch,
                ..Repr::new(MessageType::Prepare)
            };
            self.send(start, prepare);
        }
        let group = &self.groups[usize::from(number)];
        let Some(start) = leader
            .and_then(|leader| group.members.get(&leader))
            .copied()
        else {
            return;
        };
        let map = |numbers: &mut dyn Iterator<Item = u8>| {
            numbers.fold(0, |map, number| map | 1u32 << number)
        };
        let lead = Repr {
            group: number,
            epoch,
            list_version: group.list_version,
            destinations: map(&mut group.members.keys().copied()),
            before: map(&mut group.receivers.keys().copied()),
            learner: match group.learner {
                Some((learner, _)) if group.learner_promised => learner,
                _ => NO_LEARNER,
            },
            ..Repr::new(MessageType::Lead)
        };
        // A leader has the rows of whom it leads before it is told to (rule 6).
        let rows = (start.incarnation, self.rows[start.switch].0);
        if self.confirmed[start.switch] == rows {
            self.send(start, lead);
        }
    }

    fn send_all(&mut self) {
        self.send_leaders();
        self.send_rows();
        self.send_lists();
        for number in 0..self.scenario.groups {
            self.send_messages(number);
        }
    }

    fn hear(&mut self, now: u64, message: &Repr<'_>) {
        let Some(group) = self.groups.get_mut(usize::from(message.group)) else {
            return;
        };
        match message.message_type {
            MessageType::Promise => group.promised(message),
            MessageType::Leading if message.epoch == group.epoch => {
                let leader = group.leads();
                if leader.is_some_and(|leader| leader.incarnation == message.incarnation) {
                    group.heard_at = now;
                    group.leading(message, flag::ESTABLISHED, flag::JOINED);
                }
            }
            _ => {}
        }
    }
}

impl Node for Authority {
    type Message = Parcel;
    type Transmit = (usize, Parcel);

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, parcel: Parcel) {
        match parcel {
            Parcel::Told(told) => {
                if let Told::Set {
                    switch,
                    incarnation,
                    version,
                } = *told
                {
                    self.confirmed[switch] = (incarnation, version);
                }
            }
            Parcel::Frame(bytes) => {
                let Some((_, _, bytes)) = datagram(&bytes) else {
                    return;
                };
                if let Ok(packet) = Packet::new_checked(bytes) {
                    self.hear(now, &Repr::parse(&packet));
                }
            }
            Parcel::Store(_) => {}
        }
        for group in 0..self.groups.len() {
            self.appoint(group);
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        if now < self.ticks_at {
            return;
        }
        self.ticks_at = now + TICK;
        for group in 0..self.groups.len() {
            let of = &mut self.groups[group];
            if of.heard_at == 0 {
                of.heard_at = now;
            }
            if now.saturating_sub(of.heard_at) > DETECTION {
                of.heard_at = now;
                of.begin(Change::default());
            }
            self.exchange_members(group);
        }
        self.send_all();
    }

    fn poll_transmit(&mut self, _: u64) -> Option<(usize, Parcel)> {
        self.outbox.pop_front()
    }

    fn poll_timeout(&self) -> Option<u64> {
        Some(self.ticks_at)
    }
}
