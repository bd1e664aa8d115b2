use super::*;
use crate::chain::SHARDS;
use crate::device::Identity;
use crate::frame::host_frame;
use crate::options::ProgramKind;
use crate::p4::P4Switch;
use crate::program::program;
use stateplane_apps::{AppId, Hosts, INSIDE_PORT, OUTSIDE_PORT, Random, Room};
use stateplane_history::replication::Direction;
use stateplane_store::{ClassConfig, FirstLease, IdleTimeouts};

const CONNECTIONS: usize = 40;

fn app(name: &str) -> AppId {
    stateplane_apps::app(name).expect("an application of that name")
}

/// A packet each ms.
fn evenly(number: u64) -> u64 {
    number * 1000
}

/// A packet each ms, and the last 500 ten times as fast.
fn with_burst(number: u64) -> u64 {
    let slow = number.min(3500);
    slow * 1000 + (number - slow) * 100
}

/// Frames of an application's hosts in 4000 packets, of one connection after the other;
/// `at`: when each comes, in µs.
fn capture(app: &mut dyn Hosts, at: fn(u64) -> u64) -> Vec<Arrival> {
    let mut random = Random::new(7);
    (0..4000)
        .map(|number| {
            let asked = app.send(number as usize % CONNECTIONS, number, &mut random);
            Arrival {
                at: at(number),
                port: match asked.direction {
                    Direction::Outbound => INSIDE_PORT,
                    Direction::Inbound => OUTSIDE_PORT,
                },
                frame: host_frame(1, &asked.tag, &asked.datagram),
            }
        })
        .collect()
}

fn switch_of(kind: ProgramKind, buckets: u32) -> Result<Switch<Interp>, SimError> {
    let program = program(kind, buckets, None).map_err(SimError::Compile)?;
    let program = program.unwrap_or_else(|| panic!("{kind} has no program"));
    let engine = Interp::new(program, stateplane_interp::Options::default())?;
    let identity = Identity {
        switch: 1,
        incarnation: 1,
    };
    Ok(P4Switch::new(engine, kind, identity, false)?.into_switch())
}

fn store_for(room: &Room) -> Config {
    let class = room.class();
    Config::new(1, 0)
        .with_shards(SHARDS)
        .with_class(ClassConfig {
            class: class.id,
            state_length: class.state_length,
            first_lease: FirstLease::Zero,
            shared_only: false,
            idle: IdleTimeouts::never(),
            quota: None,
        })
}

fn close(a: f64, b: f64) -> bool {
    a <= b * 1.25 && b <= a * 1.25
}

/// Plans for four switches from a capture, and measures them on it.
fn compare(app: AppId, at: fn(u64) -> u64) -> (Plan, Measured) {
    let kind = ProgramKind::App(app);
    let arrivals = capture(app.hosts().as_mut(), at);
    let store = store_for(app.room());
    let make = || switch_of(kind, 256);
    let small = || switch_of(kind, 1);
    let demand = demand(&make, &small, &store, &arrivals).expect("a demand");
    let setting = Setting {
        switches: 4,
        round_trip_s: 0.0002,
        detection_s: 0.3,
        replicas: 3,
        heads: 1,
    };
    let plan = plan(&demand, &setting);
    let measured = replay(&make, &store, &arrivals, 4, 200).expect("a run");
    let requests = (plan.requests_per_s, measured.requests_per_s());
    assert!(
        close(requests.0, requests.1),
        "{kind}: {requests:?}, {:?}, {measured:?}",
        demand.traffic
    );
    let bytes = (plan.bytes_per_s, measured.bytes_per_s());
    assert!(
        close(bytes.0, bytes.1),
        "{kind}: {bytes:?}, {:?}, {measured:?}",
        demand.traffic
    );
    assert_eq!(demand.flows, measured.records, "{kind}");
    (plan, measured)
}

#[test]
fn a_program_that_writes_with_each_packet_needs_what_is_planned() {
    let (plan, measured) = compare(app("counter"), evenly);
    assert!(measured.writes >= 3900, "{measured:?}");
    assert!((0.4..0.5).contains(&plan.stall_dead_s) && plan.stall_alive_s < 0.001);
    assert!(
        plan.peak_requests_per_s < plan.requests_per_s * 1.05,
        "{plan:?}"
    );
}

#[test]
fn writes_that_come_in_a_burst_need_what_is_planned() {
    let (plan, measured) = compare(app("counter"), with_burst);
    let writes_per_s = measured.writes as f64 / measured.seconds;
    let peak = measured.requests_per_s() + (measured.write_peak() - 1.0) * writes_per_s;
    assert!(close(plan.peak_requests_per_s, peak), "{plan:?}, {peak}");
    // 550 of 4000 writes in 0.1 of 3.55 s; probes stay as they are.
    let times = plan.peak_requests_per_s / plan.requests_per_s;
    assert!((4.0..5.0).contains(&times), "{plan:?}");
    let times = plan.peak_bytes_per_s / plan.bytes_per_s;
    assert!((4.0..5.0).contains(&times), "{plan:?}");
}

/// A key's requests come from several hosts, and so by several switches.
#[test]
fn leases_that_move_between_switches_are_planned_for() {
    let app = app("key-value");
    let (plan, measured) = compare(app, evenly);
    assert!(measured.leases > 500, "{measured:?}");
    assert!(plan.of_switch.leases_per_s > 30.0, "{plan:?}");
}

#[test]
fn programs_that_mostly_read_need_what_is_planned() {
    for application in ["firewall", "load-balancer"].map(app) {
        compare(application, evenly);
    }
}

#[test]
fn captures_of_which_nothing_can_be_said_are_refused() {
    let app = app("counter");
    let kind = ProgramKind::App(app);
    let make = || switch_of(kind, 1);
    let store = store_for(app.room());
    let arp = |at| Arrival {
        at,
        port: INSIDE_PORT,
        frame: [[0xff; 12].as_slice(), &[8, 6], &[0; 46]].concat(),
    };
    for arrivals in [vec![], vec![arp(0)], vec![arp(0), arp(1000)]] {
        let refused = demand(&make, &make, &store, &arrivals);
        assert!(matches!(refused, Err(SimError::Capacity(_))), "{refused:?}");
    }
}
