//! Workers in memory: packets per second of one and of two, each with a switch of its own
//! on a thread of its own, and registers that they share.

#[path = "workers/applications.rs"]
mod applications;
#[path = "workers/processors.rs"]
mod processors;

use processors::on_processors;
use stateplane_bench::switch::compile;
use stateplane_bench::{Report, Sample, frame};
use stateplane_host::switch::{SwitchFile, flow_hash};
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::{Engine as _, Fellow};
use stateplane_switch::{Switch, SwitchConfig};
use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::ExitCode;

/// Packets of all workers in a go: enough for a tenth of a second.
const PACKETS: usize = 4_000_000;

const FLOWS: u16 = 256;

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

/// A program with its configuration.
struct Job {
    compiled: Compiled,
    file: SwitchFile,
}

fn main() -> ExitCode {
    let mut report = Report::new("workers", "packets/s");
    let spins = |workers: usize| {
        let share = 16 * PACKETS / workers;
        on_processors(PACKETS, vec![share; workers], spin).0
    };
    report.compare(
        "a spin loop: 2 workers",
        || spins(2),
        "1 worker",
        || spins(1),
    );
    for (name, program, text) in [
        ("routing, nothing shared", "bench/p4/forward.p4", ROUTES),
        ("a count in a shared register", "docs/examples/cable.p4", ""),
        ("a count in an atomic block", "bench/p4/atomic.p4", ""),
        (
            "counts of flows in an atomic block",
            "bench/p4/keyed.p4",
            "",
        ),
    ] {
        let compiled = Compiled::guarded(compile(program)).expect("the program loads");
        let file = SwitchFile::parse(Path::new("switch.toml"), text).expect("a configuration");
        let job = Job { compiled, file };
        let name = format!("{name}: 2 workers");
        report.compare(&name, || job.run(2), "1 worker", || job.run(1));
    }
    applications::measure(&mut report);
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workers: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Job {
    /// Lets `workers` pass all packets, each as many, of its own flows.
    fn run(&self, workers: usize) -> Sample {
        let mut lanes: Vec<(Switch<Native>, Vec<Vec<u8>>)> = self
            .switches(workers)
            .into_iter()
            .map(|switch| (switch, Vec::new()))
            .collect();
        let server = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 7000);
        for flow in 0..FLOWS {
            // Clients choose ports at random (RFC 6056): those of two flows are not neighbours.
            let port = 20_000 + flow * 37;
            let client = SocketAddrV4::new(Ipv4Addr::new(10, 1, 1, 1), port);
            let frame = frame::udp(client, server, 60);
            let at = flow_hash(&frame, 0) as usize % workers;
            lanes[at].1.push(frame);
        }
        let work = |(switch, frames)| pass(switch, frames, PACKETS / workers);
        on_processors(PACKETS, lanes, work).0
    }

    fn switches(&self, workers: usize) -> Vec<Switch<Native>> {
        let options = Options::default();
        let first = self.compiled.engine(options).expect("the program loads");
        let engines = first.with_fellows(workers).into_iter();
        let switches = engines.map(|engine| {
            let config = SwitchConfig {
                ports: vec![0, 1],
                ..SwitchConfig::default()
            };
            let mut switch = Switch::new(engine, config).expect("a configuration");
            self.file
                .apply(&mut switch, &mut || 1)
                .expect("it fits the program");
            stateplane_setup::hold_terms(switch.engine_mut().state_mut(), 0);
            switch
        });
        switches.collect()
    }
}

/// Takes `count` numbers of a sequence in which each follows from the one before.
fn spin(count: usize) -> u64 {
    (0..count as u64).fold(1, |number, _| {
        black_box(number.wrapping_mul(6_364_136_223_846_793_005) | 1)
    })
}

/// Takes `count` of `frames` through a switch, and gives both back.
fn pass(
    mut switch: Switch<Native>,
    frames: Vec<Vec<u8>>,
    count: usize,
) -> (Switch<Native>, Vec<Vec<u8>>) {
    for (now, frame) in frames.iter().cycle().take(count).enumerate() {
        switch.handle_frame(now as u64, 0, frame);
        while let Some(sent) = switch.poll_transmit() {
            switch.recycle(sent.frame);
        }
    }
    (switch, frames)
}
