//! Measuring traffic from clients outside, of which the first packet of a flow writes.

use super::hosts::SERVICE;
use crate::measured::{Datagram, Packet, Traffic, outside};
use crate::spec::Side;

pub(super) struct Clients;

impl Traffic for Clients {
    fn writes(&self, packet: &Packet) -> bool {
        packet.place.packet == 0
    }

    fn datagram(&self, packet: &Packet) -> Datagram {
        Datagram {
            from: Side::Outside,
            source: outside(packet.place.flow),
            destination: SERVICE,
            payload: Vec::new(),
        }
    }
}
