//! Register arrays.

use crate::error::{Kind, StateError};
use crate::value::{Shape, Value};
use stateplane_ir::Program;

/// Words that one register array may take: 1 GiB.
pub const MAX_REGISTER_WORDS: u64 = 1 << 26;

/// A register array. All elements are zero at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    name: String,
    shape: Shape,
    /// Words of one element.
    stride: usize,
    size: u64,
    words: Vec<u128>,
}

impl Register {
    pub(crate) fn new(
        program: &Program,
        def: &stateplane_ir::Register,
    ) -> Result<Register, StateError> {
        let shape = Shape::of(program, def.element).ok_or(StateError::Unsupported {
            what: "a register of headers, stacks or varbits",
            place: def.name.clone(),
            instead: "make its elements scalars or structs of scalars",
        })?;
        let stride = shape.words();
        let size = (stride as u64).saturating_mul(def.size);
        if size > MAX_REGISTER_WORDS {
            return Err(StateError::TooLarge {
                what: format!("register `{}`", def.name),
                size,
                limit: MAX_REGISTER_WORDS,
            });
        }
        Ok(Register {
            name: def.name.clone(),
            shape,
            stride,
            size: def.size,
            words: vec![0; size as usize],
        })
    }

    /// Full control-plane name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of elements.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What values its elements have.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The element `index` as the data plane sees it; `None` past the end.
    pub fn words(&self, index: u64) -> Option<&[u128]> {
        if index >= self.size {
            return None;
        }
        let at = index as usize * self.stride;
        self.words.get(at..at + self.stride)
    }

    /// The element `index` for the data plane to change; `None` past the end. Bits
    /// above a scalar's width must stay zero.
    pub fn words_mut(&mut self, index: u64) -> Option<&mut [u128]> {
        if index >= self.size {
            return None;
        }
        let at = index as usize * self.stride;
        self.words.get_mut(at..at + self.stride)
    }

    /// The words of all elements, for a data plane that reads and writes on its own.
    /// Bits above a scalar's width must stay zero.
    pub fn all_words_mut(&mut self) -> &mut [u128] {
        &mut self.words
    }

    /// Takes over the elements that both have of a register of the same shape.
    pub(crate) fn copy_from(&mut self, other: &Register) {
        let both = self.words.len().min(other.words.len());
        self.words[..both].copy_from_slice(&other.words[..both]);
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
        let words = self.words(index).ok_or_else(|| self.out_of_range(index))?;
        Ok(self.shape.value(words))
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
        let error = self.out_of_range(index);
        self.words_mut(index).ok_or(error)?.copy_from_slice(&words);
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
        for element in self.words.chunks_exact_mut(self.stride.max(1)) {
            element.copy_from_slice(&words);
        }
        Ok(())
    }
}
