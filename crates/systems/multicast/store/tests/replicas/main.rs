//! The store: its bytes, the rules of one replica and client, and replicas that exchange parts over
//! a network that loses, repeats and reorders.

mod bytes;
mod rules;
mod runs;
mod strict;

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_multicast::FinalTime;
use stateplane_multicast_store::{Command, Key, Message, Operation, Value, shard_of};

const REPLY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 4800);

fn key(text: &str) -> Key {
    Key::new(text.as_bytes()).expect("a key")
}

fn value(text: &str) -> Value {
    Value::new(text.as_bytes()).expect("a value")
}

fn place(time: u64) -> FinalTime {
    FinalTime { time, group: 0 }
}

/// A key of a shard among two.
fn key_of(shard: u8, number: u32) -> Key {
    let mut keys = (0..).map(|tried| key(&format!("k{number}-{tried}")));
    keys.find(|key| shard_of(key, 2) == shard)
        .expect("a key of each shard")
}

fn command(client: u64, number: u64, opened: u64, operation: Operation) -> Vec<u8> {
    let command = Command {
        client,
        number,
        opened: place(opened),
        reply: REPLY,
        operation,
    };
    Message::Command { command }.to_vec()
}
