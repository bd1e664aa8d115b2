//! Several engines of one program at once, each on a thread of its own, and switches around one.

#![allow(dead_code, reason = "no test uses all of it")]

use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use stateplane_runtime::{Engine, Fellow, IngressInput, InstanceType, Port, Preserved, Value};
use stateplane_switch::{Switch, SwitchConfig};
use std::sync::Barrier;

pub const WORKERS: u64 = 4;
pub const PACKETS: u64 = 60_000;

/// Numbers of a small generator (xorshift).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) as usize % limit
    }

    pub fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// `count` is what ingress does; there are the registers `plain`, `other` and `wide`, `one`, `two`
/// and the longer `three`, `items` and `more` in 8 units `u` of 4 elements, and the counter
/// `packets`.
pub fn program(count: &str) -> Program {
    let declarations = "struct headers_t { }\nstruct metadata_t { }\n\
         register<bit<64>>(2) plain;\nregister<bit<64>>(2) other;\n\
         register<bit<128>>(2) wide;\n\
         register<bit<64>>(8) one;\nregister<bit<64>>(8) two;\nregister<bit<64>>(16) three;\n\
         @unit[\"u\", 4] register<bit<64>>(32) items;\n\
         @unit[\"u\", 4] register<bit<64>>(32) more;\n";
    let ingress = format!(
        "counter(1, CounterType.packets) packets;\n\
         bit<64> a; bit<64> b; bit<64> c; bit<128> w; bit<32> at;\n\
         bit<32> x; bit<32> y; bit<32> z;\n\
         action twice() {{ three.read(a, at); three.write(at, a + 1); return; }}\n\
         apply {{ packets.count(0); {count} s.egress_spec = 1; }}\n"
    );
    ingress_alone(declarations, &ingress)
}

/// A program that parses nothing: `declarations`, which has `headers_t` and `metadata_t`, and what stands
/// in ingress.
pub fn ingress_alone(declarations: &str, ingress: &str) -> Program {
    let text = format!(
        "#include <core.p4>\n#include <v1model.p4>\n{declarations}\
         parser P(packet_in p, out headers_t h, inout metadata_t m,\n\
                  inout standard_metadata_t s) {{ state start {{ transition accept; }} }}\n\
         control C(inout headers_t h, inout metadata_t m) {{ apply {{ }} }}\n\
         control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             {ingress}\n\
         }}\n\
         control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {{\n\
             apply {{ }}\n\
         }}\n\
         control D(packet_out p, in headers_t h) {{ apply {{ }} }}\n\
         V1Switch(P(), C(), I(), E(), C(), D()) main;\n"
    );
    let program = stateplane_compile::text(text.clone()).program();
    program.unwrap_or_else(|refused| panic!("{refused}\n{text}"))
}

/// Lets all engines do `work` at once; it gets the place of the engine.
pub fn at_once<E: Engine + Send>(engines: &mut [E], work: impl Fn(u64, &mut E) + Sync) {
    let begin = Barrier::new(engines.len());
    std::thread::scope(|scope| {
        for (worker, engine) in (0..).zip(engines) {
            let (begin, work) = (&begin, &work);
            scope.spawn(move || {
                begin.wait();
                work(worker, engine);
            });
        }
    });
}

/// Lets all workers pass their packets at once, each with ports of its own, and `before` before each; gives
/// the engines.
pub fn hammer<E: Fellow + Send>(first: E, before: impl Fn(u64, u64, &mut E) + Sync) -> Vec<E> {
    let mut engines = first.with_fellows(WORKERS as usize);
    at_once(&mut engines, |worker, engine| {
        for packet in 0..PACKETS {
            before(worker, packet, engine);
            pass(engine, (packet % 2 + 2 * worker) as u16, packet);
        }
        engine.end_burst();
    });
    engines
}

/// Passes a packet that comes by a port at this time.
pub fn pass(engine: &mut impl Engine, port: Port, now: u64) {
    engine.ingress(&IngressInput {
        frame: &[0; 60],
        port,
        instance_type: InstanceType::Normal,
        preserved: &Preserved::default(),
        now,
    });
}

/// Ends and begins bursts before a packet of a worker: its bursts have a length of their own, and the last
/// worker has none.
pub fn burst(worker: u64, packet: u64, engine: &mut impl Engine) {
    if packet.is_multiple_of(16 << worker) {
        engine.end_burst();
    }
    if worker + 1 < WORKERS {
        engine.begin_burst();
    }
}

pub fn read(engine: &impl Engine, register: &str, index: u64) -> Value {
    let register = engine.state().register(register).expect("it exists");
    register.read(index).expect("the element exists")
}

/// Locks that engines found taken.
pub fn waits<E: Engine>(engines: &[E]) -> u64 {
    engines.iter().map(|it| it.state().lock_waits()).sum()
}

/// Checks `check` on both engines after they ran `count`, on machine code also in bursts.
pub fn on_both(count: &str, check: impl Fn(&dyn Fn(&str, u64) -> Value, u64)) {
    on_both_with_waits(count, |read, counted, _| check(read, counted));
}

/// Checks like [`on_both`], and with the number of locks that were found taken.
pub fn on_both_with_waits(count: &str, check: impl Fn(&dyn Fn(&str, u64) -> Value, u64, u64)) {
    fn counted<E: Engine>(engines: &[E]) -> u64 {
        let counts = engines.iter().map(|engine| {
            let counter = engine.state().counter("packets").expect("it exists");
            counter.counts()[0].packets
        });
        counts.sum()
    }
    let interp = Interp::guarded(program(count), Default::default()).expect("it loads");
    let interp = hammer(interp, |_, _, _| {});
    check(
        &|register, index| read(&interp[3], register, index),
        counted(&interp),
        waits(&interp),
    );
    let native = Compiled::guarded(program(count)).expect("it loads");
    let first = || native.engine(Default::default()).expect("it loads");
    let alone = hammer(first(), |_, _, _| {});
    for engines in [alone, hammer(first(), burst)] {
        check(
            &|register, index| read(&engines[3], register, index),
            counted(&engines),
            waits(&engines),
        );
    }
}

/// Sum of a register's first eight elements.
pub fn sum(read: &dyn Fn(&str, u64) -> Value, register: &str) -> u64 {
    sum_of(read, register, 8)
}

/// Sum of a register's first elements.
pub fn sum_of(read: &dyn Fn(&str, u64) -> Value, register: &str, elements: u64) -> u64 {
    let number = |value: Value| match value {
        Value::Bits(bits) => u64::try_from(bits).expect("64 bits"),
        Value::Struct(_) => unreachable!("the registers hold numbers"),
    };
    (0..elements).map(|at| number(read(register, at))).sum()
}

/// A switch with so many ports.
pub fn switch<E: Engine>(engine: E, ports: Port) -> Switch<E> {
    let config = SwitchConfig {
        ports: (0..ports).collect(),
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).expect("the ports are right")
}

/// Frames that leave after one came, each with its port.
pub fn leaving(switch: &mut Switch<impl Engine>, port: Port, frame: &[u8]) -> Vec<(Port, Vec<u8>)> {
    switch.handle_frame(1_000, port, frame);
    let mut left = Vec::new();
    while let Some(transmit) = switch.poll_transmit() {
        left.push((transmit.port, transmit.frame.clone()));
        // Buffers with room are filled in another way than new ones.
        switch.recycle(transmit.frame);
    }
    left
}
