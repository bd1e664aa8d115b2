//! Sources inside that speak to few or many hosts outside; each connection is a
//! source.

use super::ROOM;
use crate::random::Random;
use crate::segment::Segment;
use crate::table::number as value;
use crate::{Asked, Hosts, departure_port, host, key, taken, udp};
use stateplane_history::replication::Direction::{Inbound, Outbound};
use stateplane_runtime::{StateError, TargetState, hash};
use stateplane_wire::{ethernet, ipv4};

/// Limit, equal to that of the machine in `stateplane-history`.
const LIMIT: u8 = 4;
const INTERVAL: u8 = 0;
const MARK: u8 = 8;

pub(super) struct SuperSpreader;

impl Hosts for SuperSpreader {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        let data = [INTERVAL, LIMIT, MARK, 0].map(value);
        state.table_mut("judgement")?.set_default("judge", &data)
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let mut source = host(Outbound, 0, 4000);
        source.set_ip([10, 0, 0, connection as u8 + 1].into());
        // Some never have more destinations than they may.
        let most = if connection.is_multiple_of(3) { 4 } else { 20 };
        let destination = host(Inbound, random.place(most), 80);
        let place = hash::crc32(&destination.ip().octets()) % 64;
        Asked {
            direction: Outbound,
            key: key(&ROOM, &source.ip().octets()),
            request: place.into(),
            number,
            tag: Vec::new(),
            datagram: udp(source, destination, &[], number).to_datagram(),
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        let read = taken(departure_port(asked.direction), port, frame)?;
        if Segment::read_datagram(&asked.datagram) != Some(read) {
            return Err("it is not what came".into());
        }
        let class = ethernet::Packet::new_checked(frame)
            .and_then(|frame| ipv4::Packet::new_checked(frame.payload()))
            .map(|datagram| datagram.traffic_class());
        match class {
            Ok(0) => Ok(0),
            Ok(class) if class == MARK << 2 => Ok(1),
            _ => Err("it has another mark".into()),
        }
    }
}
