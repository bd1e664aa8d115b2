//! Frames of the measuring host through each application.

use crate::error::EvalError;
pub use stateplane_apps::measured::Place;
use stateplane_apps::measured::{Packet, Traffic};
use stateplane_apps::spec::Side;
use stateplane_apps::{APPS, AppId, Room, Segment, app, number_mark};
use stateplane_wire::ethernet;
use stateplane_wire::ipv4::PROTOCOL_UDP;
use std::fmt;

/// Ethernet addresses of `lab/eval.toml`: of the host's two interfaces, and of the switch's
/// facing them.
pub const HOST: [[u8; 6]; 2] = [[2, 0, 0, 0, 0xb1, 1], [2, 0, 0, 0, 0xb2, 1]];
const SWITCH: [[u8; 6]; 2] = [[2, 0, 0, 0, 0xa1, 0], [2, 0, 0, 0, 0xa1, 1]];

/// An application with measuring traffic.
#[derive(Clone, Copy)]
pub struct Application {
    app: AppId,
    traffic: &'static dyn Traffic,
}

impl Application {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        APPS.into_iter().filter_map(Self::new)
    }

    fn new(app: AppId) -> Option<Self> {
        let traffic = app.traffic()?;
        Some(Self { app, traffic })
    }

    /// The application of that name.
    ///
    /// # Errors
    /// `EV001` if there is none, or none with measuring traffic.
    pub fn of(name: &str) -> Result<Self, EvalError> {
        app(name).and_then(Self::new).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(Self::name).collect();
            let known = known.join(", ");
            EvalError::Options(format!(
                "`{name}` is no application that is measured: use {known}"
            ))
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.app.name()
    }

    /// Its room.
    pub fn room(self) -> &'static Room {
        self.app.room()
    }

    /// Bytes in front of the datagram of its frames.
    pub fn link_header_length(self) -> usize {
        ethernet::HEADER_LENGTH + self.traffic.tag().len()
    }

    /// True if a packet is to write its flow's state.
    pub fn writes(self, place: Place, number: u64, updates: u32) -> bool {
        self.traffic.writes(&Packet {
            place,
            number,
            padding: 0,
            updates,
        })
    }

    /// From one packet of a flow that writes to the next, in packets, where that is a number.
    pub fn write_interval(self) -> Option<f64> {
        self.traffic.write_interval()
    }

    /// True if every packet writes.
    pub fn always_writes(self) -> bool {
        self.write_interval() == Some(1.0)
    }
}

impl PartialEq for Application {
    fn eq(&self, other: &Self) -> bool {
        self.app == other.app
    }
}

impl Eq for Application {}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
/// Of a hundred packets `updates` write, where the application has that to choose.
pub fn frame(
    application: Application,
    place: Place,
    number: u64,
    padding: usize,
    updates: u32,
) -> (usize, Vec<u8>) {
    let datagram = application.traffic.datagram(&Packet {
        place,
        number,
        padding,
        updates,
    });
    let side = match datagram.from {
        Side::Inside => 0,
        Side::Outside => 1,
    };
    let padding = vec![0; padding];
    let segment = Segment {
        protocol: PROTOCOL_UDP,
        source: datagram.source,
        destination: datagram.destination,
        control: 0,
        sequence: 0,
        acknowledgement: 0,
        payload: [&datagram.payload[..], &padding, &number_mark(number)].concat(),
    };
    let mut frame = Vec::with_capacity(128);
    frame.extend(SWITCH[side]);
    frame.extend(HOST[side]);
    frame.extend(application.traffic.tag());
    frame.extend(ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend(segment.to_datagram());
    (side, frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_apps::number_in;

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
        for application in Application::all() {
            for number in [0, 1, 17, 18, 1 << 33] {
                let (side, bytes) = frame(application, place(number, 64, 36), number, 10, 50);
                assert_eq!(number_in(&bytes), Some(number), "{application:?}");
                assert!(bytes.starts_with(&SWITCH[side]));
                let headers = application.link_header_length();
                assert_eq!(&bytes[12..headers - 2], application.traffic.tag());
                assert!(Segment::read_datagram(&bytes[headers..]).is_some());
            }
        }
    }
}
