//! A port on a network interface, without its frames: links, their state, and queues for threads.

use super::interface::Interfaces;
use super::interface_queue::{InterfaceQueue, Link};
use super::packet_socket::PacketSocket;
use super::tap::Tap;
use super::xdp::XdpSockets;
use super::{Access, MacAddress, PortError, PortMode, PortNotice};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of an Ethernet header with one tag, which an MTU does not count.
const HEADER_BYTES: usize = 14 + 4;

/// A port on a network interface.
pub(crate) struct InterfacePort {
    name: String,
    access: Access,
    interfaces: Interfaces,
    index: i32,
    mode: PortMode,
    /// Threads that take frames: each has a queue where the interface can be divided.
    threads: usize,
    /// True if the interface could not be divided, and may be once it is up.
    divides_later: bool,
    /// Queues that take the place of those so far.
    anew: Option<Vec<InterfaceQueue>>,
    /// True if the interface was up before it became a port.
    was_up: bool,
    /// Longest frame that the interface carries, in bytes.
    longest: Arc<AtomicUsize>,
    notices: Vec<PortNotice>,
}

/// Links to one interface: one for each thread, or one alone.
struct Opened {
    links: Vec<Link>,
    /// True if one alone could be had while the interface is down.
    divides_later: bool,
}

impl Opened {
    fn of(links: Vec<Link>) -> Opened {
        Opened {
            links,
            divides_later: false,
        }
    }
}

impl InterfacePort {
    /// Opens the interface `name` for `threads` threads, and gives a queue for each of them, or one
    /// alone if it cannot be divided. Frames arrive as soon as it is up. Merging of received
    /// segments (GRO, LRO) is switched off there and stays so.
    pub(crate) fn open(
        name: &str,
        access: Access,
        threads: usize,
    ) -> Result<(InterfacePort, Vec<InterfaceQueue>), PortError> {
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
        let opened = open_links(&interfaces, name, index, access, threads, &mut notices)?;
        let mut port = InterfacePort {
            name: name.to_owned(),
            access,
            index,
            mode: PortMode::Packet,
            threads,
            divides_later: opened.divides_later && !was_up,
            anew: None,
            was_up,
            longest: Arc::new(AtomicUsize::new(longest(&interfaces, name))),
            interfaces,
            notices,
        };
        let queues = port.queues(opened.links);
        Ok((port, queues))
    }

    /// Makes the TAP device `name` and opens its far end, which cannot be divided.
    pub(crate) fn tap(name: &str) -> Result<(InterfacePort, Vec<InterfaceQueue>), PortError> {
        let failed = |action| move |cause| PortError::from_system(action, name, cause);
        let interfaces = Interfaces::open().map_err(failed("opening"))?;
        let tap = Tap::create(name).map_err(failed("making TAP device"))?;
        let index = interfaces.index(name).map_err(failed("finding"))?;
        let mut port = InterfacePort {
            name: name.to_owned(),
            access: Access::Best,
            index,
            mode: PortMode::Tap,
            threads: 1,
            divides_later: false,
            anew: None,
            was_up: false,
            longest: Arc::new(AtomicUsize::new(longest(&interfaces, name))),
            interfaces,
            notices: Vec::new(),
        };
        let queues = port.queues(vec![Link::Tap(tap)]);
        Ok((port, queues))
    }

    fn queues(&mut self, links: Vec<Link>) -> Vec<InterfaceQueue> {
        let hardware = self.hardware_address();
        if let Some(link) = links.first() {
            self.mode = link.mode();
        }
        links
            .into_iter()
            .map(|link| InterfaceQueue::new(link, hardware, self.longest.clone()))
            .collect()
    }

    /// MAC address of the interface.
    pub(crate) fn hardware_address(&self) -> Option<MacAddress> {
        self.interfaces.hardware_address(&self.name).ok()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn mode(&self) -> PortMode {
        self.mode
    }

    /// Notices for the operator since the last call.
    pub(crate) fn take_notices(&mut self) -> Vec<PortNotice> {
        std::mem::take(&mut self.notices)
    }

    /// Queues that take the place of those so far, once: the interface was replaced, or can be
    /// divided only since it is up.
    pub(crate) fn take_anew(&mut self) -> Option<Vec<InterfaceQueue>> {
        self.anew.take()
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
        let longest = longest(&self.interfaces, &self.name);
        self.longest.store(longest, Ordering::Relaxed);
        let up = self.interfaces.flags(&self.name).is_ok_and(is_up);
        if up && std::mem::take(&mut self.divides_later) {
            self.divide();
        }
        up
    }

    fn reopen(&mut self, index: i32) -> bool {
        let _ = self.interfaces.stop_merging(&self.name);
        let mut notices = Vec::new();
        let opened = open_links(
            &self.interfaces,
            &self.name,
            index,
            self.access,
            self.threads,
            &mut notices,
        );
        let Ok(opened) = opened else {
            return false;
        };
        self.index = index;
        self.divides_later = opened.divides_later;
        self.anew = Some(self.queues(opened.links));
        self.notices.extend(notices);
        true
    }

    /// Divides an interface that could not be divided while it was down. If that fails again, the
    /// port keeps the queue it has.
    fn divide(&mut self) {
        if let Ok(sockets) = PacketSocket::open_group(self.index, self.threads) {
            let links = sockets.into_iter().map(Link::packet).collect();
            self.anew = Some(self.queues(links));
        }
    }

    /// Bytes of the longest frame, a tag included.
    pub(crate) fn longest(&self) -> usize {
        self.longest.load(Ordering::Relaxed)
    }

    /// Bytes of the longest IP packet.
    pub(crate) fn mtu(&self) -> usize {
        self.longest() - HEADER_BYTES
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

fn open_links(
    interfaces: &Interfaces,
    name: &str,
    index: i32,
    access: Access,
    threads: usize,
    notices: &mut Vec<PortNotice>,
) -> Result<Opened, PortError> {
    if access != Access::Packet {
        match XdpSockets::open(interfaces, name, index as u32, threads) {
            Ok(sockets) => {
                if sockets.len() < threads {
                    notices.push(PortNotice::FewQueues { threads });
                }
                return Ok(Opened::of(sockets.into_iter().map(Link::Xdp).collect()));
            }
            Err(refusal) if access == Access::Xdp => {
                return Err(PortError::NoXdp {
                    name: name.to_owned(),
                    refusal,
                });
            }
            Err(refusal) => notices.push(PortNotice::NoXdp(refusal)),
        }
    }
    if threads > 1
        && let Ok(sockets) = PacketSocket::open_group(index, threads)
    {
        let links = sockets.into_iter().map(Link::packet);
        return Ok(Opened::of(links.collect()));
    }
    let failed = |action| move |cause| PortError::from_system(action, name, cause);
    let socket = PacketSocket::open().map_err(failed("opening"))?;
    socket.bind(index).map_err(failed("binding to"))?;
    Ok(Opened {
        links: vec![Link::packet(socket)],
        divides_later: threads > 1,
    })
}

fn longest(interfaces: &Interfaces, name: &str) -> usize {
    interfaces
        .mtu(name)
        .map_or(stateplane_switch::MAX_FRAME, |mtu| {
            mtu as usize + HEADER_BYTES
        })
}

fn is_up(flags: i32) -> bool {
    flags & libc::IFF_UP != 0
}
