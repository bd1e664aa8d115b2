//! Placement of registers' cells in memory.
//!
//! Arrays of one length lie interleaved: their first elements beside each other, then
//! their second ones, and so on. A program that keeps the fields of a flow in several
//! arrays and reads them all with one index finds them in one or two lines of the cache.

use super::MAX_REGISTER_WORDS;
use crate::error::StateError;
use crate::value::Shape;
use stateplane_ir::Program;
use std::collections::BTreeMap;

/// A line of the cache, in bytes.
const LINE: usize = 64;

/// A scalar of an element, or 128 bits of one that is wider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Bytes from where the element begins.
    pub offset: usize,
    /// Its size in bytes: 1, 2, 4, 8 or 16. Bits above the scalar's width are zero.
    pub bytes: u8,
}

/// Placement of a register's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Bytes before the first element in the memory of all registers.
    pub base: usize,
    /// Bytes from one element to the next.
    pub stride: usize,
    /// The cells of an element, by the words of its value.
    pub cells: Vec<Cell>,
}

/// Sizes of the cells for a value.
fn sizes(shape: &Shape, sizes_of: &mut Vec<u8>) {
    match shape {
        Shape::Struct(members) => {
            for (_, member) in members {
                sizes(member, sizes_of);
            }
        }
        Shape::Bits(width) => sizes_of.extend(match width {
            0..=8 => vec![1],
            9..=16 => vec![2],
            17..=32 => vec![4],
            33..=64 => vec![8],
            _ => vec![16; crate::bits::word_count(*width)],
        }),
    }
}

/// Places the registers of a program; also the bytes that all of them take.
///
/// # Errors
///
/// [`StateError::Unsupported`] for elements that are no scalars or structs of scalars, and
/// [`StateError::TooLarge`] for more than [`MAX_REGISTER_WORDS`] words in one register.
pub(super) fn place(program: &Program) -> Result<(Vec<Placement>, usize), StateError> {
    let mut placed = Vec::new();
    let mut by_length: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, def) in program.registers.iter().enumerate() {
        let shape = Shape::of(program, def.element).ok_or(StateError::Unsupported {
            what: "a register of headers, stacks or varbits",
            place: def.name.clone(),
            instead: "make its elements scalars or structs of scalars",
        })?;
        let size = (shape.words() as u64).saturating_mul(def.size);
        if size > MAX_REGISTER_WORDS {
            return Err(StateError::TooLarge {
                what: format!("register `{}`", def.name),
                size,
                limit: MAX_REGISTER_WORDS,
            });
        }
        let mut bytes = Vec::new();
        sizes(&shape, &mut bytes);
        let cells = bytes.into_iter().map(|bytes| Cell { offset: 0, bytes });
        placed.push(Placement {
            base: 0,
            stride: 0,
            cells: cells.collect(),
        });
        by_length.entry(def.size).or_default().push(number);
    }
    let mut end = 0usize;
    for (length, numbers) in by_length {
        // The largest first, which leaves no gaps.
        let mut offset = 0;
        let mut largest = 1;
        for bytes in [16, 8, 4, 2, 1] {
            for &number in &numbers {
                for cell in &mut placed[number].cells {
                    if cell.bytes == bytes {
                        cell.offset = offset;
                        offset += usize::from(bytes);
                        largest = largest.max(usize::from(bytes));
                    }
                }
            }
        }
        let stride = stride(offset, largest);
        for number in numbers {
            placed[number].base = end;
            placed[number].stride = stride;
        }
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = bytes.saturating_mul(stride);
        end = end.saturating_add(bytes).next_multiple_of(LINE);
    }
    Ok((placed, end))
}

/// Bytes from one element to the next: what the cells take, or little more so that no
/// element reaches into more lines than it must.
fn stride(bytes: usize, largest: usize) -> usize {
    let least = bytes.next_multiple_of(largest);
    let even = if bytes > LINE {
        bytes.next_multiple_of(LINE)
    } else {
        bytes.next_power_of_two()
    };
    if even <= least + least / 3 {
        even
    } else {
        least
    }
}
