//! Register arrays.

mod memory;
mod placement;
#[cfg(test)]
mod tests;

pub(crate) use memory::Memory;
pub use placement::{Cell, LockPlacement, Placement, Placements};

use crate::bits;
use crate::error::{Kind, StateError};
use crate::value::{Shape, Value};
use stateplane_cells::LockPlan;
use stateplane_ir::{Annotation, DRAWN_AT_START, IN_VIEW, Program};
use std::sync::Arc;

/// Words that one register array may take: 1 GiB.
pub const MAX_REGISTER_WORDS: u64 = 1 << 26;

/// A register array. All elements are zero at first.
#[derive(Debug)]
pub struct Register {
    name: String,
    /// True if [`TargetState::draw`](crate::TargetState::draw) fills it.
    drawn: bool,
    in_view: bool,
    shape: Shape,
    /// Words of one element.
    stride: usize,
    size: u64,
    placement: Placement,
    /// The memory of all registers of the program.
    memory: Arc<Memory>,
}

impl PartialEq for Register {
    /// True if both have one name, shape and size, and the same elements.
    fn eq(&self, other: &Register) -> bool {
        let mut words = [vec![0; self.stride], vec![0; self.stride]];
        let [one, two] = &mut words;
        self.name == other.name
            && self.shape == other.shape
            && self.size == other.size
            && (0..self.size).all(|index| {
                self.load(index, one);
                other.load(index, two);
                one == two
            })
    }
}

impl Eq for Register {}

impl Register {
    /// The registers of a program, where `placements` say in one memory.
    pub(crate) fn all(
        program: &Program,
        placements: Vec<Placement>,
        memory: &Arc<Memory>,
    ) -> Vec<Register> {
        let registers = program.registers.iter().zip(placements);
        registers
            .filter_map(|(def, placement)| {
                let shape = Shape::of(program, def.element)?;
                Some(Register {
                    name: def.name.clone(),
                    drawn: Annotation::find(&def.annotations, DRAWN_AT_START).is_some(),
                    in_view: Annotation::find(&def.annotations, IN_VIEW).is_some(),
                    stride: shape.words(),
                    shape,
                    size: def.size,
                    placement,
                    memory: memory.clone(),
                })
            })
            .collect()
    }

    /// Placements of the elements of a program's registers and of the locks of a plan, equal for
    /// all states of the program with that plan.
    ///
    /// # Errors
    ///
    /// [`StateError::Unsupported`] and [`StateError::TooLarge`].
    pub fn placements(
        program: &Program,
        plan: Option<&LockPlan>,
    ) -> Result<Placements, StateError> {
        placement::place(program, plan)
    }

    /// Full control-plane name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if control planes write it by way of a view of sync alone.
    pub fn is_in_view(&self) -> bool {
        self.in_view
    }

    /// Number of elements.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Shape of the elements' values.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Reads the words of the element `index` as the data plane sees it; `false`, and
    /// nothing is read, past the end.
    pub fn load(&self, index: u64, words: &mut [u128]) -> bool {
        if index >= self.size {
            return false;
        }
        let at = self.element(index);
        for (cell, word) in self.placement.cells.iter().zip(words) {
            *word = self.memory.load(at + cell.offset, cell.bytes);
        }
        true
    }

    /// The first word of the element `index`, which of a scalar up to 128 bits is all;
    /// `None` past the end.
    pub fn word(&self, index: u64) -> Option<u128> {
        let mut word = [0];
        self.load(index, &mut word).then_some(word[0])
    }

    /// Writes the words of the element `index` for the data plane; `false`, and nothing is
    /// written, past the end. Bits above a scalar's width must be zero.
    pub fn store(&mut self, index: u64, words: &[u128]) -> bool {
        if index >= self.size {
            return false;
        }
        let at = self.element(index);
        for (cell, word) in self.placement.cells.iter().zip(words) {
            self.memory.store(at + cell.offset, cell.bytes, *word);
        }
        true
    }

    fn element(&self, index: u64) -> usize {
        self.placement.base + index as usize * self.placement.stride
    }

    /// Placement of the elements.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The memory of all registers of its program, and the bytes that it has, for a data
    /// plane that reads and writes on its own: where [`Placement`] says, and so that bits
    /// above a scalar's width stay zero.
    pub fn memory(&self) -> (*mut u8, usize) {
        (self.memory.pointer(), self.memory.bytes())
    }

    /// Register with the same elements, for another engine.
    pub(crate) fn share(&self) -> Register {
        Register {
            name: self.name.clone(),
            drawn: self.drawn,
            in_view: self.in_view,
            shape: self.shape.clone(),
            stride: self.stride,
            size: self.size,
            placement: self.placement.clone(),
            memory: self.memory.clone(),
        }
    }

    /// Fills the array with random elements if the program wants that. `random` gives 64
    /// random bits at a time.
    pub(crate) fn draw(&mut self, random: &mut dyn FnMut() -> u64) {
        if !self.drawn {
            return;
        }
        let mut words = Vec::with_capacity(self.stride);
        for index in 0..self.size {
            words.clear();
            push_random(&self.shape, random, &mut words);
            self.store(index, &words);
        }
    }

    /// Takes over the elements that both have of a register of the same shape.
    pub(crate) fn copy_from(&mut self, other: &Register) {
        let mut words = vec![0; self.stride];
        for index in 0..self.size.min(other.size) {
            other.load(index, &mut words);
            self.store(index, &words);
        }
    }

    fn out_of_range(&self, index: u64) -> StateError {
        StateError::Index {
            kind: Kind::Register,
            name: self.name.clone(),
            index,
            size: self.size,
        }
    }

    /// Reads an element.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end.
    pub fn read(&self, index: u64) -> Result<Value, StateError> {
        let mut words = vec![0; self.stride];
        if !self.load(index, &mut words) {
            return Err(self.out_of_range(index));
        }
        Ok(self.shape.value(&words))
    }

    /// Writes an element.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end, [`StateError::TooWide`] or
    /// [`StateError::Shape`] for a value that is no element.
    pub fn write(&mut self, index: u64, value: &Value) -> Result<(), StateError> {
        let mut words = Vec::with_capacity(self.stride);
        self.shape
            .words_of(value, &format!("register `{}`", self.name), &mut words)?;
        if !self.store(index, &words) {
            return Err(self.out_of_range(index));
        }
        Ok(())
    }

    /// Writes one value to all elements.
    ///
    /// # Errors
    ///
    /// [`StateError::TooWide`] or [`StateError::Shape`].
    pub fn fill(&mut self, value: &Value) -> Result<(), StateError> {
        let mut words = Vec::with_capacity(self.stride);
        self.shape
            .words_of(value, &format!("register `{}`", self.name), &mut words)?;
        for index in 0..self.size {
            self.store(index, &words);
        }
        Ok(())
    }
}

/// Appends the words of a random value.
fn push_random(shape: &Shape, random: &mut dyn FnMut() -> u64, words: &mut Vec<u128>) {
    match shape {
        Shape::Bits(width) => {
            let start = words.len();
            for _ in 0..bits::word_count(*width) {
                words.push((u128::from(random()) << 64) | u128::from(random()));
            }
            bits::clear_above(&mut words[start..], *width);
        }
        Shape::Struct(members) => {
            for (_, member) in members {
                push_random(member, random, words);
            }
        }
    }
}
