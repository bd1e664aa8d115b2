//! Senders of packets that carry their number away; each connection is a flow.

use super::ROOM;
use crate::random::Random;
use crate::{Asked, Hosts, departure_port, host, key, taken, udp, word};
use stateplane_history::replication::Direction::{Inbound, Outbound};
use stateplane_runtime::{StateError, TargetState};
use stateplane_wire::ipv4::PROTOCOL_UDP;

/// `SEQUENCER_PORT` of the program.
pub(super) const PORT: u16 = 5000;

pub(super) struct Counter;

impl Hosts for Counter {
    fn set_up(&self, _: &mut TargetState, _: u32) -> Result<(), StateError> {
        Ok(())
    }

    fn send(&mut self, connection: usize, number: u64, _: &mut Random) -> Asked {
        let source = host(Outbound, connection, 4000 + connection as u16);
        let destination = host(Inbound, connection, PORT);
        let rest = [
            &[PROTOCOL_UDP][..],
            &source.ip().octets(),
            &destination.ip().octets(),
            &source.port().to_be_bytes(),
            &destination.port().to_be_bytes(),
        ];
        Asked {
            direction: Outbound,
            key: key(&ROOM, &rest.concat()),
            request: 0,
            number,
            tag: Vec::new(),
            datagram: udp(source, destination, &[0; 8], number).to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        Ok(word(read.payload.get(..8).unwrap_or_default()))
    }
}
