//! `bench/p4/acl.p4` by hand: bit vectors for the bytes of the key.

use super::Job;
use super::headers::{ETHERNET, TCP, UDP, be16, be32, ipv4};

/// Addresses, protocol and ports, in 104 bits.
type Key = u128;

/// A rule on the five-tuple.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Source, destination, protocol, source port, destination port: values and masks.
    pub fields: [(u32, u32); 5],
    /// The greatest of those that match wins.
    pub priority: u32,
    /// The port to permit to; `None` denies.
    pub port: Option<u16>,
}

/// Bytes of a key.
const BYTES: usize = 13;

/// A list of rules.
pub struct Acl {
    rules: Vec<Rule>,
    /// Words of a vector.
    words: usize,
    /// The rules that each value of each byte of the key fits, best first.
    vectors: Vec<u64>,
    /// Hits of each rule.
    pub hits: Vec<u64>,
}

fn key(fields: [u32; 5]) -> Key {
    let [source, destination, protocol, source_port, destination_port] = fields;
    u128::from(source) << 72
        | u128::from(destination) << 40
        | u128::from(protocol) << 32
        | u128::from(source_port) << 16
        | u128::from(destination_port)
}

impl Acl {
    /// From rules whose values are zero where their masks are.
    pub fn new(rules: &[Rule]) -> Acl {
        let mut rules = rules.to_vec();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        let words = rules.len().div_ceil(64);
        let mut vectors = vec![0; BYTES * 256 * words];
        for (column, rule) in rules.iter().enumerate() {
            let value = key(rule.fields.map(|(value, _)| value)).to_le_bytes();
            let mask = key(rule.fields.map(|(_, mask)| mask)).to_le_bytes();
            for byte in 0..BYTES {
                for fits in (0..=255u8).filter(|fits| fits & mask[byte] == value[byte]) {
                    let at = (byte * 256 + usize::from(fits)) * words + column / 64;
                    vectors[at] |= 1 << (column % 64);
                }
            }
        }
        Acl {
            hits: vec![0; rules.len()],
            rules,
            words,
            vectors,
        }
    }

    /// Bytes that its rules take.
    pub fn bytes(&self) -> usize {
        self.vectors.len() * 8 + self.rules.len() * size_of::<Rule>()
    }

    #[inline]
    fn find(&self, key: Key) -> Option<usize> {
        let bytes = key.to_le_bytes();
        let mut from = 0;
        while from < self.words {
            let size = (self.words - from).min(8);
            let mut fits = [u64::MAX; 8];
            for (byte, value) in bytes[..BYTES].iter().enumerate() {
                let at = (byte * 256 + usize::from(*value)) * self.words + from;
                for (fits, vector) in fits.iter_mut().zip(&self.vectors[at..at + size]) {
                    *fits &= vector;
                }
            }
            let words = fits[..size].iter().enumerate();
            let mut hits = words.filter(|(_, word)| **word != 0);
            if let Some((index, word)) = hits.next() {
                return Some((from + index) * 64 + word.trailing_zeros() as usize);
            }
            from += size;
        }
        None
    }
}

impl Job for Acl {
    #[inline]
    fn frame(&mut self, _port: u16, frame: &[u8], out: &mut Vec<u8>) -> Option<u16> {
        let header = ipv4(frame)?;
        let whole = header[0] & 0xf == 5 && be16(header, 6) & 0x1fff == 0;
        let needed = match header[9] {
            TCP => 20,
            UDP => 8,
            _ => 0,
        };
        let transport = &frame[ETHERNET + 20..];
        let (source_port, destination_port) = if whole && needed > 0 && transport.len() >= needed {
            (be16(transport, 0), be16(transport, 2))
        } else {
            (0, 0)
        };
        let rule = self.find(key([
            be32(header, 12),
            be32(header, 16),
            u32::from(header[9]),
            u32::from(source_port),
            u32::from(destination_port),
        ]))?;
        self.hits[rule] += 1;
        let port = self.rules[rule].port?;
        out.clear();
        out.extend_from_slice(frame);
        Some(port)
    }
}
