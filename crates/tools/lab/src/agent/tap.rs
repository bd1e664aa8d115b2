//! Connections that pass a switch, seen from outside it.

use super::stop_at_end_of_input;
use crate::address::Mac;
use crate::error::LabError;
use clap::Args;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use stateplane_wire::{ethernet, ipv4, tcp};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::SocketAddrV4;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ETHERTYPE_IPV4: u16 = 0x0800;
const PROTOCOL_TCP: u8 = 6;
const ALL_FRAMES: u16 = 0x0003;
/// Frames longer than this are cut, which a TCP header of theirs survives.
const LONGEST_FRAME: usize = 65_536;
/// Maximum number of connections that are told apart.
const MOST_FLOWS: usize = 100_000;

/// Arguments of a tap.
#[derive(Clone, Debug, Args)]
pub struct TapArguments {
    /// Destination Ethernet address of the frames that count.
    #[arg(long)]
    pub towards: Mac,
    /// Duration in seconds.
    #[arg(long)]
    pub seconds: f64,
}

/// One direction of a TCP connection, and its traffic at the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Source.
    pub source: SocketAddrV4,
    /// Destination.
    pub destination: SocketAddrV4,
    /// Frames.
    pub frames: u64,
    /// Bytes of the frames.
    pub bytes: u64,
}

/// Report of a tap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapReport {
    /// The flows, by source and destination.
    pub flows: Vec<Flow>,
}

/// The two ends of the TCP segment in a frame to `towards`.
fn ends(frame: &[u8], towards: Mac) -> Option<(SocketAddrV4, SocketAddrV4)> {
    let frame = ethernet::Packet::new_checked(frame).ok()?;
    if frame.destination().0 != towards.0 || frame.ethertype() != ETHERTYPE_IPV4 {
        return None;
    }
    let packet = ipv4::Packet::new_checked(frame.payload()).ok()?;
    if packet.protocol() != PROTOCOL_TCP {
        return None;
    }
    let segment = tcp::Packet::new_checked(packet.payload()).ok()?;
    Some((
        SocketAddrV4::new(packet.source(), segment.source_port()),
        SocketAddrV4::new(packet.destination(), segment.destination_port()),
    ))
}

fn look(towards: Mac, until: Instant, stopped: impl Fn() -> bool) -> io::Result<TapReport> {
    // Bound to no interface: all frames of the namespace, and the address selects.
    let protocol = Protocol::from(i32::from(ALL_FRAMES.to_be()));
    let mut socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
    socket.set_recv_buffer_size(4 << 20)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut flows: BTreeMap<(SocketAddrV4, SocketAddrV4), (u64, u64)> = BTreeMap::new();
    let mut buffer = vec![0; LONGEST_FRAME];
    while Instant::now() < until && !stopped() {
        let length = match socket.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            // Told once when an interface goes down.
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => continue,
            Err(error) => return Err(error),
        };
        let Some(ends) = ends(&buffer[..length], towards) else {
            continue;
        };
        if flows.len() < MOST_FLOWS || flows.contains_key(&ends) {
            let (frames, bytes) = flows.entry(ends).or_default();
            *frames += 1;
            *bytes += length as u64;
        }
    }
    let flows = flows
        .into_iter()
        .map(|((source, destination), (frames, bytes))| Flow {
            source,
            destination,
            frames,
            bytes,
        })
        .collect();
    Ok(TapReport { flows })
}

/// Observes the frames that pass, then prints a [`TapReport`] as one line of JSON.
///
/// # Errors
/// `LAB013` for a time out of range, `LAB016` if the socket fails.
pub fn tap(arguments: &TapArguments) -> Result<(), LabError> {
    let failed = |reason| LabError::Socket {
        what: "the tap's packet socket".to_owned(),
        reason,
    };
    let time = Duration::try_from_secs_f64(arguments.seconds)
        .ok()
        .filter(|time| *time <= Duration::from_secs(3600))
        .ok_or_else(|| LabError::Options("--seconds must be 0 to 3600".to_owned()))?;
    let stop = stop_at_end_of_input().map_err(failed)?;
    let until = Instant::now() + time;
    let report = look(arguments.towards, until, || stop.load(Ordering::Relaxed)).map_err(failed)?;
    let text = serde_json::to_string(&report).map_err(|error| failed(io::Error::other(error)))?;
    println!("{text}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOWARDS: Mac = Mac([2, 0, 0, 0, 0xa1, 0]);

    fn frame() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0xa1, 0, 2, 0, 0, 0, 0xb1, 1, 8, 0];
        frame.extend([0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 2, 2, 198, 51, 100, 18]);
        frame.extend([0x4e, 0x21, 0x1b, 0x58]);
        frame.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        frame
    }

    #[test]
    fn a_segment_to_the_switch_has_its_ends_read() {
        let read = ends(&frame(), TOWARDS).map(|(a, b)| (a.to_string(), b.to_string()));
        let expected = ("10.0.2.2:20001".to_owned(), "198.51.100.18:7000".to_owned());
        assert_eq!(read, Some(expected));
        assert_eq!(ends(&frame(), Mac([2, 0, 0, 0, 0xa1, 1])), None);
        let mut udp = frame();
        udp[23] = 17;
        assert_eq!(ends(&udp, TOWARDS), None);
    }

    proptest! {
        #[test]
        fn any_frame_is_read_or_passed(at in 0usize..54, byte: u8, length in 0usize..54) {
            let mut damaged = frame();
            damaged[at] = byte;
            let _ = ends(&damaged[..length], TOWARDS);
            let _ = ends(&damaged, TOWARDS);
        }
    }
}
