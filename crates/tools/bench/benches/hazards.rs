//! Packets per second of the model of state that takes several cycles, on one core, against
//! drawing the same packets, which every run must do.

use stateplane_bench::{Report, Sample, timed};
use stateplane_hazards::{Depths, HazardError, Key, Popularity, Queues, Sizes, Study, Traffic};
use std::hint::black_box;
use std::io::{Error, Result};
use std::net::Ipv4Addr;

const PACKETS: u64 = 1_000_000;
const SOURCES: u32 = 50_000;
const DEPTH: u32 = 10;

/// Sizes of a backbone and sources by Zipf's law: the first has as many packets as the `n`-th
/// times `n`.
fn traffic() -> std::result::Result<Traffic, HazardError> {
    let points = [(40.0, 0.3), (1400.0, 0.5), (1499.0, 0.8), (1500.0, 1.0)];
    let counts = (1..=SOURCES).map(|rank| (Ipv4Addr::from(rank), u64::from(1_000_000 / rank)));
    Ok(Traffic::Drawn {
        sizes: Sizes::new(points.to_vec())?,
        popularity: Some(Popularity::new(&counts.collect::<Vec<_>>())?),
        packets: PACKETS,
    })
}

fn model<'a>(study: &'a Study, traffic: &'a Traffic) -> impl FnMut() -> Sample + 'a {
    move || {
        timed(|| {
            let outcome = study.run(traffic).expect("the model runs");
            black_box(outcome).packets
        })
    }
}

fn drawing<'a>(study: &'a Study, traffic: &'a Traffic) -> impl FnMut() -> Sample + 'a {
    move || {
        timed(|| {
            let packets = study.packets(traffic).expect("the traffic is drawn");
            packets.fold(0, |count, packet| {
                black_box(packet);
                count + 1
            })
        })
    }
}

fn main() -> Result<()> {
    let mut report = Report::new("hazards", "packets/s");
    let failed = |error: HazardError| Error::other(error.to_string());
    let traffic = traffic().map_err(failed)?;
    let unlocked = Study {
        state: Key::Source,
        ..Study::new(Depths::one(DEPTH).map_err(failed)?).map_err(failed)?
    };
    let locked = Study {
        lock: Some(Key::Source),
        lock_values: Some(16),
        queues: Queues {
            count: 4,
            capacity: Some(64),
        },
        ..unlocked.clone()
    };
    for (name, study) in [("no lock", unlocked), ("4 queues, 16 locks", locked)] {
        report.compare(
            name,
            model(&study, &traffic),
            "drawing the packets",
            drawing(&study, &traffic),
        );
    }
    report.finish()
}
