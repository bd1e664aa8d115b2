//! Rows that change as groups do: their members, receivers and leaders, and sessions.

use crate::{IDENTITY_TABLE, SetupError};
use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{Engine, Entry, KeyMatch, StateError, TargetState};
use stateplane_switch::{Port, Replica, Switch};
use std::collections::BTreeMap;

/// Groups of which the switch is a member, by their number.
const GROUPS_TABLE: &str = "multicast_groups";
/// Lanes of sessions.
const SESSIONS_TABLE: &str = "multicast_sessions";
/// Addresses of leaders, by group. The library applies the table in one place.
const LEADERS_TABLE: &str = "multicast_leaders";
/// Targets of copies, by group and rid.
const TARGETS_TABLE: &str = "multicast_targets";

/// Replication groups of a group, by the map of whom they reach: `MULTICAST_MEMBERS`,
/// `MULTICAST_LEADERS` and `MULTICAST_RECEIVERS` of the library.
pub(crate) const MEMBERS: u16 = 1;
pub(crate) const LEADERS: u16 = 2;
pub(crate) const RECEIVERS: u16 = 4;
const MAPS: u16 = 8;
/// Most groups.
const GROUPS: u8 = 32;

/// rid of a copy for member, receiver or leader 0 of a group.
const MEMBER_RID: u16 = 1;
const RECEIVER_RID: u16 = 16;
const LEADER_RID: u16 = 64;

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Number in the group, below 8.
    pub number: u8,
    /// Its start that is the member (rule 5).
    pub incarnation: u32,
    /// Address of its switch.
    pub address: Ipv4Addr,
}

/// A group of which the switch is a member, or which it joins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Number of the switch in the group, below 8.
    pub member: u8,
    /// Most bytes of a payload (rule 27).
    pub longest: u16,
    /// The other members, and the learner.
    pub others: Vec<Member>,
    /// Addresses of receivers, by their number, which is below 8.
    pub receivers: BTreeMap<u8, Ipv4Addr>,
}

/// Rows of groups, leaders and sessions that the switch has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Groups of which the switch is a member, by number.
    pub groups: BTreeMap<u8, Group>,
    /// Addresses of the leaders of all groups.
    pub leaders: BTreeMap<u8, Ipv4Addr>,
    /// Lanes that each session was granted.
    pub sessions: BTreeMap<u16, u8>,
}

/// How frames reach an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The port.
    pub port: Port,
    /// MAC address of the next hop, and the switch's own there.
    pub macs: [BigUint; 2],
}

/// Port whose egress messages of the switch to itself pass: `MULTICAST_LOOP_PORT` of the library.
pub(crate) const LOOP_PORT: Port = 505;

/// The hop to `address` by the tables `routes` and `neighbours` of the router (`p4/lib/router.p4`);
/// none if it has no way there.
///
/// # Errors
///
/// [`StateError`] if the program does not include the router.
pub fn hop(state: &TargetState, address: Ipv4Addr) -> Result<Option<Hop>, StateError> {
    let chosen = |table: &str, key: u128| -> Result<Option<(String, Vec<BigUint>)>, StateError> {
        let table = state.table(table)?;
        let found = table
            .lookup(&mut [key])
            .and_then(|entry| table.entry(entry));
        Ok(found.map(|listed| (listed.entry.action, listed.entry.data)))
    };
    let is = |action: &str, name: &str| action.rsplit('.').next() == Some(name);
    let key = u128::from(address.to_bits());
    let next = match chosen("routes", key)? {
        Some((action, _)) if is(&action, "connected") => key,
        Some((action, data)) if is(&action, "via") => match data.as_slice() {
            [next] => next.iter_u64_digits().next().unwrap_or(0).into(),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(match chosen("neighbours", next)? {
        Some((action, data)) if is(&action, "forward") => match <[BigUint; 3]>::try_from(data) {
            Ok([port, mac, source_mac]) => {
                let port = port.iter_u64_digits().next().unwrap_or(0);
                Some(Hop {
                    port: port as Port,
                    macs: [mac, source_mac],
                })
            }
            Err(_) => None,
        },
        _ => None,
    })
}

fn exact(keys: &[u64]) -> Vec<KeyMatch> {
    let keys = keys.iter().map(|key| KeyMatch::Exact(BigUint::from(*key)));
    keys.collect()
}

fn entry(keys: &[u64], action: &str, data: Vec<BigUint>) -> Entry {
    Entry {
        keys: exact(keys),
        priority: 0,
        action: action.into(),
        data,
    }
}

/// Gives a table of exact keys these entries and no others.
fn fill(state: &mut TargetState, table: &str, entries: &[Entry]) -> Result<(), StateError> {
    let table = state.table_mut(table)?;
    for listed in table.entries() {
        if !entries.iter().any(|of| of.keys == listed.entry.keys) {
            table.delete(&listed.entry.keys, 0)?;
        }
    }
    for entry in entries {
        match table.insert(entry) {
            Err(StateError::Duplicate { .. }) => table.modify(entry)?,
            inserted => inserted?,
        }
    }
    Ok(())
}

/// A copy that a group's replication groups make.
struct Copy {
    kind: u16,
    replica: Replica,
    target: Entry,
}

impl Group {
    /// Copies of group `number` by their targets; those that cannot be reached are left out, and
    /// added to `unreached`.
    fn copies(
        &self,
        number: u8,
        leaders: &BTreeMap<u8, Ipv4Addr>,
        state: &TargetState,
        unreached: &mut Vec<Ipv4Addr>,
    ) -> Result<Vec<Copy>, StateError> {
        let members = self.others.iter().map(|member| {
            let rid = MEMBER_RID + u16::from(member.number);
            let head = vec![BigUint::from(member.incarnation)];
            (MEMBERS, rid, "member", head, member.address)
        });
        let receivers = self.receivers.iter().map(|(receiver, address)| {
            let rid = RECEIVER_RID + u16::from(*receiver);
            (RECEIVERS, rid, "receiver", Vec::new(), *address)
        });
        let others = leaders.iter().filter(|(group, _)| **group != number);
        let others = others.map(|(group, address)| {
            let rid = LEADER_RID + u16::from(*group);
            (
                LEADERS,
                rid,
                "leader",
                vec![BigUint::from(*group)],
                *address,
            )
        });
        let (_, own) = state.table(IDENTITY_TABLE)?.default_action();
        let mut copies = Vec::new();
        for (kind, rid, action, mut data, address) in members.chain(receivers).chain(others) {
            let reached = match BigUint::from(address.to_bits()) {
                // The leader of another group is this switch itself.
                itself if own.first() == Some(&itself) => Some(Hop {
                    port: LOOP_PORT,
                    macs: [BigUint::ZERO, BigUint::ZERO],
                }),
                _ => hop(state, address)?,
            };
            let Some(Hop { port, macs }) = reached else {
                unreached.push(address);
                continue;
            };
            data.push(BigUint::from(address.to_bits()));
            data.extend(macs);
            copies.push(Copy {
                kind,
                replica: Replica { port, rid },
                target: entry(&[number.into(), rid.into()], action, data),
            });
        }
        Ok(copies)
    }
}

impl Rows {
    /// Gives `switch` these rows and no others: tables, and the replication groups of each group.
    /// Targets are reached as its router says at this time; apply the rows again when routes
    /// change. Returns the addresses to which it has no way: copies for them are left out.
    ///
    /// # Errors
    ///
    /// [`SetupError::State`] if the program does not include library and router, or has no room,
    /// [`SetupError::Switch`] if the switch refuses a replication group. What comes before is set.
    pub fn apply<E: Engine>(&self, switch: &mut Switch<E>) -> Result<Vec<Ipv4Addr>, SetupError> {
        let mut unreached = Vec::new();
        let mut targets = Vec::new();
        let state = switch.engine_mut().state_mut();
        let members = self.groups.iter().map(|(number, group)| {
            let data = vec![BigUint::from(group.member), BigUint::from(group.longest)];
            entry(&[(*number).into()], "set_member", data)
        });
        fill(state, GROUPS_TABLE, &members.collect::<Vec<_>>())?;
        let leaders = self.leaders.iter().map(|(group, address)| {
            let data = vec![BigUint::from(address.to_bits())];
            entry(&[(*group).into()], "leader", data)
        });
        fill(state, LEADERS_TABLE, &leaders.collect::<Vec<_>>())?;
        let sessions = self.sessions.iter().map(|(session, lanes)| {
            entry(&[(*session).into()], "grant", vec![BigUint::from(*lanes)])
        });
        fill(state, SESSIONS_TABLE, &sessions.collect::<Vec<_>>())?;
        let mut replicas = Vec::new();
        for (number, group) in &self.groups {
            let copies = group.copies(*number, &self.leaders, state, &mut unreached)?;
            for map in 1..MAPS {
                let reached = copies.iter().filter(|copy| copy.kind & map != 0);
                let reached: Vec<Replica> = reached.map(|copy| copy.replica).collect();
                replicas.push((u16::from(*number) * MAPS + map, reached));
            }
            targets.extend(copies.into_iter().map(|copy| copy.target));
        }
        fill(state, TARGETS_TABLE, &targets)?;
        for group in (0..GROUPS).filter(|group| !self.groups.contains_key(group)) {
            for map in 1..MAPS {
                let number = u16::from(group) * MAPS + map;
                if switch.multicast_group(number).is_some() {
                    switch.remove_multicast_group(number)?;
                }
            }
        }
        for (number, replicas) in replicas {
            switch.set_multicast_group(number, replicas)?;
        }
        Ok(unreached)
    }
}
