//! Replicated applications on several workers that all get packets of every flow, beside one store
//! whose answers come to any worker: each packet leaves once, and no number of a flow is given twice.

#![allow(clippy::disallowed_methods, reason = "the test has threads")]

use stateplane_apps::app;
use stateplane_apps::measured::{Packet, Place};
use stateplane_bench::chain::{Chain, store_of};
use stateplane_bench::frame;
use stateplane_bench::switch::{Bench, compile, replies};
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::Fellow;
use std::collections::BTreeMap;

const WORKERS: u64 = 3;
const FLOWS: u64 = 40;
/// Packets of each flow by each worker in a round.
const PACKETS: u64 = 3;
const ROUNDS: u64 = 12;

/// The port to the store.
const STORE: u16 = 2;

/// From one round to the next, in µs: held copies of requests come back meanwhile.
const PAUSE: u64 = 30_000;

/// What a worker sends: to the store, and to hosts.
#[derive(Default)]
struct Sent {
    requests: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
}

fn switches(name: &str) -> Vec<Bench<Native>> {
    let config = [
        std::fs::read_to_string(root(&format!("apps/{name}/switch.toml"))),
        std::fs::read_to_string(root("lab/apps/routes.toml")),
        std::fs::read_to_string(root("lab/apps/replication.toml")),
    ];
    let config = config.map(|text| text.expect("a file of the repository"));
    let config = config.concat().replace("${id}", "1");
    let program = compile(&format!("apps/{name}/{}.p4", name.replace('-', "_")));
    let compiled = Compiled::guarded(program).expect("the program loads");
    let first = compiled.engine(Options::default()).expect("an engine");
    let engines = first.with_fellows(WORKERS as usize).into_iter();
    engines.map(|engine| Bench::new(engine, &config)).collect()
}

fn root(path: &str) -> String {
    format!("{}/../../../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Lets all workers do something at once; the last argument takes what they send.
fn at_once(
    switches: &mut [Bench<Native>],
    sent: &mut [Sent],
    work: impl Fn(usize, &mut Bench<Native>, &mut dyn FnMut(u16, &[u8])) + Sync,
) {
    std::thread::scope(|scope| {
        for (at, (switch, sent)) in switches.iter_mut().zip(sent).enumerate() {
            let work = &work;
            scope.spawn(move || {
                work(at, switch, &mut |port, bytes| match port {
                    STORE => sent.requests.push(bytes.to_vec()),
                    _ => sent.packets.push(bytes.to_vec()),
                });
            });
        }
    });
}

/// Has the store answer all requests, each answer to some worker.
fn answer(switches: &mut [Bench<Native>], sent: &mut [Sent], chain: &mut Chain) {
    for round in 0.. {
        let requests = sent.iter_mut().flat_map(|it| it.requests.drain(..));
        let requests: Vec<Vec<u8>> = requests.collect();
        if requests.is_empty() {
            return;
        }
        let answers = replies(chain, switches[0].now, &requests);
        at_once(switches, sent, |worker, switch, put| {
            let own = answers.iter().skip((worker + round) % WORKERS as usize);
            for bytes in own.step_by(WORKERS as usize) {
                switch.frame(STORE, bytes, &mut *put);
            }
        });
    }
}

/// Takes packets of all flows through all workers; gives what leaves to hosts.
fn run(name: &str) -> Vec<Vec<u8>> {
    let mut switches = switches(name);
    let mut chain = Chain::new(&store_of(name), 3);
    let traffic = app(name).and_then(|app| app.traffic());
    let traffic = traffic.expect("measuring traffic");
    let frames: Vec<Vec<u8>> = (0..FLOWS * PACKETS)
        .map(|number| {
            let datagram = traffic.datagram(&Packet {
                place: Place {
                    flow: number % FLOWS,
                    packet: 1,
                },
                number,
                padding: 0,
                updates: 0,
            });
            frame::datagram(datagram.source, datagram.destination, &datagram.payload)
        })
        .collect();
    let mut sent: Vec<Sent> = (0..WORKERS).map(|_| Sent::default()).collect();
    for _ in 0..ROUNDS {
        // Time passes, in which held copies come back and the switch probes its store.
        at_once(&mut switches, &mut sent, |_, switch, put| {
            switch.advance(switch.now + PAUSE, put);
        });
        answer(&mut switches, &mut sent, &mut chain);
        at_once(&mut switches, &mut sent, |_, switch, put| {
            for bytes in &frames {
                switch.frame(0, bytes, &mut *put);
            }
        });
        answer(&mut switches, &mut sent, &mut chain);
    }
    sent.into_iter().flat_map(|it| it.packets).collect()
}

#[test]
fn every_packet_leaves_once() {
    for name in ["firewall", "load-balancer", "nat"] {
        let left = run(name).len() as u64;
        assert_eq!(left, WORKERS * FLOWS * PACKETS * ROUNDS, "{name}");
    }
}

#[test]
fn no_number_of_a_flow_is_given_twice() {
    let mut numbers: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
    for frame in run("counter") {
        let number = frame[42..50].try_into().expect("eight bytes");
        let flow = frame[26..38].to_vec();
        numbers
            .entry(flow)
            .or_default()
            .push(u64::from_be_bytes(number));
    }
    assert_eq!(numbers.len() as u64, FLOWS);
    let all: Vec<u64> = (1..=WORKERS * PACKETS * ROUNDS).collect();
    for (flow, mut given) in numbers {
        given.sort_unstable();
        assert_eq!(given, all, "{flow:?}");
    }
}
