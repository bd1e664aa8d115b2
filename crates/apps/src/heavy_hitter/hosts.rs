//! Tenants' hosts, and the checker of bounded inconsistency: of each start of each
//! switch, the newest complete snapshot in the store is a state that its sketches
//! really had, and what came after it was counted within ε (RedPlane §4.4).

use super::ROOM;
use crate::random::Random;
use crate::segment::Segment;
use crate::table::{exact, insert, number as value};
use crate::walk::{SNAPSHOT_PORT, walk_frame};
use crate::{Asked, Hosts, departure_port, host, key, taken, udp};
use stateplane_history::replication::{Direction, Occupant};
use stateplane_runtime::{StateError, TargetState, hash};
use stateplane_store::newest_snapshots;
use stateplane_switch::Generator;
use stateplane_wire::replication::Key;
use std::collections::BTreeMap;

/// `ETHERTYPE_VLAN` of the program.
const TYPE_VLAN: [u8; 2] = [0x81, 0];

/// Number of tenants. The hosts of the first are inside, those of the second outside.
pub const TENANTS: usize = 2;
/// Elements of a row in the simulator.
const SLOTS: usize = 8;
/// Number of packets of a connection of which all but two are of one flow.
const PACKETS_OF_THREE_FLOWS: usize = 16;
const FIRST_VLAN: u16 = 100;
/// µs from one snapshot to the next, between two batches of the walk, and ε.
const SNAPSHOT_PERIOD: u64 = 20_000;
const WALK_PERIOD: u64 = 1_600;
const WALK_BATCH: u32 = 4;
const BOUND: u64 = 60_000;
/// `STALE_DROPS` of the library.
const STALE_DROPS: u8 = 1;
/// Allowed difference between two clocks within ε, which the switch's clock measures.
const SLACK: u64 = BOUND / 300;

/// The elements that a packet counts in, one in each row.
pub type Elements = [usize; 3];

/// Counts of one start of one switch: time and position, for each tenant.
type Counted = [Vec<(u64, Elements)>; TENANTS];

#[derive(Default)]
pub(super) struct HeavyHitter {
    lives: BTreeMap<Occupant, Counted>,
}

/// The CRC-32 of a datagram's five-tuple, as the program computes it.
fn flow(datagram: &[u8]) -> Option<u32> {
    let segment = Segment::read_datagram(datagram)?;
    let bytes = [
        &segment.source.ip().octets()[..],
        &segment.destination.ip().octets(),
        &[segment.protocol],
        &segment.source.port().to_be_bytes(),
        &segment.destination.port().to_be_bytes(),
    ];
    Some(hash::crc32(&bytes.concat()))
}

/// A packet of `flow`, the CRC-32 of its five-tuple, counts in these elements of its
/// tenant's rows of `slots` elements, a power of two up to 64.
pub fn elements(flow: u32, slots: usize) -> Elements {
    [24, 12, 0].map(|shift| flow as usize >> shift & (slots - 1))
}

/// The tenant and the flow that a request names ([`Application::HeavyHitter`]).
///
/// [`Application::HeavyHitter`]: crate::Application::HeavyHitter
pub fn named(request: u64) -> (usize, u32) {
    ((request >> 32) as usize, request as u32)
}

/// The sketch after the first `count` packets, row by row of each element.
fn sketch(packets: &[(u64, Elements)]) -> Vec<Vec<u32>> {
    let mut sketch = vec![vec![0; 3]; SLOTS];
    for (_, elements) in packets {
        for (row, element) in elements.iter().enumerate() {
            sketch[*element][row] += 1;
        }
    }
    sketch
}

/// Error in `recovered`, the newest snapshot of the counts.
fn objection(packets: &[(u64, Elements)], recovered: Option<&[Vec<u32>]>) -> Option<String> {
    let count = recovered.map_or(0, |elements| {
        let first_row = elements.iter().filter_map(|values| values.first());
        first_row.map(|&value| value as usize).sum()
    });
    let (kept, lost) = packets.split_at_checked(count).unwrap_or((packets, &[]));
    if recovered.is_some_and(|elements| elements != sketch(kept)) {
        return Some("a snapshot is what the switch never had".into());
    }
    let ((first, _), (last, _)) = (lost.first()?, lost.last()?);
    let late = last - first;
    (late > BOUND + SLACK).then(|| {
        format!(
            "{} packets over {late} µs are lost, more than ε = {BOUND} µs",
            lost.len()
        )
    })
}

impl Hosts for HeavyHitter {
    fn defines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("SNAPSHOT_KEYS", TENANTS.to_string()),
            ("SNAPSHOT_SLOTS", SLOTS.to_string()),
            // Records of two snapshots, and room for what hashes to the same buckets.
            ("REPLICATION_BUCKETS", (TENANTS * SLOTS * 8).to_string()),
        ]
    }

    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        for number in 0..TENANTS {
            let vlan = exact(value(FIRST_VLAN + number as u16));
            insert(
                state,
                "tenants",
                vlan,
                "count_for",
                vec![value(number as u32)],
            )?;
        }
        let period = state.table_mut("snapshot_period")?;
        period.set_default("snapshot_each", &[value(SNAPSHOT_PERIOD)])?;
        let bound = state.table_mut("snapshot_bound")?;
        bound.set_default("keep_within", &[value(BOUND), value(STALE_DROPS)])
    }

    fn walk(&self, switch: u32) -> Option<Generator> {
        Some(Generator {
            port: SNAPSHOT_PORT,
            period_us: WALK_PERIOD,
            batch: WALK_BATCH,
            index_at: None,
            spread: false,
            frame: walk_frame(switch, 3),
        })
    }

    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked {
        let tenant = connection % TENANTS;
        let direction = match tenant {
            0 => Direction::Outbound,
            _ => Direction::Inbound,
        };
        let back = match direction {
            Direction::Outbound => Direction::Inbound,
            Direction::Inbound => Direction::Outbound,
        };
        let light = random.place(PACKETS_OF_THREE_FLOWS).min(2) as u16;
        let source = host(direction, connection, 4002 - light);
        let destination = host(back, connection, 80);
        let vlan = FIRST_VLAN + tenant as u16;
        let datagram = udp(source, destination, &[], number).to_datagram();
        let of = flow(&datagram).unwrap_or_default();
        Asked {
            direction,
            key: key(&ROOM, &(connection as u32 + 1).to_be_bytes()),
            request: (tenant as u64) << 32 | u64::from(of),
            number,
            tag: [TYPE_VLAN, vlan.to_be_bytes()].concat(),
            datagram,
        }
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        // Without the tag, which routers on the way do not look at.
        let (addresses, rest) = frame.split_at_checked(12).ok_or("it is too short")?;
        let untagged = [addresses, rest.get(4..).unwrap_or_default()].concat();
        let read = taken(departure_port(asked.direction), port, &untagged)?;
        match Segment::read_datagram(&asked.datagram) {
            Some(sent) if sent == read && rest[..2] == TYPE_VLAN => Ok(1),
            _ => Err("it is not what came".into()),
        }
    }

    fn released(&mut self, at: u64, by: Occupant, asked: &Asked, _: &[u8]) {
        let (tenant, flow) = named(asked.request);
        let life = self.lives.entry(by).or_default();
        life[tenant].push((at, elements(flow, SLOTS)));
    }

    fn recovered(&self, records: &[(Key, Vec<u8>)]) -> Vec<String> {
        let mut found = Vec::new();
        for tenant in 0..TENANTS {
            let records = records.iter().map(|(key, state)| (key, &state[..]));
            let of_class = records.filter(|(key, _)| key.class() == ROOM.class().id);
            let newest = newest_snapshots(of_class, (tenant * SLOTS) as u32, SLOTS as u32);
            for (life, counted) in &self.lives {
                let snapshot = newest
                    .iter()
                    .find(|(of, _)| (of.switch, of.incarnation) == (life.switch, life.incarnation));
                let elements = snapshot.map(|(_, snapshot)| &snapshot.elements[..]);
                if let Some(because) = objection(&counted[tenant], elements) {
                    found.push(format!("tenant {tenant} of {life}: {because}"));
                }
            }
        }
        found
    }

    fn writes_for_ever(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_never_were_and_losses_beyond_the_bound_are_objected_to() {
        let packets = [(10, [0, 1, 2]), (500, [0, 0, 0]), (BOUND + 650, [3, 3, 3])];
        assert_eq!(objection(&packets, Some(&sketch(&packets))), None);
        assert_eq!(objection(&packets, Some(&sketch(&packets[..1]))), None);
        let mut mixed = sketch(&packets[..2]);
        mixed[2][2] -= 1;
        assert!(objection(&packets, Some(&mixed)).is_some());
        // Nothing is recovered, and more than ε was counted.
        assert!(objection(&packets, None).is_some());
        assert_eq!(objection(&packets[..2], None), None);
        assert_eq!(objection(&[], None), None);
    }
}
