//! The world: the switch, its engines, the link between them, and what happens.

use crate::device::{Device, HOST_PORT, value};
use crate::engines::{BATCH, Host, Process, datagram, packet};
use crate::judge::{Judge, Violation, registers};
use crate::options::Rule;
use crate::program::{GROUPS, Group};
use crate::report::Coverage;
use crate::scenario::Scenario;
use crate::simulator::SimError;
use crate::staged::StagedWrites;
use crate::standby::{Standby, Step, Window};
use crate::totals::Totals;
use core::net::Ipv4Addr;
use stateplane_sync::Event;
use stateplane_sync_setup::CONTROL_PORT;
use stateplane_wire::sync::{CutKind, MessageType, Operation, Outcome, Packet, Repr};
use stateplane_world::Step as NetStep;
use stateplane_world::{Clock, Net, Node as _, NodePort, NodeSpec, Random, Topology};

/// Makes a switch that knows nothing, of its incarnation.
pub(crate) type MakeDevice<'a> = &'a dyn Fn(u32) -> Result<Box<dyn Device>, SimError>;

const SWITCH: usize = 0;
const ENGINES: usize = 1;

/// Between two times at which the store of the engines keeps totals, in µs.
const KEEP_US: u64 = 3_000;

/// Bytes around a frame on the wire.
const FRAMING: u64 = 24;

pub(crate) enum Happening {
    Packet { index: u32, length: u16 },
    Write { process: u64 },
    Stage { process: u64, group: u16 },
    Cut { group: u16, kind: CutKind },
    EngineStarts { old_lives: bool },
    SwitchStarts,
    Heal,
    Standby(Step),
}

/// Results of a world that has ended.
pub(crate) struct Remains {
    pub(crate) violations: Vec<Violation>,
    pub(crate) coverage: Coverage,
    pub(crate) trace: u64,
    pub(crate) faults: Vec<(u64, String)>,
}

/// Totals of an engine whose store has none.
pub(crate) fn no_totals() -> Vec<Totals> {
    vec![Totals::default(); GROUPS]
}

struct SwitchCore<'a>(&'a mut dyn Device);

impl stateplane_world::Node for SwitchCore<'_> {
    type Message = Vec<u8>;
    type Transmit = (u16, Vec<u8>);

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, frame: Vec<u8>) {
        self.0.handle_frame(now, port, &frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<(u16, Vec<u8>)> {
        self.0.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }
}

pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    make: MakeDevice<'a>,
    pub(crate) net: Net<Vec<u8>, Happening>,
    /// Engines that stand by for each other, in a scenario that has them.
    pub(crate) standby: Option<Standby>,
    device: Box<dyn Device>,
    incarnation: u32,
    /// When this start of the switch began, and the bytes of UPDATEs since then, by group.
    began: u64,
    bytes: [u64; GROUPS],
    /// Counts of each group's locations in earlier starts of the switch.
    counted: [Vec<u64>; GROUPS],
    /// When the store of the engines keeps totals next.
    keep_due: u64,
    pub(crate) host: Host,
    starts: u16,
    pub(crate) judge: Judge,
    staged: StagedWrites,
    pub(crate) coverage: Coverage,
    faults: Vec<(u64, String)>,
    /// Writes of all processes that ended as done, and that may have been done.
    done: u64,
    pub(crate) maybe: u64,
    /// Cuts that engines were asked for, less those that were made.
    cuts_left: u64,
}

impl<'a> World<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        make: MakeDevice<'a>,
        without: Option<Rule>,
        seed: u64,
    ) -> Result<Self, SimError> {
        let mut random = Random::new(seed);
        let mut plan = random.split();
        let mut topology = Topology {
            nodes: vec![NodeSpec::default(); 2],
            links: Vec::new(),
        };
        topology.join(
            NodePort::new(SWITCH, CONTROL_PORT),
            NodePort::new(ENGINES, 0),
            scenario.link,
        );
        let mut net = Net::new(&topology, random);
        let clock = Clock::draw(&mut net.random, 0, 10_000);
        net.set_clock(SWITCH, clock);
        let incarnation = net.random.between(1, u32::MAX.into()) as u32;
        let mut world = Self {
            scenario,
            make,
            device: make(incarnation)?,
            incarnation,
            began: 0,
            bytes: [0; GROUPS],
            counted: [(); GROUPS].map(|()| vec![0; scenario.locations as usize]),
            keep_due: KEEP_US,
            standby: None,
            host: Host {
                processes: Vec::new(),
                acted: Vec::new(),
            },
            starts: 0,
            judge: Judge::default(),
            staged: StagedWrites::default(),
            coverage: Coverage::default(),
            faults: Vec::new(),
            done: 0,
            maybe: 0,
            cuts_left: 0,
            net,
        };
        if scenario.candidates > 0 {
            let acts_on = without == Some(Rule::Lease);
            let random = &mut world.net.random;
            world.standby = Some(Standby::new(scenario.candidates, acts_on, random));
            world.begin_standby();
        } else {
            world.start_engine(no_totals())?;
        }
        world.after_switch();
        world.plan(&mut plan);
        Ok(world)
    }

    fn plan(&mut self, random: &mut Random) {
        let scenario = self.scenario;
        let end = scenario.traffic;
        // Most packets are of few sources; the last locations are for writes.
        for _ in 0..scenario.packets {
            let sources = scenario.locations - BATCH;
            let last = match random.place(3) {
                0 => 2,
                1 => sources / 4,
                _ => sources,
            };
            let index = random.place(last.max(1) as usize) as u32;
            let length = random.between(20, 1500) as u16;
            // Bursts: many at the same moment.
            let at = random.between(scenario.first_packet, end) / 50 * 50;
            self.net.plan(at, Happening::Packet { index, length });
        }
        for _ in 0..scenario.writes {
            let process = random.next();
            self.net
                .plan(random.between(1, end), Happening::Write { process });
        }
        for _ in 0..scenario.stages {
            let group = random.place(GROUPS) as u16;
            let process = random.next();
            self.net
                .plan(random.between(1, end), Happening::Stage { process, group });
        }
        for _ in 0..scenario.cuts {
            let group = random.place(GROUPS) as u16;
            let kind = if random.permille(scenario.fills) {
                CutKind::Filled
            } else {
                CutKind::Carried
            };
            self.net
                .plan(random.between(1, end), Happening::Cut { group, kind });
        }
        for _ in 0..scenario.engine_starts {
            let old_lives = random.permille(scenario.zombies);
            let at = random.between(1, end);
            self.faults.push((at, "another engine starts".to_owned()));
            self.net.plan(at, Happening::EngineStarts { old_lives });
        }
        for _ in 0..scenario.switch_starts {
            let at = random.between(1, end);
            self.faults.push((at, "the switch starts anew".to_owned()));
            self.net.plan(at, Happening::SwitchStarts);
        }
        self.faults.sort();
        self.net.plan(end, Happening::Heal);
    }

    pub(crate) fn run(mut self) -> Result<Remains, SimError> {
        let end = self.scenario.traffic + self.scenario.settle;
        while let Some(step) = self.net.next_before(end) {
            match step {
                NetStep::Message { from, to, message } => match to.node {
                    SWITCH => self.deliver(to.port, &message),
                    _ => {
                        self.end_leases();
                        let local = self.net.local(ENGINES);
                        self.host.handle_message(local, to.port, from, message);
                        self.after_engines();
                        self.judge_views();
                    }
                },
                NetStep::Timeout { node: SWITCH } => {
                    let local = self.net.local(SWITCH);
                    self.device.handle_timeout(local);
                    self.after_switch();
                }
                NetStep::Timeout { .. } => {
                    self.end_leases();
                    let local = self.net.local(ENGINES);
                    self.host.handle_timeout(local);
                    self.after_engines();
                }
                NetStep::Lost { .. } => {}
                NetStep::Event(happening) => self.happens(happening)?,
            }
        }
        self.finish();
        Ok(Remains {
            violations: self.judge.violations,
            coverage: self.coverage,
            trace: self.net.trace(),
            faults: self.faults,
        })
    }

    /// The place of the process that `number` chooses among those whose leases are in force; `None` if
    /// there is none, or it stands still.
    fn awake(&mut self, number: u64) -> Option<usize> {
        self.end_leases();
        let place = number.checked_rem(self.host.processes.len() as u64)? as usize;
        (!self.host.processes[place].is_asleep).then_some(place)
    }

    fn happens(&mut self, happening: Happening) -> Result<(), SimError> {
        match happening {
            Happening::Packet { index, length } => {
                let from = Ipv4Addr::from_bits(0x0a09_0000 + index);
                let payload = vec![0; usize::from(length) - 20];
                let frame = packet(from, Ipv4Addr::new(10, 0, 0, 1), 253, &payload);
                self.deliver(HOST_PORT, &frame);
            }
            Happening::Write { process } => {
                let Some(process) = self.awake(process) else {
                    return Ok(());
                };
                let process = &mut self.host.processes[process];
                let last = self.scenario.locations;
                let values: Vec<(u32, u64)> = (last - BATCH..last).map(|at| (at, 1)).collect();
                let write = process.groups[0].write(Operation::Add, &values, 0);
                process.open += u64::from(write.is_ok());
                self.after_engines();
            }
            Happening::Stage { process, group } => {
                let bits = self.group(group).bits();
                let values = self.staged.values(self.scenario.locations - BATCH, bits);
                let Some(process) = self.awake(process) else {
                    return Ok(());
                };
                let process = &mut self.host.processes[process];
                let all: Vec<(u32, u64)> = values.iter().map(|(at, value)| (*at, *value)).collect();
                if let Ok(ticket) = process.groups[usize::from(group)].write_staged(&all) {
                    let of = (process.port, process.term);
                    self.staged.ask(of, group, ticket, values);
                }
                self.after_engines();
            }
            Happening::Cut { group, kind } => {
                self.end_leases();
                let last = self.host.processes.last_mut();
                if let Some(process) = last.filter(|process| !process.is_asleep) {
                    let is_taken = process.groups[usize::from(group)].cut(kind, 0);
                    self.cuts_left += u64::from(is_taken);
                }
                self.after_engines();
            }
            Happening::EngineStarts { old_lives } if self.standby.is_some() => {
                self.fail_candidate(old_lives);
            }
            Happening::EngineStarts { old_lives } => {
                let last = self.host.processes.last();
                let totals = last.map_or_else(no_totals, |last| {
                    last.totals.iter().map(Totals::restarted).collect()
                });
                if !old_lives && let Some(old) = self.host.processes.pop() {
                    self.maybe += old.open;
                }
                self.start_engine(totals)?;
            }
            Happening::SwitchStarts => self.restart_switch()?,
            Happening::Heal => {
                self.net.heal();
                if let Some(standby) = &mut self.standby {
                    standby.heal();
                }
            }
            Happening::Standby(step) => self.standby_step(step)?,
        }
        Ok(())
    }

    fn start_engine(&mut self, totals: Vec<Totals>) -> Result<(), SimError> {
        let kept: Vec<_> = (0..GROUPS as u16).map(|at| self.judge.kept(at)).collect();
        let term = u64::from(self.starts) + 1;
        self.begin_process(0, term, |group| kept[usize::from(group)].clone(), totals)
    }

    /// An engine process begins under a term; `kept` are the last windows of a group.
    pub(crate) fn begin_process(
        &mut self,
        candidate: usize,
        term: u64,
        kept: impl Fn(u16) -> Vec<(u32, u32)>,
        totals: Vec<Totals>,
    ) -> Result<(), SimError> {
        let local = self.net.local(ENGINES);
        let nonce = self.net.random.between(1, u32::MAX.into()) as u32;
        let process = Process::start(self.starts, term, self.scenario, local, nonce, kept, totals)?;
        self.starts += 1;
        self.host.processes.push(Process {
            candidate,
            ..process
        });
        self.after_engines();
        Ok(())
    }

    fn restart_switch(&mut self) -> Result<(), SimError> {
        let now = self.net.now();
        let clock = Clock::draw(&mut self.net.random, now, 10_000);
        self.net.die(SWITCH);
        self.net.restart(SWITCH, clock);
        self.incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
        for group in 0..GROUPS {
            self.counted[group] = self.counted(group as u16).unwrap_or_default();
        }
        self.device = (self.make)(self.incarnation)?;
        self.began = now;
        self.bytes = [0; GROUPS];
        self.after_switch();
        Ok(())
    }

    fn group(&self, group: u16) -> &'static Group {
        &self.scenario.program.groups()[usize::from(group)]
    }

    /// The values of the registers of a group.
    fn registers(&self, group: u16) -> Vec<u64> {
        let scenario = self.scenario;
        registers(&*self.device, scenario.program, group, scenario.locations)
    }

    /// Counts of a group's locations over all starts of the switch, if the program keeps them.
    fn counted(&self, group: u16) -> Option<Vec<u64>> {
        let register = self.group(group).counted?;
        let before = self.counted[usize::from(group)].iter().enumerate();
        let counted = before.map(|(at, before)| before + self.device.word(register, at as u64));
        Some(counted.collect())
    }

    /// Registers of a group that no message of a fenced engine, or for another start, may change.
    fn guarded(&self, group: u16) -> [u64; 7] {
        let at = u64::from(group);
        let last = u64::from(self.scenario.locations - 1);
        [
            value(&*self.device, self.group(group), last),
            self.device.word("sync_acked", at),
            self.device.word("sync_epoch", at),
            self.device.word("sync_starter", at),
            self.device.word("sync_kept", at),
            self.device.word("sync_staging", at),
            self.device.word("sync_staging_count", at),
        ]
    }

    fn deliver(&mut self, port: u16, frame: &[u8]) {
        let local = self.net.local(SWITCH);
        let message = (port == CONTROL_PORT).then(|| datagram(frame)).flatten();
        let message = message.and_then(|(_, bytes)| Packet::new_checked(bytes).ok());
        let message = message.map(|packet| Repr::parse(&packet));
        let message = message.filter(|message| usize::from(message.group) < GROUPS);
        let Some(message) = message else {
            self.device.handle_frame(local, port, frame);
            self.after_switch();
            return;
        };
        let (group, at) = (message.group, u64::from(message.group));
        let before = self.registers(group);
        let guarded = self.guarded(group);
        let fenced = message.term < self.device.word("sync_term", at);
        let other =
            message.incarnation != self.incarnation && message.message_type != MessageType::Start;
        self.device.handle_frame(local, port, frame);
        if (fenced || other) && self.guarded(group) != guarded {
            let (now, kind) = (self.net.now(), message.message_type);
            let why = if fenced {
                "a lower term"
            } else {
                "another start"
            };
            self.judge.object(
                "fencing",
                format!("{now} µs: {kind:?} of {why} changed group {group}"),
            );
        }
        let epoch = self.device.word("sync_epoch", at);
        let has_cut = epoch != guarded[2];
        let is_staged = self.device.word("sync_kind", at) == CutKind::Staged as u64;
        if has_cut && is_staged {
            let after = self.registers(group);
            if !self.staged.is_one(message.term, group, &before, &after) {
                let now = self.net.now();
                self.judge.object(
                    "staged",
                    format!(
                        "{now} µs: cut {epoch} of group {group} is no whole write, or one again"
                    ),
                );
            }
            self.judge.unwanted((self.incarnation, group, epoch));
            self.judge.cut((self.incarnation, group, epoch), before);
        } else if has_cut {
            self.judge.cut((self.incarnation, group, epoch), before);
            match self.cuts_left.checked_sub(1) {
                Some(left) => self.cuts_left = left,
                None => {
                    let now = self.net.now();
                    self.judge.object(
                        "cut",
                        format!("{now} µs: cut {epoch} of group {group} was not asked for"),
                    );
                }
            }
        } else if message.message_type == MessageType::Stage && self.registers(group) != before {
            let now = self.net.now();
            let what =
                format!("{now} µs: what is staged for group {group} is there before its cut");
            self.judge.object("staged", what);
        }
        self.after_switch();
    }

    fn after_switch(&mut self) {
        let now = self.net.now();
        let sent = self.net.poll(SWITCH, &mut SwitchCore(&mut *self.device));
        for (port, frame) in sent {
            if port != CONTROL_PORT {
                continue;
            }
            self.observe(now, &frame);
            let from = NodePort::new(SWITCH, port);
            if let Some(to) = self.net.peer(from) {
                self.net.send(from, to, &frame);
            }
        }
        for group in 0..GROUPS as u64 {
            let head = self.device.word("sync_head", group);
            let acked = self.device.word("sync_acked", group);
            if head.saturating_sub(acked) > self.scenario.window.into() {
                self.judge.object(
                    "window",
                    format!("{now} µs: group {group} sent up to {head}, the engine has {acked}"),
                );
            }
        }
    }

    /// A frame leaves the switch.
    fn observe(&mut self, now: u64, frame: &[u8]) {
        let message = datagram(frame).and_then(|(_, bytes)| Packet::new_checked(bytes).ok());
        let Some(message) = message.map(|packet| Repr::parse(&packet)) else {
            self.judge
                .object("message", format!("{now} µs: the switch sent no message"));
            return;
        };
        match message.message_type {
            MessageType::Update => {
                let group = message.group;
                let values = self.registers(group);
                let counted = self.counted(group);
                let place = (self.incarnation, group, message.stamp);
                self.judge.mark(place, now, values, counted);
                self.coverage.marks += 1;
                let longest = FRAMING + 170 + 12 * u64::from(BATCH);
                let sent = &mut self.bytes[usize::from(group)];
                *sent += FRAMING + frame.len() as u64;
                // The switch's clock may be fast by a hundredth.
                let time = (now - self.began + 1) * 102 / 100;
                let allowed = (time << 16) / u64::from(self.scenario.byte_time) + longest;
                if *sent > allowed {
                    let sent = *sent;
                    self.judge.object(
                        "budget",
                        format!("{now} µs: {sent} bytes of group {group}, {allowed} are allowed"),
                    );
                }
            }
            MessageType::Refused => self.coverage.refused += 1,
            MessageType::Repaired => self.coverage.repaired += 1,
            _ => {}
        }
    }

    pub(crate) fn after_engines(&mut self) {
        let now = self.net.now();
        for at in 0..self.host.processes.len() {
            if self.host.processes[at].is_asleep {
                continue;
            }
            for group in 0..GROUPS {
                while let Some(event) = self.host.processes[at].groups[group].poll_event() {
                    self.take(now, at, group, event);
                }
            }
        }
        let sent = self.net.poll(ENGINES, &mut self.host);
        self.judge_acts();
        for frame in sent {
            let from = NodePort::new(ENGINES, 0);
            if let Some(to) = self.net.peer(from) {
                self.net.send(from, to, &frame);
            }
        }
    }

    fn take(&mut self, now: u64, process: usize, group: usize, event: Event) {
        match event {
            Event::Generation { .. } => self.coverage.generations += 1,
            Event::Written { ticket, outcome } => {
                let port = self.host.processes[process].port;
                if let Some(is_made) = self.staged.end(port, group as u16, ticket) {
                    if outcome.is_some() && !is_made {
                        self.judge.object(
                            "staged",
                            format!(
                                "{now} µs: a write of group {group} that was not made has ended"
                            ),
                        );
                    }
                    self.coverage.staged += u64::from(outcome.is_some());
                    self.coverage.unknown += u64::from(outcome.is_none());
                    return;
                }
                let of = &mut self.host.processes[process];
                of.open = of.open.saturating_sub(1);
                match outcome {
                    Some(Outcome::Done) => {
                        self.coverage.written += 1;
                        of.done += 1;
                        self.done += 1;
                        let last = self.scenario.locations as usize - 1;
                        let (seen, done) = (of.groups[group].values()[last], of.done);
                        if self.keeps_writes() && seen < done {
                            self.judge.object(
                                "own writes",
                                format!("{now} µs: {done} writes were done, {seen} are seen"),
                            );
                        }
                    }
                    _ => {
                        self.coverage.unknown += 1;
                        self.maybe += 1;
                    }
                }
            }
            Event::Window {
                incarnation,
                epoch,
                values,
            } => {
                if self.standby.is_some() {
                    let window = Window {
                        group: group as u16,
                        incarnation,
                        epoch,
                        values,
                    };
                    return self.keep(process, window);
                }
                let place = (incarnation, group as u16, epoch.into());
                self.coverage.windows += u64::from(self.judge.window(now, place, &values));
                self.host.processes[process].groups[group].window_kept(incarnation, epoch);
            }
            Event::Waived { incarnation, epoch } => {
                self.judge.waive((incarnation, group as u16, epoch.into()));
            }
            Event::Complete { .. } | Event::Cut { .. } | Event::Fenced { .. } => {}
        }
    }

    /// True if neither a cut nor a start takes away what was written.
    fn keeps_writes(&self) -> bool {
        self.scenario.cuts == 0 && self.scenario.switch_starts == 0
    }

    fn judge_views(&mut self) {
        let now = self.net.now();
        let local = self.net.local(ENGINES);
        let keeps = now >= self.keep_due;
        if keeps {
            self.keep_due = now + KEEP_US;
        }
        let processes = self.host.processes.iter_mut();
        for process in processes.filter(|it| !it.is_asleep) {
            let groups = process.groups.iter().zip(&mut process.totals);
            for (group, (engine, totals)) in groups.enumerate() {
                if let Some(told) = engine.told(local) {
                    self.coverage.told += 1;
                    match told.bound {
                        Some(bound) => {
                            self.coverage.greatest = self.coverage.greatest.max(bound);
                        }
                        None => self.coverage.unbounded += 1,
                    }
                    let of = &self.scenario.program.groups()[group];
                    let group = (group as u16, of);
                    self.judge.told(now, group, &told, engine.values());
                    let counted = self.judge.counted(group.0, &told);
                    if let (Some(continued), Some(counted)) = (engine.continued(), counted) {
                        let judged = totals.judge(&told, continued, counted);
                        self.coverage.continued += judged.exact;
                        self.coverage.discontinuities += judged.discontinuities;
                        if let Some(wrong) = judged.wrong {
                            let what = format!("{now} µs, group {}: {wrong}", group.0);
                            self.judge.object("continued", what);
                        }
                    }
                    if let Some(kept) = engine.keep_totals().filter(|_| keeps) {
                        totals.keep(kept);
                    }
                }
            }
        }
    }

    /// Traffic has stopped and the link is whole: the view is exact.
    fn finish(&mut self) {
        let local = self.net.local(ENGINES);
        let mut wrong = Vec::new();
        if self.host.processes.is_empty() {
            wrong.push("no engine leads".to_owned());
        }
        if let Some(process) = self.host.processes.last() {
            let open = self.staged.open(process.port);
            if open > 0 {
                wrong.push(format!("{open} staged writes did not end"));
            }
            for (group, engine) in process.groups.iter().enumerate() {
                let held = self.registers(group as u16);
                let told = engine.told(local);
                let exact = told.is_some_and(|told| {
                    (told.bound, told.all_but, told.incarnation) == (Some(0), 0, self.incarnation)
                });
                if !exact {
                    wrong.push(format!("of group {group} is told {told:?}"));
                }
                let differs = held.iter().zip(engine.values()).position(|(a, b)| a != b);
                if let Some(at) = differs {
                    wrong.push(format!("location {at} of group {group} differs"));
                }
                let epoch = self.device.word("sync_epoch", group as u64);
                let place = (self.incarnation, group as u16, epoch);
                if epoch > 0 && !self.judge.is_over(place) {
                    wrong.push(format!("window {place:?} was not delivered"));
                }
            }
        }
        for what in wrong {
            self.judge.object("rest", format!("at the end, {what}"));
        }
        if self.keeps_writes() {
            let last = u64::from(self.scenario.locations - 1);
            let value = value(&*self.device, self.group(0), last);
            let open: u64 = self.host.processes.iter().map(|one| one.open).sum();
            let most = self.done + self.maybe + open;
            if value < self.done || value > most {
                self.judge.object(
                    "once",
                    format!(
                        "{} writes were done, at most {most}; found {value}",
                        self.done
                    ),
                );
            }
        }
    }
}
