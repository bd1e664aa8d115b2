//! Connections through the firewall: handshakes, data, ends and, now and then, what
//! does not belong there.

use super::{App, Asked};
use crate::frame::{INSIDE_PORT, OUTSIDE_PORT, Segment, number_mark};
use crate::p4::{exact, insert, number as value};
use crate::random::Random;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::Direction;
use stateplane_target::{StateError, TargetState};
use stateplane_wire::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::replication::{KEY_LENGTH, Key};
use stateplane_wire::tcp::control::{ACK, FIN, RST, SYN};
use std::collections::BTreeMap;

/// `CLASS_FIREWALL` of the program.
const CLASS: u8 = 4;

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

/// What may come at any time.
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

fn ends(connection: usize) -> (SocketAddrV4, SocketAddrV4) {
    let of = connection as u16;
    let inside = Ipv4Addr::new(10, 0, 0, (of % 7) as u8 + 1);
    let outside = Ipv4Addr::new(198, 51, 100, (of % 50) as u8 + 1);
    (
        SocketAddrV4::new(inside, 4000 + of),
        SocketAddrV4::new(outside, 80),
    )
}

impl App for Firewall {
    fn path(&self) -> &'static str {
        "apps/firewall/firewall.p4"
    }

    fn class(&self) -> u8 {
        CLASS
    }

    fn state_length(&self) -> u16 {
        1
    }

    fn set_up(&self, state: &mut TargetState) -> Result<(), StateError> {
        let inside = exact(value(INSIDE_PORT));
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
        let (inside, outside) = ends(connection);
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
        let mut key = [0; KEY_LENGTH];
        key[0] = CLASS;
        key[1] = protocol;
        key[2..6].copy_from_slice(&inside.ip().octets());
        key[6..10].copy_from_slice(&outside.ip().octets());
        key[10..12].copy_from_slice(&inside.port().to_be_bytes());
        key[12..14].copy_from_slice(&outside.port().to_be_bytes());
        let from_outside = u64::from(direction == Inbound) << 8;
        Asked {
            direction,
            key: Key(key),
            request: match udp {
                true => from_outside | 1 << 9,
                false => from_outside | u64::from(control),
            },
            number,
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let way = match asked.direction {
            Outbound => OUTSIDE_PORT,
            Inbound => INSIDE_PORT,
        };
        match Segment::read(frame) {
            _ if port != way => Err("it left by the wrong port".into()),
            None => Err("no host would take it".into()),
            read if read == Segment::read_datagram(&asked.datagram) => Ok(1),
            Some(_) => Err("it is not what came".into()),
        }
    }
}
