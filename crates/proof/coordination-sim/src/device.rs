//! A switch that runs the program, as the world drives it.

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use rustc_hash::FxHashMap;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_coordination_setup::{Coordination, SetupError};
use stateplane_runtime::{Engine, Entry, KeyMatch, StateError, Value};
use stateplane_switch::{Switch, SwitchConfig};

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

/// A switch with an engine.
pub(crate) struct P4Switch<E: Engine> {
    switch: Switch<E>,
    place: usize,
    /// Places of registers by name.
    registers: FxHashMap<String, usize>,
    failure: Option<StateError>,
}

impl<E: Engine> P4Switch<E> {
    pub(crate) fn new(
        engine: E,
        places: &Places,
        place: usize,
        incarnation: u32,
    ) -> Result<Self, SetupError> {
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
        coordination.apply(&mut switch, incarnation, true)?;
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
        let registers = state.registers().iter().enumerate();
        let registers = registers.map(|(place, of)| (of.name().to_owned(), place));
        Ok(Self {
            registers: registers.collect(),
            switch,
            place,
            failure: None,
        })
    }

    fn modify(&mut self, to: Ipv4Addr, port: u16) -> Result<(), StateError> {
        let state = self.switch.engine_mut().state_mut();
        let own = BigUint::from_bytes_be(&mac(self.place));
        state.table_mut("neighbours")?.modify(&Entry {
            keys: exact(address(to)),
            priority: 0,
            action: "forward".into(),
            data: vec![number(port), own.clone(), own],
        })
    }
}

impl<E: Engine> Device for P4Switch<E> {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]) {
        self.switch.handle_frame(now, port, frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.switch.handle_timeout(now);
    }

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)> {
        let transmit = self.switch.poll_transmit()?;
        Some((transmit.port, transmit.frame))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.switch.poll_timeout()
    }

    fn word(&self, register: &str, index: u64) -> u128 {
        let registers = self.switch.engine().state().registers();
        let place = self.registers.get(register);
        let register = place.and_then(|place| registers.get(*place));
        register.and_then(|of| of.word(index)).unwrap_or(0)
    }

    fn set_word(&mut self, register: &str, index: u64, value: u64) {
        let state = self.switch.engine_mut().state_mut();
        let written = state
            .register_mut(register)
            .and_then(|of| of.write(index, &Value::from(value)));
        self.failure = self.failure.take().or(written.err());
    }

    #[cfg(test)]
    fn words(&self, beginning: &str) -> Vec<u128> {
        let registers = self.switch.engine().state().registers().iter();
        let of_name = registers.filter(|of| of.name().starts_with(beginning));
        let words = of_name.flat_map(|of| (0..of.size()).filter_map(|index| of.word(index)));
        words.collect()
    }

    fn events(&self, index: u64) -> u64 {
        let events = self.switch.engine().state().counter("coordination_events");
        let count = events.and_then(|events| events.read(index));
        count.map_or(0, |count| count.packets)
    }

    fn route(&mut self, to: Ipv4Addr, port: u16) {
        let modified = self.modify(to, port);
        self.failure = self.failure.take().or(modified.err());
    }

    fn failed(&mut self) -> Option<StateError> {
        self.failure.take()
    }
}
