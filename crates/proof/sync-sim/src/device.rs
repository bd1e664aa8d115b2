//! The switch, as the world drives it.

use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_apps::table::{address, exact, insert, number};
use stateplane_runtime::{Engine, Fellow, KeyMatch, Value};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync_setup::{CONTROL_PORT, Rates, SetupError, Sync};
use stateplane_world::Workers;

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

/// A switch that its workers run.
pub(crate) struct P4Switch<E: Engine>(Workers<E>);

impl<E: Fellow> P4Switch<E> {
    pub(crate) fn new(
        engine: E,
        scenario: &Scenario,
        incarnation: u32,
    ) -> Result<Self, SetupError> {
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
            turn_us: Some(scenario.turn_us),
            rates: (0..GROUPS as u16).map(|group| (group, rates)).collect(),
            read_only: false,
        };
        sync.apply(&mut switch, incarnation, true)?;
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
        Ok(Self(Workers::new(switch, scenario.workers)))
    }
}

impl<E: Fellow> Device for P4Switch<E> {
    fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]) {
        self.0.handle_frame(now, port, frame);
    }

    fn handle_timeout(&mut self, now: u64) {
        self.0.handle_timeout(now);
    }

    fn poll_transmit(&mut self) -> Option<(u16, Vec<u8>)> {
        let transmit = self.0.poll_transmit()?;
        Some((transmit.port, transmit.frame))
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.poll_timeout()
    }

    fn word(&self, register: &str, index: u64) -> u64 {
        self.0.word(register, index) as u64
    }
}
