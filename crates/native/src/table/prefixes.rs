//! One key by longest prefix: a trie that looks at 16 bits first and then at 4 at a time,
//! of keys above 32 bits at 8. A node of 4 bits is one line of the cache. Each of its slots has the best prefix so far, so that a lookup never goes back.

use rustc_hash::FxHashMap;

const FIRST_BITS: u32 = 16;

/// The slot leads to another node, whose number the other bits are.
const NODE: u32 = 1 << 31;

/// Numbers of entries by prefix.
#[derive(Debug)]
pub(super) struct Prefixes {
    width: u32,
    first_bits: u32,
    /// Bits that all nodes but the first look at.
    next_bits: u32,
    /// The first node's slots, then those of all others: the number of an entry, 0, or
    /// a node.
    slots: Vec<u32>,
    /// Prefixes by length and value, which find what a removed one hid.
    numbers: Vec<FxHashMap<u128, u32>>,
    /// Value and length of each entry.
    entries: Vec<Option<(u128, u8)>>,
    /// Nodes without use.
    free: Vec<u32>,
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
        let first_bits = width.min(FIRST_BITS);
        Prefixes {
            width,
            first_bits,
            next_bits: if width <= 32 { 4 } else { 8 },
            slots: vec![0; 1 << first_bits],
            numbers: vec![FxHashMap::default(); width as usize + 1],
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Bits `from..from + size` of a key, counted from the highest; those past its end
    /// are zero.
    #[inline]
    fn bits(&self, key: u128, from: u32, size: u32) -> usize {
        let end = from + size;
        let moved = if end <= self.width {
            key >> (self.width - end)
        } else {
            key << (end - self.width)
        };
        moved as usize & ((1 << size) - 1)
    }

    fn node(&self, number: u32) -> usize {
        (1usize << self.first_bits) + ((number as usize) << self.next_bits)
    }

    #[inline]
    pub(super) fn find(&self, key: u128) -> u32 {
        let mut slot = self.slots[self.bits(key, 0, self.first_bits)];
        let mut from = self.first_bits;
        while slot & NODE != 0 {
            let at = self.node(slot & !NODE) + self.bits(key, from, self.next_bits);
            slot = self.slots[at];
            from += self.next_bits;
        }
        slot
    }

    /// Asks for the memory of the second slot that a lookup of a key looks at.
    #[inline]
    pub(super) fn prefetch(&self, key: u128) {
        let slot = self.slots[self.bits(key, 0, self.first_bits)];
        if slot & NODE != 0 {
            let at = self.node(slot & !NODE) + self.bits(key, self.first_bits, self.next_bits);
            super::memory::prefetch(&self.slots[at]);
        }
    }

    /// Bytes that lookups read.
    pub(super) fn looked_at(&self) -> usize {
        self.slots.len() * 4
    }

    fn length_of(&self, number: u32) -> Option<u32> {
        let entry = self.entries.get(number as usize).copied().flatten();
        entry.map(|(_, length)| u32::from(length))
    }

    pub(super) fn insert(&mut self, number: u32, value: u128, length: u32) {
        let index = number as usize;
        if self.entries.len() <= index {
            self.entries.resize(index + 1, None);
        }
        self.entries[index] = Some((value, length as u8));
        self.numbers[length as usize].insert(value, number);
        let end = self.descend(value, length);
        self.fill(end, value, length, &mut |this, slot| {
            let old = this.slots[slot];
            if this.length_of(old).is_none_or(|old| old <= length) {
                this.slots[slot] = number;
            }
        });
    }

    /// Removes an entry, if it is there.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(entry) = self.entries.get_mut(number as usize) else {
            return;
        };
        let Some((value, length)) = entry.take() else {
            return;
        };
        let length = u32::from(length);
        self.numbers[length as usize].remove(&value);
        // The next shorter prefix of the same addresses shows again.
        let hidden = (0..length).rev().find_map(|shorter| {
            let value = prefix(value, shorter, self.width);
            self.numbers[shorter as usize].get(&value).copied()
        });
        let hidden = hidden.unwrap_or(0);
        let end = self.descend(value, length);
        self.fill(end, value, length, &mut |this, slot| {
            if this.slots[slot] == number {
                this.slots[slot] = hidden;
            }
        });
        self.prune(value, length);
    }

    /// Gives back the nodes on the way to a prefix in which all slots are the same: what
    /// ends in a node is there in half of its slots at most.
    fn prune(&mut self, value: u128, length: u32) {
        let mut way = Vec::new();
        let (mut start, mut from, mut size) = (0, 0, self.first_bits);
        while from + size < length {
            let slot = start + self.bits(value, from, size);
            let node = self.slots[slot] & !NODE;
            way.push((slot, node));
            start = self.node(node);
            from += size;
            size = self.next_bits;
        }
        while let Some((slot, node)) = way.pop() {
            let at = self.node(node);
            let slots = &self.slots[at..at + (1 << self.next_bits)];
            let first = slots[0];
            if first & NODE != 0 || slots.iter().any(|slot| *slot != first) {
                return;
            }
            self.slots[slot] = first;
            self.free.push(node);
        }
    }

    /// The node in which a prefix ends, made if need be.
    fn descend(&mut self, value: u128, length: u32) -> End {
        let (mut start, mut from, mut size) = (0, 0, self.first_bits);
        while from + size < length {
            let slot = start + self.bits(value, from, size);
            if self.slots[slot] & NODE == 0 {
                let above = self.slots[slot];
                let number = self.free.pop().unwrap_or_else(|| {
                    let number = (self.slots.len() - (1 << self.first_bits)) >> self.next_bits;
                    self.slots
                        .resize(self.slots.len() + (1 << self.next_bits), 0);
                    number as u32
                });
                let at = self.node(number);
                self.slots[at..at + (1 << self.next_bits)].fill(above);
                self.slots[slot] = NODE | number;
            }
            start = self.node(self.slots[slot] & !NODE);
            from += size;
            size = self.next_bits;
        }
        End { start, from, size }
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
        let mut waiting: Vec<usize> = (first..first + (1 << open)).collect();
        while let Some(slot) = waiting.pop() {
            let content = self.slots[slot];
            if content & NODE != 0 {
                let at = self.node(content & !NODE);
                waiting.extend(at..at + (1 << self.next_bits));
            } else {
                visit(self, slot);
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let maps: usize = self.numbers.iter().map(|map| map.capacity() * 33).sum();
        self.slots.capacity() * 4 + self.entries.capacity() * 32 + maps
    }
}
