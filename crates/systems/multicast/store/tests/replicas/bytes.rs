//! The encoding.

use super::{REPLY, key, place, value};
use proptest::prelude::*;
use stateplane_multicast_store::{
    Command, Key, MAX_KEY, MAX_KEYS, MAX_VALUE, Malformed, Message, Operation, Outcome, Part,
    Reason, Replica, ReplicaConfig, Snapshot, StoreConfig, Value, Verdict,
};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn operations() -> Vec<Operation> {
    vec![
        Operation::Open {},
        Operation::Get { key: key("lamp") },
        Operation::Put {
            key: key("lamp"),
            value: value("on"),
        },
        Operation::Delete { key: key("lamp") },
        Operation::Swap {
            key: key("lamp"),
            expected: None,
            value: Some(value("off")),
        },
        Operation::Move {
            from: key("lamp"),
            to: key("attic/lamp"),
        },
        Operation::Read {
            keys: vec![key("lamp"), key("attic/lamp")],
        },
    ]
}

fn examples() -> Vec<(String, Message)> {
    let commands = operations().into_iter().map(|operation| {
        let name = format!("{operation:?}");
        let name = name
            .split([' ', '{'])
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let command = Command {
            client: 0x0102_0304_0506_0708,
            number: 9,
            opened: place(0x1112_1314),
            reply: REPLY,
            operation,
        };
        (format!("command-{name}"), Message::Command { command })
    });
    let values = vec![Some(value("on")), None];
    let outcomes = [
        ("opened", Outcome::Opened {}),
        (
            "values",
            Outcome::Values {
                values: values.clone(),
            },
        ),
        ("done", Outcome::Done {}),
        (
            "decided",
            Outcome::Decided {
                done: true,
                values: values.clone(),
            },
        ),
        (
            "refused",
            Outcome::Refused {
                reason: Reason::Forgotten {},
            },
        ),
    ];
    let answers = outcomes.map(|(name, outcome)| {
        let answer = Message::Answer {
            client: 7,
            number: 9,
            at: place(11),
            outcome,
        };
        (format!("answer-{name}"), answer)
    });
    let part = Part {
        at: place(11),
        shard: 1,
        verdict: Verdict::New {},
        room: true,
        values,
    };
    let others = [
        ("part", Message::Part { part }),
        ("ask", Message::Ask { at: place(11) }),
        (
            "gone",
            Message::Gone {
                at: place(11),
                shard: 1,
            },
        ),
    ];
    let others = others.map(|(name, message)| (name.to_owned(), message));
    commands.chain(answers).chain(others).collect()
}

/// `UPDATE_GOLDEN=1` writes the file anew; a difference is another format on the wire.
#[test]
fn bytes_are_those_of_the_golden_file() {
    let mut text = String::new();
    for (name, message) in examples() {
        let digits = message
            .to_vec()
            .iter()
            .fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").expect("a string takes text");
                text
            });
        writeln!(text, "{name} {digits}").expect("a string takes text");
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/messages.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).expect("the golden file");
    }
    assert_eq!(fs::read_to_string(&path).expect("the golden file"), text);
}

/// No two variants of a table have one number, and the golden file has all of them.
#[test]
fn tables_are_complete() {
    let tables = [
        (Operation::TABLE, 7),
        (Outcome::TABLE, 5),
        (Reason::TABLE, 4),
        (Verdict::TABLE, 4),
        (Message::TABLE, 5),
    ];
    for (table, count) in tables {
        let mut numbers: Vec<u8> = table.iter().map(|row| row.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((table.len(), numbers.len()), (count, count), "{table:?}");
    }
    let swap = Operation::TABLE[4];
    let fields = [("key", "key"), ("expected", "value"), ("value", "value")];
    assert_eq!((swap.name, swap.fields), ("Swap", &fields[..]));
}

#[test]
fn every_prefix_and_every_longer_text_is_refused() {
    for (name, message) in examples() {
        let mut bytes = message.to_vec();
        assert_eq!(Message::parse(&bytes), Ok(message), "{name}");
        for length in 0..bytes.len() {
            assert!(Message::parse(&bytes[..length]).is_err(), "{name} {length}");
        }
        bytes.push(0);
        assert_eq!(
            Message::parse(&bytes),
            Err(Malformed::Trailing(1)),
            "{name}"
        );
        bytes[0] = 2;
        assert_eq!(Message::parse(&bytes), Err(Malformed::Version(2)), "{name}");
    }
}

#[test]
fn lengths_have_bounds() {
    assert!(Key::new(vec![0; MAX_KEY]).is_some());
    assert!(Key::new(vec![0; MAX_KEY + 1]).is_none());
    assert!(Key::new(Vec::new()).is_none());
    assert!(Value::new(vec![0; MAX_VALUE]).is_some());
    assert!(Value::new(vec![0; MAX_VALUE + 1]).is_none());
    let read = |count: usize| {
        let keys = vec![key("k"); count];
        let command = Command {
            client: 1,
            number: 1,
            opened: place(1),
            reply: REPLY,
            operation: Operation::Read { keys },
        };
        Message::parse(&Message::Command { command }.to_vec())
    };
    assert!(read(MAX_KEYS).is_ok());
    assert!(matches!(read(MAX_KEYS + 1), Err(Malformed::Length { .. })));
    assert!(matches!(read(0), Err(Malformed::Length { .. })));
}

proptest! {
    /// Bytes that are read are those that are written again: each message has one encoding.
    #[test]
    fn what_is_read_is_written_alike(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let examples = examples();
        let mut bytes = examples[which.index(examples.len())].1.to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(message) = Message::parse(&bytes) {
            prop_assert_eq!(message.to_vec(), bytes);
        }
    }

    /// Bytes that are no snapshot are refused, and make nothing large.
    #[test]
    fn any_bytes_are_a_snapshot_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let config = StoreConfig::new(0, 2);
        if let [version, shard, shards, ..] = bytes.as_mut_slice() {
            (*version, *shard, *shards) = (1, 0, 2);
        }
        let _ = Snapshot::parse(config, &bytes);
        let empty = Replica::new(ReplicaConfig::new(config)).snapshot().to_vec();
        prop_assert!(Snapshot::parse(config, &empty).is_ok());
        prop_assert!(Snapshot::parse(StoreConfig::new(1, 2), &empty).is_err());
    }
}
