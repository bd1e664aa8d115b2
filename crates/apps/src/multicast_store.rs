//! The store over multicast: operations that are drawn, and the terms of histories for them.

use crate::Random;
use stateplane_history::Object;
use stateplane_history::multicast::{EventKind, Final, MulticastEvent, Request, Response};
use stateplane_multicast_store::{Executed, Found, Key, Operation, Outcome, Value, shard_of};

/// Values that operations give to keys.
const VALUES: usize = 8;
/// Bits of an operation's number below its client.
const NUMBER_BITS: u32 = 32;

/// Keys of a store: `each` of each of `shards`.
pub fn keys(shards: u8, each: u8) -> Vec<Key> {
    let mut keys = Vec::new();
    for shard in 0..shards {
        let tried = (0u32..).filter_map(|tried| Key::new(format!("k{tried}")));
        let own = tried.filter(|key| shard_of(key, shards) == shard);
        keys.extend(own.take(each.into()));
    }
    keys
}

fn drawn<'a>(keys: &'a [Key], random: &mut Random) -> Option<&'a Key> {
    keys.get(random.place(keys.len().max(1)))
}

/// The operation that `draw` gives, on several keys by a chance of `several` thousandths. None if
/// there are no keys.
pub fn operation(keys: &[Key], several: u32, draw: u64) -> Option<Operation> {
    let mut random = Random::new(draw);
    let random = &mut random;
    let key = drawn(keys, random)?.clone();
    let value = |random: &mut Random| Value::new(format!("v{}", random.place(VALUES)));
    let optional = |random: &mut Random| {
        if random.permille(400) {
            None
        } else {
            value(random)
        }
    };
    Some(match (random.permille(several), random.place(8)) {
        (true, 0..4) => Operation::Move {
            from: key,
            to: drawn(keys, random)?.clone(),
        },
        (true, _) => {
            let count = random.between(2, 4);
            let keys: Option<_> = (0..count).map(|_| drawn(keys, random).cloned()).collect();
            Operation::Read { keys: keys? }
        }
        (false, 0 | 1) => Operation::Get { key },
        (false, 2..5) => Operation::Put {
            key,
            value: value(random)?,
        },
        (false, 5) => Operation::Delete { key },
        (false, _) => Operation::Swap {
            key,
            expected: optional(random),
            value: optional(random),
        },
    })
}

/// Number of an operation in histories; clients have numbers of 32 bits.
pub fn operation_number(client: u64, number: u64) -> u64 {
    (client << NUMBER_BITS) | number
}

fn object(bytes: &[u8]) -> Object {
    Object::new(&String::from_utf8_lossy(bytes))
}

fn found(value: &Found) -> Option<Object> {
    value.as_ref().map(|value| object(value.bytes()))
}

/// The operation in the terms of histories; None of one that only makes the client known.
pub fn request(operation: &Operation) -> Option<Request> {
    let of = |key: &Key| object(key.bytes());
    Some(match operation {
        Operation::Open {} => return None,
        Operation::Get { key } => Request::Get { key: of(key) },
        Operation::Put { key, value } => Request::Put {
            key: of(key),
            value: object(value.bytes()),
        },
        Operation::Delete { key } => Request::Delete { key: of(key) },
        Operation::Swap {
            key,
            expected,
            value,
        } => Request::Swap {
            key: of(key),
            expected: found(expected),
            value: found(value),
        },
        Operation::Move { from, to } => Request::Move {
            from: of(from),
            to: of(to),
        },
        Operation::Read { keys } => Request::Read {
            keys: keys.iter().map(of).collect(),
        },
    })
}

/// The outcome in the terms of histories; None of one that only makes the client known.
pub fn response(outcome: &Outcome) -> Option<Response> {
    let all = |values: &[Found]| values.iter().map(found).collect();
    Some(match outcome {
        Outcome::Opened {} => return None,
        Outcome::Refused { .. } => Response::Refused,
        Outcome::Done {} => Response::Done,
        Outcome::Values { values } => Response::Values {
            values: all(values),
        },
        Outcome::Decided { done, values } => Response::Decided {
            done: *done,
            values: all(values),
        },
    })
}

/// The store, as an object of histories.
fn store() -> Object {
    Object::new("store")
}

/// A client at `node` calls an operation.
pub fn called(node: u32, operation: u64, request: Request) -> EventKind {
    EventKind::Call {
        node,
        object: store(),
        operation,
        request,
    }
}

/// A client at `node` is answered.
pub fn answered(node: u32, operation: u64, response: Response) -> EventKind {
    EventKind::Return {
        node,
        object: store(),
        operation,
        response,
    }
}

/// The replica at `node` executes a command; None of one that was executed before, is refused, or only
/// makes the client known.
pub fn executed(node: u32, shard: u8, executed: &Executed) -> Option<MulticastEvent> {
    let answer = response(&executed.outcome)?;
    let first = executed.first == executed.at && answer != Response::Refused;
    let command = &executed.command;
    let event = MulticastEvent::Executed {
        node,
        group: shard,
        operation: operation_number(command.client, command.number),
        at: Final {
            time: executed.at.time,
            group: executed.at.group,
        },
    };
    first.then_some(event)
}
