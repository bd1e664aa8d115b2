//! Storage of a program's and of one packet's variables: engines agree on it, and on how metadata
//! is preserved from one packet to the next.

use crate::bits::{WORD, mask};
use crate::engine::Preserved;
use crate::error::StateError;
use crate::layout::{Layout, Leaf, LeafKind, MAX_WORDS, scalar_bits};
use smallvec::SmallVec;
use stateplane_ir::{Program, Projection, Type};
use std::ops::Range;

/// A field of the standard metadata: its first word among all variables, and a mask
/// of its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaField {
    /// First word.
    pub at: usize,
    /// Ones where it has bits.
    pub mask: u128,
}

macro_rules! meta_fields {
    ($($name:ident)*) => {
        /// Fields of the standard metadata that the architecture sets or reads; those
        /// that a program's `standard_metadata_t` lacks, or has with more than 128
        /// bits, are `None`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[expect(missing_docs, reason = "named as in v1model.p4")]
        pub struct MetaFields {
            $(pub $name: Option<MetaField>,)*
        }

        impl MetaFields {
            fn find(field: impl Fn(&str) -> Option<MetaField>) -> MetaFields {
                MetaFields {
                    $($name: field(stringify!($name)),)*
                }
            }
        }
    };
}

meta_fields! {
    ingress_port egress_spec egress_port instance_type packet_length enq_timestamp
    enq_qdepth deq_timedelta deq_qdepth ingress_global_timestamp
    egress_global_timestamp mcast_grp egress_rid checksum_error parser_error
}

/// Fields that one field list preserves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldListLeaves {
    /// The list's number.
    pub number: u32,
    /// Offsets are words among all variables.
    pub leaves: Vec<Leaf>,
    /// The parts that their values are kept in.
    parts: Vec<Part>,
}

/// A part of a preserved value: at most 64 bits of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// The word among all variables.
    at: usize,
    /// It is in the word's upper half.
    upper: bool,
    /// Bits, 1 to 64, and as many ones.
    width: u32,
    mask: u64,
}

impl Part {
    /// Parts of a number of `width` bits from the word `at` on, the lowest bits first.
    fn of(at: usize, width: u32) -> impl Iterator<Item = Part> {
        (0..width).step_by(64).map(move |first| {
            let width = (width - first).min(64);
            Part {
                at: at + (first / WORD) as usize,
                upper: first % WORD > 0,
                width,
                mask: u64::MAX >> (64 - width),
            }
        })
    }
}

/// The static storage of a program's variables, in words of 128 bits.
///
/// The blocks of the pipeline work on one packet one after the other, so their
/// parameters of headers, metadata and standard metadata share their words: what one
/// block leaves is what the next one finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Layout of the types.
    pub layout: Layout,
    /// First word of each variable.
    pub bases: Vec<usize>,
    /// Words of all variables.
    pub words: usize,
    /// The words of a packet between blocks: headers, user metadata, standard
    /// metadata. They come first.
    pub packet: Range<usize>,
    /// The user metadata.
    pub metadata: Range<usize>,
    /// The standard metadata.
    pub standard: Range<usize>,
    /// Fields of the standard metadata.
    pub meta: MetaFields,
    /// Field lists.
    pub field_lists: Vec<FieldListLeaves>,
}

impl Storage {
    /// Places the variables of a verified program.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Layout::new`], and [`StateError::TooLarge`] for variables of more
    /// than [`MAX_WORDS`] words together.
    pub fn new(program: &Program) -> Result<Storage, StateError> {
        let layout = Layout::new(program)?;
        let pipeline = &program.pipeline;
        let headers_end = layout.words(pipeline.headers);
        let metadata_end = headers_end + layout.words(pipeline.metadata);
        let standard = Type::Struct(pipeline.standard_metadata);
        let packet_end = metadata_end + layout.words(standard);

        let mut shared = vec![None; program.vars.len()];
        let starts = [0, headers_end, metadata_end];
        let mut share = |params: &[stateplane_ir::Param]| {
            for (param, start) in params.iter().zip(starts) {
                shared[param.var.index()] = Some(start);
            }
        };
        share(&program.parsers[pipeline.parser.index()].params);
        for control in [
            pipeline.verify_checksum,
            pipeline.ingress,
            pipeline.egress,
            pipeline.compute_checksum,
            pipeline.deparser,
        ] {
            share(&program.controls[control.index()].params);
        }

        let mut words = packet_end;
        let mut bases = Vec::with_capacity(program.vars.len());
        for (var, shared) in program.vars.iter().zip(&shared) {
            bases.push(shared.unwrap_or(words));
            if shared.is_none() {
                words = words.saturating_add(layout.words(var.ty));
            }
        }
        if words > MAX_WORDS {
            return Err(StateError::TooLarge {
                what: "the program's variables".to_owned(),
                size: words as u64,
                limit: MAX_WORDS as u64,
            });
        }
        let mut storage = Storage {
            meta: MetaFields::default(),
            field_lists: Vec::new(),
            bases,
            words,
            packet: 0..packet_end,
            metadata: headers_end..metadata_end,
            standard: metadata_end..packet_end,
            layout,
        };
        storage.meta = storage.meta_fields(program);
        storage.field_lists = storage.field_list_leaves(program);
        Ok(storage)
    }

    fn meta_fields(&self, program: &Program) -> MetaFields {
        let id = program.pipeline.standard_metadata;
        let def = &program.structs[id.index()];
        MetaFields::find(|name| {
            let position = def.fields.iter().position(|field| field.name == name)?;
            let width = scalar_bits(def.fields[position].ty);
            (1..=128).contains(&width).then(|| MetaField {
                at: self.standard.start
                    + self.layout.field_offset(Type::Struct(id), position as u32),
                mask: mask(width),
            })
        })
    }

    fn field_list_leaves(&self, program: &Program) -> Vec<FieldListLeaves> {
        let lists = program.field_lists.iter().map(|list| {
            let mut leaves = Vec::new();
            for path in &list.fields {
                let mut ty = program.pipeline.metadata;
                let mut at = self.metadata.start;
                for &step in path {
                    at += self.layout.field_offset(ty, step);
                    let step = Projection::Field(step);
                    ty = program.step_type(ty, &step).unwrap_or(Type::Bits(0));
                }
                leaves.extend(self.layout.leaves(ty).into_iter().map(|leaf| Leaf {
                    offset: leaf.offset + at,
                    ..leaf
                }));
            }
            let numbers = leaves.iter().flat_map(|leaf| parts(*leaf));
            FieldListLeaves {
                number: list.number,
                parts: numbers
                    .flat_map(|(at, width)| Part::of(at, width))
                    .collect(),
                leaves,
            }
        });
        lists.collect()
    }

    fn field_list(&self, number: Option<u32>) -> Option<&FieldListLeaves> {
        self.field_lists
            .iter()
            .find(|list| Some(list.number) == number)
    }

    fn parts_of(&self, field_list: Option<u32>) -> &[Part] {
        self.field_list(field_list).map_or(&[], |list| &list.parts)
    }

    /// Values of a field list of the packet in `words`, which begin with word 0 of
    /// all variables.
    pub fn preserve(&self, field_list: Option<u32>, words: &[u128]) -> Preserved {
        Preserved {
            field_list,
            bits: pack(self.parts_of(field_list), words),
        }
    }

    /// Sets the words of a packet to zero that field lists other than `but` name.
    pub fn clear_field_lists(&self, but: Option<u32>, words: &mut [u128]) {
        let others = self.field_lists.iter().filter(|it| Some(it.number) != but);
        for part in others.flat_map(|list| &list.parts) {
            words[part.at] = 0;
        }
    }

    /// Puts preserved values back into the words of a packet. Those that are missing are 0.
    pub fn restore(&self, preserved: &Preserved, words: &mut [u128]) {
        unpack(self.parts_of(preserved.field_list), &preserved.bits, words);
    }
}

/// Parts of values one behind the other, without gaps.
fn pack(parts: &[Part], words: &[u128]) -> SmallVec<[u64; 4]> {
    let mut bits = SmallVec::new();
    let (mut last, mut used) = (0, 0);
    for part in parts {
        let word = words[part.at];
        let half = if part.upper { word >> 64 } else { word };
        let value = half as u64 & part.mask;
        last |= value << used;
        used += part.width;
        if used >= 64 {
            bits.push(last);
            used -= 64;
            // The bits that had no room; none if all 64 had.
            last = value.checked_shr(part.width - used).unwrap_or(0);
        }
    }
    if used > 0 {
        bits.push(last);
    }
    bits
}

/// Puts what [`pack`] made into the words; what is missing is 0.
fn unpack(parts: &[Part], bits: &[u64], words: &mut [u128]) {
    let bits = |at: usize| bits.get(at).copied().unwrap_or(0);
    let mut from = 0;
    for part in parts {
        let (at, used) = ((from / 64) as usize, from % 64);
        let mut value = bits(at) >> used;
        if used + part.width > 64 {
            value |= bits(at + 1) << (64 - used);
        }
        let value = u128::from(value & part.mask);
        if part.upper {
            words[part.at] |= value << 64;
        } else {
            words[part.at] = value;
        }
        from += part.width;
    }
}

/// First words and widths of the numbers that a leaf is made of: a varbit's length is
/// one of 32 bits before its value.
pub fn parts(leaf: Leaf) -> impl Iterator<Item = (usize, u32)> {
    let varbit = leaf.kind == LeafKind::Varbit;
    let length = varbit.then_some((leaf.offset, 32));
    let value = (leaf.offset + usize::from(varbit), leaf.width);
    length.into_iter().chain([value])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{clear_above, word_count};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_values_come_back(
            numbers in prop::collection::vec((0_u32..300, any::<[u128; 3]>()), 0..12),
        ) {
            let (mut parts, mut words) = (Vec::new(), Vec::new());
            for (width, value) in &numbers {
                parts.extend(Part::of(words.len(), *width));
                words.extend(&value[..word_count(*width)]);
                let at = words.len() - word_count(*width);
                clear_above(&mut words[at..], *width);
            }
            let bits = pack(&parts, &words);
            let widths: u32 = numbers.iter().map(|(width, _)| width).sum();
            prop_assert_eq!(bits.len(), widths.div_ceil(64) as usize);
            let mut back = vec![u128::MAX; words.len()];
            unpack(&parts, &bits, &mut back);
            let mut at = 0;
            for (width, _) in &numbers {
                let range = at..at + word_count(*width);
                at = range.end;
                // A number without bits has no part.
                prop_assert!(*width == 0 || back[range.clone()] == words[range]);
            }
        }
    }

    #[test]
    fn bits_that_words_have_beyond_a_width_are_left_out() {
        let parts: Vec<Part> = [(0, 5), (1, 64), (2, 3)]
            .into_iter()
            .flat_map(|(at, width)| Part::of(at, width))
            .collect();
        let bits = pack(&parts, &[u128::MAX; 3]);
        assert_eq!(bits[..], [u64::MAX, 0xff]);
        let mut words = [7; 3];
        unpack(&parts, &bits, &mut words);
        assert_eq!(words, [0x1f, u128::from(u64::MAX), 7]);
        unpack(&parts, &[], &mut words);
        assert_eq!(words, [0; 3]);
    }
}
