//! Clients outside and a service inside with eight servers, of which the second
//! switch drains four; each connection is one.

use super::ROOM;
use crate::random::Random;
use crate::segment::{Segment, number_mark};
use crate::table::{address, insert, number as value};
use crate::{Asked, Hosts, connection_key, departure_port, host, taken, udp};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::Direction::Inbound;
use stateplane_runtime::{KeyMatch, StateError, TargetState};
use stateplane_store::{Service, ServiceId, ServiceServer};
use stateplane_wire::ipv4::{PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::tcp::control::{ACK, SYN};

pub(super) const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 3), 80);
const SERVERS: u16 = 8;
/// Places of each server.
const WEIGHT: u16 = 3;
/// Number of the switch at which half of the servers drain, and number of servers that do not.
const DRAINING_SWITCH: u32 = 2;
const NOT_DRAINING: u16 = 4;
/// Chance that a packet opens a connection, in thousandths.
const OPENS: u32 = 200;

pub(super) struct LoadBalancer;

/// The server of that number, from 1.
fn server(number: u16) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 100 + number as u8), 8000 + number)
}

fn endpoint(of: SocketAddrV4) -> [num_bigint::BigUint; 2] {
    [address(*of.ip()), value(of.port())]
}

impl Hosts for LoadBalancer {
    fn services(&self) -> Vec<Service> {
        let servers = (1..=SERVERS).map(|number| ServiceServer {
            endpoint: server(number),
            weight: WEIGHT,
            most: None,
        });
        let servers: Vec<_> = servers.collect();
        let service = |protocol| Service {
            id: ServiceId {
                protocol,
                endpoint: SERVICE,
            },
            servers: servers.clone(),
        };
        [PROTOCOL_TCP, PROTOCOL_UDP].map(service).into()
    }

    fn set_up(&self, state: &mut TargetState, switch: u32) -> Result<(), StateError> {
        let used = if switch == DRAINING_SWITCH {
            NOT_DRAINING
        } else {
            SERVERS
        };
        for protocol in [PROTOCOL_TCP, PROTOCOL_UDP] {
            let [at, port] = endpoint(SERVICE);
            let service = [at, value(protocol), port].map(KeyMatch::Exact);
            let data = vec![value(1u8), value(used * WEIGHT)];
            insert(state, "services", service.into(), "serve", data)?;
        }
        for number in 1..=SERVERS {
            let at = endpoint(server(number));
            if number > used {
                let keys = at.map(KeyMatch::Exact);
                insert(state, "draining", keys.into(), "drain", Vec::new())?;
                continue;
            }
            let first = (number - 1) * WEIGHT;
            let places = KeyMatch::Range {
                low: value(first),
                high: value(first + WEIGHT - 1),
            };
            let keys = vec![KeyMatch::Exact(value(1u8)), places];
            insert(state, "servers", keys, "use_server", at.into())?;
        }
        Ok(())
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let client = host(Inbound, connection, 4000 + connection as u16);
        let opens = random.permille(OPENS);
        let mut segment = udp(client, SERVICE, &[], number);
        if !connection.is_multiple_of(3) {
            segment.protocol = PROTOCOL_TCP;
            segment.control = if opens { SYN } else { ACK };
            segment.sequence = number as u32;
        }
        Asked {
            direction: Inbound,
            key: connection_key(ROOM.class().id, segment.protocol, client, SERVICE),
            request: (opens && segment.protocol == PROTOCOL_TCP).into(),
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        let number = read.destination.port().wrapping_sub(server(0).port());
        if !(1..=SERVERS).contains(&number) || read.destination != server(number) {
            return Err("it is for no server".into());
        }
        let sent = Segment {
            destination: SERVICE,
            ..read.clone()
        };
        if Segment::read_datagram(&asked.datagram) != Some(sent)
            || read.payload != number_mark(asked.number)
        {
            return Err("it is not what came".into());
        }
        Ok(number.into())
    }
}
