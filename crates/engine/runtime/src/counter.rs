//! Packet and byte counters.

use crate::error::{Kind, StateError};
use stateplane_ir::{CounterKind, Program};
use std::ops::{AddAssign, Range};

/// Elements that one counter or meter array may have.
pub const MAX_ARRAY: u64 = 1 << 24;

/// Count of packets and bytes. Both numbers wrap at 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets, from the frame's first byte.
    pub bytes: u64,
}

impl Count {
    /// Counts a packet of `bytes` bytes.
    pub fn add(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}

/// Unused elements before and behind those of an array: a line of the cache each, so that engines
/// which count at the same time do not share one.
const APART: usize = 64 / size_of::<Count>();

/// An indirect counter array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    name: String,
    kind: CounterKind,
    table: Option<String>,
    /// With the unused ones.
    elements: Vec<Count>,
}

/// Elements for an array of `size`.
fn elements(size: usize) -> Vec<Count> {
    vec![Count::default(); size + 2 * APART]
}

pub(crate) fn checked_size(kind: Kind, name: &str, size: u64) -> Result<usize, StateError> {
    if size > MAX_ARRAY {
        return Err(StateError::TooLarge {
            what: format!("{kind} `{name}`"),
            size,
            limit: MAX_ARRAY,
        });
    }
    Ok(size as usize)
}

impl Counter {
    pub(crate) fn new(
        program: &Program,
        def: &stateplane_ir::Counter,
    ) -> Result<Counter, StateError> {
        let size = checked_size(Kind::Counter, &def.name, def.size)?;
        Ok(Counter {
            name: def.name.clone(),
            table: def
                .table
                .map(|table| program.tables[table.index()].name.clone()),
            kind: def.kind,
            elements: elements(size),
        })
    }

    /// Full control-plane name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Full name of the table to whose entries it belongs, if it is a direct one.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// Declared unit of the counter; packets and bytes are counted in any case.
    pub fn kind(&self) -> CounterKind {
        self.kind
    }

    /// All elements in order; none for a direct counter, whose counts are with the
    /// entries of its table.
    pub fn counts(&self) -> &[Count] {
        &self.elements[APART..self.elements.len() - APART]
    }

    /// All elements, for a data plane that counts on its own.
    pub fn counts_mut(&mut self) -> &mut [Count] {
        let end = self.elements.len() - APART;
        &mut self.elements[APART..end]
    }

    /// Counts a packet of `bytes` bytes; nothing past the end.
    pub fn count(&mut self, index: u64, bytes: u64) {
        let element = usize::try_from(index)
            .ok()
            .and_then(|index| self.counts_mut().get_mut(index));
        if let Some(element) = element {
            element.add(bytes);
        }
    }

    /// The same counter with nothing counted, for another engine.
    pub(crate) fn fellow(&self) -> Counter {
        Counter {
            name: self.name.clone(),
            kind: self.kind,
            table: self.table.clone(),
            elements: elements(self.counts().len()),
        }
    }

    /// Moves what a fellow has counted at these elements to this one.
    pub(crate) fn gather(&mut self, fellow: &mut Counter, indices: Range<u64>) {
        let size = self.counts().len().min(fellow.counts().len());
        let bound = |index: u64| usize::try_from(index).unwrap_or(size).min(size);
        let range = bound(indices.start)..bound(indices.end);
        let theirs = fellow.counts_mut()[range.clone()].iter_mut();
        for (own, theirs) in self.counts_mut()[range].iter_mut().zip(theirs) {
            *own += std::mem::take(theirs);
        }
    }

    fn position(&self, index: u64) -> Result<usize, StateError> {
        usize::try_from(index)
            .ok()
            .filter(|&index| index < self.counts().len())
            .ok_or_else(|| StateError::Index {
                kind: Kind::Counter,
                name: self.name.clone(),
                index,
                size: self.counts().len() as u64,
            })
    }

    /// Reads an element.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end.
    pub fn read(&self, index: u64) -> Result<Count, StateError> {
        Ok(self.counts()[self.position(index)?])
    }

    /// Sets an element.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end.
    pub fn write(&mut self, index: u64, count: Count) -> Result<(), StateError> {
        let position = self.position(index)?;
        self.counts_mut()[position] = count;
        Ok(())
    }
}
