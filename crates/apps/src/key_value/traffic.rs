//! Measuring traffic with as many updates as one likes.

use super::hosts::{PORT, READ, SERVICE, UPDATE};
use crate::measured::{Datagram, Packet, Traffic, inside};
use crate::spec::Side;
use core::net::SocketAddrV4;

pub(super) struct Clients;

impl Traffic for Clients {
    fn writes(&self, packet: &Packet) -> bool {
        // Spread by a multiplicative hash, so that updates come at any time.
        let drawn = (packet.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 100;
        drawn < u64::from(packet.updates)
    }

    fn datagram(&self, packet: &Packet) -> Datagram {
        let (operation, value) = if self.writes(packet) {
            (UPDATE, packet.number + 1)
        } else {
            (READ, 0)
        };
        let key = (packet.place.flow + 1).to_be_bytes();
        Datagram {
            from: Side::Inside,
            source: inside(packet.place.flow),
            destination: SocketAddrV4::new(SERVICE, PORT),
            payload: [&[operation, 0][..], &key, &value.to_be_bytes()].concat(),
        }
    }
}
