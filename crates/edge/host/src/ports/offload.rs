//! Undoes a sender's or receiver's offloading: restores tags that lie beside a frame, and completes
//! missing checksums.

use stateplane_wire::checksum::Sum;

/// Bytes of an IEEE 802.1Q tag.
pub(crate) const TAG_BYTES: usize = 4;

/// Position of a frame's missing checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartialChecksum {
    /// First byte covered; it covers all from there.
    pub(crate) start: u16,
    /// Offset of the checksum from `start`.
    pub(crate) offset: u16,
}

/// An IEEE 802.1Q tag that was taken out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VlanTag {
    /// Tag protocol: 0x8100, or 0x88a8 for a service tag.
    pub(crate) protocol: u16,
    /// Priority, drop eligibility and VLAN number.
    pub(crate) control: u16,
}

/// Completes a checksum. Its place holds the sum over the pseudo header, as Linux
/// leaves it there. Returns whether the place lies in the frame.
pub(crate) fn complete_checksum(frame: &mut [u8], partial: PartialChecksum) -> bool {
    let start = usize::from(partial.start);
    let place = start + usize::from(partial.offset);
    if place + 2 > frame.len() {
        return false;
    }
    let checksum = match Sum::new().over(&frame[start..]).finish() {
        // In UDP 0 stands for no checksum; elsewhere the two are the same number.
        0 => 0xffff,
        checksum => checksum,
    };
    frame[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Puts `tag` back behind the addresses. `buffer` has [`TAG_BYTES`] of room before
/// the frame; the frame then begins at its first byte. Returns whether there were
/// addresses.
pub(crate) fn insert_tag(buffer: &mut [u8], tag: VlanTag) -> bool {
    const ADDRESSES: usize = 12;
    if buffer.len() < TAG_BYTES + ADDRESSES {
        return false;
    }
    buffer.copy_within(TAG_BYTES..TAG_BYTES + ADDRESSES, 0);
    let [a, b] = tag.protocol.to_be_bytes();
    let [c, d] = tag.control.to_be_bytes();
    buffer[ADDRESSES..ADDRESSES + TAG_BYTES].copy_from_slice(&[a, b, c, d]);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_completed_checksum_verifies() {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        for length in [8_usize, 9, 30, 1400] {
            let pseudo = || Sum::new().over_pseudo_header(source, destination, 17, length as u16);
            let mut frame = vec![0; 34 + length];
            for (i, byte) in frame[34..].iter_mut().enumerate() {
                *byte = (i * 7) as u8;
            }
            let not_complemented = !pseudo().finish();
            frame[40..42].copy_from_slice(&not_complemented.to_be_bytes());
            assert!(complete_checksum(
                &mut frame,
                PartialChecksum {
                    start: 34,
                    offset: 6
                }
            ));
            assert_eq!(pseudo().over(&frame[34..]).finish(), 0, "length {length}");
        }
    }

    #[test]
    fn a_checksum_that_comes_to_zero_is_written_as_ones() {
        let mut frame = vec![0xff, 0xff, 0, 0];
        assert!(complete_checksum(
            &mut frame,
            PartialChecksum {
                start: 0,
                offset: 2
            }
        ));
        assert_eq!(frame, [0xff; 4]);
    }

    #[test]
    fn a_place_outside_the_frame_is_refused() {
        for (start, offset) in [(0, 9), (10, 0), (65_535, 65_535), (5, 4)] {
            let mut frame = vec![1; 10];
            let partial = PartialChecksum { start, offset };
            assert!(!complete_checksum(&mut frame, partial), "{partial:?}");
            assert_eq!(frame, [1; 10]);
        }
    }

    #[test]
    fn a_tag_goes_behind_the_addresses() {
        let mut buffer = vec![0; TAG_BYTES];
        buffer.extend(1..=16);
        assert!(insert_tag(
            &mut buffer,
            VlanTag {
                protocol: 0x8100,
                control: 0x2003
            }
        ));
        assert_eq!(buffer[..12], (1..=12).collect::<Vec<u8>>());
        assert_eq!(buffer[12..16], [0x81, 0, 0x20, 3]);
        assert_eq!(buffer[16..], [13, 14, 15, 16]);
        assert!(!insert_tag(
            &mut [0; 15],
            VlanTag {
                protocol: 0x8100,
                control: 1
            }
        ));
    }
}
