//! A switch that counts, in virtual time: traffic at one end, at the other a link of a given rate
//! to the control plane, whose view is compared with the registers.

use super::link;
use super::programs::{BATCH, Counters, Shape, System};
use super::traffic::{Packet, Traffic};
use crate::error::EvalError;
use stateplane_native::{Compiled, Native};
use stateplane_runtime::{Engine as _, Value};
use stateplane_switch::Switch;
use stateplane_sync::{Engine, Settings, Told};
use stateplane_sync_setup::{CONTROL_PORT, Rates};
use stateplane_wire::{ethernet, sync};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Time of a step in µs, which is also that between two turns of a carrier.
pub(super) const STEP_US: u64 = 4;

/// Window w of sync, and of ApproSync's rate control.
const WINDOW_US: u64 = 250;
const CONTROL_US: u64 = 1_000;

/// Bytes around a frame on the wire, and of the shortest frame without its check sequence.
pub(super) const FRAMING: usize = 24;
pub(super) const SHORTEST: usize = 60;

/// Bytes on the wire of a push of one update, or of a packet's three, and, of a message of sync,
/// for a value.
pub(super) const PUSH_BYTES: f64 = (FRAMING + SHORTEST) as f64;
const PUSH_OF_THREE: f64 = (FRAMING + 66) as f64;
const VALUE_BYTES: f64 = (194.0 + 12.0 * BATCH as f64) / BATCH as f64;

/// Bytes that wait for the link; what comes then is lost.
pub(super) const BUFFER: f64 = 128.0 * 1024.0;

/// Address of the engine.
pub(super) const ENGINE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 255, 0, 2), 40_000);

/// Type of ApproSync's frames, and of messages in them (p4/approsync/frames.p4).
const ETHERTYPE_STATE: u16 = 0xffff;
const STATE_PUSH: u8 = 1;
const STATE_EXPIRE: u8 = 5;

/// A link that takes so many bytes each µs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    rate: f64,
    waiting: f64,
    at: u64,
}

impl Link {
    /// One that is idle, of `rate` bytes each µs.
    pub(super) fn new(rate: f64, now: u64) -> Self {
        Self {
            rate,
            waiting: 0.0,
            at: now,
        }
    }

    /// True if a frame of so many bytes gets in.
    pub(super) fn takes(&mut self, now: u64, bytes: usize) -> bool {
        self.waiting = (self.waiting - self.rate * (now - self.at) as f64).max(0.0);
        self.at = now;
        let bytes = (bytes.max(SHORTEST) + FRAMING) as f64;
        let room = self.waiting + bytes <= BUFFER;
        if room {
            self.waiting += bytes;
        }
        room
    }
}

/// How ApproSync's threshold is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Control {
    /// It stays.
    Fixed(u64),
    /// By Algorithm 2, with an update of so many bytes.
    Adaptive(f64),
}

/// The control plane's half.
enum Side {
    Sync(Box<Engine>),
    /// Values as they came.
    Pushed {
        view: Vec<u64>,
        control: Control,
    },
}

/// Updates that were sent and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Packets that came.
    pub(super) packets: u64,
    /// Updates that the switch sent.
    pub(super) sent: u64,
    /// Updates that the link did not take.
    pub(super) lost: u64,
    /// Bytes that the switch sent, framing included.
    pub(super) bytes: u64,
}

/// How far a view is from the registers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Divergence {
    /// Of the location that is farthest.
    pub(super) most: u64,
    /// Sum over all locations, in shares of the sum of what they hold.
    pub(super) relative: f64,
    /// Locations that differ.
    pub(super) wrong: u64,
}

/// Settings of a bed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) shape: Shape,
    /// Sources of packets.
    pub(super) sources: u32,
    /// Bytes each µs that the link to the control plane takes.
    pub(super) rate: f64,
    /// ApproSync's threshold, and that of sync if it is fixed.
    pub(super) control: Control,
    pub(super) seed: u64,
}

/// A switch, its traffic, its link and its control plane.
pub(super) struct Bed {
    switch: Switch<Native>,
    side: Side,
    link: Link,
    traffic: Traffic,
    locations: u32,
    /// Packets that are due, with the part of the next.
    due: f64,
    values: usize,
    /// Last count of updates, and when the threshold is set next.
    counted: u64,
    control_at: u64,
    frame: Vec<u8>,
    pub(super) now: u64,
    pub(super) counts: Counts,
    /// The switch sent an UPDATE in the last step, after the last packet.
    is_marked: bool,
}

fn lacks(what: System, reason: impl std::fmt::Display) -> EvalError {
    EvalError::Refused {
        what: what.name().to_owned(),
        reason: reason.to_string(),
    }
}

/// Locations and values of a push.
pub(super) fn pushed(frame: &[u8]) -> impl Iterator<Item = (u32, u64)> {
    let body = frame.get(14..).unwrap_or_default();
    let is_push = body.first() == Some(&STATE_PUSH);
    let count = match body.get(2..4) {
        Some([high, low]) if is_push => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    let updates = body.get(16..).unwrap_or_default();
    let (updates, _) = updates.as_chunks::<12>();
    updates.iter().take(count).map(|update| {
        let [a, b, c, d, value @ ..] = *update;
        (u32::from_be_bytes([a, b, c, d]), u64::from_be_bytes(value))
    })
}

impl Bed {
    /// A bed whose view is complete.
    ///
    /// # Errors
    /// `EV003` if the program does not suit.
    pub(super) fn new(setting: Setting, compiled: &Compiled) -> Result<Self, EvalError> {
        let Setting {
            shape,
            sources,
            rate,
            control,
            seed,
        } = setting;
        let locations = shape.counters.locations();
        let (finest, coarsest) = match control {
            Control::Fixed(threshold) => (threshold, threshold),
            Control::Adaptive(_) => (0, Rates::default().coarsest),
        };
        let byte_time = (65_536.0 / rate).round() as u32;
        let rates = Rates {
            byte_time,
            slowest_byte_time: byte_time.saturating_mul(8),
            window_us: WINDOW_US,
            finest,
            coarsest,
        };
        let switch = shape.switch(compiled, STEP_US, rates)?;
        let mut registers = switch.engine().state().registers().iter();
        let values = registers.position(|register| register.name().ends_with("values"));
        let values = values.ok_or_else(|| lacks(shape.system, "it has no `values`"))?;
        let now = 1_000_000;
        let side = match shape.system {
            System::Sync => {
                let settings = Settings {
                    group: 0,
                    locations,
                    batch: BATCH,
                    poll_us: 100,
                    retry_us: 1_000,
                    term: 1,
                    nonce: 9,
                };
                let engine = Engine::new(settings, now, []);
                Side::Sync(Box::new(engine.map_err(|it| lacks(shape.system, it))?))
            }
            _ => Side::Pushed {
                view: vec![0; locations as usize],
                control,
            },
        };
        let mut frame = vec![0; SHORTEST];
        frame[12..14].copy_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
        frame[14] = 0x45;
        let mut bed = Self {
            switch,
            side,
            link: Link::new(rate, now),
            traffic: Traffic::new(sources, seed),
            locations,
            due: 0.0,
            values,
            counted: 0,
            control_at: now + CONTROL_US,
            frame,
            now,
            counts: Counts::default(),
            is_marked: false,
        };
        if let (System::Printed, Control::Fixed(threshold)) = (shape.system, control) {
            bed.set_threshold(threshold)?;
        }
        let mut steps = 0;
        while matches!(&bed.side, Side::Sync(engine) if engine.told(bed.now).is_none()) {
            bed.step(0.0)?;
            steps += 1;
            if steps > 10_000_000 / STEP_US {
                return Err(lacks(shape.system, "the view is not complete in 10 s"));
            }
        }
        bed.counts = Counts::default();
        Ok(bed)
    }

    fn set_threshold(&mut self, threshold: u64) -> Result<(), EvalError> {
        let state = self.switch.engine_mut().state_mut();
        let register = state.register_mut("threshold");
        let written = register.and_then(|it| it.write(0, &Value::from(threshold)));
        written.map_err(|error| lacks(System::Printed, error))
    }

    /// Lets [`STEP_US`] pass with `packets` each µs.
    pub(super) fn step(&mut self, packets: f64) -> Result<(), EvalError> {
        self.due += packets * STEP_US as f64;
        while self.due >= 1.0 {
            self.due -= 1.0;
            let Packet { location, length } = self.traffic.packet();
            self.frame[16..18].copy_from_slice(&length.to_be_bytes());
            self.frame[26..30].copy_from_slice(&location.to_be_bytes());
            self.switch.handle_frame(self.now, 0, &self.frame);
            self.counts.packets += 1;
            self.drain();
        }
        self.now += STEP_US;
        self.is_marked = false;
        self.switch.handle_timeout(self.now);
        self.drain();
        self.follow();
        if self.now >= self.control_at {
            self.control_at += CONTROL_US;
            self.control()?;
        }
        Ok(())
    }

    /// Lets `ms` pass with `packets` each µs.
    pub(super) fn pass(&mut self, ms: u64, packets: f64) -> Result<(), EvalError> {
        for _ in 0..ms * 1000 / STEP_US {
            self.step(packets)?;
        }
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(sent) = self.switch.poll_transmit() {
            if sent.port == CONTROL_PORT {
                self.deliver(&sent.frame);
            }
            self.switch.recycle(sent.frame);
        }
    }

    /// A frame comes to the link, and unless it is lost to the control plane.
    fn deliver(&mut self, frame: &[u8]) {
        let takes = self.link.takes(self.now, frame.len());
        self.counts.bytes += (frame.len().max(SHORTEST) + FRAMING) as u64;
        match &mut self.side {
            Side::Sync(engine) => {
                let Some((_, payload)) = link::unwrap(frame) else {
                    return;
                };
                let count = sync::Packet::new_checked(payload).map_or(0, |it| it.count() as u64);
                self.counts.sent += count;
                if takes {
                    engine.handle_datagram(self.now, payload);
                    self.is_marked = true;
                } else {
                    self.counts.lost += count;
                }
            }
            Side::Pushed { view, .. } => {
                for (location, value) in pushed(frame) {
                    self.counts.sent += 1;
                    if !takes {
                        self.counts.lost += 1;
                    } else if let Some(place) = view.get_mut(location as usize) {
                        *place = value;
                    }
                }
            }
        }
    }

    /// Lets the engine ask.
    fn follow(&mut self) {
        let mut asked = Vec::new();
        if let Side::Sync(engine) = &mut self.side {
            engine.handle_timeout(self.now);
            engine.proceed(self.now);
            while let Some(payload) = engine.poll_transmit() {
                asked.extend(link::wrap(ENGINE, &payload));
            }
            while engine.poll_event().is_some() {}
        }
        for frame in asked {
            self.switch.handle_frame(self.now, CONTROL_PORT, &frame);
            self.drain();
        }
    }

    /// The switch's operating system: sets the threshold (Algorithm 2), and has entries sent that
    /// were not sent for two windows (ApproSync's IV-C).
    fn control(&mut self) -> Result<(), EvalError> {
        let Side::Pushed { control, .. } = &self.side else {
            return Ok(());
        };
        let control = *control;
        let state = self.switch.engine().state();
        let Ok(updates) = state.register("updates") else {
            return Ok(());
        };
        let updates = updates.word(0).unwrap_or(0) as u64;
        let delta = updates - self.counted;
        self.counted = updates;
        if let Control::Adaptive(bytes) = control {
            let most = self.link.rate * CONTROL_US as f64 / bytes;
            let threshold = if delta as f64 <= most {
                0
            } else {
                (delta as f64 / most).ceil() as u64
            };
            self.set_threshold(threshold)?;
        }
        for frame in self.expired()? {
            self.switch.handle_frame(self.now, 0, &frame);
            self.drain();
        }
        Ok(())
    }

    /// Frames that ask for entries that are too old.
    fn expired(&self) -> Result<Vec<Vec<u8>>, EvalError> {
        let state = self.switch.engine().state();
        let register = |name: &str| {
            state
                .register(name)
                .map_err(|error| lacks(System::Printed, error))
        };
        let (value, old) = (register("table_value")?, register("table_old")?);
        let (location, time) = (register("table_location")?, register("table_time")?);
        let word = |of: &stateplane_runtime::Register, at| of.word(at).unwrap_or(0) as u64;
        let mut frames = Vec::new();
        for at in 0..location.size() {
            let is_held = word(location, at) != 0 && word(value, at) != word(old, at);
            if is_held && self.now >= word(time, at) + 2 * CONTROL_US {
                let mut frame = vec![0; 14 + 16];
                frame[12..14].copy_from_slice(&ETHERTYPE_STATE.to_be_bytes());
                frame[14] = STATE_EXPIRE;
                frame[16..18].copy_from_slice(&1_u16.to_be_bytes());
                frame.extend_from_slice(&(at as u32).to_be_bytes());
                frame.extend_from_slice(&[0; 8]);
                frame.resize(SHORTEST, 0);
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    /// Value that the data plane holds at a location.
    fn held(&self, location: u32) -> u64 {
        let registers = self.switch.engine().state().registers();
        let held = registers[self.values].word(location.into());
        held.unwrap_or(0) as u64
    }

    /// Value that the control plane has.
    fn view(&self) -> &[u64] {
        match &self.side {
            Side::Sync(engine) => engine.values(),
            Side::Pushed { view, .. } => view,
        }
    }

    /// Bytes of registers and of machine code.
    pub(super) fn resources(&mut self) -> (usize, usize) {
        let code = self.switch.engine().code_bytes();
        let state = self.switch.engine_mut().state_mut();
        // All registers lie in one memory.
        let registers = state.register_mut("values").map_or(0, |it| it.memory().1);
        (registers, code)
    }

    /// The view beside the registers.
    pub(super) fn divergence(&self) -> Divergence {
        let (mut all, mut off) = (0_u64, 0_u64);
        let mut divergence = Divergence::default();
        for (at, seen) in (0..self.locations).zip(self.view()) {
            let held = self.held(at);
            let distance = held.abs_diff(*seen);
            divergence.most = divergence.most.max(distance);
            divergence.wrong += u64::from(distance != 0);
            all += held;
            off += distance;
        }
        divergence.relative = off as f64 / (all.max(1)) as f64;
        divergence
    }

    /// Promise about the view, if it is of the present moment: a mark was made since the last
    /// packet.
    pub(super) fn told(&self) -> Option<Told> {
        match &self.side {
            Side::Sync(engine) if self.is_marked => engine.told(self.now),
            _ => None,
        }
    }

    /// The greatest divergence that ApproSync says there is: its threshold (Lemma 1).
    pub(super) fn pushes_told(&self) -> Option<u64> {
        let is_pushed = matches!(self.side, Side::Pushed { .. });
        let has_threshold = self.switch.engine().state().register("threshold").is_ok();
        (is_pushed && has_threshold).then(|| self.threshold())
    }

    /// The present threshold.
    pub(super) fn threshold(&self) -> u64 {
        let state = self.switch.engine().state();
        let name = match self.side {
            Side::Sync(_) => "sync_threshold",
            Side::Pushed { .. } => "threshold",
        };
        let register = state.register(name).ok();
        let word = register.and_then(|it| it.word(0));
        word.unwrap_or(0) as u64
    }
}

/// Bytes on the wire by which a system sends the updates of a packet, if it sends them all.
pub(super) const fn packet_bytes(shape: Shape) -> f64 {
    match (shape.system, shape.counters) {
        (System::Sync, counters) => VALUE_BYTES * counters.updates(),
        (_, Counters::Sources(_)) => PUSH_BYTES,
        (_, Counters::Sketch(_)) => PUSH_OF_THREE,
    }
}
