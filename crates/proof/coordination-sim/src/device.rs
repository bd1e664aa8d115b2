//! A switch that runs the program, as the world drives it.

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use rustc_hash::FxHashMap;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_coordination_setup::{Coordination, SetupError};
use stateplane_runtime::{Engine, Entry, KeyMatch, StateError, TargetState, Value};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_world::worker_of;

use crate::places::{CONTROLLER_PORT, LINK_PORTS, Places, mac, switch_address};

/// A switch without IO. Times are of its own clock, in µs.
pub(crate) trait Device {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]);
    fn handle_timeout(&mut self, now: u64);
    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)>;
    fn poll_timeout(&self) -> Option<u64>;
    /// Element of a register of at most 128 bits; 0 if there is none.
    fn word(&self, register: &str, index: u64) -> u128;
    fn set_word(&mut self, register: &str, index: u64, value: u64);
    /// All elements of the registers of at most 128 bits whose name begins so, one register after
    /// the other.
    #[cfg(test)]
    fn words(&self, beginning: &str) -> Vec<u128>;
    /// Packets counted at an index of the library's events.
    fn events(&self, index: u64) -> u64;
    /// Packets for `to` leave by `port` from here on.
    fn route(&mut self, to: Ipv4Addr, port: u16);
    /// A table, register or counter was not there.
    fn failed(&mut self) -> Option<StateError>;
}

/// A switch with an engine for each of its workers.
pub(crate) struct P4Switch<E: Engine> {
    /// Workers, which share the registers.
    switches: Vec<Switch<E>>,
    place: usize,
    /// Places of registers by name.
    registers: FxHashMap<String, usize>,
    failure: Option<StateError>,
}

/// A worker of the switch at `place`; the packet generators are the first one's.
fn worker<E: Engine>(
    engine: E,
    places: &Places,
    place: usize,
    incarnation: u32,
    generates: bool,
) -> Result<Switch<E>, SetupError> {
    let mut config = SwitchConfig::default();
    config.ports.extend(0..LINK_PORTS);
    config.ports.push(CONTROLLER_PORT);
    config
        .ports
        .extend((0..places.clients).map(Places::client_port));
    let mut switch = Switch::new(engine, config)?;
    let own = switch_address(place);
    let coordination = Coordination {
        switch: place as u32 + 1,
        address: own,
        port: CONTROLLER_PORT,
    };
    coordination.apply(&mut switch, incarnation, generates)?;
    let state = switch.engine_mut().state_mut();
    for to in places.addresses().filter(|to| *to != own) {
        let to = address(to);
        let whole = KeyMatch::Prefix {
            value: to.clone(),
            length: 32,
        };
        insert(state, "routes", vec![whole], "connected", Vec::new())?;
        insert(state, "neighbours", exact(to), "drop", Vec::new())?;
    }
    Ok(switch)
}

/// Packets for `to` leave the switch at `place` by `port` from here on.
fn modify<E: Engine>(
    switch: &mut Switch<E>,
    place: usize,
    to: Ipv4Addr,
    port: u16,
) -> Result<(), StateError> {
    let state = switch.engine_mut().state_mut();
    let own = BigUint::from_bytes_be(&mac(place));
    state.table_mut("neighbours")?.modify(&Entry {
        keys: exact(address(to)),
        priority: 0,
        action: "forward".into(),
        data: vec![number(port), own.clone(), own],
    })
}

impl<E: Engine> P4Switch<E> {
    pub(crate) fn new(
        engines: Vec<E>,
        places: &Places,
        place: usize,
        incarnation: u32,
    ) -> Result<Self, SetupError> {
        let workers = engines.into_iter().enumerate();
        let switches: Result<Vec<_>, SetupError> = workers
            .map(|(number, engine)| worker(engine, places, place, incarnation, number == 0))
            .collect();
        let mut device = Self {
            registers: FxHashMap::default(),
            switches: switches?,
            place,
            failure: None,
        };
        let registers = device.state().registers().iter().enumerate();
        let registers = registers.map(|(place, of)| (of.name().to_owned(), place));
        device.registers = registers.collect();
        Ok(device)
    }

    fn state(&self) -> &TargetState {
        self.switches[0].engine().state()
    }
}

impl<E: Engine> Device for P4Switch<E> {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]) {
        let worker = worker_of(frame, self.switches.len());
        self.switches[worker].handle_frame(now, port, frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        for switch in &mut self.switches {
            switch.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)> {
        let transmit = self.switches.iter_mut().find_map(Switch::poll_transmit)?;
        Some((transmit.port, transmit.frame))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.switches.iter().filter_map(Switch::poll_timeout).min()
    }

    fn word(&self, register: &str, index: u64) -> u128 {
        let registers = self.state().registers();
        let place = self.registers.get(register);
        let register = place.and_then(|place| registers.get(*place));
        register.and_then(|of| of.word(index)).unwrap_or(0)
    }

    fn set_word(&mut self, register: &str, index: u64, value: u64) {
        let state = self.switches[0].engine_mut().state_mut();
        let written = state
            .register_mut(register)
            .and_then(|of| of.write(index, &Value::from(value)));
        self.failure = self.failure.take().or(written.err());
    }

    #[cfg(test)]
    fn words(&self, beginning: &str) -> Vec<u128> {
        let registers = self.state().registers().iter();
        let of_name = registers.filter(|of| of.name().starts_with(beginning));
        let words = of_name.flat_map(|of| (0..of.size()).filter_map(|index| of.word(index)));
        words.collect()
    }

    fn events(&self, index: u64) -> u64 {
        let counted = self.switches.iter().map(|switch| {
            let events = switch.engine().state().counter("coordination_events");
            let count = events.and_then(|events| events.read(index));
            count.map_or(0, |count| count.packets)
        });
        counted.sum()
    }

    fn route(&mut self, to: Ipv4Addr, port: u16) {
        for switch in &mut self.switches {
            let modified = modify(switch, self.place, to, port);
            self.failure = self.failure.take().or(modified.err());
        }
    }

    fn failed(&mut self) -> Option<StateError> {
        self.failure.take()
    }
}
