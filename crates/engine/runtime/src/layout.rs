//! Layout of the parts of a value: every type is a number of words.
//!
//! | type | words |
//! |---|---|
//! | scalar, `error`, enum | [`word_count`] of its width |
//! | varbit | its length in bits, then the words of its greatest width |
//! | struct, union | the members |
//! | header | validity (0 or 1), then the members |
//! | stack | `nextIndex`, then the elements |
//!
//! All zero is the default value of every type.

#[cfg(test)]
mod tests;

use crate::bits::word_count;
use crate::error::StateError;
use stateplane_ir::{Program, StackId, StructId, Type};

/// Words that one variable, register element or packet may take at most.
pub const MAX_WORDS: usize = 1 << 20;

/// Depth to which types may contain types, which also refuses a type that contains
/// itself.
pub const MAX_DEPTH: u32 = 64;

/// Width in bits of `error` and enum values.
pub const INDEX_WIDTH: u32 = 32;

/// A scalar or varbit within a larger value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// First word, from the start of the larger value.
    pub offset: usize,
    /// Width in bits; of a varbit the greatest.
    pub width: u32,
    /// Kind of the leaf.
    pub kind: LeafKind,
}

/// Kinds of [`Leaf`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// A scalar.
    Scalar,
    /// A varbit: one word of length, then the value.
    Varbit,
    /// The validity of a header; a scalar of width 1.
    Validity,
    /// `nextIndex` of a stack; a scalar of width 32.
    NextIndex,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StructLayout {
    /// First word of each member, without a header's word of validity.
    offsets: Vec<usize>,
    size: usize,
    /// Scalars and varbits in order, without a header's validity.
    leaves: Vec<Leaf>,
    /// Sum of the widths, varbits left out.
    fixed_bits: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StackLayout {
    element: Type,
    stride: usize,
    count: u32,
}

/// The layout of all types of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    structs: Vec<StructLayout>,
    stacks: Vec<StackLayout>,
}

fn shifted(leaf: Leaf, by: usize) -> Leaf {
    Leaf {
        offset: leaf.offset + by,
        ..leaf
    }
}

fn scalar_words(ty: Type) -> usize {
    match ty {
        Type::Varbit(width) => 1 + word_count(width),
        _ => word_count(scalar_bits(ty)),
    }
}

/// Width in bits of a scalar, `error` and enums included; of a varbit the greatest,
/// of all other types 0.
pub fn scalar_bits(ty: Type) -> u32 {
    match ty {
        Type::Error | Type::Enum(_) => INDEX_WIDTH,
        Type::Varbit(width) => width,
        _ => ty.scalar_width().unwrap_or(0),
    }
}

impl Layout {
    /// Lays out the types of `program`.
    ///
    /// # Errors
    ///
    /// [`StateError::TooLarge`] for a type of more than [`MAX_WORDS`] words,
    /// [`StateError::TooDeep`] for one nested deeper than [`MAX_DEPTH`].
    pub fn new(program: &Program) -> Result<Layout, StateError> {
        let mut layout = Layout {
            structs: vec![StructLayout::default(); program.structs.len()],
            stacks: program
                .stacks
                .iter()
                .map(|def| StackLayout {
                    element: def.element,
                    stride: 0,
                    count: def.size,
                })
                .collect(),
        };
        let mut ready = vec![false; program.structs.len()];
        for index in 0..program.structs.len() {
            layout.prepare(Type::Struct(StructId(index as u32)), program, &mut ready, 0)?;
        }
        for index in 0..program.stacks.len() {
            layout.prepare(Type::Stack(StackId(index as u32)), program, &mut ready, 0)?;
        }
        Ok(layout)
    }

    /// Lays out `ty` after its parts.
    fn prepare(
        &mut self,
        ty: Type,
        program: &Program,
        ready: &mut [bool],
        depth: u32,
    ) -> Result<(), StateError> {
        if depth > MAX_DEPTH {
            return Err(StateError::TooDeep { limit: MAX_DEPTH });
        }
        match ty {
            Type::Struct(id) | Type::Header(id) | Type::Union(id) => {
                if ready[id.index()] {
                    return Ok(());
                }
                let def = &program.structs[id.index()];
                let mut layout = StructLayout::default();
                for field in &def.fields {
                    self.prepare(field.ty, program, ready, depth + 1)?;
                    layout.offsets.push(layout.size);
                    let size = layout.size.saturating_add(self.words(field.ty));
                    check_size(&def.name, size)?;
                    self.collect_leaves(field.ty, layout.size, &mut layout.leaves);
                    layout.size = size;
                }
                for leaf in &layout.leaves {
                    if leaf.kind == LeafKind::Scalar {
                        layout.fixed_bits += leaf.width;
                    }
                }
                ready[id.index()] = true;
                self.structs[id.index()] = layout;
            }
            Type::Stack(id) => {
                let def = &program.stacks[id.index()];
                self.prepare(def.element, program, ready, depth + 1)?;
                let stride = self.words(def.element);
                check_size("header stack", stride.saturating_mul(def.size as usize))?;
                self.stacks[id.index()].stride = stride;
            }
            _ => {}
        }
        Ok(())
    }

    /// Words that a value of type `ty` takes.
    pub fn words(&self, ty: Type) -> usize {
        match ty {
            Type::Struct(id) | Type::Union(id) => self.structs[id.index()].size,
            Type::Header(id) => self.structs[id.index()].size + 1,
            Type::Stack(id) => {
                let stack = &self.stacks[id.index()];
                1 + stack.stride * stack.count as usize
            }
            scalar => scalar_words(scalar),
        }
    }

    /// First word of member `field` from the start of a value of type `ty`, which is
    /// a struct, union or header.
    pub fn field_offset(&self, ty: Type, field: u32) -> usize {
        match ty {
            Type::Struct(id) | Type::Union(id) => self.structs[id.index()].offsets[field as usize],
            Type::Header(id) => self.structs[id.index()].offsets[field as usize] + 1,
            _ => 0,
        }
    }

    /// Type of the elements of a stack, words from one to the next, and how many
    /// there are. The first element begins one word after the stack.
    pub fn stack(&self, stack: StackId) -> (Type, usize, u32) {
        let stack = &self.stacks[stack.index()];
        (stack.element, stack.stride, stack.count)
    }

    /// Scalars and varbits of a header in order; offsets do not count the word of
    /// validity.
    pub fn header_leaves(&self, header: StructId) -> &[Leaf] {
        &self.structs[header.index()].leaves
    }

    /// Bits that a header takes in a packet, varbits left out.
    pub fn header_bits(&self, header: StructId) -> u32 {
        self.structs[header.index()].fixed_bits
    }

    /// All parts of a value of type `ty`.
    pub fn leaves(&self, ty: Type) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.collect_leaves(ty, 0, &mut leaves);
        leaves
    }

    fn collect_leaves(&self, ty: Type, at: usize, leaves: &mut Vec<Leaf>) {
        let leaf = |kind, width| Leaf {
            offset: at,
            width,
            kind,
        };
        match ty {
            Type::Struct(id) | Type::Union(id) => {
                let inner = &self.structs[id.index()].leaves;
                leaves.extend(inner.iter().map(|leaf| shifted(*leaf, at)));
            }
            Type::Header(id) => {
                leaves.push(leaf(LeafKind::Validity, 1));
                let inner = &self.structs[id.index()].leaves;
                leaves.extend(inner.iter().map(|leaf| shifted(*leaf, at + 1)));
            }
            Type::Stack(id) => {
                leaves.push(leaf(LeafKind::NextIndex, INDEX_WIDTH));
                let (element, stride, count) = self.stack(id);
                for index in 0..count as usize {
                    self.collect_leaves(element, at + 1 + index * stride, leaves);
                }
            }
            Type::Varbit(width) => leaves.push(leaf(LeafKind::Varbit, width)),
            scalar => leaves.push(leaf(LeafKind::Scalar, scalar_bits(scalar))),
        }
    }
}

fn check_size(what: &str, words: usize) -> Result<(), StateError> {
    if words > MAX_WORDS {
        return Err(StateError::TooLarge {
            what: what.to_owned(),
            size: words as u64,
            limit: MAX_WORDS as u64,
        });
    }
    Ok(())
}
