//! Senders of packets that carry their number away; each connection is a flow.

use super::ROOM;
use crate::random::Random;
use crate::{Asked, Hosts, Segment, connection_key, departure_port, host, taken, udp, word};
use stateplane_history::replication::Direction::{Inbound, Outbound};
use stateplane_runtime::{StateError, TargetState};
use stateplane_wire::ipv4::PROTOCOL_UDP;

/// `SEQUENCER_PORT` of the program.
pub(super) const PORT: u16 = 5000;

pub(super) struct Counter;

impl Hosts for Counter {
    fn listens(&self) -> bool {
        true
    }

    fn set_up(&self, _: &mut TargetState, _: u32) -> Result<(), StateError> {
        Ok(())
    }

    fn send(&mut self, connection: usize, number: u64, _: &mut Random) -> Asked {
        let source = host(Outbound, connection, 4000 + connection as u16);
        let destination = host(Inbound, connection, PORT);
        Asked {
            direction: Outbound,
            key: connection_key(ROOM.class().id, PROTOCOL_UDP, source, destination),
            request: 0,
            number,
            tag: Vec::new(),
            datagram: udp(source, destination, &[0; 8], number).to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        let sent = Segment::read_datagram(&asked.datagram).ok_or("it was no datagram of a host")?;
        if (read.source, read.destination) != (sent.source, sent.destination) {
            return Err("it has other ends than what came".into());
        }
        Ok(word(read.payload.get(..8).unwrap_or_default()))
    }
}
