//! Measuring traffic, of which no packet writes: the store does.

use crate::measured::{Packet, Traffic};

pub(super) struct Connections;

impl Traffic for Connections {
    fn writes(&self, _: &Packet) -> bool {
        false
    }
}
