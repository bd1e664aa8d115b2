//! Frames of many flows at the pace of a capture, and what a program writes into them.

use crate::support::captures;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Frames that pass, one each `SPACING_US`.
pub const FRAMES: u32 = 12_000;
const SPACING_US: u32 = 500;
pub const FLOWS: u32 = 64;
const LENGTH: usize = 64;
const NUMBER: usize = 42;

/// A program that numbers frames by a register, and writes into each which program, which default
/// actions of two tables, and which entry it met. Every hundredth frame goes to the controller, and
/// every hundredth is told as a digest.
pub fn program(generation: u8) -> String {
    format!(
        r#"
#include <core.p4>
#include <v1model.p4>
const bit<9> CPU_PORT = 510;
header front_t {{ bit<272> ethernet_and_ip; bit<16> source_port; bit<48> rest; }}
header counted_t {{
    bit<32> number; bit<32> seen; bit<8> generation; bit<8> left; bit<8> right; bit<8> hit;
}}
struct headers_t {{ front_t front; counted_t counted; }}
struct metadata_t {{ bit<2> color; bit<32> rest; }}
struct number_t {{ bit<32> number; }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard) {{
    state start {{
        packet.extract(hdr.front);
        packet.extract(hdr.counted);
        transition accept;
    }}
}}
control Check(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
    register<bit<32>>(1) total;
    counter(2, CounterType.packets) passed;
    direct_counter(CounterType.packets) hits;
    direct_meter<bit<2>>(MeterType.packets) speed;
    action left(bit<8> mark) {{ hdr.counted.left = mark; }}
    action right(bit<8> mark) {{ hdr.counted.right = mark; }}
    action meet(bit<8> mark) {{ speed.read(meta.color); hdr.counted.hit = mark; }}
    table lefts {{ actions = {{ left; }} default_action = left(1); }}
    table rights {{ actions = {{ right; }} default_action = right(1); }}
    table marks {{
        key = {{ hdr.counted.hit : exact; }}
        actions = {{ meet; NoAction; }}
        default_action = NoAction();
        counters = hits;
        meters = speed;
    }}
    table flows {{
        key = {{ hdr.front.source_port : exact; }}
        actions = {{ NoAction; }}
        default_action = NoAction();
        support_timeout = true;
    }}
    apply {{
        @atomic {{
            total.read(hdr.counted.seen, 0);
            hdr.counted.seen = hdr.counted.seen + 1;
            total.write(0, hdr.counted.seen);
        }}
        passed.count(1);
        hdr.counted.generation = {generation};
        lefts.apply();
        rights.apply();
        marks.apply();
        flows.apply();
        standard.egress_spec = 0;
        if (hdr.counted.number % 100 == 4) {{
            standard.egress_spec = CPU_PORT;
        }}
        if (hdr.counted.number % 100 == 8) {{
            digest<number_t>(1, {{ hdr.counted.number }});
        }}
    }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {{
    apply {{ }}
}}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), Check(), I(), E(), Check(), D()) main;
"#
    )
}

/// Numbers of frames whose number modulo 100 is `rest`.
pub fn numbers(rest: u32) -> Vec<u32> {
    (0..FRAMES).filter(|number| number % 100 == rest).collect()
}

/// The UDP source port of a flow.
pub fn source_port(flow: u32) -> u16 {
    1000 + flow as u16
}

/// A frame, of the flow that its number gives.
pub fn frame(number: u32) -> [u8; LENGTH] {
    let mut frame = [0; LENGTH];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[23] = 17;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&source_port(number % FLOWS).to_be_bytes());
    frame[36..38].copy_from_slice(&53u16.to_be_bytes());
    frame[NUMBER..NUMBER + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Writes a capture of all frames.
pub fn write(path: &Path) {
    let frames = (0..FRAMES).map(|number| (number * SPACING_US, frame(number)));
    fs::write(path, captures::of(frames)).unwrap();
}

/// A frame that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// The program's count: the order in which the frames of all workers passed.
    pub seen: u32,
    pub number: u32,
    pub generation: u8,
    pub left: u8,
    pub right: u8,
    pub hit: u8,
}

/// The contents of a frame.
pub fn parse(frame: &[u8]) -> Came {
    let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
    Came {
        number: word(NUMBER),
        seen: word(NUMBER + 4),
        generation: frame[NUMBER + 8],
        left: frame[NUMBER + 9],
        right: frame[NUMBER + 10],
        hit: frame[NUMBER + 11],
    }
}

/// The frames of a capture that the switch wrote, in the order in which they passed, once there are
/// `count`.
pub fn read(path: &Path, count: usize) -> Vec<Came> {
    let end = Instant::now() + Duration::from_secs(20);
    let record = 16 + LENGTH;
    let mut bytes = Vec::new();
    while bytes.len() < 24 + count * record && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
        bytes = fs::read(path).unwrap();
    }
    let records = bytes[24..].chunks_exact(record);
    let mut frames: Vec<Came> = records.map(|record| parse(&record[16..])).collect();
    assert_eq!(frames.len(), count, "frames that came back");
    frames.sort_unstable_by_key(|came| came.seen);
    frames
}
