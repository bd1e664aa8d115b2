//! Prefixes of all lengths, of which later ones hide parts of earlier ones, in machine code and the interpreter.

use num_bigint::BigUint;
use stateplane_interp::Interp;
use stateplane_native::Native;
use stateplane_runtime::{Engine, Entry, KeyMatch, Port};
use stateplane_switch::{Switch, SwitchConfig};

const PORTS: u16 = 64;

/// Sends frames by the longest prefix of their first `WIDTH` bits.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header h_t { bit<WIDTH> address; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { p.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action via(bit<9> port) { std.egress_spec = port; }
    table routes {
        key = { hdr.h.address : lpm; }
        actions = { via; }
        default_action = via(0);
        size = 1024;
    }
    apply { routes.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

fn switch<E: Engine>(mut engine: E, routes: &[Entry]) -> Switch<E> {
    let table = engine.state_mut().table_mut("routes").expect("the table");
    for route in routes {
        table.insert(route).expect("room");
    }
    let config = SwitchConfig {
        ports: (0..PORTS).collect(),
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).expect("the ports are right")
}

fn port_of(switch: &mut Switch<impl Engine>, frame: &[u8]) -> Port {
    switch.handle_frame(1_000, 0, frame);
    switch.poll_transmit().expect("it leaves").port
}

#[test]
fn the_longest_prefix_decides() {
    const ADDRESSES: [u64; 4] = [
        0x0a01_0203_0405_0607,
        0x0a01_02ff_0000_0000,
        0x0a02_0304_0506_0708,
        u64::MAX,
    ];
    for width in [8_u32, 16, 24, 32, 48, 64] {
        let program = stateplane_compile::text(PROGRAM.replace("WIDTH", &width.to_string()))
            .program()
            .expect("the program compiles");
        let mut routes = Vec::new();
        let mut port = 0;
        for address in &ADDRESSES[..3] {
            for length in 1..=width {
                let value = (address >> (64 - length)) << (width - length);
                let keys = vec![KeyMatch::Prefix {
                    value: BigUint::from(value),
                    length,
                }];
                if routes.iter().any(|route: &Entry| route.keys == keys) {
                    continue;
                }
                port = port % (PORTS - 1) + 1;
                routes.push(Entry {
                    keys,
                    priority: 0,
                    action: "via".to_owned(),
                    data: vec![BigUint::from(port)],
                });
            }
        }
        let interp = Interp::new(program.clone(), Default::default()).expect("it loads");
        let native = Native::new(program, Default::default()).expect("it loads");
        let (mut interp, mut native) = (switch(interp, &routes), switch(native, &routes));
        let mut ports = std::collections::BTreeSet::new();
        // Each address, and those that leave it at each bit.
        for (address, bit) in ADDRESSES
            .iter()
            .flat_map(|of| (0..=width).map(move |bit| (of, bit)))
        {
            let other = 1_u64.checked_shl(64 - bit).unwrap_or(0);
            let mut frame = (address ^ other).to_be_bytes().to_vec();
            frame.resize(60, 0);
            let expected = port_of(&mut interp, &frame);
            let found = port_of(&mut native, &frame);
            assert_eq!(found, expected, "{width} bits: {frame:02x?}");
            ports.insert(found);
        }
        assert!(ports.len() as u32 >= width.min(32), "{width}: {ports:?}");
    }
}
