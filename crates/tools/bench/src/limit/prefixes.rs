//! Longest prefixes of IPv4 addresses: 16 bits at first, then 4 at a time.

const NODE: u32 = 1 << 31;

/// A trie whose slots hold a value + 1, 0, or the number of a node.
pub(super) struct Prefixes {
    slots: Vec<u32>,
}

impl Prefixes {
    /// From prefixes, each with its length and a value.
    pub(super) fn new(prefixes: &[(u32, u32, u32)]) -> Prefixes {
        let mut made = Prefixes {
            slots: vec![0; 1 << 16],
        };
        let mut sorted = prefixes.to_vec();
        sorted.sort_by_key(|(_, length, _)| *length);
        for (address, length, value) in sorted {
            made.insert(address, length, value + 1);
        }
        made
    }

    fn insert(&mut self, address: u32, length: u32, value: u32) {
        let (mut start, mut from, mut size) = (0, 0, 16);
        while from + size < length {
            let slot = start + (address << from >> (32 - size)) as usize;
            if self.slots[slot] & NODE == 0 {
                let above = self.slots[slot];
                let node = self.slots.len();
                self.slots.resize(node + 16, above);
                self.slots[slot] = NODE | node as u32;
            }
            start = (self.slots[slot] & !NODE) as usize;
            from += size;
            size = 4;
        }
        let first = start + (address.checked_shl(from).unwrap_or(0) >> (32 - size)) as usize;
        let open = 1 << (from + size - length);
        self.slots[first..first + open].fill(value);
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * 4
    }

    #[inline]
    pub(super) fn find(&self, address: u32) -> Option<u32> {
        let mut slot = self.slots[(address >> 16) as usize];
        let mut shift = 12;
        while slot & NODE != 0 {
            let bits = (address >> shift) as usize & 0xf;
            slot = self.slots[(slot & !NODE) as usize + bits];
            shift -= 4;
        }
        slot.checked_sub(1)
    }
}
