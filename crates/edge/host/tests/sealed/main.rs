//! Store servers that take sealed messages only, on the loopback interface, asked by
//! switches of the tests and attacked.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod attacks;
mod network;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use network::{Keys, Network, Switch};
use stateplane_wire::replication::{MessageType, Packet};

#[test]
fn a_chain_serves_sealed_messages_alone() {
    let mut network = Network::start(81);
    let mut switch = Switch::new(&network, 1);
    switch.lease(1);
    for sequence in 2..200 {
        assert_eq!(switch.write(1, sequence), sequence);
    }
    // The same switch without seals, and nobody: no answer, no effect.
    let plain = switch.message(MessageType::ProbeRequest, 1, 0);
    for host in [101, 150] {
        let stranger = network.socket(host);
        stranger.send_to(&plain, network.request_address()).unwrap();
        assert!(stranger.recv_from(&mut [0; 2048]).is_err());
    }
    let reports = network.stop();
    let head = reports[0].replica;
    assert_eq!((head.granted, head.written), (1, 198));
    for (position, report) in reports.iter().enumerate() {
        assert_eq!(report.replica.applied, head.applied, "replica {position}");
        let seals = report.seals.unwrap();
        assert_eq!(seals.messages.forged, 0);
        assert!(seals.messages.lives <= 2);
    }
    let head = reports[0].seals.unwrap();
    assert_eq!((head.messages.not_sealed, head.wrong_address), (1, 1));
}

#[test]
fn a_switch_speaks_for_itself_alone() {
    let mut network = Network::start(82);
    let mut switch = Switch::new(&network, 1);
    switch.lease(1);
    let mut foreign = switch.message(MessageType::WriteRequest, 1, 2);
    foreign[12..16].copy_from_slice(&2u32.to_be_bytes());
    switch.send(&foreign);
    assert_eq!(switch.write(1, 2), 2);
    let reports = network.stop();
    assert_eq!(reports[0].seals.unwrap().impersonated, 1);
    assert_eq!(reports[0].replica.written, 1);
}

#[test]
fn a_switch_that_starts_again_is_heard_again() {
    let mut network = Network::start(83);
    for start in 0..3 {
        let mut switch = Switch::new(&network, 1);
        switch.lease(start);
        assert_eq!(switch.write(start, 2), 2);
    }
    let reports = network.stop();
    let tail = reports[2].seals.unwrap();
    assert_eq!(reports[0].seals.unwrap().messages.lives, 3 + 1);
    assert_eq!(tail.messages.forged, 0);
}

#[test]
fn keys_change_while_writes_flow() {
    let mut network = Network::start(84);
    let mut switch = Switch::new(&network, 1);
    switch.lease(1);
    let stop = AtomicBool::new(false);
    let folder = &network.folder;
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut sequence = 1;
            let mut longest = Duration::ZERO;
            while !stop.load(Ordering::Relaxed) {
                sequence += 1;
                let start = Instant::now();
                assert_eq!(switch.write(1, sequence), sequence);
                longest = longest.max(start.elapsed());
            }
            eprintln!("{sequence} writes, the slowest took {longest:?}");
            sequence
        });
        for keys in [Keys::OldAndIdleNew, Keys::OldAndNew, Keys::New] {
            network::write_keys(folder.path(), keys);
            // Each end looks at its file once a second.
            std::thread::sleep(Duration::from_millis(1200));
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let heard = *switch.seals();
    assert_eq!((heard.forged, heard.unknown_key), (0, 0));
    assert!(heard.unproven <= 1, "{heard:?}");
    let reports = network.stop();
    assert_eq!(reports[0].replica.written, u64::from(written) - 1);
    for report in &reports {
        assert_eq!(report.replica.applied, reports[0].replica.applied);
        let messages = report.seals.unwrap().messages;
        assert_eq!((messages.forged, messages.unknown_key), (0, 0));
        assert!(messages.lives <= 2, "associations go on: {messages:?}");
    }
}

#[test]
fn a_flooding_switch_delays_nobody() {
    let mut network = Network::start(85);
    let mut quiet = Switch::new(&network, 2);
    quiet.lease(2);
    let loud = Switch::new(&network, 1);
    let flood = loud.message(MessageType::ProbeRequest, 1, 0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = loud.socket.send_to(&flood, network.request_address());
            }
        });
        for sequence in 2..102 {
            assert_eq!(quiet.write(2, sequence), sequence);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let reports = network.stop();
    let seals = reports[0].seals.unwrap().messages;
    assert!(seals.not_sealed > 100, "{seals:?}");
    assert_eq!(reports[0].replica.written, 100);
}

#[test]
fn replies_carry_what_was_asked() {
    let mut network = Network::start(86);
    let mut switch = Switch::new(&network, 1);
    let reply = switch.ask(&switch.message(MessageType::ProbeRequest, 1, 0));
    let reply = Packet::new_checked(&reply).unwrap();
    assert_eq!(reply.message_type(), MessageType::ProbeReply);
    assert_eq!(reply.switch_id(), 1);
    network.stop();
}
