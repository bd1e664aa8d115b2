//! Frames out of capture files: pcap (draft-ietf-opsawg-pcap) and the packets of pcapng
//! (draft-ietf-opsawg-pcapng), in either byte order.

use thiserror::Error;

/// Why a file gives no frames.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PcapError {
    /// It begins as no capture file does.
    #[error("it is no capture file: it begins neither as pcap nor as pcapng does")]
    Unknown,
    /// It ends within a packet or block.
    #[error("it ends within the packet or block that begins at byte {0}")]
    Cut(usize),
    /// A block of pcapng has a length that no block has.
    #[error("the block at byte {0} has the impossible length {1}")]
    Length(usize, u32),
}

/// A reader of 32-bit numbers in one byte order.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn word(self, bytes: &[u8], at: usize) -> Option<u32> {
        let word: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self.big {
            true => u32::from_be_bytes(word),
            false => u32::from_le_bytes(word),
        })
    }

    fn length(self, bytes: &[u8], at: usize) -> Option<usize> {
        self.word(bytes, at)
            .and_then(|length| usize::try_from(length).ok())
    }
}

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const ENHANCED: u32 = 6;
const SIMPLE: u32 = 3;

/// The frames of a capture file in order, as far as they were captured.
///
/// # Errors
///
/// [`PcapError`].
pub fn frames(bytes: &[u8]) -> Result<Vec<&[u8]>, PcapError> {
    let big = Order { big: true };
    match big.word(bytes, 0).ok_or(PcapError::Unknown)? {
        // Microseconds and nanoseconds.
        0xa1b2_c3d4 | 0xa1b2_3c4d => classic(bytes, big),
        0xd4c3_b2a1 | 0x4d3c_b2a1 => classic(bytes, Order { big: false }),
        SECTION => blocks(bytes),
        _ => Err(PcapError::Unknown),
    }
}

fn classic(bytes: &[u8], order: Order) -> Result<Vec<&[u8]>, PcapError> {
    const FILE_HEADER: usize = 24;
    const PACKET_HEADER: usize = 16;
    let mut frames = Vec::new();
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        let frame = order
            .length(bytes, at + 8)
            .and_then(|length| slice(bytes, at + PACKET_HEADER, length))
            .ok_or(PcapError::Cut(at))?;
        frames.push(frame);
        at += PACKET_HEADER + frame.len();
    }
    Ok(frames)
}

fn blocks(bytes: &[u8]) -> Result<Vec<&[u8]>, PcapError> {
    let mut frames = Vec::new();
    let mut order = Order { big: false };
    let mut at = 0;
    while at < bytes.len() {
        let cut = PcapError::Cut(at);
        let kind = order.word(bytes, at).ok_or(cut.clone())?;
        if kind == SECTION {
            let big = Order { big: true }.word(bytes, at + 8) == Some(BYTE_ORDER);
            order = Order { big };
        }
        let length = order.word(bytes, at + 4).ok_or(cut.clone())?;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(PcapError::Length(at, length));
        }
        let block = usize::try_from(length)
            .ok()
            .and_then(|length| slice(bytes, at, length))
            .ok_or(cut.clone())?;
        let body = &block[8..block.len() - 4];
        match kind {
            ENHANCED => {
                let frame = order
                    .length(body, 12)
                    .and_then(|length| slice(body, 20, length));
                frames.push(frame.ok_or(cut)?);
            }
            SIMPLE => {
                let length = order.length(body, 0).ok_or(cut)?;
                let captured = body.get(4..).unwrap_or_default();
                frames.push(&captured[..length.min(captured.len())]);
            }
            _ => {}
        }
        at += block.len();
    }
    Ok(frames)
}

fn slice(bytes: &[u8], from: usize, length: usize) -> Option<&[u8]> {
    bytes.get(from..from.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(big: bool, words: &[u32]) -> Vec<u8> {
        let bytes = words.iter().flat_map(|word| match big {
            true => word.to_be_bytes(),
            false => word.to_le_bytes(),
        });
        bytes.collect()
    }

    #[test]
    fn pcap_in_both_orders() {
        for big in [true, false] {
            let mut file = words(big, &[0xa1b2_c3d4, 0, 0, 0, 65535, 1]);
            file.extend(words(big, &[1, 0, 3, 60]));
            file.extend([1, 2, 3]);
            file.extend(words(big, &[2, 0, 1, 1]));
            file.push(9);
            assert_eq!(frames(&file), Ok(vec![&[1, 2, 3][..], &[9]]), "{big}");
            assert_eq!(frames(&file[..42]), Err(PcapError::Cut(24)));
            file.pop();
            assert_eq!(frames(&file), Err(PcapError::Cut(43)));
        }
    }

    #[test]
    fn pcapng_in_both_orders() {
        for big in [true, false] {
            let mut file = words(big, &[SECTION, 28, BYTE_ORDER, 1, 0, 0, 28]);
            file.extend(words(big, &[1, 20, 1, 0, 20]));
            file.extend(words(big, &[ENHANCED, 36, 0, 0, 0, 2, 2]));
            file.extend([7, 8, 0, 0]);
            file.extend(words(big, &[36]));
            file.extend(words(big, &[SIMPLE, 20, 3]));
            file.extend([4, 5, 6, 0]);
            file.extend(words(big, &[20]));
            assert_eq!(frames(&file), Ok(vec![&[7, 8][..], &[4, 5, 6]]), "{big}");
            assert_eq!(
                frames(&words(big, &[SECTION, 3, BYTE_ORDER])),
                Err(PcapError::Length(0, 3))
            );
        }
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(frames(b""), Err(PcapError::Unknown));
        assert_eq!(frames(b"#!/bin/sh"), Err(PcapError::Unknown));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            magic in prop::sample::select(vec![0xa1b2_c3d4_u32, 0xa1b2_3c4d, SECTION]),
            rest in prop::collection::vec(prop_oneof![Just(0_u8), Just(6), any::<u8>()], 0..300),
            big in any::<bool>(),
        ) {
            let mut file = words(big, &[magic]);
            file.extend(rest);
            if let Ok(frames) = frames(&file) {
                let total: usize = frames.iter().map(|frame| frame.len()).sum();
                prop_assert!(total <= file.len());
            }
        }
    }
}
