//! Fields in network byte order. Callers have checked the bounds.

#[inline(always)]
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
pub(crate) fn get_u48(bytes: &[u8], at: usize) -> u64 {
    (u64::from(get_u16(bytes, at)) << 32) | u64::from(get_u32(bytes, at + 2))
}

#[inline(always)]
pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    (u64::from(get_u32(bytes, at)) << 32) | u64::from(get_u32(bytes, at + 4))
}

#[inline(always)]
pub(crate) fn get_array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}
