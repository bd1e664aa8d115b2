//! Packets per second of programs on the interpreter, in the sans-IO switch, against
//! copying the same frames once through a buffer, which every switch must do.

use stateplane_bench::chain::{Chain, store_of};
use stateplane_bench::switch::{Bench, compile, replies};
use stateplane_bench::{Report, Sample, copy, frame, timed};
use stateplane_interp::Interp;
use std::net::{Ipv4Addr, SocketAddrV4};

const NAT_SWITCH: &str = concat!(
    include_str!("../../../../apps/nat/switch.toml"),
    include_str!("../../../../lab/nat/switch.toml"),
);
const COUNTER_STORE: &str = include_str!("store/counter.toml");
const COUNTER_SWITCH: &str = include_str!("counter-switch.toml");

const FLOWS: u16 = 64;
/// Frames of each flow in one sample.
const TURNS: usize = 16;

fn interp(program: &str) -> Interp {
    Interp::new(compile(program), Default::default()).expect("the program loads")
}

/// A segment of each flow from the inside to the outside.
fn frames(length: usize) -> Vec<Vec<u8>> {
    let destination = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 5201);
    (0..FLOWS)
        .map(|flow| SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 2), 40_000 + flow))
        .map(|source| frame::tcp(source, destination, length))
        .collect()
}

fn copied(frames: &[Vec<u8>]) -> impl FnMut() -> Sample {
    let mut buffer = vec![0; 2048];
    move || {
        timed(|| {
            let turns = std::iter::repeat_n(frames, TURNS * 64).flatten();
            copy(turns.map(Vec::as_slice), &mut buffer)
        })
    }
}

/// Frames that a switch passes from port 0 to port 1 at once.
fn passing<'a>(bench: &'a mut Bench<Interp>, frames: &'a [Vec<u8>]) -> impl FnMut() -> Sample + 'a {
    move || {
        timed(|| {
            let mut passed = 0;
            for frame in std::iter::repeat_n(frames, TURNS).flatten() {
                bench.frame(0, frame, |port, _| passed += u64::from(port == 1));
            }
            assert_eq!(passed, (TURNS * frames.len()) as u64, "every frame passes");
            passed
        })
    }
}

/// The NAT of the demonstration, while it has leases.
fn nat(report: &mut Report, length: usize) {
    let frames = frames(length);
    let mut chain = Chain::new(&store_of("nat"), 3);
    let mut bench = Bench::new(interp("apps/nat/nat.p4"), &NAT_SWITCH.replace("${id}", "1"));
    let passed = bench.converse(&mut chain, &frames);
    assert_eq!(passed, frames.len(), "every flow gets its lease");
    report.compare(
        &format!("nat, {length} B, lease held"),
        passing(&mut bench, &frames),
        "copying the frame",
        copied(&frames),
    );
}

/// A write: the packet, the store's answer, and the copy that waits for it. The store
/// itself is not counted.
fn counter(report: &mut Report, length: usize) {
    let frames = frames(length);
    let mut chain = Chain::new(COUNTER_STORE, 1);
    let mut bench = Bench::new(interp("apps/counter/counter.p4"), COUNTER_SWITCH);
    assert_eq!(bench.converse(&mut chain, &frames), frames.len());
    let work = || {
        let mut requests = Vec::with_capacity(frames.len());
        let first = timed(|| {
            for frame in &frames {
                bench.frame(0, frame, |_, bytes| requests.push(bytes.to_vec()));
            }
            0
        });
        let replies = replies(&mut chain, bench.now, &requests);
        let second = timed(|| {
            let mut passed = 0;
            for reply in &replies {
                bench.frame(2, reply, |port, _| passed += u64::from(port == 1));
            }
            // Longer than the first hold.
            bench.idle(bench.now + 21_000, &mut chain);
            assert_eq!(passed, frames.len() as u64, "every output is released");
            passed
        });
        Sample {
            items: second.items,
            spent: first.spent + second.spent,
        }
    };
    report.compare(
        &format!("counter, {length} B, each packet writes"),
        work,
        "copying the frame",
        copied(&frames),
    );
}

fn cable(report: &mut Report, length: usize) {
    let frames = frames(length);
    let mut bench = Bench::new(interp("docs/examples/cable.p4"), "");
    report.compare(
        &format!("cable, {length} B"),
        passing(&mut bench, &frames),
        "copying the frame",
        copied(&frames),
    );
}

fn main() -> std::io::Result<()> {
    let mut report = Report::new("interp", "packets/s");
    nat(&mut report, 64);
    nat(&mut report, 1514);
    counter(&mut report, 64);
    cable(&mut report, 64);
    cable(&mut report, 1514);
    report.finish()
}
