//! P4-16 text to syntax tree.

pub mod tree;

/// The greatest width, in bits, that the prefix of a number literal may name. The
/// specification sets none; this bounds the memory that one literal can ask for.
pub const MAX_LITERAL_WIDTH: u32 = 1 << 16;
