//! Switches that run a compiled program.

#[cfg(test)]
mod crowding;

use crate::chain::SHARDS;
use crate::device::{Device, Identity, Slot};
use crate::frame::{
    DATA_PORTS, HEAD_ADDRESS, HOST_MAC, INSIDE_PORT, OUTSIDE_PORT, STORE_MTU, STORE_PORT,
    checked_message_in, message_in, store_mac, switch_address, switch_mac,
};
use crate::options::{ProgramKind, Rule};
use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_apps::{Random, SNAPSHOT_PORT, walk_frame};
use stateplane_runtime::{Engine, KeyMatch, StateError, TargetState, Value};
use stateplane_setup::{
    CHAINS_TABLE, Chain, HEARTBEAT_PORT, Heartbeats, Hold, Probe, Replication, Server, SetupError,
    TERM, term_of,
};
use stateplane_switch::{Generator, Switch, SwitchConfig};
use stateplane_wire::replication::{KEY_LENGTH, Key, MessageType};
use stateplane_wire::term::is_term;

/// The shard whose chain is probed; all have the same one.
pub(crate) const PROBED_SHARD: u16 = 0;
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

/// Bits of an element of `slot_grant` with the time at which the grant was asked for.
const GRANTED_BITS: u32 = 48;

/// A switch with an engine.
pub(crate) struct P4Switch<E: Engine> {
    switch: Switch<E>,
    /// None of a program that has no flows.
    heartbeats: Option<Heartbeats>,
    /// The latest time by the switch's clock.
    now: u64,
    /// Recalls and idle questions do not reach it.
    deaf: bool,
}

impl<E: Engine> P4Switch<E> {
    /// A switch that knows its network, with an engine that has run nothing yet.
    pub(crate) fn new(
        mut engine: E,
        program: ProgramKind,
        identity: Identity,
        brisk: bool,
    ) -> Result<Self, SetupError> {
        set_up(engine.state_mut(), program, identity).map_err(SetupError::State)?;
        let data_ports: Vec<u16> = match program {
            ProgramKind::Own(_) => (0..DATA_PORTS).collect(),
            _ => vec![INSIDE_PORT, OUTSIDE_PORT],
        };
        let mut config = SwitchConfig::default();
        match program {
            ProgramKind::App(application) => {
                let walk = application.hosts().walk(identity.switch);
                config.generators.extend(walk);
            }
            ProgramKind::Own(class) => {
                config.generators.extend(class.walk.map(|walk| Generator {
                    port: SNAPSHOT_PORT,
                    period_us: 1_000,
                    batch: walk.batch,
                    index_at: None,
                    spread: false,
                    frame: walk_frame(identity.switch, walk.arrays),
                }));
            }
            _ => {}
        }
        config.ports.clone_from(&data_ports);
        config.ports.push(STORE_PORT);
        let mut switch = Switch::new(engine, config)?;
        let replication = Replication {
            hold: hold(brisk),
            probe: Probe {
                ports: data_ports,
                ..probe(brisk)
            },
            ..replication(identity.switch)
        };
        replication.apply(&mut switch, identity.incarnation, true)?;
        let claims = switch.engine_mut().state_mut();
        claims
            .register_mut("replication_claims")
            .and_then(|claims| claims.write(0, &Value::from(u64::from(identity.first_number()))))
            .map_err(SetupError::State)?;
        Ok(Self {
            heartbeats: Heartbeats::of(0, switch.engine().state(), PROBED_SHARD),
            switch,
            now: 0,
            deaf: false,
        })
    }

    /// The same without a rule of terms, and perhaps deaf to recalls and idle questions.
    pub(crate) fn with(mut self, without: Option<Rule>, deaf: bool) -> Self {
        let faults = without.map(Rule::term_faults).unwrap_or_default();
        self.heartbeats = self.heartbeats.map(|it| it.with_faults(faults));
        self.deaf = deaf;
        self
    }

    /// True of a message that the switch does not hear.
    fn is_lost(&self, frame: &[u8]) -> bool {
        let message = checked_message_in(frame).filter(|_| self.deaf);
        message.is_some_and(|(_, message)| {
            matches!(
                message.message_type(),
                MessageType::Recall | MessageType::Idle
            )
        })
    }

    /// Writes what follows from the answers of heads, and sends the heartbeats that are due.
    fn beat(&mut self, now: u64) {
        let Some(heartbeats) = &mut self.heartbeats else {
            return;
        };
        while let Some(write) = heartbeats.poll_write() {
            write.apply(self.switch.engine_mut().state_mut());
        }
        while let Some(frame) = heartbeats.poll_frame(now) {
            self.switch.handle_made(now, HEARTBEAT_PORT, &frame);
        }
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
        let grant = self.register("slot_grant", index)? as u64;
        let (shard, granted) = (grant >> GRANTED_BITS, grant & ((1 << GRANTED_BITS) - 1));
        let term = term_of(self.register(TERM, shard)? as u64);
        let deadline = if granted > term.since {
            term.deadline
        } else {
            0
        };
        Some(Slot {
            granted: status > STATUS_PENDING && status != STATUS_RECALLED,
            shared: status == STATUS_SHARED,
            epoch: self.register("slot_epoch", index)? as u32,
            deadline,
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
        self.now = now;
        if port == STORE_PORT && self.is_lost(frame) {
            return;
        }
        let answer = message_in(frame).filter(|(_, _, bytes)| port == STORE_PORT && is_term(bytes));
        match (answer, &mut self.heartbeats) {
            (Some((from, _, bytes)), Some(heartbeats)) => {
                heartbeats.handle_reply(now, *from.ip(), bytes);
            }
            _ => self.switch.handle_frame(now, port, frame),
        }
        self.beat(now);
        while self.switch.poll_port_state().is_some() {}
    }

    fn handle_timeout(&mut self, now: u64) {
        self.now = now;
        self.switch.handle_timeout(now);
        self.beat(now);
        while self.switch.poll_port_state().is_some() {}
    }

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)> {
        let transmit = self.switch.poll_transmit()?;
        Some((transmit.port, transmit.frame))
    }

    fn poll_timeout(&self) -> Option<u64> {
        let own = self.switch.poll_timeout();
        let beats = self.heartbeats.as_ref().and_then(Heartbeats::poll_timeout);
        own.into_iter().chain(beats).min()
    }

    fn is_aloof(&self) -> bool {
        !self.switch.port_is_up(INSIDE_PORT)
    }

    fn set_chain(&mut self, shard: u16, head: Ipv4Addr, epoch: u32) {
        let state = self.switch.engine_mut().state_mut();
        // Set up with an entry of each shard, the table has one to change.
        if let Ok(table) = state.table_mut(CHAINS_TABLE) {
            let _ = table.modify(&chain(head, epoch).entry(shard, STORE_PORT));
        }
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.set_head(self.now, shard, head, epoch);
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

fn mac(mac: [u8; 6]) -> BigUint {
    BigUint::from_bytes_be(&mac)
}

/// The chain whose head is at an address.
fn chain(head: Ipv4Addr, epoch: u32) -> Chain {
    Chain {
        head: Server {
            address: head,
            mac: store_mac(head),
        },
        epoch,
        mtu: STORE_MTU,
    }
}

/// How long switches hold copies of requests.
pub(crate) fn hold(brisk: bool) -> Hold {
    if brisk {
        Hold {
            first_us: 5_000,
            longest_us: 160_000,
        }
    } else {
        Hold::USUAL
    }
}

/// How switches probe the store, without the ports that silence lowers.
fn probe(brisk: bool) -> Probe {
    let usual = Probe {
        shard: PROBED_SHARD,
        ..Probe::default()
    };
    if brisk {
        Probe {
            period_us: 40_000,
            silence_us: 130_000,
            ..usual
        }
    } else {
        usual
    }
}

/// The part in replication of the switch of a number.
pub(crate) fn replication(switch: u32) -> Replication {
    Replication {
        switch,
        address: switch_address(switch),
        mac: switch_mac(switch),
        port: STORE_PORT,
        chains: vec![chain(HEAD_ADDRESS, 1); SHARDS.into()],
        hold: hold(false),
        probe: probe(false),
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
    if let ProgramKind::App(application) = program {
        application.hosts().set_up(state, switch)?;
    }
    Ok(())
}
