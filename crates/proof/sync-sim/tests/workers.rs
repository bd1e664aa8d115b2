//! Several workers that run a program in view of an engine at once, on threads: no count and no write of the
//! engine is lost, and the view becomes what the registers hold. Without its atomic blocks the program
//! loses counts, which shows that the threads do meet.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the test has threads"
)]

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::datagram::frame;
use stateplane_compile::text;
use stateplane_native::{Compiled, Native};
use stateplane_runtime::{Engine as _, Fellow as _};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync::{Engine, Event, Settings};
use stateplane_sync_setup::{CONTROL_PORT, Sync, TURN_US};
use stateplane_synchronise::{Plan, Selection, synchronise};
use stateplane_wire::sync::{self, CutKind, Operation};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

const COMMON: &str = include_str!("../../../compiler/synchronise/tests/programs/common.p4");
const COUNTER: &str = include_str!("../../../compiler/synchronise/tests/programs/counter.p4");
const PLACES: &str = include_str!("../../../compiler/synchronise/tests/programs/places.p4");

/// Workers that count, besides the one that has the engine's messages and the packet generator.
const COUNTING: usize = 3;
/// Packets of each of these.
const PACKETS: u64 = 60_000;
/// Rounds in which threads meet at least once, also on a busy machine.
const MOST_ROUNDS: u32 = 50;
const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const HOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 5000);

/// A program that `stateplane sync` has instrumented, with its atomic blocks or without.
fn made(program: &str, blocks: bool) -> (Compiled, Plan) {
    let source = text(program.replace("#include \"common.p4\"", COMMON));
    let (loader, options) = (source.loader(), source.options());
    let made = synchronise(loader, source.main_file(), options, Selection::Annotated);
    let (instrumented, plan) = made.program.expect("it can be synchronised");
    let source = stateplane_compile::with_blocks(&instrumented, blocks);
    let program = source.program();
    let program = program.unwrap_or_else(|refused| panic!("{refused}"));
    (Compiled::guarded(program).expect("it loads"), plan)
}

/// A packet of these programs: addresses and a type.
fn packet(source: u64, kind: u16) -> Vec<u8> {
    let mut frame = vec![0; 6];
    frame.extend(&source.to_be_bytes()[2..]);
    frame.extend(kind.to_be_bytes());
    frame.extend([0; 46]);
    frame
}

fn worker(engine: Native, generates: bool) -> Switch<Native> {
    let config = SwitchConfig {
        ports: vec![0, 1, CONTROL_PORT],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine, config).expect("a switch");
    let sync = Sync {
        switch: 7,
        address: SWITCH,
        turn_us: Some(TURN_US),
        rates: Vec::new(),
        read_only: false,
    };
    sync.apply(&mut switch, 99, generates).expect("it fits");
    switch
}

fn word(switch: &Switch<Native>, register: &str, index: u64) -> u64 {
    let register = switch.engine().state().register(register);
    let word = register.expect("a register").word(index);
    word.expect("an element") as u64
}

/// The worker that has the control port, and an engine for each group.
struct Controlled {
    switch: Switch<Native>,
    engines: Vec<Engine>,
    now: u64,
    /// Writes that ended.
    written: u64,
}

impl Controlled {
    fn new(engine: Native, plan: &Plan) -> Controlled {
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
        Controlled {
            switch: worker(engine, true),
            engines: engines.collect(),
            now: 1,
            written: 0,
        }
    }

    /// Lets 25 µs pass.
    fn step(&mut self) {
        self.now += 25;
        self.switch.handle_timeout(self.now);
        for engine in &mut self.engines {
            engine.handle_timeout(self.now);
            while let Some(bytes) = engine.poll_transmit() {
                let frame = frame(HOST, SocketAddrV4::new(SWITCH, sync::PORT), &bytes);
                self.switch.handle_frame(self.now, CONTROL_PORT, &frame);
            }
        }
        while let Some(transmit) = self.switch.poll_transmit() {
            if transmit.port == CONTROL_PORT {
                for engine in &mut self.engines {
                    engine.handle_datagram(self.now, &transmit.frame[42..]);
                }
            }
            self.switch.recycle(transmit.frame);
        }
        for engine in &mut self.engines {
            while let Some(event) = engine.poll_event() {
                match event {
                    Event::Window {
                        incarnation, epoch, ..
                    } => engine.window_kept(incarnation, epoch),
                    Event::Written { .. } => self.written += 1,
                    _ => {}
                }
            }
        }
    }
}

/// Lets workers of an instrumented program count packets of 16 sources at once, while engines follow its
/// groups, and that of the group `added` adds to a location and takes cuts. Returns the worker that
/// the engines talk to once all is over, and how much was added.
fn counted(compiled: &Compiled, plan: &Plan, added: Option<usize>) -> (Controlled, u64) {
    let first = compiled.engine(Default::default()).expect("it loads");
    let mut engines = first.with_fellows(1 + COUNTING);
    let mut control = Controlled::new(engines.swap_remove(0), plan);
    let counting: Vec<_> = engines
        .into_iter()
        .map(|engine| worker(engine, false))
        .collect();
    let (begin, running) = (Barrier::new(1 + COUNTING), AtomicUsize::new(COUNTING));
    let mut sum = 0;
    std::thread::scope(|scope| {
        for mut switch in counting {
            let (begin, running) = (&begin, &running);
            scope.spawn(move || {
                begin.wait();
                for at in 0..PACKETS {
                    switch.handle_frame(at, 0, &packet(at % 16, 0x0800));
                    while let Some(transmit) = switch.poll_transmit() {
                        switch.recycle(transmit.frame);
                    }
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        begin.wait();
        while running.load(Ordering::SeqCst) > 0 {
            let engine = added.filter(|_| control.written == sum);
            if let Some(engine) = engine.map(|group| &mut control.engines[group]) {
                let write = engine.write(Operation::Add, &[(3, 1)], 0);
                sum += u64::from(write.is_ok());
                engine.cut(CutKind::Carried, 0);
            }
            control.step();
        }
    });
    for _ in 0..8_000 {
        control.step();
    }
    (control, sum)
}

/// Complaints about registers and views: `expected` has registers by group with what each location of 16
/// holds in the end.
fn wrong(control: &Controlled, plan: &Plan, expected: &[(&str, u64)]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (engine, group) in control.engines.iter().zip(&plan.groups) {
        let register = &*group.registers[0].register;
        let told = control.engines[usize::from(group.group)].told(control.now);
        if told
            .as_ref()
            .is_none_or(|told| (told.bound, told.all_but) != (Some(0), 0))
        {
            complaints.push(format!("{register}: {told:?}"));
        }
        for (location, value) in (0..).zip(engine.values()) {
            let held = word(&control.switch, register, location);
            if *value != held {
                complaints.push(format!("{register} {location}: view {value}, held {held}"));
            }
        }
    }
    for (register, value) in expected {
        for location in 0..16 {
            let held = word(&control.switch, register, location);
            if held != *value {
                complaints.push(format!("{register} {location} is {held}, not {value}"));
            }
        }
    }
    complaints
}

const EACH: u64 = COUNTING as u64 * PACKETS / 16;

#[test]
fn no_count_and_no_write_is_lost_and_views_are_exact() {
    let (program, plan) = made(COUNTER, true);
    let names: Vec<_> = plan.groups.iter().map(|group| &*group.name).collect();
    let packets = names
        .iter()
        .position(|name| *name == "packets")
        .expect("a group");
    let (mut control, sum) = counted(&program, &plan, Some(packets));
    assert!(sum > 0);
    // What was added goes off again, so that all locations hold the same.
    let engine = &mut control.engines[packets];
    let back = u64::from(u32::MAX) + 1 - sum;
    engine
        .write(Operation::Add, &[(3, back)], 0)
        .expect("it is taken");
    for _ in 0..4_000 {
        control.step();
    }
    let expected = [("packets", EACH), ("bytes", EACH * 60)];
    assert_eq!(wrong(&control, &plan, &expected), [""; 0]);
}

/// Accesses in functions, the parser, actions and egress.
#[test]
fn accesses_in_all_places_are_seen() {
    let (program, plan) = made(PLACES, true);
    let (control, _) = counted(&program, &plan, None);
    // A parser's read and write are two steps, as the program has them: other packets come between.
    let expected = [
        ("by_function", EACH),
        ("PlacesIngress.total", 2 * EACH),
        ("PlacesEgress.sent", 60 * EACH),
    ];
    assert_eq!(wrong(&control, &plan, &expected), [""; 0]);
}

#[test]
fn without_the_blocks_counts_are_lost() {
    let (program, plan) = made(COUNTER, false);
    let lost = |_| {
        let (control, _) = counted(&program, &plan, None);
        !wrong(&control, &plan, &[("bytes", EACH * 60)]).is_empty()
    };
    assert!((0..MOST_ROUNDS).any(lost));
}
