//! Tables as generated code looks them up.
//!
//! The entries that the control plane wrote, in a form made for their match kinds: a
//! hash for exact keys, a trie for one prefix, intervals for one range, and for all
//! others a hash for each combination of masks in use. Each is kept in step with the
//! [`Table`] from the changes that it remembers.

mod exact;
mod intervals;
mod prefixes;
mod tuples;

use exact::Exact;
use intervals::Intervals;
use prefixes::Prefixes;
use stateplane_ir::{Direction, MatchKind, Program};
use stateplane_target::bits::word_count;
use stateplane_target::layout::scalar_bits;
use stateplane_target::table::Changes;
use stateplane_target::{KeyInfo, Table};
use tuples::Tuples;

/// Bytes of a record before the action's data.
const RECORD_HEAD: usize = 8;

/// How the record of an entry is laid out: the action's position, 32 bits, and from
/// byte 8 on its data, each in 8 bytes or in 16 for every 128 bits.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Bytes from one record to the next.
    pub(crate) stride: usize,
    /// Where each action's data begin, in bytes.
    pub(crate) data: Vec<Vec<usize>>,
    /// Widths of these data.
    widths: Vec<Vec<u32>>,
}

impl Shape {
    pub(crate) fn of(program: &Program, def: &stateplane_ir::Table) -> Shape {
        let mut stride = RECORD_HEAD;
        let (mut data, mut widths) = (Vec::new(), Vec::new());
        for listed in &def.actions {
            let params = program.actions[listed.action.index()].params.iter();
            let params = params.filter(|param| param.direction == Direction::Data);
            let action_widths: Vec<u32> = params
                .map(|param| scalar_bits(program.vars[param.var.index()].ty))
                .collect();
            let mut at = RECORD_HEAD;
            let mut offsets = Vec::new();
            for width in &action_widths {
                offsets.push(at);
                at += data_bytes(*width);
            }
            stride = stride.max(at);
            data.push(offsets);
            widths.push(action_widths);
        }
        Shape {
            stride: stride.next_multiple_of(8),
            data,
            widths,
        }
    }

    /// Writes an action and the words of its data.
    fn write(&self, record: &mut [u8], action: u32, words: &[u128]) {
        record[..4].copy_from_slice(&action.to_ne_bytes());
        let mut rest = words;
        let offsets = self.data[action as usize].iter();
        for (&offset, &width) in offsets.zip(&self.widths[action as usize]) {
            let (value, behind) = rest.split_at(word_count(width));
            rest = behind;
            for (index, word) in value.iter().enumerate() {
                let bytes = word.to_ne_bytes();
                let at = offset + index * bytes.len();
                let length = data_bytes(width).min(bytes.len());
                record[at..at + length].copy_from_slice(&bytes[..length]);
            }
        }
    }
}

fn data_bytes(width: u32) -> usize {
    if width <= 64 {
        8
    } else {
        word_count(width) * 16
    }
}

/// The bits of all keys one after the other, the first in the highest bits, in words of
/// 64 bits from the lowest on.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    /// Words.
    words: usize,
    parts: Vec<KeyPart>,
}

#[derive(Clone, Copy, Debug)]
struct KeyPart {
    /// Lowest bit among those of all keys.
    lo: u32,
    width: u32,
    range: bool,
    /// First of its words among those of the table's.
    offset: usize,
}

impl KeyShape {
    fn of(keys: &[KeyInfo]) -> KeyShape {
        let mut lo: u32 = keys.iter().map(|key| key.width).sum();
        let words = lo.div_ceil(64) as usize;
        let mut offset = 0;
        let parts = keys.iter().map(|key| {
            lo -= key.width;
            let part = KeyPart {
                lo,
                width: key.width,
                range: key.kind == MatchKind::Range,
                offset,
            };
            offset += word_count(key.width);
            part
        });
        KeyShape {
            parts: parts.collect(),
            words,
        }
    }

    /// Packs the words of all keys, those of ranges only if asked for.
    fn pack(&self, words: &[u128], ranges: bool) -> Box<[u64]> {
        let mut packed = vec![0u64; self.words];
        for part in self.parts.iter().filter(|part| ranges || !part.range) {
            let mut done = 0;
            while done < part.width {
                let size = (part.width - done).min(64);
                let word = words[part.offset + (done / 128) as usize];
                let value = (word >> (done % 128)) as u64 & low_ones(size);
                let at = part.lo + done;
                let (index, shift) = ((at / 64) as usize, at % 64);
                packed[index] |= value << shift;
                if shift + size > 64 {
                    packed[index + 1] |= value >> (64 - shift);
                }
                done += size;
            }
        }
        packed.into_boxed_slice()
    }
}

fn low_ones(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    }
}

/// How entries are found. Found entries are numbered from 1 on; 0 is none.
#[derive(Debug)]
enum Index {
    Exact(Exact),
    Prefixes(Prefixes),
    Intervals(Intervals),
    Tuples(Tuples),
}

/// What generated code needs of a table.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct View {
    /// The table.
    pub(crate) lookup: *const Lookup,
    /// Records: first the default action's, then those of the entries.
    pub(crate) records: *const u8,
}

/// A table as generated code looks it up.
#[derive(Debug)]
pub(crate) struct Lookup {
    shape: Shape,
    key: KeyShape,
    index: Index,
    /// Bytes of the records, in words for their alignment.
    records: Vec<u64>,
    version: u64,
}

impl Lookup {
    pub(crate) fn new(program: &Program, def: &stateplane_ir::Table, table: &Table) -> Lookup {
        let key = KeyShape::of(table.keys());
        let mut lookup = Lookup {
            shape: Shape::of(program, def),
            index: index_for(table.keys(), &key),
            key,
            records: Vec::new(),
            version: 0,
        };
        lookup.rebuild(table);
        lookup
    }

    /// Takes over what changed in the table.
    pub(crate) fn update(&mut self, table: &Table) {
        if table.version() == self.version {
            return;
        }
        let Changes::Some(positions) = table.changes(self.version) else {
            return self.rebuild(table);
        };
        self.make_room(table);
        for &position in positions {
            self.renew(table, position);
        }
        self.finish(table);
    }

    fn rebuild(&mut self, table: &Table) {
        self.index = index_for(table.keys(), &self.key);
        self.make_room(table);
        for position in 0..table.positions() {
            self.renew(table, position);
        }
        self.finish(table);
    }

    fn make_room(&mut self, table: &Table) {
        let records = table.positions() as usize + 1;
        self.records.resize(records * self.shape.stride / 8, 0);
    }

    fn record(&mut self, number: usize) -> &mut [u64] {
        let words = self.shape.stride / 8;
        &mut self.records[number * words..(number + 1) * words]
    }

    fn write(&mut self, number: usize, action: u32, data: &[u128]) {
        let mut bytes = vec![0; self.shape.stride];
        self.shape.write(&mut bytes, action, data);
        for (word, bytes) in self.record(number).iter_mut().zip(bytes.chunks_exact(8)) {
            let mut array = [0; 8];
            array.copy_from_slice(bytes);
            *word = u64::from_ne_bytes(array);
        }
    }

    /// Makes the entry at a position what it is in the table.
    fn renew(&mut self, table: &Table, position: u32) {
        let number = position + 1;
        match &mut self.index {
            Index::Exact(index) => index.remove(number),
            Index::Prefixes(index) => index.remove(number),
            Index::Intervals(index) => index.remove(number),
            Index::Tuples(index) => index.remove(number),
        }
        let Some(rule) = table.rule(position) else {
            return;
        };
        match &mut self.index {
            Index::Exact(index) => index.insert(number, &self.key.pack(rule.low, true)),
            Index::Prefixes(index) => {
                let length = rule.high.iter().map(|word| word.count_ones()).sum();
                index.insert(number, rule.low[0], length);
            }
            Index::Intervals(index) => index.insert(number, &rule),
            Index::Tuples(index) => index.insert(number, &self.key, &rule),
        }
        self.write(number as usize, rule.action, rule.data);
    }

    fn finish(&mut self, table: &Table) {
        let (action, data) = table.action(None);
        self.write(0, action, data);
        if let Index::Intervals(index) = &mut self.index {
            index.build();
        }
        self.version = table.version();
    }

    pub(crate) fn view(&self) -> View {
        View {
            lookup: self,
            records: self.records.as_ptr().cast(),
        }
    }

    /// Number of the entry for a key of at most 64 bits.
    pub(crate) fn find_1(&self, key: u64) -> u32 {
        match &self.index {
            Index::Exact(index) => index.find([key]),
            Index::Prefixes(index) => index.find(u128::from(key)),
            Index::Intervals(index) => index.find(u128::from(key)),
            Index::Tuples(index) => index.find(&self.key, &[key]),
        }
    }

    /// Number of the entry for a key of at most 128 bits.
    pub(crate) fn find_2(&self, low: u64, high: u64) -> u32 {
        let number = || u128::from(low) | u128::from(high) << 64;
        match &self.index {
            Index::Exact(index) => index.find([low, high]),
            Index::Prefixes(index) => index.find(number()),
            Index::Intervals(index) => index.find(number()),
            Index::Tuples(index) => index.find(&self.key, &[low, high]),
        }
    }

    /// Words of a key.
    pub(crate) fn key_words(&self) -> usize {
        self.key.words
    }

    /// Number of the entry for a key of more than 128 bits.
    pub(crate) fn find(&self, key: &[u64]) -> u32 {
        match &self.index {
            Index::Exact(index) => index.find_long(key),
            Index::Tuples(index) => index.find(&self.key, key),
            // Their keys have at most 128 bits.
            Index::Prefixes(_) | Index::Intervals(_) => 0,
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.records.capacity() * 8
            + match &self.index {
                Index::Exact(index) => index.bytes(),
                Index::Prefixes(index) => index.bytes(),
                Index::Intervals(index) => index.bytes(),
                Index::Tuples(index) => index.bytes(),
            }
    }
}

fn index_for(keys: &[KeyInfo], shape: &KeyShape) -> Index {
    let all = |kind: MatchKind| keys.iter().all(|key| key.kind == kind);
    let small = keys.len() == 1 && (1..=128).contains(&keys[0].width);
    if all(MatchKind::Exact) {
        Index::Exact(Exact::new(shape.words.max(1)))
    } else if small && all(MatchKind::Lpm) {
        Index::Prefixes(Prefixes::new(keys[0].width))
    } else if small && all(MatchKind::Range) {
        Index::Intervals(Intervals::default())
    } else {
        Index::Tuples(Tuples::default())
    }
}
