//! Clients outside that open connections to servers inside; each connection is a
//! source.

use super::ROOM;
use crate::random::Random;
use crate::segment::Segment;
use crate::table::{address, insert};
use crate::{Asked, Hosts, arrival_port, departure_port, key, taken, udp};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::Direction::Inbound;
use stateplane_runtime::{KeyMatch, StateError, TargetState, Value, hash};
use stateplane_wire::ipv4::PROTOCOL_TCP;
use stateplane_wire::tcp::control::{ACK, RST, SYN};

const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 80), 80);
const SECRET: u32 = 0x5eed_1234;

const DATA: u64 = 0;
const OPENS: u64 = 1;
const SHOWS: u64 = 2;

pub(super) struct SynDefence;

fn client(connection: usize, port: usize) -> SocketAddrV4 {
    let address = Ipv4Addr::new(198, 51, 100, connection as u8 + 1);
    SocketAddrV4::new(address, 4000 + port as u16)
}

/// The cookie for a connection from `client`.
fn cookie(client: SocketAddrV4) -> u32 {
    let bytes = [
        &SECRET.to_be_bytes()[..],
        &client.ip().octets(),
        &SERVER.ip().octets(),
        &client.port().to_be_bytes(),
        &SERVER.port().to_be_bytes(),
    ];
    hash::crc32(&bytes.concat())
}

impl Hosts for SynDefence {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        let secret = Value::from(u64::from(SECRET));
        state.register_mut("defence_secret")?.write(0, &secret)?;
        let servers = KeyMatch::Prefix {
            value: address(Ipv4Addr::new(10, 0, 0, 0)),
            length: 24,
        };
        insert(
            state,
            "guarded_addresses",
            vec![servers],
            "guard",
            Vec::new(),
        )
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let client = client(connection, random.place(3));
        let request = match random.between(0, 9) {
            0..=2 => OPENS,
            3 => SHOWS,
            _ => DATA,
        };
        let mut segment = udp(client, SERVER, &[], number);
        segment.protocol = PROTOCOL_TCP;
        segment.sequence = number as u32;
        (segment.control, segment.acknowledgement) = match request {
            OPENS => (SYN, 0),
            SHOWS => (ACK, cookie(client).wrapping_add(1)),
            _ => (ACK, number as u32),
        };
        Asked {
            direction: Inbound,
            key: key(&ROOM, &client.ip().octets()),
            request,
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let sent = Segment::read_datagram(&asked.datagram).ok_or("nobody sent it")?;
        if port == departure_port(asked.direction) {
            let read = taken(port, port, frame)?;
            return if read == sent {
                Ok(1)
            } else {
                Err("it is not what came".into())
            };
        }
        let read = taken(arrival_port(asked.direction), port, frame)?;
        if (read.source, read.destination) != (sent.destination, sent.source) {
            return Err("it is no answer to what came".into());
        }
        match read.control {
            control if control == SYN | ACK => {
                let right = read.sequence == cookie(sent.source)
                    && read.acknowledgement == sent.sequence.wrapping_add(1);
                right.then_some(2).ok_or("it has a wrong cookie".into())
            }
            RST if read.sequence == sent.acknowledgement => Ok(3),
            _ => Err("it is no answer that a defence gives".into()),
        }
    }
}
