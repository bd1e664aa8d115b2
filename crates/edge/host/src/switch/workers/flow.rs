//! Flow of a frame, as a network card with receive-side scaling computes it.

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(super) const ETHERTYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];
const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
/// Tags that are passed over.
const MAX_TAGS: usize = 2;
pub(super) const IPV6_BYTES: usize = 40;
/// TCP, UDP, DCCP, SCTP: ports come first.
pub(super) const WITH_PORTS: [u8; 4] = [6, 17, 33, 132];

/// A hash of the frame's flow, the same for both directions: of the addresses and, of TCP, UDP,
/// DCCP and SCTP that are not in fragments, the ports; of other frames of the Ethernet addresses.
/// Without `key`, flows with equal hashes cannot be computed.
pub fn flow_hash(frame: &[u8], key: u64) -> u64 {
    let (ethertype, packet) = behind_tags(frame);
    let hash = match ethertype {
        Some(ETHERTYPE_IPV4) => ipv4(packet, key),
        Some(ETHERTYPE_IPV6) => ipv6(packet, key),
        _ => None,
    };
    hash.unwrap_or_else(|| match (frame.get(..6), frame.get(6..12)) {
        (Some(to), Some(from)) => both(key, (from, 0), (to, 0)),
        _ => 0,
    })
}

/// The type of what a frame carries behind its tags, unless it is cut short, and that itself.
pub(super) fn behind_tags(frame: &[u8]) -> (Option<u16>, &[u8]) {
    let (mut at, mut ethertype) = (ETHERNET_BYTES, word(frame, 12));
    for _ in 0..MAX_TAGS {
        match ethertype {
            Some(tag) if ETHERTYPES_VLAN.contains(&tag) => {
                ethertype = word(frame, at + 2);
                at += TAG_BYTES;
            }
            _ => break,
        }
    }
    (ethertype, frame.get(at..).unwrap_or(&[]))
}

/// The big-endian number at `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn ipv4(packet: &[u8], key: u64) -> Option<u64> {
    let header = usize::from(packet.first()? & 0xf) * 4;
    let (from, to) = (packet.get(12..16)?, packet.get(16..20)?);
    let ports = if WITH_PORTS.contains(&packet[9]) && !is_fragment(packet)? {
        (word(packet, header), word(packet, header + 2))
    } else {
        (None, None)
    };
    let [from_port, to_port] = [ports.0, ports.1].map(|port| port.unwrap_or(0));
    Some(both(key, (from, from_port), (to, to_port)))
}

/// True if an IPv4 packet is part of one; `None` if it is cut short.
pub(super) fn is_fragment(packet: &[u8]) -> Option<bool> {
    Some(word(packet, 6)? & 0x3fff != 0)
}

fn ipv6(packet: &[u8], key: u64) -> Option<u64> {
    let (from, to) = (packet.get(8..24)?, packet.get(24..40)?);
    let ports = if WITH_PORTS.contains(&packet[6]) {
        (word(packet, IPV6_BYTES), word(packet, IPV6_BYTES + 2))
    } else {
        (None, None)
    };
    let [from_port, to_port] = [ports.0, ports.1].map(|port| port.unwrap_or(0));
    Some(both(key, (from, from_port), (to, to_port)))
}

/// A hash of two ends that does not tell which is which.
fn both(key: u64, from: (&[u8], u16), to: (&[u8], u16)) -> u64 {
    mixed(end(key, from).wrapping_add(end(key, to)))
}

fn end(key: u64, (address, port): (&[u8], u16)) -> u64 {
    // Mixed once before what the sender chooses comes in, and once after each part.
    let mut hash = mixed(key ^ u64::from(port));
    for bytes in address.chunks(4) {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        hash = mixed(hash ^ u64::from(u32::from_be_bytes(word)) << 16);
    }
    hash
}

/// Each bit of the result depends on each bit of `value` (the finaliser of SplitMix64).
pub(super) fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An IPv4 frame of UDP, with `tags` before its type.
    fn frame(from: [u8; 4], from_port: u16, to: [u8; 4], to_port: u16, tags: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for _ in 0..tags {
            frame.extend([0x81, 0, 0, 7]);
        }
        frame.extend([0x08, 0, 0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(from);
        frame.extend(to);
        frame.extend(from_port.to_be_bytes());
        frame.extend(to_port.to_be_bytes());
        frame.extend([0, 8, 0, 0]);
        frame
    }

    const A: [u8; 4] = [10, 0, 0, 1];
    const B: [u8; 4] = [10, 0, 0, 2];

    #[test]
    fn both_directions_fall_together() {
        let there = flow_hash(&frame(A, 1000, B, 53, 0), 7);
        assert_eq!(there, flow_hash(&frame(B, 53, A, 1000, 0), 7));
        assert_eq!(
            there,
            flow_hash(&frame(A, 1000, B, 53, 2), 7),
            "tags do not count"
        );
        assert_ne!(there, flow_hash(&frame(A, 1001, B, 53, 0), 7));
        assert_ne!(there, flow_hash(&frame(A, 53, B, 1000, 0), 7));
    }

    #[test]
    fn fragments_of_one_datagram_fall_together() {
        let mut first = frame(A, 1000, B, 53, 0);
        first[20] = 0x20;
        let mut second = frame(A, 7777, B, 8888, 0);
        second[20..22].copy_from_slice(&[0, 8]);
        assert_eq!(flow_hash(&first, 7), flow_hash(&second, 7));
    }

    #[test]
    fn flows_that_fall_together_by_one_key_do_not_by_another() {
        let worker = |port, key| flow_hash(&frame(A, port, B, 443, 0), key) % 4;
        let chosen: Vec<u16> = (1024..9024).filter(|port| worker(*port, 0) == 0).collect();
        for key in [1, 1 << 63, 0x0123_4567_89ab_cdef] {
            let together = chosen
                .iter()
                .filter(|port| worker(**port, key) == 0)
                .count();
            let share = together * 100 / chosen.len();
            assert!((20..30).contains(&share), "{share} % with {key:#x}");
        }
    }

    #[test]
    fn flows_spread_evenly() {
        let mut counts = [0u32; 4];
        for port in 0..4000 {
            let hash = flow_hash(&frame(A, 1024 + port, B, 443, 0), 7);
            counts[(hash % 4) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (900..1100).contains(count)),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_hash(bytes: Vec<u8>) {
            flow_hash(&bytes, 7);
        }

        #[test]
        fn any_packet_has_a_hash(ethertype in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100]),
                                 bytes: Vec<u8>) {
            let mut frame = vec![0; 12];
            frame.extend(ethertype.to_be_bytes());
            frame.extend(bytes);
            flow_hash(&frame, 7);
        }
    }
}
