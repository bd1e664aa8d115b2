//! Flows of a switch that had no term for a while: each asks for its lease again with its next
//! packet, and all of these packets come at full rate.

use stateplane_apps::app;
use stateplane_apps::measured::{Packet, Place};
use stateplane_bench::chain::{Chain, store_of};
use stateplane_bench::switch::{Bench, compile_with};
use stateplane_bench::{Report, frame, timed};
use stateplane_native::Native;

const APPLICATION: &str = "firewall";

const CONFIG: &str = concat!(
    include_str!("../../../../../apps/firewall/switch.toml"),
    include_str!("../../../../../lab/apps/routes.toml"),
    include_str!("../../../../../lab/apps/replication.toml"),
);

/// Flows that ask, and how many of them have to be back: the firewall drops what no connection begins
/// with.
const FLOWS: u64 = 66_000;
const BACK: u64 = 65_536;

/// Buckets of flows, with room for all.
const BUCKETS: (&str, &str) = ("REPLICATION_BUCKETS", "32768");

/// Repetitions, of which the slowest counts.
const ROUNDS: u32 = 5;

/// ms within which all flows are to be back.
const NEEDED_MS: f64 = 1000.0;

pub fn run(report: &mut Report) {
    let program = compile_with("apps/firewall/firewall.p4", &[BUCKETS]);
    let native = Native::new(program, Default::default()).expect("the program loads");
    let mut switch = Bench::new(native, &CONFIG.replace("${id}", "1"));
    let mut chain = Chain::new(&store_of(APPLICATION), 3);
    let traffic = app(APPLICATION).and_then(|app| app.traffic());
    let traffic = traffic.expect("measuring traffic");
    let frames: Vec<Vec<u8>> = (0..FLOWS)
        .map(|flow| {
            let datagram = traffic.datagram(&Packet {
                place: Place { flow, packet: 1 },
                number: flow,
                padding: 0,
                updates: 0,
            });
            frame::datagram(datagram.source, datagram.destination, &datagram.payload)
        })
        .collect();
    let known = switch.converse(&mut chain, &frames) as u64;
    assert!(known >= BACK, "{known} flows are known");
    let mut slowest = 0.0_f64;
    for _ in 0..ROUNDS {
        switch.lapse();
        // A request of the very moment of a lapse does not count.
        switch.now += 1_000;
        let back = timed(|| switch.converse(&mut chain, &frames) as u64);
        assert_eq!(back.items, known, "the packet of each flow leaves");
        slowest = slowest.max(back.spent.as_secs_f64() * 1e3);
    }
    report.limit(
        "65,536 flows of a lapsed term, all leases",
        slowest,
        "a second",
        NEEDED_MS,
    );
}
