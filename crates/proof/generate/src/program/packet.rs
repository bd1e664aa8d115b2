//! Frames: the generated parser as a graph that says which bits lead where.

use crate::choices::Choices;
use num_bigint::BigUint;

/// States that a frame's path passes at most.
const LONGEST_PATH: usize = 24;

/// Part of the frame that a state takes.
#[derive(Clone, Debug)]
pub(super) enum Take {
    /// This many bits: a header, or skipped bits.
    Bits(u32),
    /// A header of `fixed` bits whose low bits of the first byte, `mask`, say how many
    /// bytes more it has.
    Varbit {
        /// Bits without the variable part.
        fixed: u32,
        /// Bits of the first byte that count.
        mask: u32,
    },
}

/// Bits that a case of a select asks for.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Index of the state's take that contains the bits; `None` for bits behind them all.
    pub(super) take: Option<usize>,
    /// First bit, from the beginning of the take.
    pub(super) offset: u32,
    /// Number of bits.
    pub(super) width: u32,
    /// The value.
    pub(super) value: BigUint,
}

/// A state.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) takes: Vec<Take>,
    /// Exits: the wanted bits, and the next state, if one follows.
    pub(super) cases: Vec<(Vec<Wanted>, Option<usize>)>,
}

/// The states of a parser, the first one first.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    pub(super) nodes: Vec<Node>,
}

/// Bits, some of which are settled.
#[derive(Default)]
struct Bits(Vec<Option<bool>>);

impl Bits {
    fn extend(&mut self, length: usize) {
        if self.0.len() < length {
            self.0.resize(length, None);
        }
    }

    fn put(&mut self, at: usize, width: u32, value: &BigUint) {
        self.extend(at + width as usize);
        for bit in 0..width {
            let set = value.bit(u64::from(width - 1 - bit));
            self.0[at + bit as usize] = Some(set);
        }
    }

    fn number(&self, at: usize, width: usize) -> u32 {
        let bits = self.0.iter().skip(at).take(width);
        bits.fold(0, |number, bit| {
            number << 1 | u32::from(bit.unwrap_or(false))
        })
    }

    /// Settles the rest, in pieces of a byte that are often small numbers.
    fn fill(&mut self, from: usize, choices: &mut Choices) {
        let mut at = from;
        while at < self.0.len() {
            let value = choices.value(8);
            for bit in 0..8 {
                if let Some(open @ None) = self.0.get_mut(at + bit as usize) {
                    *open = Some(value.bit(7 - bit));
                }
            }
            at += 8;
        }
    }
}

impl Packets {
    /// A frame.
    pub(super) fn make(&self, choices: &mut Choices) -> Vec<u8> {
        let mut frame = if choices.chance(10) {
            let length = choices.below(120);
            (0..length).map(|_| choices.below(256) as u8).collect()
        } else {
            self.along_a_path(choices)
        };
        if choices.chance(10) {
            frame.truncate(choices.below(frame.len() + 1));
        } else if frame.len() < 14 || choices.chance(50) {
            let more = choices.below(60) + 14;
            frame.extend((0..more).map(|at| at as u8));
        }
        if choices.chance(10) && !frame.is_empty() {
            let at = choices.below(frame.len());
            frame[at] ^= 1 << choices.below(8);
        }
        frame
    }

    fn along_a_path(&self, choices: &mut Choices) -> Vec<u8> {
        let mut bits = Bits::default();
        let mut end = 0;
        let mut next = Some(0);
        for _ in 0..LONGEST_PATH {
            let Some(node) = next.and_then(|state| self.nodes.get(state)) else {
                break;
            };
            let mut starts = Vec::new();
            for take in &node.takes {
                starts.push(end);
                match take {
                    Take::Bits(width) => end += *width as usize,
                    Take::Varbit { fixed, mask } => {
                        let start = end;
                        bits.extend(start + 8);
                        bits.fill(start, choices);
                        end += (*fixed + 8 * (bits.number(start, 8) & mask)) as usize;
                    }
                }
                bits.extend(end);
            }
            next = None;
            if let Some((wanted, target)) = choices.pick(&node.cases) {
                for wanted in wanted {
                    let start = wanted.take.map_or(Some(&end), |take| starts.get(take));
                    if let Some(start) = start {
                        let at = start + wanted.offset as usize;
                        bits.put(at, wanted.width, &wanted.value);
                    }
                }
                next = *target;
            }
            let from = starts.first().copied().unwrap_or(end);
            let ahead = bits.0.split_off(end.min(bits.0.len()));
            bits.fill(from, choices);
            bits.0.extend(ahead);
        }
        let length = bits.0.len().next_multiple_of(8);
        bits.extend(length);
        bits.fill(0, choices);
        let byte = |bits: &[Option<bool>]| {
            bits.iter()
                .fold(0, |byte, bit| byte << 1 | u8::from(bit.unwrap_or(false)))
        };
        bits.0.chunks(8).map(byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_what_a_path_asks_for() {
        let wanted = |take, offset, value: u32| Wanted {
            take,
            offset,
            width: 8,
            value: value.into(),
        };
        let packets = Packets {
            nodes: vec![
                Node {
                    takes: vec![Take::Bits(24)],
                    cases: vec![(vec![wanted(Some(0), 4, 0xab), wanted(None, 0, 3)], Some(1))],
                },
                Node {
                    takes: vec![Take::Varbit { fixed: 16, mask: 7 }, Take::Bits(8)],
                    cases: vec![(vec![wanted(Some(1), 0, 0xcd)], None)],
                },
            ],
        };
        let mut choices = Choices::new(1);
        for _ in 0..20 {
            let frame = packets.along_a_path(&mut choices);
            assert_eq!(frame.len(), 3 + 2 + 3 + 1);
            assert_eq!(frame[0] & 15, 0xa);
            assert_eq!(frame[1] >> 4, 0xb);
            assert_eq!((frame[3], frame[8]), (3, 0xcd));
        }
    }
}
