//! One key by longest prefix: a trie that looks at 16 bits first, then at 8, and then at 4 at a
//! time, of keys above 32 bits at 8: most routes of IPv4 have at most 24 bits, and end in the second
//! node. Each slot has the best prefix so far, so that a lookup never goes back.
//!
//! A slot leads to a record rather than an entry: many routes have few next hops.

use rustc_hash::FxHashMap;

const FIRST_BITS: u32 = 16;

/// Nodes are numbered by their first slots, which are multiples of 2 to the power of this: a node of
/// so many bits is one line of the cache.
pub(crate) const UNIT_BITS: u32 = 4;

/// The slot leads to another node, whose number the other bits are.
pub(crate) const NODE: u32 = 1 << 31;

/// Division of keys of a width into strides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strides {
    /// Bits of a key.
    pub(crate) width: u32,
    /// Bits that the first node looks at.
    pub(crate) first: u32,
}

impl Strides {
    /// For keys of `width` bits, 1 to 128.
    pub(crate) fn of(width: u32) -> Strides {
        Strides {
            width,
            first: width.min(FIRST_BITS),
        }
    }

    /// Bits that a node looks at which begins `from` bits behind the highest.
    pub(crate) fn size(self, from: u32) -> u32 {
        match from {
            0 => self.first,
            FIRST_BITS => 8,
            _ if self.width <= 32 => UNIT_BITS,
            _ => 8,
        }
    }
}

/// Records by prefix.
#[derive(Debug)]
pub(super) struct Prefixes {
    strides: Strides,
    /// The first node's slots, then those of all others: the number of a record, 0, or
    /// a node.
    slots: Vec<u32>,
    /// Length of the prefix that each slot has its record from, plus 1; 0 for none.
    lengths: Vec<u8>,
    /// Records of prefixes by length and value, which find what a removed one hid.
    records: Vec<FxHashMap<u128, u32>>,
    /// Value and length of each entry.
    entries: Vec<Option<(u128, u8)>>,
    /// Nodes without use, by the bits that they look at.
    free: FxHashMap<u32, Vec<u32>>,
}

/// The node in which a prefix ends.
struct End {
    /// Its first slot.
    start: usize,
    /// Bits before those that it looks at, and how many these are.
    from: u32,
    size: u32,
}

/// `length` high bits of a value of `width` bits.
fn prefix(value: u128, length: u32, width: u32) -> u128 {
    if length == 0 {
        return 0;
    }
    let below = width - length;
    value >> below << below
}

impl Prefixes {
    /// A trie for keys of `width` bits, 1 to 128.
    pub(super) fn new(width: u32) -> Prefixes {
        let strides = Strides::of(width);
        Prefixes {
            strides,
            slots: vec![0; 1 << strides.first],
            lengths: vec![0; 1 << strides.first],
            records: vec![FxHashMap::default(); width as usize + 1],
            entries: Vec::new(),
            free: FxHashMap::default(),
        }
    }

    /// Bits `from..from + size` of a key, counted from the highest; those past its end
    /// are zero.
    #[inline]
    fn bits(&self, key: u128, from: u32, size: u32) -> usize {
        let (end, width) = (from + size, self.strides.width);
        let moved = if end <= width {
            key >> (width - end)
        } else {
            key << (end - width)
        };
        moved as usize & ((1 << size) - 1)
    }

    fn node(&self, number: u32) -> usize {
        (1usize << self.strides.first) + ((number as usize) << UNIT_BITS)
    }

    #[inline]
    pub(super) fn find(&self, key: u128) -> u32 {
        let mut from = self.strides.first;
        let mut slot = self.slots[self.bits(key, 0, from)];
        while slot & NODE != 0 {
            let size = self.strides.size(from);
            slot = self.slots[self.node(slot & !NODE) + self.bits(key, from, size)];
            from += size;
        }
        slot
    }

    /// The slots, as generated code reads them.
    pub(super) fn slots(&self) -> *const u32 {
        self.slots.as_ptr()
    }

    /// Asks for the memory of the second slot that a lookup of a key looks at.
    #[inline]
    pub(super) fn prefetch(&self, key: u128) {
        let first = self.strides.first;
        let slot = self.slots[self.bits(key, 0, first)];
        if slot & NODE != 0 {
            let size = self.strides.size(first);
            let at = self.node(slot & !NODE) + self.bits(key, first, size);
            super::memory::prefetch(&self.slots[at]);
        }
    }

    /// Bytes of the lines of the cache that lookups read: of a node of more than one line those alone to
    /// which keys lead.
    pub(super) fn looked_at(&self) -> usize {
        let first = 1 << self.strides.first;
        let lines = (self.slots.len() - first).min(self.entries.len() << UNIT_BITS);
        (first + lines) * 4
    }

    /// Enters the entry `number`, whose record is the `record`th.
    pub(super) fn insert(&mut self, number: u32, record: u32, value: u128, length: u32) {
        let index = number as usize;
        if self.entries.len() <= index {
            self.entries.resize(index + 1, None);
        }
        let own = length as u8 + 1;
        self.entries[index] = Some((value, length as u8));
        self.records[length as usize].insert(value, record);
        let end = self.descend(value, length);
        self.fill(end, value, length, &mut |this, slot| {
            if this.lengths[slot] <= own {
                this.slots[slot] = record;
                this.lengths[slot] = own;
            }
        });
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(entry) = self.entries.get_mut(number as usize) else {
            return;
        };
        let Some((value, own)) = entry.take() else {
            return;
        };
        let length = u32::from(own);
        self.records[length as usize].remove(&value);
        // The next shorter prefix of the same addresses shows again.
        let hidden = (0..length).rev().find_map(|shorter| {
            let value = prefix(value, shorter, self.strides.width);
            let record = self.records[shorter as usize].get(&value).copied();
            record.map(|record| (record, shorter as u8 + 1))
        });
        let (record, shorter) = hidden.unwrap_or((0, 0));
        let end = self.descend(value, length);
        self.fill(end, value, length, &mut |this, slot| {
            if this.lengths[slot] == own + 1 {
                this.slots[slot] = record;
                this.lengths[slot] = shorter;
            }
        });
        self.prune(value, length);
    }

    /// Frees the nodes on the path to a prefix in which all slots are equal: the prefixes that end
    /// in a node fill half of its slots at most.
    fn prune(&mut self, value: u128, length: u32) {
        let mut way = Vec::new();
        let (mut start, mut from, mut size) = (0, 0, self.strides.first);
        while from + size < length {
            let slot = start + self.bits(value, from, size);
            let node = self.slots[slot] & !NODE;
            start = self.node(node);
            from += size;
            size = self.strides.size(from);
            way.push((slot, node, size));
        }
        while let Some((slot, node, size)) = way.pop() {
            let at = self.node(node);
            let end = at + (1 << size);
            let (first, length) = (self.slots[at], self.lengths[at]);
            let same = |part: usize| self.slots[part] == first && self.lengths[part] == length;
            if first & NODE != 0 || !(at..end).all(same) {
                return;
            }
            self.slots[slot] = first;
            self.lengths[slot] = length;
            self.free.entry(size).or_default().push(node);
        }
    }

    /// The node in which a prefix ends, made if need be.
    fn descend(&mut self, value: u128, length: u32) -> End {
        let (mut start, mut from, mut size) = (0, 0, self.strides.first);
        while from + size < length {
            let slot = start + self.bits(value, from, size);
            from += size;
            size = self.strides.size(from);
            if self.slots[slot] & NODE == 0 {
                let above = (self.slots[slot], self.lengths[slot]);
                let number = self.free_node(size);
                let at = self.node(number);
                self.slots[at..at + (1 << size)].fill(above.0);
                self.lengths[at..at + (1 << size)].fill(above.1);
                self.slots[slot] = NODE | number;
            }
            start = self.node(self.slots[slot] & !NODE);
        }
        End { start, from, size }
    }

    /// A node without use that looks at so many bits.
    fn free_node(&mut self, size: u32) -> u32 {
        if let Some(number) = self.free.get_mut(&size).and_then(Vec::pop) {
            return number;
        }
        let (end, room) = (self.slots.len(), self.slots.capacity());
        self.slots.resize(end + (1 << size), 0);
        self.lengths.resize(end + (1 << size), 0);
        if self.slots.capacity() > room {
            super::memory::prefer_huge_pages(self.slots.as_ptr(), self.slots.capacity() * 4);
        }
        ((end - (1 << self.strides.first)) >> UNIT_BITS) as u32
    }

    /// Visits all slots, other than nodes, under a prefix that ends in a node.
    fn fill(
        &mut self,
        end: End,
        value: u128,
        length: u32,
        visit: &mut dyn FnMut(&mut Prefixes, usize),
    ) {
        let End { start, from, size } = end;
        let open = from + size - length;
        let first = start + (self.bits(value, from, size) >> open << open);
        let below = from + size;
        let mut waiting: Vec<(usize, u32)> = (first..first + (1 << open))
            .map(|slot| (slot, below))
            .collect();
        while let Some((slot, from)) = waiting.pop() {
            let content = self.slots[slot];
            if content & NODE != 0 {
                let (at, size) = (self.node(content & !NODE), self.strides.size(from));
                waiting.extend((at..at + (1 << size)).map(|slot| (slot, from + size)));
            } else {
                visit(self, slot);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let maps: usize = self.records.iter().map(|map| map.capacity() * 33).sum();
        self.slots.capacity() * 4 + self.lengths.capacity() + self.entries.capacity() * 32 + maps
    }
}
