//! Workers in memory: packets per second of two beside one, each with a switch of its own
//! on a thread of its own, and registers that they share. All take turns of 20 ms.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks")]

#[path = "workers/applications.rs"]
mod applications;
#[path = "workers/crew.rs"]
mod crew;
#[path = "workers/turns.rs"]
mod turns;

use stateplane_bench::switch::compile;
use stateplane_bench::{Report, frame};
use stateplane_host::switch::{SwitchFile, flow_hash};
use stateplane_ir::Program;
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::{Engine as _, Fellow};
use stateplane_switch::{Switch, SwitchConfig};
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::ExitCode;
use turns::{Work, two_beside_one};

/// Packets of a worker between two looks at the clock, or at what it sent to a store.
const BURST: usize = 64;

const FLOWS: u16 = 256;

/// Program that shares nothing: it gains from a second worker what the machine gives.
const NOTHING_SHARED: &str = "routing, nothing shared";

/// Routes of `bench/p4/forward.p4`.
const ROUTES: &str = r#"
[[entries]]
table = "routes"
keys = ["198.51.100.0/24"]
action = "route"
params = [1]
[[entries]]
table = "next_hops"
keys = [1]
action = "send"
params = [1, "02:00:00:00:a1:01", "02:00:00:00:b2:01"]
"#;

fn main() -> ExitCode {
    let mut report = Report::new("workers", "packets/s");
    two_beside_one(&mut report, "a spin loop", &Spin);
    let routing = Forwarding::load("bench/p4/forward.p4", ROUTES);
    two_beside_one(&mut report, NOTHING_SHARED, &routing);
    for (name, program) in [
        ("a count in a shared register", "docs/examples/cable.p4"),
        ("a count in an atomic block", "bench/p4/atomic.p4"),
        ("counts of flows in an atomic block", "bench/p4/keyed.p4"),
    ] {
        two_beside_one(&mut report, name, &Forwarding::load(program, ""));
    }
    applications::measure(&mut report, (NOTHING_SHARED, &routing));
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A loop in which each number follows from the one before.
struct Spin;

impl Work for Spin {
    type Lane = u64;

    fn lanes(&self, workers: usize, _locks: bool) -> Vec<u64> {
        vec![1; workers]
    }

    fn burst(&self, number: &mut u64) -> u64 {
        for _ in 0..16 * BURST {
            *number = black_box(number.wrapping_mul(6_364_136_223_846_793_005) | 1);
        }
        BURST as u64
    }
}

/// A program with its configuration.
struct Forwarding {
    loaded: Loaded,
    file: SwitchFile,
}

/// A program as code for one worker, and for several.
struct Loaded {
    alone: Compiled,
    locked: Compiled,
}

impl Loaded {
    fn new(program: Program) -> Loaded {
        Loaded {
            alone: Compiled::new(program.clone()).expect("the program loads"),
            locked: Compiled::guarded(program).expect("the program loads"),
        }
    }

    /// Engines of workers that share their registers.
    fn engines(&self, workers: usize, locks: bool) -> Vec<Native> {
        let compiled = if locks { &self.locked } else { &self.alone };
        let first = compiled.engine(Options::default()).expect("an engine");
        first.with_fellows(workers)
    }
}

/// A worker, with the frames of its flows.
struct Lane {
    switch: Switch<Native>,
    frames: Vec<Vec<u8>>,
    /// Packets so far.
    passed: usize,
}

impl Forwarding {
    fn load(program: &str, text: &str) -> Forwarding {
        Forwarding {
            loaded: Loaded::new(compile(program)),
            file: SwitchFile::parse(Path::new("switch.toml"), text).expect("a configuration"),
        }
    }
}

impl Work for Forwarding {
    type Lane = Lane;

    fn lanes(&self, workers: usize, locks: bool) -> Vec<Lane> {
        let engines = self.loaded.engines(workers, locks).into_iter();
        let lanes = engines.map(|engine| {
            let config = SwitchConfig {
                ports: vec![0, 1],
                ..SwitchConfig::default()
            };
            let mut switch = Switch::new(engine, config).expect("a configuration");
            self.file
                .apply(&mut switch, &mut || 1)
                .expect("it fits the program");
            stateplane_setup::hold_terms(switch.engine_mut().state_mut(), 0);
            Lane {
                switch,
                frames: Vec::new(),
                passed: 0,
            }
        });
        let mut lanes: Vec<Lane> = lanes.collect();
        let server = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 7000);
        for flow in 0..FLOWS {
            // Clients choose ports at random (RFC 6056): those of two flows are not neighbours.
            let port = 20_000 + flow * 37;
            let client = SocketAddrV4::new(Ipv4Addr::new(10, 1, 1, 1), port);
            let frame = frame::udp(client, server, 60);
            let at = flow_hash(&frame, 0) as usize % workers;
            lanes[at].frames.push(frame);
        }
        lanes
    }

    fn burst(&self, lane: &mut Lane) -> u64 {
        let first = lane.passed % lane.frames.len();
        lane.switch.begin_burst();
        for frame in lane.frames.iter().cycle().skip(first).take(BURST) {
            lane.passed += 1;
            lane.switch.handle_frame(lane.passed as u64, 0, frame);
            while let Some(sent) = lane.switch.poll_transmit() {
                lane.switch.recycle(sent.frame);
            }
        }
        lane.switch.end_burst();
        BURST as u64
    }
}
