//! Network packets of a capture, whatever its links.

use super::records;
use super::source::Record;
use crate::ports::PortError;
use pcap_file::DataLink;
use std::path::Path;
use std::time::Duration;

/// Bytes of the headers of Linux's cooked captures, versions 1 and 2.
const COOKED: usize = 16;
const COOKED_2: usize = 20;
const ETHERNET: usize = 14;
/// Bytes of a tag of IEEE 802.1Q.
const TAG: usize = 4;

const LINKS: &[DataLink] = &[
    DataLink::ETHERNET,
    DataLink::RAW,
    DataLink::IPV4,
    DataLink::IPV6,
    DataLink::LINUX_SLL,
    DataLink::LINUX_SLL2,
];

/// A packet of a capture without its link's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Time since the capture's first packet.
    pub at: Duration,
    /// Bytes that were on the wire, of which fewer may have been kept.
    pub length: usize,
    /// True if it is IPv4 or IPv6.
    pub is_ip: bool,
    /// The bytes that were kept, from the network header on.
    pub bytes: Vec<u8>,
}

/// All packets of a capture, of Ethernet (with at most two tags of 802.1Q), raw IP or Linux's cooked
/// link types, each with its time since the first.
///
/// # Errors
///
/// [`PortError::Capture`] if it cannot be read, is cut short, has more than 1 GiB of packets, or
/// has packets of another link type.
pub fn read_packets(path: &Path) -> Result<Vec<CapturedPacket>, PortError> {
    Ok(records(path, LINKS)?.into_iter().map(packet).collect())
}

fn packet(record: Record) -> CapturedPacket {
    let Record {
        at,
        link,
        length,
        mut bytes,
    } = record;
    let (header, is_ip) = match link {
        DataLink::ETHERNET => ethernet(&bytes),
        DataLink::LINUX_SLL => (COOKED, is_ip(half(&bytes, COOKED - 2))),
        DataLink::LINUX_SLL2 => (COOKED_2, is_ip(half(&bytes, 0))),
        _ => (0, true),
    };
    bytes.drain(..header.min(bytes.len()));
    CapturedPacket {
        at,
        length: length.saturating_sub(header),
        is_ip,
        bytes,
    }
}

/// Bytes of the header, and whether IP follows.
fn ethernet(frame: &[u8]) -> (usize, bool) {
    let mut header = ETHERNET;
    let mut ether_type = half(frame, header - 2);
    for _ in 0..2 {
        if let Some(0x8100 | 0x88a8) = ether_type {
            header += TAG;
            ether_type = half(frame, header - 2);
        }
    }
    (header, is_ip(ether_type))
}

fn is_ip(ether_type: Option<u16>) -> bool {
    matches!(ether_type, Some(0x0800 | 0x86dd))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(link: DataLink, bytes: &[u8]) -> (usize, bool, Vec<u8>) {
        let packet = packet(Record {
            at: Duration::ZERO,
            link,
            length: 100,
            bytes: bytes.to_vec(),
        });
        (packet.length, packet.is_ip, packet.bytes)
    }

    #[test]
    fn headers_of_links_are_taken_off() {
        let ip = [0x45, 0];
        let ethernet = [&[0; 12][..], &[8, 0], &ip].concat();
        assert_eq!(taken(DataLink::ETHERNET, &ethernet), (86, true, ip.into()));
        let tagged = [
            &[0; 12][..],
            &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 0x86, 0xdd],
            &ip,
        ]
        .concat();
        assert_eq!(taken(DataLink::ETHERNET, &tagged), (78, true, ip.into()));
        let arp = [&[0; 12][..], &[8, 6], &ip].concat();
        assert_eq!(taken(DataLink::ETHERNET, &arp), (86, false, ip.into()));
        let cooked = [&[0; 14][..], &[8, 0], &ip].concat();
        assert_eq!(taken(DataLink::LINUX_SLL, &cooked), (84, true, ip.into()));
        let cooked = [&[8, 0][..], &[0; 18], &ip].concat();
        assert_eq!(taken(DataLink::LINUX_SLL2, &cooked), (80, true, ip.into()));
        assert_eq!(taken(DataLink::RAW, &ip), (100, true, ip.into()));
    }

    #[test]
    fn packets_cut_within_their_links_header_are_no_ip() {
        for kept in 0..14 {
            let (_, is_ip, bytes) = taken(DataLink::ETHERNET, &vec![0; kept]);
            assert!(!is_ip && bytes.is_empty(), "{kept}");
        }
    }
}
