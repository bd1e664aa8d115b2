//! Applications on several workers: with state in the switch alone, and replicated. Each worker has
//! flows of its own, and beside it a store that answers for them at once; all workers share the
//! table of flows.

use crate::processors::on_processors;
use stateplane_apps::app;
use stateplane_apps::measured::{Packet, Place};
use stateplane_bench::chain::{Chain, store_of};
use stateplane_bench::switch::{Bench, replies};
use stateplane_bench::{Report, Sample, frame};
use stateplane_host::switch::flow_hash;
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::{Engine, Fellow};
use std::cell::Cell;
use std::path::Path;

/// Packets of all workers in a go.
const PACKETS: usize = 100_000;

/// The port to the store.
const STORE: u16 = 2;

/// Packets of a worker between two looks at what it sent to the store.
const BURST: usize = 64;

/// Time from one burst to the next, in µs, in which held copies of requests come back.
const PAUSE: u64 = 30_000;

/// An application, loaded.
struct Application {
    name: &'static str,
    compiled: Compiled,
    config: String,
    is_replicated: bool,
}

/// A worker with its flows and their store.
struct Lane {
    switch: Bench<Native>,
    chain: Chain,
    frames: Vec<Vec<u8>>,
    /// Requests that the store has yet to answer.
    requests: Vec<Vec<u8>>,
}

/// Measures all applications.
pub fn measure(report: &mut Report) {
    for name in ["counter", "firewall", "load-balancer", "nat"] {
        for is_replicated in [false, true] {
            let application = Application::load(name, is_replicated);
            let kind = if is_replicated { "replicated" } else { "alone" };
            for (flows, of) in [(256, "256 flows"), (1, "one flow")] {
                let waits = Cell::new(0);
                let run = |workers| application.run(workers, flows, &waits);
                let row = format!("{name}, {kind}, {of}: 2 workers");
                report.compare(&row, || run(2), "1 worker", || run(1));
                println!("{row}: {} lock waits in all rounds", waits.get());
            }
        }
    }
}

impl Application {
    fn load(name: &'static str, is_replicated: bool) -> Application {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let text = |path: &str| {
            let read = std::fs::read_to_string(root.join(path));
            read.unwrap_or_else(|error| panic!("{path}: {error}"))
        };
        let folder = format!("apps/{name}");
        let routes = text("lab/apps/routes.toml");
        let (program, config) = match (name, is_replicated) {
            // Its mappings are the store's, so that without one it is another program.
            ("nat", false) => {
                let mut config = text("lab/nat/switch-unprotected.toml");
                for (variable, value) in [
                    ("other_half", "1"),
                    ("other", "2"),
                    ("first_port", "1024"),
                    ("last_port", "32767"),
                ] {
                    config = config.replace(&format!("${{{variable}}}"), value);
                }
                (format!("{folder}/unprotected.p4"), config)
            }
            (_, false) => {
                let config = text(&format!("{folder}/switch.toml")) + &routes;
                (format!("{folder}/{}.p4", name.replace('-', "_")), config)
            }
            (_, true) => {
                let config = text(&format!("{folder}/switch.toml"))
                    + &routes
                    + &text("lab/apps/replication.toml");
                (format!("{folder}/{}.p4", name.replace('-', "_")), config)
            }
        };
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let mut source = stateplane_compile::file(&root.join(program).to_string_lossy(), read);
        if !is_replicated {
            source = source.define("REPLICATION_OFF", "");
        }
        let program = source.program();
        let program = program.unwrap_or_else(|refused| panic!("{refused}"));
        Application {
            name,
            compiled: Compiled::guarded(program).expect("the program loads"),
            config: config.replace("${id}", "1"),
            is_replicated,
        }
    }

    /// Lets `workers` pass all packets, each those of its flows; adds the locks that they found
    /// taken to `waits`.
    fn run(&self, workers: usize, flows: u64, waits: &Cell<u64>) -> Sample {
        let lanes = self.lanes(workers, flows);
        let at_work = lanes.iter().filter(|it| !it.frames.is_empty()).count();
        let (sample, mut lanes) = on_processors(PACKETS, lanes, |mut lane: Lane| {
            lane.pass(PACKETS / at_work);
            lane
        });
        for lane in &mut lanes {
            waits.set(waits.get() + lane.switch.engine().engine.state().lock_waits());
        }
        sample
    }

    /// Workers whose flows have leases.
    fn lanes(&self, workers: usize, flows: u64) -> Vec<Lane> {
        let first = self.compiled.engine(Options::default()).expect("an engine");
        let engines = first.with_fellows(workers).into_iter();
        let mut lanes: Vec<Lane> = engines
            .map(|engine| Lane {
                switch: Bench::new(engine, &self.config),
                chain: Chain::new(&store_of(self.name), 1),
                frames: Vec::new(),
                requests: Vec::new(),
            })
            .collect();
        let traffic = app(self.name).and_then(|app| app.traffic());
        let traffic = traffic.expect("measuring traffic");
        for flow in 0..flows {
            let datagram = traffic.datagram(&Packet {
                place: Place { flow, packet: 1 },
                number: flow,
                padding: 0,
                updates: 0,
            });
            let (from, to) = (datagram.source, datagram.destination);
            let frame = frame::datagram(from, to, &datagram.payload);
            let lane = flow_hash(&frame, 0) as usize % workers;
            lanes[lane].frames.push(frame);
        }
        for Lane {
            switch,
            chain,
            frames,
            ..
        } in &mut lanes
        {
            if self.is_replicated {
                switch.converse(chain, frames);
            }
        }
        lanes
    }
}

impl Lane {
    /// Takes `count` packets through the switch, with what the store answers.
    fn pass(&mut self, count: usize) {
        let own = std::mem::take(&mut self.frames);
        for (number, frame) in own.iter().cycle().take(count).enumerate() {
            let requests = &mut self.requests;
            self.switch.frame(0, frame, |port, bytes| {
                if port == STORE {
                    requests.push(bytes.to_vec());
                }
            });
            if number % BURST == BURST - 1 {
                self.answer();
            }
        }
        self.answer();
        self.frames = own;
    }

    /// Has the store answer, and lets time pass if it had to.
    fn answer(&mut self) {
        let had_any = !self.requests.is_empty();
        while !self.requests.is_empty() {
            let asked = std::mem::take(&mut self.requests);
            for reply in replies(&mut self.chain, self.switch.now, &asked) {
                let requests = &mut self.requests;
                self.switch.frame(STORE, &reply, |port, bytes| {
                    if port == STORE {
                        requests.push(bytes.to_vec());
                    }
                });
            }
        }
        if had_any {
            let requests = &mut self.requests;
            self.switch.advance(self.switch.now + PAUSE, |port, bytes| {
                if port == STORE {
                    requests.push(bytes.to_vec());
                }
            });
        }
    }
}
