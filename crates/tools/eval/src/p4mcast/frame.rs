//! The message of the systems that multicast is compared with: the header of
//! `lab/eval/p4mcast/message.p4`, and buffers that are used again.

use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of the header.
pub const HEADER: usize = 24;

/// Types of messages.
pub mod kind {
    /// Sender to leader.
    pub const START: u8 = 1;
    /// Leader to members.
    pub const PROP: u8 = 2;
    /// Member to members.
    pub const ACK: u8 = 3;
    /// Member to receiver.
    pub const DELIVER: u8 = 4;
    /// Receiver to sender: ids follow the first word.
    pub const CREDIT: u8 = 5;
    /// Leader to members of its own group: its clock went forward.
    pub const BUMP: u8 = 6;
}

/// The header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// One of [`kind`].
    pub kind: u8,
    /// Map of the groups that are addressed.
    pub destinations: u8,
    /// Group whose leader proposed the timestamp.
    pub group: u8,
    /// Place of the switch that sends.
    pub origin: u8,
    /// Id of the message; its lowest bit is its sender.
    pub id: u32,
    /// Proposed or final timestamp.
    pub timestamp: u64,
    /// Number of the proposal among those of its leader.
    pub sequence: u32,
    /// Proposals of the own group's leader that had come when the message was decided.
    pub known: u32,
}

impl Header {
    /// Header and payload of a datagram.
    pub fn parse(datagram: &[u8]) -> Option<(Self, &[u8])> {
        let (header, payload) = datagram.split_first_chunk::<HEADER>()?;
        let word = |at: usize| {
            let bytes = header.get(at..).and_then(|rest| rest.first_chunk::<4>());
            u32::from_be_bytes(*bytes.unwrap_or(&[0; 4]))
        };
        let parsed = Self {
            kind: header[0],
            destinations: header[1],
            group: header[2],
            origin: header[3],
            id: word(4),
            timestamp: u64::from(word(8)) << 32 | u64::from(word(12)),
            sequence: word(16),
            known: word(20),
        };
        Some((parsed, payload))
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&[self.kind, self.destinations, self.group, self.origin]);
        bytes[4..8].copy_from_slice(&self.id.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[20..].copy_from_slice(&self.known.to_be_bytes());
        bytes
    }
}

/// Buffers of datagrams, used again as soon as the datagram has left.
#[derive(Debug, Default)]
pub struct Buffers(VecDeque<Arc<Vec<u8>>>);

impl Buffers {
    /// A datagram of a header and a payload, whose buffer is used again when it has left.
    pub fn datagram(&mut self, header: &Header, payload: &[u8]) -> Arc<Vec<u8>> {
        let buffer = self.kept(header, payload);
        self.0.push_back(Arc::clone(&buffer));
        buffer
    }

    /// The same, whose buffer is used again when it has left after [`leaving`](Self::leaving).
    pub fn kept(&mut self, header: &Header, payload: &[u8]) -> Arc<Vec<u8>> {
        let left = self.0.front();
        let left = left.is_some_and(|buffer| Arc::strong_count(buffer) == 1);
        let buffer = left.then(|| self.0.pop_front()).flatten();
        let mut buffer = buffer.unwrap_or_default();
        if let Some(bytes) = Arc::get_mut(&mut buffer) {
            bytes.clear();
            bytes.extend_from_slice(&header.bytes());
            bytes.extend_from_slice(payload);
        }
        buffer
    }

    /// A kept datagram with another header, copied only if the first has not left yet.
    pub fn leaving(&mut self, mut datagram: Arc<Vec<u8>>, header: &Header) -> Arc<Vec<u8>> {
        let bytes = Arc::get_mut(&mut datagram).and_then(|bytes| bytes.first_chunk_mut());
        if let Some(first) = bytes {
            *first = header.bytes();
            self.0.push_back(Arc::clone(&datagram));
            return datagram;
        }
        let payload = datagram.get(HEADER..).unwrap_or_default();
        self.datagram(header, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER_OF_ALL: Header = Header {
        kind: kind::PROP,
        destinations: 3,
        group: 1,
        origin: 4,
        id: 0x0102_0304,
        timestamp: 0x0506_0708_090a_0b0c,
        sequence: 0x0d0e_0f10,
        known: 0x1112_1314,
    };

    #[test]
    fn the_header_is_that_of_the_program() {
        let bytes = HEADER_OF_ALL.bytes();
        assert_eq!(bytes[..4], [2, 3, 1, 4]);
        let rest: Vec<u8> = (1..=0x14).collect();
        assert_eq!(bytes[4..], rest);
        let datagram = [&bytes[..], b"x"].concat();
        let parsed = Header::parse(&datagram);
        assert_eq!(parsed, Some((HEADER_OF_ALL, &b"x"[..])));
        assert_eq!(Header::parse(&bytes[1..]), None);
        let program = include_str!("../../../../../lab/eval/p4mcast/message.p4");
        let fields = program.split("header message_t {").nth(1);
        let fields = fields.and_then(|rest| rest.split('}').next());
        let widths = fields.unwrap_or_default().split("bit<").skip(1);
        let widths = widths.filter_map(|field| field.split('>').next()?.parse::<usize>().ok());
        assert_eq!(widths.collect::<Vec<_>>(), [8, 8, 8, 8, 32, 64, 32, 32]);
    }

    #[test]
    fn a_buffer_is_used_again_when_its_datagram_has_left() {
        let mut buffers = Buffers::default();
        let first = buffers.datagram(&HEADER_OF_ALL, b"first");
        let second = buffers.datagram(&HEADER_OF_ALL, b"second");
        assert_eq!(first[HEADER..], *b"first");
        let place = Arc::as_ptr(&first);
        drop(first);
        let third = buffers.datagram(&HEADER_OF_ALL, b"third");
        assert_eq!(Arc::as_ptr(&third), place);
        assert_eq!(second[HEADER..], *b"second");
        assert_eq!(third[HEADER..], *b"third");
    }

    #[test]
    fn what_is_kept_leaves_without_a_copy_once_it_has_left_before() {
        let mut buffers = Buffers::default();
        let other = Header {
            kind: kind::DELIVER,
            ..HEADER_OF_ALL
        };
        let kept = buffers.kept(&HEADER_OF_ALL, b"payload");
        let waits = Arc::clone(&kept);
        let copied = buffers.leaving(kept, &other);
        assert_ne!(Arc::as_ptr(&copied), Arc::as_ptr(&waits));
        assert_eq!(
            Header::parse(&waits),
            Some((HEADER_OF_ALL, &b"payload"[..]))
        );
        let place = Arc::as_ptr(&waits);
        let patched = buffers.leaving(waits, &other);
        assert_eq!(Arc::as_ptr(&patched), place);
        assert_eq!(Header::parse(&patched), Some((other, &b"payload"[..])));
        assert_eq!(patched, copied);
    }
}
