//! Measuring traffic, of which every packet writes.

use super::hosts::PORT;
use crate::measured::{Datagram, Packet, Traffic, across};

pub(super) struct Numbers;

impl Traffic for Numbers {
    fn writes(&self, _: &Packet) -> bool {
        true
    }

    fn write_interval(&self) -> Option<f64> {
        Some(1.0)
    }

    fn datagram(&self, packet: &Packet) -> Datagram {
        let mut datagram = across(packet.place.flow);
        datagram.destination.set_port(PORT);
        datagram.payload = vec![0; 8];
        datagram
    }
}
