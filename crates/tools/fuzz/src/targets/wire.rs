//! Headers and messages as bytes.

use crate::corpus;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, NatPool, Replica};
use stateplane_wire::{
    chain, control, coordination_control, ethernet, greeting, ipv4, multicast, multicast_control,
    observe, replication, sync, tcp, term, udp,
};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DESTINATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Bytes that a decoder accepts are read alike after they were encoded again.
pub(super) fn decoders(input: &[u8]) {
    if let Ok(packet) = ethernet::Packet::new_checked(input) {
        let _ = ethernet::Repr::parse(&packet);
    }
    if let Ok(packet) = ipv4::Packet::new_checked(input)
        && let Ok(repr) = ipv4::Repr::parse(&packet)
        && let Ok(bytes) = repr.to_vec()
    {
        let again = ipv4::Packet::new_checked(&bytes).map(|packet| ipv4::Repr::parse(&packet));
        assert_eq!(again, Ok(Ok(repr)));
    }
    if let Ok(packet) = udp::Packet::new_checked(input)
        && let Ok(repr) = udp::Repr::parse(&packet, SOURCE, DESTINATION)
        && let Ok(bytes) = repr.to_vec(SOURCE, DESTINATION)
    {
        let again = udp::Packet::new_checked(&bytes)
            .map(|packet| udp::Repr::parse(&packet, SOURCE, DESTINATION));
        assert_eq!(again, Ok(Ok(repr)));
    }
    if let Ok(packet) = tcp::Packet::new_checked(input)
        && let Ok(repr) = tcp::Repr::parse(&packet, SOURCE, DESTINATION)
        && let Ok(bytes) = repr.to_vec(SOURCE, DESTINATION)
    {
        let again = tcp::Packet::new_checked(&bytes)
            .map(|packet| tcp::Repr::parse(&packet, SOURCE, DESTINATION));
        assert_eq!(again, Ok(Ok(repr)));
    }
    if let Ok(packet) = replication::Packet::new_checked(input) {
        let repr = replication::Repr::parse(&packet);
        if let Ok(bytes) = repr.to_vec() {
            let again = replication::Packet::new_checked(&bytes)
                .map(|packet| replication::Repr::parse(&packet));
            assert_eq!(again, Ok(repr));
        }
    }
    if let Ok(packet) = chain::Packet::new_checked(input) {
        for entry in packet.entries().flatten() {
            let Ok(entry) = chain::Entry::parse(entry) else {
                continue;
            };
            let mut bytes = vec![0; entry.buffer_len()];
            if entry.emit(&mut bytes).is_ok() {
                assert_eq!(chain::Entry::parse(&bytes), Ok(entry));
            }
        }
        for item in chain::Item::all(packet.body()).flatten() {
            let mut bytes = Vec::new();
            if item.emit(&mut bytes).is_ok() {
                assert_eq!(chain::Item::parse(&bytes), Ok((item, &[][..])));
            }
        }
    }
    if let Ok(message) = term::Message::parse(input) {
        let bytes = match &message {
            term::Message::Heartbeat(heartbeat) => heartbeat.to_vec(),
            term::Message::Reply(reply) => reply.to_vec(),
            term::Message::Question(question) => Ok(question.to_vec()),
            term::Message::Answer(answer) => Ok(answer.to_vec()),
        };
        assert_eq!(
            bytes.map(|bytes| term::Message::parse(&bytes)),
            Ok(Ok(message))
        );
    }
    if let Ok(message) = observe::Message::parse(input) {
        let mut body = Vec::new();
        let bytes = match &message {
            observe::Message::Observe(question) => question.to_vec(),
            observe::Message::Answer(answer) => {
                for record in answer.records().flatten() {
                    assert_eq!(record.append(&mut body), Ok(()));
                }
                assert!(answer.body.starts_with(&body));
                answer.to_vec()
            }
        };
        assert_eq!(observe::Message::parse(&bytes), Ok(message));
    }
    if let Ok(greeting) = greeting::Greeting::parse(input) {
        assert_eq!(greeting::Greeting::parse(&greeting.to_vec()), Ok(greeting));
    }
    if let Ok(message) = control::Message::parse(input) {
        assert_eq!(control::Message::parse(&message.to_vec()), Ok(message));
    }
    if let Ok(message) = coordination_control::Message::parse(input) {
        assert_eq!(message.to_vec(), input);
    }
    if let Ok(message) = multicast_control::Message::parse(input) {
        assert_eq!(message.to_vec(), input);
    }
    if let Ok(packet) = sync::Packet::new_checked(input) {
        let repr = sync::Repr::parse(&packet);
        let bytes = repr.to_vec().expect("what was read can be written");
        let again = sync::Packet::new_checked(&bytes);
        assert_eq!(again.map(|packet| sync::Repr::parse(&packet)), Ok(repr));
    }
    if let Ok(packet) = multicast::Packet::new_checked(input) {
        let repr = multicast::Repr::parse(&packet);
        let bytes = repr.to_vec().expect("what was read can be written");
        let again = multicast::Packet::new_checked(&bytes);
        assert_eq!(
            again.map(|packet| multicast::Repr::parse(&packet)),
            Ok(repr)
        );
    }
}

/// Inputs of [`store`]: the messages one behind the other.
pub(super) fn exchanges() -> Vec<Vec<u8>> {
    let messages = corpus::messages();
    let piece = |message: &Vec<u8>| -> Vec<u8> {
        let mut piece = vec![0, message.len() as u8];
        piece.extend(message);
        piece
    };
    let mut inputs: Vec<Vec<u8>> = messages.iter().map(piece).collect();
    inputs.push(messages.iter().flat_map(piece).collect());
    inputs
}

fn config() -> Config {
    let pool = NatPool {
        addresses: vec![Ipv4Addr::new(192, 0, 2, 1)],
        first_port: 32_760,
        last_port: 32_775,
    };
    Config::new(2, 0)
        .with_shards(2)
        .with_class(ClassConfig {
            class: 1,
            state_length: 4,
            first_lease: FirstLease::Zero,
            shared_only: false,
            idle: IdleTimeouts::never(),
            quota: None,
        })
        .with_nat(pool, 2, 3)
}

/// Messages to two replicas that are a chain, each behind a byte that says from where,
/// and its length; what the replicas send each other is delivered. They audit well.
pub(super) fn store(input: &[u8]) {
    for replica in &exchange(input) {
        assert_eq!(replica.audit(), Ok(()));
    }
}

fn exchange(input: &[u8]) -> [Replica; 2] {
    let tail = Config {
        position: 1,
        ..config()
    };
    let (head, tail) = (Replica::new(config(), 1), Replica::new(tail, 2));
    let (Ok(head), Ok(tail)) = (head, tail) else {
        panic!("the configuration is refused");
    };
    let mut replicas = [head, tail];
    let mut now = 0;
    let mut rest = input;
    while let [from, length, behind @ ..] = rest {
        let (message, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        rest = behind;
        now += u64::from(from >> 3) * 100_000;
        let to = usize::from(*from & 1);
        match from >> 1 & 3 {
            0 | 1 => {
                let sender = SocketAddrV4::new(SOURCE, u16::from(*from));
                replicas[to].handle_request(now, sender, message);
            }
            2 => replicas[to].handle_chain(now, 1 - to as u8, message),
            _ => replicas[to].handle_timeout(now),
        }
        deliver(&mut replicas, now);
    }
    replicas
}

/// Rounds of messages between the replicas at one time.
const ROUNDS: usize = 64;

fn deliver(replicas: &mut [Replica; 2], now: u64) {
    for _ in 0..ROUNDS {
        let mut idle = true;
        for from in 0..2 {
            while let Some(sent) = replicas[from].poll_transmit(now) {
                idle = false;
                if let stateplane_store::Destination::Replica(to) = sent.to
                    && let Some(replica) = replicas.get_mut(usize::from(to))
                {
                    replica.handle_chain(now, from as u8, &sent.bytes);
                }
            }
        }
        if idle {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_makes_records() {
        let inputs = exchanges();
        let records: usize = inputs
            .iter()
            .map(|input| exchange(input)[1].records().count())
            .sum();
        assert!(records > 0);
    }
}
