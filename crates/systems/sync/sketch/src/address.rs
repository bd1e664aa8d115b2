//! Buckets of an address and a number, side by side in 64 bits.

use crate::key::Key;

/// The upper word of a bucket as a key.
pub(crate) fn key(bucket: u64) -> Key {
    Key([(bucket >> 32) as u32, 0, 0, 0])
}

/// The bucket of a key with a number.
pub(crate) fn bucket(key: Key, low: u64) -> u64 {
    u64::from(key.0[0]) << 32 | low & u64::from(u32::MAX)
}

/// The lower word of a bucket.
pub(crate) fn low(bucket: u64) -> u64 {
    bucket & u64::from(u32::MAX)
}
