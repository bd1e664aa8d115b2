//! A client of the coordination service among any replies.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::BTreeSet;

use stateplane_coordination::{
    Agent, Chain, Event, Lanes, Operation, Owner, Place, Settings, Ticket, When,
};
use stateplane_wire::coordination::{
    HEADER_LENGTH, Key, MAX_VALUE, MessageType, Outcome, PORT, Packet, Repr, SHORT_VALUE, VERSION,
    field, padded,
};

const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 40_000);
const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), PORT);

/// An agent with one operation of each kind under way.
fn busy() -> Agent {
    let mut agent = Agent::new(Settings::new(CLIENT, 2), 1);
    for group in 0..2 {
        agent.learn(
            0,
            Chain {
                group,
                generation: 0,
                epoch: 1,
                members: vec![*SWITCH.ip()],
                joining: None,
            },
        );
    }
    agent.set_lanes(Lanes {
        session: 1,
        first: 0,
        count: 4,
        incarnation: 0,
    });
    let place = Place::within(0, Key([1; 16]));
    let long = Place {
        prefix: vec![7; 20],
        ..place.clone()
    };
    let owner = Owner {
        session: 1,
        handle: 1,
    };
    for operation in [
        Operation::put(place.clone(), b"x"),
        Operation::write(long, b"y", When::Value(vec![7; 40])),
        Operation::acquire(Place::within(1, Key([2; 16])), owner, true),
        Operation::release(Place::within(1, Key([2; 16])), owner),
        Operation::read(place.clone()),
        Operation::delete(place, When::Present),
    ] {
        // There is room for them.
        _ = agent.submit(0, operation);
    }
    agent
}

/// Replies such as a switch sends, one behind the other.
pub(super) fn replies() -> Vec<Vec<u8>> {
    let mut agent = busy();
    let requests: Vec<_> = std::iter::from_fn(|| agent.poll_transmit()).collect();
    let reply = |bytes: &[u8]| {
        let packet = Packet::new_checked(bytes).ok()?;
        let mut reply = Repr::parse(&packet);
        reply.message_type = MessageType::Reply;
        reply.outcome = Outcome::Done as u8;
        reply.handle = reply.request;
        reply.value = &[];
        reply.to_vec().ok()
    };
    let all: Vec<Vec<u8>> = requests
        .iter()
        .filter_map(|(_, bytes)| reply(bytes))
        .collect();
    let mut seeds = all.clone();
    seeds.push(all.concat());
    let long = Repr {
        value: &[7; MAX_VALUE],
        ..Repr::new(MessageType::Reply)
    };
    seeds.extend(long.to_vec());
    seeds
}

/// Any bytes, then the same as replies whose checksum is right, with time between them: no
/// operation ends twice, and nothing grows without end.
pub(super) fn agent(input: &[u8]) {
    let mut agent = busy();
    let mut ended: BTreeSet<Ticket> = BTreeSet::new();
    let mut unknown: BTreeSet<Ticket> = BTreeSet::new();
    let mut now = 0;
    agent.handle_datagram(now, SWITCH, input);
    // With a value as long as the input has.
    agent.handle_datagram(now, SWITCH, &mended(input));
    for chunk in input.chunks(HEADER_LENGTH + 16) {
        agent.handle_datagram(now, SWITCH, &mended(chunk));
        now += u64::from(chunk[0]) * 10_000;
        agent.handle_timeout(now);
        while let Some((_, bytes)) = agent.poll_transmit() {
            assert!(
                Packet::new_checked(&bytes).is_ok(),
                "a request is well-formed"
            );
        }
        while let Some(event) = agent.poll_event() {
            let Some(ticket) = event.ticket() else {
                continue;
            };
            match event {
                Event::Resolved { .. } => {
                    assert!(unknown.remove(&ticket), "{ticket:?} was not unknown");
                    continue;
                }
                Event::Unknown { .. } => _ = unknown.insert(ticket),
                _ => {}
            }
            assert!(ended.insert(ticket), "{ticket:?} ended twice");
        }
        assert!(agent.pending() + ended.len() == 6, "an operation is lost");
    }
}

/// `chunk` as a reply to the client, with version, type, length and checksum as they must be.
fn mended(chunk: &[u8]) -> Vec<u8> {
    let value = chunk.len().saturating_sub(HEADER_LENGTH).min(MAX_VALUE);
    let mut bytes = vec![0; HEADER_LENGTH + padded(value)];
    let length = chunk.len().min(HEADER_LENGTH + value);
    bytes[..length].copy_from_slice(&chunk[..length]);
    bytes[field::VERSION] = VERSION;
    bytes[field::TYPE] = MessageType::Reply as u8;
    bytes[field::VALUE_LENGTH..][..2].copy_from_slice(&(value as u16).to_be_bytes());
    bytes[field::CLIENT_ADDRESS..][..4].copy_from_slice(&CLIENT.ip().octets());
    bytes[field::CLIENT_PORT..][..2].copy_from_slice(&CLIENT.port().to_be_bytes());
    let (front, rest) = bytes.split_at_mut(HEADER_LENGTH + padded(value).min(SHORT_VALUE));
    if !rest.is_empty() {
        front[field::REST_CHECKSUM..][..2].copy_from_slice(&checksum(rest).to_be_bytes());
    }
    front[field::CHECKSUM..][..2].fill(0);
    let checksum = checksum(front);
    front[field::CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
