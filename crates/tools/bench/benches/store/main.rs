//! Requests per second of the store in process: one replica against copying request and
//! reply once through a buffer, three replicas against one; and what a write costs, and a
//! flow weighs, by the number of flows.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads clocks")]

mod flows;

use stateplane_bench::chain::{Chain, store_of};
use stateplane_bench::{Report, Sample, copy, frame, timed};
use stateplane_wire::replication::{Key, MessageType, PORT, Packet, Repr};
use std::net::{Ipv4Addr, SocketAddrV4};

const COUNTER_STORE: &str = include_str!("counter.toml");

const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 10, 0, 1), PORT);
const FLOWS: u16 = 256;
const SHARDS: u16 = 4;
const NOW: u64 = 1_000_000;
const CLASS_COUNTER: u8 = 1;
const CLASS_NAT_OUTBOUND: u8 = 2;

fn key(class: u8, flow: u16) -> Key {
    let mut key = [0; 16];
    key[..2].copy_from_slice(&[class, 6]);
    key[2..6].copy_from_slice(&[10, 0, 1, 2]);
    key[6..8].copy_from_slice(&(40_000 + flow).to_be_bytes());
    Key(key)
}

fn request(kind: MessageType, class: u8, flow: u16) -> Repr<'static> {
    Repr {
        chain_epoch: 1,
        shard: flow % SHARDS,
        switch_id: 1,
        incarnation: 7,
        claim: u32::from(flow) + 1,
        request: 1,
        send_time: NOW,
        ..Repr::new(kind, key(class, flow))
    }
}

/// A frame of 64 bytes, which a request carries.
fn packet() -> Vec<u8> {
    let destination = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 5201);
    frame::tcp(
        SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 2), 40_000),
        destination,
        64,
    )
}

/// Gives `requests` to the chain, one a microsecond from `now` on; each must be answered by a message of type `expected`,
/// a write with its own sequence number, which tells that it is kept.
fn serve(chain: &mut Chain, now: &mut u64, requests: &[Vec<u8>], expected: MessageType) -> Sample {
    let mut replies = Vec::with_capacity(requests.len());
    let sample = timed(|| {
        for bytes in requests {
            *now += 1;
            chain.advance(*now, |(_, reply)| replies.push(reply));
            chain.request(*now, SWITCH, bytes, |(_, reply)| replies.push(reply));
        }
        requests.len() as u64
    });
    assert_eq!(replies.len(), requests.len(), "every request is answered");
    for (request, reply) in requests.iter().zip(&replies) {
        let request = Packet::new_checked(request).expect("a request");
        let reply = Packet::new_checked(reply).expect("a reply");
        assert_eq!(reply.message_type(), expected);
        if expected == MessageType::WriteReply {
            assert_eq!(reply.sequence(), request.sequence());
        }
    }
    sample
}

/// The first packets of connections: each takes a public port and makes a mapping.
fn leases(length: u8) -> impl FnMut() -> Sample {
    let packet = packet();
    let requests: Vec<Vec<u8>> = (0..FLOWS)
        .map(|flow| Repr {
            shared: true,
            packet: Some(&packet),
            ..request(MessageType::LeaseRequest, CLASS_NAT_OUTBOUND, flow)
        })
        .map(|request| request.to_vec().expect("a request fits"))
        .collect();
    move || {
        let (mut chain, mut now) = (Chain::new(&store_of("nat"), length), NOW);
        serve(&mut chain, &mut now, &requests, MessageType::LeaseReply)
    }
}

/// Writes under leases, with the output packet on board.
fn writes(length: u8) -> impl FnMut() -> Sample {
    let packet = packet();
    let mut chain = Chain::new(COUNTER_STORE, length);
    let mut epochs = Vec::new();
    for flow in 0..FLOWS {
        let lease = request(MessageType::LeaseRequest, CLASS_COUNTER, flow).to_vec();
        chain.request(
            NOW,
            SWITCH,
            &lease.expect("a request fits"),
            |(_, reply)| {
                let reply = Packet::new_checked(&reply).expect("a reply");
                epochs.push((reply.lease_epoch(), reply.sequence()));
            },
        );
    }
    let (mut written, mut now) = (0_u32, NOW);
    move || {
        written += 1;
        let state = u64::from(written).to_be_bytes();
        let requests: Vec<Vec<u8>> = (0..FLOWS)
            .zip(&epochs)
            .map(|(flow, &(lease_epoch, sequence))| Repr {
                lease_epoch,
                sequence: sequence.wrapping_add(written),
                state: &state,
                packet: Some(&packet),
                ..request(MessageType::WriteRequest, CLASS_COUNTER, flow)
            })
            .map(|request| request.to_vec().expect("a request fits"))
            .collect();
        serve(&mut chain, &mut now, &requests, MessageType::WriteReply)
    }
}

/// Copies messages of the length of a write and its reply.
fn copies() -> impl FnMut() -> Sample {
    let packet = packet();
    let state = [0; 8];
    let message = Repr {
        state: &state,
        packet: Some(&packet),
        ..request(MessageType::WriteRequest, CLASS_COUNTER, 0)
    };
    let message = message.to_vec().expect("a request fits");
    let mut buffer = vec![0; 2048];
    move || {
        timed(|| {
            let both_ways = std::iter::repeat_n(message.as_slice(), 2 * 65_536);
            copy(both_ways, &mut buffer) / 2
        })
    }
}

fn main() -> std::io::Result<()> {
    let mut report = Report::new("store", "requests/s");
    let copying = "copying request and reply";
    report.compare("first lease, 1 replica", leases(1), copying, copies());
    report.compare("write, 1 replica", writes(1), copying, copies());
    report.compare("first lease, 3 replicas", leases(3), "1 replica", leases(1));
    report.compare("write, 3 replicas", writes(3), "1 replica", writes(1));
    flows::report(&mut report);
    report.finish()
}
