//! A queue of a port on a network interface: its frames, for one thread.

use super::address::OwnAddresses;
use super::packet_socket::{Burst, PacketSocket, Received, Sent};
use super::partial::complete_if_partial;
use super::tap::Tap;
use super::xdp::XdpSockets;
use super::{HostPortCounters, MacAddress, PortMode, PortNotice};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Path of frames between interface and switch.
pub(super) enum Link {
    Packet(PacketSocket, Burst),
    Xdp(XdpSockets),
    Tap(Tap),
}

impl Link {
    pub(super) fn packet(socket: PacketSocket) -> Link {
        Link::Packet(socket, Burst::new())
    }

    pub(super) fn mode(&self) -> PortMode {
        match self {
            Link::Packet(..) => PortMode::Packet,
            Link::Xdp(sockets) if sockets.is_zero_copy() => PortMode::XdpZeroCopy,
            Link::Xdp(_) => PortMode::XdpCopy,
            Link::Tap(_) => PortMode::Tap,
        }
    }
}

/// Sees frames that arrive at an interface, or those to its own addresses if the port is routed,
/// and sends frames as they are.
pub(crate) struct InterfaceQueue {
    link: Link,
    /// The descriptor from whose queue the last burst came.
    at: usize,
    /// MAC address of the interface.
    hardware: Option<MacAddress>,
    /// The addresses of a routed port.
    own: Option<OwnAddresses>,
    /// Longest frame that the interface carries, in bytes; its port keeps it up to date.
    longest: Arc<AtomicUsize>,
    counters: HostPortCounters,
    notices: Vec<PortNotice>,
}

impl InterfaceQueue {
    pub(super) fn new(
        link: Link,
        hardware: Option<MacAddress>,
        longest: Arc<AtomicUsize>,
    ) -> InterfaceQueue {
        InterfaceQueue {
            link,
            at: 0,
            hardware,
            own: None,
            longest,
            counters: HostPortCounters::default(),
            notices: Vec::new(),
        }
    }

    /// Goes on with the link of `new`, after the interface was replaced.
    pub(super) fn replace(&mut self, new: InterfaceQueue) {
        self.counters();
        self.link = new.link;
        self.at = 0;
        self.hardware = new.hardware;
        if let Some(own) = &mut self.own {
            own.set_interface(new.hardware);
        }
    }

    /// Takes only frames to `macs` and to the interface's address, to groups and to all.
    pub(super) fn route(&mut self, macs: &[MacAddress]) {
        self.own = Some(OwnAddresses::new(macs, self.hardware));
    }

    pub(super) fn take_notices(&mut self) -> Vec<PortNotice> {
        std::mem::take(&mut self.notices)
    }

    pub(super) fn counters(&mut self) -> HostPortCounters {
        let before = self.counters.rx_overrun;
        self.counters.rx_overrun += match &mut self.link {
            Link::Packet(socket, _) => socket.overruns(),
            Link::Xdp(sockets) => sockets.overruns(),
            Link::Tap(_) => 0,
        };
        if before == 0 && self.counters.rx_overrun > 0 {
            self.notices.push(PortNotice::ReceiveRingFull);
        }
        self.counters
    }

    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        match &self.link {
            Link::Packet(socket, _) => vec![socket.as_raw_fd()],
            Link::Xdp(sockets) => sockets.descriptors().collect(),
            Link::Tap(tap) => vec![tap.as_raw_fd()],
        }
    }

    /// Takes the frames that wait at descriptor `at`, at most a burst; returns how many
    /// there are.
    pub(super) fn receive(&mut self, at: usize) -> usize {
        self.at = at;
        let received = match &mut self.link {
            Link::Packet(socket, burst) => socket.receive(burst).map(|()| burst.len()),
            Link::Xdp(sockets) => Ok(sockets.receive(at)),
            Link::Tap(tap) => tap.receive(),
        };
        match received {
            Ok(count) => {
                self.counters.received += count as u64;
                count
            }
            // Told once when the interface goes down: no frame was lost by it.
            Err(error) if is_down(&error) => 0,
            Err(_) => {
                self.counters.rx_failed += 1;
                0
            }
        }
    }

    /// Frame `next` of the burst before anything is done to it.
    pub(super) fn as_received(&mut self, next: usize) -> &[u8] {
        match &mut self.link {
            Link::Packet(_, burst) => burst.as_received(next),
            Link::Xdp(sockets) => sockets.frame(self.at, next),
            Link::Tap(tap) => tap.frame(next),
        }
    }

    /// Frame `next` of the burst; counted instead if it is no frame for the switch.
    pub(super) fn frame(&mut self, next: usize) -> Option<&mut [u8]> {
        let received = match &mut self.link {
            Link::Packet(_, burst) => burst.frame(next),
            Link::Xdp(sockets) => {
                let frame = sockets.frame(self.at, next);
                complete_if_partial(frame);
                Received::Frame(frame)
            }
            Link::Tap(tap) => Received::Frame(tap.frame(next)),
        };
        match received {
            Received::Frame(frame) => {
                if self.own.as_ref().is_none_or(|own| own.take(frame)) {
                    return Some(frame);
                }
                self.counters.rx_other_host += 1;
            }
            Received::TooLong => self.counters.rx_too_long += 1,
            Received::Super => self.counters.rx_super_frame += 1,
            Received::BadChecksum => self.counters.rx_bad_checksum += 1,
        }
        None
    }

    /// Lets the kernel have the burst's memory again.
    pub(super) fn release(&mut self) {
        if let Link::Xdp(sockets) = &mut self.link {
            sockets.release(self.at);
        }
    }

    /// Gives `frames` to the interface.
    pub(super) fn send(&mut self, frames: &[Vec<u8>]) {
        let longest = self.longest.load(Ordering::Relaxed);
        let sent = match &mut self.link {
            Link::Packet(socket, _) => socket.send(frames),
            Link::Xdp(sockets) => sockets.send(frames, longest),
            Link::Tap(tap) => tap.send(frames),
        };
        self.count(&sent, longest);
    }

    fn count(&mut self, sent: &Sent, longest: usize) {
        let before = self.counters;
        self.counters.sent += sent.frames as u64;
        self.counters.tx_too_long += sent.too_long;
        self.counters.tx_down += sent.down;
        self.counters.tx_full += sent.full;
        self.counters.tx_refused += sent.refused;
        if before.tx_too_long == 0 && sent.too_long > 0 {
            self.notices
                .push(PortNotice::FrameTooLong { limit: longest });
        }
        if before.tx_full == 0 && sent.full > 0 {
            self.notices.push(PortNotice::RingFull);
        }
    }
}

fn is_down(error: &io::Error) -> bool {
    // A TAP device that is down answers reads with EIO.
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::EIO))
}
