//! An AF_XDP socket at one receive queue, with the memory it shares with the kernel.

use super::{MAX_FRAME, XdpRefusal};
use crate::ports::packet_socket::{BURST, Sent};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use xdp::nic::NicIndex;
use xdp::slab::{HeapSlab, Slab};
use xdp::socket::{XdpSocket, XdpSocketBuilder};
use xdp::umem::{FrameSize, UmemCfgBuilder};
use xdp::{Packet, RingConfigBuilder, Umem, WakableRings};

/// Frames that wait to be taken, at most, at all queues of a port: 16 ms at 500,000 frames
/// in a second, in which the system may run something else.
const RECEIVING: u32 = 8192;

/// Minimum of that number for each queue.
const RECEIVING_EACH: u32 = 2048;

/// Frames that wait to be sent, at most.
const SENDING: u32 = 2048;

pub(super) struct Queue {
    // Rings and packets point into the memory, so it goes last.
    rings: WakableRings,
    socket: XdpSocket,
    received: HeapSlab,
    burst: Vec<Packet>,
    sending: HeapSlab,
    umem: Umem,
    /// Frames given to the kernel to send and not yet returned.
    in_flight: u32,
    /// Losses that were reported already.
    overruns: u64,
}

// SAFETY: the pointers in rings and packets are into memory that the queue itself keeps mapped and
// that moves with it; nothing in it is bound to the thread that opened it.
#[allow(unsafe_code)]
unsafe impl Send for Queue {}

impl Queue {
    /// Opens `queue` of `queues` queues of interface `index`.
    pub(super) fn open(
        index: u32,
        queue: u32,
        queues: u32,
        zero_copy: bool,
    ) -> Result<Queue, XdpRefusal> {
        // Each frame takes a page, and rings are powers of two long.
        let receiving = (RECEIVING / queues.next_power_of_two()).max(RECEIVING_EACH);
        let other =
            |error: String| XdpRefusal::system("opening an AF_XDP socket")(io::Error::other(error));
        let socket_error = |error: xdp::socket::SocketError| {
            let cause = std::error::Error::source(&error)
                .and_then(|source| source.downcast_ref::<io::Error>())
                .and_then(io::Error::raw_os_error)
                .map_or_else(
                    || io::Error::other(error.to_string()),
                    io::Error::from_raw_os_error,
                );
            XdpRefusal::system("opening an AF_XDP socket")(cause)
        };
        let memory = UmemCfgBuilder {
            frame_size: FrameSize::FourK,
            frame_count: receiving + SENDING,
            ..UmemCfgBuilder::default()
        };
        let memory = memory.build().map_err(|error| other(error.to_string()))?;
        let mut umem = Umem::map(memory).map_err(XdpRefusal::system("mapping memory"))?;
        let rings = RingConfigBuilder {
            rx_count: receiving,
            tx_count: SENDING,
            fill_count: receiving,
            completion_count: SENDING,
        };
        let rings = rings.build().map_err(|error| other(error.to_string()))?;
        let mut builder = XdpSocketBuilder::new().map_err(socket_error)?;
        let (mut rings, mut flags) = builder
            .build_wakable_rings(&umem, rings)
            .map_err(socket_error)?;
        if zero_copy {
            flags.force_zerocopy();
        } else {
            flags.force_copy();
        }
        fill(&mut rings, &mut umem, receiving as usize);
        let socket = builder
            .bind(NicIndex::new(index), queue, flags)
            .map_err(socket_error)?;
        Ok(Queue {
            rings,
            socket,
            received: HeapSlab::with_capacity(BURST),
            burst: Vec::with_capacity(BURST),
            sending: HeapSlab::with_capacity(BURST),
            umem,
            in_flight: 0,
            overruns: 0,
        })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub(super) fn overruns(&mut self) -> u64 {
        let Ok(statistics) = self.socket.statistics() else {
            return 0;
        };
        let lost =
            statistics.rx_dropped + statistics.rx_ring_full + statistics.rx_fill_ring_empty_descs;
        std::mem::replace(&mut self.overruns, lost).abs_diff(lost)
    }

    #[allow(unsafe_code)]
    pub(super) fn receive(&mut self) -> usize {
        self.release();
        if let Some(ring) = &mut self.rings.rx_ring {
            // SAFETY: the packets are given back before the memory is unmapped: both
            // belong to this queue, and `frame` hands out borrows only.
            unsafe { ring.recv(&self.umem, &mut self.received) };
        }
        while let Some(packet) = self.received.pop_back() {
            prefetch(&packet);
            self.burst.push(packet);
        }
        self.burst.len()
    }

    pub(super) fn frame(&mut self, next: usize) -> &mut [u8] {
        &mut self.burst[next]
    }

    pub(super) fn release(&mut self) {
        let count = self.burst.len();
        for packet in self.burst.drain(..) {
            self.umem.free_packet(packet);
        }
        if count > 0 {
            fill(&mut self.rings, &mut self.umem, count);
        }
    }

    /// Gives `frames` to the kernel; those longer than `longest` bytes are refused.
    pub(super) fn send(&mut self, frames: &[Vec<u8>], longest: usize) -> Sent {
        let mut sent = Sent::default();
        for chunk in frames.chunks(BURST) {
            self.reclaim();
            let mut queued = 0;
            for frame in chunk {
                if frame.len() > longest.min(MAX_FRAME) {
                    sent.too_long += 1;
                } else if self.in_flight >= SENDING {
                    sent.full += 1;
                } else if self.put(frame) {
                    queued += 1;
                } else {
                    sent.full += 1;
                }
            }
            self.submit();
            match self.wake() {
                Ok(()) => sent.frames += queued,
                Err(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => sent.down += queued as u64,
                Err(_) => sent.refused += queued as u64,
            }
        }
        self.reclaim();
        sent
    }

    /// Copies `frame` into the shared memory.
    #[allow(unsafe_code)]
    fn put(&mut self, frame: &[u8]) -> bool {
        // SAFETY: the packet goes into the sending ring of this queue's memory, or back.
        let Some(mut packet) = (unsafe { self.umem.alloc() }) else {
            return false;
        };
        if packet.append(frame).is_err() {
            self.umem.free_packet(packet);
            return false;
        }
        self.in_flight += 1;
        self.sending.push_front(packet);
        true
    }

    #[allow(unsafe_code)]
    fn submit(&mut self) {
        if let Some(ring) = &mut self.rings.tx_ring {
            // SAFETY: the packets are of this queue's memory, whose frames in flight are
            // fewer than the ring is long. That the kernel be woken is left to `wake`,
            // which tells its refusals apart.
            let _ = unsafe { ring.send(&mut self.sending, false) };
        }
    }

    /// Lets the kernel send what is in the ring.
    #[allow(unsafe_code)]
    fn wake(&self) -> Result<(), libc::c_int> {
        // Each call sends a batch of 32 or more.
        for _ in 0..SENDING / 32 {
            // SAFETY: nothing is passed but the socket.
            let outcome = unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            if outcome >= 0 {
                return Ok(());
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => {}
                // The frames stay in the ring and go with the next batch.
                Some(libc::EBUSY | libc::ENOBUFS) => return Ok(()),
                Some(error) => return Err(error),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn reclaim(&mut self) {
        let returned = self
            .rings
            .completion_ring
            .dequeue(&mut self.umem, SENDING as usize);
        self.in_flight = self.in_flight.saturating_sub(returned as u32);
    }
}

/// Asks for the headers of a frame, which another core wrote: those of a whole burst come
/// side by side.
#[inline]
fn prefetch(frame: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch has no effect but on the cache.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(frame.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = frame;
}

#[allow(unsafe_code)]
fn fill(rings: &mut WakableRings, umem: &mut Umem, count: usize) {
    // SAFETY: the frames stay mapped as long as the socket is open: both belong to one
    // queue. Waiting for frames wakes the driver, so it needs no call here.
    let _ = unsafe { rings.fill_ring.enqueue(umem, count, false) };
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor()
    }
}
