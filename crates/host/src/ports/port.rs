//! A port of the switch on an interface.

use super::PortError;
use super::interface::Interfaces;
use super::packet_socket::{Burst, PacketSocket, Received};
use serde::Serialize;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// What happened to frames between the wire and the switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostPortCounters {
    /// Frames taken from the interface.
    pub received: u64,
    /// Frames given to the interface.
    pub sent: u64,
    /// The kernel had no room for them, because the switch was too slow.
    pub rx_overrun: u64,
    /// Longer than 65,535 bytes.
    pub rx_too_long: u64,
    /// Merged from several segments, or not cut into segments by their sender: no
    /// link carries them. `ethtool -K INTERFACE tso off gso off gro off` on the
    /// sender and here prevents them.
    pub rx_super_frame: u64,
    /// With an unfinished checksum whose place is not in the frame.
    pub rx_bad_checksum: u64,
    /// Lost to an error of the system.
    pub rx_failed: u64,
    /// Longer than the interface's MTU.
    pub tx_too_long: u64,
    /// The interface was down.
    pub tx_down: u64,
    /// The interface's queue was full.
    pub tx_full: u64,
    /// Refused for another reason.
    pub tx_refused: u64,
}

/// A port of the switch on a network interface: a packet socket that sees every
/// frame that arrives there and sends frames as they are.
#[derive(Debug)]
pub struct PacketPort {
    name: String,
    socket: PacketSocket,
    interfaces: Interfaces,
    index: i32,
    /// Whether the interface was up before it became a port.
    was_up: bool,
    counters: HostPortCounters,
}

impl PacketPort {
    /// Opens the interface `name`; frames arrive as soon as it is up. Merging of
    /// received segments (GRO, LRO) is switched off there and stays so.
    ///
    /// # Errors
    ///
    /// [`PortError`] if there is no such interface, it is not Ethernet, or the
    /// process may not open it.
    pub fn open(name: &str) -> Result<PacketPort, PortError> {
        let failed = |action| move |cause| PortError::from_system(action, name, cause);
        let interfaces = Interfaces::open().map_err(failed("opening"))?;
        let index = interfaces.index(name).map_err(failed("finding"))?;
        let kind = interfaces.hardware_type(name).map_err(failed("finding"))?;
        if kind != libc::ARPHRD_ETHER && kind != libc::ARPHRD_LOOPBACK {
            return Err(PortError::NotEthernet {
                name: name.to_owned(),
                kind,
            });
        }
        let was_up = is_up(interfaces.flags(name).map_err(failed("finding"))?);
        let socket = PacketSocket::open().map_err(failed("opening"))?;
        socket.bind(index).map_err(failed("binding to"))?;
        // Drivers that merge nothing refuse this; frames that come merged all the
        // same are counted.
        let _ = interfaces.stop_merging(name);
        Ok(PacketPort {
            name: name.to_owned(),
            socket,
            interfaces,
            index,
            was_up,
            counters: HostPortCounters::default(),
        })
    }

    /// The interface.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What happened to frames so far.
    pub fn counters(&mut self) -> HostPortCounters {
        self.counters.rx_overrun += self.socket.overruns();
        self.counters
    }

    /// Sets the interface up or down.
    ///
    /// # Errors
    ///
    /// [`PortError`] if it is gone, or the process may not.
    pub fn set_up(&self, up: bool) -> Result<(), PortError> {
        let action = if up { "setting up" } else { "setting down" };
        self.interfaces
            .set_up(&self.name, up)
            .map_err(|cause| PortError::from_system(action, &self.name, cause))
    }

    /// Whether the interface is up. One that was removed is down; one that came anew
    /// under the same name becomes the port.
    pub fn link_is_up(&mut self) -> bool {
        let Ok(index) = self.interfaces.index(&self.name) else {
            return false;
        };
        if index != self.index {
            if self.socket.bind(index).is_err() {
                return false;
            }
            self.index = index;
        }
        self.interfaces.flags(&self.name).is_ok_and(is_up)
    }

    /// Takes the frames that wait, at most a burst; returns how many there are.
    pub(crate) fn receive(&mut self, burst: &mut Burst) -> usize {
        match self.socket.receive(burst) {
            Ok(()) => {}
            // Told once when the interface goes down: no frame was lost by it.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
            Err(_) => self.counters.rx_failed += 1,
        }
        self.counters.received += burst.len() as u64;
        burst.len()
    }

    /// Counts `received` if it is no frame for the switch.
    pub(crate) fn frame<'a>(&mut self, received: Received<'a>) -> Option<&'a [u8]> {
        match received {
            Received::Frame(frame) => return Some(frame),
            Received::TooLong => self.counters.rx_too_long += 1,
            Received::Super => self.counters.rx_super_frame += 1,
            Received::BadChecksum => self.counters.rx_bad_checksum += 1,
        }
        None
    }

    /// Gives `frames` to the interface.
    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) {
        let sent = self.socket.send(frames);
        self.counters.sent += sent.frames as u64;
        self.counters.tx_too_long += sent.too_long;
        self.counters.tx_down += sent.down;
        self.counters.tx_full += sent.full;
        self.counters.tx_refused += sent.refused;
    }

    /// Leaves an interface that was down as it was found.
    pub(crate) fn restore(&self) -> io::Result<()> {
        if self.was_up {
            Ok(())
        } else {
            self.interfaces.set_up(&self.name, false)
        }
    }
}

impl AsRawFd for PacketPort {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

fn is_up(flags: i32) -> bool {
    flags & libc::IFF_UP != 0
}
