//! Cost of a store's state on a disk (`docs/durability.md`): chains of 1 and 3 with `data`, which
//! answer when all replicas have synced, beside the same chains in memory, and beside a loop that
//! appends as many records as there are requests under way and syncs them, `append-fsync`. All lie
//! in one folder of `target`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use stateplane_bench::loopback::{Client, ROUND, Store};
use stateplane_bench::{Report, Sample};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// Number of concurrent requests.
const CONCURRENCY: usize = 64;

/// Bytes of one datagram's entries between replicas.
const PACKED: usize = 1400;

/// Bytes of a record, as many as the store writes for a request of this bench.
const RECORD: usize = 180;

/// A file that grows.
struct Appends {
    file: File,
    group: Vec<u8>,
    records: u64,
}

impl Appends {
    /// Appends `records` records at once to a new file at `path`.
    fn new(path: &Path, records: u64) -> io::Result<Appends> {
        Ok(Appends {
            file: File::create(path)?,
            group: vec![7; RECORD * records as usize],
            records,
        })
    }

    /// Appends for half a second.
    fn round(&mut self) -> Sample {
        let start = Instant::now();
        let mut items = 0;
        while start.elapsed() < ROUND {
            self.file.write_all(&self.group).expect("room on the disk");
            self.file.sync_data().expect("a disk");
            items += self.records;
        }
        Sample {
            items,
            spent: start.elapsed(),
        }
    }
}

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/bench/disk");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let mut report = Report::new("durability", "requests/s");
    for length in [1, 3] {
        let memory = Store::start(length, PACKED);
        let store = Store::start_on_disk(length, PACKED, &folder.join(length.to_string()));
        let mut ours = Client::of_store(store.head(), CONCURRENCY);
        let mut theirs = Client::of_store(memory.head(), CONCURRENCY);
        let name = format!("write, chain of {length}, on disk");
        report.compare(&name, || ours.round(), "in-memory", || theirs.round());
        for (percentile, share) in [("p50", 0.5), ("p99", 0.99)] {
            let (value, against) = (ours.latency(share), theirs.latency(share));
            let name = format!("{name}, {percentile}");
            report.measure(&name, "µs", value, "in-memory", against);
        }
        let mut appends = Appends::new(&folder.join("appends"), CONCURRENCY as u64)?;
        report.compare(&name, || ours.round(), "append-fsync", || appends.round());
    }
    let _ = std::fs::remove_dir_all(&folder);
    report.finish()
}
