//! A switch, its engine and traffic in this process.

mod link;
mod pace;
mod program;
mod traffic;

pub use traffic::{FLOWS, Traffic};

use crate::error::TopError;
use crate::look::{Finding, GroupLook, Look, Promise, Source, Title};
use crate::row::{SHARE, of_found};
use link::Link;
use pace::Pace;
use stateplane_native::Native;
use stateplane_runtime::Engine as _;
use stateplane_sketch::{Distinct, Key, Reading, Shape, Sketch, SketchError, detect};
use stateplane_switch::Switch;
use stateplane_sync::{Engine, Settings as EngineSettings, Told};
use stateplane_sync_setup::CONTROL_PORT;
use stateplane_synchronise::Group;
use stateplane_wire::sync::{MessageType, Packet as Message};
use std::time::Duration;

/// µs of a step: packets, then what is due.
const STEP_US: u64 = 25;

/// Steps in which a mark comes, unless it is lost.
const MARK: u32 = 400;

/// Settings of a switch in this process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Packets a second, at most 10 millions.
    pub rate: u32,
    /// Budget of each register group, in Mb/s, at least 1.
    pub budget_mbps: u32,
    /// Datagrams of a thousand that the link between switch and engine loses.
    pub loss_permille: u32,
    /// Determines which ones.
    pub seed: u64,
    /// Threshold of heavy hitters, and of partners; unless set a 200th of what was counted.
    pub threshold: Option<u64>,
    /// True if the switch's clock keeps to real time; else it runs as fast as it can.
    pub is_paced: bool,
}

/// A register group with its engine.
struct Followed {
    group: Group,
    engine: Engine,
    /// True if the engine has a mark behind the last packet, so that what the registers hold is
    /// what they held at the mark.
    is_marked: bool,
}

/// A switch that counts the packets of traffic in Count-Min sketches, with an engine for each, in
/// virtual time.
pub struct Local {
    switch: Switch<Native>,
    followed: Vec<Followed>,
    link: Link,
    traffic: Traffic,
    settings: Settings,
    pace: Option<Pace>,
    now: u64,
    /// Packets that are due, with the part of the next.
    due: f64,
}

impl Local {
    /// A switch that has seen no packet.
    ///
    /// # Errors
    ///
    /// [`TopError::Program`] if the program does not run on this machine.
    pub fn new(settings: Settings, traffic: Traffic) -> Result<Local, TopError> {
        let (switch, plan) = program::switch(settings.budget_mbps)?;
        let now = 1;
        let follow = |group: Group| -> Result<Followed, TopError> {
            let settings = EngineSettings {
                group: group.group,
                locations: group.locations,
                batch: plan.batch,
                poll_us: 1_000,
                retry_us: 5_000,
                term: 1,
                nonce: 1,
            };
            let engine = Engine::new(settings, now, []);
            Ok(Followed {
                group,
                engine: engine.map_err(|error| TopError::Program(error.to_string()))?,
                is_marked: false,
            })
        };
        let followed: Result<Vec<Followed>, TopError> =
            plan.groups.into_iter().map(follow).collect();
        Ok(Local {
            switch,
            followed: followed?,
            link: Link::new(settings.loss_permille, settings.seed),
            traffic,
            settings,
            pace: settings.is_paced.then(|| Pace::new(now)),
            now,
            due: 0.0,
        })
    }

    /// Lets [`STEP_US`] pass.
    fn step(&mut self) {
        self.due += f64::from(self.settings.rate) * STEP_US as f64 / 1e6;
        while self.due >= 1.0 {
            self.due -= 1.0;
            self.switch.handle_frame(self.now, 0, self.traffic.packet());
            self.deliver();
            for followed in &mut self.followed {
                followed.is_marked = false;
            }
        }
        // Behind the packets, so that marks are too.
        self.now += STEP_US;
        self.switch.handle_timeout(self.now);
        self.deliver();
        for at in 0..self.followed.len() {
            self.ask(at);
        }
    }

    /// Messages of the switch come to the engines, but those that are lost.
    fn deliver(&mut self) {
        while let Some(sent) = self.switch.poll_transmit() {
            if sent.port == CONTROL_PORT
                && self.link.carries()
                && let Some(bytes) = link::unwrapped(&sent.frame)
                && let Ok(message) = Message::new_checked(bytes)
            {
                let group = message.group();
                let mut followed = self.followed.iter_mut();
                if let Some(followed) = followed.find(|it| it.group.group == group) {
                    followed.engine.handle_datagram(self.now, bytes);
                    followed.is_marked |= message.message_type() == MessageType::Update;
                    while followed.engine.poll_event().is_some() {}
                }
            }
            self.switch.recycle(sent.frame);
        }
    }

    /// Requests of an engine come to the switch, but those that are lost.
    fn ask(&mut self, at: usize) {
        self.followed[at].engine.handle_timeout(self.now);
        while let Some(request) = self.followed[at].engine.poll_transmit() {
            if self.link.carries()
                && let Some(frame) = link::wrapped(&request)
            {
                self.switch.handle_frame(self.now, CONTROL_PORT, &frame);
                self.deliver();
            }
        }
    }

    /// Looks at a group, behind a mark if one comes in time.
    fn look_at(&mut self, at: usize) -> Result<GroupLook, SketchError> {
        for _ in 0..MARK {
            if self.followed[at].is_marked {
                break;
            }
            self.step();
        }
        let followed = &self.followed[at];
        let told = followed.engine.told(self.now);
        let ring = followed.engine.ring();
        let group = &followed.group;
        let mut look = GroupLook {
            name: group.name.clone(),
            locations: group.locations,
            told: told.map(|told| promise(&told)),
            unsent: ring.and_then(|ring| ring.unsent),
            queued: ring.map_or(0, |ring| ring.queued),
            places: Some(group.ring),
            sent: ring.map_or(0, |ring| ring.sent),
            lost: ring.map_or(0, |ring| ring.lost),
            missing: ring.map_or(0, |ring| ring.missing),
            ..GroupLook::default()
        };
        if let Some(told) = told {
            look.off = self.off(followed);
            self.find(&mut look, reading(followed, &told), followed.is_marked)?;
        }
        Ok(look)
    }

    /// Distance of the location that is farthest from its register; `None` if the registers may
    /// have gone on since the mark.
    fn off(&self, followed: &Followed) -> Option<u64> {
        let name = &followed.group.registers.first()?.register;
        let register = self.switch.engine().state().register(name).ok()?;
        let held = (0..).map(|at| register.word(at).unwrap_or(0) as u64);
        let seen = followed.engine.values().iter().zip(held);
        let off = seen.map(|(seen, held)| seen.abs_diff(held)).max();
        off.filter(|_| followed.is_marked)
    }

    /// Heavy hitters, super-spreaders or victims, as the register counts.
    fn find(&self, look: &mut GroupLook, of: Reading, is_marked: bool) -> Result<(), SketchError> {
        let counted = of.values.last().copied().unwrap_or(0);
        let threshold = self.settings.threshold.unwrap_or(counted / SHARE);
        look.threshold = Some(threshold);
        let traffic = &self.traffic;
        let sketch = |function: u32, bits: u32| {
            let shape = Shape::count_min(program::SEED, function, 3, bits);
            Sketch::new(shape, vec![of])
        };
        let distinct = |counts: Sketch| Distinct::new(counts, program::FILTER_BITS);
        let found = match look.name.as_str() {
            "destinations" => {
                look.finding = Finding::SuperSpreaders;
                let counts = distinct(sketch(6, program::PARTNER_BITS)?)?;
                detect::super_spreaders(&counts, traffic.senders(), threshold)
            }
            "sources" => {
                look.finding = Finding::Victims;
                let counts = distinct(sketch(9, program::PARTNER_BITS)?)?;
                detect::victims(&counts, traffic.receivers(), threshold)
            }
            _ => {
                look.finding = Finding::HeavyHitters;
                let counts = sketch(0, program::COLUMN_BITS)?;
                detect::heavy_hitters(&counts, traffic.flows(), threshold)
            }
        };
        let finding = look.finding;
        let count = |key: Key| match finding {
            Finding::SuperSpreaders => traffic.destinations(key),
            Finding::Victims => traffic.sources(key),
            _ => traffic.packets_of(key),
        };
        look.rows = of_found(&found, |key| is_marked.then(|| count(key)));
        Ok(())
    }
}

fn promise(told: &Told) -> Promise {
    Promise {
        bound: told.bound,
        all_but: told.all_but,
        within: told.within,
        age_us: told.age_us,
        generation: told.generation,
    }
}

fn reading(followed: &Followed, told: &Told) -> Reading {
    Reading {
        values: followed.engine.values().to_vec(),
        bound: told.bound,
        all_but: told.all_but,
        within: told.within,
        age_us: told.age_us,
        generation: told.generation,
        epoch: told.epoch,
    }
}

impl Source for Local {
    fn title(&self) -> Title {
        let Settings {
            budget_mbps: budget,
            loss_permille: loss,
            ..
        } = self.settings;
        let place = match loss {
            0 => format!("a switch in this process · {budget} Mb/s"),
            _ => {
                let percent = f64::from(loss) / 10.0;
                format!("a switch in this process · {budget} Mb/s, {percent} % lost")
            }
        };
        Title {
            program: "count-min".to_owned(),
            place,
            traffic: self.traffic.description().to_owned(),
        }
    }

    fn next(&mut self, interval: Duration) -> Result<Look, TopError> {
        let interval = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX >> 1);
        let end = self.now + interval.max(1);
        while self.now < end {
            self.step();
            if let Some(pace) = &mut self.pace {
                pace.keep(self.now);
            }
        }
        let groups = 0..self.followed.len();
        let groups: Result<Vec<GroupLook>, SketchError> =
            groups.map(|at| self.look_at(at)).collect();
        Ok(Look {
            at_us: self.now,
            packets: Some(self.traffic.packets()),
            speed: self.pace.as_mut().map(|pace| pace.speed(self.now)),
            trouble: None,
            groups: groups.map_err(|error| TopError::Program(error.to_string()))?,
        })
    }
}

#[cfg(test)]
mod tests;
