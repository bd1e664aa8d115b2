//! A switch and its engine, joined in virtual time by paths that lose.

use crate::approsync::bed::ENGINE;
use crate::approsync::link;
use crate::approsync::programs::{Counted, Counters, Shape, System};
use crate::approsync::traffic::Traffic;
use crate::approsync::viewed::refused;
use crate::approsync::way::{Setup, Way};
use crate::error::EvalError;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_native::{Compiled, Native};
use stateplane_runtime::Engine as _;
use stateplane_switch::Switch;
use stateplane_sync::{Engine, Event, Settings};
use stateplane_sync_setup::{CONTROL_PORT, Rates};
use stateplane_wire::ethernet;
use stateplane_wire::sync::{MessageType, Outcome, Packet};
use std::collections::BTreeSet;

/// The paths: 40 Gb/s and 5 µs in each direction; a carrier each 4 µs.
const SETUP: Setup = Setup {
    rate: 5_000.0,
    delay_us: DELAY_US,
    turn_us: 4,
    window_us: 250,
    step_us: 1,
};
pub(super) const DELAY_US: u64 = 5;

/// µs after which the engine asks again, and between two of its polls: more than a round trip.
const RETRY_US: u64 = 100;

/// Packets each µs.
const TRAFFIC: f64 = 1.0;

/// Longest time in µs until something is to happen.
const LONGEST_US: u64 = 100_000_000;

/// Shape of the program that counts packets at `locations`.
pub(super) const fn shape(locations: u32) -> Shape {
    Shape {
        system: System::Sync,
        counted: Counted::Packets,
        counters: Counters::Sources(locations),
        entries: 1,
    }
}

/// Outcome of a write or a reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// µs until packets met the new values.
    pub(super) effect_us: u64,
    /// µs until the view had them.
    pub(super) seen_us: u64,
    /// Messages with values, and requests of cuts, that the engine sent, and how many of them again.
    pub(super) messages: u64,
    pub(super) again: u64,
    /// Locations that hold something else than was written and counted behind it.
    pub(super) wrong: u64,
}

/// A switch that counts packets, its engine, and the paths between them.
pub(super) struct Joined {
    switch: Switch<Native>,
    engine: Engine,
    to_switch: Way,
    to_engine: Way,
    loss: f64,
    random: SmallRng,
    traffic: Traffic,
    due: f64,
    frame: Vec<u8>,
    /// Place of the register `values`.
    values: usize,
    /// Packets by location, and at the last cut.
    counts: Vec<u64>,
    at_cut: Vec<u64>,
    /// Cuts, and when the first of the present operation was made.
    epoch: u64,
    cut_at: Option<u64>,
    /// Parts of the present operation that were sent: their types and positions.
    parts: BTreeSet<(u8, u64)>,
    done: Done,
    now: u64,
}

fn lacks(reason: impl std::fmt::Display) -> EvalError {
    refused("sync", reason)
}

impl Joined {
    /// A bed whose view is complete. A message of the engine has `batch` values; from now on a share
    /// `loss` of the frames is lost in each direction.
    ///
    /// # Errors
    /// `EV003` if the program does not suit.
    pub(super) fn new(
        compiled: &Compiled,
        locations: u32,
        batch: u32,
        loss: f64,
        seed: u64,
    ) -> Result<Self, EvalError> {
        let byte_time = (65_536.0 / SETUP.rate).round() as u32;
        let rates = Rates {
            byte_time,
            slowest_byte_time: byte_time * 8,
            window_us: SETUP.window_us,
            ..Rates::default()
        };
        let switch = shape(locations).switch(compiled, SETUP.turn_us, rates)?;
        let mut registers = switch.engine().state().registers().iter();
        let values = registers.position(|register| register.name().ends_with("values"));
        let settings = Settings {
            group: 0,
            locations,
            batch,
            poll_us: RETRY_US,
            retry_us: RETRY_US,
            term: 1,
            nonce: 9,
        };
        let now = 1_000_000;
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
        frame[14] = 0x45;
        let mut joined = Self {
            values: values.ok_or_else(|| lacks("it has no `values`"))?,
            switch,
            engine: Engine::new(settings, now, []).map_err(lacks)?,
            to_switch: Way::new(SETUP),
            to_engine: Way::new(SETUP),
            loss: 0.0,
            random: SmallRng::seed_from_u64(seed),
            traffic: Traffic::new(locations, seed),
            due: 0.0,
            frame,
            counts: vec![0; locations as usize],
            at_cut: vec![0; locations as usize],
            epoch: 0,
            cut_at: None,
            parts: BTreeSet::new(),
            done: Done::default(),
            now,
        };
        joined.pass_until("complete view", |it| it.engine.told(it.now).is_some())?;
        joined.loss = loss;
        Ok(joined)
    }

    /// Lets time pass until something is so.
    fn pass_until(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), EvalError> {
        let end = self.now + LONGEST_US;
        while !is_so(self) {
            self.step();
            if self.now > end {
                return Err(lacks(format!("no {what} in {} s", LONGEST_US / 1_000_000)));
            }
        }
        Ok(())
    }

    /// Lets a µs pass.
    fn step(&mut self) {
        self.due += TRAFFIC;
        while self.due >= 1.0 {
            self.due -= 1.0;
            let location = self.traffic.packet().location;
            self.frame[26..30].copy_from_slice(&location.to_be_bytes());
            self.switch.handle_frame(self.now, 0, &self.frame);
            self.counts[location as usize] += 1;
            self.answer();
        }
        self.now += 1;
        self.switch.handle_timeout(self.now);
        self.answer();
        while let Some(frame) = self.to_switch.take(self.now) {
            self.switch.handle_frame(self.now, CONTROL_PORT, &frame);
            self.look();
            self.answer();
        }
        while let Some(frame) = self.to_engine.take(self.now) {
            if let Some((_, payload)) = link::unwrap(&frame) {
                self.engine.handle_datagram(self.now, payload);
            }
        }
        self.engine.handle_timeout(self.now);
        self.engine.proceed(self.now);
        self.ask();
    }

    fn is_lost(&mut self) -> bool {
        self.random.random::<f64>() < self.loss
    }

    /// Puts what the switch says on its way.
    fn answer(&mut self) {
        while let Some(sent) = self.switch.poll_transmit() {
            if sent.port == CONTROL_PORT && !self.is_lost() {
                self.to_engine.send(self.now, sent.frame);
            } else {
                self.switch.recycle(sent.frame);
            }
        }
    }

    /// Puts what the engine says on its way, and counts it.
    fn ask(&mut self) {
        while let Some(payload) = self.engine.poll_transmit() {
            if let Ok(packet) = Packet::new_checked(&payload)
                && matches!(packet.message_type(), MessageType::Stage | MessageType::Cut)
            {
                let part = (packet.message_type() as u8, packet.position());
                self.done.messages += 1;
                self.done.again += u64::from(!self.parts.insert(part));
            }
            if !self.is_lost()
                && let Some(frame) = link::wrap(ENGINE, &payload)
            {
                self.to_switch.send(self.now, frame);
            }
        }
    }

    fn word(&self, register: &str) -> u64 {
        let register = self.switch.engine().state().register(register).ok();
        register.and_then(|it| it.word(0)).unwrap_or(0) as u64
    }

    /// Notes a cut that the last message made: it is between two packets.
    fn look(&mut self) {
        let epoch = self.word("sync_epoch");
        if epoch != self.epoch {
            self.epoch = epoch;
            self.cut_at.get_or_insert(self.now);
            self.at_cut.copy_from_slice(&self.counts);
        }
    }

    fn begin(&mut self) -> u64 {
        self.cut_at = None;
        self.parts.clear();
        self.done = Done::default();
        self.now
    }

    /// Has a value written to each location, at once; one whose outcome the engine does not know is
    /// written again.
    ///
    /// # Errors
    /// `EV003` if the engine refuses, or does not end in 100 s.
    pub(super) fn write(&mut self, values: &[u64]) -> Result<Done, EvalError> {
        let began = self.begin();
        let pairs: Vec<(u32, u64)> = (0..).zip(values.iter().copied()).collect();
        let mut ticket = self.engine.write_staged(&pairs).map_err(lacks)?;
        loop {
            let mut ended = None;
            self.pass_until("end of a write", |it| {
                while let Some(event) = it.engine.poll_event() {
                    if let Event::Written {
                        ticket: of,
                        outcome,
                    } = event
                        && of == ticket
                    {
                        ended = Some(outcome);
                    }
                }
                ended.is_some()
            })?;
            if ended == Some(Some(Outcome::Done)) {
                break;
            }
            ticket = self.engine.write_staged(&pairs).map_err(lacks)?;
        }
        self.end(began, |location| values[location])
    }

    /// Has all locations filled, at once.
    ///
    /// # Errors
    /// `EV003` if the engine does not end in 100 s.
    pub(super) fn reset(&mut self, fill: u64) -> Result<Done, EvalError> {
        // The answer to the last cut may be on its way.
        self.pass_until("room for a cut", |it| it.engine.reset(fill))?;
        let began = self.begin();
        let before = self.epoch;
        self.pass_until("end of a reset", |it| {
            while it.engine.poll_event().is_some() {}
            let told = it.engine.told(it.now);
            told.is_some_and(|told| u64::from(told.epoch) > before)
        })?;
        self.end(began, |_| fill)
    }

    /// Ends an operation: waits until all locations have crossed its cut and the switch knows that nobody
    /// waits for its window, so that the next cut may come, and compares them.
    fn end(&mut self, began: u64, written: impl Fn(usize) -> u64) -> Result<Done, EvalError> {
        let seen_at = self.now;
        self.pass_until("end of a sweep", |it| {
            it.word("sync_unsettled") == 0 && it.word("sync_kept") == it.epoch
        })?;
        let cut_at = self.cut_at.ok_or_else(|| lacks("no cut was made"))?;
        let held = &self.switch.engine().state().registers()[self.values];
        let counted = self.counts.iter().zip(&self.at_cut);
        let wrong = counted.enumerate().filter(|(at, (now, then))| {
            let due = written(*at).wrapping_add(*now - *then);
            held.word(*at as u64) != Some(u128::from(due))
        });
        Ok(Done {
            effect_us: cut_at - began,
            seen_us: seen_at - began,
            wrong: wrong.count() as u64,
            ..self.done
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_runtime::Value;

    #[test]
    fn a_write_is_whole_and_what_is_wrong_is_noticed() {
        let compiled = shape(256).compile().unwrap();
        let mut joined = Joined::new(&compiled, 256, 10, 0.3, 1).unwrap();
        let values: Vec<u64> = (1..=256).map(|at| at * 1_000_000).collect();
        let done = joined.write(&values).unwrap();
        assert_eq!(done.wrong, 0);
        assert!(done.messages >= 27 && done.again > 0, "{done:?}");
        assert!(
            DELAY_US < done.effect_us && done.effect_us < done.seen_us,
            "{done:?}"
        );
        let of_values = joined.switch.engine().state().registers()[joined.values]
            .name()
            .to_owned();
        let state = joined.switch.engine_mut().state_mut();
        let register = state.register_mut(&of_values).unwrap();
        register.write(7, &Value::from(3_u64)).unwrap();
        let found = joined.end(0, |at| values[at]).unwrap();
        assert_eq!(found.wrong, 1);
    }
}
