//! Measuring traffic of the first tenant; no packet waits for a write.

use crate::measured::{Packet, Traffic};

/// IEEE 802.1Q, and the tenant of `lab/eval/heavy-hitter.toml`.
const TAG: [u8; 4] = [0x81, 0, 0, 100];

pub(super) struct Tenant;

impl Traffic for Tenant {
    fn tag(&self) -> &'static [u8] {
        &TAG
    }

    fn writes(&self, _: &Packet) -> bool {
        false
    }
}
