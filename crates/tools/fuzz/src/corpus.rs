//! Texts and messages of the repository, as first inputs.

use stateplane_wire::ethernet;
use stateplane_wire::replication::{Key, MessageType, Repr};
use std::path::Path;

/// Longest text that is taken.
const LONGEST: u64 = 64 << 10;

/// Folders below the root that are not looked into.
const SKIPPED: [&str; 4] = ["target", ".git", "fuzz", "bench"];

/// The texts below `root` of files with the ending `ending`, in the order of their
/// paths. Folders that cannot be read count as empty.
#[must_use]
pub fn texts(root: &Path, ending: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_skipped = entry
                .file_name()
                .to_str()
                .is_none_or(|name| SKIPPED.contains(&name));
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && !is_skipped {
                open.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
        .iter()
        .filter(|path| path.metadata().is_ok_and(|data| data.len() <= LONGEST))
        .filter_map(|path| std::fs::read(path).ok())
        .collect()
}

/// Messages of the replication protocol: each type about a key of class 1, which is
/// owned by one, and of class 2, which is shared.
#[must_use]
pub fn messages() -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    for class in [1, 2] {
        for message_type in MessageType::ALL {
            let mut key = [0; 16];
            key[0] = class;
            let with_state =
                message_type == MessageType::WriteRequest || !message_type.is_request();
            let repr = Repr {
                shared: class == 2,
                chain_epoch: 1,
                incarnation: 1,
                switch_id: 1,
                request: 1,
                lease_epoch: 1,
                sequence: 1,
                state: if with_state { &[1, 2, 3, 4] } else { &[] },
                packet: Some(&[0; 20]),
                ..Repr::new(message_type, Key(key))
            };
            messages.extend(repr.to_vec());
        }
    }
    messages
}

/// Frames: an IPv4 packet with a UDP datagram, one with a TCP segment, and what they
/// lack.
#[must_use]
pub fn frames() -> Vec<Vec<u8>> {
    let mut frames = messages();
    for protocol in [6, 17] {
        let mut frame = vec![2; ethernet::HEADER_LENGTH];
        frame[12..].copy_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
        frame.extend([
            0x45, 0, 0, 48, 0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend([0, 80, 0, 81, 0, 28, 0, 0]);
        frame.extend([
            0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
        ]);
        frames.push(frame);
    }
    frames
}
