//! A switch with an instrumented program, its engines, and the link between them.

#![allow(dead_code, reason = "each test uses a part")]

use core::net::Ipv4Addr;
use stateplane_compile::text;
use stateplane_native::Native;
use stateplane_sketch::Reading;
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync::{Engine, Event, Settings};
use stateplane_sync_setup::{CONTROL_PORT, Rates, Sync, TURN_US};
use stateplane_synchronise::{Plan, Selection, synchronise};
use stateplane_wire::sync::{CutKind, MessageType, Packet as Message};
use stateplane_wire::{ethernet, ipv4, sync, udp};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::Packet;

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

/// Bytes in front of a message in a frame: Ethernet, IPv4, UDP.
const FRONT: usize = 42;

/// The link between switch and engines.
#[derive(Clone, Copy)]
pub struct Link {
    /// Every so manieth message of the switch is lost; none with 0.
    pub loses_one_in: u64,
    /// Budget of each group: 2⁻¹⁶ µs for a byte.
    pub byte_time: u32,
}

/// The switch and an engine for each group, in virtual time.
pub struct World {
    pub switch: Switch<Native>,
    pub engines: Vec<Engine>,
    pub now: u64,
    /// Windows of all groups, in the order in which they came.
    pub windows: Vec<Reading>,
    /// Frames that left by the port of hosts.
    pub left: Vec<Vec<u8>>,
    link: Link,
    sent: u64,
    /// Packets that the switch had when it made the mark, by group and stamp.
    marks: BTreeMap<(u16, u64), usize>,
    packets: usize,
}

/// The program at `path`, instrumented.
fn instrumented(path: &str, macros: &[(&str, &str)]) -> (stateplane_ir::Program, Plan) {
    let macros = macros
        .iter()
        .map(|(name, body)| ((*name).to_owned(), (*body).to_owned()));
    let macros: Vec<(String, String)> = macros.collect();
    // As a user's file: those that come with Stateplane are included, not rewritten.
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../..")
        .join(path);
    let source = text(fs::read_to_string(file).expect("a program")).defines(macros.clone());
    let (loader, options) = (source.loader(), source.options());
    let made = synchronise(loader, source.main_file(), options, Selection::Annotated);
    let complaints = format!("{:?}", made.diagnostics);
    let (program, plan) = made
        .program
        .unwrap_or_else(|| panic!("{path}: {complaints}"));
    let compiled = text(program).defines(macros).program();
    (compiled.unwrap_or_else(|refused| panic!("{refused}")), plan)
}

fn frame(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, segment: &[u8]) -> Vec<u8> {
    let packet = ipv4::Repr::new(from, to, protocol, segment);
    let mut frame = vec![2; 12];
    frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(packet.to_vec().expect("a packet"));
    frame
}

impl World {
    pub fn new(path: &str, macros: &[(&str, &str)], link: Link) -> World {
        let (program, plan) = instrumented(path, macros);
        let engine = Native::new(program, Default::default()).expect("it runs");
        let config = SwitchConfig {
            ports: vec![0, CONTROL_PORT],
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, config).expect("a switch");
        let rates = Rates {
            byte_time: link.byte_time,
            slowest_byte_time: link.byte_time.saturating_mul(4),
            ..Rates::default()
        };
        let sync = Sync {
            switch: 7,
            address: SWITCH,
            turn_us: Some(TURN_US),
            rates: plan
                .groups
                .iter()
                .map(|group| (group.group, rates))
                .collect(),
            read_only: false,
        };
        sync.apply(&mut switch, 99, true).expect("it fits");
        let engines = plan.groups.iter().map(|group| {
            let settings = Settings {
                group: group.group,
                locations: group.locations,
                batch: plan.batch,
                poll_us: 500,
                retry_us: 2_000,
                term: 1,
                nonce: 7,
            };
            Engine::new(settings, 1, []).expect("settings")
        });
        let mut world = World {
            engines: engines.collect(),
            switch,
            now: 1,
            windows: Vec::new(),
            left: Vec::new(),
            link,
            sent: 0,
            marks: BTreeMap::new(),
            packets: 0,
        };
        // Until all views are complete, so that every packet is seen by them.
        for _ in 0..2_000 {
            if (0..world.engines.len()).all(|group| world.is_complete(group)) {
                break;
            }
            world.run(1_000);
        }
        world
    }

    /// A packet comes to the switch.
    pub fn packet(&mut self, packet: &Packet) {
        let mut segment = packet.ip()[20..].to_vec();
        if packet.protocol == 6 {
            segment.resize(20, 0);
        }
        let frame = frame(packet.source, packet.destination, packet.protocol, &segment);
        self.switch.handle_frame(self.now, 0, &frame);
        self.packets += 1;
    }

    /// Lets time pass.
    pub fn run(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.now = (self.now + 10).min(end);
            self.switch.handle_timeout(self.now);
            self.deliver();
            for engine in &mut self.engines {
                engine.handle_timeout(self.now);
                while let Some(bytes) = engine.poll_transmit() {
                    let datagram = udp::Repr {
                        source_port: 5000,
                        destination_port: sync::PORT,
                        payload: &bytes,
                    };
                    let segment = datagram.to_vec(HOST, SWITCH).expect("a datagram");
                    let frame = frame(HOST, SWITCH, ipv4::PROTOCOL_UDP, &segment);
                    self.switch.handle_frame(self.now, CONTROL_PORT, &frame);
                }
            }
            self.deliver();
        }
    }

    /// Hands messages of the switch to the engines, but those that are lost.
    fn deliver(&mut self) {
        while let Some(transmit) = self.switch.poll_transmit() {
            if transmit.port != CONTROL_PORT {
                self.left.push(transmit.frame);
                continue;
            }
            let bytes = &transmit.frame[FRONT..];
            let message = Message::new_checked(bytes).expect("a message");
            if message.message_type() == MessageType::Update {
                let mark = (message.group(), message.stamp());
                self.marks.insert(mark, self.packets);
            }
            self.sent += 1;
            if self.link.loses_one_in != 0 && self.sent.is_multiple_of(self.link.loses_one_in) {
                continue;
            }
            for engine in &mut self.engines {
                engine.handle_datagram(self.now, bytes);
                while let Some(event) = engine.poll_event() {
                    if let Event::Window {
                        incarnation,
                        epoch,
                        values,
                    } = event
                    {
                        engine.window_kept(incarnation, epoch);
                        self.windows.push(Reading::window(values, epoch));
                    }
                }
            }
        }
    }

    pub fn is_complete(&self, group: usize) -> bool {
        self.engines[group].told(self.now).is_some()
    }

    /// Begins a cut of a group that fills it, if none is under way.
    pub fn cut(&mut self, group: usize, fill: u64) -> bool {
        self.engines[group].cut(CutKind::Filled, fill)
    }

    /// The view of a group with what is told of it; `None` while it is incomplete.
    pub fn reading(&self, group: usize) -> Option<Reading> {
        let engine = &self.engines[group];
        let told = engine.told(self.now)?;
        Some(Reading {
            values: engine.values().to_vec(),
            bound: told.bound,
            all_but: told.all_but,
            within: told.within,
            age_us: told.age_us,
            generation: told.generation,
            epoch: told.epoch,
        })
    }

    /// Packets that the switch had at the mark of a group's view.
    pub fn packets_at_mark(&self, group: usize) -> usize {
        let told = self.engines[group].told(self.now).expect("it is complete");
        self.marks[&(group as u16, told.stamp)]
    }
}
