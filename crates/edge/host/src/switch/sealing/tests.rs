use stateplane_wire::{coordination, multicast, sync};

use super::*;
use crate::sealing::frames::{A, B, guard, message};

/// The port whose messages are sealed, and another one.
const SEALED: Port = 2;
const OPEN: Port = 1;

/// Gives a switch its address in a service.
type PutAddress = fn(Sealing, Option<Ipv4Addr>) -> Sealing;

/// Services of a switch, and how the switch gets its address there.
const SERVICES: [(u16, PutAddress); 3] = [
    (coordination::PORT, Sealing::with_coordination),
    (multicast::PORT, Sealing::with_multicast),
    (sync::PORT, Sealing::with_sync),
];

#[test]
fn a_stranger_under_the_own_address_is_dropped_at_every_port() {
    let switch = || Sealing::new(guard(1, 2, B), vec![SEALED]);
    for (service, with) in SERVICES {
        for port in [SEALED, OPEN] {
            let mut sealing = with(switch(), Some(A));
            let mut forged = message(service, service);
            assert_eq!(sealing.open(0, port, &mut forged), None);
            assert_eq!(sealing.report().frames.own_source, 1);
            // A switch of another service routes it.
            assert_eq!(switch().open(0, port, &mut forged), Some(forged.len()));
        }
    }
}

/// Messages for the switch have to be sealed at the port that says so, and at no other.
#[test]
fn messages_are_opened_at_sealed_ports_alone() {
    for (service, with) in SERVICES {
        let mut sealing = with(Sealing::new(guard(1, 2, B), vec![SEALED]), Some(B));
        let mut unsealed = message(5000, service);
        let length = unsealed.len();
        assert_eq!(sealing.open(0, OPEN, &mut unsealed), Some(length));
        assert_eq!(sealing.open(0, SEALED, &mut unsealed), None);
    }
}

/// A switch may have a part in several services.
#[test]
fn addresses_of_all_services_are_kept() {
    let sealing = Sealing::new(guard(1, 2, A), vec![SEALED]);
    let sealing = sealing.with_multicast(Some(A)).with_coordination(Some(B));
    let mut sealing = sealing.with_sync(Some(B));
    let mut forged = message(multicast::PORT, multicast::PORT);
    assert_eq!(sealing.open(0, OPEN, &mut forged), None);
    let mut unsealed = message(5000, coordination::PORT);
    assert_eq!(sealing.open(0, SEALED, &mut unsealed), None);
    let seen = sealing.report();
    assert_eq!((seen.frames.own_source, seen.messages.not_sealed), (1, 1));
}

/// A peer hears the socket of the switch's process and its ports as one end: what left by one proves
/// itself by what came by the other, and no message passes twice.
#[test]
fn the_socket_of_the_process_and_the_ports_are_one_end() {
    let local = Ipv4Addr::LOCALHOST;
    let own = UdpSocket::bind((local, 0)).unwrap();
    let peer = UdpSocket::bind((local, 0)).unwrap();
    let at = |socket: &UdpSocket| match socket.local_addr().unwrap() {
        std::net::SocketAddr::V4(address) => address,
        std::net::SocketAddr::V6(_) => panic!("an IPv4 address"),
    };
    let mut sealing = Sealing::new(guard(1, 2, local), vec![SEALED]);
    let mut other = guard(2, 1, local);
    let mut buffer = [0; 200];
    let mut heard = false;
    for _ in 0..3 {
        sealing.send_datagram(&own, at(&peer), &[7; 80]).unwrap();
        let length = peer.recv(&mut buffer).unwrap();
        let opened = open_datagram(Some(&mut other), 0, &peer, at(&own), &buffer[..length]);
        if let Some(received) = opened {
            assert_eq!((received.peer, received.message), (Some(1), &[7; 80][..]));
            heard = true;
            break;
        }
        let length = own.recv(&mut buffer).unwrap();
        let answer = sealing.open_datagram(0, &own, at(&peer), &buffer[..length]);
        assert_eq!(answer, None);
        // The answer to the answer, if there is one, is no message.
        peer.set_nonblocking(true).unwrap();
        if let Ok(length) = peer.recv(&mut buffer) {
            let opened = open_datagram(Some(&mut other), 0, &peer, at(&own), &buffer[..length]);
            assert!(opened.is_none());
        }
        peer.set_nonblocking(false).unwrap();
    }
    assert!(heard);
    send_datagram(Some(&mut other), &peer, at(&own), &[8; 90]).unwrap();
    let length = own.recv(&mut buffer).unwrap();
    let sealed = buffer[..length].to_vec();
    assert_eq!(sealing.open_datagram(0, &own, at(&peer), &sealed), Some(90));
    assert_eq!(sealing.open_datagram(0, &own, at(&peer), &sealed), None);
    let seen = sealing.report().messages;
    assert_eq!((seen.opened, seen.replayed), (1, 1));
}

/// The usual length of a payload is what fits into the usual packets.
#[test]
fn sealed_payloads_fill_packets() {
    let usual = usize::from(crate::sealing::longest_payload(true));
    assert_eq!((sealed_payload(1500), usual), (1352, 1352));
    assert_eq!(sealed_payload(100), 0);
}
