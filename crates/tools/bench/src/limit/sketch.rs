//! `bench/p4/sketch.p4` by hand.

use super::Job;
use super::headers::{ETHERNET, ipv4, put_checksum};
use stateplane_runtime::hash::crc32;

const COLUMNS: usize = 65_536;
const THRESHOLD: u32 = 1000;

/// Rows of counters.
const ROWS: usize = 3;

/// Told of each write of a counter.
pub trait Watch: Default {
    /// A column is about to be read or written.
    fn before(&mut self, column: usize);

    /// The counter of a column, which held one value, holds the other.
    fn after(&mut self, column: usize, held: u32, value: u32);
}

/// Nobody is told.
#[derive(Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    #[inline]
    fn before(&mut self, _column: usize) {}

    #[inline]
    fn after(&mut self, _column: usize, _held: u32, _value: u32) {}
}

/// Sync's state of a column, in one line of the cache.
#[derive(Clone, Default)]
struct Column {
    sent: u64,
    crossed: u8,
    queued: u8,
}

/// The work that the rules of sync ask of each write of a row (rules 2, 3, 15 and 25 of
/// `docs/sync-protocol.md`), while no cut is under way and all that changed waits in the ring.
pub struct InView {
    columns: Vec<Column>,
    epoch: u8,
    ring: Vec<u32>,
    tail: u64,
    threshold: u64,
    peak: u64,
    greatest: u64,
    /// Counters that had to cross a cut.
    pub settled: u64,
}

impl Default for InView {
    fn default() -> InView {
        InView {
            columns: vec![Column::default(); COLUMNS],
            epoch: 0,
            ring: vec![0; 4 * COLUMNS],
            tail: 0,
            threshold: 0,
            peak: 0,
            greatest: 0,
            settled: 0,
        }
    }
}

impl InView {
    fn settle(&mut self, column: usize) {
        self.columns[column].crossed = self.epoch;
        self.settled += 1;
    }
}

impl Watch for InView {
    #[inline]
    fn before(&mut self, column: usize) {
        if self.columns[column].crossed != self.epoch {
            self.settle(column);
        }
    }

    #[inline]
    fn after(&mut self, column: usize, held: u32, value: u32) {
        let kept = &mut self.columns[column];
        let sent = kept.sent as u32;
        let distance = u64::from(value.wrapping_sub(sent));
        let falls = distance < u64::from(held.wrapping_sub(sent));
        if distance > self.threshold || falls {
            if kept.queued == 0 {
                kept.queued = 1;
                let place = self.tail as usize & (self.ring.len() - 1);
                self.ring[place] = column as u32;
                self.tail += 1;
            }
            if falls {
                kept.queued = 3;
            }
            self.peak = self.peak.max(distance);
            self.greatest = self.greatest.max(distance);
        }
    }
}

/// A count-min sketch of three rows.
pub struct Sketch<W = Unwatched> {
    rows: [Vec<u32>; ROWS],
    watches: [W; ROWS],
    /// Packets of heavy hitters.
    pub heavy: u64,
}

impl<W: Watch> Default for Sketch<W> {
    fn default() -> Sketch<W> {
        Sketch {
            rows: std::array::from_fn(|_| vec![0; COLUMNS]),
            watches: std::array::from_fn(|_| W::default()),
            heavy: 0,
        }
    }
}

impl<W: Watch> Job for Sketch<W> {
    #[inline]
    fn frame(&mut self, _port: u16, frame: &[u8], out: &mut Vec<u8>) -> Option<u16> {
        out.clear();
        out.extend_from_slice(frame);
        let Some(header) = ipv4(frame) else {
            return Some(1);
        };
        let mut data = [0; 9];
        data[1..].copy_from_slice(&header[12..20]);
        let mut least = u32::MAX;
        let rows = self.rows.iter_mut().zip(&mut self.watches);
        for (number, (row, watch)) in rows.enumerate() {
            data[0] = number as u8;
            let column = crc32(&data) as usize % COLUMNS;
            watch.before(column);
            let held = row[column];
            let count = held.saturating_add(1);
            row[column] = count;
            watch.after(column, held, count);
            least = least.min(count);
        }
        if least > THRESHOLD {
            self.heavy += 1;
            out[ETHERNET + 1] |= 4;
        }
        if header[0] & 0xf == 5 {
            put_checksum(out);
        }
        Some(1)
    }
}
