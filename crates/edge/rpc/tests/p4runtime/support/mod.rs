//! A core with a switch, and helpers that send it requests.

#![allow(dead_code, reason = "each test uses a part")]

pub mod server;

use rand::Rng;
use rand::rngs::SmallRng;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_rpc::proto::{config, v1};
use stateplane_rpc::{
    Core, Loader, Options, Outcome, PacketHeader, Prepared, Refusal, StreamId, WriteRefusal,
};
use stateplane_runtime::{Engine, Table};
use stateplane_switch::{Fellows, Switch, SwitchConfig, Transmit};
use std::sync::Arc;
use v1::entity::Entity;
use v1::update::Type;

pub const SOURCE: &str = include_str!("../../programs/control.p4");
pub const CPU_PORT: u16 = 510;

/// A program from its text.
pub fn prepare(source: &str) -> Prepared<Interp> {
    let compiled = stateplane_compile::text(source).program_and_interface();
    let (program, interface) = compiled.unwrap_or_else(|refused| panic!("{refused}"));
    let info = stateplane_p4info::generate(&program, &interface).unwrap();
    let load: Loader<Interp> = Arc::new(move || engine(program.clone()));
    Prepared {
        engine: None,
        load,
        info,
        headers: PacketHeader::of(&interface),
    }
}

fn engine(program: Program) -> Result<Interp, Refusal> {
    Interp::guarded(program, Default::default()).map_err(Refusal::invalid)
}

/// Switches beside the first, which stand for further workers.
pub struct Others(pub Vec<Switch<Interp>>);

impl Fellows<Interp> for Others {
    fn each(&mut self, work: &mut dyn FnMut(&mut Switch<Interp>)) {
        self.0.iter_mut().for_each(work);
    }

    fn follow(&mut self, first: &mut Switch<Interp>) {
        for switch in &mut self.0 {
            drop(switch.follow(first));
            assert_alike(first, switch);
        }
    }
}

/// Checks that packets find the same in two switches.
fn assert_alike(first: &Switch<Interp>, other: &Switch<Interp>) {
    assert_eq!(first.program(), other.program());
    let (first_state, state) = (first.engine().state(), other.engine().state());
    let entries = |table: &Table| {
        let entries = table.entries().into_iter();
        let entries = entries.map(|it| (it.entry, it.runs, it.idle_timeout));
        (entries.collect::<Vec<_>>(), table.default_action())
    };
    for (one, other) in first_state.tables().iter().zip(state.tables()) {
        assert_eq!(entries(one), entries(other));
    }
    for (one, other) in first_state.profiles().iter().zip(state.profiles()) {
        assert_eq!(
            (one.members(), one.groups()),
            (other.members(), other.groups())
        );
    }
    assert_eq!(first_state.value_sets(), state.value_sets());
    assert_eq!(first_state.registers(), state.registers());
    assert_eq!(first_state.meters(), state.meters());
    for number in 1..64 {
        let one = first.multicast_group(number);
        assert_eq!(one, other.multicast_group(number));
        let number = u32::from(number);
        assert_eq!(first.mirror_session(number), other.mirror_session(number));
    }
}

/// Three switches that run one program as three workers do, each with ports 0 to 3 and a CPU port,
/// and a primary with election id 1. Frames come to one after another.
pub struct World {
    pub switch: Switch<Interp>,
    pub others: Others,
    frames: usize,
    pub core: Core<Interp>,
    pub now: u64,
    pub primary: StreamId,
    /// Messages sent to streams.
    pub told: Vec<(StreamId, v1::StreamMessageResponse)>,
    /// Streams that ended.
    pub ended: Vec<(StreamId, Refusal)>,
    pub info: config::P4Info,
}

impl World {
    pub fn new() -> World {
        World::of(SOURCE)
    }

    /// A world of another program; port 1 is called `eth1`.
    pub fn of(source: &str) -> World {
        let prepared = prepare(source);
        let config = SwitchConfig {
            ports: vec![0, 1, 2, 3, CPU_PORT],
            ..SwitchConfig::default()
        };
        let engine = (prepared.load)().unwrap();
        let mut switch = Switch::new(engine, config).unwrap();
        let others = Others(vec![switch.fellow(1), switch.fellow(2)]);
        let options = Options {
            device_id: 1,
            cpu_port: Some(CPU_PORT),
            epoch_ns: 0,
            port_names: [(1, "eth1".to_owned())].into(),
        };
        let info = prepared.info.clone();
        let mut core = Core::new(options, prepared, &switch).unwrap();
        let primary = core.open_stream();
        let mut world = World {
            switch,
            others,
            frames: 0,
            core,
            now: 1_000_000,
            primary,
            told: Vec::new(),
            ended: Vec::new(),
            info,
        };
        world.say(primary, arbitration(1));
        world.told.clear();
        world
    }

    /// The id of an object by its alias.
    pub fn id(&self, alias: &str) -> u32 {
        id(&self.info, alias)
    }

    /// Does a part of what waits, with digests of all switches.
    pub fn work(&mut self) {
        let own = self.switch.engine_mut().state_mut();
        let others = &mut self.others;
        others.each(&mut |other| own.gather_digests(other.engine_mut().state_mut()));
        self.core.work_with(&mut self.switch, others, self.now);
    }

    /// Lets the next switch take a frame.
    pub fn frame(&mut self, port: u16, frame: &[u8]) {
        let all = 1 + self.others.0.len();
        let next = match self.frames % all {
            0 => &mut self.switch,
            other => &mut self.others.0[other - 1],
        };
        next.handle_frame(self.now, port, frame);
        self.frames += 1;
    }

    pub fn on_all(&mut self, mut work: impl FnMut(&mut Switch<Interp>)) {
        work(&mut self.switch);
        self.others.each(&mut work);
    }

    /// The next frame that leaves a switch.
    pub fn transmitted(&mut self) -> Option<Transmit> {
        let all = std::iter::once(&mut self.switch).chain(&mut self.others.0);
        all.into_iter().find_map(Switch::poll_transmit)
    }

    /// Frames that all switches sent by a port.
    pub fn sent(&self, port: u16) -> u64 {
        let all = std::iter::once(&self.switch).chain(&self.others.0);
        all.map(|switch| switch.port_counters(port).unwrap().tx_packets)
            .sum()
    }

    /// Works until nothing waits, and collects the messages of streams.
    pub fn settle(&mut self) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        loop {
            self.work();
            while let Some(frame) = self.transmitted() {
                if frame.port == CPU_PORT {
                    self.core.packet_in(&frame.frame);
                }
            }
            while let Some(outcome) = self.core.poll() {
                match outcome {
                    Outcome::Message(stream, message) => self.told.push((stream, message)),
                    Outcome::StreamEnd(stream, refusal) => self.ended.push((stream, refusal)),
                    outcome => outcomes.push(outcome),
                }
            }
            if self.core.due() != Some(0) {
                return outcomes;
            }
        }
    }

    pub fn say(&mut self, stream: StreamId, update: v1::stream_message_request::Update) {
        let message = v1::StreamMessageRequest {
            update: Some(update),
        };
        self.core.stream_message(stream, message);
        self.settle();
    }

    pub fn request(&self, updates: Vec<v1::Update>) -> v1::WriteRequest {
        v1::WriteRequest {
            device_id: 1,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            updates,
            ..v1::WriteRequest::default()
        }
    }

    pub fn send(&mut self, request: v1::WriteRequest) -> Result<(), WriteRefusal> {
        let ticket = self.core.write(request);
        for outcome in self.settle() {
            if let Outcome::Written(of, result) = outcome
                && of == ticket
            {
                return result;
            }
        }
        panic!("no answer to a write");
    }

    pub fn write(&mut self, updates: Vec<v1::Update>) -> Result<(), WriteRefusal> {
        let request = self.request(updates);
        self.send(request)
    }

    /// Writes one update.
    pub fn update(&mut self, kind: Type, entity: Entity) -> Result<(), Refusal> {
        match self.write(vec![update(kind, entity)]) {
            Ok(()) => Ok(()),
            Err(WriteRefusal::Whole(refusal)) => Err(refusal),
            Err(WriteRefusal::Updates(outcomes)) => outcomes.into_iter().next().unwrap(),
        }
    }

    pub fn code(&mut self, kind: Type, entity: Entity) -> tonic::Code {
        match self.update(kind, entity) {
            Ok(()) => tonic::Code::Ok,
            Err(refusal) => refusal.code,
        }
    }

    pub fn try_read(&mut self, entity: Entity) -> Result<Vec<Entity>, Refusal> {
        let ticket = self.core.read(v1::ReadRequest {
            device_id: 1,
            entities: vec![v1::Entity {
                entity: Some(entity),
            }],
            ..v1::ReadRequest::default()
        });
        let mut entities = Vec::new();
        for outcome in self.settle() {
            match outcome {
                Outcome::Read(of, response) if of == ticket => {
                    let read = response.entities.into_iter();
                    entities.extend(read.filter_map(|entity| entity.entity));
                }
                Outcome::ReadEnd(of, result) if of == ticket => return result.map(|()| entities),
                _ => {}
            }
        }
        panic!("no answer to a read");
    }

    pub fn read(&mut self, entity: Entity) -> Vec<Entity> {
        self.try_read(entity).unwrap()
    }

    /// An entry of `l2`.
    pub fn l2(&self, address: u64, port: u16) -> v1::TableEntry {
        server::l2(&self.info, address, port)
    }

    pub fn action(&self, alias: &str, params: &[&[u8]]) -> v1::TableAction {
        action(&self.info, alias, params)
    }

    pub fn plain(&self, alias: &str, params: &[&[u8]]) -> v1::Action {
        plain(&self.info, alias, params)
    }
}

pub fn action(info: &config::P4Info, alias: &str, params: &[&[u8]]) -> v1::TableAction {
    v1::TableAction {
        r#type: Some(v1::table_action::Type::Action(plain(info, alias, params))),
    }
}

pub fn plain(info: &config::P4Info, alias: &str, params: &[&[u8]]) -> v1::Action {
    v1::Action {
        action_id: id(info, alias),
        params: (1u32..)
            .zip(params)
            .map(|(param_id, value)| v1::action::Param {
                param_id,
                value: value.to_vec(),
            })
            .collect(),
    }
}

pub fn update(kind: Type, entity: Entity) -> v1::Update {
    v1::Update {
        r#type: kind.into(),
        entity: Some(v1::Entity {
            entity: Some(entity),
        }),
    }
}

pub fn exact(field_id: u32, value: &[u8]) -> v1::FieldMatch {
    field(
        field_id,
        v1::field_match::FieldMatchType::Exact(v1::field_match::Exact {
            value: value.to_vec(),
        }),
    )
}

pub fn field(field_id: u32, kind: v1::field_match::FieldMatchType) -> v1::FieldMatch {
    v1::FieldMatch {
        field_id,
        field_match_type: Some(kind),
    }
}

pub fn arbitration(id: u64) -> v1::stream_message_request::Update {
    v1::stream_message_request::Update::Arbitration(v1::MasterArbitrationUpdate {
        device_id: 1,
        election_id: Some(v1::Uint128 { high: 0, low: id }),
        ..v1::MasterArbitrationUpdate::default()
    })
}

/// Bytes of a message with some changed, left out, doubled or put in.
pub fn damage(random: &mut SmallRng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..6) {
        if bytes.is_empty() {
            break;
        }
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..5) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8),
            2 => {
                bytes.remove(at);
            }
            3 => bytes.insert(at, random.random()),
            _ => {
                let end = random.random_range(at..=bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

/// The id of an object by its alias.
pub fn id(info: &config::P4Info, alias: &str) -> u32 {
    let tables = info.tables.iter().map(|it| &it.preamble);
    let actions = info.actions.iter().map(|it| &it.preamble);
    let profiles = info.action_profiles.iter().map(|it| &it.preamble);
    let counters = info.counters.iter().map(|it| &it.preamble);
    let meters = info.meters.iter().map(|it| &it.preamble);
    let registers = info.registers.iter().map(|it| &it.preamble);
    let sets = info.value_sets.iter().map(|it| &it.preamble);
    let digests = info.digests.iter().map(|it| &it.preamble);
    tables
        .chain(actions)
        .chain(profiles)
        .chain(counters)
        .chain(meters)
        .chain(registers)
        .chain(sets)
        .chain(digests)
        .flatten()
        .find(|preamble| preamble.alias == alias)
        .unwrap_or_else(|| panic!("nothing is called {alias}"))
        .id
}
