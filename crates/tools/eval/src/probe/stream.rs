//! Flow and length of each packet of a stream: flows that take turns, or those of a capture.

use super::traffic::{Place, place};
use crate::error::EvalError;
use stateplane_host::ports::read_capture;
use stateplane_wire::ethernet;
use stateplane_wire::ipv4::{HEADER_LENGTH, PROTOCOL_TCP, PROTOCOL_UDP, field};
use std::collections::BTreeMap;
use std::path::Path;

/// IEEE 802.1Q.
const TYPE_VLAN: u16 = 0x8100;
/// The longest datagram that a link of the lab takes; a capture made before the sender's card
/// cut segments up has longer ones.
const LONGEST: usize = 1500;

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its flow, and which of its packets it is.
    pub place: Place,
    /// Bytes of its IP datagram, if the stream says.
    pub length: Option<usize>,
}

/// All packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Flows that take turns.
    Turns {
        /// Number of flows that take turns.
        window: u64,
        /// Packets after which another takes a flow's place.
        flow_packets: u64,
    },
    /// Flows of a capture, again and again, each time as other flows.
    Captured {
        /// At least one.
        packets: Vec<Packet>,
        /// Flows among them.
        flows: u64,
    },
}

impl Stream {
    /// The TCP and UDP packets over IPv4 of a capture (pcap or pcapng, of Ethernet frames). Both
    /// directions between two endpoints are one flow. Of a frame that was not kept whole its
    /// first bytes suffice.
    ///
    /// # Errors
    /// `EV003` if it cannot be read or has no such packets.
    pub fn read(path: &Path) -> Result<Self, EvalError> {
        let refused = |reason: String| EvalError::Refused {
            what: "--capture".to_owned(),
            reason,
        };
        let frames = read_capture(path).map_err(|error| refused(error.to_string()))?;
        let frames = frames.iter().map(|(_, frame)| frame.as_slice());
        Self::of(frames)
            .ok_or_else(|| refused(format!("{} has no TCP or UDP over IPv4", path.display())))
    }

    fn of<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let mut known: BTreeMap<Flow, Place> = BTreeMap::new();
        let mut packets = Vec::new();
        for (flow, length) in frames.filter_map(flow_of) {
            let next = known.len() as u64;
            let place = known.entry(flow).and_modify(|place| place.packet += 1);
            let place = *place.or_insert(Place {
                flow: next,
                packet: 0,
            });
            packets.push(Packet {
                place,
                length: Some(length.min(LONGEST)),
            });
        }
        let flows = known.len() as u64;
        (flows > 0).then_some(Self::Captured { packets, flows })
    }

    /// Packet `number`, from 0.
    pub fn packet(&self, number: u64) -> Packet {
        match self {
            Self::Turns {
                window,
                flow_packets,
            } => Packet {
                place: place(number, *window, *flow_packets),
                length: None,
            },
            Self::Captured { packets, flows } => {
                let count = packets.len() as u64;
                let mut packet = packets[(number % count) as usize];
                packet.place.flow += number / count * flows;
                packet
            }
        }
    }
}

/// A protocol and two endpoints, the lesser first.
type Flow = (u8, [Endpoint; 2]);
/// Address and port.
type Endpoint = ([u8; 4], [u8; 2]);

/// A frame's flow and the length of its datagram.
fn flow_of(frame: &[u8]) -> Option<(Flow, usize)> {
    let two = |at: usize| Some([*frame.get(at)?, *frame.get(at + 1)?]);
    let mut at = ethernet::HEADER_LENGTH;
    let mut kind = u16::from_be_bytes(two(at - 2)?);
    if kind == TYPE_VLAN {
        at += 4;
        kind = u16::from_be_bytes(two(at - 2)?);
    }
    let datagram = frame.get(at..)?;
    let header = datagram.get(..HEADER_LENGTH)?;
    let words = usize::from(header[field::VERSION] & 0xf);
    let protocol = header[field::PROTOCOL];
    // Only the first fragment has ports.
    let offset = u16::from_be_bytes(two(at + field::FLAGS)?) & 0x1fff;
    if kind != ethernet::TYPE_IPV4
        || header[field::VERSION] >> 4 != 4
        || !matches!(protocol, PROTOCOL_TCP | PROTOCOL_UDP)
        || offset != 0
    {
        return None;
    }
    let address = |from: usize| {
        [
            header[from],
            header[from + 1],
            header[from + 2],
            header[from + 3],
        ]
    };
    let ports = at + words * 4;
    let mut ends = [
        (address(field::SOURCE), two(ports)?),
        (address(field::DESTINATION), two(ports + 2)?),
    ];
    ends.sort_unstable();
    let length = u16::from_be_bytes(two(at + field::TOTAL_LENGTH)?);
    Some(((protocol, ends), length.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// The first bytes of a frame between 10.0.0.`a` and 10.0.0.`b`, at ports of these numbers.
    fn frame(a: u8, b: u8, length: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
        frame.extend([0x45, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([
            0,
            0,
            0x40,
            0,
            64,
            PROTOCOL_UDP,
            0,
            0,
            10,
            0,
            0,
            a,
            10,
            0,
            0,
            b,
        ]);
        frame.extend([0, a, 0, b]);
        frame
    }

    fn places(frames: &[Vec<u8>], numbers: std::ops::Range<u64>) -> Vec<(u64, u64)> {
        let stream = Stream::of(frames.iter().map(Vec::as_slice)).unwrap();
        let packets = numbers.map(|number| stream.packet(number).place);
        packets.map(|place| (place.flow, place.packet)).collect()
    }

    #[test]
    fn both_directions_are_one_flow() {
        let frames = [frame(1, 2, 60), frame(3, 2, 60), frame(2, 1, 1400)];
        assert_eq!(places(&frames, 0..3), [(0, 0), (1, 0), (0, 1)]);
        // Once more, as other flows.
        assert_eq!(places(&frames, 3..6), [(2, 0), (3, 0), (2, 1)]);
        let stream = Stream::of(frames.iter().map(Vec::as_slice)).unwrap();
        assert_eq!(stream.packet(2).length, Some(1400));
    }

    #[test]
    fn tags_are_passed_over_and_long_segments_are_cut() {
        let mut tagged = frame(1, 2, 9000);
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        let stream = Stream::of([tagged.as_slice(), &frame(1, 2, 60)].into_iter()).unwrap();
        assert_eq!(stream.packet(0).length, Some(LONGEST));
        assert_eq!(stream.packet(1).place.packet, 1);
    }

    #[test]
    fn other_packets_are_left_out() {
        let mut other = frame(1, 2, 60);
        other[12..14].copy_from_slice(&[0x86, 0xdd]);
        let mut fragment = frame(1, 2, 60);
        fragment[21] = 9;
        let short = frame(1, 2, 60)[..36].to_vec();
        let all = [other, fragment, short];
        assert_eq!(Stream::of(all.iter().map(Vec::as_slice)), None);
    }

    #[test]
    fn any_frames_do() {
        let mut random = SmallRng::seed_from_u64(3);
        for _ in 0..20_000 {
            let mut frame = frame(1, 2, 60);
            frame.truncate(random.random_range(0..=frame.len()));
            for _ in 0..random.random_range(0..4) {
                if !frame.is_empty() {
                    let at = random.random_range(0..frame.len());
                    frame[at] = random.random();
                }
            }
            if let Some(stream) = Stream::of([frame.as_slice()].into_iter()) {
                assert!(
                    stream
                        .packet(0)
                        .length
                        .is_some_and(|length| length <= LONGEST)
                );
            }
        }
    }

    #[test]
    fn what_is_no_capture_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.pcap");
        assert_eq!(Stream::read(&path).unwrap_err().code(), "EV003");
        std::fs::write(&path, b"no capture at all").unwrap();
        let error = Stream::read(&path).unwrap_err();
        assert!(error.to_string().contains("a.pcap"), "{error}");
    }
}
