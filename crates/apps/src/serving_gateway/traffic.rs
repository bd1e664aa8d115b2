//! Measuring traffic, of which signalling writes and data does not.

use super::hosts::{
    ACCESS_SIDE, CONTROLLER, CREATE, G_PDU, GTP_U_PORT, MOVE, SIGNALLING_PORT, SIGNALLING_SIDE,
};
use crate::measured::{Datagram, Packet, Traffic};
use crate::segment::number_mark;
use crate::spec::Side;
use core::net::{Ipv4Addr, SocketAddrV4};

const BASE_STATION: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 10);
const PACKET_GATEWAY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 10);
/// Data packets for each signalling packet (RedPlane §7.1).
const DATA_PER_SIGNAL: u64 = 17;

pub(super) struct Session;

impl Traffic for Session {
    fn writes(&self, packet: &Packet) -> bool {
        packet.place.packet.is_multiple_of(DATA_PER_SIGNAL + 1)
    }

    fn write_interval(&self) -> Option<f64> {
        Some((DATA_PER_SIGNAL + 1) as f64)
    }

    fn datagram(&self, packet: &Packet) -> Datagram {
        let id = (packet.place.flow as u32).wrapping_add(1).to_be_bytes();
        let (source, destination, payload) = if self.writes(packet) {
            let operation = if packet.place.packet == 0 {
                CREATE
            } else {
                MOVE
            };
            let tunnel = (packet.number as u32 & 0xff_ffff).to_be_bytes();
            let payload = [
                &[operation as u8, 0][..],
                &id,
                &BASE_STATION.octets(),
                &tunnel,
                &PACKET_GATEWAY.octets(),
                &tunnel,
            ];
            let from = SocketAddrV4::new(CONTROLLER, 4000);
            let to = SocketAddrV4::new(SIGNALLING_SIDE, SIGNALLING_PORT);
            (from, to, payload.concat())
        } else {
            let carried = packet.padding + number_mark(packet.number).len();
            let length = (carried as u16).to_be_bytes();
            let from = SocketAddrV4::new(BASE_STATION, GTP_U_PORT);
            let to = SocketAddrV4::new(ACCESS_SIDE, GTP_U_PORT);
            (from, to, [&G_PDU[..], &length, &id].concat())
        };
        Datagram {
            from: Side::Inside,
            source,
            destination,
            payload,
        }
    }
}
