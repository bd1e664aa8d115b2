//! Programs in memory: what a write in view of the control plane costs, and the throughput of
//! switches whose carriers an engine follows.

use super::link::{unwrap, wrap};
use super::programs::{engine, plain_switch, switch};
use super::rounds::medians;
use stateplane_bench::engine::Alone;
use stateplane_bench::limit::{InView, Job, Sketch};
use stateplane_bench::view::{SOURCES, Sources, in_view};
use stateplane_bench::{Report, frame, switch::compile};
use stateplane_native::{Compiled, Native};
use stateplane_switch::Switch;
use stateplane_sync::{Engine, Settings};
use stateplane_sync_setup::CONTROL_PORT;
use stateplane_synchronise::Plan;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Frames of a turn, and turns of each side.
const FRAMES: usize = 16_384;
const TURNS: usize = 41;

/// Frames that a switch takes at once.
const BURST: usize = 32;

/// Most that a burst counts: what takes longer was not the switch's work.
const LONGEST: Duration = Duration::from_micros(200);

/// Time between two turns of a carrier.
const TURN: Duration = Duration::from_micros(50);

/// Time for the views of a program to be complete.
const PATIENCE: Duration = Duration::from_secs(20);

/// Goal for a write, in ns.
const GOAL_NS: f64 = 10.0;

/// Programs, with names and synchronised writes that a packet makes, where all make as many.
const PROGRAMS: [(&str, &str, Option<f64>); 3] = [
    ("packet counter", "bench/p4/packet_counter.p4", Some(2.0)),
    ("heavy hitters", "bench/p4/sketch.p4", Some(3.0)),
    ("firewall", "bench/p4/firewall.p4", None),
];

/// The program that is written by hand, too: its writes tell what the rules of sync cost this machine.
const BY_HAND: &str = "heavy hitters";

/// Frames for a program, each with its port.
fn frames(name: &str) -> Vec<(u16, Vec<u8>)> {
    let mut sources = Sources::new(SOURCES);
    if name != "firewall" {
        return sources
            .frames(FRAMES)
            .into_iter()
            .map(|it| (0, it))
            .collect();
    }
    // Connections of the inside: one packet of eight opens one, half are answers.
    let outside = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 443);
    (0..FRAMES)
        .map(|at| {
            let inside = Ipv4Addr::from_bits(0x0a00_0000 | sources.draw());
            let inside = SocketAddrV4::new(inside, 20_000);
            if at % 2 == 1 {
                return (1, frame::tcp(outside, inside, 60));
            }
            let mut frame = frame::tcp(inside, outside, 60);
            if at % 8 == 0 {
                frame[TCP_FLAGS] = SYN;
            }
            (0, frame)
        })
        .collect()
}

const TCP_FLAGS: usize = 47;
const SYN: u8 = 2;

fn pass<J: Job>(job: &mut J, frames: &[(u16, Vec<u8>)], out: &mut Vec<u8>) -> Duration {
    let start = Instant::now();
    for (port, frame) in frames {
        std::hint::black_box(job.frame(*port, frame, out));
    }
    start.elapsed()
}

/// A switch whose time is what it spends on frames, and the engines of its groups, which spend
/// none.
struct Followed {
    switch: Switch<Native>,
    engines: Vec<Engine>,
    spent: Duration,
}

/// Addresses of the engines, by group.
const ENGINES: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 255, 0, 2), 40_000);

impl Followed {
    fn new(switch: Switch<Native>, plan: Option<&Plan>) -> Followed {
        let groups = plan.map_or(&[][..], |plan| &plan.groups);
        let engines = groups.iter().map(|group| {
            let settings = Settings {
                group: group.group,
                locations: group.locations,
                batch: plan.map_or(1, |plan| plan.batch),
                poll_us: 1_000,
                retry_us: 5_000,
                term: 1,
                nonce: 7,
            };
            Engine::new(settings, 0, []).expect("settings")
        });
        Followed {
            engines: engines.collect(),
            switch,
            spent: Duration::from_secs(1),
        }
    }

    fn now(&self) -> u64 {
        self.spent.as_micros() as u64
    }

    /// Lets time pass without frames until the views are complete; false if they are not in
    /// [`PATIENCE`], because others have the processors.
    fn complete(&mut self) -> bool {
        let told = |engine: &Engine, now| engine.told(now).is_some();
        let start = Instant::now();
        while !self.engines.iter().all(|engine| told(engine, self.now())) {
            if start.elapsed() > PATIENCE {
                return false;
            }
            self.burst(&[]);
            self.spent += TURN;
        }
        true
    }

    /// Lets frames pass: the switch's time.
    fn pass(&mut self, frames: &[(u16, Vec<u8>)]) -> Duration {
        let before = self.spent;
        for burst in frames.chunks(BURST) {
            self.burst(burst);
        }
        self.spent - before
    }

    /// Takes frames at once, does what is due, and lets the engines follow.
    fn burst(&mut self, burst: &[(u16, Vec<u8>)]) {
        let mut said = Vec::new();
        let now = self.now();
        let start = Instant::now();
        for (port, frame) in burst {
            self.switch.handle_frame(now, *port, frame);
            while let Some(sent) = self.switch.poll_transmit() {
                self.switch.recycle(sent.frame);
            }
        }
        self.switch.handle_timeout(now);
        while let Some(sent) = self.switch.poll_transmit() {
            match sent.port {
                CONTROL_PORT => said.push(sent.frame),
                _ => self.switch.recycle(sent.frame),
            }
        }
        self.spent += start.elapsed().min(LONGEST);
        self.follow(&said);
    }

    fn follow(&mut self, said: &[Vec<u8>]) {
        let now = self.now();
        for frame in said {
            let Some((to, payload)) = unwrap(frame) else {
                continue;
            };
            let group = usize::from(to.port() - ENGINES.port());
            self.engines[group].handle_datagram(now, payload);
        }
        let mut asked = Vec::new();
        for (engine, at) in self.engines.iter_mut().zip(0..) {
            engine.handle_timeout(now);
            engine.proceed(now);
            let from = SocketAddrV4::new(*ENGINES.ip(), ENGINES.port() + at);
            while let Some(payload) = engine.poll_transmit() {
                asked.push(wrap(from, &payload));
            }
            while engine.poll_event().is_some() {}
        }
        let start = Instant::now();
        for frame in &asked {
            self.switch.handle_frame(now, CONTROL_PORT, frame);
        }
        let mut answers = Vec::new();
        while let Some(sent) = self.switch.poll_transmit() {
            answers.push(sent.frame);
        }
        self.spent += start.elapsed().min(LONGEST);
        for frame in answers {
            if let Some((to, payload)) = unwrap(&frame) {
                let group = usize::from(to.port() - ENGINES.port());
                self.engines[group].handle_datagram(now, payload);
            }
            self.switch.recycle(frame);
        }
    }
}

/// The time in ns that two jobs take for a frame, in turns.
fn frame_ns<A: Job, B: Job>(plain: &mut A, seen: &mut B, frames: &[(u16, Vec<u8>)]) -> [f64; 2] {
    let (mut out, mut other_out) = (Vec::new(), Vec::new());
    let medians = medians(
        TURNS,
        [
            ("plain", &mut || pass(plain, frames, &mut out)),
            ("seen", &mut || pass(seen, frames, &mut other_out)),
        ],
    );
    medians.map(|ns| ns / FRAMES as f64)
}

/// Measures all programs.
pub fn run(report: &mut Report) {
    for (name, path, writes) in PROGRAMS {
        let frames = frames(name);
        let view = in_view(path, &[]);
        let plain = Compiled::new(compile(path)).expect("the program loads");
        let seen = super::programs::compiled(&view.text);
        let alone = |compiled: &Compiled| Alone {
            engine: engine(compiled),
            now: 1_000_000,
        };
        let (mut plain_job, mut seen_job) = (alone(&plain), alone(&seen));
        let [plain_ns, seen_ns] = frame_ns(&mut plain_job, &mut seen_job, &frames);
        if let Some(writes) = writes {
            let each = (seen_ns - plain_ns) / writes;
            let title = format!("{name}, a write in view");
            report.measure(&title, "ns", each, "goal", GOAL_NS);
            if name == BY_HAND {
                let (mut plain, mut seen) = (<Sketch>::default(), Sketch::<InView>::default());
                let [plain_ns, seen_ns] = frame_ns(&mut plain, &mut seen, &frames);
                let hand = (seen_ns - plain_ns) / writes;
                let title = format!("{name}, a write in view of what is written by hand");
                report.measure(&title, "ns", hand, "P4", each);
            }
        }
        let rate = |ns: f64| 1e9 / ns;
        let title = format!("{name} in view, packets");
        report.add(&title, rate(seen_ns), "plain", rate(plain_ns));
        let mut plain = Followed::new(plain_switch(engine(&plain)), None);
        let mut seen = Followed::new(switch(engine(&seen)), Some(&view.plan));
        if !seen.complete() {
            println!("sync: {name}: no complete views in {PATIENCE:?}: its row is left out");
            continue;
        }
        let [plain_ns, seen_ns] = medians(
            TURNS,
            [
                ("plain", &mut || plain.pass(&frames)),
                ("seen", &mut || seen.pass(&frames)),
            ],
        )
        .map(|ns| ns / FRAMES as f64);
        let title = format!("{name} in view, whole switch, packets");
        report.add(&title, rate(seen_ns), "plain", rate(plain_ns));
    }
}
