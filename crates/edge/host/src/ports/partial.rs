//! Finds checksums that a sender left for hardware to complete, where nothing but the
//! frame itself can tell.
//!
//! Linux leaves the sum over the pseudo header in the place of such a checksum. A right
//! checksum may by chance be the same number; completing it then writes it anew.

use super::offload::{PartialChecksum, complete_checksum};
use stateplane_wire::checksum::Sum;

const VLAN: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Completes the TCP or UDP checksum of `frame` if it holds the pseudo header's sum only.
pub(crate) fn complete_if_partial(frame: &mut [u8]) {
    if let Some(partial) = partial(frame) {
        complete_checksum(frame, partial);
    }
}

fn partial(frame: &[u8]) -> Option<PartialChecksum> {
    let mut at = 12;
    let mut kind = half(frame, at)?;
    while VLAN.contains(&kind) {
        at += 4;
        kind = half(frame, at)?;
    }
    let network = at + 2;
    let (addresses, protocol, start, length) = match kind {
        IPV4 => ipv4(frame, network)?,
        IPV6 => ipv6(frame, network)?,
        _ => return None,
    };
    let offset = match protocol {
        TCP => 16,
        UDP => 6,
        _ => return None,
    };
    let found = half(frame, start + offset)?;
    if found == 0 && protocol == UDP {
        return None;
    }
    let pseudo = !Sum::new()
        .over(addresses)
        .over(&[0, protocol])
        .over(&(length as u32).to_be_bytes())
        .finish();
    // A frame's padding is not part of the segment, but the completed sum covers all
    // that follows; padding is zero where senders leave checksums out.
    (found == pseudo).then_some(PartialChecksum {
        start: start as u16,
        offset: offset as u16,
    })
}

/// Addresses, protocol, where the segment starts and its length.
type Segment<'a> = (&'a [u8], u8, usize, usize);

fn ipv4(frame: &[u8], at: usize) -> Option<Segment<'_>> {
    let header = usize::from(frame.get(at)? & 0xf) * 4;
    let total = usize::from(half(frame, at + 2)?);
    let fragment = half(frame, at + 6)? & 0x3fff;
    if fragment != 0 || header < 20 {
        return None;
    }
    let addresses = frame.get(at + 12..at + 20)?;
    Some((
        addresses,
        frame[at + 9],
        at + header,
        total.checked_sub(header)?,
    ))
}

fn ipv6(frame: &[u8], at: usize) -> Option<Segment<'_>> {
    let length = usize::from(half(frame, at + 4)?);
    let addresses = frame.get(at + 8..at + 40)?;
    Some((addresses, frame[at + 6], at + 40, length))
}

fn half(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram over IPv4 or IPv6, tagged or not, and where its segment starts.
    fn datagram(version: u8, tagged: bool, payload: &[u8]) -> (Vec<u8>, usize) {
        let mut frame = vec![2; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 7]);
        }
        let length = (8 + payload.len()) as u16;
        if version == 4 {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + length).to_be_bytes());
            frame.extend([0, 1, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([UDP, 64]);
            frame.extend([0xfd; 32]);
        }
        let start = frame.len();
        frame.extend([0, 1, 0, 2]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(payload);
        (frame, start)
    }

    /// The segment's sum without complement, over its pseudo header and `over`.
    fn sum(frame: &[u8], start: usize, over: &[u8]) -> u16 {
        let addresses = if frame[start - 20] == 0x45 {
            &frame[start - 8..start]
        } else {
            &frame[start - 32..start]
        };
        !Sum::new()
            .over(addresses)
            .over(&[0, UDP])
            .over(&((frame.len() - start) as u16).to_be_bytes())
            .over(over)
            .finish()
    }

    fn put(frame: &mut [u8], start: usize, checksum: u16) {
        frame[start + 6..start + 8].copy_from_slice(&checksum.to_be_bytes());
    }

    #[test]
    fn a_missing_checksum_is_completed() {
        for version in [4, 6] {
            for tagged in [false, true] {
                for payload in [&b"payload"[..], b"even", b""] {
                    let (mut frame, start) = datagram(version, tagged, payload);
                    let right = !sum(&frame, start, &frame[start..]);
                    let pseudo = sum(&frame, start, &[]);
                    put(&mut frame, start, pseudo);
                    complete_if_partial(&mut frame);
                    assert_eq!(half(&frame, start + 6), Some(right), "{version} {tagged}");
                }
            }
        }
    }

    #[test]
    fn other_frames_stay_as_they_are() {
        let (mut whole, start) = datagram(4, false, b"payload");
        let right = !sum(&whole, start, &whole[start..]);
        for checksum in [right, right ^ 1, 0] {
            put(&mut whole, start, checksum);
            let before = whole.clone();
            complete_if_partial(&mut whole);
            assert_eq!(whole, before, "checksum {checksum:#x}");
        }
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            complete_if_partial(&mut cut);
        }
    }
}
