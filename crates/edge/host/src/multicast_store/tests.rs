use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use stateplane_multicast::FinalTime;
use stateplane_multicast_store::{Message, Replica, ReplicaConfig, StoreConfig};

use super::exchange::Running;
use super::{LEAST, LENGTH, STORE_PORT, padded, unpadded};
use crate::sealing::Guard;
use crate::sealing::frames::guard;

/// Time for what takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Loopback addresses that no other test has, by their last byte.
fn address(last: u8) -> SocketAddrV4 {
    let pid = std::process::id().to_be_bytes();
    SocketAddrV4::new(
        Ipv4Addr::new(127, 60 + pid[2] % 40, pid[3], last),
        STORE_PORT,
    )
}

fn store() -> StoreConfig {
    StoreConfig::new(0, 2)
}

/// The exchange of a replica of shard 0 with another.
fn exchange(own: SocketAddrV4, other: SocketAddrV4, guard: Option<Guard>) -> Running {
    Running::open(own, guard, vec![(0, other)], Box::new(|_, _| ())).unwrap()
}

/// A replica that executed everything up to a timestamp gives its state.
fn found(running: &Running, time: u64) {
    let mut replica = Replica::new(ReplicaConfig::new(store()));
    replica.handle_passed(time);
    running.exchange.state().replica = Some(replica);
}

#[test]
fn a_state_passes_sealed_to_the_peer_alone() {
    let [own, other, stranger] = [1, 2, 3].map(address);
    let gives = exchange(own, other, Some(guard(1, 2, *other.ip())));
    found(&gives, 7);
    let mut joins = exchange(other, own, Some(guard(2, 1, *own.ip())));
    let state = joins.join(store(), 5).unwrap().recv_timeout(PATIENCE);
    assert_eq!(state.unwrap().at().time, 7);
    // An end without keys gets nothing, from the peer's address or another one.
    for from in [*other.ip(), *stranger.ip()] {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        let from = std::net::SocketAddr::V4(SocketAddrV4::new(from, 0));
        socket.bind(&from.into()).unwrap();
        let own = std::net::SocketAddr::V4(own);
        socket.connect_timeout(&own.into(), PATIENCE).unwrap();
        let mut stream = TcpStream::from(socket);
        std::io::Write::write_all(&mut stream, &[0, 0, 0, 80]).unwrap();
        std::io::Write::write_all(&mut stream, &[7; 80]).unwrap();
        let mut said = Vec::new();
        // A connection that is cut gives nothing either.
        let _ = stream.read_to_end(&mut said);
        assert!(said.is_empty(), "{said:?}");
    }
}

#[test]
fn a_state_passes_open_without_keys() {
    let [own, other] = [4, 5].map(address);
    let gives = exchange(own, other, None);
    found(&gives, 7);
    let mut joins = exchange(other, own, None);
    let state = joins.join(store(), 5).unwrap().recv_timeout(PATIENCE);
    assert_eq!(state.unwrap().at().time, 7);
    assert!(gives.exchange.seals().is_none());
}

/// Datagrams that are not sealed, cut or repeated are counted and change nothing; sealed ones are
/// answered.
#[test]
fn datagrams_pass_sealed_alone() {
    let [own, other] = [6, 7].map(address);
    let takes = exchange(own, other, Some(guard(1, 2, *other.ip())));
    found(&takes, 7);
    let socket = UdpSocket::bind(other).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let mut keys = guard(2, 1, *own.ip());
    let place = FinalTime { time: 3, group: 0 };
    let ask = padded(&Message::Ask { at: place }.to_vec()).unwrap();
    let mut buffer = [0; 2048];
    // Asked for what it has forgotten, it says so; the first question proves nothing yet.
    let mut last;
    let begin = Instant::now();
    let gone = loop {
        assert!(begin.elapsed() < PATIENCE, "it never answers");
        last = [&ask[..], &keys.seal(*own.ip(), &ask).unwrap()].concat();
        socket.send_to(&last, own).unwrap();
        let Ok((length, _)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let from = SocketAddrV4::new(*own.ip(), own.port());
        let bytes = &buffer[..length];
        let keys = Some(&mut keys);
        let opened = crate::sealing::open_datagram(keys, 0, &socket, from, bytes);
        if let Some(received) = opened {
            break Message::parse(unpadded(received.message).unwrap());
        }
    };
    let expected = Message::Gone {
        at: place,
        shard: 0,
    };
    assert_eq!(gone, Ok(expected));
    let before = takes.exchange.seals().unwrap().messages;
    let mut altered = last.clone();
    altered[3] ^= 1;
    for wrong in [&ask[..], &last, &last[..last.len() - 5], &altered] {
        socket.send_to(wrong, own).unwrap();
    }
    let refused = |of: &stateplane_seal::Counters| {
        of.not_sealed + of.truncated + of.replayed + of.forged + of.unknown_sender
    };
    let seals = || takes.exchange.seals().unwrap().messages;
    while refused(&seals()) < refused(&before) + 4 {
        assert!(begin.elapsed() < 2 * PATIENCE, "{:?}", seals());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(seals().opened, before.opened);
    let state = takes.exchange.state();
    let counters = state.replica.as_ref().unwrap().counters();
    assert_eq!(counters.strange, 0);
}

#[test]
fn a_padded_message_is_found_again_and_no_other_bytes_are_one() {
    for length in [0, 1, LEAST - LENGTH, LEAST, 1000] {
        let message = vec![7; length];
        let bytes = padded(&message).unwrap();
        assert_eq!(bytes.len(), LEAST.max(length + LENGTH));
        assert_eq!(unpadded(&bytes), Some(&message[..]));
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(unpadded(&longer), None);
        assert_eq!(unpadded(&bytes[..bytes.len() - 1]), None);
    }
    let mut bytes = padded(&[7; 3]).unwrap();
    bytes[LEAST - 1] = 1;
    assert_eq!(unpadded(&bytes), None);
    assert_eq!(padded(&vec![7; 1 << 16]), None);
}
