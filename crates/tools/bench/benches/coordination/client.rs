//! A client of a chain, or of an echo, that keeps a number of requests in flight: a lane and a key
//! for each, one datagram a request.

use super::network::{CLIENT, Chain, RELAY, SWITCHES};
use stateplane_bench::loopback::ROUND;
use stateplane_bench::peers::Latencies;
use stateplane_host::clock::boot_time_us;
use stateplane_host::datagram::Endpoint;
use stateplane_host::sealing::{Guard, open_datagram};
use stateplane_wire::coordination::{
    self, Kind, MessageType, Operand, Operation, Outcome, Packet, Repr, flag,
};
use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Silence after which requests in flight are sent again.
const SILENCE: Duration = Duration::from_millis(2);

/// Silence after which the client takes those who answer for dead, and ends.
const DEATH: Duration = Duration::from_secs(5);

/// Epoch of every group's chain.
const EPOCH: u32 = 1;
const GENERATION: u16 = 1;

/// A request in flight, or none.
struct Worker {
    request: u32,
    key: coordination::Key,
    group: u16,
    sent: Instant,
    bytes: Arc<Vec<u8>>,
    to: SocketAddrV4,
    waits: bool,
}

/// Kind of the client's requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Write,
    /// The tail alone answers, under its lease.
    LeasedRead,
    /// All members pass the read on.
    ChainRead,
    /// The datagrams of writes to an echo.
    Echo,
    /// The same through as many switches as a write passes, whose program only forwards.
    Relay,
}

impl Asks {
    fn named(name: &str) -> Asks {
        match name {
            "write" => Asks::Write,
            "leased" => Asks::LeasedRead,
            "chain" => Asks::ChainRead,
            "echo" => Asks::Echo,
            "relay" => Asks::Relay,
            _ => panic!("no such round: {name}"),
        }
    }
}

struct Client {
    endpoint: Endpoint,
    /// Seals what leaves and opens what comes, if the chain's messages are sealed.
    guard: Option<Guard>,
    chain: Chain,
    echo: SocketAddrV4,
    workers: Vec<Worker>,
    /// Lane of the first worker: a lane's requests never begin anew.
    first_lane: usize,
    groups: u16,
    value: Vec<u8>,
    started: Instant,
    resent: u64,
}

/// The role of the client: the echo's address, the chain's letter, groups, first lane, requests in
/// flight, bytes of a value and, if messages are sealed, a file of keys. Each line of its input names a round, perhaps with other bytes of a value,
/// and it answers with items, ns, three latencies in µs
/// and the number of requests sent again so far.
pub fn run(arguments: &[&str]) {
    let (arguments, keys) = arguments.split_at(arguments.len().min(6));
    let [echo, chain, groups, first_lane, concurrency, value] = arguments[..] else {
        panic!("client takes an address, a chain, four numbers and perhaps a file of keys");
    };
    let echo: Ipv4Addr = echo.parse().expect("an address");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let mut client = Client::new(
        SocketAddrV4::new(echo, coordination::PORT),
        Chain::of_node(chain),
        number(groups) as u16,
        number(concurrency),
        number(value),
    );
    client.first_lane = number(first_lane);
    client.guard = keys
        .first()
        .map(|keys| Guard::read(Path::new(keys)).expect("a file of keys"));
    client.configure();
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("input is text");
        let (name, value) = line.split_once(' ').unwrap_or((&line, value));
        client.value = vec![0x5a; number(value)];
        let (items, spent, mut latencies) = client.round(Asks::named(name));
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| latencies.within(share));
        let ns = spent.as_nanos();
        println!("{items} {ns} {p50} {p99} {p999} {}", client.resent);
    }
}

impl Client {
    fn new(
        echo: SocketAddrV4,
        chain: Chain,
        groups: u16,
        concurrency: usize,
        value: usize,
    ) -> Client {
        let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, chain.client_port());
        let endpoint = Endpoint::open(address).expect("a socket");
        let worker = |at: usize| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&(at as u64 + 1).to_be_bytes());
            Worker {
                request: 0,
                key: coordination::Key(key),
                group: (at % usize::from(groups)) as u16,
                sent: Instant::now(),
                bytes: Arc::default(),
                to: echo,
                waits: false,
            }
        };
        Client {
            endpoint,
            guard: None,
            chain,
            echo,
            workers: (0..concurrency).map(worker).collect(),
            first_lane: 0,
            groups,
            value: vec![0x5a; value],
            started: Instant::now(),
            resent: 0,
        }
    }

    fn base(&self, message_type: MessageType, group: u16) -> Repr<'static> {
        let mut repr = Repr {
            group,
            generation: GENERATION,
            epoch: EPOCH,
            hops: SWITCHES as u8,
            ..Repr::new(message_type)
        };
        repr.set_chain((1..=SWITCHES).map(|number| self.chain.switch(number)));
        repr.set_client(SocketAddrV4::new(CLIENT, self.chain.client_port()));
        repr
    }

    /// Founds all groups, as a controller does.
    fn configure(&mut self) {
        for number in 1..=SWITCHES {
            let to = SocketAddrV4::new(self.chain.switch(number), coordination::PORT);
            let ping = self.base(MessageType::Ping, 0);
            let incarnation = self.insist(&ping, to, |packet| {
                packet.message_type() == MessageType::Pong
            });
            for group in 0..self.groups {
                let configure = Repr {
                    flags: flag::FOUNDS,
                    handle: incarnation,
                    operand: Operand([0x3c; 16]),
                    ..self.base(MessageType::Configure, group)
                };
                self.insist(&configure, to, |packet| {
                    packet.message_type() == MessageType::Configured
                        && packet.group() == group
                        && packet.epoch() == EPOCH
                });
            }
        }
    }

    /// Sends until an answer comes, at most 10 s, and gives its `handle`.
    fn insist(
        &mut self,
        message: &Repr<'_>,
        to: SocketAddrV4,
        answered: impl Fn(&Packet<'_>) -> bool,
    ) -> u32 {
        let start = Instant::now();
        let bytes = Arc::new(message.to_vec().expect("a message has bytes"));
        loop {
            assert!(start.elapsed() < DEATH, "{to} is silent");
            self.push(to, bytes.clone());
            self.endpoint.flush();
            let until = boot_time_us() + 50_000;
            while boot_time_us() < until {
                self.endpoint.wait_until(until).expect("a socket");
                self.endpoint.take().expect("a socket");
                let now = boot_time_us();
                for (from, bytes) in self.endpoint.taken() {
                    let guard = self.guard.as_mut();
                    let opened = open_datagram(guard, now, self.endpoint.socket(), from, bytes);
                    if let Some(received) = opened
                        && let Ok(packet) = Packet::new_checked(received.message)
                        && answered(&packet)
                    {
                        return packet.handle();
                    }
                }
            }
        }
    }

    /// Sends the next request of a worker.
    fn begin(&mut self, at: usize, asks: Asks) {
        let worker = &self.workers[at];
        let (operation, flags, to) = match asks {
            Asks::Write => (Operation::Write, 0, self.chain.switch(1)),
            Asks::LeasedRead => (Operation::Read, flag::LEASED, self.chain.switch(SWITCHES)),
            Asks::ChainRead => (Operation::Read, 0, self.chain.switch(1)),
            Asks::Echo => (Operation::Write, 0, *self.echo.ip()),
            Asks::Relay => (Operation::Write, 0, RELAY),
        };
        let value: &[u8] = if operation == Operation::Write {
            &self.value
        } else {
            &[]
        };
        let request = Repr {
            operation: operation as u8,
            flags,
            kind: Kind::Value as u8,
            lane: (self.first_lane + at) as u16,
            // Reads do not use the lane.
            request: worker.request + 1,
            key: worker.key,
            send_time: self.started.elapsed().as_micros() as u64,
            value,
            ..self.base(MessageType::Request, worker.group)
        };
        let bytes = request.to_vec().expect("a request has bytes");
        let worker = &mut self.workers[at];
        worker.bytes = Arc::new(bytes);
        worker.to = SocketAddrV4::new(to, coordination::PORT);
        worker.request += 1;
        worker.waits = true;
        worker.sent = Instant::now();
        self.send(at);
    }

    /// Lets a worker's request leave with the next burst. A full queue drops it, as a wire does; it
    /// is sent again.
    fn send(&mut self, at: usize) {
        let worker = &self.workers[at];
        self.push(worker.to, worker.bytes.clone());
    }

    fn push(&mut self, to: SocketAddrV4, message: Arc<Vec<u8>>) {
        let trailer = self.guard.as_mut().map(|guard| {
            let trailer = guard.seal(*to.ip(), &message);
            trailer.expect("the file of keys names the switches")
        });
        self.endpoint.push_sealed(to, message, trailer);
    }

    /// Asks for half a second, and waits for the last answers.
    ///
    /// # Panics
    ///
    /// If no answer comes for [`DEATH`].
    fn round(&mut self, asks: Asks) -> (u64, Duration, Latencies) {
        let start = Instant::now();
        let mut latencies = Latencies::default();
        let mut answers = 0;
        for at in 0..self.workers.len() {
            self.begin(at, asks);
        }
        let mut under_way = self.workers.len();
        // Who waits for one answer alone looks for it without sleeping; with more in flight, a
        // client that never sleeps takes the processor from the switches.
        let sleeps = under_way > 1;
        let mut answered = Vec::new();
        let (mut heard, mut looked) = (start, start);
        while under_way > 0 {
            self.endpoint.flush();
            let silence = SILENCE.as_micros() as u64;
            let due = if sleeps { boot_time_us() + silence } else { 0 };
            self.endpoint.wait_until(due).expect("a socket");
            self.endpoint.take().expect("a socket");
            self.judge(asks, &mut answered);
            let now = Instant::now();
            if answered.is_empty() {
                assert!(now - heard < DEATH, "no answers");
                if now - looked > SILENCE {
                    looked = now;
                    self.resend();
                }
                continue;
            }
            (heard, looked) = (now, now);
            for at in answered.drain(..) {
                latencies.add(now - self.workers[at].sent);
                answers += 1;
                if start.elapsed() < ROUND {
                    self.begin(at, asks);
                } else {
                    under_way -= 1;
                }
            }
        }
        (answers, start.elapsed(), latencies)
    }

    /// Puts the workers whose answers were taken last into `answered`.
    fn judge(&mut self, asks: Asks, answered: &mut Vec<usize>) {
        let now = boot_time_us();
        for (from, bytes) in self.endpoint.taken() {
            let guard = self.guard.as_mut();
            let opened = open_datagram(guard, now, self.endpoint.socket(), from, bytes);
            let Some(Ok(packet)) = opened.map(|it| Packet::new_checked(it.message)) else {
                continue;
            };
            let lane = usize::from(packet.lane());
            let Some(at) = lane.checked_sub(self.first_lane) else {
                continue;
            };
            if let Some(worker) = self.workers.get_mut(at)
                && worker.waits
                && packet.request() == worker.request
                && is_answer(&packet, asks)
            {
                worker.waits = false;
                answered.push(at);
            }
        }
    }

    /// Sends again what waits for longer than [`SILENCE`].
    fn resend(&mut self) {
        for at in 0..self.workers.len() {
            let worker = &self.workers[at];
            if worker.waits && worker.sent.elapsed() > SILENCE {
                self.resent += 1;
                self.send(at);
            }
        }
    }
}

/// True if a message of the right request is its answer, and not a refusal that is not final.
fn is_answer(packet: &Packet<'_>, asks: Asks) -> bool {
    if matches!(asks, Asks::Echo | Asks::Relay) {
        return packet.message_type() == MessageType::Request;
    }
    let outcome = Outcome::from_u8(packet.outcome());
    packet.message_type() == MessageType::Reply && outcome == Some(Outcome::Done)
}
