//! Tables as generated code looks them up.
//!
//! The entries that the control plane wrote, in a form made for their match kinds: a
//! hash for exact keys, a trie for one prefix, intervals for one range, and for all
//! others bit vectors or, where there are many, a hash for each combination of masks.
//! Each is kept in step with the [`Table`] from the changes that it remembers.

pub(crate) mod exact;
mod intervals;
pub(crate) mod memory;
pub(crate) mod prefixes;
mod records;
mod slices;
#[cfg(test)]
mod tests;
mod tuples;

use exact::Exact;
use intervals::Intervals;
use prefixes::{Prefixes, Strides};
use records::Records;
use slices::Slices;
use stateplane_ir::{Direction, MatchKind, Program};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::scalar_bits;
use stateplane_runtime::table::Changes;
use stateplane_runtime::{KeyInfo, Table};
use tuples::Tuples;

/// Bytes of a record before the action's data.
const RECORD_HEAD: usize = 8;

/// Layout of an entry's record: a word of the action's position and, in the upper half, the entry's
/// number; from byte 8 on the action's data, each in 8 bytes or in 16 for every 128 bits.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Bytes from one record to the next.
    pub(crate) stride: usize,
    /// Offset of each action's data, in bytes.
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

    /// The record of an entry, given by number, with an action and the words of its data.
    fn record(&self, number: u32, action: u32, words: &[u128]) -> Vec<u64> {
        let mut record = Vec::new();
        self.write_record(number, action, words, &mut record);
        record
    }

    fn write_record(&self, number: u32, action: u32, words: &[u128], record: &mut Vec<u64>) {
        record.clear();
        record.resize(self.stride / 8, 0);
        record[0] = u64::from(action) | u64::from(number) << 32;
        let mut rest = words;
        let offsets = self.data[action as usize].iter();
        for (&offset, &width) in offsets.zip(&self.widths[action as usize]) {
            // An entry that runs what an action profile holds has no data of its own.
            let Some((value, behind)) = rest.split_at_checked(word_count(width)) else {
                return;
            };
            rest = behind;
            let halves = value
                .iter()
                .flat_map(|word| [*word as u64, (*word >> 64) as u64]);
            let words = data_bytes(width) / 8;
            for (to, half) in record[offset / 8..][..words].iter_mut().zip(halves) {
                *to = half;
            }
        }
    }
}

/// In place of an action's position: an entry's group is empty, so nothing is run.
const NO_ACTION: u32 = u32::MAX;

/// The entry's number in the first word of a record; 0 is the default action's.
fn number_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// A record that was found, until the table changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record(pub(crate) *const u64);

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

/// Index that finds entries. Entries without records are numbered from 1; 0 is none.
#[derive(Debug)]
enum Index {
    Exact(Exact),
    Prefixes(Prefixes),
    Intervals(Intervals),
    Slices(Slices),
    Tuples(Tuples),
}

/// View of a table for generated code.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct View {
    /// The table.
    pub(crate) lookup: *const Lookup,
    /// The record of the default action; behind it those that an index gives by number.
    pub(crate) default: *const u64,
    /// 1 if a lookup should be announced by a prefetch, else 0.
    pub(crate) large: u64,
    /// The slots of a hash or trie.
    pub(crate) slots: *const u8,
    /// The mask of a hash's slots, and the hash of no words.
    pub(crate) mask: u64,
    pub(crate) start: u64,
}

/// Inline lookup of a table by generated code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Inline {
    /// A hash table, whose slots have records of `record` bytes.
    Exact { record: usize },
    /// A trie, which gives the number of a record of `record` bytes.
    Prefixes { strides: Strides, record: usize },
}

/// Inline lookup of a table; `None` if generated code calls the engine.
pub(crate) fn inline(program: &Program, def: &stateplane_ir::Table) -> Option<Inline> {
    let matched = def.keys.iter();
    let matched = matched.filter(|key| key.match_kind != MatchKind::Selector);
    let widths: Vec<u32> = matched
        .clone()
        .map(|key| scalar_bits(key.expr.ty))
        .collect();
    let width: u32 = widths.iter().sum();
    let record = Shape::of(program, def).stride;
    let all = |kind: MatchKind| matched.clone().all(|key| key.match_kind == kind);
    match *widths {
        _ if all(MatchKind::Exact) && (1..=128).contains(&width) => Some(Inline::Exact { record }),
        [only @ 1..=64] if all(MatchKind::Lpm) => Some(Inline::Prefixes {
            strides: Strides::of(only),
            record,
        }),
        _ => None,
    }
}

/// Bytes of a table from which on lookups are worth announcing: more than a second-level
/// cache.
const LARGE: usize = 4 << 20;

/// A table as generated code looks it up.
#[derive(Debug)]
pub(crate) struct Lookup {
    shape: Shape,
    key: KeyShape,
    index: Index,
    /// Records that the index gives by number, and the default action's.
    records: Records,
    version: u64,
}

impl Lookup {
    pub(crate) fn new(program: &Program, def: &stateplane_ir::Table, table: &Table) -> Lookup {
        let key = KeyShape::of(table.keys());
        let shape = Shape::of(program, def);
        let index = index_for(table, &key, &shape);
        // Whose hit it was is asked for by what belongs to single entries.
        let alike = matches!(index, Index::Prefixes(_))
            && def.direct_counter.is_none()
            && def.direct_meter.is_none()
            && def.implementation.is_none()
            && !def.support_timeout;
        let mut lookup = Lookup {
            records: Records::new(shape.stride / 8, alike),
            index,
            shape,
            key,
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
        let outgrown = matches!(self.index, Index::Slices(_)) && table.len() > slices::MOST as u64;
        let positions = match table.changes(self.version) {
            Changes::Some(positions) if !outgrown => positions,
            _ => return self.rebuild(table),
        };
        for &position in positions {
            self.renew(table, position);
        }
        self.finish(table);
    }

    fn rebuild(&mut self, table: &Table) {
        self.index = index_for(table, &self.key, &self.shape);
        self.records.clear();
        for position in 0..table.positions() {
            self.renew(table, position);
        }
        self.finish(table);
    }

    /// Makes the entry at a position what it is in the table.
    fn renew(&mut self, table: &Table, position: u32) {
        let number = position + 1;
        match &mut self.index {
            Index::Exact(index) => index.remove(number),
            Index::Prefixes(index) => index.remove(number),
            Index::Intervals(index) => index.remove(number),
            Index::Slices(index) => index.remove(number),
            Index::Tuples(index) => index.remove(number),
        }
        self.records.remove(number);
        let Some(rule) = table.rule(position) else {
            return;
        };
        let record = self.shape.record(number, rule.action, rule.data);
        if let Index::Exact(index) = &mut self.index {
            return index.insert(&record, &self.key.pack(rule.low, true));
        }
        let record = self.records.insert(number, &record);
        match &mut self.index {
            Index::Exact(_) => {}
            Index::Prefixes(index) => {
                let length = rule.high.iter().map(|word| word.count_ones()).sum();
                index.insert(number, record, rule.low[0], length);
            }
            Index::Intervals(index) => index.insert(number, &rule),
            Index::Slices(index) => index.insert(number, &self.key, &rule),
            Index::Tuples(index) => index.insert(number, &self.key, &rule),
        }
    }

    fn finish(&mut self, table: &Table) {
        let (action, data) = table.action(None);
        let record = self.shape.record(0, action, data);
        self.records.set_default(&record);
        if let Index::Intervals(index) = &mut self.index {
            index.build();
        }
        self.version = table.version();
    }

    pub(crate) fn view(&self) -> View {
        let large = match &self.index {
            Index::Exact(index) => index.looked_at() > LARGE,
            Index::Prefixes(index) => index.looked_at() > LARGE,
            _ => false,
        };
        let (slots, mask, start) = match &self.index {
            Index::Exact(index) => {
                let (slots, mask, start) = index.slots();
                (slots.cast(), mask, start)
            }
            Index::Prefixes(index) => (index.slots().cast(), 0, 0),
            _ => (std::ptr::null(), 0, 0),
        };
        View {
            lookup: self,
            default: self.records.first(),
            large: u64::from(large),
            slots,
            mask,
            start,
        }
    }

    /// The record of an entry by number.
    #[inline]
    fn numbered(&self, number: u32) -> Record {
        Record(self.records.get(number))
    }

    #[inline]
    fn or_default(&self, found: Option<Record>) -> Record {
        found.unwrap_or(Record(self.records.first()))
    }

    /// The record for a key of at most 64 bits.
    #[inline]
    pub(crate) fn find_1(&self, key: u64) -> Record {
        match &self.index {
            Index::Exact(index) => self.or_default(index.find([key])),
            Index::Prefixes(index) => self.numbered(index.find(u128::from(key))),
            Index::Intervals(index) => self.numbered(index.find(u128::from(key))),
            Index::Slices(index) => self.numbered(index.find(&self.key, &[key])),
            Index::Tuples(index) => self.numbered(index.find(&self.key, &[key])),
        }
    }

    /// The record for a key of at most 128 bits.
    #[inline]
    pub(crate) fn find_2(&self, low: u64, high: u64) -> Record {
        let number = || u128::from(low) | u128::from(high) << 64;
        match &self.index {
            Index::Exact(index) => self.or_default(index.find([low, high])),
            Index::Prefixes(index) => self.numbered(index.find(number())),
            Index::Intervals(index) => self.numbered(index.find(number())),
            Index::Slices(index) => self.numbered(index.find(&self.key, &[low, high])),
            Index::Tuples(index) => self.numbered(index.find(&self.key, &[low, high])),
        }
    }

    /// The record for a key of more than 128 bits.
    pub(crate) fn find(&self, key: &[u64]) -> Record {
        match &self.index {
            Index::Exact(index) => self.or_default(index.find_long(key)),
            Index::Slices(index) => self.numbered(index.find(&self.key, key)),
            Index::Tuples(index) => self.numbered(index.find(&self.key, key)),
            // Their keys have at most 128 bits.
            Index::Prefixes(_) | Index::Intervals(_) => self.numbered(0),
        }
    }

    /// Makes the record of an entry, given by number, that runs an action with these words
    /// of data, or none.
    pub(crate) fn held(&self, number: u32, runs: Option<(u32, &[u128])>, record: &mut Vec<u64>) {
        match runs {
            Some((action, words)) => self.shape.write_record(number, action, words, record),
            None => {
                record.clear();
                record.push(u64::from(NO_ACTION) | u64::from(number) << 32);
            }
        }
    }

    /// Asks for the memory that a lookup of a key will need.
    #[inline]
    pub(crate) fn announce(&self, key: &[u64]) {
        match &self.index {
            Index::Exact(index) => index.prefetch(index.hash(key)),
            Index::Prefixes(index) => {
                let high = key.get(1).copied().unwrap_or(0);
                index.prefetch(u128::from(key[0]) | u128::from(high) << 64);
            }
            _ => {}
        }
    }

    /// Words of a key.
    pub(crate) fn key_words(&self) -> usize {
        self.key.words
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.records.bytes()
            + match &self.index {
                Index::Exact(index) => index.bytes(),
                Index::Prefixes(index) => index.bytes(),
                Index::Intervals(index) => index.bytes(),
                Index::Slices(index) => index.bytes(),
                Index::Tuples(index) => index.bytes(),
            }
    }
}

fn index_for(table: &Table, key: &KeyShape, shape: &Shape) -> Index {
    let keys = table.keys();
    let all = |kind: MatchKind| keys.iter().all(|key| key.kind == kind);
    let small = keys.len() == 1 && (1..=128).contains(&keys[0].width);
    if all(MatchKind::Exact) {
        Index::Exact(Exact::new(key.words.max(1), shape.stride / 8))
    } else if small && all(MatchKind::Lpm) {
        Index::Prefixes(Prefixes::new(keys[0].width))
    } else if small && all(MatchKind::Range) {
        Index::Intervals(Intervals::default())
    } else if table.len() <= slices::MOST as u64 && key.words > 0 {
        Index::Slices(Slices::new(key))
    } else {
        Index::Tuples(Tuples::default())
    }
}
