//! Clients on both sides that read, update and delete; each connection is a key.

use super::ROOM;
use crate::random::Random;
use crate::table::{address, exact, insert};
use crate::{Asked, Hosts, arrival_port, host, key, taken, udp, word};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::Direction;
use stateplane_runtime::{StateError, TargetState};

/// `KEY_VALUE_PORT` of the program.
pub(super) const PORT: u16 = 4800;
pub(super) const SERVICE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

pub(super) const READ: u8 = 1;
pub(super) const UPDATE: u8 = 2;
const DELETE: u8 = 3;
const REPLY: u8 = 0x80;

pub(super) struct KeyValue;

impl Hosts for KeyValue {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        let service = exact(address(SERVICE));
        insert(state, "services", service, "serve", Vec::new())
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let direction = if random.permille(500) {
            Direction::Outbound
        } else {
            Direction::Inbound
        };
        let operation = match random.between(0, 9) {
            0..=5 => READ,
            6..=8 => UPDATE,
            _ => DELETE,
        };
        let value = if operation == UPDATE { number + 1 } else { 0 };
        let name = (connection as u64 + 1).to_be_bytes();
        let payload = [&[operation, 0][..], &name, &value.to_be_bytes()].concat();
        let client = host(direction, connection, 4000 + connection as u16);
        let segment = udp(client, SocketAddrV4::new(SERVICE, PORT), &payload, number);
        Asked {
            direction,
            key: key(&ROOM, &name),
            request: u64::from(operation) << 62 | value,
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let reply = taken(arrival_port(asked.direction), port, frame)?;
        let operation = (asked.request >> 62) as u8 | REPLY;
        let name = &asked.key.0[1..9];
        if reply.source != SocketAddrV4::new(SERVICE, PORT)
            || reply.payload[0] != operation
            || reply.payload[2..10] != *name
        {
            return Err("it is no reply to what came".into());
        }
        let present = u64::from(reply.payload[1]) << 63;
        Ok(present | word(&reply.payload[10..18]))
    }
}
