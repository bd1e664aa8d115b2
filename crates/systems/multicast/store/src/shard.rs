//! The shard of a key.

use crate::message::Key;

/// Most shards: the map of a message's groups has a bit for each.
pub const MAX_SHARDS: u8 = 32;

/// The shard of a key among `shards`, 1 to [`MAX_SHARDS`]: the high half of its FNV-1a hash of 64
/// bits, scaled. It is the number of the shard's group.
pub fn shard_of(key: &Key, shards: u8) -> u8 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in key.bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let scaled = (hash >> 32) * u64::from(shards.clamp(1, MAX_SHARDS));
    (scaled >> 32) as u8
}
