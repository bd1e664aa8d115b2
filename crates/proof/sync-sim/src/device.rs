//! The switch, as the world drives it.

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use rustc_hash::FxHashMap;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_runtime::{Engine, KeyMatch, TargetState, Value};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync_setup::{CONTROL_PORT, Rates, SetupError, Sync};
use stateplane_world::worker_of;

use crate::program::{GROUPS, Group, Program};
use crate::scenario::Scenario;

/// Address of the switch.
pub(crate) const SWITCH_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
/// Port of hosts.
pub(crate) const HOST_PORT: u16 = 0;

/// A switch without IO. Times are of its own clock, in µs.
pub(crate) trait Device {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]);
    fn handle_timeout(&mut self, now: u64);
    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)>;
    fn poll_timeout(&self) -> Option<u64>;
    /// Element of a register; 0 if there is none.
    fn word(&self, register: &str, index: u64) -> u64;
}

/// The value of a location of a group.
pub(crate) fn value(device: &dyn Device, group: &Group, index: u64) -> u64 {
    let mut lowest = 0;
    let parts = group.registers.iter().map(|(register, bits)| {
        let part = device.word(register, index) << lowest;
        lowest += bits;
        part
    });
    parts.fold(0, |all, part| all | part)
}

/// A switch with an engine for each of its workers.
pub(crate) struct P4Switch<E: Engine> {
    /// Workers, which share the registers.
    switches: Vec<Switch<E>>,
    /// Places of registers by name.
    registers: FxHashMap<String, usize>,
}

/// A worker of the switch; the packet generator is the first one's.
fn worker<E: Engine>(
    engine: E,
    scenario: &Scenario,
    incarnation: u32,
    generates: bool,
) -> Result<Switch<E>, SetupError> {
    let config = SwitchConfig {
        ports: vec![HOST_PORT, CONTROL_PORT],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine, config)?;
    let rates = Rates {
        byte_time: scenario.byte_time,
        slowest_byte_time: scenario.byte_time.saturating_mul(4),
        window_us: scenario.window_us,
        finest: 0,
        coarsest: scenario.coarsest,
    };
    let sync = Sync {
        switch: 1,
        address: SWITCH_ADDRESS,
        turn_us: scenario.turn_us,
        rates: (0..GROUPS as u16).map(|group| (group, rates)).collect(),
    };
    sync.apply(&mut switch, incarnation, generates)?;
    let state = switch.engine_mut().state_mut();
    for group in 0..GROUPS as u64 {
        let first = Value::from(scenario.first_position);
        for register in ["sync_head", "sync_tail", "sync_acked", "sync_stamp"] {
            state.register_mut(register)?.write(group, &first)?;
        }
    }
    if scenario.program == Program::PacketCounter {
        let all = KeyMatch::Prefix {
            value: BigUint::ZERO,
            length: 0,
        };
        let host = address(Ipv4Addr::new(10, 0, 0, 1));
        insert(state, "routes", vec![all], "via", vec![host.clone()])?;
        let ways = vec![number(HOST_PORT), number(1_u8), number(2_u8)];
        insert(state, "neighbours", exact(host), "forward", ways)?;
    }
    Ok(switch)
}

impl<E: Engine> P4Switch<E> {
    pub(crate) fn new(
        engines: Vec<E>,
        scenario: &Scenario,
        incarnation: u32,
    ) -> Result<Self, SetupError> {
        let workers = engines.into_iter().enumerate();
        let switches: Result<Vec<_>, SetupError> = workers
            .map(|(number, engine)| worker(engine, scenario, incarnation, number == 0))
            .collect();
        let mut device = Self {
            registers: FxHashMap::default(),
            switches: switches?,
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

    fn word(&self, register: &str, index: u64) -> u64 {
        let registers = self.state().registers();
        let place = self.registers.get(register);
        let register = place.and_then(|place| registers.get(*place));
        let word = register.and_then(|of| of.word(index)).unwrap_or(0);
        word as u64
    }
}
