//! FlowRadar: a Bloom filter of flows, and sub-tables of cells with the XOR of their flows, the
//! number of flows, and their packets.
//!
//! The cells of a moment are decoded together, so that only exact readings say which flows there
//! were.

use crate::interval::Interval;
use crate::key::Key;
use crate::shape::{CELL, Family, Shape};
use crate::sketch::Sketch;
use std::collections::BTreeMap;

/// Functions of the Bloom filter, behind those of the sub-tables.
const FILTER_FUNCTIONS: u32 = 3;

/// Bits of a cell's packets, below its number of flows.
const PACKET_BITS: u32 = 40;
const PACKETS: u64 = (1 << PACKET_BITS) - 1;

/// The first words of a cell that a key is XORed into.
fn words(Key([source, destination, ports, protocol]): Key) -> [u64; 2] {
    let pair = |upper: u32, lower: u32| u64::from(upper) << 32 | u64::from(lower);
    [pair(source, destination), pair(ports, protocol)]
}

fn key([first, second]: [u64; 2]) -> Key {
    Key([first >> 32, first, second >> 32, second].map(|word| word as u32))
}

fn cells(shape: Shape, key: Key) -> impl Iterator<Item = usize> {
    (0..shape.rows).map(move |row| {
        let column = shape.hash(row).column(key.0, shape.column_bits);
        row as usize * shape.columns() + column
    })
}

pub(crate) fn update(sketch: &mut Sketch, key: Key) {
    let shape = sketch.shape;
    let values = &mut sketch.parts[0].values;
    let filter = shape.rows as usize * shape.columns() * CELL;
    let mut new = false;
    for function in shape.rows..shape.rows + FILTER_FUNCTIONS {
        let place = shape.hash(function).column(key.0, shape.part_bits + 6);
        let word = &mut values[filter + (place >> 6)];
        let bit = 1 << (place & 63);
        new |= *word & bit == 0;
        *word |= bit;
    }
    for cell in cells(shape, key) {
        let count = &mut values[cell * CELL + 2];
        *count = *count & !PACKETS | (*count + 1) & PACKETS;
        if new {
            *count = count.wrapping_add(1 << PACKET_BITS);
            for (at, word) in words(key).into_iter().enumerate() {
                values[cell * CELL + at] ^= word;
            }
        }
    }
}

/// Each cell of a flow counted all of its packets.
fn most(sketch: &Sketch, key: Key) -> u64 {
    let part = &sketch.parts[0];
    if !part.is_exact() {
        return u64::MAX;
    }
    let counts = cells(sketch.shape, key).map(|cell| part.at(cell * CELL + 2) & PACKETS);
    counts.min().unwrap_or(u64::MAX)
}

pub(crate) fn query(sketch: &Sketch, key: Key) -> Interval {
    match sketch.decode() {
        Some(decoded) => decoded.query(sketch, key),
        None => Interval::sure(0, most(sketch, key), 0),
    }
}

/// A flow that was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its packets.
    pub packets: u64,
    /// True if all cells that it is connected with came out even: the number is right.
    pub even: bool,
}

/// The flows of a FlowRadar sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The flows.
    pub flows: BTreeMap<Key, Flow>,
    /// True if nothing is left in any cell: these are all flows. Otherwise there were too many, or
    /// the Bloom filter took a new flow for an old one, whose packets are in cells of others.
    pub complete: bool,
    /// By cell, true if it and all that flows connect it with came out even.
    even: Vec<bool>,
}

impl Decoded {
    /// The flows that were found, in order.
    pub fn keys(&self) -> Vec<Key> {
        self.flows.keys().copied().collect()
    }

    /// The count of a flow of the sketch that was decoded.
    pub fn query(&self, sketch: &Sketch, key: Key) -> Interval {
        let found = self.flows.get(&key);
        let even = cells(sketch.shape, key).all(|cell| self.even[cell]);
        if even {
            return Interval::exact(found.map_or(0, |flow| flow.packets));
        }
        let estimate = found.map_or(0, |flow| flow.packets);
        Interval::sure(0, most(sketch, key), estimate)
    }
}

/// Cells while they are decoded.
struct Cells {
    shape: Shape,
    words: Vec<[u64; 2]>,
    flows: Vec<u64>,
    packets: Vec<u64>,
    /// Another cell that flows connect it with, up to one that is its own.
    joined: Vec<usize>,
}

impl Cells {
    fn new(sketch: &Sketch) -> Cells {
        let shape = sketch.shape;
        let count = shape.rows as usize * shape.columns();
        let (all, _) = sketch.parts[0].values[..count * CELL].as_chunks::<CELL>();
        Cells {
            shape,
            words: all.iter().map(|cell| [cell[0], cell[1]]).collect(),
            flows: all.iter().map(|cell| cell[2] >> PACKET_BITS).collect(),
            packets: all.iter().map(|cell| cell[2] & PACKETS).collect(),
            joined: (0..count).collect(),
        }
    }

    /// The flow of a cell that has one alone.
    fn pure(&self, cell: usize) -> Option<Key> {
        let key = key(self.words[cell]);
        let own = self.flows[cell] == 1 && cells(self.shape, key).any(|it| it == cell);
        own.then_some(key)
    }

    fn root(&mut self, mut cell: usize) -> usize {
        while self.joined[cell] != cell {
            self.joined[cell] = self.joined[self.joined[cell]];
            cell = self.joined[cell];
        }
        cell
    }

    fn take(&mut self, key: Key, packets: u64) {
        let places: Vec<usize> = cells(self.shape, key).collect();
        let first = self.root(places[0]);
        for cell in places {
            for (own, word) in self.words[cell].iter_mut().zip(words(key)) {
                *own ^= word;
            }
            self.flows[cell] = self.flows[cell].wrapping_sub(1);
            self.packets[cell] = self.packets[cell].wrapping_sub(packets) & PACKETS;
            let root = self.root(cell);
            self.joined[root] = first;
        }
    }

    fn is_empty(&self, cell: usize) -> bool {
        self.words[cell] == [0; 2] && self.flows[cell] == 0 && self.packets[cell] == 0
    }
}

impl Sketch {
    /// All flows of an exact FlowRadar sketch; `None` of others.
    pub fn decode(&self) -> Option<Decoded> {
        if self.shape.family != Family::FlowRadar || !self.parts[0].is_exact() {
            return None;
        }
        let mut cells_left = Cells::new(self);
        let count = cells_left.flows.len();
        let mut open: Vec<usize> = (0..count).collect();
        let mut found: BTreeMap<Key, u64> = BTreeMap::new();
        while let Some(cell) = open.pop() {
            let Some(key) = cells_left.pure(cell) else {
                continue;
            };
            let packets = cells_left.packets[cell];
            if found.insert(key, packets).is_some() {
                // A key twice: the cells are none of this program's, and stay uneven.
                break;
            }
            cells_left.take(key, packets);
            open.extend(cells(self.shape, key));
        }
        let mut even_roots = vec![true; count];
        let mut complete = true;
        for cell in 0..count {
            let root = cells_left.root(cell);
            let empty = cells_left.is_empty(cell);
            even_roots[root] &= empty;
            complete &= empty;
        }
        let even: Vec<bool> = (0..count)
            .map(|cell| even_roots[cells_left.root(cell)])
            .collect();
        let flow = |key: Key, packets| Flow {
            packets,
            even: cells(self.shape, key).all(|cell| even[cell]),
        };
        Some(Decoded {
            flows: found
                .into_iter()
                .map(|(key, packets)| (key, flow(key, packets)))
                .collect(),
            complete,
            even,
        })
    }
}
