//! Sealed messages in Ethernet frames, for a switch's port.
//!
//! A frame is of the replication protocol if a switch's program takes it for one: IPv4
//! without options and fragments, UDP, port 4793 on both sides. It is of the coordination service
//! if the port is 4797 on either side, of sync if it is 4798, and of multicast if it is 4799, and if it
//! goes to, or comes from, the switch's own address there: messages that a switch only routes are
//! sealed between others. All others pass as they are.
//!
//! A frame of these three that arrives under the switch's own address is a stranger's: it is dropped
//! at every port, or the switch would route it out by a sealed port under its own seal. The
//! exception is an answer of the switch's seals, which a neighbour whose route to the asker leads
//! through this switch gives back: it passes, and leaves as it is.

use std::net::Ipv4Addr;

use serde::Serialize;
use stateplane_seal::{ANSWER_LENGTH, Opened, TRAILER_LENGTH, is_answer};
use stateplane_wire::{checksum, coordination, multicast, replication, sync};

use super::Guard;

/// Offset of the Ethernet type in a frame.
const TYPE: usize = 12;
const IP: usize = 14;
const SOURCE: usize = IP + 12;
const DESTINATION: usize = IP + 16;
const UDP: usize = IP + 20;
const MESSAGE: usize = UDP + 8;

/// Counters of frames with sealed messages, by result, beside the seals' own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrameCounters {
    /// Dropped: the lengths in the headers do not fit the frame.
    pub malformed: u64,
    /// Dropped on leaving: too long for the length fields.
    pub too_long: u64,
    /// Dropped: messages of coordination, multicast or sync that arrive under the switch's own address.
    pub own_source: u64,
}

/// Addresses of a switch in the services whose messages are sealed at their two ends; `None` in
/// those that it has no part in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Its address in the coordination service.
    pub coordination: Option<Ipv4Addr>,
    /// Its address in multicast.
    pub multicast: Option<Ipv4Addr>,
    /// Its address for engines of sync.
    pub sync: Option<Ipv4Addr>,
}

impl Own {
    /// True of a frame of one of the services that has the switch's address there at offset `at`.
    fn stands_in(self, frame: &[u8], at: usize) -> bool {
        let services = [
            (coordination::PORT, self.coordination),
            (multicast::PORT, self.multicast),
            (sync::PORT, self.sync),
        ];
        // Most switches have a part in none of them, and look at no frame for it.
        services.into_iter().any(|(port, own)| {
            own.is_some_and(|own| {
                let ports = udp_ports(frame);
                ports.is_some_and(|ports| ports.contains(&port)) && address(frame, at) == own
            })
        })
    }

    /// True of a frame with an answer of the switch's seals; its tag is not verified.
    fn has_answered(self, frame: &[u8]) -> bool {
        self.stands_in(frame, SOURCE) && is_answer(payload(frame))
    }
}

/// Verdict about a frame that arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrived {
    /// The switch gets this many first bytes of the frame.
    Pass(usize),
    /// The frame is dropped.
    Dropped,
    /// The switch gets nothing; this frame is to be sent back.
    Answered(Vec<u8>),
}

/// True of a frame, arrived by some port, that a stranger sent under one of the switch's addresses
/// `own`: it is of that service, and no answer of the switch's seals.
pub fn is_impostor(own: Own, frame: &[u8]) -> bool {
    own.stands_in(frame, SOURCE) && !own.has_answered(frame)
}

/// True of a frame that [`open_frame`] does not pass as it is.
pub(crate) fn arrives_sealed(own: Own, frame: &[u8]) -> bool {
    is_message(frame, own, DESTINATION)
}

/// True of a frame that [`seal_frame`] does not pass as it is.
pub(crate) fn leaves_sealed(own: Own, frame: &[u8]) -> bool {
    is_message(frame, own, SOURCE)
}

/// Opens the message in `frame`, in place, if it is one. `own` are the switch's addresses in the
/// services whose messages are sealed.
pub fn open_frame(
    guard: &mut Guard,
    counters: &mut FrameCounters,
    own: Own,
    now: u64,
    frame: &mut [u8],
) -> Arrived {
    if !is_message(frame, own, DESTINATION) {
        return Arrived::Pass(frame.len());
    }
    let length = usize::from(half(frame, IP + 2));
    let udp = usize::from(half(frame, UDP + 4));
    let end = IP + length;
    if end > frame.len() || length < MESSAGE - IP || udp != length - (UDP - IP) {
        counters.malformed += 1;
        return Arrived::Dropped;
    }
    let from = address(frame, SOURCE);
    let answer = match guard.open(now, from, &frame[MESSAGE..end]) {
        Opened::Message { length, .. } => {
            set_length(frame, length);
            return Arrived::Pass(MESSAGE + length);
        }
        Opened::Heard { answer } => answer,
        Opened::Refused { refusal, answer } => {
            guard.tell_refused(now, from, refusal);
            answer
        }
    };
    answer.map_or(Arrived::Dropped, |answer| {
        Arrived::Answered(answer_frame(frame, &answer.0))
    })
}

/// Seals the message in `frame` if it is one; `false` if it must not leave. `own` is as in
/// [`open_frame`].
pub fn seal_frame(
    guard: &mut Guard,
    counters: &mut FrameCounters,
    own: Own,
    frame: &mut Vec<u8>,
) -> bool {
    if !is_message(frame, own, SOURCE) {
        return true;
    }
    let length = usize::from(half(frame, IP + 2));
    let end = IP + length;
    if end > frame.len() || length < MESSAGE - IP {
        counters.malformed += 1;
        return false;
    }
    if own.has_answered(frame) {
        return true;
    }
    if length + TRAILER_LENGTH > usize::from(u16::MAX) {
        counters.too_long += 1;
        return false;
    }
    // Padding is no part of the message.
    frame.truncate(end);
    let Some(trailer) = guard.seal(address(frame, DESTINATION), &frame[MESSAGE..]) else {
        return false;
    };
    frame.extend_from_slice(&trailer);
    set_length(frame, end + TRAILER_LENGTH - MESSAGE);
    true
}

/// True of a frame of the protocols that are sealed: of replication, or with an address of `own` at
/// offset `at`.
fn is_message(frame: &[u8], own: Own, at: usize) -> bool {
    udp_ports(frame) == Some([replication::PORT; 2]) || own.stands_in(frame, at)
}

/// Ports of a frame with a UDP datagram that is no fragment and stands behind IPv4 without options.
fn udp_ports(frame: &[u8]) -> Option<[u16; 2]> {
    let is_udp = frame.len() >= MESSAGE
        && half(frame, TYPE) == 0x0800
        && frame[IP] == 0x45
        && half(frame, IP + 6) & 0x3fff == 0
        && frame[IP + 9] == 17;
    is_udp.then(|| [half(frame, UDP), half(frame, UDP + 2)])
}

/// Bytes behind the UDP header, without padding; none if IPv4's length does not fit the frame.
fn payload(frame: &[u8]) -> &[u8] {
    let end = IP + usize::from(half(frame, IP + 2));
    frame.get(MESSAGE..end).unwrap_or_default()
}

/// Writes the lengths of a message of `length` bytes into the headers, and the checksums
/// that follow from them: IPv4's, and none for UDP (RFC 768).
fn set_length(frame: &mut [u8], length: usize) {
    put(frame, IP + 2, (MESSAGE - IP + length) as u16);
    put(frame, IP + 10, 0);
    let sum = checksum::of(&frame[IP..UDP]);
    put(frame, IP + 10, sum);
    put(frame, UDP + 4, (MESSAGE - UDP + length) as u16);
    put(frame, UDP + 6, 0);
}

/// `answer`, addressed to the sender of `question`.
fn answer_frame(question: &[u8], answer: &[u8; ANSWER_LENGTH]) -> Vec<u8> {
    let mut frame = question[..MESSAGE].to_vec();
    frame[..6].copy_from_slice(&question[6..12]);
    frame[6..12].copy_from_slice(&question[..6]);
    frame[IP + 8] = 64;
    frame[SOURCE..SOURCE + 4].copy_from_slice(&question[DESTINATION..DESTINATION + 4]);
    frame[DESTINATION..DESTINATION + 4].copy_from_slice(&question[SOURCE..SOURCE + 4]);
    put(&mut frame, UDP, half(question, UDP + 2));
    put(&mut frame, UDP + 2, half(question, UDP));
    frame.extend_from_slice(answer);
    set_length(&mut frame, ANSWER_LENGTH);
    frame
}

fn half(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn put(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn address(frame: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(frame[at], frame[at + 1], frame[at + 2], frame[at + 3])
}

#[cfg(test)]
pub(crate) mod tests;
