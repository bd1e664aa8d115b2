//! Switches that run a compiled program.

#[cfg(test)]
mod crowding;

use crate::chain::SHARDS;
use crate::device::{Device, Identity, Slot};
use crate::frame::{
    DATA_PORTS, HEAD_ADDRESS, HOST_MAC, INSIDE_PORT, OUTSIDE_PORT, PUBLIC_ADDRESS, STORE_MTU,
    STORE_PORT, store_mac, switch_address, switch_mac,
};
use crate::model::{FIRST_HOLD, HOLD_DOUBLINGS};
use crate::options::ProgramKind;
use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_hosts::table::{address, exact, insert, number};
use stateplane_hosts::{Random, SNAPSHOT_PORT, app, walk_frame};
use stateplane_switch::{Generator, MirrorSession, Switch, SwitchConfig, SwitchError, Watch};
use stateplane_target::{Engine, Entry, KeyMatch, StateError, TargetState, Value};
use stateplane_wire::replication::{HEADER_LENGTH, KEY_LENGTH, Key};
use stateplane_wire::{ethernet, ipv4, udp};
use thiserror::Error;

/// Port at which held copies come back; it has no link.
const RECIRCULATION_PORT: u16 = 510;

/// `GENERATOR_PORT` of `p4/lib/replication.p4`.
const GENERATOR_PORT: u16 = 509;
/// `ETHERTYPE_GENERATED` of `p4/lib/headers.p4`.
const ETHERTYPE_GENERATED: u16 = 0x88b5;
/// The shard whose chain is probed; all have the same one.
pub(crate) const PROBED_SHARD: u16 = 0;
/// µs between probes.
const PROBE_PERIOD: u64 = 40_000;
/// µs without an answer after which the data ports go down (rule 17).
const GREATEST_SILENCE: u64 = 130_000;

/// `HOLD_SESSION_LEASE`, `HOLD_SESSION_WRITE`, `HOLD_SESSIONS` and
/// `RENEWAL_SESSION` of `p4/lib/replication.p4`.
const HOLD_SESSION_LEASE: u32 = 16;
const HOLD_SESSION_WRITE: u32 = 32;
const HOLD_SESSIONS: u32 = 8;
const RENEWAL_SESSION: u32 = 15;
/// `SNAPSHOT_STALE` of `p4/lib/snapshot.p4`.
const SNAPSHOT_STALE: u64 = 3;
/// `EVENT_TABLE_FULL` of `p4/lib/replication.p4`.
const EVENT_TABLE_FULL: u64 = 10;
/// `STATUS_PENDING`, `STATUS_SHARED` and `STATUS_RECALLED` of `p4/lib/replication.p4`.
const STATUS_PENDING: u128 = 1;
const STATUS_SHARED: u128 = 3;
const STATUS_RECALLED: u128 = 4;

const INSIDE_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
const OUTSIDE_GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 254);

/// Why a switch cannot be set up for a program.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The switch refuses its configuration.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// The program lacks a table or register, or has another one by its name.
    #[error(transparent)]
    State(#[from] StateError),
}

/// A switch with an engine.
pub(crate) struct P4Switch<E: Engine> {
    switch: Switch<E>,
}

impl<E: Engine> P4Switch<E> {
    /// A switch that knows its network, with an engine that has run nothing yet.
    pub(crate) fn new(
        mut engine: E,
        program: ProgramKind,
        identity: Identity,
    ) -> Result<Self, SetupError> {
        set_up(engine.state_mut(), program, identity)?;
        let mut config = SwitchConfig::default();
        let outer = ethernet::HEADER_LENGTH + ipv4::HEADER_LENGTH + udp::HEADER_LENGTH;
        let lease = (outer + HEADER_LENGTH) as u32;
        let state = match program {
            ProgramKind::Model | ProgramKind::Counter => 8,
            ProgramKind::Nat | ProgramKind::FilteringNat => 6,
            ProgramKind::App(application) => app(application).state_length().into(),
            ProgramKind::Own(class) => class.state_length.into(),
        };
        let data_ports: Vec<u16> = match program {
            ProgramKind::Own(_) => (0..DATA_PORTS).collect(),
            _ => vec![INSIDE_PORT, OUTSIDE_PORT],
        };
        let write = lease + state;
        for number in 0..HOLD_SESSIONS {
            let hold_us = FIRST_HOLD << number.min(HOLD_DOUBLINGS);
            for (first, bytes) in [(HOLD_SESSION_LEASE, lease), (HOLD_SESSION_WRITE, write)] {
                let session = MirrorSession {
                    egress_port: Some(RECIRCULATION_PORT),
                    multicast_group: None,
                    truncate: Some(bytes),
                    hold_us,
                };
                config.mirror_sessions.insert(first + number, session);
            }
        }
        let renewal = MirrorSession {
            egress_port: Some(RECIRCULATION_PORT),
            multicast_group: None,
            truncate: None,
            hold_us: 0,
        };
        config.mirror_sessions.insert(RENEWAL_SESSION, renewal);
        config.generators.push(Generator {
            port: GENERATOR_PORT,
            period_us: PROBE_PERIOD,
            batch: 1,
            index_at: None,
            frame: probe(PROBED_SHARD),
        });
        match program {
            ProgramKind::App(application) => {
                let walk = app(application).walk(identity.switch);
                config.generators.extend(walk);
            }
            ProgramKind::Own(class) => {
                config.generators.extend(class.walk.map(|walk| Generator {
                    port: SNAPSHOT_PORT,
                    period_us: 1_000,
                    batch: walk.batch,
                    index_at: None,
                    frame: walk_frame(identity.switch, walk.arrays),
                }));
            }
            _ => {}
        }
        config.watches.push(Watch {
            register: "replication_heard".into(),
            index: PROBED_SHARD.into(),
            max_age_us: GREATEST_SILENCE,
            ports: data_ports.clone(),
        });
        config.ports = data_ports;
        config.ports.push(STORE_PORT);
        Ok(Self {
            switch: Switch::new(engine, config)?,
        })
    }

    /// The switch, for other worlds.
    #[cfg(test)]
    pub(crate) fn into_switch(self) -> Switch<E> {
        self.switch
    }

    /// Element `index` of a register of at most 128 bits.
    fn register(&self, name: &str, index: u64) -> Option<u128> {
        let register = self.switch.engine().state().register(name).ok()?;
        register.word(index)
    }

    /// Packets counted at an index; 0 without such a counter.
    fn count(&self, counter: &str, index: u64) -> u64 {
        let events = self.switch.engine().state().counter(counter);
        let count = events.and_then(|events| events.read(index));
        count.map_or(0, |count| count.packets)
    }

    fn slot_at(&self, index: u64) -> Option<Slot> {
        let status = self.register("slot_status", index)?;
        Some(Slot {
            granted: status > STATUS_PENDING && status != STATUS_RECALLED,
            shared: status == STATUS_SHARED,
            epoch: self.register("slot_epoch", index)? as u32,
            deadline: self.register("slot_deadline", index)? as u64,
            sequence: self.register("slot_sequence", index)? as u32,
            acknowledged: self.register("slot_acknowledged", index)? as u32,
        })
    }

    fn keys(&self) -> impl Iterator<Item = (u64, Key)> {
        let keys = self.switch.engine().state().register("slot_key").ok();
        let size = keys.map_or(0, |keys| keys.size());
        (0..size).filter_map(move |index| {
            let key = keys?.word(index)?.to_be_bytes();
            (key != [0; KEY_LENGTH]).then_some((index, Key(key)))
        })
    }
}

impl<E: Engine> Device for P4Switch<E> {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]) {
        self.switch.handle_frame(now, port, frame);
        while self.switch.poll_port_state().is_some() {}
    }

    fn handle_timeout(&mut self, now: u64) {
        self.switch.handle_timeout(now);
        while self.switch.poll_port_state().is_some() {}
    }

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)> {
        let transmit = self.switch.poll_transmit()?;
        Some((transmit.port, transmit.frame))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.switch.poll_timeout()
    }

    fn is_aloof(&self) -> bool {
        !self.switch.port_is_up(INSIDE_PORT)
    }

    fn set_chain(&mut self, shard: u16, head: Ipv4Addr, epoch: u32) {
        let state = self.switch.engine_mut().state_mut();
        // Set up with an entry of each shard, the table has one to change.
        if let Ok(table) = state.table_mut("replication_shards") {
            let _ = table.modify(&chain_entry(shard, head, epoch));
        }
    }

    fn slot(&self, key: &Key) -> Option<Slot> {
        let (index, _) = self.keys().find(|(_, stored)| stored == key)?;
        self.slot_at(index)
    }

    fn slots(&self) -> Vec<(Key, Slot)> {
        self.keys()
            .filter_map(|(index, key)| Some((key, self.slot_at(index)?)))
            .collect()
    }

    fn table_full(&self) -> u64 {
        self.count("replication_events", EVENT_TABLE_FULL)
    }

    fn alarms(&self) -> u64 {
        self.count("snapshot_events", SNAPSHOT_STALE)
    }

    fn words(&self, register: &str) -> Vec<u128> {
        let register = self.switch.engine().state().register(register).ok();
        let words = register.map(|it| (0..it.size()).map(|at| it.word(at).unwrap_or(0)));
        words.into_iter().flatten().collect()
    }
}

/// A frame of the packet generator that asks the program to probe `shard`.
fn probe(shard: u16) -> Vec<u8> {
    let mut frame = vec![0; ethernet::HEADER_LENGTH];
    frame[12..].copy_from_slice(&ETHERTYPE_GENERATED.to_be_bytes());
    frame.extend_from_slice(&shard.to_be_bytes());
    frame
}

fn mac(mac: [u8; 6]) -> BigUint {
    BigUint::from_bytes_be(&mac)
}

/// The entry that leads to the head of a shard's chain.
fn chain_entry(shard: u16, head: Ipv4Addr, epoch: u32) -> Entry {
    Entry {
        keys: exact(number(shard)),
        priority: 0,
        action: "chain".into(),
        data: vec![
            address(head),
            mac(store_mac(head)),
            number(STORE_PORT),
            number(epoch),
            number(STORE_MTU),
        ],
    }
}

/// Sets the tables and registers of `program`.
fn set_up(
    state: &mut TargetState,
    program: ProgramKind,
    identity: Identity,
) -> Result<(), StateError> {
    let Identity {
        switch,
        incarnation,
    } = identity;
    // Another start has other random numbers.
    let mut random = Random::new(incarnation.into());
    state.draw(&mut || random.next());
    state
        .register_mut("replication_incarnation")?
        .write(0, &Value::from(u64::from(incarnation)))?;
    state
        .register_mut("replication_claims")?
        .write(0, &Value::from(u64::from(identity.first_number())))?;
    let own = [
        number(switch),
        address(switch_address(switch)),
        mac(switch_mac(switch)),
    ];
    state
        .table_mut("replication_identity")?
        .set_default("set_identity", &own)?;
    for shard in 0..SHARDS {
        state
            .table_mut("replication_shards")?
            .insert(&chain_entry(shard, HEAD_ADDRESS, 1))?;
    }
    if matches!(program, ProgramKind::Own(_)) {
        return Ok(());
    }
    for (gateway, port) in [
        (INSIDE_GATEWAY, INSIDE_PORT),
        (OUTSIDE_GATEWAY, OUTSIDE_PORT),
    ] {
        let [a, b, c, _] = gateway.octets();
        let network = KeyMatch::Prefix {
            value: address(Ipv4Addr::new(a, b, c, 0)),
            length: 24,
        };
        insert(
            state,
            "routes",
            vec![network],
            "via",
            vec![address(gateway)],
        )?;
        let next = vec![number(port), mac(HOST_MAC), mac(switch_mac(switch))];
        insert(
            state,
            "neighbours",
            exact(address(gateway)),
            "forward",
            next,
        )?;
    }
    if program.maps() {
        let inside = exact(number(INSIDE_PORT));
        insert(state, "interfaces", inside, "inside", Vec::new())?;
        let public = exact(address(PUBLIC_ADDRESS));
        insert(state, "public_addresses", public, "is_public", Vec::new())?;
        if program == ProgramKind::FilteringNat {
            let filtering = state.table_mut("filtering")?;
            filtering.set_default("address_and_port_dependent", &[])?;
        }
    }
    if let ProgramKind::App(application) = program {
        app(application).set_up(state, switch)?;
    }
    Ok(())
}
