//! Packets between ingress and egress, and the memory for them.

use crate::codegen::Kept;
use crate::run;
use std::ops::{Deref, DerefMut};

/// Packets whose memory is kept for later ones.
const MAX_SPARE: usize = 1024;

/// Bytes of a number of a packed packet, and numbers in front of its words.
const NUMBER: usize = 8;
const NUMBERS: usize = 2;

/// A packet between ingress and egress.
///
/// It is moved from place to place as a pointer: moves of several words behind the stores that wrote them
/// would wait for these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight(Box<Packet>);

/// Words and frame of a packet. A packet that waits for long is packed: both are in one piece of memory,
/// without the words that egress does not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Headers, user metadata, standard metadata, and for each header that is read from
    /// the frame one more than its first byte there, or 0.
    pub(crate) words: Vec<u128>,
    /// The frame that it came from.
    pub(crate) frame: Vec<u8>,
    /// Offset of the first byte that no header holds.
    pub(crate) rest: u64,
    /// Bytes that may leave at most.
    pub(crate) limit: u64,
    /// Of a packed packet `rest`, `limit`, the words that egress reads, and the frame; of others nothing.
    packed: Vec<u8>,
}

impl Deref for InFlight {
    type Target = Packet;

    fn deref(&self) -> &Packet {
        &self.0
    }
}

impl DerefMut for InFlight {
    fn deref_mut(&mut self) -> &mut Packet {
        &mut self.0
    }
}

/// The part of a packet that egress gets besides its words.
pub(crate) struct Handed<'a> {
    pub(crate) frame: &'a [u8],
    pub(crate) rest: u64,
    pub(crate) limit: u64,
}

impl InFlight {
    /// A packet in memory of its own.
    pub(crate) fn new(words: Vec<u128>, frame: Vec<u8>, rest: u64, limit: u64) -> InFlight {
        InFlight(Box::new(Packet {
            words,
            frame,
            rest,
            limit,
            packed: Vec::new(),
        }))
    }
}

impl Packet {
    /// Bytes of its frame.
    pub(crate) fn length(&self, kept: &Kept) -> usize {
        match self.packed.len() {
            0 => self.frame.len(),
            packed => packed - head(kept),
        }
    }

    /// The memory of a packed packet that egress reads.
    pub(crate) fn read_of_packed(&self, kept: &Kept) -> &[u8] {
        let read = head(kept) + run::COPIED;
        &self.packed[..read.min(self.packed.len())]
    }

    /// Gives its words, in exchange for others, and the rest of it to egress.
    pub(crate) fn hand(&mut self, kept: &Kept, words: &mut Vec<u128>) -> Handed<'_> {
        if self.packed.is_empty() {
            std::mem::swap(&mut self.words, words);
            return Handed {
                frame: &self.frame,
                rest: self.rest,
                limit: self.limit,
            };
        }
        unpack(&self.packed, kept, words)
    }

    fn pack(&mut self, kept: &Kept) {
        let packed = &mut self.packed;
        packed.resize(head(kept), 0);
        let (numbers, _) = packed.as_chunks_mut::<NUMBER>();
        let ([rest, limit], words) = numbers.split_at_mut(NUMBERS) else {
            return;
        };
        [*rest, *limit] = [self.rest, self.limit].map(u64::to_ne_bytes);
        let (low, high) = words.split_at_mut(kept.words.len());
        for (low, at) in low.iter_mut().zip(&kept.words) {
            *low = (self.words[*at] as u64).to_ne_bytes();
        }
        for (high, at) in high.iter_mut().zip(&kept.upper) {
            *high = ((self.words[*at] >> 64) as u64).to_ne_bytes();
        }
        packed.extend_from_slice(&self.frame);
    }
}

/// Bytes of a packed packet in front of its frame.
fn head(kept: &Kept) -> usize {
    NUMBER * (NUMBERS + kept.words.len() + kept.upper.len())
}

/// Puts the words of a packed packet into their places among `words`.
fn unpack<'a>(packed: &'a [u8], kept: &Kept, words: &mut [u128]) -> Handed<'a> {
    let (numbers, frame) = packed.split_at(head(kept));
    let (numbers, _) = numbers.as_chunks::<NUMBER>();
    let number = |at: usize| u64::from_ne_bytes(numbers[at]);
    let (low, high) = numbers[NUMBERS..].split_at(kept.words.len());
    for (at, low) in kept.words.iter().zip(low) {
        words[*at] = u128::from(u64::from_ne_bytes(*low));
    }
    for (at, high) in kept.upper.iter().zip(high) {
        words[*at] |= u128::from(u64::from_ne_bytes(*high)) << 64;
    }
    Handed {
        frame,
        rest: number(0),
        limit: number(1),
    }
}

/// Memory of packets that ended.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Packets with words, and without.
    whole: Vec<InFlight>,
    packed: Vec<InFlight>,
    /// Words of a packet.
    words: usize,
}

impl Pool {
    /// No memory, for packets of so many words.
    pub(crate) fn new(words: usize) -> Pool {
        Pool {
            words,
            ..Pool::default()
        }
    }

    /// A packet with a copy of a frame; its words are of any content.
    #[inline]
    pub(crate) fn take(&mut self, frame: &[u8], rest: u64, limit: u64) -> InFlight {
        let spare = self.whole.pop();
        let mut packet = spare.unwrap_or_else(|| {
            let words = vec![0; self.words];
            InFlight::new(words, Vec::new(), 0, 0)
        });
        packet.rest = rest;
        packet.limit = limit;
        let copy = &mut packet.frame;
        copy.clear();
        if copy.capacity() < frame.len() {
            copy.reserve(frame.len().max(run::BUFFER));
        }
        copy.extend_from_slice(frame);
        packet
    }

    /// Takes back the memory of a packet.
    #[inline]
    pub(crate) fn give(&mut self, packet: InFlight) {
        let spare = match packet.packed.len() {
            0 => &mut self.whole,
            _ => &mut self.packed,
        };
        if spare.len() < MAX_SPARE {
            spare.push(packet);
        }
    }

    /// Packs a packet.
    pub(crate) fn pack(&mut self, packet: &mut InFlight, kept: &Kept) {
        if !packet.packed.is_empty() {
            return;
        }
        let mut small = self.packed.pop().unwrap_or_default();
        std::mem::swap(&mut packet.packed, &mut small.packed);
        packet.pack(kept);
        // Words and the frame's buffer are large: a packet that comes soon uses them.
        std::mem::swap(&mut packet.packed, &mut small.packed);
        let whole = std::mem::replace(packet, small);
        self.give(whole);
    }

    /// Unpacks a packet that is packed.
    pub(crate) fn unpack(&mut self, packet: &mut InFlight, kept: &Kept) {
        if packet.packed.is_empty() {
            return;
        }
        let mut words = vec![0; self.words];
        let Handed { frame, rest, limit } = unpack(&packet.packed, kept, &mut words);
        let mut whole = self.take(frame, rest, limit);
        whole.words = words;
        let packed = std::mem::replace(packet, whole);
        self.give(packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: u128 = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;

    fn kept() -> Kept {
        Kept {
            ranges: Vec::new(),
            words: vec![0, 2, 3],
            upper: vec![2],
        }
    }

    fn packet(pool: &mut Pool) -> InFlight {
        let mut packet = pool.take(b"a frame", 3, 5);
        packet.words.copy_from_slice(&[1, 2, WIDE, 4]);
        packet
    }

    #[test]
    fn egress_gets_of_a_packed_packet_what_it_gets_of_a_whole_one() {
        let (mut pool, kept) = (Pool::new(4), kept());
        let mut packet = packet(&mut pool);
        for packed in [false, true] {
            let mut words = vec![9; 4];
            let handed = packet.hand(&kept, &mut words);
            let handed = (handed.frame, handed.rest, handed.limit);
            assert_eq!(handed, (&b"a frame"[..], 3, 5));
            assert_eq!([words[0], words[2], words[3]], [1, WIDE, 4]);
            // Egress does not read this one.
            assert_eq!(words[1], if packed { 9 } else { 2 });
            packet.words = words;
            pool.pack(&mut packet, &kept);
            assert_eq!(packet.length(&kept), 7);
        }
        pool.pack(&mut packet, &kept);
        pool.unpack(&mut packet, &kept);
        assert_eq!(
            (&packet.frame[..], packet.rest, packet.limit),
            (&b"a frame"[..], 3, 5)
        );
        assert_eq!(packet.words[2], WIDE);
        assert_eq!(packet.length(&kept), 7);
    }

    #[test]
    fn a_packed_packet_gives_its_large_memory_back() {
        let (mut pool, kept) = (Pool::new(4), kept());
        let mut held = packet(&mut pool);
        let words = held.words.as_ptr();
        pool.pack(&mut held, &kept);
        assert!(held.words.is_empty() && held.frame.capacity() == 0);
        assert_eq!(pool.take(b"", 0, 0).words.as_ptr(), words);
        let memory = held.packed.as_ptr();
        pool.give(held);
        let mut other = packet(&mut pool);
        pool.pack(&mut other, &kept);
        assert_eq!(other.packed.as_ptr(), memory);
        assert_eq!(other.length(&kept), 7);
    }

    #[test]
    fn of_a_packed_packet_that_is_read_soon_the_start_of_the_frame_is_read() {
        let (mut pool, kept) = (Pool::new(4), kept());
        let mut packet = pool.take(&[1; 2_000], 0, 0);
        assert!(packet.read_of_packed(&kept).is_empty());
        pool.pack(&mut packet, &kept);
        assert_eq!(
            packet.read_of_packed(&kept).len(),
            head(&kept) + run::COPIED
        );
    }
}
