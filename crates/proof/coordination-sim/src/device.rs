//! A switch that runs the program, as the world drives it.

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_coordination_setup::{Coordination, SetupError};
use stateplane_runtime::{Engine, Entry, Fellow, KeyMatch, StateError, Value};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_world::Workers;

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

/// A switch that its workers run.
pub(crate) struct P4Switch<E: Engine> {
    workers: Workers<E>,
    place: usize,
    failure: Option<StateError>,
}

impl<E: Fellow> P4Switch<E> {
    pub(crate) fn new(
        engine: E,
        workers: u8,
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
        Ok(Self {
            workers: Workers::new(switch, workers),
            place,
            failure: None,
        })
    }

    fn modify(&mut self, to: Ipv4Addr, port: u16) -> Result<(), StateError> {
        let own = BigUint::from_bytes_be(&mac(self.place));
        self.workers.change(|switch| {
            let state = switch.engine_mut().state_mut();
            state.table_mut("neighbours")?.modify(&Entry {
                keys: exact(address(to)),
                priority: 0,
                action: "forward".into(),
                data: vec![number(port), own.clone(), own],
            })
        })
    }
}

impl<E: Fellow> Device for P4Switch<E> {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]) {
        self.workers.handle_frame(now, port, frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.workers.handle_timeout(now);
    }

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)> {
        let transmit = self.workers.poll_transmit()?;
        Some((transmit.port, transmit.frame))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.workers.poll_timeout()
    }

    fn word(&self, register: &str, index: u64) -> u128 {
        self.workers.word(register, index)
    }

    fn set_word(&mut self, register: &str, index: u64, value: u64) {
        let register = self.workers.state_mut().register_mut(register);
        let written = register.and_then(|of| of.write(index, &Value::from(value)));
        self.failure = self.failure.take().or(written.err());
    }

    #[cfg(test)]
    fn words(&self, beginning: &str) -> Vec<u128> {
        let registers = self.workers.state().registers().iter();
        let of_name = registers.filter(|of| of.name().starts_with(beginning));
        let words = of_name.flat_map(|of| (0..of.size()).filter_map(|index| of.word(index)));
        words.collect()
    }

    fn events(&self, index: u64) -> u64 {
        self.workers.packets("coordination_events", index)
    }

    fn route(&mut self, to: Ipv4Addr, port: u16) {
        let modified = self.modify(to, port);
        self.failure = self.failure.take().or(modified.err());
    }

    fn failed(&mut self) -> Option<StateError> {
        self.failure.take()
    }
}
