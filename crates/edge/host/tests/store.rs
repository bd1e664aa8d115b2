//! Three store servers on the loopback interface, asked by a switch of the test.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use stateplane_host::clock::boot_time_us;
use stateplane_host::deployment::Deployment;
use stateplane_host::store::{StoreError, StoreReport, StoreServer};
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};
use stateplane_wire::term::{Heartbeat, Message};

type Running = JoinHandle<Result<StoreReport, StoreError>>;

/// A chain of servers at `127.0.<net>.1` onwards. Each test has a `net` of its own.
struct Chain {
    servers: Vec<Option<(Running, Arc<AtomicBool>)>>,
    net: u8,
    request_port: u16,
}

impl Chain {
    fn start(net: u8) -> Chain {
        Chain::start_with(net, "")
    }

    /// With `more` at the end of the configuration.
    fn start_with(net: u8, more: &str) -> Chain {
        let free = || UdpSocket::bind((Ipv4Addr::new(127, 0, net, 1), 0)).unwrap();
        let (one, two) = (free(), free());
        let port = |socket: UdpSocket| socket.local_addr().unwrap().port();
        let (request_port, chain_port) = (port(one), port(two));
        let servers = (1..=3).map(|host| {
            let text = format!(
                r#"
                listen = "127.0.{net}.{host}"
                [replication]
                request_port = {request_port}
                chain_port = {chain_port}
                chain = ["127.0.{net}.1", "127.0.{net}.2", "127.0.{net}.3"]
                term_ms = 100
                [[replication.class]]
                id = 1
                state_length = 6
                first_lease = "nat-outbound"
                inbound_class = 2
                shared_only = true
                [[replication.class]]
                id = 2
                state_length = 6
                first_lease = "none"
                shared_only = true
                [[replication.class]]
                id = 3
                state_length = 4
                first_lease = "zero"
                [replication.nat]
                addresses = ["203.0.113.1"]
                {more}
                "#
            );
            let file = Deployment::parse("test.toml".as_ref(), &text).unwrap();
            let server = StoreServer::bind(&file, None).unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&stop);
            Some((
                std::thread::spawn(move || server.run(&seen, &mut |_| {})),
                stop,
            ))
        });
        Chain {
            servers: servers.collect(),
            net,
            request_port,
        }
    }

    fn address(&self, position: u8) -> SocketAddrV4 {
        SocketAddrV4::new(
            Ipv4Addr::new(127, 0, self.net, position + 1),
            self.request_port,
        )
    }

    fn stop(&mut self, position: usize) -> StoreReport {
        let (server, stop) = self.servers[position].take().unwrap();
        stop.store(true, Ordering::Relaxed);
        server.join().unwrap().unwrap()
    }
}

struct Switch {
    socket: UdpSocket,
    number: u32,
}

impl Switch {
    fn new(net: u8, number: u8) -> Switch {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, net, 100 + number), 0)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        Switch {
            socket,
            number: number.into(),
        }
    }

    fn request<'a>(&self, message_type: MessageType, key: Key) -> Repr<'a> {
        Repr {
            chain_epoch: 1,
            switch_id: self.number,
            incarnation: 1,
            claim: 1,
            request: 1,
            send_time: boot_time_us(),
            ..Repr::new(message_type, key)
        }
    }

    /// Sends a heartbeat, and hears the promise.
    fn beat(&self, to: SocketAddrV4) {
        let beat = Heartbeat {
            switch_id: self.number,
            incarnation: 1,
            number: 1,
            send_time: boot_time_us(),
            stream: 0,
            version: 0,
        };
        self.socket.send_to(&beat.to_vec().unwrap(), to).unwrap();
        let (from, bytes) = self.receive();
        assert_eq!(from, to);
        let Ok(Message::Reply(promise)) = Message::parse(&bytes) else {
            panic!("a reply to the heartbeat");
        };
        assert_eq!(promise.promise, 100_000);
    }

    fn send(&self, to: SocketAddrV4, request: &Repr<'_>) {
        self.socket.send_to(&request.to_vec().unwrap(), to).unwrap();
    }

    fn receive(&self) -> (SocketAddrV4, Vec<u8>) {
        let mut buffer = [0; 2048];
        let (length, from) = self.socket.recv_from(&mut buffer).unwrap();
        let std::net::SocketAddr::V4(from) = from else {
            panic!("replies come over IPv4");
        };
        (from, buffer[..length].to_vec())
    }
}

fn counter(number: u8) -> Key {
    let mut key = [0; 16];
    (key[0], key[15]) = (3, number);
    Key(key)
}

#[test]
fn grants_and_writes_pass_the_chain_and_the_tail_answers() {
    let mut chain = Chain::start(61);
    let switch = Switch::new(61, 1);
    let lease = Repr {
        packet: Some(b"first packet"),
        ..switch.request(MessageType::LeaseRequest, counter(1))
    };
    switch.send(chain.address(0), &lease);
    let (from, bytes) = switch.receive();
    assert_eq!(from, chain.address(2));
    let reply = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(reply.message_type, MessageType::LeaseReply);
    assert_eq!(reply.packet, Some(&b"first packet"[..]));
    assert_eq!(reply.state, [0; 4]);

    let write = Repr {
        lease_epoch: reply.lease_epoch,
        sequence: reply.sequence + 1,
        state: &[0, 0, 0, 9],
        ..switch.request(MessageType::WriteRequest, counter(1))
    };
    switch.send(chain.address(0), &write);
    let (from, bytes) = switch.receive();
    assert_eq!(from, chain.address(2));
    let written = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(written.message_type, MessageType::WriteReply);
    assert_eq!(written.sequence, write.sequence);

    for position in 0..3 {
        let report = chain.stop(position);
        assert_eq!(report.replica.applied, 2, "replica {position}");
        assert_eq!(report.replica.replies, if position == 2 { 2 } else { 0 });
    }
}

#[test]
fn another_switch_gets_the_state_when_the_lease_is_over() {
    let mut chain = Chain::start(62);
    let (one, two) = (Switch::new(62, 1), Switch::new(62, 2));
    let lease = one.request(MessageType::LeaseRequest, counter(1));
    one.send(chain.address(0), &lease);
    let (_, bytes) = one.receive();
    let first = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    let write = Repr {
        lease_epoch: first.lease_epoch,
        sequence: first.sequence + 1,
        state: b"kept",
        ..one.request(MessageType::WriteRequest, counter(1))
    };
    one.send(chain.address(0), &write);
    one.receive();

    one.beat(chain.address(0));

    let asked = boot_time_us();
    let lease = two.request(MessageType::LeaseRequest, counter(1));
    two.send(chain.address(0), &lease);
    let (_, bytes) = two.receive();
    let waited = boot_time_us() - asked;
    let second = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(second.state, b"kept");
    assert_eq!(second.sequence, write.sequence);
    assert!(second.lease_epoch > first.lease_epoch);
    assert!(waited > 50_000, "waited {waited} µs for the promise to end");

    one.send(chain.address(0), &write);
    let bytes = loop {
        let (_, bytes) = one.receive();
        let reply = Packet::new_checked(&bytes).unwrap();
        if reply.message_type() != MessageType::Recall {
            break bytes;
        }
        assert_eq!(reply.lease_epoch(), first.lease_epoch);
    };
    let fenced = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(fenced.message_type, MessageType::Refusal);
    assert_eq!(fenced.code, RefusalCode::Fenced as u8);
    assert_eq!(fenced.lease_epoch, second.lease_epoch);
    assert_eq!(fenced.sequence, first.lease_epoch);
    chain.stop(0);
}

#[test]
fn a_lease_that_is_recalled_and_given_up_moves_at_once() {
    let chain = Chain::start(67);
    let (one, two) = (Switch::new(67, 1), Switch::new(67, 2));
    let lease = one.request(MessageType::LeaseRequest, counter(1));
    one.send(chain.address(0), &lease);
    let (_, bytes) = one.receive();
    let first = Repr::parse(&Packet::new_checked(&bytes).unwrap());

    one.beat(chain.address(0));
    let lease = two.request(MessageType::LeaseRequest, counter(1));
    two.send(chain.address(0), &lease);
    let (from, bytes) = one.receive();
    assert_eq!(from, chain.address(0));
    let recall = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(recall.message_type, MessageType::Recall);
    assert_eq!(recall.lease_epoch, first.lease_epoch);
    let release = Repr {
        message_type: MessageType::ReleaseRequest,
        ..recall
    };
    one.send(chain.address(0), &release);

    let (_, bytes) = two.receive();
    let second = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(second.message_type, MessageType::LeaseReply);
    assert_eq!(second.lease_epoch, first.lease_epoch + 1);
}

#[test]
fn a_server_that_is_not_the_head_refuses() {
    let chain = Chain::start(63);
    let switch = Switch::new(63, 1);
    let lease = switch.request(MessageType::LeaseRequest, counter(1));
    switch.send(chain.address(1), &lease);
    let (from, bytes) = switch.receive();
    assert_eq!(from, chain.address(1));
    let reply = Repr::parse(&Packet::new_checked(&bytes).unwrap());
    assert_eq!(reply.code, RefusalCode::WrongServer as u8);
}

#[test]
fn garbage_is_counted_and_strangers_are_not_heard() {
    let mut chain = Chain::start(64);
    let switch = Switch::new(64, 1);
    let head = chain.address(0);
    for length in [0, 20, 71] {
        switch.socket.send_to(&vec![1; length], head).unwrap();
    }
    let mut wrong = switch
        .request(MessageType::LeaseReply, counter(1))
        .to_vec()
        .unwrap();
    switch.socket.send_to(&wrong, head).unwrap();
    wrong[0] = 9;
    switch.socket.send_to(&wrong, head).unwrap();
    switch.send(
        head,
        &switch.request(MessageType::ProbeRequest, Key::default()),
    );
    let (_, bytes) = switch.receive();
    let reply = Packet::new_checked(&bytes).unwrap();
    assert_eq!(reply.message_type(), MessageType::ProbeReply);
    let report = chain.stop(0).replica;
    assert_eq!(report.malformed, 3);
    assert_eq!(report.foreign_type, 1);
    assert_eq!(report.wrong_version, 1);
    assert_eq!(report.probed, 1);
}

#[test]
fn nothing_is_answered_while_a_replica_is_gone() {
    let mut chain = Chain::start(65);
    let switch = Switch::new(65, 1);
    chain.stop(1);
    let lease = switch.request(MessageType::LeaseRequest, counter(1));
    switch.send(chain.address(0), &lease);
    // A chain that starts empty grants nothing for the time of a backing, 400 ms.
    switch
        .socket
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    assert!(switch.socket.recv_from(&mut [0; 2048]).is_err());
    let report = chain.stop(0).replica;
    assert_eq!(report.granted, 1);
    assert!(report.chain_resent >= 2, "{report:?}");
}

#[test]
fn many_mappings_are_made_without_loss_of_one() {
    let mut chain = Chain::start(66);
    let switch = Switch::new(66, 1);
    let mut ports = std::collections::BTreeSet::new();
    let count = 2_000u16;
    for batch in 0..count / 50 {
        for number in batch * 50..(batch + 1) * 50 {
            let mut key = [0; 16];
            key[..6].copy_from_slice(&[1, 6, 10, 0, 0, 1]);
            key[6..8].copy_from_slice(&number.to_be_bytes());
            let lease = Repr {
                shared: true,
                packet: Some(&[0; 1400]),
                ..switch.request(MessageType::LeaseRequest, Key(key))
            };
            switch.send(chain.address(0), &lease);
        }
        for _ in 0..50 {
            let (_, bytes) = switch.receive();
            let reply = Packet::new_checked(&bytes).unwrap();
            assert_eq!(reply.message_type(), MessageType::LeaseReply);
            assert!(ports.insert(reply.state().to_vec()), "handed out twice");
        }
    }
    assert_eq!(ports.len(), usize::from(count));
    let reports = [0, 1, 2].map(|position| chain.stop(position).replica);
    for report in reports {
        assert_eq!(report.records_made, 2 * u64::from(count));
    }
}

/// Asks for flows of a service until `done` says so of the answers, the newest last: the
/// port of the server that the flow was given to, or `None` if it was refused.
fn until_given(chain: &Chain, switch: &Switch, done: impl Fn(&[Option<u16>]) -> bool) {
    let mut answers = Vec::new();
    let begin = Instant::now();
    while !done(&answers) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{answers:?}");
        let mut key = [0; 16];
        (key[0], key[1]) = (4, 6);
        key[2..6].copy_from_slice(
            &switch
                .socket
                .local_addr()
                .unwrap()
                .port()
                .to_be_bytes()
                .repeat(2),
        );
        key[6..10].copy_from_slice(&[198, 51, 100, 1]);
        key[10..12].copy_from_slice(&(answers.len() as u16).to_be_bytes());
        key[12..14].copy_from_slice(&80_u16.to_be_bytes());
        switch.send(
            chain.address(0),
            &switch.request(MessageType::LeaseRequest, Key(key)),
        );
        let (_, bytes) = switch.receive();
        let reply = Packet::new_checked(&bytes[..]).unwrap();
        answers.push(match reply.message_type() {
            MessageType::LeaseReply => {
                let state = reply.state();
                assert_eq!(state[..4], [127, 0, 0, 1]);
                Some(u16::from_be_bytes([state[4], state[5]]))
            }
            _ => {
                assert_eq!(reply.code(), RefusalCode::PoolExhausted as u8);
                None
            }
        });
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn only_healthy_servers_of_a_service_are_given_flows() {
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, two) = (listen(), listen());
    let port = |server: &TcpListener| server.local_addr().unwrap().port();
    let (first, second) = (port(&one), port(&two));
    let services = format!(
        r#"
        [[replication.class]]
        id = 4
        state_length = 6
        first_lease = "server"
        [[replication.service]]
        address = "198.51.100.1"
        port = 80
        servers = [
            {{ address = "127.0.0.1", port = {first} }},
            {{ address = "127.0.0.1", port = {second}, weight = 3 }},
        ]
        health = {{ interval_ms = 5, timeout_ms = 2000, fall = 2, rise = 2 }}
        "#
    );
    let mut chain = Chain::start_with(68, &services);
    let switch = Switch::new(68, 1);
    until_given(&chain, &switch, |given| {
        given.contains(&Some(first)) && given.contains(&Some(second))
    });
    drop(two);
    // A share of three quarters, and none of eight.
    until_given(&chain, &switch, |given| {
        given.len() > 8
            && given
                .iter()
                .rev()
                .take(8)
                .all(|given| *given == Some(first))
    });
    drop(one);
    until_given(&chain, &switch, |given| given.last() == Some(&None));
    let _one = TcpListener::bind(("127.0.0.1", first)).unwrap();
    until_given(&chain, &switch, |given| given.last() == Some(&Some(first)));
    for position in 0..3 {
        chain.stop(position);
    }
}
