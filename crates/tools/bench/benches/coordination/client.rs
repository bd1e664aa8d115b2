//! A client of a chain, or of an echo, that keeps a number of requests in flight: a lane and a key
//! for each, one datagram a request.

use super::network::{CLIENT, SWITCHES, switch};
use stateplane_bench::loopback::ROUND;
use stateplane_bench::peers::Latencies;
use stateplane_wire::coordination::{
    self, Kind, MessageType, Operand, Operation, Outcome, Packet, Repr, flag,
};
use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

/// Silence after which requests in flight are sent again.
const SILENCE: Duration = Duration::from_millis(2);

/// Epoch of every group's chain.
const EPOCH: u32 = 1;
const GENERATION: u16 = 1;

/// A request in flight, or none.
struct Worker {
    request: u32,
    key: coordination::Key,
    group: u16,
    sent: Instant,
    bytes: Vec<u8>,
    to: SocketAddrV4,
    waits: bool,
}

/// What the client's requests are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Write,
    /// The tail alone answers, under its lease.
    LeasedRead,
    /// All members pass the read on.
    ChainRead,
    /// The same datagrams to an echo.
    Echo,
}

impl Asks {
    fn named(name: &str) -> Asks {
        match name {
            "write" => Asks::Write,
            "leased" => Asks::LeasedRead,
            "chain" => Asks::ChainRead,
            "echo" => Asks::Echo,
            _ => panic!("no such round: {name}"),
        }
    }
}

struct Client {
    socket: UdpSocket,
    echo: SocketAddrV4,
    workers: Vec<Worker>,
    /// Lane of the first worker: a lane's requests never begin anew.
    first_lane: usize,
    groups: u16,
    value: Vec<u8>,
    started: Instant,
    resent: u64,
}

/// The role of the client: the echo's address, groups, first lane, requests in flight, bytes of a
/// value. Each line of its input names a round, and it answers with items, ns, three latencies in µs
/// and the number of requests sent again so far.
pub fn run(arguments: &[&str]) {
    let [echo, groups, first_lane, concurrency, value] = arguments[..] else {
        panic!("client takes an address, groups, first lane, concurrency and bytes of a value");
    };
    let echo: Ipv4Addr = echo.parse().expect("an address");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let mut client = Client::new(
        SocketAddrV4::new(echo, coordination::PORT),
        number(groups) as u16,
        number(concurrency),
        number(value),
    );
    client.first_lane = number(first_lane);
    client.configure();
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("input is text");
        let (items, spent, mut latencies) = client.round(Asks::named(&line));
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|share| latencies.within(share));
        let ns = spent.as_nanos();
        println!("{items} {ns} {p50} {p99} {p999} {}", client.resent);
    }
}

impl Client {
    fn new(echo: SocketAddrV4, groups: u16, concurrency: usize, value: usize) -> Client {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        let worker = |at: usize| {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&(at as u64 + 1).to_be_bytes());
            Worker {
                request: 0,
                key: coordination::Key(key),
                group: (at % usize::from(groups)) as u16,
                sent: Instant::now(),
                bytes: Vec::new(),
                to: echo,
                waits: false,
            }
        };
        Client {
            socket,
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
        repr.set_chain((1..=SWITCHES).map(switch));
        let port = self.socket.local_addr().expect("an address").port();
        repr.set_client(SocketAddrV4::new(CLIENT, port));
        repr
    }

    /// Founds all groups, as a controller does.
    fn configure(&mut self) {
        for number in 1..=SWITCHES {
            let to = SocketAddrV4::new(switch(number), coordination::PORT);
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
        &self,
        message: &Repr<'_>,
        to: SocketAddrV4,
        answered: impl Fn(&Packet<'_>) -> bool,
    ) -> u32 {
        let start = Instant::now();
        let bytes = message.to_vec().expect("a message has bytes");
        let mut buffer = [0; 2048];
        loop {
            assert!(start.elapsed() < Duration::from_secs(10), "{to} is silent");
            self.socket.send_to(&bytes, to).expect("a datagram leaves");
            let sent = Instant::now();
            while sent.elapsed() < Duration::from_millis(50) {
                let Ok(length) = self.socket.recv(&mut buffer) else {
                    continue;
                };
                if let Ok(packet) = Packet::new_checked(&buffer[..length])
                    && answered(&packet)
                {
                    return packet.handle();
                }
            }
        }
    }

    /// Sends the next request of a worker.
    fn begin(&mut self, at: usize, asks: Asks) {
        let worker = &self.workers[at];
        let (operation, flags, to) = match asks {
            Asks::Write => (Operation::Write, 0, switch(1)),
            Asks::LeasedRead => (Operation::Read, flag::LEASED, switch(SWITCHES)),
            Asks::ChainRead => (Operation::Read, 0, switch(1)),
            Asks::Echo => (Operation::Write, 0, *self.echo.ip()),
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
        let length = request.buffer_len();
        let worker = &mut self.workers[at];
        worker.bytes.resize(length, 0);
        request
            .emit(&mut worker.bytes)
            .expect("a request has bytes");
        worker.to = SocketAddrV4::new(to, coordination::PORT);
        worker.request += 1;
        worker.waits = true;
        worker.sent = Instant::now();
        self.send(at);
    }

    fn send(&self, at: usize) {
        let worker = &self.workers[at];
        // A full queue drops it, as a wire does; it is sent again.
        let _ = self.socket.send_to(&worker.bytes, worker.to);
    }

    /// Asks for half a second, and waits for the last answers.
    fn round(&mut self, asks: Asks) -> (u64, Duration, Latencies) {
        let start = Instant::now();
        let mut latencies = Latencies::default();
        let mut answers = 0;
        for at in 0..self.workers.len() {
            self.begin(at, asks);
        }
        let mut under_way = self.workers.len();
        let mut buffer = [0; 2048];
        let mut heard = Instant::now();
        while under_way > 0 {
            let Ok(length) = self.socket.recv(&mut buffer) else {
                if heard.elapsed() > SILENCE {
                    heard = Instant::now();
                    self.resend();
                }
                continue;
            };
            let Ok(packet) = Packet::new_checked(&buffer[..length]) else {
                continue;
            };
            let lane = usize::from(packet.lane());
            let Some(at) = lane.checked_sub(self.first_lane) else {
                continue;
            };
            let Some(worker) = self.workers.get_mut(at) else {
                continue;
            };
            if !worker.waits || packet.request() != worker.request || !is_answer(&packet, asks) {
                continue;
            }
            heard = Instant::now();
            worker.waits = false;
            latencies.add(worker.sent.elapsed());
            answers += 1;
            if start.elapsed() < ROUND {
                self.begin(at, asks);
            } else {
                under_way -= 1;
            }
        }
        (answers, start.elapsed(), latencies)
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
    if asks == Asks::Echo {
        return packet.message_type() == MessageType::Request;
    }
    let outcome = Outcome::from_u8(packet.outcome());
    packet.message_type() == MessageType::Reply && outcome == Some(Outcome::Done)
}
