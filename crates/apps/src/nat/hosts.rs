//! Hosts inside that speak to hosts outside, and these, which answer to where a packet came
//! from.

use super::{inside_class, public_class};
use crate::random::Random;
use crate::segment::{Segment, number_mark};
use crate::table::{address, exact, insert, number as value};
use crate::{Asked, Hosts, Translation, class_key, departure_port, host, taken};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::Direction::{self, Inbound, Outbound};
use stateplane_history::replication::{Endpoint, Protocol};
use stateplane_runtime::{StateError, TargetState};
use stateplane_wire::ipv4::{PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::replication::Key;
use stateplane_wire::tcp::control::{ACK, PSH};
use std::collections::BTreeMap;

/// The address that hosts outside see.
pub(super) const PUBLIC: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
/// Port of the hosts outside.
pub(super) const PORT: u16 = 80;
/// Address of a host outside to which no host inside sends.
const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 200);
/// Chance that a host outside answers, and, where packets are filtered, that the stranger does in
/// its place, in thousandths.
const ANSWER: u32 = 600;
const STRANGERS: u32 = 50;

#[derive(Default)]
pub(super) struct Nat {
    /// Whom hosts outside answer, by connection.
    public: BTreeMap<usize, SocketAddrV4>,
    /// True if packets from outside are filtered.
    filters: bool,
}

/// An endpoint in the histories' terms; protocols that these do not know count as UDP.
pub(super) fn endpoint(protocol: u8, socket: SocketAddrV4) -> Endpoint {
    Endpoint {
        address: *socket.ip(),
        port: socket.port(),
        protocol: Protocol::from_number(protocol).unwrap_or(Protocol::Udp),
    }
}

/// The key of an endpoint in a class.
pub(super) fn endpoint_key(class: u8, protocol: u8, endpoint: SocketAddrV4) -> Key {
    let rest = [
        &[protocol][..],
        &endpoint.ip().octets(),
        &endpoint.port().to_be_bytes(),
    ];
    class_key(class, &rest.concat())
}

/// Protocol and ends of a connection; some share the end inside. An echo has no port of its
/// destination.
fn connection(number: usize) -> (u8, SocketAddrV4, SocketAddrV4) {
    let shared = if number % 5 == 4 { number - 1 } else { number };
    let (protocol, port) = match shared % 6 {
        0 => (PROTOCOL_UDP, PORT),
        3 => (PROTOCOL_ICMP, 0),
        _ => (PROTOCOL_TCP, PORT),
    };
    let inside = host(Outbound, shared, 4000 + shared as u16);
    (protocol, inside, host(Inbound, number, port))
}

impl Nat {
    /// Hosts of a NAT that filters packets from outside.
    pub(super) fn filtering() -> Self {
        Self {
            filters: true,
            ..Self::default()
        }
    }
}

/// A packet of a connection.
fn packet(
    direction: Direction,
    protocol: u8,
    [source, destination]: [SocketAddrV4; 2],
    number: u64,
) -> Asked {
    let segment = Segment {
        protocol,
        source,
        destination,
        control: ACK | PSH,
        sequence: number as u32,
        acknowledgement: 0,
        payload: [&[0; 8][..], &number_mark(number)].concat(),
    };
    let key = match direction {
        Outbound => endpoint_key(inside_class(), protocol, source),
        Inbound => endpoint_key(public_class().unwrap_or_default(), protocol, destination),
    };
    Asked {
        direction,
        key,
        request: 0,
        number,
        tag: Vec::new(),
        datagram: segment.to_datagram(),
    }
}

/// Sets the tables that say which port faces inside, and which address is public.
pub(super) fn set_up(state: &mut TargetState) -> Result<(), StateError> {
    let inside = exact(value(departure_port(Inbound)));
    insert(state, "classify.interfaces", inside, "inside", Vec::new())?;
    let public = exact(address(PUBLIC));
    let table = "classify.public_addresses";
    insert(state, table, public, "is_public", Vec::new())
}

/// The segment that was sent as `asked`, if it left as it should: by the right port, with nothing
/// translated but the endpoint inside.
pub(super) fn taken_kept(asked: &Asked, port: u16, frame: &[u8]) -> Result<Segment, String> {
    let read = taken(departure_port(asked.direction), port, frame)?;
    let sent = Segment::read_datagram(&asked.datagram).ok_or("it was no datagram of a host")?;
    let kept = match asked.direction {
        Outbound => read.destination == sent.destination,
        Inbound => read.source == sent.source,
    };
    if !kept || read.protocol != sent.protocol || read.payload != sent.payload {
        return Err("more than the endpoint inside was translated".into());
    }
    if asked.direction == Outbound && *read.source.ip() != PUBLIC {
        return Err("it left without a public address".into());
    }
    Ok(sent)
}

impl Hosts for Nat {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        set_up(state)?;
        if self.filters {
            let filtering = state.table_mut("filtering")?;
            filtering.set_default("address_and_port_dependent", &[])?;
        }
        Ok(())
    }

    fn listens(&self) -> bool {
        true
    }

    fn arrived(&mut self, at: usize, _: &Asked, frame: &[u8], random: &mut Random) -> bool {
        let public = Segment::read(frame).map(|read| read.source);
        let Some(public) = public.filter(|public| *public.ip() == PUBLIC) else {
            return false;
        };
        self.public.insert(at, public);
        random.permille(ANSWER)
    }

    fn reply(&mut self, at: usize, number: u64, random: &mut Random) -> Option<Asked> {
        let public = *self.public.get(&at)?;
        let (protocol, _, mut outside) = connection(at);
        if self.filters && random.permille(STRANGERS) {
            outside.set_ip(STRANGER);
        }
        Some(packet(Inbound, protocol, [outside, public], number))
    }

    fn send(&mut self, at: usize, number: u64, _: &mut Random) -> Asked {
        let (protocol, inside, outside) = connection(at);
        packet(Outbound, protocol, [inside, outside], number)
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let sent = taken_kept(asked, port, frame)?;
        if *sent.source.ip() == STRANGER {
            return Err("a host was let in to which none inside sends".into());
        }
        Ok(0)
    }

    fn translated(&self, asked: &Asked, frame: &[u8]) -> Option<Translation> {
        let sent = Segment::read_datagram(&asked.datagram)?;
        let read = Segment::read(frame)?;
        let (inside, public) = match asked.direction {
            Outbound => (sent.source, read.source),
            Inbound => (read.destination, sent.destination),
        };
        Some(Translation {
            direction: asked.direction,
            inside: endpoint(sent.protocol, inside),
            public: endpoint(sent.protocol, public),
            remote: None,
        })
    }
}
