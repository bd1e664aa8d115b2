//! Replicas and clients of the store over multicast among any messages.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_multicast::FinalTime;
use stateplane_multicast_store::{
    Client, ClientConfig, Command, Found, Key, MAX_KEYS, Message, Operation, Outcome, Part,
    Replica, ReplicaConfig, Snapshot, StoreConfig, Value, Verdict,
};

const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 40_000);
const CLIENT: u64 = 7;
const SHARDS: u8 = 2;

fn place(time: u64) -> FinalTime {
    FinalTime { time, group: 0 }
}

/// Messages that are read are written alike; a replica's state survives any of them, and goes
/// through a snapshot. Each
/// begins with a byte that says whether it is delivered or comes by itself, and its length.
pub(super) fn replica(input: &[u8]) {
    let config = ReplicaConfig {
        queue: 8,
        kept: 8,
        ..ReplicaConfig::new(StoreConfig {
            most_records: 8,
            most_clients: 4,
            ..StoreConfig::new(0, SHARDS)
        })
    };
    if let Ok(message) = Message::parse(input) {
        assert_eq!(message.to_vec(), input);
    }
    if let Ok(snapshot) = Snapshot::parse(config.store, input) {
        let again = snapshot.to_vec();
        assert_eq!(Snapshot::parse(config.store, &again), Ok(snapshot));
    }
    let mut replica = Replica::new(config);
    let mut client = Client::new(
        0,
        ClientConfig {
            client: CLIENT,
            shards: SHARDS,
            reply: PEER,
            repeat_us: 1,
            longest_repeat_us: 1,
        },
    );
    let mut rest = input;
    let mut now = 0;
    while let [how, length, behind @ ..] = rest {
        now += 1;
        let (message, behind) = behind.split_at(behind.len().min((*length).into()));
        rest = behind;
        client.handle_datagram(message);
        if how % 2 == 0 {
            let groups = u32::from(how >> 1) % 4;
            replica.handle_delivery(now, place(now), groups, message.to_vec());
        } else {
            replica.handle_datagram(now, PEER, message);
        }
        replica.handle_timeout(now);
        while let Some(transmit) = replica.poll_transmit() {
            assert!(Message::parse(&transmit.bytes).is_ok());
        }
    }
    assert!(replica.queued() <= 9);
    let bytes = replica.snapshot().to_vec();
    assert_eq!(
        Snapshot::parse(config.store, &bytes),
        Ok(replica.snapshot())
    );
}

/// Messages of each kind, and one of several to a replica.
pub(super) fn messages() -> Vec<Vec<u8>> {
    let key = |name: &str| Key::new(name);
    let value = Value::new("on");
    let mut messages = Vec::new();
    if let (Some(lamp), Some(fan), Some(on)) = (key("lamp"), key("fan"), value) {
        let found: Vec<Found> = vec![Some(on.clone()), None];
        let operations = [
            Operation::Open {},
            Operation::Get { key: lamp.clone() },
            Operation::Put {
                key: lamp.clone(),
                value: on.clone(),
            },
            Operation::Delete { key: fan.clone() },
            Operation::Swap {
                key: fan.clone(),
                expected: None,
                value: Some(on),
            },
            Operation::Move {
                from: lamp.clone(),
                to: fan.clone(),
            },
            Operation::Read {
                keys: vec![fan; MAX_KEYS],
            },
        ];
        let commands = (0..)
            .zip(operations)
            .map(|(number, operation)| Message::Command {
                command: Command {
                    client: CLIENT,
                    number,
                    opened: place(u64::from(number > 0)),
                    reply: PEER,
                    operation,
                },
            });
        messages.extend(commands);
        let at = place(1);
        let verdict = Verdict::New {};
        let part = Part {
            at,
            shard: 1,
            verdict,
            room: true,
            values: found.clone(),
        };
        let outcome = Outcome::Decided {
            done: true,
            values: found,
        };
        messages.push(Message::Part { part });
        messages.push(Message::Ask { at });
        messages.push(Message::Gone { at, shard: 1 });
        messages.push(Message::Answer {
            client: CLIENT,
            number: 0,
            at,
            outcome,
        });
    }
    let mut inputs: Vec<Vec<u8>> = messages.iter().map(Message::to_vec).collect();
    let several = inputs.iter().flat_map(|message| {
        // Delivered to both groups.
        let mut part = vec![6, message.len() as u8];
        part.extend(message);
        part
    });
    let several: Vec<u8> = several.collect();
    inputs.push(several);
    inputs
}
