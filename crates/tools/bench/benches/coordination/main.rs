//! Writes and reads of the coordination service: a chain of three switches between interfaces, each
//! a process, beside datagrams of the same bytes that a process in another namespace echoes
//! (`udp-echo`), beside the same datagrams through as many switches whose program only sends them on
//! (`relay`), and beside Redis whose writes wait for both replicas (`redis-wait`) and etcd, at
//! equal concurrency. `sealed` rows are another chain's, whose switches' ports and client seal their
//! messages, beside the one that does not. Behind an answer of the chain stands the memory of its switches;
//! `stateplane_bench::peers` says what stands behind those of others.
//!
//! A write crosses four links, as the relays' datagrams do: their row is what this machine moves
//! through so many sockets, and a write's ratio to it what the protocol costs beyond. `cpu` rows are
//! µs of processor time that client and switches together spend on a request, also for the kernel's
//! work; two processors can do no more than two divided by it.
//!
//! Needs root, `ip` and `ethtool`; says so and writes nothing where they are missing. Rows of a peer
//! that cannot be had are missing, and a message says so. `-- quick` leaves out
//! peers, `-- write`, `leased` and `chain` all other rounds, and `-- memory`
//! all but the passes of the programs without sockets, in ns a write; a number among
//! the arguments is the length of its value.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod client;
mod keys;
mod memory;
mod network;
mod switch;

use keys::Keys;
use network::{Chain, ECHO, Network, Role};
use stateplane_bench::peers::{Asked, Etcd, Redis};
use stateplane_bench::{Report, Sample};
use stateplane_wire::coordination;
use std::cell::RefCell;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::time::Duration;

/// Requests in flight, and virtual groups that they are spread over.
const CONCURRENCY: usize = 256;
const GROUPS: usize = 64;

/// First lane and requests in flight of clients.
const CONCURRENCIES: [(usize, usize); 2] = [(0, CONCURRENCY), (CONCURRENCY, 1)];

/// Bytes of a value.
const VALUE: usize = 64;

/// Lengths that are compared with it.
const LENGTHS: [usize; 3] = [16, 128, coordination::MAX_VALUE];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // This program takes every role, each in a namespace of its own.
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["switch", ..] => switch::run(&arguments[1..]),
        ["relay", number] => switch::relay(number),
        ["client", ..] => client::run(&arguments[1..]),
        ["echo"] => echo(),
        _ => return compare(&arguments),
    }
    ExitCode::SUCCESS
}

/// The role of the echo: runs until its input ends.
fn echo() {
    let port = coordination::PORT;
    let socket = UdpSocket::bind((ECHO, port)).expect("a port");
    println!("ready");
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        loop {
            if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let _ = socket.send_to(&buffer[..length], from);
            }
        }
    });
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

/// A client in its namespace, and what its last round said.
struct Client {
    role: Role,
    /// µs within which half, 99 % and 99.9 % of the answers came.
    latencies: [f64; 3],
}

impl Client {
    /// A client of the chain without seals; of the sealed one, with `keys`.
    fn start(
        network: &Network,
        first_lane: usize,
        concurrency: usize,
        keys: Option<&Keys>,
    ) -> Result<Client, String> {
        let [groups, first_lane, concurrency, value] =
            [GROUPS, first_lane, concurrency, VALUE].map(|number| number.to_string());
        let echo = ECHO.to_string();
        let chain = keys.map_or(Chain::Plain, |_| Chain::Sealed).node();
        let mut arguments = vec![
            "client",
            &echo,
            chain,
            &groups,
            &first_lane,
            &concurrency,
            &value,
        ];
        let keys = keys.map(Keys::client);
        arguments.extend(keys.as_deref());
        let role = network.role("c", &arguments)?;
        Ok(Client {
            role,
            latencies: [0.0; 3],
        })
    }

    fn round(&mut self, asks: &str) -> Sample {
        let answer = self.role.ask(asks);
        let words: Vec<&str> = answer.split_whitespace().collect();
        let [items, ns, p50, p99, p999, _] = words[..] else {
            panic!("the client ended: {answer}");
        };
        let number = |word: &str| word.parse::<f64>().expect("a number");
        self.latencies = [p50, p99, p999].map(number);
        Sample {
            items: number(items) as u64,
            spent: Duration::from_nanos(number(ns) as u64),
        }
    }
}

/// The rounds of ours, what they are called, and what peers are asked beside them.
const ROUNDS: [(&str, &str, Asked); 3] = [
    ("write", "write", Asked::Write),
    ("leased", "leased read", Asked::Read),
    ("chain", "chain read", Asked::Read),
];

fn compare(arguments: &[&str]) -> ExitCode {
    if let Some(reason) = network::missing() {
        println!("coordination: skipped: {reason}");
        return ExitCode::SUCCESS;
    }
    match measure(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("coordination: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// Answers of a round's kind, and the processor time of all who worked for them.
#[derive(Clone, Copy, Default)]
struct Work {
    answers: u64,
    processor_us: f64,
}

impl Work {
    fn each(self) -> f64 {
        self.processor_us / self.answers as f64
    }
}

/// A round of `asks`, whose work and that of `roles` is added to `work`.
fn round(client: &RefCell<Client>, asks: &str, roles: &[Role], work: &mut Work) -> Sample {
    let mut client = client.borrow_mut();
    let spent = |client: &Client| -> f64 {
        let roles = roles.iter().chain([&client.role]);
        roles.map(Role::processor_us).sum()
    };
    let before = spent(&client);
    let sample = client.round(asks);
    work.processor_us += spent(&client) - before;
    work.answers += sample.items;
    sample
}

/// The relays, each in its namespace.
fn relays(network: &Network) -> Result<Vec<Role>, String> {
    (1..=network::SWITCHES)
        .map(|number| network.role(&format!("r{number}"), &["relay", &number.to_string()]))
        .collect()
}

/// The switches of the chain without seals; of the sealed one, with `keys`.
fn switches(network: &Network, keys: Option<&Keys>) -> Result<Vec<Role>, String> {
    let node = keys.map_or(Chain::Plain, |_| Chain::Sealed).node();
    let switch = |number: usize| {
        let text = number.to_string();
        let mut arguments = vec!["switch", node, &text];
        let keys = keys.map(|keys| keys.switch(number));
        arguments.extend(keys.as_deref());
        network.role(&format!("{node}{number}"), &arguments)
    };
    (1..=network::SWITCHES).map(switch).collect()
}

fn measure(arguments: &[&str]) -> Result<(), String> {
    let quick = arguments.contains(&"quick");
    let named = ROUNDS.map(|round| arguments.contains(&round.0));
    let rounds = ROUNDS.into_iter().zip(named);
    let rounds: Vec<_> = rounds
        .filter(|(_, named_itself)| *named_itself || named == [false; ROUNDS.len()])
        .map(|(round, _)| round)
        .collect();
    let mut report = Report::new("coordination", "requests/s");
    let sizes: Vec<usize> = arguments.iter().filter_map(|it| it.parse().ok()).collect();
    let both = [VALUE, coordination::MAX_VALUE];
    for value in if sizes.is_empty() { &both } else { &sizes[..] } {
        memory::run(&mut report, *value);
    }
    if arguments.contains(&"memory") {
        return report.finish().map_err(|error| error.to_string());
    }
    let network = Network::up();
    let echo = [network.role("e", &["echo"])?];
    let plain = switches(&network, None)?;
    let relays = relays(&network)?;
    for (first_lane, concurrency) in CONCURRENCIES {
        let client = RefCell::new(Client::start(&network, first_lane, concurrency, None)?);
        let called = |name: &str| called(name, concurrency);
        for &(asks, name, _) in &rounds {
            for (against, by, others) in [
                ("udp-echo", "echo", &echo[..]),
                ("relay", "relay", &relays[..]),
            ] {
                let (mut ours, mut theirs) = (Work::default(), Work::default());
                report.compare(
                    &called(name),
                    || round(&client, asks, &plain, &mut ours),
                    against,
                    || round(&client, by, others, &mut theirs),
                );
                let name = format!("{}, cpu", called(name));
                report.measure(&name, "µs", ours.each(), against, theirs.each());
            }
        }
        if concurrency > 1 && rounds.iter().any(|(asks, ..)| *asks == "write") {
            for length in LENGTHS {
                let asks = |length: usize| format!("write {length}");
                report.compare(
                    &called(&format!("write of {length} B")),
                    || client.borrow_mut().round(&asks(length)),
                    &format!("of {VALUE} B"),
                    || client.borrow_mut().round(&asks(VALUE)),
                );
            }
        }
        if quick {
            continue;
        }
        match Redis::start(concurrency, VALUE) {
            Ok(redis) => beside(&mut report, &rounds, &client, &called, "redis-wait", redis),
            Err(reason) => println!("coordination: without Redis: {reason}"),
        }
        for (name, sync) in [("etcd", true), ("etcd, no fsync", false)] {
            match Etcd::start(concurrency, sync, VALUE) {
                Ok(etcd) => beside(&mut report, &rounds, &client, &called, name, etcd),
                Err(reason) => println!("coordination: without {name}: {reason}"),
            }
        }
    }
    sealed(&mut report, &network, &rounds, &plain)?;
    report.finish().map_err(|error| error.to_string())
}

/// Name of a row of so many requests in flight.
fn called(name: &str, concurrency: usize) -> String {
    match concurrency {
        1 => format!("{name}, one client"),
        _ => format!("{name}, {concurrency} workers"),
    }
}

/// Measures a chain with seals beside `plain`, which has none. Its switches are started for it: their
/// leases would take processor time from all that is measured before.
fn sealed(
    report: &mut Report,
    network: &Network,
    rounds: &[(&str, &str, Asked)],
    plain: &[Role],
) -> Result<(), String> {
    let keys = Keys::make().map_err(|error| error.to_string())?;
    let switches = switches(network, Some(&keys))?;
    for (first_lane, concurrency) in CONCURRENCIES {
        let start = |lanes: usize, keys: Option<&Keys>| {
            Client::start(network, lanes, concurrency, keys).map(RefCell::new)
        };
        // The plain chain knows the lanes of its clients before.
        let first = CONCURRENCY + 1 + first_lane;
        let (ours, theirs) = (start(first_lane, Some(&keys))?, start(first, None)?);
        for (asks, name, _) in rounds {
            let name = called(&format!("{name}, sealed"), concurrency);
            let (mut sealed, mut open) = (Work::default(), Work::default());
            report.compare(
                &name,
                || round(&ours, asks, &switches, &mut sealed),
                "not sealed",
                || round(&theirs, asks, plain, &mut open),
            );
            let name = format!("{name}, cpu");
            report.measure(&name, "µs", sealed.each(), "not sealed", open.each());
        }
    }
    Ok(())
}

/// A service of others.
trait Peer {
    fn round(&mut self, asked: Asked) -> Sample;

    /// µs within which half of the answers of the last round came.
    fn median(&mut self) -> f64;
}

impl Peer for Redis {
    fn round(&mut self, asked: Asked) -> Sample {
        Redis::round(self, asked)
    }

    fn median(&mut self) -> f64 {
        self.latencies().within(0.5)
    }
}

impl Peer for Etcd {
    fn round(&mut self, asked: Asked) -> Sample {
        Etcd::round(self, asked)
    }

    fn median(&mut self) -> f64 {
        self.latencies().within(0.5)
    }
}

/// Measures each of our rounds in turn with the peer's, and the medians of the last ones.
fn beside(
    report: &mut Report,
    rounds: &[(&str, &str, Asked)],
    client: &RefCell<Client>,
    called: &impl Fn(&str) -> String,
    against: &str,
    peer: impl Peer,
) {
    let peer = RefCell::new(peer);
    for &(asks, name, asked) in rounds {
        let ours = || client.borrow_mut().round(asks);
        let theirs = || peer.borrow_mut().round(asked);
        report.compare(&called(name), ours, against, theirs);
        let name = format!("{}, p50", called(name));
        let ours = client.borrow().latencies[0];
        report.measure(&name, "µs", ours, against, peer.borrow_mut().median());
    }
}
