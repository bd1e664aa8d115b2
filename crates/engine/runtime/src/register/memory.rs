//! Memory of registers: cells of 1, 2, 4, 8 or 16 bytes.

#![allow(unsafe_code, reason = "cells of several sizes lie in one memory")]

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A line of the cache, in bytes.
const LINE: usize = 64;

/// A huge page, in bytes, with which large memory begins.
const HUGE: usize = 2 << 20;

/// Bytes that are zero at first. Cells up to 8 bytes are read and written at once, also
/// where several threads do so; larger ones in parts of 8.
#[derive(Debug)]
pub(crate) struct Memory {
    words: Box<[AtomicU64]>,
    /// Bytes before the first that is used.
    start: usize,
    bytes: usize,
}

impl Memory {
    /// So many bytes, which the system provides when they are first touched.
    pub(crate) fn new(bytes: usize) -> Memory {
        let align = if bytes < HUGE { LINE } else { HUGE };
        let words = vec![0u64; (bytes + align).div_ceil(8)].into_boxed_slice();
        // SAFETY: an `AtomicU64` is laid out as a `u64`, and the box is given away.
        let words = unsafe { Box::from_raw(Box::into_raw(words) as *mut [AtomicU64]) };
        let start = words.as_ptr().addr().next_multiple_of(align) - words.as_ptr().addr();
        Memory {
            words,
            start,
            bytes,
        }
    }

    /// The first byte.
    pub(crate) fn pointer(&self) -> *mut u8 {
        // SAFETY: the start is within the words, and atomics may be written through
        // shared pointers.
        unsafe { self.words.as_ptr().cast::<u8>().add(self.start).cast_mut() }
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The lock cell at `offset`.
    pub(crate) fn flag(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: the cell is within the memory, lives as long as it, and is never reached as one
        // of another size.
        unsafe { AtomicU8::from_ptr(self.cell(offset, 1)) }
    }

    fn cell(&self, offset: usize, bytes: u8) -> *mut u8 {
        let size = usize::from(bytes);
        assert!(offset + size <= self.bytes && offset.is_multiple_of(size.min(8)));
        // SAFETY: within the memory, as the line above makes sure.
        unsafe { self.pointer().add(offset) }
    }

    /// Reads a cell of `bytes` bytes.
    pub(super) fn load(&self, offset: usize, bytes: u8) -> u128 {
        const ORDER: Ordering = Ordering::Relaxed;
        let cell = self.cell(offset, bytes);
        // SAFETY: the cell is within the memory and aligned to its size, or to 8 bytes,
        // and is never reached as one of another size.
        unsafe {
            match bytes {
                1 => u128::from(AtomicU8::from_ptr(cell).load(ORDER)),
                2 => u128::from(AtomicU16::from_ptr(cell.cast()).load(ORDER)),
                4 => u128::from(AtomicU32::from_ptr(cell.cast()).load(ORDER)),
                8 => u128::from(AtomicU64::from_ptr(cell.cast()).load(ORDER)),
                _ => {
                    let cell = cell.cast::<u64>();
                    let low = AtomicU64::from_ptr(cell).load(ORDER);
                    let high = AtomicU64::from_ptr(cell.add(1)).load(ORDER);
                    u128::from(low) | u128::from(high) << 64
                }
            }
        }
    }

    /// Writes a cell of `bytes` bytes.
    pub(super) fn store(&self, offset: usize, bytes: u8, value: u128) {
        const ORDER: Ordering = Ordering::Relaxed;
        let cell = self.cell(offset, bytes);
        // SAFETY: as in `load`.
        unsafe {
            match bytes {
                1 => AtomicU8::from_ptr(cell).store(value as u8, ORDER),
                2 => AtomicU16::from_ptr(cell.cast()).store(value as u16, ORDER),
                4 => AtomicU32::from_ptr(cell.cast()).store(value as u32, ORDER),
                8 => AtomicU64::from_ptr(cell.cast()).store(value as u64, ORDER),
                _ => {
                    let cell = cell.cast::<u64>();
                    AtomicU64::from_ptr(cell).store(value as u64, ORDER);
                    AtomicU64::from_ptr(cell.add(1)).store((value >> 64) as u64, ORDER);
                }
            }
        }
    }
}
