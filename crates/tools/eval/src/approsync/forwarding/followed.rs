//! A switch in memory whose clock is the time for which it works; the engines that follow its groups
//! take none.

#![allow(clippy::disallowed_methods, reason = "the switch's work is timed")]

use super::{Case, NAME};
use crate::approsync::link;
use crate::approsync::programs::SWITCH;
use crate::approsync::viewed::{refused, switch};
use crate::error::EvalError;
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::{
    DROP_PORT, EgressInput, Engine as _, Forwarded, IngressInput, InstanceType, Preserved,
    TargetState,
};
use stateplane_switch::Switch;
use stateplane_sync::{Engine, Event, Settings, Ticket, WriteError};
use stateplane_sync_setup::{CONTROL_PORT, Sync, TURN_US};
use stateplane_synchronise::Plan;
use stateplane_wire::sync::Operation;
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Frames that a switch takes at once.
const BURST: usize = 32;

/// Most that a burst counts, and a message: what takes longer was not the switch's work.
const LONGEST: Duration = Duration::from_micros(200);

/// Time in which the views of a program are to be complete, on a processor that others use too.
const PATIENCE: Duration = Duration::from_secs(120);

/// Addresses of the engines: the port of each is this one and its group.
const ENGINES: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 255, 0, 2), 40_000);

fn wrong(reason: impl std::fmt::Display) -> EvalError {
    refused(NAME, reason)
}

/// An engine of the program alone: no switch around it.
pub(super) struct Alone {
    engine: Native,
    out: Vec<u8>,
}

impl Alone {
    /// A program as it is loaded; `name` is for messages.
    ///
    /// # Errors
    /// `EV003` if it cannot be.
    pub(super) fn new(name: &str, compiled: &Compiled) -> Result<Self, EvalError> {
        let engine = compiled.engine(Options::default());
        Ok(Self {
            engine: engine.map_err(|error| refused(name, error))?,
            out: Vec::new(),
        })
    }

    /// Its tables and registers.
    pub(super) fn state(&mut self) -> &mut TargetState {
        self.engine.state_mut()
    }

    /// Time in which frames pass ingress and egress.
    pub(super) fn pass(&mut self, frames: &[Vec<u8>]) -> Duration {
        let start = Instant::now();
        for frame in frames {
            black_box(self.frame(frame));
        }
        start.elapsed()
    }

    fn frame(&mut self, frame: &[u8]) -> Option<u16> {
        let input = IngressInput {
            frame,
            port: 0,
            instance_type: InstanceType::Normal,
            preserved: &Preserved::default(),
            now: 1_000_000,
        };
        let outcome = match self.engine.forward(&input, &mut self.out) {
            Forwarded::Sent(port) => return Some(port),
            Forwarded::Done { port, outcome } => return (!outcome.dropped).then_some(port),
            Forwarded::Dropped => return None,
            Forwarded::Waits(outcome) => outcome,
        };
        let port = outcome.egress_spec;
        if port >= DROP_PORT {
            return None;
        }
        let input = EgressInput {
            port,
            rid: 0,
            instance_type: InstanceType::Normal,
            enqueued_at: 1_000_000,
            enqueue_depth: 0,
            dequeue_depth: 0,
            now: 1_000_000,
        };
        let outcome = self.engine.egress(outcome.packet, &input, &mut self.out);
        (!outcome.dropped).then_some(port)
    }
}

/// A switch and what it takes for packets.
pub(super) struct Followed {
    switch: Switch<Native>,
    engines: Vec<Engine>,
    case: Case,
    batch: u32,
    spent: Duration,
    /// When the engines follow next: they have processors of their own, so that the switch keeps its caches
    /// meanwhile.
    follow_at: u64,
    /// First location of the next write.
    location: u32,
    /// The staged write that is under way.
    staged: Option<Ticket>,
    /// ns of single packets, if they are wanted.
    packets: Option<Vec<f64>>,
    said: Vec<Vec<u8>>,
}

impl Followed {
    /// A switch of the program `compiled`, which has the groups of `plan`. Its views are complete, if
    /// the case has any.
    ///
    /// # Errors
    /// `EV003` if the program does not suit, or its views are not complete in two minutes.
    pub(super) fn new(compiled: &Compiled, plan: &Plan, case: Case) -> Result<Self, EvalError> {
        let mut switch = switch(NAME, compiled)?;
        let mut followed = Vec::new();
        if case != Case::None {
            let sync = Sync {
                switch: 1,
                address: SWITCH,
                turn_us: Some(TURN_US),
                rates: Vec::new(),
                read_only: false,
            };
            let applied = sync.apply(&mut switch, 7, case.has_view());
            applied.map_err(wrong)?;
            for group in &plan.groups {
                let settings = settings(group.group, group.locations, plan.batch, 1);
                followed.push(Engine::new(settings, 0, []).map_err(wrong)?);
            }
        }
        let mut made = Self {
            switch,
            engines: followed,
            case,
            batch: plan.batch,
            spent: Duration::from_secs(1),
            follow_at: 0,
            location: 0,
            staged: None,
            packets: None,
            said: Vec::new(),
        };
        if case.has_view() {
            made.rest_until("no complete views", |it| {
                let now = it.now();
                it.engines.iter().all(|engine| engine.told(now).is_some())
            })?;
        }
        Ok(made)
    }

    fn now(&self) -> u64 {
        self.spent.as_micros() as u64
    }

    /// Lets time pass without packets until something is so.
    fn rest_until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), EvalError> {
        let start = Instant::now();
        while !is_so(self) {
            if start.elapsed() > PATIENCE {
                return Err(wrong(format!("{what} in {PATIENCE:?}")));
            }
            self.burst(&[]);
            self.spent += Duration::from_micros(TURN_US);
        }
        Ok(())
    }

    /// Lets packets pass: the switch's time.
    pub(super) fn pass(&mut self, frames: &[Vec<u8>]) -> Duration {
        let before = self.spent;
        for burst in frames.chunks(BURST) {
            self.burst(burst);
        }
        self.spent - before
    }

    /// As [`Followed::pass`]: the time in ns of each packet by itself.
    pub(super) fn packets(&mut self, frames: &[Vec<u8>]) -> Vec<f64> {
        self.packets = Some(Vec::with_capacity(frames.len()));
        self.pass(frames);
        self.packets.take().unwrap_or_default()
    }

    /// Waits, without packets, until all locations of the first group have crossed the last cut.
    fn settle(&mut self) -> Result<(), EvalError> {
        self.rest_until("no whole sweep", |it| {
            let register = it.switch.engine().state().register("sync_unsettled");
            register.is_ok_and(|it| it.word(0) == Some(0))
        })
    }

    /// Asks for the first `count` values of the first group to be written, at once.
    ///
    /// # Errors
    /// `EV003` if the engine refuses.
    pub(super) fn write(&mut self, count: u32) -> Result<(), EvalError> {
        let values: Vec<(u32, u64)> = (0..count).map(|at| (at, u64::from(at))).collect();
        let engine = self.engines.first_mut();
        let engine = engine.ok_or_else(|| wrong("it has no view"))?;
        self.staged = Some(engine.write_staged(&values).map_err(wrong)?);
        Ok(())
    }

    /// True while the write that was asked for last is not in the view.
    pub(super) fn is_writing(&self) -> bool {
        self.staged.is_some()
    }

    /// Waits, without packets, until the last write is in the view and all locations have crossed it.
    ///
    /// # Errors
    /// `EV003` if that is not so in two minutes.
    pub(super) fn end_write(&mut self) -> Result<(), EvalError> {
        self.rest_until("no end of a write", |it| it.staged.is_none())?;
        self.settle()
    }

    /// Takes frames at once, does what is due, and each turn lets the engines follow.
    fn burst(&mut self, burst: &[Vec<u8>]) {
        let now = self.now();
        let start = Instant::now();
        for frame in burst {
            let before = self.packets.is_some().then(Instant::now);
            self.switch.handle_frame(now, 0, frame);
            self.drain();
            if let (Some(before), Some(packets)) = (before, &mut self.packets) {
                packets.push(before.elapsed().as_nanos() as f64);
            }
        }
        self.switch.handle_timeout(now);
        self.drain();
        self.spent += start.elapsed().min(LONGEST);
        if self.now() >= self.follow_at {
            self.follow_at = self.now() + TURN_US;
            self.follow();
        }
    }

    /// Takes what the switch sends: frames to the engines wait for them.
    fn drain(&mut self) {
        while let Some(sent) = self.switch.poll_transmit() {
            if sent.port == CONTROL_PORT {
                self.said.push(sent.frame);
            } else {
                self.switch.recycle(sent.frame);
            }
        }
    }

    /// Lets the engines hear and ask; the switch's answers are its work.
    fn follow(&mut self) {
        let now = self.now();
        self.hear(now);
        if self.case.has_writes() {
            self.write_some(now);
        }
        let mut asked = Vec::new();
        for (engine, group) in self.engines.iter_mut().zip(0..) {
            engine.handle_timeout(now);
            engine.proceed(now);
            let from = SocketAddrV4::new(*ENGINES.ip(), ENGINES.port() + group);
            while let Some(payload) = engine.poll_transmit() {
                asked.extend(link::wrap(from, &payload));
            }
            while let Some(event) = engine.poll_event() {
                if matches!(event, Event::Written { ticket, .. } if Some(ticket) == self.staged) {
                    self.staged = None;
                }
            }
        }
        if asked.is_empty() {
            return;
        }
        let start = Instant::now();
        for frame in &asked {
            self.switch.handle_frame(now, CONTROL_PORT, frame);
            self.drain();
        }
        self.spent += start.elapsed().min(LONGEST * asked.len() as u32);
        self.hear(now);
    }

    fn hear(&mut self, now: u64) {
        for frame in std::mem::take(&mut self.said) {
            if let Some((to, payload)) = link::unwrap(&frame) {
                let group = usize::from(to.port().wrapping_sub(ENGINES.port()));
                if let Some(engine) = self.engines.get_mut(group) {
                    engine.handle_datagram(now, payload);
                }
            }
            self.switch.recycle(frame);
        }
    }

    /// Writes as many locations of the first group as a message takes. A view that does not go on is
    /// begun anew when too many writes wait for it.
    fn write_some(&mut self, now: u64) {
        let Some(engine) = self.engines.first_mut() else {
            return;
        };
        let Settings {
            group,
            locations,
            term,
            ..
        } = *engine.settings();
        let place = |at: u32| (at % locations, u64::from(at));
        let values: Vec<(u32, u64)> = (self.location..)
            .take(self.batch as usize)
            .map(place)
            .collect();
        let written = engine.write(Operation::Set, &values, 0);
        if matches!(written, Err(WriteError::Full(_))) && !self.case.has_view() {
            let settings = settings(group, locations, self.batch, term + 1);
            if let Ok(next) = Engine::new(settings, now, []) {
                *engine = next;
            }
        }
        self.location = (self.location + self.batch) % locations;
    }
}

fn settings(group: u16, locations: u32, batch: u32, term: u64) -> Settings {
    Settings {
        group,
        locations,
        batch,
        poll_us: 1_000,
        retry_us: 5_000,
        term,
        nonce: 7,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Programs;
    use super::*;

    fn word(followed: &Followed, name: &str) -> u128 {
        let register = followed.switch.engine().state().register(name).unwrap();
        register.word(0).unwrap()
    }

    #[test]
    fn writes_go_on_with_and_without_a_view() {
        let programs = Programs::new(true).unwrap();
        for case in [Case::Write, Case::Both] {
            let mut followed = programs.followed(case).unwrap();
            let mut passes = 0;
            // Without a view an engine has room for 1,024 writes, and another with a higher term follows.
            let last_term = if case == Case::Write { 2 } else { 1 };
            while word(&followed, "sync_term") < last_term
                || word(&followed, "sync_write_number") < 9
            {
                followed.pass(&programs.frames);
                passes += 1;
                assert!(passes < 2_000, "{case:?}");
            }
            let now = followed.now();
            let told = followed.engines[0].told(now);
            assert_eq!(told.is_some(), case == Case::Both);
        }
    }

    #[test]
    fn a_program_in_view_forwards_all_packets_as_the_plain_one_does() {
        let programs = Programs::new(true).unwrap();
        for compiled in [&programs.plain, &programs.seen] {
            let mut alone = Alone::new(NAME, compiled).unwrap();
            assert!(programs.frames.iter().all(|it| alone.frame(it) == Some(1)));
            assert_eq!(
                alone.out[..],
                programs.frames[programs.frames.len() - 1][..]
            );
        }
    }
}
