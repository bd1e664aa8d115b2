//! A switch whose registers are collected, in virtual time: packets at one end, at the other a link of
//! a given rate and delay, with a queue, to the engines of its groups.

use super::bed::ENGINE;
use super::link;
use super::packets::Packet;
use super::viewed::{HOSTS, Viewed, refused};
use super::way::{Setup, Way};
use crate::error::EvalError;
use rustc_hash::FxHashMap;
use stateplane_native::Native;
use stateplane_runtime::{Engine as _, TargetState};
use stateplane_switch::Switch;
use stateplane_sync::{Engine, Event, Settings, Ticket, Told};
use stateplane_sync_setup::CONTROL_PORT;
use stateplane_wire::sync::{CutKind, MessageType, Operation, Outcome};
use stateplane_wire::{ethernet, ipv4, sync};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// µs between two polls of an engine.
const POLL_US: u64 = 100;

/// Marks of a group of which is kept how many packets the switch had.
const MARKS: usize = 8_192;

/// µs in which the views must be complete.
const PATIENCE_US: u64 = 60_000_000;

/// A cut that took effect at the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) group: usize,
    pub(super) epoch: u32,
    /// µs, and packets that the switch had had.
    pub(super) at: u64,
    pub(super) packets: u64,
}

/// A window that an engine has whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) group: usize,
    /// Number of the cut that ended it.
    pub(super) epoch: u32,
    pub(super) values: Vec<u64>,
    /// µs at which it was whole.
    pub(super) at: u64,
}

/// Events that engines told, in their order.
#[derive(Default)]
pub(super) struct Heard {
    /// Group and µs of cuts that are known to be made.
    pub(super) made: Vec<(usize, u64)>,
    pub(super) windows: Vec<Window>,
    /// Writes that ended, with their outcome, and µs.
    pub(super) written: Vec<(Ticket, Option<Outcome>, u64)>,
}

/// The switch, its engines, and the link.
pub(super) struct Collected {
    name: String,
    switch: Switch<Native>,
    engines: Vec<Engine>,
    /// Of each group the place of its register; those of the numbers of cuts, and of the locations that
    /// have not crossed the last one.
    places: Vec<Option<usize>>,
    epochs_at: usize,
    unsettled_at: usize,
    epochs: Vec<u32>,
    up: Way,
    down: Way,
    step_us: u64,
    frame: Vec<u8>,
    /// Packets that the switch had had at the marks of each group.
    marks: Vec<VecDeque<(u64, u64)>>,
    pub(super) now: u64,
    /// Packets that the switch has had.
    pub(super) packets: u64,
    /// Packets that left by ports of hosts, by source and destination.
    pub(super) passed: FxHashMap<(Ipv4Addr, Ipv4Addr), u64>,
    /// Cuts in the order in which they took effect.
    pub(super) cuts: Vec<Cut>,
    pub(super) heard: Heard,
}

impl Collected {
    /// A switch of the program, with views that are complete.
    ///
    /// # Errors
    /// `EV003` if the program does not suit.
    pub(super) fn new(viewed: &Viewed, setup: Setup) -> Result<Self, EvalError> {
        let switch = viewed.switch(setup.rate, setup.turn_us, setup.window_us)?;
        let now = 1_000_000;
        let engines = viewed.plan.groups.iter().map(|group| {
            let settings = Settings {
                group: group.group,
                locations: group.locations,
                batch: viewed.batch,
                poll_us: POLL_US,
                retry_us: setup.answered_us() + 2 * POLL_US,
                term: 1,
                nonce: 9,
            };
            Engine::new(settings, now, [])
        });
        let engines: Result<Vec<Engine>, _> = engines.collect();
        let registers = switch.engine().state().registers();
        let place = |name: &str| {
            let found = registers.iter().position(|it| it.name() == name);
            found.ok_or_else(|| refused(viewed.name(), "it has no cuts"))
        };
        let mut collected = Self {
            name: viewed.name().to_owned(),
            places: viewed.places(&switch),
            epochs_at: place("sync_epoch")?,
            unsettled_at: place("sync_unsettled")?,
            epochs: vec![0; viewed.groups()],
            engines: engines.map_err(|error| refused(viewed.name(), error))?,
            up: Way::new(setup),
            down: Way::new(setup),
            step_us: setup.step_us,
            frame: Vec::new(),
            marks: vec![VecDeque::new(); viewed.groups()],
            now,
            packets: 0,
            passed: FxHashMap::default(),
            cuts: Vec::new(),
            heard: Heard::default(),
            switch,
        };
        while !collected.is_complete() {
            collected.pass();
            if collected.now > now + PATIENCE_US {
                return Err(refused(viewed.name(), "its views are not complete in time"));
            }
        }
        Ok(collected)
    }

    /// True if all locations have crossed the last cut, so that another one is possible.
    pub(super) fn is_settled(&self) -> bool {
        let register = &self.switch.engine().state().registers()[self.unsettled_at];
        (0..self.engines.len() as u64).all(|group| register.word(group) == Some(0))
    }

    fn is_complete(&self) -> bool {
        (0..self.engines.len()).all(|group| self.told(group).is_some())
    }

    /// The state of the switch, for its control plane.
    pub(super) fn state(&mut self) -> &mut TargetState {
        self.switch.engine_mut().state_mut()
    }

    /// Times that a frame was recirculated in the switch.
    pub(super) fn recirculated(&self) -> u64 {
        self.switch.counters().recirculated
    }

    /// Frames that the link did not take, in both directions.
    pub(super) fn lost(&self) -> u64 {
        self.up.lost + self.down.lost
    }

    /// A packet comes to the switch.
    pub(super) fn packet(&mut self, packet: &Packet) {
        packet.frame(&mut self.frame);
        self.switch.handle_frame(self.now, HOSTS[0], &self.frame);
        self.packets += 1;
        self.drain();
    }

    /// A frame comes to the switch by a port of hosts.
    pub(super) fn frame(&mut self, frame: &[u8]) {
        self.switch.handle_frame(self.now, HOSTS[0], frame);
        self.packets += 1;
        self.drain();
    }

    /// Lets a step pass.
    pub(super) fn pass(&mut self) {
        self.now += self.step_us;
        while let Some(frame) = self.down.take(self.now) {
            self.switch.handle_frame(self.now, CONTROL_PORT, &frame);
            self.drain();
        }
        self.note_cuts();
        self.switch.handle_timeout(self.now);
        self.drain();
        while let Some(frame) = self.up.take(self.now) {
            self.deliver(&frame);
            self.switch.recycle(frame);
        }
        for engine in &mut self.engines {
            engine.handle_timeout(self.now);
            engine.proceed(self.now);
            while let Some(payload) = engine.poll_transmit() {
                if let Some(frame) = link::wrap(ENGINE, &payload) {
                    self.down.send(self.now, frame);
                }
            }
        }
    }

    /// Lets steps pass, in each of which `before` may do something, until `ends`.
    ///
    /// # Errors
    /// `EV003` if that is not within `most_us`, as `what` says; errors of `before`.
    pub(super) fn until(
        &mut self,
        what: &str,
        most_us: u64,
        mut before: impl FnMut(&mut Self) -> Result<(), EvalError>,
        ends: impl Fn(&Self) -> bool,
    ) -> Result<(), EvalError> {
        let begin = self.now;
        while !ends(self) {
            if self.now > begin + most_us {
                return Err(refused(&self.name, format!("{what} did not end")));
            }
            before(self)?;
            self.pass();
        }
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(sent) = self.switch.poll_transmit() {
            if sent.port == CONTROL_PORT {
                self.mark(&sent.frame);
                self.up.send(self.now, sent.frame);
            } else {
                if let Some(pair) = addresses(&sent.frame) {
                    *self.passed.entry(pair).or_insert(0) += 1;
                }
                self.switch.recycle(sent.frame);
            }
        }
    }

    /// Remembers how many packets the switch had had when it sent a mark.
    fn mark(&mut self, frame: &[u8]) {
        let message = link::unwrap(frame).and_then(|(_, it)| sync::Packet::new_checked(it).ok());
        let Some(message) = message.filter(|it| it.message_type() == MessageType::Update) else {
            return;
        };
        if let Some(marks) = self.marks.get_mut(usize::from(message.group())) {
            if marks.len() == MARKS {
                marks.pop_front();
            }
            marks.push_back((message.stamp(), self.packets));
        }
    }

    /// Notes cuts that took effect since the last step.
    fn note_cuts(&mut self) {
        let register = &self.switch.engine().state().registers()[self.epochs_at];
        for (group, known) in self.epochs.iter_mut().enumerate() {
            let epoch = register.word(group as u64).unwrap_or(0) as u32;
            if epoch != *known {
                *known = epoch;
                self.cuts.push(Cut {
                    group,
                    epoch,
                    at: self.now,
                    packets: self.packets,
                });
            }
        }
    }

    fn deliver(&mut self, frame: &[u8]) {
        let Some((_, payload)) = link::unwrap(frame) else {
            return;
        };
        let Ok(message) = sync::Packet::new_checked(payload) else {
            return;
        };
        let group = usize::from(message.group());
        let Some(engine) = self.engines.get_mut(group) else {
            return;
        };
        engine.handle_datagram(self.now, payload);
        while let Some(event) = engine.poll_event() {
            match event {
                Event::Cut { .. } => self.heard.made.push((group, self.now)),
                Event::Written { ticket, outcome } => {
                    self.heard.written.push((ticket, outcome, self.now));
                }
                Event::Window {
                    incarnation,
                    epoch,
                    values,
                } => {
                    engine.window_kept(incarnation, epoch);
                    self.heard.windows.push(Window {
                        group,
                        epoch,
                        values,
                        at: self.now,
                    });
                }
                Event::Generation { .. }
                | Event::Complete { .. }
                | Event::Waived { .. }
                | Event::Fenced { .. } => {}
            }
        }
    }

    /// Asks for a cut of a group; false if one waits already.
    pub(super) fn cut(&mut self, group: usize, kind: CutKind, fill: u64) -> bool {
        self.engines[group].cut(kind, fill)
    }

    /// Asks for a cut that fills a group, without its window; false if one waits already.
    pub(super) fn reset(&mut self, group: usize, fill: u64) -> bool {
        self.engines[group].reset(fill)
    }

    /// Asks for a mark of a group; [`Told::poll`] has the number or a greater one when it came.
    pub(super) fn refresh(&mut self, group: usize) -> u64 {
        let now = self.now;
        self.engines[group].refresh(now)
    }

    /// Writes values of a group, as many as there are, between two packets.
    ///
    /// # Errors
    /// `EV003` if the write is not taken.
    pub(super) fn write(
        &mut self,
        group: usize,
        values: &[(u32, u64)],
    ) -> Result<Ticket, EvalError> {
        let engine = &mut self.engines[group];
        let batch = engine.settings().batch as usize;
        let taken = if values.len() > batch {
            engine.write_staged(values)
        } else {
            engine.write(Operation::Set, values, 0)
        };
        taken.map_err(|error| refused(&self.name, error))
    }

    /// The view of a group, and the promise about it; `None` while it is incomplete.
    pub(super) fn told(&self, group: usize) -> Option<Told> {
        self.engines[group].told(self.now)
    }

    /// Values of the view of a group.
    pub(super) fn view(&self, group: usize) -> &[u64] {
        self.engines[group].values()
    }

    /// Packets that the switch had had at a mark of a group; `None` of one that is too old.
    pub(super) fn packets_at(&self, group: usize, stamp: u64) -> Option<u64> {
        let marks = &self.marks[group];
        let at = marks.partition_point(|(of, _)| *of < stamp);
        let (found, packets) = marks.get(at)?;
        (*found == stamp).then_some(*packets)
    }

    /// Value that the data plane holds at a location of a group that is one register, whether or not the
    /// location has crossed the last cut.
    pub(super) fn held(&self, group: usize, location: u32) -> u64 {
        let registers = self.switch.engine().state().registers();
        let register = self.places[group].and_then(|place| registers.get(place));
        let word = register.and_then(|it| it.word(location.into()));
        word.unwrap_or(0) as u64
    }
}

/// Source and destination of a frame of IPv4.
fn addresses(frame: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    let datagram = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    Some((datagram.source(), datagram.destination()))
}

#[cfg(test)]
mod tests;
