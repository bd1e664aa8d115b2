use std::thread::sleep;
use std::time::Duration;

use stateplane_wire::term::{Heartbeat, MAGIC};

use super::*;

fn sockets() -> Sockets {
    Sockets::open(Ipv4Addr::LOCALHOST, 0, 0, None).unwrap()
}

/// Sends `bytes` to `socket`, from which it can be received then.
fn send(socket: &UdpSocket, bytes: &[u8]) {
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(bytes, socket.local_addr().unwrap()).unwrap();
}

fn heartbeat() -> Vec<u8> {
    let heartbeat = Heartbeat {
        switch_id: 1,
        incarnation: 1,
        number: 1,
        send_time: 1,
        stream: 0,
        version: 0,
    };
    heartbeat.to_vec().unwrap()
}

fn sender(number: u16) -> SocketAddrV4 {
    let [high, low] = number.to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(10, 0, high, low), 4793)
}

#[test]
fn what_came_while_the_disk_was_waited_for_is_handled_as_of_then() {
    let mut sockets = sockets();
    send(&sockets.links, b"configuration");
    send(&sockets.links, b"SPT1 question");
    let mut terms = Vec::new();
    while terms.is_empty() {
        sockets
            .receive_terms(|_, _, bytes| terms.push(bytes.to_vec()))
            .unwrap();
    }
    assert_eq!(terms, [b"SPT1 question"]);
    sleep(Duration::from_millis(2));
    let saved = boot_time_us();
    let mut taken = Vec::new();
    sockets
        .receive_links(BURST, |now, _, bytes| taken.push((now, bytes.to_vec())))
        .unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].1, b"configuration");
    assert!(taken[0].0 >= saved, "{} < {saved}", taken[0].0);
    assert!(!sockets.has_held());
}

#[test]
fn what_is_kept_while_the_disk_is_waited_for_is_bounded_in_bytes() {
    let mut held = Held::default();
    let large = vec![0; 60_000];
    for _ in 0..1_000 {
        held.push(sender(1), &large);
    }
    assert_eq!(held.messages.len(), HELD_BYTES / (60_000 + OVERHEAD));
    while held.pop().is_some() {}
    assert_eq!(held.bytes, 0);
}

#[test]
fn heartbeats_wait_apart_and_longer_datagrams_do_not() {
    let mut sockets = sockets();
    let longer = [&MAGIC[..], &[0; HEARTBEAT_LENGTH + TRAILER_LENGTH]].concat();
    for bytes in [&heartbeat(), &longer] {
        send(&sockets.requests, bytes);
    }
    while !sockets.has_beats() || sockets.waiting.is_empty() {
        sockets.receive_requests(BURST).unwrap();
    }
    let mut served = Vec::new();
    sockets.serve_beats(|beats| served.extend(beats.iter().map(|(_, bytes)| bytes.clone())));
    assert_eq!(served, [heartbeat()]);
    assert!(!sockets.has_beats() && sockets.has_waiting());
}

#[test]
fn a_flood_of_heartbeats_delays_no_other_sender() {
    let mut sockets = sockets();
    let mut flood = 0;
    while sockets.beats.push(sender(1), &heartbeat()) {
        flood += 1;
    }
    assert!(flood > 2 * BEATS_AT_ONCE);
    for other in 2..100 {
        assert!(sockets.beats.push(sender(other), &heartbeat()));
    }
    let mut served = Vec::new();
    sockets.serve_beats(|beats| served.extend(beats.iter().map(|(from, _)| *from)));
    assert_eq!(served.len(), BEATS_AT_ONCE);
    let others = served.iter().filter(|from| **from != sender(1));
    assert_eq!(others.count(), 98);
    assert!(sockets.has_beats());
}
