//! Storage of a program's and of one packet's variables: engines agree on it, and on how metadata
//! is preserved from one packet to the next.

use crate::bits::{BitWriter, WORD, clear_above, mask, read_words, word_count};
use crate::engine::Preserved;
use crate::error::StateError;
use crate::layout::{Layout, Leaf, LeafKind, MAX_WORDS, scalar_bits};
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
    /// First words and widths of the numbers that the leaves are made of.
    numbers: Vec<(usize, u32)>,
    /// Bytes of them all.
    bytes: usize,
}

/// Bytes that are moved at once where a number has no more: a move of a length that is known to the
/// compiler costs a fraction of one of any length.
const CHUNK: usize = 8;

/// True of a number that is moved as a [`CHUNK`].
fn fits_chunk(width: u32) -> bool {
    (1..=8 * CHUNK as u32).contains(&width)
}

/// Bytes of a number of `width` bits among preserved values.
fn bytes_of(width: u32) -> usize {
    width.div_ceil(8) as usize
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
            let numbers: Vec<(usize, u32)> = leaves.iter().flat_map(|leaf| parts(*leaf)).collect();
            FieldListLeaves {
                number: list.number,
                leaves,
                bytes: numbers.iter().map(|(_, width)| bytes_of(*width)).sum(),
                numbers,
            }
        });
        lists.collect()
    }

    fn field_list(&self, number: Option<u32>) -> Option<&FieldListLeaves> {
        self.field_lists
            .iter()
            .find(|list| Some(list.number) == number)
    }

    /// Values of a field list of the packet in `words`, which begin with word 0 of
    /// all variables.
    pub fn preserve(&self, field_list: Option<u32>, words: &[u128]) -> Preserved {
        let mut bytes = Vec::new();
        if let Some(list) = self.field_list(field_list) {
            bytes.reserve_exact(list.bytes + CHUNK);
            for &(at, width) in &list.numbers {
                let size = bytes_of(width);
                if fits_chunk(width) {
                    let value = (words[at] as u64) << (8 * (CHUNK - size));
                    bytes.extend_from_slice(&value.to_be_bytes());
                    bytes.truncate(bytes.len() - (CHUNK - size));
                } else if width <= WORD {
                    let value = words[at].to_be_bytes();
                    bytes.extend_from_slice(&value[value.len() - size..]);
                } else {
                    let value = &words[at..at + word_count(width)];
                    BitWriter::new(&mut bytes).put_words(value, size as u32 * 8);
                }
            }
        }
        Preserved { field_list, bytes }
    }

    /// Sets the words of a packet that field lists name to zero.
    pub fn clear_field_lists(&self, words: &mut [u128]) {
        for (at, width) in self.field_lists.iter().flat_map(|list| &list.numbers) {
            words[*at..*at + word_count(*width)].fill(0);
        }
    }

    /// Puts preserved values back into the words of a packet. Bytes that are missing
    /// leave the rest as it is.
    pub fn restore(&self, preserved: &Preserved, words: &mut [u128]) {
        let Some(list) = self.field_list(preserved.field_list) else {
            return;
        };
        let mut rest = &preserved.bytes[..];
        for &(at, width) in &list.numbers {
            let size = bytes_of(width);
            if fits_chunk(width)
                && let Some(chunk) = rest.first_chunk()
            {
                let value = u64::from_be_bytes(*chunk) >> (8 * (CHUNK - size));
                words[at] = u128::from(value) & mask(width);
                rest = &rest[size..];
                continue;
            }
            let Some((value, behind)) = rest.split_at_checked(size) else {
                return;
            };
            rest = behind;
            let words = &mut words[at..at + word_count(width)];
            if width <= WORD {
                let mut word = [0; WORD as usize / 8];
                let start = word.len() - value.len();
                word[start..].copy_from_slice(value);
                words[0] = u128::from_be_bytes(word);
            } else {
                read_words(value, 0, value.len() as u32 * 8, words);
            }
            clear_above(words, width);
        }
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
