//! A switch that runs the program, as the world drives it.

use stateplane_apps::table::{address, exact, insert, number};
use stateplane_multicast_setup::{Hold, Multicast, Rows, SetupError};
use stateplane_runtime::{Engine, Fellow, KeyMatch, StateError, Value};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_world::{Node, NodePort, Workers};

use crate::places::{HOLD_PORT, NETWORK_PORT, Places, switch_address};
use crate::scenario::Scenario;

/// How long copies are held: shorter than on machines, so that runs are.
const HOLD: Hold = Hold {
    first_us: 400,
    longest_us: 6_400,
};

/// A switch without IO. Times are of its own clock, in µs.
pub(crate) trait Device {
    fn handle_frame(&mut self, now: u64, frame: &[u8]);
    fn handle_timeout(&mut self, now: u64);
    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)>;
    fn poll_timeout(&self) -> Option<u64>;
    /// Element of a register of at most 64 bits; 0 if there is none.
    fn word(&self, register: &str, index: u64) -> u64;
    fn set_word(&mut self, register: &str, index: u64, value: u64);
    /// Packets counted at an index of the library's events.
    fn events(&self, index: u64) -> u64;
    fn set_rows(&mut self, rows: &Rows);
    /// A table, register or counter was not there, or had no room.
    fn failed(&mut self) -> Option<SetupError>;
}

/// A switch as a node of the net.
pub(crate) struct SwitchCore<'a>(pub(crate) &'a mut dyn Device);

impl Node for SwitchCore<'_> {
    type Message = Vec<u8>;
    type Transmit = (u16, Vec<u8>);

    fn handle_message(&mut self, now: u64, _: u16, _: NodePort, frame: Vec<u8>) {
        self.0.handle_frame(now, &frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<(u16, Vec<u8>)> {
        self.0.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }
}

/// A switch that its workers run.
pub(crate) struct P4Switch<E: Engine> {
    workers: Workers<E>,
    failure: Option<SetupError>,
}

impl<E: Fellow> P4Switch<E> {
    /// The switch at `place`; `founds` if its groups begin with it.
    pub(crate) fn new(
        engine: E,
        scenario: &Scenario,
        place: usize,
        incarnation: u32,
        founds: bool,
    ) -> Result<Self, SetupError> {
        let config = SwitchConfig {
            ports: vec![NETWORK_PORT, HOLD_PORT],
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, config)?;
        let own = switch_address(place);
        let multicast = Multicast {
            address: own,
            port: HOLD_PORT,
            hold: HOLD,
        };
        multicast.apply(&mut switch, incarnation)?;
        let state = switch.engine_mut().state_mut();
        for to in Places::new(scenario).addresses().filter(|to| *to != own) {
            let to = address(to);
            let whole = KeyMatch::Prefix {
                value: to.clone(),
                length: 32,
            };
            insert(state, "routes", vec![whole], "connected", Vec::new())?;
            // Ethernet addresses are not looked at.
            let data = vec![number(NETWORK_PORT), number(2u8), number(1u8)];
            insert(state, "neighbours", exact(to), "forward", data)?;
        }
        let mut device = Self {
            workers: Workers::new(switch, scenario.workers),
            failure: None,
        };
        if founds {
            device.found(scenario);
        }
        Ok(device)
    }

    /// Logs begin where the scenario says, as if all before had been freed.
    fn found(&mut self, scenario: &Scenario) {
        let (index, time) = (scenario.first_index.into(), scenario.first_time);
        for group in 0..scenario.groups.into() {
            for register in ["multicast_base", "multicast_end", "multicast_commit"] {
                self.set_word(register, group, index);
            }
            for register in [
                "multicast_base_time",
                "multicast_last_time",
                "multicast_clock",
            ] {
                self.set_word(register, group, time);
            }
        }
    }
}

impl<E: Fellow> Device for P4Switch<E> {
    fn handle_frame(&mut self, now: u64, frame: &[u8]) {
        self.workers.handle_frame(now, NETWORK_PORT, frame);
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

    fn word(&self, register: &str, index: u64) -> u64 {
        self.workers.word(register, index) as u64
    }

    fn set_word(&mut self, register: &str, index: u64, value: u64) {
        let register = self.workers.state_mut().register_mut(register);
        let written = register.and_then(|of| of.write(index, &Value::from(value)));
        let failed: Option<StateError> = written.err();
        self.failure = self.failure.take().or(failed.map(SetupError::from));
    }

    fn events(&self, index: u64) -> u64 {
        self.workers.packets("multicast_events", index)
    }

    fn set_rows(&mut self, rows: &Rows) {
        let applied = self.workers.change(|switch| rows.apply(switch));
        self.failure = self.failure.take().or(applied.err());
    }

    fn failed(&mut self) -> Option<SetupError> {
        self.failure.take()
    }
}
