//! Connections through the firewall: handshakes, data, ends and, now and then, what
//! does not belong there.

use super::ROOM;
use crate::random::Random;
use crate::segment::{Segment, number_mark};
use crate::table::{exact, insert, number as value};
use crate::{Asked, Hosts, arrival_port, connection_key, departure_port, host, taken};
use stateplane_history::replication::Direction;
use stateplane_runtime::{StateError, TargetState};
use stateplane_wire::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::tcp::control::{ACK, FIN, RST, SYN};
use std::collections::BTreeMap;

use Direction::{Inbound, Outbound};

/// One connection after the other.
const SCRIPT: [(Direction, u8); 12] = [
    (Outbound, SYN),
    (Inbound, SYN | ACK),
    (Outbound, ACK),
    (Inbound, ACK),
    (Outbound, ACK),
    (Inbound, ACK),
    (Inbound, ACK),
    (Outbound, ACK),
    (Inbound, FIN | ACK),
    (Outbound, FIN | ACK),
    (Inbound, ACK),
    (Outbound, SYN),
];

/// Packets that may come at any time.
const STRAYS: [(Direction, u8); 6] = [
    (Inbound, SYN),
    (Inbound, ACK),
    (Inbound, SYN | ACK),
    (Inbound, RST),
    (Outbound, RST),
    (Outbound, SYN),
];

/// Chance of a stray, in thousandths.
const STRAY: u32 = 100;

#[derive(Default)]
pub(super) struct Firewall {
    /// Packets sent, by connection.
    sent: BTreeMap<usize, usize>,
}

impl Hosts for Firewall {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        let inside = exact(value(arrival_port(Outbound)));
        insert(state, "interfaces", inside, "inside", Vec::new())
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let udp = connection % 4 == 3;
        let sent = self.sent.entry(connection).or_default();
        let (direction, control) = if random.permille(STRAY) {
            STRAYS[random.place(STRAYS.len())]
        } else {
            *sent += 1;
            SCRIPT[(*sent - 1) % SCRIPT.len()]
        };
        let inside = host(Outbound, connection, 4000 + connection as u16);
        let outside = host(Inbound, connection, 80);
        let (source, destination) = match direction {
            Outbound => (inside, outside),
            Inbound => (outside, inside),
        };
        let protocol = if udp { PROTOCOL_UDP } else { PROTOCOL_TCP };
        let segment = Segment {
            protocol,
            source,
            destination,
            control,
            sequence: number as u32,
            acknowledgement: 0,
            payload: number_mark(number).to_vec(),
        };
        let from_outside = u64::from(direction == Inbound) << 8;
        Asked {
            direction,
            key: connection_key(ROOM.class().id, protocol, inside, outside),
            request: if udp {
                from_outside | 1 << 9
            } else {
                from_outside | u64::from(control)
            },
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        match Segment::read_datagram(&asked.datagram) {
            Some(sent) if sent == read => Ok(1),
            _ => Err("it is not what came".into()),
        }
    }
}
