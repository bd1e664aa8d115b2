//! Hosts inside that speak to hosts outside, and these, which answer to where a packet came
//! from.

use super::ROOM;
use crate::random::Random;
use crate::segment::{Segment, number_mark};
use crate::table::{address, exact, insert, number as value};
use crate::{Asked, Hosts, Translation, departure_port, host, key, taken};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::Direction::{Inbound, Outbound};
use stateplane_history::replication::{Endpoint, Protocol};
use stateplane_runtime::{StateError, TargetState};
use stateplane_wire::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::tcp::control::ACK;
use std::collections::BTreeMap;

/// The address that hosts outside see.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// Port of the hosts outside.
const PORT: u16 = 9000;
/// Chance of an answer, in thousandths, where the public endpoint is known.
const ANSWER: u32 = 500;

#[derive(Default)]
pub(super) struct Nat {
    /// Whom hosts outside answer, by the endpoint inside.
    public: BTreeMap<(u8, SocketAddrV4), SocketAddrV4>,
}

impl Hosts for Nat {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        let inside = exact(value(departure_port(Inbound)));
        insert(state, "classify.interfaces", inside, "inside", Vec::new())?;
        let public = exact(address(PUBLIC));
        let table = "classify.public_addresses";
        insert(state, table, public, "is_public", Vec::new())
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let (protocol, control) = match connection % 2 {
            0 => (PROTOCOL_UDP, 0),
            _ => (PROTOCOL_TCP, ACK),
        };
        let inside = host(Outbound, connection, 4000 + connection as u16);
        let outside = host(Inbound, connection, PORT);
        let answered = self.public.get(&(protocol, inside));
        let answered = answered.filter(|_| random.permille(ANSWER));
        let (direction, source, destination) = match answered {
            Some(&public) => (Inbound, outside, public),
            None => (Outbound, inside, outside),
        };
        let segment = Segment {
            protocol,
            source,
            destination,
            control,
            sequence: number as u32,
            acknowledgement: 0,
            payload: number_mark(number).to_vec(),
        };
        let rest = [
            &[protocol][..],
            &inside.ip().octets(),
            &inside.port().to_be_bytes(),
        ];
        Asked {
            direction,
            key: key(&ROOM, &rest.concat()),
            request: 0,
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        let sent = Segment::read_datagram(&asked.datagram).ok_or("it was no datagram of a host")?;
        let kept = match asked.direction {
            Outbound => read.destination == sent.destination,
            Inbound => read.source == sent.source,
        };
        if !kept || read.protocol != sent.protocol {
            return Err("more than the endpoint inside was translated".into());
        }
        if asked.direction == Outbound && *read.source.ip() != PUBLIC {
            return Err("it left without a public address".into());
        }
        Ok(0)
    }

    fn translated(&mut self, asked: &Asked, frame: &[u8]) -> Option<Translation> {
        let (sent, read) = (
            Segment::read_datagram(&asked.datagram)?,
            Segment::read(frame)?,
        );
        let (inside, public) = match asked.direction {
            Outbound => (sent.source, read.source),
            Inbound => (read.destination, sent.destination),
        };
        if asked.direction == Outbound {
            self.public.insert((sent.protocol, inside), public);
        }
        let endpoint = |socket: SocketAddrV4| {
            Some(Endpoint {
                address: *socket.ip(),
                port: socket.port(),
                protocol: Protocol::from_number(sent.protocol)?,
            })
        };
        Some(Translation {
            direction: asked.direction,
            inside: endpoint(inside)?,
            public: endpoint(public)?,
        })
    }
}
