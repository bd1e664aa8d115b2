//! A plain loop that appends to a file and writes it through: the limit of whatever keeps
//! on a disk what it answers.

use stateplane_bench::Sample;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time of one round.
const ROUND: Duration = Duration::from_millis(500);
/// Bytes of a record, as many as the store writes for a request of this bench.
const RECORD: usize = 180;

/// A file that grows.
pub struct Appends {
    file: File,
    group: Vec<u8>,
    records: u64,
}

impl Appends {
    /// Appends `records` records at once to a new file at `path`.
    pub fn new(path: &Path, records: u64) -> io::Result<Appends> {
        Ok(Appends {
            file: File::create(path)?,
            group: vec![7; RECORD * records as usize],
            records,
        })
    }

    /// Appends for half a second.
    pub fn round(&mut self) -> Sample {
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
