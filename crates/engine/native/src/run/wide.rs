//! Arithmetic on words, without allocation: scalars of any width as little-endian
//! numbers of 64-bit limbs.

use stateplane_runtime::bits::{get_bits, set_bits, word_count};
use std::cmp::Ordering;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Limbs of the widest scalar, 2048 bits.
const LIMBS: usize = 32;

type Limbs = [u64; LIMBS];

/// Operations on wide scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum WideOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    AddSat,
    AddSatSigned,
    SubSat,
    SubSatSigned,
    And,
    Or,
    Xor,
    Complement,
    Negate,
    /// To a wider or narrower scalar, zeros above.
    Resize,
    /// To a wider or narrower scalar, the sign above.
    SignExtend,
    ShiftLeft,
    ShiftRight,
    ShiftRightSigned,
}

const OPERATIONS: [WideOp; 19] = [
    WideOp::Add,
    WideOp::Sub,
    WideOp::Mul,
    WideOp::Div,
    WideOp::Mod,
    WideOp::AddSat,
    WideOp::AddSatSigned,
    WideOp::SubSat,
    WideOp::SubSatSigned,
    WideOp::And,
    WideOp::Or,
    WideOp::Xor,
    WideOp::Complement,
    WideOp::Negate,
    WideOp::Resize,
    WideOp::SignExtend,
    WideOp::ShiftLeft,
    WideOp::ShiftRight,
    WideOp::ShiftRightSigned,
];

/// The words of a scalar as limbs.
///
/// # Safety
///
/// There are `word_count(width)` words.
unsafe fn load(words: *const u128, width: u32) -> Limbs {
    // SAFETY: the caller's.
    let words = unsafe { from_raw_parts(words, word_count(width)) };
    let mut limbs = [0; LIMBS];
    for (pair, word) in limbs.chunks_exact_mut(2).zip(words) {
        pair[0] = *word as u64;
        pair[1] = (*word >> 64) as u64;
    }
    limbs
}

/// Writes limbs modulo 2^width.
///
/// # Safety
///
/// The conditions of [`load`] hold.
unsafe fn store(limbs: &Limbs, words: *mut u128, width: u32) {
    // SAFETY: the caller's.
    let words = unsafe { from_raw_parts_mut(words, word_count(width)) };
    for (pair, word) in limbs.chunks_exact(2).zip(&mut *words) {
        *word = u128::from(pair[0]) | u128::from(pair[1]) << 64;
    }
    stateplane_runtime::bits::clear_above(words, width);
}

fn bit(limbs: &Limbs, index: u32) -> bool {
    let limb = limbs.get((index / 64) as usize);
    limb.is_some_and(|limb| limb >> (index % 64) & 1 == 1)
}

fn add(a: &Limbs, b: &Limbs) -> Limbs {
    let mut carry = false;
    std::array::from_fn(|index| {
        let (sum, first) = a[index].overflowing_add(b[index]);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        carry = first || second;
        sum
    })
}

fn complement(a: &Limbs) -> Limbs {
    a.map(|limb| !limb)
}

fn negate(a: &Limbs) -> Limbs {
    let mut one = [0; LIMBS];
    one[0] = 1;
    add(&complement(a), &one)
}

fn sub(a: &Limbs, b: &Limbs) -> Limbs {
    add(a, &negate(b))
}

fn mul(a: &Limbs, b: &Limbs) -> Limbs {
    let mut product = [0; LIMBS];
    for (low, &x) in a.iter().enumerate().filter(|(_, limb)| **limb != 0) {
        let mut carry = 0;
        for (high, &y) in b[..LIMBS - low].iter().enumerate() {
            let sum =
                u128::from(x) * u128::from(y) + u128::from(product[low + high]) + u128::from(carry);
            product[low + high] = sum as u64;
            carry = (sum >> 64) as u64;
        }
    }
    product
}

fn compare(a: &Limbs, b: &Limbs) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// Bits from `width` on become what bit `width - 1` is.
fn sign_extend(a: &Limbs, width: u32) -> Limbs {
    if width == 0 || !bit(a, width - 1) {
        return *a;
    }
    std::array::from_fn(|index| {
        let from = (index as u32 * 64).max(width) - index as u32 * 64;
        if from >= 64 {
            a[index]
        } else {
            a[index] | u64::MAX << from
        }
    })
}

fn shift_left(a: &Limbs, by: u32) -> Limbs {
    let (limbs, bits) = ((by / 64) as usize, by % 64);
    std::array::from_fn(|index| {
        let limb = |at: Option<usize>| at.map_or(0, |at| a[at]);
        let low = limb(index.checked_sub(limbs));
        let below = limb(index.checked_sub(limbs + 1));
        if bits == 0 {
            low
        } else {
            low << bits | below >> (64 - bits)
        }
    })
}

fn shift_right(a: &Limbs, by: u32) -> Limbs {
    let (limbs, bits) = ((by / 64) as usize, by % 64);
    std::array::from_fn(|index| {
        let limb = |at: usize| a.get(at).copied().unwrap_or(0);
        let low = limb(index + limbs);
        if bits == 0 {
            low
        } else {
            low >> bits | limb(index + limbs + 1) << (64 - bits)
        }
    })
}

/// Quotient and remainder, bit by bit; nothing for a divisor of 0.
fn divide(a: &Limbs, b: &Limbs, width: u32) -> (Limbs, Limbs) {
    let (mut quotient, mut rest) = ([0; LIMBS], [0; LIMBS]);
    if b.iter().all(|limb| *limb == 0) {
        return (quotient, rest);
    }
    for index in (0..width).rev() {
        // The remainder is below the divisor, so it has a bit left unless both are full.
        let above = bit(&rest, 64 * LIMBS as u32 - 1);
        rest = shift_left(&rest, 1);
        rest[0] |= u64::from(bit(a, index));
        if above || compare(&rest, b) != Ordering::Less {
            rest = sub(&rest, b);
            quotient[(index / 64) as usize] |= 1 << (index % 64);
        }
    }
    (quotient, rest)
}

fn all_ones(width: u32) -> Limbs {
    std::array::from_fn(|index| {
        let bits = width.saturating_sub(index as u32 * 64).min(64);
        if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        }
    })
}

/// Sum of unsigned numbers of `width` bits, at most 2^width - 1.
fn saturating_sum(a: &Limbs, b: &Limbs, width: u32) -> Limbs {
    let all = all_ones(width);
    // a + b > all where b > all - a.
    if compare(b, &sub(&all, a)) == Ordering::Greater {
        all
    } else {
        add(a, b)
    }
}

/// Sum of signed numbers of `width` bits, held within their range.
fn saturating_signed(a: &Limbs, b: &Limbs, width: u32) -> Limbs {
    let sum = add(a, b);
    let negative = |limbs: &Limbs| bit(limbs, width.max(1) - 1);
    if negative(a) != negative(b) || negative(&sum) == negative(a) {
        return sum;
    }
    let least = shift_left(&all_ones(1), width.max(1) - 1);
    if negative(a) {
        least
    } else {
        complement(&least)
    }
}

/// An operation; `from` is the width of `a` where it is not that of the result.
pub(crate) unsafe extern "C" fn wide_operation(
    op: u64,
    to: *mut u128,
    a: *const u128,
    b: *const u128,
    width: u64,
    from: u64,
) {
    let (width, from) = (width as u32, from as u32);
    // SAFETY: generated code gives as many words as the widths say.
    let (a, b) = unsafe { (load(a, from), load(b, from)) };
    let op = OPERATIONS[op as usize % OPERATIONS.len()];
    let result = match op {
        WideOp::Add => add(&a, &b),
        WideOp::Sub => sub(&a, &b),
        WideOp::Mul => mul(&a, &b),
        WideOp::Div => divide(&a, &b, width).0,
        WideOp::Mod => divide(&a, &b, width).1,
        WideOp::AddSat => saturating_sum(&a, &b, width),
        WideOp::SubSat if compare(&a, &b) == Ordering::Less => [0; LIMBS],
        WideOp::SubSat => sub(&a, &b),
        WideOp::AddSatSigned => saturating_signed(&a, &b, width),
        WideOp::SubSatSigned => saturating_difference(&a, &b, width),
        WideOp::And => std::array::from_fn(|index| a[index] & b[index]),
        WideOp::Or => std::array::from_fn(|index| a[index] | b[index]),
        WideOp::Xor => std::array::from_fn(|index| a[index] ^ b[index]),
        WideOp::Complement => complement(&a),
        WideOp::Negate => negate(&a),
        WideOp::SignExtend => sign_extend(&a, from),
        // The shifts have a function of their own.
        WideOp::Resize | WideOp::ShiftLeft | WideOp::ShiftRight | WideOp::ShiftRightSigned => a,
    };
    // SAFETY: as above.
    unsafe { store(&result, to, width) }
}

/// Difference of signed numbers of `width` bits, held within their range.
fn saturating_difference(a: &Limbs, b: &Limbs, width: u32) -> Limbs {
    let least = shift_left(&all_ones(1), width.max(1) - 1);
    if compare(b, &least) == Ordering::Equal {
        // It has no negative: a - least = a + 1 + greatest.
        let mut one = [0; LIMBS];
        one[0] = 1;
        let negative = bit(a, width.max(1) - 1);
        if negative {
            return sub(a, b);
        }
        // At least the greatest number, for no negative `a`.
        return sub(&least, &one);
    }
    saturating_signed(a, &negate(b), width)
}

/// A shift by any amount.
pub(crate) unsafe extern "C" fn wide_shift(
    op: u64,
    to: *mut u128,
    a: *const u128,
    width: u64,
    amount: u64,
) {
    let width = width as u32;
    // SAFETY: generated code gives as many words as the width says.
    let a = unsafe { load(a, width) };
    let past = amount >= u64::from(width);
    let result = match OPERATIONS[op as usize % OPERATIONS.len()] {
        WideOp::ShiftRightSigned => {
            let amount = if past {
                width.max(1) - 1
            } else {
                amount as u32
            };
            let wide = sign_extend(&a, width);
            let moved = shift_right(&wide, amount);
            // Of 2048 bits the sign has to follow.
            sign_extend(&moved, (64 * LIMBS as u32) - amount)
        }
        _ if past => [0; LIMBS],
        WideOp::ShiftLeft => shift_left(&a, amount as u32),
        _ => shift_right(&a, amount as u32),
    };
    // SAFETY: as above.
    unsafe { store(&result, to, width) }
}

/// `a ++ b`.
pub(crate) unsafe extern "C" fn wide_concat(
    to: *mut u128,
    a: *const u128,
    b: *const u128,
    width: u64,
    a_width: u64,
    b_width: u64,
) {
    // SAFETY: generated code gives as many words as the widths say.
    unsafe {
        let high = shift_left(&load(a, a_width as u32), b_width as u32);
        let low = load(b, b_width as u32);
        store(&add(&high, &low), to, width as u32);
    }
}

/// 1 if `a` is less than `b`, signed if `signed` is not 0; else 0.
pub(crate) unsafe extern "C" fn wide_less(
    a: *const u128,
    b: *const u128,
    width: u64,
    signed: u64,
) -> u64 {
    let width = width as u32;
    // SAFETY: generated code gives as many words as the width says.
    let (a, b) = unsafe { (load(a, width), load(b, width)) };
    let negative = |limbs: &Limbs| signed != 0 && width > 0 && bit(limbs, width - 1);
    u64::from(match (negative(&a), negative(&b)) {
        (true, false) => true,
        (false, true) => false,
        _ => compare(&a, &b) == Ordering::Less,
    })
}

/// `width` bits from bit `lo` of a scalar of `whole` bits.
pub(crate) unsafe extern "C" fn wide_slice(
    to: *mut u128,
    width: u64,
    from: *const u128,
    whole: u64,
    lo: u64,
) {
    // SAFETY: generated code gives as many words as the widths say.
    unsafe {
        let moved = shift_right(&load(from, whole as u32), lo as u32);
        store(&moved, to, width as u32);
    }
}

/// Sets `width` bits from bit `lo` of a scalar of `whole` bits.
pub(crate) unsafe extern "C" fn set_slice(
    to: *mut u128,
    whole: u64,
    lo: u64,
    width: u64,
    from: *const u128,
) {
    // SAFETY: generated code gives as many words as the widths say.
    let (to, from) = unsafe {
        (
            from_raw_parts_mut(to, word_count(whole as u32)),
            from_raw_parts(from, word_count(width as u32)),
        )
    };
    let mut done = 0;
    while done < width as u32 {
        let size = (width as u32 - done).min(128);
        set_bits(to, lo as u32 + done, size, get_bits(from, done, size));
        done += size;
    }
}

/// The number as 64 bits; greater ones become the greatest.
pub(crate) unsafe extern "C" fn wide_index(a: *const u128, width: u64) -> u64 {
    // SAFETY: generated code gives as many words as the width says.
    let limbs = unsafe { load(a, width as u32) };
    if limbs[1..].iter().any(|limb| *limb != 0) {
        u64::MAX
    } else {
        limbs[0]
    }
}

/// 1 if words lie from `low` to `high`, given that `range` is not 0, or equal `low` where `high`
/// has ones, given that it is 0; else 0.
pub(crate) unsafe extern "C" fn wide_within(
    value: *const u128,
    low: *const u128,
    high: *const u128,
    words: u64,
    range: u64,
) -> u64 {
    // SAFETY: generated code gives as many words as it says.
    let [value, low, high] =
        [value, low, high].map(|words_of| unsafe { from_raw_parts(words_of, words as usize) });
    u64::from(if range != 0 {
        value.iter().rev().ge(low.iter().rev()) && value.iter().rev().le(high.iter().rev())
    } else {
        let masked = value.iter().zip(high).map(|(value, mask)| value & mask);
        masked.eq(low.iter().copied())
    })
}
