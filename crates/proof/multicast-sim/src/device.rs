//! A switch that runs the program, as the world drives it.

use rustc_hash::FxHashMap;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_multicast_setup::{Hold, Multicast, Rows, SetupError};
use stateplane_runtime::{Engine, KeyMatch, StateError, TargetState, Value};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_world::{Node, NodePort, worker_of};

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

/// A switch with an engine for each of its workers.
pub(crate) struct P4Switch<E: Engine> {
    /// Workers, which share the registers.
    switches: Vec<Switch<E>>,
    /// Places of registers by name.
    registers: FxHashMap<String, usize>,
    failure: Option<SetupError>,
}

/// A worker of the switch at `place`.
fn worker<E: Engine>(
    engine: E,
    scenario: &Scenario,
    place: usize,
    incarnation: u32,
) -> Result<Switch<E>, SetupError> {
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
    Ok(switch)
}

impl<E: Engine> P4Switch<E> {
    /// The switch at `place`; `founds` if its groups begin with it.
    pub(crate) fn new(
        engines: Vec<E>,
        scenario: &Scenario,
        place: usize,
        incarnation: u32,
        founds: bool,
    ) -> Result<Self, SetupError> {
        let switches = engines.into_iter();
        let switches: Result<Vec<_>, SetupError> = switches
            .map(|engine| worker(engine, scenario, place, incarnation))
            .collect();
        let mut device = Self {
            registers: FxHashMap::default(),
            switches: switches?,
            failure: None,
        };
        let registers = device.state().registers().iter().enumerate();
        let registers = registers.map(|(place, of)| (of.name().to_owned(), place));
        device.registers = registers.collect();
        if founds {
            device.found(scenario);
        }
        Ok(device)
    }

    fn state(&self) -> &TargetState {
        self.switches[0].engine().state()
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

impl<E: Engine> Device for P4Switch<E> {
    fn handle_frame(&mut self, now: u64, frame: &[u8]) {
        let worker = worker_of(frame, self.switches.len());
        self.switches[worker].handle_frame(now, NETWORK_PORT, frame);
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

    fn word(&self, register: &str, index: u64) -> u64 {
        let registers = self.state().registers();
        let place = self.registers.get(register);
        let register = place.and_then(|place| registers.get(*place));
        register.and_then(|of| of.word(index)).unwrap_or(0) as u64
    }

    fn set_word(&mut self, register: &str, index: u64, value: u64) {
        let state = self.switches[0].engine_mut().state_mut();
        let written = state
            .register_mut(register)
            .and_then(|of| of.write(index, &Value::from(value)));
        let failed: Option<StateError> = written.err();
        self.failure = self.failure.take().or(failed.map(SetupError::from));
    }

    fn events(&self, index: u64) -> u64 {
        let counted = self.switches.iter().map(|switch| {
            let events = switch.engine().state().counter("multicast_events");
            let count = events.and_then(|events| events.read(index));
            count.map_or(0, |count| count.packets)
        });
        counted.sum()
    }

    fn set_rows(&mut self, rows: &Rows) {
        for switch in &mut self.switches {
            let failed = rows.apply(switch).err();
            self.failure = self.failure.take().or(failed);
        }
    }

    fn failed(&mut self) -> Option<SetupError> {
        self.failure.take()
    }
}
