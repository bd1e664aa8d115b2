//! Placement of registers' cells in memory.
//!
//! Arrays of one length lie interleaved: their first elements beside each other, then
//! their second ones, and so on. A program that keeps the fields of a flow in several
//! arrays and reads them all with one index finds them in one or two lines of the cache. The lock
//! of such elements, if the program has locks, lies among them, and that of a unit among those of its
//! first element.
//!
//! A shorter array may lie beside a part of a longer one ([`Program::beside`]): beside each other part
//! another array may.

use super::MAX_REGISTER_WORDS;
use crate::error::StateError;
use crate::value::Shape;
use stateplane_cells::{Grain, LockPlan};
use stateplane_ir::Program;
use std::collections::BTreeMap;
use std::ops::Range;

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

/// Placement of the locks of a domain, each a cell of one byte
/// ([`TargetState::take_lock`](crate::TargetState::take_lock)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockPlacement {
    /// Bytes before the first lock in the memory of all registers.
    pub base: usize,
    /// Bytes from one lock to the next; 0 of a domain with one lock for all its elements.
    pub stride: usize,
    /// Number of elements or units that have a lock each; of a domain with one lock unlimited.
    pub length: u64,
}

impl LockPlacement {
    /// Offset of the lock of the element or unit `index` in the memory of all registers; `None` past
    /// the end.
    pub fn offset(&self, index: u64) -> Option<usize> {
        let is_whole = self.stride == 0;
        (is_whole || index < self.length).then(|| self.base + index as usize * self.stride)
    }
}

/// Placements of a program's registers and locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placements {
    /// By register.
    pub registers: Vec<Placement>,
    /// By domain of the lock plan.
    pub locks: Vec<LockPlacement>,
    /// Bytes that all of them take.
    pub bytes: usize,
}

/// A cell beside those of arrays of one length, which shorter arrays share: each lies beside other elements.
struct Slot {
    bytes: u8,
    /// Elements that have it already.
    taken: Vec<Range<u64>>,
    /// Registers that lie there, and which of their cells.
    cells: Vec<(usize, usize)>,
}

/// Arrays of one length.
#[derive(Default)]
struct Alike {
    registers: Vec<usize>,
    /// Shorter arrays that lie beside these, with the first elements beside which they do.
    guests: Vec<(usize, u64)>,
    slots: Vec<Slot>,
    /// Domains with a lock for so many of their elements.
    domains: Vec<(usize, u64)>,
}

impl Alike {
    /// Puts a shorter array of these cells beside the elements from `first` on.
    fn take_in(&mut self, number: usize, first: u64, size: u64, cells: &[Cell]) {
        let range = first..first.saturating_add(size);
        for (at, cell) in cells.iter().enumerate() {
            let is_free = |slot: &&mut Slot| {
                let overlaps =
                    |taken: &Range<u64>| taken.start < range.end && range.start < taken.end;
                slot.bytes == cell.bytes && !slot.taken.iter().any(overlaps)
            };
            match self.slots.iter_mut().find(is_free) {
                Some(slot) => {
                    slot.taken.push(range.clone());
                    slot.cells.push((number, at));
                }
                None => self.slots.push(Slot {
                    bytes: cell.bytes,
                    taken: vec![range.clone()],
                    cells: vec![(number, at)],
                }),
            }
        }
        self.guests.push((number, first));
    }
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

/// Places the registers of a program, and the locks of a plan.
///
/// # Errors
///
/// [`StateError::Unsupported`] for elements that are no scalars or structs of scalars, and
/// [`StateError::TooLarge`] for more than [`MAX_REGISTER_WORDS`] words in one register.
pub(super) fn place(program: &Program, plan: Option<&LockPlan>) -> Result<Placements, StateError> {
    let mut placed = Vec::new();
    let mut by_length: BTreeMap<u64, Alike> = BTreeMap::new();
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
        match program.beside(def) {
            Some((other, first)) => {
                let alike = by_length.entry(program.registers[other.index()].size);
                let cells = &placed[number].cells;
                alike.or_default().take_in(number, first, def.size, cells);
            }
            None => {
                let alike = by_length.entry(def.size);
                alike.or_default().registers.push(number);
            }
        }
    }
    let domains = plan.map_or(&[][..], |plan| &plan.domains);
    let mut locks = vec![None; domains.len()];
    for (number, domain) in domains.iter().enumerate() {
        let (length, elements) = match domain.grain {
            Grain::Element { length, .. } => (length, 1),
            Grain::Unit {
                elements, count, ..
            } => (elements * count, elements),
            Grain::Whole(_) => continue,
        };
        let alike = by_length.entry(length).or_default();
        alike.domains.push((number, elements));
    }
    let mut end = 0usize;
    for (length, alike) in by_length {
        // The largest first, which leaves no gaps.
        let mut offset = 0;
        let mut largest = 1;
        for bytes in [16, 8, 4, 2, 1] {
            for &number in &alike.registers {
                for cell in &mut placed[number].cells {
                    if cell.bytes == bytes {
                        cell.offset = offset;
                        offset += usize::from(bytes);
                        largest = largest.max(usize::from(bytes));
                    }
                }
            }
            for slot in alike.slots.iter().filter(|slot| slot.bytes == bytes) {
                for &(number, cell) in &slot.cells {
                    placed[number].cells[cell].offset = offset;
                }
                offset += usize::from(bytes);
                largest = largest.max(usize::from(bytes));
            }
        }
        let first_lock = offset;
        offset += alike.domains.len();
        let stride = stride(offset, largest);
        for (at, (number, elements)) in alike.domains.into_iter().enumerate() {
            locks[number] = Some(LockPlacement {
                base: end.saturating_add(first_lock + at),
                stride: stride.saturating_mul(elements as usize),
                length: length / elements,
            });
        }
        let all = alike.registers.into_iter().map(|number| (number, 0));
        for (number, first) in all.chain(alike.guests) {
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            placed[number].base = end.saturating_add(first.saturating_mul(stride));
            placed[number].stride = stride;
        }
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = bytes.saturating_mul(stride);
        end = end.saturating_add(bytes).next_multiple_of(LINE);
    }
    // Locks that all use lie in lines of their own.
    let locks = locks.into_iter().map(|lock| {
        lock.unwrap_or_else(|| {
            let base = end;
            end = end.saturating_add(LINE);
            LockPlacement {
                base,
                stride: 0,
                length: u64::MAX,
            }
        })
    });
    Ok(Placements {
        locks: locks.collect(),
        registers: placed,
        bytes: end,
    })
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
