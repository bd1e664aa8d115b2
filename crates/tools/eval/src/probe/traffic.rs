//! Traffic of the measuring host through each application: flows that begin, go on and are followed
//! by others, one packet as good as the next.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use stateplane_apps::{Segment, number_mark};
use stateplane_wire::ethernet;
use stateplane_wire::ipv4::PROTOCOL_UDP;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Ethernet addresses of `lab/eval.toml`: of the host's two interfaces, and of the switch's
/// facing them.
pub const HOST: [[u8; 6]; 2] = [[2, 0, 0, 0, 0xb1, 1], [2, 0, 0, 0, 0xb2, 1]];
const SWITCH: [[u8; 6]; 2] = [[2, 0, 0, 0, 0xa1, 0], [2, 0, 0, 0, 0xa1, 1]];

const ECHO: u16 = 7;
/// `SEQUENCER_PORT` of `apps/counter`.
const SEQUENCER: u16 = 5000;
const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 3), 80);
/// What `apps/serving-gateway/switch.toml` has.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
const SIGNALLING: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 12), 4802);
const CONTROLLER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 200), 4000);
const GTP_U: u16 = 2152;
const BASE_STATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 10);
const PACKET_GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 10);
/// Data packets for each signalling packet (RedPlane §7.1).
const DATA_PER_SIGNAL: u64 = 17;
/// What `apps/key-value/switch.toml` has.
const STORE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 4800);

/// IEEE 802.1Q, and the tenant of `lab/eval/heavy-hitter.toml`.
const TAG: [u8; 4] = [0x81, 0, 0, 100];

/// The applications of the paper's evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Application {
    /// Address translation: reads, and the store writes.
    Nat,
    /// A stateful firewall: the first packet of a flow writes.
    Firewall,
    /// A load balancer: the first packet of a flow writes.
    LoadBalancer,
    /// A serving gateway: signalling writes.
    ServingGateway,
    /// Heavy hitters: snapshots, no packet waits.
    HeavyHitter,
    /// A counter of which every packet writes.
    Counter,
    /// A key-value store with as many updates as one likes.
    KeyValue,
}

impl Application {
    /// Name of its folder in `apps`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nat => "nat",
            Self::Firewall => "firewall",
            Self::LoadBalancer => "load-balancer",
            Self::ServingGateway => "serving-gateway",
            Self::HeavyHitter => "heavy-hitter",
            Self::Counter => "counter",
            Self::KeyValue => "key-value",
        }
    }

    /// Bytes in front of the datagram of its frames.
    pub fn link_header_length(self) -> usize {
        let tag = match self {
            Self::HeavyHitter => TAG.len(),
            _ => 0,
        };
        ethernet::HEADER_LENGTH + tag
    }

    /// True if a packet is to write its flow's state.
    pub fn writes(self, place: Place, number: u64, updates: u32) -> bool {
        match self {
            Self::Nat | Self::HeavyHitter => false,
            Self::Firewall | Self::LoadBalancer => place.packet == 0,
            Self::ServingGateway => place.packet.is_multiple_of(DATA_PER_SIGNAL + 1),
            Self::Counter => true,
            Self::KeyValue => {
                // Spread by a multiplicative hash, so that updates come at any time.
                let drawn = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 100;
                drawn < u64::from(updates)
            }
        }
    }

    /// From one packet of a flow that writes to the next, in packets, where that is a number.
    pub fn write_interval(self) -> Option<f64> {
        match self {
            Self::ServingGateway => Some((DATA_PER_SIGNAL + 1) as f64),
            Self::Counter => Some(1.0),
            Self::Nat | Self::HeavyHitter | Self::Firewall | Self::LoadBalancer => None,
            Self::KeyValue => None,
        }
    }
}

/// One packet of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its flow, from 0.
    pub flow: u64,
    /// Index of the packet in its flow, from 0.
    pub packet: u64,
}

/// Place of packet `number` in a stream of `window` flows that take turns and are replaced after
/// `flow_packets` packets each. The first ones are the shorter the later they begin, so that from
/// then on flows begin evenly spaced.
pub fn place(number: u64, window: u64, flow_packets: u64) -> Place {
    let (window, flow_packets) = (window.max(1), flow_packets.max(1));
    let (turn, at) = (number / window, number % window);
    let shorter = flow_packets / window * at + flow_packets % window * at / window;
    match turn.checked_sub(flow_packets - shorter) {
        None => Place {
            flow: at,
            packet: turn,
        },
        Some(turn) => Place {
            flow: at + window * (1 + turn / flow_packets),
            packet: turn % flow_packets,
        },
    }
}

/// A frame of the stream: by which of the host's interfaces it leaves (0 inside, 1 outside),
/// and its bytes, which end with the mark of `number`. `padding` bytes lie before the mark.
/// Of a hundred packets to the key-value store, `updates` write.
pub fn frame(
    application: Application,
    place: Place,
    number: u64,
    padding: usize,
    updates: u32,
) -> (usize, Vec<u8>) {
    let flow = place.flow;
    let inside = endpoint([10, 0, 0], flow, None);
    let outside = endpoint([198, 51, 100], flow, Some(ECHO));
    let id = (flow as u32).wrapping_add(1).to_be_bytes();
    let (side, source, destination, payload) = match application {
        Application::Nat | Application::Firewall | Application::HeavyHitter => {
            (0, inside, outside, Vec::new())
        }
        Application::LoadBalancer => (1, endpoint([198, 51, 100], flow, None), SERVICE, Vec::new()),
        Application::Counter => {
            let sequencer = SocketAddrV4::new(*outside.ip(), SEQUENCER);
            (0, inside, sequencer, vec![0; 8])
        }
        Application::KeyValue => {
            let update = application.writes(place, number, updates);
            let value = if update { number + 1 } else { 0 };
            let operation = if update { 2 } else { 1 };
            let key = (flow + 1).to_be_bytes();
            let payload = [&[operation, 0][..], &key, &value.to_be_bytes()].concat();
            (0, inside, STORE, payload)
        }
        Application::ServingGateway if application.writes(place, number, updates) => {
            let operation = if place.packet == 0 { 1 } else { 2 };
            let tunnel = (number as u32 & 0xff_ffff).to_be_bytes();
            let payload = [
                &[operation, 0][..],
                &id,
                &BASE_STATION.octets(),
                &tunnel,
                &PACKET_GATEWAY.octets(),
                &tunnel,
            ];
            (0, CONTROLLER, SIGNALLING, payload.concat())
        }
        Application::ServingGateway => {
            // Version 1, GTP, no optional part; a G-PDU (TS 29.281).
            let length = (padding as u16 + 16).to_be_bytes();
            let payload = [&[0x30, 255][..], &length, &id].concat();
            let from = SocketAddrV4::new(BASE_STATION, GTP_U);
            (0, from, SocketAddrV4::new(GATEWAY, GTP_U), payload)
        }
    };
    let padding = vec![0; padding];
    let segment = Segment {
        protocol: PROTOCOL_UDP,
        source,
        destination,
        control: 0,
        sequence: 0,
        acknowledgement: 0,
        payload: [&payload[..], &padding, &number_mark(number)].concat(),
    };
    let mut frame = Vec::with_capacity(128);
    frame.extend(SWITCH[side]);
    frame.extend(HOST[side]);
    if application == Application::HeavyHitter {
        frame.extend(TAG);
    }
    frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(segment.to_datagram());
    (side, frame)
}

/// A host's end of a flow: in one of 200 hosts, at a port of its own.
fn endpoint(network: [u8; 3], flow: u64, port: Option<u16>) -> SocketAddrV4 {
    let [a, b, c] = network;
    let host = Ipv4Addr::new(a, b, c, (flow % 200) as u8 + 11);
    let own = 1024 + (flow / 200 % 60_000) as u16;
    SocketAddrV4::new(host, port.unwrap_or(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_apps::number_in;
    use std::collections::BTreeSet;

    #[test]
    fn flows_take_turns_and_are_replaced() {
        let places: Vec<_> = (0..12).map(|number| place(number, 2, 4)).collect();
        let flows: Vec<_> = places.iter().map(|place| place.flow).collect();
        assert_eq!(flows, [0, 1, 0, 1, 0, 3, 0, 3, 2, 3, 2, 3]);
        assert_eq!(places[4].packet, 2);
        assert_eq!(places[5].packet, 0);
        assert_eq!(place(7, 0, 0).flow, 7);
        let endless = place(u64::MAX, 64, u64::MAX);
        assert_eq!((endless.flow, endless.packet), (63, u64::MAX / 64));
    }

    #[test]
    fn flows_begin_evenly_spaced() {
        for (window, flow_packets) in [(64, 64), (64, 50), (7, 30)] {
            let begins = |from: u64, to: u64| {
                let places = (from..to).map(|number| place(number, window, flow_packets));
                places.filter(|place| place.packet == 0).count() as u64
            };
            // Of all flows, each begins once in as many packets as they have together.
            let (period, settled) = (window * flow_packets, window);
            for at in 0..20 {
                let from = settled + at * 13;
                assert_eq!(begins(from, from + period), window);
                let half = begins(from, from + period / 2);
                assert!(half.abs_diff(window / 2) <= 2, "{half} of {window}");
            }
        }
    }

    #[test]
    fn every_frame_bears_its_number_and_the_switchs_address() {
        for application in Application::value_variants() {
            for number in [0, 1, 17, 18, 1 << 33] {
                let (side, bytes) = frame(*application, place(number, 64, 36), number, 10, 50);
                assert_eq!(number_in(&bytes), Some(number), "{application:?}");
                assert!(bytes.starts_with(&SWITCH[side]));
                let headers = application.link_header_length();
                assert_eq!(&bytes[12..headers - 2], &TAG[..headers - 14]);
                assert!(Segment::read_datagram(&bytes[headers..]).is_some());
            }
        }
    }

    #[test]
    fn flows_have_endpoints_of_their_own() {
        let ends: BTreeSet<_> = (0..100_000)
            .map(|flow| endpoint([10, 0, 0], flow, None))
            .collect();
        assert_eq!(ends.len(), 100_000);
    }

    #[test]
    fn as_many_packets_write_as_is_said() {
        let of = |updates| {
            let is_update = |number| {
                let (_, bytes) = frame(
                    Application::KeyValue,
                    place(number, 1, 1),
                    number,
                    0,
                    updates,
                );
                bytes[42] == 2
            };
            (0..10_000).filter(|&number| is_update(number)).count()
        };
        assert_eq!(of(0), 0);
        assert_eq!(of(100), 10_000);
        assert!((2800..3200).contains(&of(30)), "{}", of(30));
        let signals = (0..36).filter(|&packet| {
            let place = Place { flow: 0, packet };
            Application::ServingGateway.writes(place, packet, 0)
        });
        assert_eq!(signals.collect::<Vec<_>>(), [0, 18]);
    }
}
