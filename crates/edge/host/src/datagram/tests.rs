use std::net::Ipv4Addr;

use stateplane_seal::TRAILER_LENGTH;
use std::sync::Arc;

use super::*;
use crate::clock::boot_time_us;
use crate::poll::Readable;

fn socket() -> (UdpSocket, SocketAddrV4) {
    let socket = open(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let SocketAddr::V4(address) = socket.local_addr().unwrap() else {
        panic!("an IPv4 address");
    };
    (socket, address)
}

/// All that comes until `count` came, and in how many bursts.
fn taken(socket: &UdpSocket, count: usize) -> (Vec<(SocketAddrV4, Vec<u8>)>, usize) {
    let mut burst = Burst::new();
    let (mut taken, mut bursts) = (Vec::new(), 0);
    while taken.len() < count {
        let mut readable = Readable::new([socket.as_raw_fd()]).unwrap();
        readable.wait_until(boot_time_us() + 5_000_000).unwrap();
        burst.take(socket).unwrap();
        assert!(burst.len() > 0, "{} of {count}", taken.len());
        bursts += 1;
        taken.extend(burst.iter().map(|(from, bytes)| (from, bytes.to_vec())));
    }
    burst.take(socket).unwrap();
    assert_eq!(burst.iter().count(), 0);
    (taken, bursts)
}

#[test]
fn what_leaves_at_once_comes_in_its_order() {
    let ((receiver, to), (sender, from)) = (socket(), socket());
    let mut outgoing = Outgoing::default();
    let mut expected = Vec::new();
    for number in 0..100u8 {
        let length = match number {
            0 => 0,
            17 => 60_000,
            _ => usize::from(number) * 3,
        };
        let trailer = (number % 3 == 0).then_some([number; TRAILER_LENGTH]);
        let mut bytes = vec![number; length];
        outgoing.push(to, Arc::new(bytes.clone()), trailer);
        bytes.extend(trailer.into_iter().flatten());
        expected.push((from, bytes));
    }
    assert!(outgoing.is_full());
    assert_eq!(outgoing.send(&sender), 0);
    assert!(!outgoing.is_full());
    let (taken, bursts) = taken(&receiver, 100);
    assert_eq!(taken, expected);
    assert!(bursts >= 2, "a burst has at most {BURST}");
}

#[test]
fn one_that_cannot_leave_takes_no_other_with_it() {
    let ((receiver, to), (sender, from)) = (socket(), socket());
    let mut outgoing = Outgoing::default();
    for length in [3, 70_000, 4, 70_000, 70_000, 5] {
        outgoing.push(to, Arc::new(vec![1; length]), None);
    }
    assert_eq!(outgoing.send(&sender), 3);
    let expected = [3, 4, 5].map(|length| (from, vec![1; length]));
    assert_eq!(taken(&receiver, 3).0, expected);
}

#[test]
fn a_neighbour_that_is_gone_is_no_error() {
    let ((receiver, to), (gone, nobody)) = (socket(), socket());
    drop(gone);
    let mut burst = Burst::new();
    for _ in 0..3 {
        receiver.send_to(&[1], nobody).unwrap();
        burst.take(&receiver).unwrap();
        assert_eq!(burst.len(), 0);
        assert_eq!(super::receive(&receiver, &mut [0; 9]).unwrap(), None);
    }
    let (sender, from) = socket();
    sender.send_to(&[7, 8], to).unwrap();
    assert_eq!(taken(&receiver, 1).0, [(from, vec![7, 8])]);
}
