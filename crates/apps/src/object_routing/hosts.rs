//! Clients that read and write objects, and servers that say which versions they
//! hold; each connection is an object.

use super::ROOM;
use crate::random::Random;
use crate::table::{address, exact, insert, number as value};
use crate::{Asked, Hosts, departure_port, host, key, taken, udp, word};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::Direction;
use stateplane_runtime::{StateError, TargetState, hash};
use std::collections::BTreeMap;

/// `OBJECT_PORT` of the program.
const PORT: u16 = 4801;
const SERVICE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
/// The servers of `Application::ObjectRouting`.
const SERVERS: u8 = 8;

const READ: u8 = 1;
const WRITE: u8 = 2;
const HELD: u8 = 3;

#[derive(Default)]
pub(super) struct ObjectRouting {
    /// Writes sent, by object.
    writes: BTreeMap<usize, u32>,
}

fn server(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, 100 + number)
}

/// Result of the program's hash.
fn home(object: [u8; 8]) -> u8 {
    (hash::crc32(&object) % u32::from(SERVERS)) as u8
}

impl Hosts for ObjectRouting {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        let service = exact(address(SERVICE));
        insert(state, "services", service, "serve", Vec::new())?;
        let pool = state.table_mut("server_pool")?;
        pool.set_default(
            "use_servers",
            &[value((1u32 << SERVERS) - 1), value(SERVERS)],
        )?;
        for number in 0..SERVERS {
            let at = address(server(number));
            let speaker = exact(at.clone());
            insert(state, "speakers", speaker, "is_server", vec![value(number)])?;
            let number = exact(value(number));
            insert(state, "server_addresses", number, "to_server", vec![at])?;
        }
        Ok(())
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let object = (connection as u64 + 1).to_be_bytes();
        let writes = self.writes.entry(connection).or_default();
        let client = host(
            Direction::Outbound,
            connection,
            4000 + random.place(9) as u16,
        );
        let operation = random.between(READ.into(), HELD.into()) as u8;
        let (speaker, version) = match operation {
            HELD => (
                random.place(SERVERS.into()) as u8,
                random.between(0, (*writes).into()) as u32,
            ),
            _ => (0, 0),
        };
        *writes += u32::from(operation == WRITE);
        let payload = [&[operation, 0][..], &version.to_be_bytes(), &object].concat();
        let (direction, source, destination) = match operation {
            HELD => (
                Direction::Inbound,
                SocketAddrV4::new(server(speaker), PORT),
                client,
            ),
            _ => (
                Direction::Outbound,
                client,
                SocketAddrV4::new(SERVICE, PORT),
            ),
        };
        Asked {
            direction,
            key: key(&ROOM, &object),
            request: u64::from(operation) << 62
                | u64::from(home(object)) << 40
                | u64::from(speaker) << 32
                | u64::from(version),
            number,
            tag: Vec::new(),
            datagram: udp(source, destination, &payload, number).to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        let number = read.payload[1];
        let at = match asked.direction {
            Direction::Outbound => *read.destination.ip(),
            Direction::Inbound => *read.source.ip(),
        };
        if at != server(number) {
            return Err("it names another server than it is for".into());
        }
        Ok(u64::from(number) << 32 | word(&read.payload[2..6]))
    }
}
