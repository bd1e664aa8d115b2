//! A controller that signals, base stations inside and packet gateways outside; each
//! connection is a session.

use super::ROOM;
use crate::random::Random;
use crate::segment::{Segment, number_in};
use crate::table::{address, exact, insert};
use crate::{Asked, Hosts, arrival_port, departure_port, key, taken, udp, word};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::Direction::{Inbound, Outbound};
use stateplane_runtime::{StateError, TargetState};

/// `GTP_U_PORT` and `SIGNALLING_PORT` of the program.
pub(super) const GTP_U_PORT: u16 = 2152;
pub(super) const SIGNALLING_PORT: u16 = 4802;

pub(super) const ACCESS_SIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const CORE_SIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);
pub(super) const SIGNALLING_SIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 12);
pub(super) const CONTROLLER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 200);

pub(super) const CREATE: u64 = 1;
pub(super) const MOVE: u64 = 2;
const DELETE: u64 = 3;
const UPLINK: u64 = 4;
const DOWNLINK: u64 = 5;
/// Version 1, GTP, no optional part; a G-PDU.
pub(super) const G_PDU: [u8; 2] = [0x30, 255];

pub(super) struct ServingGateway;

/// End of a tunnel that is a number of the application: base stations are inside, packet gateways
/// outside.
fn tunnel_end(inside: bool, tunnel: u64) -> Ipv4Addr {
    let of = 10 + (tunnel >> 24) as u8;
    if inside {
        Ipv4Addr::new(10, 0, 0, of)
    } else {
        Ipv4Addr::new(198, 51, 100, of)
    }
}

/// A tunnel identifier of the application in 32 bits.
fn tunnel_id(tunnel: u64) -> [u8; 4] {
    ((tunnel & 0xff_ffff) as u32).to_be_bytes()
}

impl Hosts for ServingGateway {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        let own = [ACCESS_SIDE, CORE_SIDE, SIGNALLING_SIDE].map(address);
        let addresses = state.table_mut("gateway_addresses")?;
        addresses.set_default("own_addresses", &own)?;
        let controller = exact(address(CONTROLLER));
        insert(state, "controllers", controller, "trust", Vec::new())
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let id = (connection as u32 + 1).to_be_bytes();
        let operation = match random.between(0, 99) {
            0..=9 => CREATE,
            10..=21 => MOVE,
            22..=24 => DELETE,
            25..=61 => UPLINK,
            _ => DOWNLINK,
        };
        let tunnel = |end: u64| end << 24 | (number & 0xffff) << 8 | end;
        let (access, core) = match operation {
            CREATE => (tunnel(random.between(0, 7)), tunnel(random.between(0, 7))),
            MOVE => (tunnel(random.between(0, 7)), 0),
            _ => (0, 0),
        };
        let gtp_u = |address| SocketAddrV4::new(address, GTP_U_PORT);
        let (direction, segment) = if operation >= UPLINK {
            let up = operation == UPLINK;
            let from = tunnel_end(up, random.between(0, 7) << 24);
            let (direction, to) = if up {
                (Outbound, ACCESS_SIDE)
            } else {
                (Inbound, CORE_SIDE)
            };
            let length = 16u16.to_be_bytes();
            let payload = [&G_PDU[..], &length, &id].concat();
            (direction, udp(gtp_u(from), gtp_u(to), &payload, number))
        } else {
            let payload = [
                &[operation as u8, 0][..],
                &id,
                &tunnel_end(true, access).octets(),
                &tunnel_id(access),
                &tunnel_end(false, core).octets(),
                &tunnel_id(core),
            ];
            let from = SocketAddrV4::new(CONTROLLER, 4000);
            let to = SocketAddrV4::new(SIGNALLING_SIDE, SIGNALLING_PORT);
            (Outbound, udp(from, to, &payload.concat(), number))
        };
        Asked {
            direction,
            key: key(&ROOM, &id),
            request: operation << 61 | access << 28 | core,
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let operation = asked.request >> 61;
        if operation < UPLINK {
            let reply = taken(arrival_port(asked.direction), port, frame)?;
            if *reply.destination.ip() != CONTROLLER || reply.payload[0] != operation as u8 | 0x80 {
                return Err("it is no reply to what came".into());
            }
            return Ok(reply.payload[1].into());
        }
        let read = taken(departure_port(asked.direction), port, frame)?;
        let up = operation == UPLINK;
        let own = if up { CORE_SIDE } else { ACCESS_SIDE };
        let [.., end] = read.destination.ip().octets();
        let end = u64::from(end.wrapping_sub(10));
        let sent = Segment::read_datagram(&asked.datagram);
        let whole = sent.is_some_and(|sent| sent.payload[8..] == read.payload[8..]);
        if *read.source.ip() != own
            || *read.destination.ip() != tunnel_end(!up, end << 24)
            || read.payload[..2] != G_PDU
            || number_in(&read.payload) != Some(asked.number)
            || !whole
        {
            return Err("it is not what came, in another tunnel".into());
        }
        Ok(1 << 32 | end << 24 | word(&read.payload[4..8]))
    }
}
