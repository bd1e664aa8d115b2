//! Messages sealed and opened per second, beside the two HMACs of equal bytes that must be
//! computed for it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use stateplane_bench::{Report, Sample, timed};
use stateplane_seal::{Config, Endpoint, Key, Opened, PeerConfig, TRAILER_LENGTH};
use std::hint::black_box;

/// A probe, a write with a small packet, a request with a full one.
const LENGTHS: [usize; 3] = [72, 200, 1_592];

/// Messages of one go.
const COUNT: usize = 4_096;

/// Bytes that the tag covers beside the message: the receiver's number and the trailer
/// without the tag.
const COVERED: usize = 4 + TRAILER_LENGTH - 16;

const KEY: [u8; 32] = [7; 32];

fn end(id: u32, peer: u32) -> Endpoint {
    let config = Config {
        id,
        peers: vec![PeerConfig {
            id: peer,
            keys: vec![(1, Key::new(KEY))],
            send_with: 1,
        }],
    };
    Endpoint::new(&config, id.into(), [id as u8; 32]).expect("keys fit together")
}

fn answer_of(opened: Opened) -> Vec<u8> {
    match opened {
        Opened::Heard { answer } | Opened::Refused { answer, .. } => {
            answer.map_or(Vec::new(), |answer| answer.0.to_vec())
        }
        Opened::Message { .. } => Vec::new(),
    }
}

fn seal(from: &mut Endpoint, to: u32, bytes: &mut [u8]) {
    let (message, trailer) = bytes.split_at_mut(bytes.len() - TRAILER_LENGTH);
    trailer.copy_from_slice(&from.seal(to, message).expect("a peer"));
}

/// Seals and opens messages of `length` bytes.
fn both_ends(length: usize) -> impl FnMut() -> Sample {
    let (mut a, mut b) = (end(1, 2), end(2, 1));
    let mut bytes = vec![5; length + TRAILER_LENGTH];
    seal(&mut a, 2, &mut bytes);
    let answer = answer_of(b.open(0, &bytes));
    let back = answer_of(a.open(0, &answer));
    b.open(0, &back);
    move || {
        timed(|| {
            for _ in 0..COUNT {
                seal(&mut a, 2, &mut bytes);
                let opened = b.open(0, black_box(&bytes));
                assert!(matches!(opened, Opened::Message { .. }), "{opened:?}");
            }
            COUNT as u64
        })
    }
}

/// Computes two tags over as many bytes.
fn tags(length: usize) -> impl FnMut() -> Sample {
    let keyed = Hmac::<Sha256>::new_from_slice(&KEY).expect("a key");
    let bytes = vec![5; length + COVERED];
    move || {
        timed(|| {
            for _ in 0..2 * COUNT {
                let mut mac = keyed.clone();
                mac.update(black_box(&bytes));
                black_box(mac.finalize());
            }
            COUNT as u64
        })
    }
}

fn main() -> std::io::Result<()> {
    let mut report = Report::new("seal", "messages/s");
    for length in LENGTHS {
        let name = format!("seal and open, {length} bytes");
        report.compare(&name, both_ends(length), "2 × HMAC-SHA-256", tags(length));
    }
    report.finish()
}
