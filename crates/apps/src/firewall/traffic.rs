//! Measuring traffic, of which the first packet of a flow writes.

use crate::measured::{Packet, Traffic};

pub(super) struct Connections;

impl Traffic for Connections {
    fn writes(&self, packet: &Packet) -> bool {
        packet.place.packet == 0
    }
}
