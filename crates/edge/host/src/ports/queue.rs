//! A queue of a port: frames in and out, for one thread.

use super::capture::CapturePort;
use super::interface_queue::InterfaceQueue;
use super::{HostPortCounters, MacAddress, PortNotice};
use std::os::fd::RawFd;

/// The frames of a port, or of a part of its flows, for one thread.
pub(crate) enum PortQueue {
    Interface(Box<InterfaceQueue>),
    Capture(Box<CapturePort>),
}

impl PortQueue {
    pub(super) fn interface(queue: InterfaceQueue) -> PortQueue {
        PortQueue::Interface(Box::new(queue))
    }

    /// Goes on as `new`, after the interface was replaced.
    pub(crate) fn replace(&mut self, new: PortQueue) {
        if let (PortQueue::Interface(queue), PortQueue::Interface(new)) = (self, new) {
            queue.replace(*new);
        }
    }

    /// Lets it take only frames to the addresses `macs` and to that of its interface, to groups and
    /// to all. Captures take every frame.
    pub(crate) fn route(&mut self, macs: &[MacAddress]) {
        if let PortQueue::Interface(queue) = self {
            queue.route(macs);
        }
    }

    /// True if no frame may be lost on its way to another thread: nobody sends it again.
    pub(crate) fn is_capture(&self) -> bool {
        matches!(self, PortQueue::Capture(_))
    }

    /// Counters of frames since the start. A ring found full is a notice.
    pub(crate) fn counters(&mut self) -> HostPortCounters {
        match self {
            PortQueue::Interface(queue) => queue.counters(),
            PortQueue::Capture(port) => port.counters(),
        }
    }

    /// Notices for the operator since the last call.
    pub(crate) fn take_notices(&mut self) -> Vec<PortNotice> {
        match self {
            PortQueue::Interface(queue) => queue.take_notices(),
            PortQueue::Capture(port) => port.take_notices(),
        }
    }

    /// Descriptors to wait for: readable when frames may have come.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        match self {
            PortQueue::Interface(queue) => queue.descriptors(),
            PortQueue::Capture(_) => Vec::new(),
        }
    }

    /// When the next frame of a capture is due, in µs of `now_us`'s clock.
    pub(crate) fn due(&mut self, now_us: u64) -> Option<u64> {
        match self {
            PortQueue::Interface(_) => None,
            PortQueue::Capture(port) => port.due(now_us),
        }
    }

    /// True if more frames may come.
    pub(crate) fn is_open_ended(&self) -> bool {
        match self {
            PortQueue::Interface(_) => true,
            PortQueue::Capture(port) => !port.has_ended(),
        }
    }

    /// Takes the frames that wait at descriptor `at`, at most a burst; returns how many
    /// there are.
    pub(crate) fn receive(&mut self, at: usize, now_us: u64) -> usize {
        match self {
            PortQueue::Interface(queue) => queue.receive(at),
            PortQueue::Capture(port) => port.receive(now_us),
        }
    }

    /// Frame `next` of the last burst before anything is done to it: perhaps without a tag
    /// or a checksum that it should have, or cut off.
    pub(crate) fn as_received(&mut self, next: usize) -> &[u8] {
        match self {
            PortQueue::Interface(queue) => queue.as_received(next),
            PortQueue::Capture(port) => port.as_received(next),
        }
    }

    /// Frame `next` of the last burst; `None` if it is no frame for the switch, which is
    /// counted.
    pub(crate) fn frame(&mut self, next: usize) -> Option<&mut [u8]> {
        match self {
            PortQueue::Interface(queue) => queue.frame(next),
            PortQueue::Capture(port) => port.frame(next),
        }
    }

    /// Ends the last burst: its frames are not used any more.
    pub(crate) fn release(&mut self) {
        if let PortQueue::Interface(queue) = self {
            queue.release();
        }
    }

    /// Sends `frames`, in order, and counts the results. `now_us` is the time that a capture shows.
    pub(crate) fn send(&mut self, frames: &[Vec<u8>], now_us: u64) {
        match self {
            PortQueue::Interface(queue) => queue.send(frames),
            PortQueue::Capture(port) => port.send(frames, now_us),
        }
    }

    /// Writes what a capture has buffered.
    pub(crate) fn close(&mut self) {
        if let PortQueue::Capture(port) = self {
            port.close();
        }
    }
}
