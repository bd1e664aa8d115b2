//! `bench/p4/sketch.p4` by hand.

use super::Job;
use super::headers::{ETHERNET, ipv4, put_checksum};
use stateplane_runtime::hash::crc32;

const COLUMNS: usize = 65_536;
const THRESHOLD: u32 = 1000;

/// A count-min sketch of three rows.
pub struct Sketch {
    rows: [Vec<u32>; 3],
    /// Packets of heavy hitters.
    pub heavy: u64,
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch {
            rows: std::array::from_fn(|_| vec![0; COLUMNS]),
            heavy: 0,
        }
    }
}

impl Job for Sketch {
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
        for (number, row) in self.rows.iter_mut().enumerate() {
            data[0] = number as u8;
            let column = crc32(&data) as usize % COLUMNS;
            let count = row[column].saturating_add(1);
            row[column] = count;
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
