//! Functions that generated code calls. All arguments and results have 64 bits.
//!
//! # Safety
//!
//! Generated code passes its own context, and pointers to as many words or bytes as it
//! says: the context's buffers, its stack, records of tables, or the frame.

#![allow(
    unsafe_code,
    reason = "generated code passes pointers; each function says what it takes"
)]

mod wide;

pub(crate) use wide::*;

use crate::codegen::Site;
use crate::context::Context;
use crate::in_flight::InFlight;
use crate::machine::Machine;
use crate::table::View;
use num_bigint::BigUint;
use stateplane_ir::{HashAlgorithm, MeterId, TableId, ValueSetId};
use stateplane_runtime::bits::{self, BitWriter, word_count};
use stateplane_runtime::{Digest, EntryId, Value};
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// The algorithms by number.
const ALGORITHMS: [HashAlgorithm; 8] = [
    HashAlgorithm::Crc32,
    HashAlgorithm::Crc32Custom,
    HashAlgorithm::Crc16,
    HashAlgorithm::Crc16Custom,
    HashAlgorithm::Random,
    HashAlgorithm::Identity,
    HashAlgorithm::Csum16,
    HashAlgorithm::Xor16,
];

/// The machine of a context.
///
/// # Safety
///
/// The context is that of a run, which nothing else looks at.
unsafe fn machine<'a>(context: *mut Context) -> &'a mut Machine {
    // SAFETY: the engine set the pointer for this run and waits for its end.
    unsafe { &mut *(*context).machine }
}

/// The frame of a context.
///
/// # Safety
///
/// The conditions of [`machine`] hold.
unsafe fn frame<'a>(context: *const Context) -> &'a [u8] {
    // SAFETY: the engine set both for this run.
    unsafe { from_raw_parts((*context).frame, (*context).frame_length as usize) }
}

/// Copies words, which may be anywhere.
pub(crate) unsafe extern "C" fn copy_words(to: *mut u128, from: *const u128, words: u64) {
    // SAFETY: see the module; `copy` allows overlap and the bytes need no alignment.
    unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), words as usize * 16) }
}

pub(crate) unsafe extern "C" fn zero_words(to: *mut u128, words: u64) {
    // SAFETY: see the module.
    unsafe { std::ptr::write_bytes(to.cast::<u8>(), 0, words as usize * 16) }
}

pub(crate) unsafe extern "C" fn equal_words(a: *const u128, b: *const u128, words: u64) -> u64 {
    // SAFETY: see the module.
    let (a, b) = unsafe {
        (
            from_raw_parts(a, words as usize),
            from_raw_parts(b, words as usize),
        )
    };
    u64::from(a == b)
}

/// Moves the elements of a stack up by `by`, or down if that is negative, and its
/// `nextIndex`, which is at `stack`, likewise.
pub(crate) unsafe extern "C" fn shift_stack(stack: *mut u128, stride: u64, count: u64, by: i64) {
    // SAFETY: the stack has its index and `count` elements of `stride` words.
    let words = unsafe { from_raw_parts_mut(stack, (1 + stride * count) as usize) };
    let (next, elements) = words.split_at_mut(1);
    let stride = stride as usize;
    let moved = (by.unsigned_abs().min(count)) as usize * stride;
    let end = elements.len();
    if by >= 0 {
        elements.copy_within(..end - moved, moved);
        elements[..moved].fill(0);
        next[0] = (next[0] + by as u128).min(u128::from(count));
    } else {
        elements.copy_within(moved.., 0);
        elements[end - moved..].fill(0);
        next[0] = next[0].saturating_sub(u128::from(by.unsigned_abs()));
    }
}

/// Reads `width` bits from bit `bit` behind `from` to words.
pub(crate) unsafe extern "C" fn read_words(
    from: *const u8,
    bit: u64,
    width: u64,
    to: *mut u128,
    words: u64,
) {
    let bytes = (bit + width).div_ceil(8) as usize;
    // SAFETY: the parser made sure that the bits are there.
    let (from, to) = unsafe {
        (
            from_raw_parts(from, bytes),
            from_raw_parts_mut(to, words as usize),
        )
    };
    bits::read_words(from, bit as usize, width as u32, to);
}

/// Writes the low `width` bits of words, whole bytes, to memory.
pub(crate) unsafe extern "C" fn write_words(
    to: *mut u8,
    from: *const u128,
    words: u64,
    width: u64,
) {
    // SAFETY: the deparser asked for room.
    let (to, from) = unsafe {
        (
            from_raw_parts_mut(to, width as usize / 8),
            from_raw_parts(from, words as usize),
        )
    };
    for (index, byte) in to.iter_mut().rev().enumerate() {
        *byte = bits::get_bits(from, index as u32 * 8, 8) as u8;
    }
}

/// Copies bits of the frame from a cursor within a byte on, so that they begin with a
/// byte.
pub(crate) unsafe extern "C" fn realign(
    context: *mut Context,
    cursor: u64,
    width: u64,
) -> *const u8 {
    // SAFETY: see the module.
    let (machine, frame) = unsafe { (machine(context), frame(context)) };
    machine.realigned.clear();
    let mut at = cursor as usize;
    let end = at + width as usize;
    let mut writer = BitWriter::new(&mut machine.realigned);
    while at < end {
        let size = (end - at).min(64) as u32;
        writer.put(bits::read_bits(frame, at, size).unwrap_or(0), size);
        at += size as usize;
    }
    machine.realigned.as_ptr()
}

/// Bytes of the frame at most that the output begins with, before anything is emitted.
pub(crate) const COPIED: usize = 256;

/// Bytes that a buffer of frames has at least: enough for a frame of the usual 1,500 bytes
/// and headers in front of it, so that buffers need not grow as frames of several lengths
/// take turns in them.
pub(crate) const BUFFER: usize = 2048;

/// Bytes that are copied at once from the beginning of a frame.
const CHUNK: usize = 32;

/// Begins the output with what the frame begins with, and room for all headers: where it
/// is.
pub(crate) unsafe extern "C" fn open_output(context: *mut Context) -> *mut u8 {
    // SAFETY: see the module; the output is the caller's of the engine, and nobody else
    // looks at it during the run.
    let (output, frame, room) = unsafe {
        (
            &mut *(*context).output,
            frame(context),
            machine(context).room,
        )
    };
    let (length, out) = (frame.len(), output.as_mut_ptr());
    if !(CHUNK..=4 * CHUNK).contains(&length) || output.capacity() < room + length {
        return open_any(output, frame, room);
    }
    // Without a call, as most frames are short or filled up to the least length. Chunks overlap where
    // the length is no multiple of theirs, so that there is one branch, not one for each chunk.
    let copy = |at: usize| {
        // SAFETY: the chunk is within the frame, and the output has room for the frame's length.
        unsafe { copy_chunk(frame.as_ptr().add(at), out.add(at)) }
    };
    copy(0);
    if length > 2 * CHUNK {
        copy(CHUNK);
        copy(length - 2 * CHUNK);
    }
    copy(length - CHUNK);
    // SAFETY: all of it was written.
    unsafe { output.set_len(length) }
    out
}

/// # Safety
///
/// There is a chunk at `from`, and room for one at `to`; they do not overlap.
#[inline]
unsafe fn copy_chunk(from: *const u8, to: *mut u8) {
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(from, to, CHUNK) }
}

/// [`open_output`] of a frame of any length.
#[cold]
fn open_any(output: &mut Vec<u8>, frame: &[u8], room: usize) -> *mut u8 {
    output.clear();
    let needed = room + frame.len();
    if output.capacity() < needed {
        output.reserve(needed.max(BUFFER));
    }
    output.extend_from_slice(&frame[..frame.len().min(COPIED)]);
    output.as_mut_ptr()
}

/// Address of room for `bytes` more bytes behind those emitted, and then for all headers whose
/// sizes are known.
pub(crate) unsafe extern "C" fn reserve(context: *mut Context, emitted: u64, more: u64) -> *mut u8 {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let needed = (emitted + more) as usize + machine.room;
    if machine.out.len() < needed {
        machine.out.resize(needed.next_power_of_two(), 0);
    }
    let out = machine.out.as_mut_ptr();
    // SAFETY: see the module; `emitted` bytes are within the buffer.
    unsafe {
        (*context).out = out;
        out.add(emitted as usize)
    }
}

/// Emits bits, at most 64.
pub(crate) unsafe extern "C" fn emit_bits(context: *mut Context, value: u64, width: u64) {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let mut writer = BitWriter::resume(&mut machine.out, machine.out_free);
    writer.put(u128::from(value), width as u32);
    machine.out_free = writer.free();
}

/// Emits the low `width` bits of words.
pub(crate) unsafe extern "C" fn emit_words(
    context: *mut Context,
    from: *const u128,
    words: u64,
    width: u64,
) {
    // SAFETY: see the module.
    let (machine, from) = unsafe { (machine(context), from_raw_parts(from, words as usize)) };
    let mut writer = BitWriter::resume(&mut machine.out, machine.out_free);
    writer.put_words(from, width as u32);
    machine.out_free = writer.free();
}

/// Begins to collect data.
pub(crate) unsafe extern "C" fn collect_nothing(context: *mut Context) {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    machine.data.clear();
    machine.data_free = 0;
}

/// Collects the low `width` bits of words.
pub(crate) unsafe extern "C" fn collect(
    context: *mut Context,
    from: *const u128,
    words: u64,
    width: u64,
) {
    // SAFETY: see the module.
    let (machine, from) = unsafe { (machine(context), from_raw_parts(from, words as usize)) };
    let mut writer = BitWriter::resume(&mut machine.data, machine.data_free);
    writer.put_words(from, width as u32);
    machine.data_free = writer.free();
}

pub(crate) unsafe extern "C" fn collected(context: *mut Context) -> *const u8 {
    // SAFETY: see the module.
    unsafe { machine(context) }.data.as_ptr()
}

pub(crate) unsafe extern "C" fn collected_bytes(context: *mut Context) -> u64 {
    // SAFETY: see the module.
    unsafe { machine(context) }.data.len() as u64
}

/// An algorithm over data, and the frame from byte `rest` on if `payload` is not 0.
pub(crate) unsafe extern "C" fn hash(
    context: *mut Context,
    algorithm: u64,
    data: *const u8,
    length: u64,
    payload: u64,
    rest: u64,
) -> u64 {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let algorithm = ALGORITHMS[algorithm as usize % ALGORITHMS.len()];
    // SAFETY: see the module.
    let data = unsafe { from_raw_parts(data, length as usize) };
    if payload == 0 {
        return machine.state.hash(algorithm, data);
    }
    // SAFETY: see the module.
    let frame = unsafe { frame(context) };
    let mut bytes = data.to_vec();
    bytes.extend_from_slice(frame.get(rest as usize..).unwrap_or(&[]));
    machine.state.hash(algorithm, &bytes)
}

/// Sum of the 16-bit words of the frame from byte `rest` on, for RFC 1071; if `odd` is
/// not 0, as if a byte came before.
pub(crate) unsafe extern "C" fn sum_of_rest(context: *mut Context, rest: u64, odd: u64) -> u64 {
    // SAFETY: see the module.
    let frame = unsafe { frame(context) };
    let bytes = frame.get(rest as usize..).unwrap_or(&[]);
    let mut sum = 0u64;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u64::from(u32::from_be_bytes(last));
    if odd == 0 {
        return sum;
    }
    // A byte before swaps the bytes of each word (RFC 1071 §2 B).
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u64::from((sum as u16).swap_bytes())
}

/// `value` modulo the number in words, of which 0 gives 0.
pub(crate) unsafe extern "C" fn remainder(value: u64, words: *const u128, count: u64) -> u64 {
    // SAFETY: see the module.
    let words = unsafe { from_raw_parts(words, count as usize) };
    if words[1..].iter().any(|word| *word != 0) {
        return value;
    }
    u128::from(value).checked_rem(words[0]).unwrap_or(0) as u64
}

/// A number from `low` to `high`, both included, of `width` bits; `low` if there is none.
pub(crate) unsafe extern "C" fn random(
    context: *mut Context,
    low: *const u128,
    high: *const u128,
    width: u64,
    to: *mut u128,
) {
    let words = word_count(width as u32);
    // SAFETY: see the module.
    let (machine, low, high, to) = unsafe {
        (
            machine(context),
            from_raw_parts(low, words),
            from_raw_parts(high, words),
            from_raw_parts_mut(to, words),
        )
    };
    let (low, high) = (bits::to_biguint(low), bits::to_biguint(high));
    let mut draw = BigUint::default();
    // 64 bits more than needed make the remainder even to 2^-64.
    for _ in 0..width.max(1).div_ceil(64) + 1 {
        draw = (draw << 64u32) + machine.state.random.next();
    }
    let number = if low < high {
        let span = &high - &low + 1u32;
        low + draw % span
    } else {
        low
    };
    bits::put_biguint(&number, width as u32, to);
}

pub(crate) unsafe extern "C" fn meter(context: *mut Context, meter: u64, index: u64) -> u64 {
    // SAFETY: see the module.
    let (machine, bytes, now) =
        unsafe { (machine(context), (*context).frame_length, (*context).now) };
    let meter = machine.state.meter_at(MeterId(meter as u32));
    meter.execute(index, bytes, now) as u64
}

/// Last result of a direct meter.
pub(crate) unsafe extern "C" fn color(context: *mut Context, meter: u64) -> u64 {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    machine.colors[meter as usize] as u64
}

/// Counts and meters a packet that hit an entry, given by number; 0 is a miss, which is
/// the default entry's.
pub(crate) unsafe extern "C" fn note_hit(
    context: *mut Context,
    table: u64,
    found: u64,
    meter: u64,
) {
    // SAFETY: see the module.
    let (machine, bytes, now) =
        unsafe { (machine(context), (*context).frame_length, (*context).now) };
    let table = machine.state.table_at(TableId(table as u32));
    let color = match entry_of(found) {
        Some(entry) => table.hit(entry, bytes, now),
        None => table.miss(bytes, now),
    };
    if let Some(last) = machine.colors.get_mut(meter as usize) {
        *last = color;
    }
}

/// 1 if the action of an entry, given by number, depends on a hash, else 0.
pub(crate) unsafe extern "C" fn takes_hash(context: *mut Context, table: u64, found: u64) -> u64 {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let selector = machine
        .state
        .selector_at(TableId(table as u32), entry_of(found));
    u64::from(selector.is_some())
}

/// The record of what an entry, given by number, runs in a table with an action profile,
/// until the next one is asked for.
pub(crate) unsafe extern "C" fn held(
    context: *mut Context,
    view: *const View,
    table: u64,
    found: u64,
    hash: u64,
) -> *const u64 {
    // SAFETY: see the module, and `look_up_1`.
    let (Machine { state, held, .. }, lookup) = unsafe { (machine(context), &*(*view).lookup) };
    let runs = state.action_at(TableId(table as u32), entry_of(found), hash);
    lookup.held(found as u32, runs, held);
    held.as_ptr()
}

/// The entry with a number, of which 0 is none.
fn entry_of(found: u64) -> Option<EntryId> {
    found
        .checked_sub(1)
        .map(|position| EntryId::at(position as u32))
}

/// The record for a key of at most 64 bits.
pub(crate) unsafe extern "C" fn look_up_1(view: *const View, key: u64) -> *const u64 {
    // SAFETY: the view's table lives as long as the engine and does not change during a
    // run.
    unsafe { &*(*view).lookup }.find_1(key).0
}

/// The record for a key of at most 128 bits.
pub(crate) unsafe extern "C" fn look_up_2(view: *const View, low: u64, high: u64) -> *const u64 {
    // SAFETY: as for `look_up_1`.
    unsafe { &*(*view).lookup }.find_2(low, high).0
}

/// The record for a longer key.
pub(crate) unsafe extern "C" fn look_up(view: *const View, key: *const u64) -> *const u64 {
    // SAFETY: as for `look_up_1`; the key has as many words as the table's keys take.
    let (lookup, key) = unsafe {
        let lookup = &*(*view).lookup;
        (lookup, from_raw_parts(key, lookup.key_words()))
    };
    lookup.find(key).0
}

/// Announces a lookup of a key of at most 64 bits.
pub(crate) unsafe extern "C" fn announce_1(view: *const View, key: u64) {
    // SAFETY: as for `look_up_1`.
    unsafe { &*(*view).lookup }.announce(&[key]);
}

/// Announces a lookup of a key of at most 128 bits.
pub(crate) unsafe extern "C" fn announce_2(view: *const View, low: u64, high: u64) {
    // SAFETY: as for `look_up_1`.
    unsafe { &*(*view).lookup }.announce(&[low, high]);
}

/// 1 if words begin with a member of a value set, else 0.
pub(crate) unsafe extern "C" fn in_value_set(
    context: *mut Context,
    set: u64,
    words: *const u128,
    count: u64,
) -> u64 {
    // SAFETY: see the module.
    let (machine, words) = unsafe { (machine(context), from_raw_parts(words, count as usize)) };
    let set = machine.state.value_set_at(ValueSetId(set as u32));
    u64::from(set.contains(words))
}

/// Takes a lock by its cell in the memory of registers, and gives the cell to be released: the engine's
/// own one for a lock that is biased to it. The own cell stands for any number of locks that there are not.
pub(crate) unsafe extern "C" fn take_lock(context: *mut Context, cell: u64) -> u64 {
    // SAFETY: see the module.
    let own = unsafe { &raw const (*context).own_lock }.addr() as u64;
    if cell == own {
        return own;
    }
    // SAFETY: see the module.
    let (machine, memory) = unsafe { (machine(context), (*context).registers) };
    let offset = (cell as usize).wrapping_sub(memory.addr());
    let by_bias = machine.state.take_lock(offset, &machine.held_locks);
    if by_bias { own } else { cell }
}

/// Counts a packet whose parser ended with an error.
pub(crate) unsafe extern "C" fn count_parser_error(context: *mut Context, error: u64) {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let errors = &mut machine.state.events.parser_errors;
    if let Some(count) = errors.get_mut(error as usize) {
        *count += 1;
    }
}

pub(crate) unsafe extern "C" fn count_checksum_error(context: *mut Context) {
    // SAFETY: see the module.
    unsafe { machine(context) }.state.events.checksum_errors += 1;
}

/// Keeps the packet as it is, for an egress-to-egress clone.
pub(crate) unsafe extern "C" fn capture(context: *mut Context) {
    // SAFETY: see the module; the packet's words have been written.
    unsafe {
        let machine = machine(context);
        let words = from_raw_parts((*context).packet, machine.packet_words).to_vec();
        let (rest, limit) = ((*context).rest, (*context).limit);
        let packet = InFlight::new(words, frame(context).to_vec(), rest, limit);
        machine.captured = Some(packet);
    }
}

pub(crate) unsafe extern "C" fn failed_assertion(
    context: *mut Context,
    site: u64,
    _words: *const u128,
) {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let Some(Site::Assert { location }) = machine.sites.get(site as usize) else {
        return;
    };
    machine.state.events.failed_assertions += 1;
    let line = || format!("{location}: assertion failed");
    machine.state.log.push_with(line);
}

pub(crate) unsafe extern "C" fn digest(context: *mut Context, site: u64, words: *const u128) {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let Some(Site::Digest { name, shape }) = machine.sites.get(site as usize) else {
        return;
    };
    machine.state.digests.push_with(|| Digest {
        name: name.clone(),
        data: match shape {
            // SAFETY: a digest's words are those of its shape.
            Some(shape) => shape.value(unsafe { from_raw_parts(words, shape.words()) }),
            None => Value::Struct(Vec::new()),
        },
    });
}

pub(crate) unsafe extern "C" fn log(context: *mut Context, site: u64, words: *const u128) {
    // SAFETY: see the module.
    let machine = unsafe { machine(context) };
    let Some(Site::Log { format, values }) = machine.sites.get(site as usize) else {
        return;
    };
    let count = values.iter().map(|(width, _)| word_count(*width)).sum();
    // SAFETY: a message's words are those of its values.
    let mut words = unsafe { from_raw_parts(words, count) };
    machine.state.log.push_with(|| {
        let mut line = String::new();
        let mut parts = format.split("{}");
        line.push_str(parts.next().unwrap_or(""));
        let mut values = values.iter();
        for part in parts {
            match values.next() {
                Some((width, is_bool)) => {
                    let (number, rest) = words.split_at(word_count(*width));
                    words = rest;
                    let number = bits::to_biguint(number);
                    line.push_str(&if *is_bool {
                        (number != BigUint::default()).to_string()
                    } else {
                        number.to_string()
                    });
                }
                None => line.push_str("{}"),
            }
            line.push_str(part);
        }
        line
    });
}
