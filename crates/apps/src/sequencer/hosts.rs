//! Senders to groups; each connection is a group.

use super::ROOM;
use crate::random::Random;
use crate::table::{address, insert, number as value};
use crate::{Asked, Hosts, departure_port, host, key, taken, udp, word};
use stateplane_history::replication::Direction;
use stateplane_runtime::{KeyMatch, StateError, TargetState};

/// Number of groups, more than any scenario has connections.
const GROUPS: usize = 64;

pub(super) struct Sequencer;

impl Hosts for Sequencer {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        for group in 0..GROUPS {
            let to = host(Direction::Inbound, group, 5000 + group as u16);
            let keys = vec![
                KeyMatch::Exact(address(*to.ip())),
                KeyMatch::Exact(value(to.port())),
            ];
            let data = vec![value(group as u32 + 1)];
            insert(state, "groups", keys, "in_group", data)?;
        }
        Ok(())
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let sender = host(Direction::Outbound, random.place(7), 4000);
        let group = host(Direction::Inbound, connection, 5000 + connection as u16);
        let segment = udp(sender, group, &[0; 8], number);
        Asked {
            direction: Direction::Outbound,
            key: key(&ROOM, &(connection as u32 + 1).to_be_bytes()),
            request: 0,
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        Ok(word(&read.payload[..8]))
    }
}
