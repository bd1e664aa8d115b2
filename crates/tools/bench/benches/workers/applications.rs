//! Applications on several workers: with state in the switch alone, and replicated. Each worker has
//! flows of its own, and beside it a store that answers for them at once; all workers share the
//! table of flows.

use crate::turns::{Work, beside_other, two_beside_one};
use crate::{BURST, Forwarding, Loaded};
use stateplane_apps::app;
use stateplane_apps::measured::{Packet, Place};
use stateplane_bench::chain::{Chain, store_of};
use stateplane_bench::switch::{Bench, replies};
use stateplane_bench::{Report, frame};
use stateplane_host::switch::flow_hash;
use stateplane_native::Native;
use stateplane_runtime::Engine;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The port to the store.
const STORE: u16 = 2;

/// Time from one burst to the next, in µs, in which held copies of requests come back.
const PAUSE: u64 = 30_000;

/// An application, loaded.
struct Application {
    name: &'static str,
    loaded: Loaded,
    config: String,
    is_replicated: bool,
}

/// A worker with its flows and their store.
struct Lane {
    switch: Bench<Native>,
    chain: Chain,
    frames: Vec<Vec<u8>>,
    /// Number of the frame that is next.
    next: usize,
    /// Requests that the store has yet to answer.
    requests: Vec<Vec<u8>>,
    /// Time of all workers, in µs: they share registers with times in them.
    clock: Arc<AtomicU64>,
}

/// Flows of an application.
struct Flows<'a> {
    application: &'a Application,
    number: u64,
}

/// Measures all applications, their many flows beside a program that shares nothing.
pub fn measure(report: &mut Report, nothing_shared: (&str, &Forwarding)) {
    for name in ["counter", "firewall", "load-balancer", "nat"] {
        for is_replicated in [false, true] {
            let application = &Application::load(name, is_replicated);
            let kind = if is_replicated { "replicated" } else { "alone" };
            let flows = |number| Flows {
                application,
                number,
            };
            let row = format!("{name}, {kind}, 256 flows");
            let lanes = beside_other(report, &row, &flows(256), nothing_shared);
            let waits = lanes.into_iter().map(Lane::lock_waits).sum::<u64>();
            println!("workers: {row}: {waits} lock waits");
            let row = format!("{name}, {kind}, one flow");
            two_beside_one(report, &row, &flows(1));
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
            loaded: Loaded::new(program),
            config: config.replace("${id}", "1"),
            is_replicated,
        }
    }
}

impl Work for Flows<'_> {
    type Lane = Lane;

    /// Workers whose flows have leases.
    fn lanes(&self, workers: usize, locks: bool) -> Vec<Lane> {
        let application = self.application;
        let engines = application.loaded.engines(workers, locks).into_iter();
        let clock = Arc::new(AtomicU64::new(0));
        let mut lanes: Vec<Lane> = engines
            .map(|engine| Lane {
                switch: Bench::new(engine, &application.config),
                chain: Chain::new(&store_of(application.name), 1),
                frames: Vec::new(),
                requests: Vec::new(),
                next: 0,
                clock: clock.clone(),
            })
            .collect();
        let traffic = app(application.name).and_then(|app| app.traffic());
        let traffic = traffic.expect("measuring traffic");
        for flow in 0..self.number {
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
            if application.is_replicated {
                switch.converse(chain, frames);
            }
        }
        lanes.retain(|lane| !lane.frames.is_empty());
        lanes
    }

    fn burst(&self, lane: &mut Lane) -> u64 {
        lane.switch.begin_burst();
        lane.pass();
        lane.switch.end_burst();
        BURST as u64
    }
}

impl Lane {
    /// Takes a burst of packets through the switch, with what the store answers.
    fn pass(&mut self) {
        let now = self.clock.load(Ordering::Relaxed);
        if now > self.switch.now {
            self.advance(now);
        }
        for _ in 0..BURST {
            let requests = &mut self.requests;
            self.switch
                .frame(0, &self.frames[self.next], |port, bytes| {
                    if port == STORE {
                        requests.push(bytes.to_vec());
                    }
                });
            self.next += 1;
            if self.next == self.frames.len() {
                self.next = 0;
            }
        }
        self.answer();
    }

    /// Locks that its packets found taken.
    fn lock_waits(mut self) -> u64 {
        self.switch.engine().engine.state().lock_waits()
    }

    /// Has the store answer, and lets time pass if it had to.
    fn answer(&mut self) {
        let had_any = !self.requests.is_empty();
        while !self.requests.is_empty() {
            let asked = std::mem::take(&mut self.requests);
            // The store is another machine.
            self.switch.end_burst();
            let replies = replies(&mut self.chain, self.switch.now, &asked);
            self.switch.begin_burst();
            for reply in replies {
                let requests = &mut self.requests;
                self.switch.frame(STORE, &reply, |port, bytes| {
                    if port == STORE {
                        requests.push(bytes.to_vec());
                    }
                });
            }
        }
        if had_any {
            let now = self.switch.now + PAUSE;
            self.clock.fetch_max(now, Ordering::Relaxed);
            self.advance(now);
        }
    }

    /// Lets time pass to `now`.
    fn advance(&mut self, now: u64) {
        let requests = &mut self.requests;
        self.switch.advance(now, |port, bytes| {
            if port == STORE {
                requests.push(bytes.to_vec());
            }
        });
    }
}
