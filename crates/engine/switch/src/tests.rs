//! Scenarios with an engine that obeys the frame.

mod configuration;
mod engine;
mod idle;
mod random;
mod replace;
mod scenarios;
mod watches;

use crate::{Generator, Limits, MirrorSession, Replica, Switch, SwitchConfig, Transmit};
use engine::FakeEngine;
use std::collections::BTreeMap;

/// Session 1 copies at once to port 2, session 2 holds for 100 µs, session 3 cuts
/// to 20 bytes and holds for 50 µs, session 4 goes to port 5 which is not a port.
fn sessions() -> BTreeMap<u32, MirrorSession> {
    let session = |egress_port, truncate, hold_us| MirrorSession {
        egress_port: Some(egress_port),
        multicast_group: None,
        truncate,
        hold_us,
    };
    BTreeMap::from([
        (1, session(2, None, 0)),
        (2, session(2, None, 100)),
        (3, session(3, Some(20), 50)),
        (4, session(5, None, 0)),
    ])
}

/// Ports 0 to 3, the sessions above, group 1 with ports 1 and 2, group 2 without members.
fn config() -> SwitchConfig {
    SwitchConfig {
        ports: vec![0, 1, 2, 3],
        limits: Limits::default(),
        mirror_sessions: sessions(),
        multicast_groups: BTreeMap::from([
            (
                1,
                vec![Replica { port: 1, rid: 10 }, Replica { port: 2, rid: 20 }],
            ),
            (2, vec![]),
        ]),
        generators: vec![],
        watches: vec![],
    }
}

fn switch_with(config: SwitchConfig) -> Switch<FakeEngine> {
    Switch::new(FakeEngine::new(watches::state()), config).expect("the configuration is valid")
}

fn switch() -> Switch<FakeEngine> {
    switch_with(config())
}

fn limited(limits: Limits) -> Switch<FakeEngine> {
    switch_with(SwitchConfig { limits, ..config() })
}

/// A frame of 64 bytes whose orders are zero but for `orders`.
fn frame(orders: &[(usize, u8)]) -> Vec<u8> {
    let mut frame = vec![0; 64];
    for &(position, value) in orders {
        frame[position] = value;
    }
    frame
}

fn transmitted(switch: &mut Switch<FakeEngine>) -> Vec<Transmit> {
    std::iter::from_fn(|| switch.poll_transmit()).collect()
}

fn assert_balanced(switch: &Switch<FakeEngine>) {
    let counters = switch.counters();
    assert_eq!(
        counters.born(),
        counters.ended() + switch.occupancy().total(),
        "{counters:?} {:?}",
        switch.occupancy()
    );
}

fn generator(port: u16, period_us: u64) -> Generator {
    Generator {
        port,
        period_us,
        batch: 1,
        index_at: None,
        spread: false,
        frame: frame(&[(engine::at::TARGET, 1)]),
    }
}
