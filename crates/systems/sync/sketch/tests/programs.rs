//! The programs of `apps` do to their registers what [`Sketch::update`] does: on captures, and on
//! drawn packets where there are none, on both engines.

mod replays;
mod support;

use stateplane_compile::shipped;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Native;
use stateplane_runtime::{Engine, TargetState};
use stateplane_sketch::{Family, Hash, Key, Pairs, Shape, Sketch};
use stateplane_switch::{Switch, SwitchConfig};
use support::{Packet, SEED, capture, datagrams, drawn, parse};

/// Packets of each run.
const PACKETS: usize = 3_000;

fn program(path: &str, macros: &[(&str, &str)]) -> Program {
    let source = macros.iter().fold(shipped(path), |source, (name, body)| {
        source.define(name, body)
    });
    source
        .program()
        .unwrap_or_else(|refused| panic!("{refused}"))
}

/// A frame with the IPv4 packet, whose header gets a right checksum.
fn frame(mut ip: Vec<u8>) -> Vec<u8> {
    ip[10..12].fill(0);
    let (words, _) = ip[..20].as_chunks::<2>();
    let sum: u32 = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    [vec![2; 12], vec![8, 0], ip].concat()
}

/// Frames and their packets: of a capture, and drawn ones.
fn runs() -> Vec<Vec<(Vec<u8>, Packet)>> {
    let path = capture("mixed-two-way-snap96.pcap");
    let captured = path.map(|path| datagrams(&path, PACKETS));
    let made = drawn(11, PACKETS, 700);
    let made = made.iter().map(support::Packet::ip).collect();
    let all = [Some(made), captured].into_iter().flatten();
    all.map(|run: Vec<Vec<u8>>| {
        let packets = run.into_iter().filter_map(|ip| {
            let packet = parse(&ip)?;
            Some((frame(ip), packet))
        });
        packets.collect()
    })
    .collect()
}

/// Feeds the frames to a switch whose router knows no route.
fn forwarded<E: Engine>(engine: E, frames: &[(Vec<u8>, Packet)]) -> Switch<E> {
    let config = SwitchConfig {
        ports: vec![0],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine, config).expect("a switch");
    for (at, (frame, _)) in frames.iter().enumerate() {
        switch.handle_frame(at as u64, 0, frame);
    }
    switch
}

fn words(state: &TargetState, register: &str) -> Vec<u64> {
    let register = state.register(register).expect("a register");
    let words = (0..register.size()).map(|at| register.word(at).unwrap_or(0) as u64);
    words.collect()
}

/// Runs a program on both engines; `expected` are registers and their values after the packets.
fn compare(
    path: &str,
    macros: &[(&str, &str)],
    expected: impl Fn(&[(Vec<u8>, Packet)]) -> Vec<(&'static str, Vec<u64>)>,
) {
    let program = program(path, macros);
    for frames in runs() {
        let expected = expected(&frames);
        let interp = Interp::new(program.clone(), Default::default()).expect("it runs");
        let interp = forwarded(interp, &frames);
        let native = Native::new(program.clone(), Default::default()).expect("it runs");
        let native = forwarded(native, &frames);
        for (register, values) in expected {
            assert!(
                values.iter().any(|value| *value != 0),
                "{register} is all 0"
            );
            assert_eq!(
                words(interp.engine().state(), register),
                values,
                "{path}: {register}"
            );
            assert_eq!(
                words(native.engine().state(), register),
                values,
                "{path}: {register}"
            );
        }
    }
}

fn counted(shape: Shape, keys: impl Iterator<Item = Key>) -> Sketch {
    let mut sketch = Sketch::empty(shape).expect("a shape");
    keys.for_each(|key| sketch.update(key));
    sketch
}

/// The values of each part of a sketch, by names of registers.
fn registers(sketch: &Sketch, names: &[&'static str]) -> Vec<(&'static str, Vec<u64>)> {
    let parts = sketch.parts().iter().map(|part| part.values.clone());
    names.iter().copied().zip(parts).collect()
}

#[test]
fn count_min() {
    let macros = [
        ("COUNT_MIN_COLUMN_BITS", "8"),
        ("COUNT_MIN_PARTNER_BITS", "6"),
        ("COUNT_MIN_FILTER_BITS", "10"),
    ];
    compare("apps/count-min/count_min.p4", &macros, |packets| {
        let flows = packets.iter().map(|(_, packet)| packet.flow());
        let flows = counted(Shape::count_min(SEED, 0, 3, 8), flows);
        let mut pairs = Pairs::new(SEED, 3, 10);
        let mut destinations = Sketch::empty(Shape::count_min(SEED, 6, 3, 6)).expect("a shape");
        let mut sources = Sketch::empty(Shape::count_min(SEED, 9, 3, 6)).expect("a shape");
        for (_, packet) in packets {
            if pairs.insert(Key::pair(packet.source, packet.destination)) {
                destinations.update(packet.source());
                sources.update(Key::address(packet.destination));
            }
        }
        let bits = pairs.bits().iter().map(|bit| u64::from(*bit)).collect();
        let mut all = registers(&flows, &["flows"]);
        all.extend(registers(&destinations, &["destinations"]));
        all.extend(registers(&sources, &["sources"]));
        all.push(("pairs", bits));
        all
    });
}

#[test]
fn hashpipe() {
    let macros = [("HASHPIPE_STAGE_BITS", "3")];
    compare("apps/hashpipe/hashpipe.p4", &macros, |packets| {
        let sources = packets.iter().map(|(_, packet)| packet.source());
        let sketch = counted(Shape::of(Family::HashPipe, SEED, 4, 3, 0), sources);
        registers(&sketch, &["stages"])
    });
}

#[test]
fn flow_radar() {
    let macros = [
        ("FLOW_RADAR_CELL_BITS", "7"),
        ("FLOW_RADAR_FILTER_BITS", "5"),
    ];
    compare("apps/flow-radar/flow_radar.p4", &macros, |packets| {
        let flows = packets.iter().map(|(_, packet)| packet.flow());
        let sketch = counted(Shape::of(Family::FlowRadar, SEED, 3, 7, 5), flows);
        registers(&sketch, &["radar"])
    });
}

#[test]
fn elastic_sketch() {
    let macros = [("ELASTIC_HEAVY_BITS", "3"), ("ELASTIC_LIGHT_BITS", "6")];
    compare(
        "apps/elastic-sketch/elastic_sketch.p4",
        &macros,
        |packets| {
            let sources = packets.iter().map(|(_, packet)| packet.source());
            let sketch = counted(Shape::of(Family::Elastic, SEED, 1, 3, 6), sources);
            registers(&sketch, &["heavy", "light"])
        },
    );
}

#[test]
fn univmon() {
    let macros = [("UNIVMON_COLUMN_BITS", "4"), ("UNIVMON_KEY_BITS", "2")];
    compare("apps/univmon/univmon.p4", &macros, |packets| {
        let sources = packets.iter().map(|(_, packet)| packet.source());
        let sketch = counted(Shape::of(Family::UnivMon, SEED, 32, 4, 2), sources);
        registers(&sketch, &["counts", "keys"])
    });
}

#[test]
fn sketch_learn() {
    let macros = [("SKETCH_LEARN_COLUMN_BITS", "4")];
    compare("apps/sketch-learn/sketch_learn.p4", &macros, |packets| {
        let sources = packets.iter().map(|(_, packet)| packet.source());
        let sketch = counted(Shape::of(Family::SketchLearn, SEED, 32, 4, 0), sources);
        registers(&sketch, &["levels"])
    });
}

/// Another seed is other functions.
#[test]
fn the_seed_is_a_macro() {
    let macros = [("SKETCH_LEARN_COLUMN_BITS", "4"), ("SKETCH_SEED", "77")];
    compare("apps/sketch-learn/sketch_learn.p4", &macros, |packets| {
        let sources = packets.iter().map(|(_, packet)| packet.source());
        let sketch = counted(Shape::of(Family::SketchLearn, 77, 32, 4, 0), sources);
        registers(&sketch, &["levels"])
    });
}

#[test]
fn elephant_flows() {
    let macros = [("ELEPHANT_COLUMN_BITS", "8")];
    compare(
        "apps/elephant-flows/elephant_flows.p4",
        &macros,
        |packets| {
            let mut bytes = vec![0; 4 * 256 + 1];
            for (frame, packet) in packets {
                let length = u64::from(u16::from_be_bytes([frame[16], frame[17]]));
                for row in 0..4 {
                    let column = Hash::new(SEED, row).column(packet.flow().0, 8);
                    bytes[256 * row as usize + column] += length;
                }
                bytes[4 * 256] += length;
            }
            vec![("bytes", bytes)]
        },
    );
}

#[test]
fn flow_sampling() {
    let macros = [("SAMPLING_BITS", "8")];
    compare("apps/flow-sampling/flow_sampling.p4", &macros, |packets| {
        let (mut sizes, mut samples, mut gaps) = (vec![0; 256], vec![0; 256], vec![0; 256]);
        for (_, packet) in packets {
            let place = Hash::new(SEED, 0).column(packet.flow().0, 8);
            sizes[place] += 1;
            gaps[place] += 1;
            let every = match sizes[place] {
                0..100 => 5,
                100..1000 => 50,
                _ => 500,
            };
            if gaps[place] == every {
                samples[place] += 1;
                gaps[place] = 0;
            }
        }
        vec![("sizes", sizes), ("samples", samples), ("gaps", gaps)]
    });
}
