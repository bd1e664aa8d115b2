//! The link between switch and engine, in memory.

use stateplane_random::Random;
use stateplane_wire::{ethernet, ipv4, sync, udp};
use std::net::Ipv4Addr;

/// Address of the switch in the protocol of sync.
pub(super) const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);

/// Address and port of the engine.
const ENGINE: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 2);
const ENGINE_PORT: u16 = 40_000;

/// A link that loses datagrams.
pub(super) struct Link {
    loss_permille: u32,
    random: Random,
}

impl Link {
    pub(super) fn new(loss_permille: u32, seed: u64) -> Link {
        Link {
            loss_permille,
            random: Random::new(seed),
        }
    }

    /// False if the next datagram is lost.
    pub(super) fn carries(&mut self) -> bool {
        self.loss_permille == 0 || !self.random.permille(self.loss_permille)
    }
}

/// An IPv4 packet in a frame.
pub(super) fn frame(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend_from_slice(&ethernet::TYPE_IPV4.to_be_bytes());
    frame.extend_from_slice(packet);
    frame
}

/// A message of the engine in a frame.
pub(super) fn wrapped(payload: &[u8]) -> Option<Vec<u8>> {
    let datagram = udp::Repr {
        source_port: ENGINE_PORT,
        destination_port: sync::PORT,
        payload,
    };
    let datagram = datagram.to_vec(ENGINE, SWITCH).ok()?;
    let packet = ipv4::Repr::new(ENGINE, SWITCH, ipv4::PROTOCOL_UDP, &datagram);
    Some(frame(&packet.to_vec().ok()?))
}

/// The message in a frame of the switch.
pub(super) fn unwrapped(frame: &[u8]) -> Option<&[u8]> {
    let ethernet = ethernet::Packet::new_checked(frame).ok()?;
    let packet = ipv4::Packet::new_checked(ethernet.payload()).ok()?;
    let datagram = udp::Packet::new_checked(packet.payload()).ok()?;
    Some(datagram.payload())
}
