//! Programs that `stateplane sync` has instrumented, with an engine for each group: wherever a
//! program writes a register the location is queued, and the view becomes what the registers hold.

use core::net::Ipv4Addr;
use stateplane_compile::text;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Native;
use stateplane_runtime::{Engine as _, TargetState, Value};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync::{Engine, Settings};
use stateplane_sync_setup::{CONTROL_PORT, Sync, TURN_US};
use stateplane_synchronise::{Kind, Plan, Selection, synchronise};
use stateplane_wire::sync::{CutKind, Operation};
use stateplane_wire::{ethernet, ipv4, sync, udp};

const COMMON: &str = include_str!("../../../compiler/synchronise/tests/programs/common.p4");
const PLACES: &str = include_str!("../../../compiler/synchronise/tests/programs/places.p4");
const KINDS: &str = include_str!("../../../compiler/synchronise/tests/programs/kinds.p4");
const AGED: &str = include_str!("../../../compiler/synchronise/tests/programs/aged.p4");
const COUNTER: &str = include_str!("../../../compiler/synchronise/tests/programs/counter.p4");

const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);

/// A program, instrumented.
fn made(program: &str, selection: Selection<'_>) -> (Program, Plan) {
    let program = program.replace("#include \"common.p4\"", COMMON);
    let source = text(program);
    let (loader, options) = (source.loader(), source.options());
    let made = synchronise(loader, source.main_file(), options, selection);
    let (instrumented, plan) = made.program.expect("it can be synchronised");
    let compiled = text(instrumented).program();
    (compiled.unwrap_or_else(|refused| panic!("{refused}")), plan)
}

/// A packet of these programs: addresses and a type.
fn packet(destination: u64, source: u64, kind: u16) -> Vec<u8> {
    let mut frame = destination.to_be_bytes()[2..].to_vec();
    frame.extend(&source.to_be_bytes()[2..]);
    frame.extend(kind.to_be_bytes());
    frame.extend([0; 46]);
    frame
}

fn switch<E: stateplane_runtime::Engine>(engine: E) -> Switch<E> {
    let config = SwitchConfig {
        ports: vec![0, 1, CONTROL_PORT],
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).expect("a switch")
}

fn word(state: &TargetState, register: &str, index: u64) -> u64 {
    let register = state.register(register).expect("a register");
    register.word(index).expect("an element") as u64
}

/// The value of a location, as messages have it.
fn held(state: &TargetState, plan: &Plan, group: usize, location: u32) -> u64 {
    let group = &plan.groups[group];
    let (index, word) = (location / group.words, location % group.words);
    let members = group.registers.iter().map(|member| {
        let register = state.register(&member.register).expect("a register");
        let Ok(Value::Bits(value)) = register.read(index.into()) else {
            panic!("no number");
        };
        let digits = value.to_u64_digits();
        digits.get(word as usize).copied().unwrap_or(0) << member.lowest_bit
    });
    members.fold(0, |all, part| all | part)
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let datagram = udp::Repr {
        source_port: 5000,
        destination_port: sync::PORT,
        payload,
    };
    let segment = datagram.to_vec(HOST, SWITCH).expect("a datagram");
    let packet = ipv4::Repr::new(HOST, SWITCH, ipv4::PROTOCOL_UDP, &segment);
    let mut frame = vec![2; 12];
    frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(packet.to_vec().expect("a packet"));
    frame
}

/// A switch with its engines, on a link that takes no time.
struct World<E: stateplane_runtime::Engine> {
    switch: Switch<E>,
    plan: Plan,
    engines: Vec<Engine>,
    now: u64,
}

impl<E: stateplane_runtime::Engine> World<E> {
    fn new(engine: E, plan: Plan) -> Self {
        let mut switch = switch(engine);
        let sync = Sync {
            switch: 7,
            address: SWITCH,
            turn_us: Some(TURN_US),
            rates: Vec::new(),
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
        Self {
            engines: engines.collect(),
            switch,
            plan,
            now: 1,
        }
    }

    fn state(&self) -> &TargetState {
        self.switch.engine().state()
    }

    /// Lets time pass.
    fn run(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.now += 25;
            self.switch.handle_timeout(self.now);
            for engine in &mut self.engines {
                engine.handle_timeout(self.now);
                while let Some(bytes) = engine.poll_transmit() {
                    self.switch
                        .handle_frame(self.now, CONTROL_PORT, &frame(&bytes));
                }
            }
            while let Some(transmit) = self.switch.poll_transmit() {
                if transmit.port == CONTROL_PORT {
                    for engine in &mut self.engines {
                        engine.handle_datagram(self.now, &transmit.frame[42..]);
                    }
                }
            }
        }
    }

    /// The engines are gone.
    fn abandon(&mut self) {
        self.engines.clear();
    }

    /// All views are complete, exact, and what the registers hold.
    fn is_exact(&self) {
        for (group, engine) in self.engines.iter().enumerate() {
            let name = &self.plan.groups[group].name;
            let told = engine
                .told(self.now)
                .unwrap_or_else(|| panic!("{name} is incomplete"));
            assert_eq!((told.bound, told.all_but), (Some(0), 0), "{name}: {told:?}");
            for (location, value) in engine.values().iter().enumerate() {
                let held = held(self.state(), &self.plan, group, location as u32);
                assert_eq!(*value, held, "{name}, location {location}");
            }
        }
    }
}

/// Packets that come while no engine has polled for longer than a group's age are counted, and dropped
/// if its annotation says so, before the program has them (rule 28).
#[test]
fn packets_that_no_engine_hears_of_in_time_are_counted_or_dropped() {
    const LATE: u64 = 23;
    let (program, plan) = made(AGED, Selection::Annotated);
    let engine = Native::new(program, Default::default()).expect("it loads");
    let mut world = World::new(engine, plan);
    let late = |world: &World<Native>| {
        let counter = world.state().counter("sync_events").expect("a counter");
        counter.read(LATE).expect("an event").packets
    };
    let send = |world: &mut World<Native>| {
        let frame = packet(0, 5, 7);
        world.switch.handle_frame(world.now, 0, &frame);
        let before = word(world.state(), "budget", 5);
        world.switch.handle_timeout(world.now);
        let mut left = 0;
        while let Some(transmit) = world.switch.poll_transmit() {
            left += usize::from(transmit.port == 1);
        }
        (before, left)
    };
    // Polls come each 500 µs.
    world.run(20_000);
    assert_eq!(send(&mut world), (1, 1));
    assert_eq!(late(&world), 0);
    world.abandon();
    // Within both ages; beyond that of the bytes alone; beyond both.
    world.run(1_000);
    assert_eq!(send(&mut world), (2, 1));
    assert_eq!(late(&world), 0);
    world.run(2_000);
    assert_eq!(send(&mut world), (3, 1));
    assert_eq!(late(&world), 1);
    world.run(4_000);
    assert_eq!(send(&mut world), (3, 0));
    assert_eq!((late(&world), word(world.state(), "budget", 5)), (2, 3));
}

/// Without one frame of the packet generator, each write has queued its location: those of
/// functions, parser, action, egress, before `exit` and of dropped packets. A register that the
/// packet did not write has queued nothing.
#[test]
fn each_place_queues_what_it_writes() {
    let (program, plan) = made(PLACES, Selection::Annotated);
    let always = ["parsed", "by_function", "PlacesIngress.tally.total"];
    let cases = [
        (packet(0, 5, 7), vec!["PlacesEgress.sent"]),
        (
            packet(2, 5, 0x0800),
            vec!["PlacesEgress.sent", "PlacesIngress.total"],
        ),
        (
            packet(1, 5, 0x0800),
            vec!["PlacesIngress.refused_packets", "PlacesIngress.total"],
        ),
    ];
    for (frame, others) in cases {
        let engine = Interp::new(program.clone(), Default::default()).expect("it loads");
        let mut switch = switch(engine);
        switch.handle_frame(1, 0, &frame);
        switch.handle_timeout(2);
        for group in &plan.groups {
            let name = &*group.registers[0].register;
            let written = always.contains(&name) || others.contains(&name);
            let tail = word(switch.engine().state(), "sync_tail", group.group.into());
            assert_eq!(tail, u64::from(written), "{name} of {others:?}");
        }
        // Again: the location is in the ring, and T has how far it went (rule 3).
        switch.handle_frame(3, 0, &frame);
        switch.handle_timeout(4);
        let state = switch.engine().state();
        for group in &plan.groups {
            let at = group.group.into();
            assert!(word(state, "sync_tail", at) <= 1);
            let held = held(state, &plan, group.group.into(), 5);
            let far = match group.kind {
                Kind::Opaque => held.min(1),
                Kind::Counter | Kind::Gauge => held,
            };
            assert_eq!(word(state, "sync_peak", at), far, "{}", group.name);
        }
    }
}

#[test]
fn views_of_all_places_become_what_the_registers_hold() {
    let (program, plan) = made(PLACES, Selection::Annotated);
    let engine = Native::new(program, Default::default()).expect("it loads");
    let mut world = World::new(engine, plan);
    for at in 0..200u64 {
        let kind = [0x0800, 0x86dd, 7][(at % 3) as usize];
        world
            .switch
            .handle_frame(world.now, 0, &packet(at & 3, at * 7 % 16, kind));
        world.run(50);
    }
    world.run(30_000);
    world.is_exact();
    assert!(
        world
            .engines
            .iter()
            .all(|engine| engine.values().iter().any(|value| *value != 0))
    );
}

/// Gauges, keys beside other values, elements of more than 64 bits, negative numbers and bools; all
/// registers of the program, and those that are annotated.
#[test]
fn views_of_all_kinds_become_what_the_registers_hold() {
    let all = [
        "key",
        "key_count",
        "credit",
        "length",
        "last_source",
        "last_kind",
        "wide",
        "balance",
        "flag",
        "newest",
        "unseen",
    ];
    let all = all.map(str::to_owned);
    for selection in [Selection::Annotated, Selection::Named(&all)] {
        let (program, plan) = made(KINDS, selection);
        let engine = Native::new(program, Default::default()).expect("it loads");
        let mut world = World::new(engine, plan);
        for at in 0..200u64 {
            let frame = packet(at * 0x1357_9bdf, at * 11, at as u16);
            world.switch.handle_frame(world.now, 0, &frame);
            world.run(50);
        }
        world.run(40_000);
        world.is_exact();
    }
}

/// A cut of a group of two registers fills both, and its window is what they held; a write of a
/// location sets both.
#[test]
fn cuts_and_writes_reach_each_register_of_a_group() {
    let (program, plan) = made(KINDS, Selection::Annotated);
    let engine = Native::new(program, Default::default()).expect("it loads");
    let mut world = World::new(engine, plan);
    let last = 1;
    assert_eq!(world.plan.groups[last].name, "last");
    world.run(20_000);
    world
        .switch
        .handle_frame(world.now, 0, &packet(0, 0x1122_3344_5566, 0x0800));
    world.run(20_000);
    let before = held(world.state(), &world.plan, last, 2);
    assert_eq!(before, 0x0800_1122_3344_5566);
    assert!(world.engines[last].cut(CutKind::Filled, 0x0007_0000_0000_0009));
    world.run(40_000);
    let mut windows = Vec::new();
    while let Some(event) = world.engines[last].poll_event() {
        if let stateplane_sync::Event::Window { values, .. } = event {
            windows.push(values);
        }
    }
    assert_eq!(windows, [vec![0, 0, before, 0]]);
    assert_eq!(word(world.state(), "KindsIngress.last_source", 2), 9);
    assert_eq!(word(world.state(), "KindsIngress.last_kind", 2), 7);
    let values = [
        (0, 5),
        (1, 0x0001_0000_0000_0000),
        (3, 0xffff_0000_0000_0001),
    ];
    let write = world.engines[last].write(Operation::Set, &values, 0);
    write.expect("it is taken");
    world.run(20_000);
    assert_eq!(word(world.state(), "KindsIngress.last_kind", 1), 1);
    assert_eq!(word(world.state(), "KindsIngress.last_source", 3), 1);
    world.is_exact();
}

/// A packet that comes after a cut, before the sweep has come to its location, counts in the new
/// epoch: what it finds is the fill, in reads too, and the window has what was there before.
#[test]
fn an_access_crosses_the_cut_before_it_counts() {
    let (program, plan) = made(COUNTER, Selection::Annotated);
    let engine = Interp::new(program, Default::default()).expect("it loads");
    let mut switch = switch(engine);
    let frame = packet(0, 5, 7);
    for _ in 0..3 {
        switch.handle_frame(1, 0, &frame);
    }
    assert_eq!(word(switch.engine().state(), "packets", 5), 3);
    // What a cut leaves behind (p4/lib/sync/request.p4).
    let state = switch.engine_mut().state_mut();
    let set = [
        ("sync_epoch", 1),
        ("sync_kind", CutKind::Filled as u64),
        ("sync_fill", 100),
    ];
    for (register, value) in set {
        let register = state.register_mut(register).expect("a register");
        register.write(0, &Value::from(value)).expect("an element");
    }
    switch.handle_frame(2, 0, &frame);
    let state = switch.engine().state();
    assert_eq!(word(state, "packets", 5), 101);
    assert_eq!(word(state, "sync_frozen", 5), 3);
    assert_eq!(word(state, "sync_sent", 5), 100);
    assert_eq!(word(state, "sync_crossed", 5), 1);
    // The other group has no cut, and other locations have not crossed.
    assert_eq!(word(state, "packets", 6), 0);
    assert_eq!(word(state, "sync_crossed", 6), 0);
    assert_eq!(
        word(state, "sync_crossed", plan.groups[0].locations.into()),
        0
    );
}
