//! A port of the switch.

use super::capture::CapturePort;
use super::interface_port::InterfacePort;
use super::queue::PortQueue;
use super::xdp::XdpRefusal;
use super::{MacAddress, PortError, PortMode, PortSpec};
use serde::Serialize;
use std::fmt;
use std::ops::AddAssign;
use std::os::fd::RawFd;

/// Counters of frames between the wire and the switch.
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
    /// Addressed to another host, at a routed port: its link is a bridge that did not know
    /// the receiver.
    pub rx_other_host: u64,
    /// Lost to an error of the system.
    pub rx_failed: u64,
    /// The worker that they fall to had no room for them: it is too slow.
    pub rx_handover_full: u64,
    /// Longer than the interface's MTU.
    pub tx_too_long: u64,
    /// The interface was down.
    pub tx_down: u64,
    /// The interface's queue was full.
    pub tx_full: u64,
    /// Refused for another reason.
    pub tx_refused: u64,
    /// The worker that sends by the port for all had no room for them.
    pub tx_handover_full: u64,
}

impl AddAssign for HostPortCounters {
    fn add_assign(&mut self, other: HostPortCounters) {
        self.received += other.received;
        self.sent += other.sent;
        self.rx_overrun += other.rx_overrun;
        self.rx_too_long += other.rx_too_long;
        self.rx_super_frame += other.rx_super_frame;
        self.rx_bad_checksum += other.rx_bad_checksum;
        self.rx_other_host += other.rx_other_host;
        self.rx_failed += other.rx_failed;
        self.rx_handover_full += other.rx_handover_full;
        self.tx_too_long += other.tx_too_long;
        self.tx_down += other.tx_down;
        self.tx_full += other.tx_full;
        self.tx_refused += other.tx_refused;
        self.tx_handover_full += other.tx_handover_full;
    }
}

/// Notice about a port for the operator; each kind is reported once for each time it begins.
#[derive(Debug)]
pub enum PortNotice {
    /// The port works by AF_PACKET, and why not by AF_XDP.
    NoXdp(XdpRefusal),
    /// One worker takes the frames of all: by AF_XDP each needs a receive queue of the interface.
    FewQueues {
        /// Workers.
        threads: usize,
    },
    /// The interface went down or was removed.
    Down,
    /// The interface is back.
    Up(PortMode),
    /// A frame was longer than the interface's MTU allows.
    FrameTooLong {
        /// Longest frame in bytes.
        limit: usize,
    },
    /// The interface takes frames more slowly than they come.
    RingFull,
    /// Frames come faster than the switch takes them.
    ReceiveRingFull,
    /// A capture has been read to its end.
    CaptureEnded {
        /// Frames taken from it.
        frames: u64,
    },
    /// A capture file that is read is damaged: the record and the cause.
    CaptureDamaged(String),
    /// A capture file cannot be written.
    CaptureFailed(String),
    /// The file of keys changed and is refused; the keys so far stay.
    Keys(crate::sealing::KeysError),
}

impl fmt::Display for PortNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortNotice::NoXdp(refusal) => write!(f, "AF_PACKET in place of AF_XDP: {refusal}"),
            PortNotice::FewQueues { threads } => write!(
                f,
                "one worker takes its frames and hands them to the others: it has fewer receive queues than the {threads} workers (`ethtool -L` gives it more)"
            ),
            PortNotice::Down => f.write_str("down; the other ports go on"),
            PortNotice::Up(mode) => write!(f, "up again ({mode})"),
            PortNotice::FrameTooLong { limit } => write!(
                f,
                "a frame is longer than the {limit} bytes that its MTU allows, and was dropped: raise the MTU (`ip link set … mtu`)"
            ),
            PortNotice::RingFull => {
                f.write_str("its ring is full: frames come faster than the interface takes them")
            }
            PortNotice::ReceiveRingFull => f.write_str(
                "its receive ring is full: frames come faster than the switch takes them, and some are lost",
            ),
            PortNotice::CaptureEnded { frames } => write!(f, "capture ended after {frames} frames"),
            PortNotice::Keys(error) => {
                write!(f, "error[{}]: {error}; the keys so far stay", error.code())
            }
            PortNotice::CaptureDamaged(cause) => write!(f, "capture damaged: {cause}"),
            PortNotice::CaptureFailed(cause) => write!(f, "capture failed: {cause}"),
        }
    }
}

/// A port of the switch: where frames come from and go to.
pub struct Port {
    kind: Kind,
    /// Its frames; `None` if workers have them.
    queue: Option<PortQueue>,
    /// Link state at the last look; `None` before the first.
    was_up: Option<bool>,
}

enum Kind {
    Interface(Box<InterfacePort>),
    /// A capture of this name.
    Capture(String),
}

impl Port {
    /// Opens what `spec` names.
    ///
    /// # Errors
    ///
    /// [`PortError`] if there is no such interface or file, it is not Ethernet, or the
    /// process may not open it.
    pub fn open(spec: &PortSpec) -> Result<Port, PortError> {
        let (mut port, queues) = Port::open_divided(spec, 1)?;
        port.queue = queues.into_iter().next();
        Ok(port)
    }

    /// Opens what `spec` names for `threads` threads: the port, which has no frames, and a queue
    /// for each thread, or one alone if it cannot be divided.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub(crate) fn open_divided(
        spec: &PortSpec,
        threads: usize,
    ) -> Result<(Port, Vec<PortQueue>), PortError> {
        let interface = |(port, queues): (InterfacePort, Vec<_>)| {
            let queues = queues.into_iter().map(PortQueue::interface);
            (Kind::Interface(Box::new(port)), queues.collect())
        };
        let (kind, queues) = match spec {
            PortSpec::Interface { name, access } => {
                interface(InterfacePort::open(name, *access, threads)?)
            }
            PortSpec::Tap(name) => interface(InterfacePort::tap(name)?),
            PortSpec::Capture {
                input,
                output,
                timed,
            } => {
                let port = CapturePort::open(input.as_deref(), output.as_deref(), *timed)?;
                let name = port.name().to_owned();
                let queue = PortQueue::Capture(Box::new(port));
                (Kind::Capture(name), vec![queue])
            }
        };
        let port = Port {
            kind,
            queue: None,
            was_up: None,
        };
        Ok((port, queues))
    }

    /// Lets the port take only frames to the addresses `macs` and to that of its interface, to
    /// groups and to all. Captures take every frame.
    pub fn route(&mut self, macs: &[MacAddress]) {
        if let Some(queue) = &mut self.queue {
            queue.route(macs);
        }
    }

    /// MAC address of the interface, if it has one.
    pub(crate) fn hardware_address(&self) -> Option<MacAddress> {
        match &self.kind {
            Kind::Interface(port) => port.hardware_address(),
            Kind::Capture(_) => None,
        }
    }

    /// The interface's name, or the captures'.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Interface(port) => port.name(),
            Kind::Capture(name) => name,
        }
    }

    /// Present mode of the port.
    pub fn mode(&self) -> PortMode {
        match &self.kind {
            Kind::Interface(port) => port.mode(),
            Kind::Capture(_) => PortMode::Capture,
        }
    }

    /// Counters of frames since the start, without those that workers have.
    pub fn counters(&mut self) -> HostPortCounters {
        let queue = self.queue.as_mut();
        queue.map(PortQueue::counters).unwrap_or_default()
    }

    /// Notices for the operator since the last call.
    pub fn take_notices(&mut self) -> Vec<PortNotice> {
        let mut notices = match &mut self.kind {
            Kind::Interface(port) => port.take_notices(),
            Kind::Capture(_) => Vec::new(),
        };
        if let Some(queue) = &mut self.queue {
            notices.extend(queue.take_notices());
        }
        notices
    }

    /// Sets the interface up or down.
    ///
    /// # Errors
    ///
    /// [`PortError`] if it is gone, or the process may not.
    pub fn set_up(&self, up: bool) -> Result<(), PortError> {
        match &self.kind {
            Kind::Interface(port) => port.set_up(up),
            Kind::Capture(_) => Ok(()),
        }
    }

    /// Link state, and the notice if it changed since the last call.
    pub fn look(&mut self) -> (bool, Option<PortNotice>) {
        let up = match &mut self.kind {
            Kind::Interface(port) => port.link_is_up(),
            Kind::Capture(_) => true,
        };
        if self.queue.is_some()
            && let Some(anew) = self.take_anew()
            && let (Some(queue), Some(new)) = (&mut self.queue, anew.into_iter().next())
        {
            queue.replace(new);
        }
        // A ring that was found full is told with the port's notices.
        self.counters();
        let notice = match self.was_up.replace(up) {
            Some(false) if up => Some(PortNotice::Up(self.mode())),
            Some(true) if !up => Some(PortNotice::Down),
            _ => None,
        };
        (up, notice)
    }

    /// Queues that take the place of those that threads have, once: the interface was replaced, or
    /// can be divided only since it is up.
    pub(crate) fn take_anew(&mut self) -> Option<Vec<PortQueue>> {
        match &mut self.kind {
            Kind::Interface(port) => {
                let queues = port.take_anew()?.into_iter();
                Some(queues.map(PortQueue::interface).collect())
            }
            Kind::Capture(_) => None,
        }
    }

    /// Descriptors to wait for: readable when frames may have come. They change when an interface
    /// is replaced.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        let queue = self.queue.as_ref();
        queue.map(PortQueue::descriptors).unwrap_or_default()
    }

    /// When the next frame of a capture is due, in µs of `now_us`'s clock.
    pub(crate) fn due(&mut self, now_us: u64) -> Option<u64> {
        self.queue.as_mut()?.due(now_us)
    }

    /// Bytes of the longest frame that the interface sends; captures take any.
    pub(crate) fn longest(&self) -> Option<usize> {
        match &self.kind {
            Kind::Interface(port) => Some(port.longest()),
            Kind::Capture(_) => None,
        }
    }

    /// Bytes of the longest IP packet that the interface sends; captures take any.
    pub(crate) fn mtu(&self) -> Option<usize> {
        match &self.kind {
            Kind::Interface(port) => Some(port.mtu()),
            Kind::Capture(_) => None,
        }
    }

    /// True if more frames may come; of a capture whose frames workers have they say it.
    pub(crate) fn is_open_ended(&self) -> bool {
        match (&self.kind, &self.queue) {
            (Kind::Interface(_), _) => true,
            (Kind::Capture(_), queue) => queue.as_ref().is_some_and(PortQueue::is_open_ended),
        }
    }

    /// Takes the frames that wait at descriptor `at`, at most a burst; returns how many
    /// there are.
    pub(crate) fn receive(&mut self, at: usize, now_us: u64) -> usize {
        let queue = self.queue.as_mut();
        queue.map_or(0, |queue| queue.receive(at, now_us))
    }

    /// Frame `next` of the last burst before anything is done to it: perhaps without a tag
    /// or a checksum that it should have, or cut off.
    pub(crate) fn as_received(&mut self, next: usize) -> &[u8] {
        let queue = self.queue.as_mut();
        queue.map_or(&[], |queue| queue.as_received(next))
    }

    /// Frame `next` of the last burst; `None` if it is no frame for the switch, which is
    /// counted.
    pub(crate) fn frame(&mut self, next: usize) -> Option<&mut [u8]> {
        self.queue.as_mut()?.frame(next)
    }

    /// Ends the last burst: its frames are not used any more.
    pub(crate) fn release(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.release();
        }
    }

    /// Sends `frames`, in order, and counts the results. `now_us` is the time that a capture shows,
    /// in µs of any clock.
    pub fn send(&mut self, frames: &[Vec<u8>], now_us: u64) {
        if let Some(queue) = &mut self.queue {
            queue.send(frames, now_us);
        }
    }

    /// Leaves everything as it was found, and captures written to their end.
    pub(crate) fn close(&mut self) {
        if let Kind::Interface(port) = &self.kind {
            // The interface may be gone, and then nothing is left to restore.
            drop(port.restore());
        }
        if let Some(queue) = &mut self.queue {
            queue.close();
        }
    }
}
