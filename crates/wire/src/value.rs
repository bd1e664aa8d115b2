//! Types of fields: how a value lies in the bits of a header, in network byte order.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::big_endian::{get_array, get_u16, get_u32, get_u48, get_u64};

/// A type that a field can have.
///
/// Places and widths are constants of the table, so that each use compiles to plain loads
/// and stores.
pub(crate) trait Value: Copy {
    /// Width in bits of all values.
    const BITS: usize;

    /// True if a field may be narrower, or begin within a byte.
    const INTEGER: bool = false;

    /// Reads the value from `bits` bits of `header` that begin at bit `at`.
    fn read(header: &[u8], at: usize, bits: usize) -> Self;

    /// Writes the value to `bits` bits of `header` that begin at bit `at`.
    fn write(self, header: &mut [u8], at: usize, bits: usize);

    /// True if `bits` bits can hold the value.
    fn fits(self, bits: usize) -> bool {
        bits == Self::BITS
    }
}

/// Stops compilation unless a field of type `T` can have `bits` bits from bit `at`.
pub(crate) const fn assert_place<T: Value>(at: usize, bits: usize) {
    let whole = at.is_multiple_of(8) && bits == T::BITS;
    let within_a_word = bits >= 1 && bits <= T::BITS && at % 8 + bits <= 64;
    assert!(whole || T::INTEGER && within_a_word);
}

#[inline(always)]
fn read_bits(header: &[u8], at: usize, bits: usize) -> u64 {
    let first = at / 8;
    match (at % 8, bits) {
        (0, 8) => header[first].into(),
        (0, 16) => get_u16(header, first).into(),
        (0, 32) => get_u32(header, first).into(),
        (0, 48) => get_u48(header, first),
        (0, 64) => get_u64(header, first),
        _ => {
            let last = (at + bits).div_ceil(8);
            let bytes = header[first..last].iter();
            let word = bytes.fold(0, |word, byte| word << 8 | u64::from(*byte));
            word >> (last * 8 - at - bits) & mask(bits)
        }
    }
}

#[inline(always)]
fn write_bits(header: &mut [u8], at: usize, bits: usize, value: u64) {
    let (first, last) = (at / 8, (at + bits).div_ceil(8));
    if at.is_multiple_of(8) && bits.is_multiple_of(8) {
        header[first..last].copy_from_slice(&value.to_be_bytes()[8 - bits / 8..]);
        return;
    }
    let behind = last * 8 - at - bits;
    let (mut mask, mut value) = (mask(bits) << behind, value << behind);
    for byte in header[first..last].iter_mut().rev() {
        *byte = *byte & !(mask as u8) | (value & mask) as u8;
        (mask, value) = (mask >> 8, value >> 8);
    }
}

/// The `bits` lowest bits.
const fn mask(bits: usize) -> u64 {
    u64::MAX >> (64 - bits)
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            const BITS: usize = <$type>::BITS as usize;
            const INTEGER: bool = true;

            #[inline(always)]
            fn read(header: &[u8], at: usize, bits: usize) -> $type {
                read_bits(header, at, bits) as $type
            }

            #[inline(always)]
            fn write(self, header: &mut [u8], at: usize, bits: usize) {
                write_bits(header, at, bits, self as u64);
            }

            #[inline(always)]
            fn fits(self, bits: usize) -> bool {
                self as u64 <= mask(bits)
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, usize);

impl<const N: usize> Value for [u8; N] {
    const BITS: usize = 8 * N;

    #[inline(always)]
    fn read(header: &[u8], at: usize, _: usize) -> [u8; N] {
        get_array(header, at / 8)
    }

    #[inline(always)]
    fn write(self, header: &mut [u8], at: usize, _: usize) {
        header[at / 8..at / 8 + N].copy_from_slice(&self);
    }
}

impl Value for Ipv4Addr {
    const BITS: usize = 32;

    #[inline(always)]
    fn read(header: &[u8], at: usize, bits: usize) -> Ipv4Addr {
        <[u8; 4]>::read(header, at, bits).into()
    }

    #[inline(always)]
    fn write(self, header: &mut [u8], at: usize, bits: usize) {
        self.octets().write(header, at, bits);
    }
}

/// Address, then port.
impl Value for SocketAddrV4 {
    const BITS: usize = 48;

    #[inline(always)]
    fn read(header: &[u8], at: usize, _: usize) -> SocketAddrV4 {
        SocketAddrV4::new(
            Value::read(header, at, 32),
            Value::read(header, at + 32, 16),
        )
    }

    #[inline(always)]
    fn write(self, header: &mut [u8], at: usize, _: usize) {
        self.ip().write(header, at, 32);
        self.port().write(header, at + 32, 16);
    }
}
