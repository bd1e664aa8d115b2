//! `bench/p4/acl.p4` by hand: tuple-space search.

use super::Job;
use super::headers::{ETHERNET, TCP, UDP, be16, be32, ipv4, spread};
use rustc_hash::FxHashMap;

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

struct Tuple {
    mask: Key,
    best: u32,
    rules: FxHashMap<u64, Vec<usize>>,
}

/// A list of rules.
pub struct Acl {
    rules: Vec<(Key, Rule)>,
    tuples: Vec<Tuple>,
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

#[inline]
fn hash(key: Key) -> u64 {
    spread(spread(key as u64) ^ (key >> 64) as u64)
}

impl Acl {
    /// From rules whose values are zero where their masks are.
    pub fn new(rules: &[Rule]) -> Acl {
        let mut tuples: Vec<Tuple> = Vec::new();
        let keyed: Vec<(Key, Rule)> = rules
            .iter()
            .map(|rule| (key(rule.fields.map(|(value, _)| value)), *rule))
            .collect();
        for (index, (value, rule)) in keyed.iter().enumerate() {
            let mask = key(rule.fields.map(|(_, mask)| mask));
            let found = tuples.iter().position(|tuple| tuple.mask == mask);
            let at = found.unwrap_or_else(|| {
                tuples.push(Tuple {
                    mask,
                    best: 0,
                    rules: FxHashMap::default(),
                });
                tuples.len() - 1
            });
            let tuple = &mut tuples[at];
            tuple.best = tuple.best.max(rule.priority);
            let same = tuple.rules.entry(hash(*value)).or_default();
            same.push(index);
            same.sort_by_key(|&index| std::cmp::Reverse(keyed[index].1.priority));
        }
        tuples.sort_by_key(|tuple| std::cmp::Reverse(tuple.best));
        Acl {
            hits: vec![0; rules.len()],
            rules: keyed,
            tuples,
        }
    }

    #[inline]
    fn find(&self, key: Key) -> Option<usize> {
        let mut found: Option<usize> = None;
        for tuple in &self.tuples {
            let best = found.map_or(0, |found| self.rules[found].1.priority);
            if best >= tuple.best {
                break;
            }
            let masked = key & tuple.mask;
            let Some(rules) = tuple.rules.get(&hash(masked)) else {
                continue;
            };
            let first = rules.iter().find(|&&rule| self.rules[rule].0 == masked);
            if let Some(&rule) = first
                && self.rules[rule].1.priority > best
            {
                found = Some(rule);
            }
        }
        found
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
        let port = self.rules[rule].1.port?;
        out.clear();
        out.extend_from_slice(frame);
        Some(port)
    }
}
