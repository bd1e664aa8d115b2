//! Values as words: the form in which scalars are stored, compared and moved.
//!
//! A value of `width` bits is [`word_count`] words of 128 bits, least significant
//! first, with all bits from `width` on zero. Nearly every P4 scalar is one word.

use num_bigint::BigUint;

/// Bits of a word.
pub const WORD: u32 = u128::BITS;

/// Words that a scalar of `width` bits takes; at least one, also for `bit<0>`.
pub const fn word_count(width: u32) -> usize {
    if width <= WORD {
        1
    } else {
        width.div_ceil(WORD) as usize
    }
}

/// The low `width` bits set; all of them from 128 on.
pub const fn mask(width: u32) -> u128 {
    if width >= WORD {
        u128::MAX
    } else {
        (1 << width) - 1
    }
}

/// The number that `words` hold.
pub fn to_biguint(words: &[u128]) -> BigUint {
    if let [word] = words {
        return BigUint::from(*word);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    BigUint::from_bytes_le(&bytes)
}

/// The low 128 bits of a number.
pub fn low_word(value: &BigUint) -> u128 {
    let mut digits = value.iter_u64_digits();
    let low = u128::from(digits.next().unwrap_or(0));
    low | u128::from(digits.next().unwrap_or(0)) << 64
}

/// Writes `value` modulo 2^`width` into `words`, of which there are
/// [`word_count`]`(width)`.
pub fn put_biguint(value: &BigUint, width: u32, words: &mut [u128]) {
    let mut digits = value.iter_u64_digits();
    for word in words.iter_mut() {
        let low = u128::from(digits.next().unwrap_or(0));
        *word = low | u128::from(digits.next().unwrap_or(0)) << 64;
    }
    clear_above(words, width);
}

/// Zeroes the bits from `width` on in the last of the words of a scalar.
pub fn clear_above(words: &mut [u128], width: u32) {
    if let Some(last) = words.last_mut() {
        *last &= if width == 0 {
            0
        } else {
            mask((width - 1) % WORD + 1)
        };
    }
}

/// Bits `lo..lo + width` of a value, `width` at most 128; bits past the words are 0.
pub fn get_bits(words: &[u128], lo: u32, width: u32) -> u128 {
    let (index, shift) = ((lo / WORD) as usize, lo % WORD);
    let low = words.get(index).copied().unwrap_or(0) >> shift;
    let high = if shift == 0 {
        0
    } else {
        words.get(index + 1).copied().unwrap_or(0) << (WORD - shift)
    };
    (low | high) & mask(width)
}

/// Sets bits `lo..lo + width` of a value, `width` at most 128; bits past the words
/// are ignored.
pub fn set_bits(words: &mut [u128], lo: u32, width: u32, value: u128) {
    let value = value & mask(width);
    let (index, shift) = ((lo / WORD) as usize, lo % WORD);
    if let Some(word) = words.get_mut(index) {
        *word = *word & !(mask(width) << shift) | value << shift;
    }
    if shift != 0 && shift + width > WORD {
        let moved = WORD - shift;
        if let Some(word) = words.get_mut(index + 1) {
            *word = *word & !(mask(width) >> moved) | value >> moved;
        }
    }
}

/// Reads `width` bits, at most 128, of a packet from bit `at` (bit 0 is the most
/// significant of the first byte). `None` if the packet ends before.
pub fn read_bits(bytes: &[u8], at: usize, width: u32) -> Option<u128> {
    let end = at.checked_add(width as usize)?;
    if end > bytes.len() * 8 {
        return None;
    }
    if width == 0 {
        return Some(0);
    }
    let (first, last) = (at / 8, (end - 1) / 8);
    let tail = 7 - (end - 1) % 8;
    let mut value = 0u128;
    for &byte in &bytes[first..last] {
        value = value << 8 | u128::from(byte);
    }
    // Of 17 bytes the first has been shifted out to its significant bits by now.
    value = value << (8 - tail) | u128::from(bytes[last] >> tail);
    Some(value & mask(width))
}

/// Reads `width` bits of any number into words; see [`read_bits`]. Returns whether
/// the packet was long enough; if not, nothing is written.
pub fn read_words(bytes: &[u8], at: usize, width: u32, words: &mut [u128]) -> bool {
    if at + width as usize > bytes.len() * 8 {
        return false;
    }
    for (index, word) in words.iter_mut().enumerate() {
        let lo = index as u32 * WORD;
        let part = width.saturating_sub(lo).min(WORD);
        let from = at + (width - lo.min(width) - part) as usize;
        *word = read_bits(bytes, from, part).unwrap_or(0);
    }
    true
}

/// Appends values bit by bit to bytes, most significant bit first.
#[derive(Debug)]
pub struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits of the last byte that are not written yet.
    free: u32,
}

impl<'a> BitWriter<'a> {
    /// Starts behind the last byte of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> BitWriter<'a> {
        BitWriter { out, free: 0 }
    }

    /// Goes on where another writer to `out` stopped; `free` is what its
    /// [`BitWriter::free`] said.
    pub fn resume(out: &'a mut Vec<u8>, free: u32) -> BitWriter<'a> {
        BitWriter { out, free }
    }

    /// Bits of the last byte that are not written yet, below 8.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Appends the low `width` bits of `value`, `width` at most 128.
    pub fn put(&mut self, value: u128, width: u32) {
        if self.free == 0 && width.is_multiple_of(8) {
            let bytes = value.to_be_bytes();
            self.out
                .extend_from_slice(&bytes[bytes.len() - (width / 8) as usize..]);
            return;
        }
        let mut left = width;
        while left > 0 {
            if self.free == 0 {
                self.out.push(0);
                self.free = 8;
            }
            let part = left.min(self.free);
            left -= part;
            self.free -= part;
            let bits = (value >> left) & mask(part);
            if let Some(last) = self.out.last_mut() {
                *last |= (bits as u8) << self.free;
            }
        }
    }

    /// Appends the low `width` bits of a value of any number of words.
    pub fn put_words(&mut self, words: &[u128], width: u32) {
        let mut left = width;
        while left > 0 {
            let part = (left - 1) % WORD + 1;
            left -= part;
            self.put(get_bits(words, left, part), part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn biguint_of_bits(bits: &[bool]) -> BigUint {
        bits.iter().fold(BigUint::default(), |value, &bit| {
            (value << 1u32) | BigUint::from(u32::from(bit))
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            fields in prop::collection::vec((1u32..300, any::<[u8; 40]>()), 1..8),
        ) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            let mut expected = Vec::new();
            for (width, random) in fields {
                let mut words = vec![0; word_count(width)];
                put_biguint(&BigUint::from_bytes_le(&random), width, &mut words);
                writer.put_words(&words, width);
                expected.push((width, words));
            }
            let mut at = 0;
            for (width, words) in expected {
                let mut read = vec![0; words.len()];
                prop_assert!(read_words(&bytes, at, width, &mut read));
                prop_assert_eq!(&read, &words);
                at += width as usize;
            }
            prop_assert_eq!(bytes.len(), at.div_ceil(8));
            prop_assert!(!read_words(&bytes, at, 8, &mut [0]));
        }

        #[test]
        fn reading_agrees_with_single_bits(bytes in prop::collection::vec(any::<u8>(), 0..24),
                                           at in 0usize..200, width in 0u32..=128) {
            let bits: Vec<bool> = bytes.iter()
                .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
                .collect();
            let expected = bits.get(at..at + width as usize)
                .map(|bits| low_word(&biguint_of_bits(bits)));
            prop_assert_eq!(read_bits(&bytes, at, width), expected);
        }

        #[test]
        fn set_bits_then_get_bits(words in any::<[u128; 3]>(), lo in 0u32..256,
                                  width in 0u32..=128, value in any::<u128>()) {
            let mut changed = words;
            set_bits(&mut changed, lo, width, value);
            prop_assert_eq!(get_bits(&changed, lo, width), value & mask(width));
            for bit in (0..384).filter(|bit| !(lo..lo + width).contains(bit)) {
                prop_assert_eq!(get_bits(&changed, bit, 1), get_bits(&words, bit, 1));
            }
        }

        #[test]
        fn numbers_survive(bytes in prop::collection::vec(any::<u8>(), 0..60), width in 1u32..500) {
            let value = BigUint::from_bytes_be(&bytes);
            let mut words = vec![u128::MAX; word_count(width)];
            put_biguint(&value, width, &mut words);
            prop_assert_eq!(to_biguint(&words), &value % (BigUint::from(1u32) << width));
        }
    }

    #[test]
    fn no_width_is_one_zero_word() {
        let mut words = [7];
        put_biguint(&BigUint::from(9u32), 0, &mut words);
        assert_eq!((word_count(0), words), (1, [0]));
    }
}
