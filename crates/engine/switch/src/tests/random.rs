//! Random programs in random frames at random times.

use super::engine::FakeEngine;
use super::{assert_balanced, config, generator, transmitted};
use crate::{Limits, Switch, SwitchConfig, Transmit};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Frame {
        port: u16,
        frame: Vec<u8>,
        wait: u64,
    },
    Timeout {
        wait: u64,
    },
    Transmit {
        count: usize,
    },
    Link {
        port: u16,
        up: bool,
    },
}

fn orders() -> impl Strategy<Value = Vec<u8>> {
    let order = prop_oneof![4 => 0_u8..6, 1 => any::<u8>()];
    (prop::collection::vec(order, 9), 0_usize..100).prop_map(|(orders, padding)| {
        let mut frame = orders;
        frame.resize(9 + padding, 0);
        frame
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0_u16..6, orders(), 0_u64..200)
            .prop_map(|(port, frame, wait)| Op::Frame { port, frame, wait }),
        2 => (0_u64..500).prop_map(|wait| Op::Timeout { wait }),
        2 => (0_usize..20).prop_map(|count| Op::Transmit { count }),
        1 => (0_u16..6, any::<bool>()).prop_map(|(port, up)| Op::Link { port, up }),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (0_u32..8, 0_u32..8, 0_u32..8, 0_u32..4, 0_u32..4, 0_u32..50).prop_map(
        |(queue, transmit, held, recirculation, resubmission, work)| Limits {
            queue,
            transmit,
            held,
            recirculation,
            resubmission,
            work,
            ..Limits::default()
        },
    )
}

/// All that can be seen of a run.
#[derive(Debug, PartialEq)]
struct Trace {
    sent: Vec<Transmit>,
    timeouts: Vec<Option<u64>>,
    counters: crate::Counters,
    events: Vec<super::engine::Event>,
}

fn run(limits: Limits, ops: &[Op], at_once: bool) -> Trace {
    let config = SwitchConfig {
        limits,
        generators: vec![generator(0, 300)],
        ..config()
    };
    let mut engine = FakeEngine::new(super::watches::state());
    engine.at_once = at_once;
    let mut switch = Switch::new(engine, config).unwrap();
    let (mut now, mut sent, mut timeouts) = (0, vec![], vec![]);
    for op in ops {
        let before = switch.engine().events.len();
        match op {
            Op::Frame { port, frame, wait } => {
                now += wait;
                switch.handle_frame(now, *port, frame);
            }
            Op::Timeout { wait } => {
                now += wait;
                switch.handle_timeout(now);
            }
            Op::Transmit { count } => {
                for _ in 0..*count {
                    sent.extend(switch.poll_transmit());
                }
            }
            Op::Link { port, up } => {
                assert_eq!(switch.set_link_up(*port, *up).is_ok(), *port < 4);
            }
        }
        // Ingress may parse a clone on top of the last unit of work, and a frame
        // passes ingress before the work of the call is counted.
        let work = switch.engine().events.len() - before;
        assert!(
            work <= limits.work.max(1) as usize + 3,
            "{work} passes in one call"
        );
        timeouts.push(switch.poll_timeout());
        assert_balanced(&switch);
        let occupancy = switch.occupancy();
        assert!(occupancy.held <= u64::from(limits.held));
        assert!(occupancy.recirculating <= u64::from(limits.recirculation));
        assert!(occupancy.resubmitting <= u64::from(limits.resubmission));
        assert!(occupancy.transmit <= 4 * u64::from(limits.transmit));
    }
    sent.extend(transmitted(&mut switch));
    Trace {
        sent,
        timeouts,
        counters: switch.counters().clone(),
        events: switch.engine().events.clone(),
    }
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for_and_runs_repeat(
        limits in limits(),
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let trace = run(limits, &ops, false);
        prop_assert_eq!(&trace, &run(limits, &ops, false));
        prop_assert_eq!(trace, run(limits, &ops, true), "egress at once");
    }
}
