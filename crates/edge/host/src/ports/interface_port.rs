//! A port on a network interface.

use super::address::OwnAddresses;
use super::interface::Interfaces;
use super::packet_socket::{Burst, PacketSocket, Received, Sent};
use super::partial::complete_if_partial;
use super::tap::Tap;
use super::xdp::XdpSockets;
use super::{Access, HostPortCounters, MacAddress, PortError, PortMode, PortNotice};
use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// Bytes of an Ethernet header with one tag, which an MTU does not count.
const HEADER_BYTES: usize = 14 + 4;

/// Path of frames between interface and switch.
enum Link {
    Packet(PacketSocket, Burst),
    Xdp(XdpSockets),
    Tap(Tap),
}

/// A port on a network interface: sees every frame that arrives there, or those to its own
/// addresses if it is routed, and sends frames as they are.
pub(crate) struct InterfacePort {
    name: String,
    link: Link,
    /// The descriptor of whose queue the last burst came.
    at: usize,
    access: Access,
    interfaces: Interfaces,
    index: i32,
    /// The addresses of a routed port.
    own: Option<OwnAddresses>,
    /// True if the interface was up before it became a port.
    was_up: bool,
    /// Longest frame that the interface carries, in bytes.
    longest: usize,
    counters: HostPortCounters,
    notices: Vec<PortNotice>,
}

impl InterfacePort {
    /// Opens the interface `name`; frames arrive as soon as it is up. Merging of
    /// received segments (GRO, LRO) is switched off there and stays so.
    pub(crate) fn open(name: &str, access: Access) -> Result<InterfacePort, PortError> {
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
        // Drivers that merge nothing refuse this; frames that come merged all the
        // same are counted.
        let _ = interfaces.stop_merging(name);
        let mut notices = Vec::new();
        let link = open_link(&interfaces, name, index, access, &mut notices)?;
        Ok(InterfacePort {
            name: name.to_owned(),
            link,
            at: 0,
            access,
            longest: longest(&interfaces, name),
            interfaces,
            index,
            own: None,
            was_up,
            counters: HostPortCounters::default(),
            notices,
        })
    }

    /// Makes the TAP device `name` and opens its far end.
    pub(crate) fn tap(name: &str) -> Result<InterfacePort, PortError> {
        let failed = |action| move |cause| PortError::from_system(action, name, cause);
        let interfaces = Interfaces::open().map_err(failed("opening"))?;
        let tap = Tap::create(name).map_err(failed("making TAP device"))?;
        let index = interfaces.index(name).map_err(failed("finding"))?;
        Ok(InterfacePort {
            name: name.to_owned(),
            link: Link::Tap(tap),
            at: 0,
            access: Access::Best,
            longest: longest(&interfaces, name),
            interfaces,
            index,
            own: None,
            was_up: false,
            counters: HostPortCounters::default(),
            notices: Vec::new(),
        })
    }

    /// Lets the port take only frames to `macs` and to the interface's address, to groups and to
    /// all.
    pub(crate) fn route(&mut self, macs: &[MacAddress]) {
        let interface = self.interfaces.hardware_address(&self.name).ok();
        self.own = Some(OwnAddresses::new(macs, interface));
    }

    /// MAC address of the interface.
    pub(crate) fn hardware_address(&self) -> Option<MacAddress> {
        self.interfaces.hardware_address(&self.name).ok()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn mode(&self) -> PortMode {
        match &self.link {
            Link::Packet(..) => PortMode::Packet,
            Link::Xdp(sockets) if sockets.is_zero_copy() => PortMode::XdpZeroCopy,
            Link::Xdp(_) => PortMode::XdpCopy,
            Link::Tap(_) => PortMode::Tap,
        }
    }

    /// Notices for the operator since the last call.
    pub(crate) fn take_notices(&mut self) -> Vec<PortNotice> {
        std::mem::take(&mut self.notices)
    }

    pub(crate) fn counters(&mut self) -> HostPortCounters {
        self.counters.rx_overrun += match &mut self.link {
            Link::Packet(socket, _) => socket.overruns(),
            Link::Xdp(sockets) => sockets.overruns(),
            Link::Tap(_) => 0,
        };
        self.counters
    }

    pub(crate) fn set_up(&self, up: bool) -> Result<(), PortError> {
        let action = if up { "setting up" } else { "setting down" };
        self.interfaces
            .set_up(&self.name, up)
            .map_err(|cause| PortError::from_system(action, &self.name, cause))
    }

    /// True if the interface is up. An interface that was removed is down; a new one under the same
    /// name becomes the port, by AF_XDP or AF_PACKET as is possible then.
    pub(crate) fn link_is_up(&mut self) -> bool {
        let Ok(index) = self.interfaces.index(&self.name) else {
            return false;
        };
        if index != self.index && !self.reopen(index) {
            return false;
        }
        self.longest = longest(&self.interfaces, &self.name);
        let before = self.counters.rx_overrun;
        if before == 0 && self.counters().rx_overrun > 0 {
            self.notices.push(PortNotice::ReceiveRingFull);
        }
        self.interfaces.flags(&self.name).is_ok_and(is_up)
    }

    fn reopen(&mut self, index: i32) -> bool {
        let _ = self.interfaces.stop_merging(&self.name);
        let mut notices = Vec::new();
        let opened = open_link(
            &self.interfaces,
            &self.name,
            index,
            self.access,
            &mut notices,
        );
        let Ok(link) = opened else {
            return false;
        };
        self.link = link;
        self.index = index;
        if let Some(own) = &mut self.own {
            own.set_interface(self.interfaces.hardware_address(&self.name).ok());
        }
        self.notices.extend(notices);
        true
    }

    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        match &self.link {
            Link::Packet(socket, _) => vec![socket.as_raw_fd()],
            Link::Xdp(sockets) => sockets.descriptors().collect(),
            Link::Tap(tap) => vec![tap.as_raw_fd()],
        }
    }

    /// Takes the frames that wait at descriptor `at`, at most a burst; returns how many
    /// there are.
    pub(crate) fn receive(&mut self, at: usize) -> usize {
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
    pub(crate) fn as_received(&mut self, next: usize) -> &[u8] {
        match &mut self.link {
            Link::Packet(_, burst) => burst.as_received(next),
            Link::Xdp(sockets) => sockets.frame(self.at, next),
            Link::Tap(tap) => tap.frame(next),
        }
    }

    /// Frame `next` of the burst; counted instead if it is no frame for the switch.
    pub(crate) fn frame(&mut self, next: usize) -> Option<&mut [u8]> {
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
    pub(crate) fn release(&mut self) {
        if let Link::Xdp(sockets) = &mut self.link {
            sockets.release(self.at);
        }
    }

    /// Bytes of the longest frame, a tag included.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Bytes of the longest IP packet.
    pub(crate) fn mtu(&self) -> usize {
        self.longest - HEADER_BYTES
    }

    /// Gives `frames` to the interface.
    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) {
        let sent = match &mut self.link {
            Link::Packet(socket, _) => socket.send(frames),
            Link::Xdp(sockets) => sockets.send(frames, self.longest),
            Link::Tap(tap) => tap.send(frames),
        };
        self.count(&sent);
    }

    fn count(&mut self, sent: &Sent) {
        let before = self.counters;
        self.counters.sent += sent.frames as u64;
        self.counters.tx_too_long += sent.too_long;
        self.counters.tx_down += sent.down;
        self.counters.tx_full += sent.full;
        self.counters.tx_refused += sent.refused;
        if before.tx_too_long == 0 && sent.too_long > 0 {
            self.notices.push(PortNotice::FrameTooLong {
                limit: self.longest,
            });
        }
        if before.tx_full == 0 && sent.full > 0 {
            self.notices.push(PortNotice::RingFull);
        }
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

fn open_link(
    interfaces: &Interfaces,
    name: &str,
    index: i32,
    access: Access,
    notices: &mut Vec<PortNotice>,
) -> Result<Link, PortError> {
    if access != Access::Packet {
        match XdpSockets::open(interfaces, name, index as u32) {
            Ok(sockets) => return Ok(Link::Xdp(sockets)),
            Err(refusal) if access == Access::Xdp => {
                return Err(PortError::NoXdp {
                    name: name.to_owned(),
                    refusal,
                });
            }
            Err(refusal) => notices.push(PortNotice::NoXdp(refusal)),
        }
    }
    let failed = |action| move |cause| PortError::from_system(action, name, cause);
    let socket = PacketSocket::open().map_err(failed("opening"))?;
    socket.bind(index).map_err(failed("binding to"))?;
    Ok(Link::Packet(socket, Burst::new()))
}

fn longest(interfaces: &Interfaces, name: &str) -> usize {
    interfaces
        .mtu(name)
        .map_or(stateplane_switch::MAX_FRAME, |mtu| {
            mtu as usize + HEADER_BYTES
        })
}

fn is_down(error: &io::Error) -> bool {
    // A TAP device that is down answers reads with EIO.
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::EIO))
}

fn is_up(flags: i32) -> bool {
    flags & libc::IFF_UP != 0
}
