//! AF_XDP: frames taken from the driver before the kernel makes packets of them
//! (`Documentation/networking/af_xdp.rst` of Linux).
//!
//! A small BPF program at the interface passes each receive queue's frames to a socket of its own.
//! Program and sockets disappear with the process, however it ends.

mod bpf;
mod btf;
mod queue;
mod redirect;

use self::bpf::{Attachment, SocketMap};
use self::queue::Queue;
use super::interface::Interfaces;
use super::packet_socket::Sent;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Queues that a port serves; an interface with more is refused.
const MAX_QUEUES: u32 = 64;

/// Longest frame that fits a chunk of the memory that kernel and sockets share, beside
/// the room that programs are promised before it.
pub(crate) const MAX_FRAME: usize = 4096 - 256;

/// Sockets of one interface, for one thread.
pub(crate) struct XdpSockets {
    queues: Vec<Queue>,
    zero_copy: bool,
    /// Shared with the other sockets of the interface.
    _redirection: Arc<Redirection>,
}

/// The program at an interface, and the map by which it finds each queue's socket.
struct Redirection {
    _attachment: Attachment,
    _map: SocketMap,
}

/// Why an interface cannot be used with AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum XdpRefusal {
    /// Its frames may be longer than a chunk.
    #[error("its MTU is {mtu}, AF_XDP carries frames of up to {MAX_FRAME} bytes")]
    MtuTooLarge {
        /// The interface's MTU in bytes.
        mtu: u32,
    },
    /// The interface has more queues than a port serves.
    #[error("it has {queues} receive queues, a port serves {MAX_QUEUES}: `ethtool -L` sets fewer")]
    TooManyQueues {
        /// Receive queues.
        queues: u32,
    },
    /// Tags would be lost.
    #[error("its driver takes VLAN tags out of frames and neither stops nor tells")]
    LosesTags,
    /// The system refuses.
    #[error("{action}: {cause}")]
    System {
        /// Name of the refused operation.
        action: &'static str,
        /// Error of the operating system.
        cause: io::Error,
    },
}

impl XdpRefusal {
    fn system(action: &'static str) -> impl Fn(io::Error) -> XdpRefusal {
        move |cause| XdpRefusal::System { action, cause }
    }
}

impl XdpSockets {
    /// Takes over the interface `name`, whose number is `index`, for `threads` threads: each gets
    /// sockets of its own if the interface has as many queues, else one gets all. The interface
    /// itself gives frames to its queues.
    pub(crate) fn open(
        interfaces: &Interfaces,
        name: &str,
        index: u32,
        threads: usize,
    ) -> Result<Vec<XdpSockets>, XdpRefusal> {
        let mtu = interfaces
            .mtu(name)
            .map_err(XdpRefusal::system("asking for its MTU"))?;
        // Room for the Ethernet header and two tags.
        if mtu as usize + 14 + 8 > MAX_FRAME {
            return Err(XdpRefusal::MtuTooLarge { mtu });
        }
        let count = interfaces.receive_queues(name);
        if count > MAX_QUEUES {
            return Err(XdpRefusal::TooManyQueues { queues: count });
        }
        let map = SocketMap::create(count).map_err(XdpRefusal::system("making a socket map"))?;
        let (queues, zero_copy) = open_queues(index, count)?;
        for (number, queue) in (0..).zip(&queues) {
            map.set(number, queue)
                .map_err(XdpRefusal::system("filling the socket map"))?;
        }
        let (attachment, tells_tags) = redirect::attach(&map, index)
            .map_err(XdpRefusal::system("attaching a program to its driver"))?;
        if !tells_tags && !interfaces.keeps_tags(name) {
            return Err(XdpRefusal::LosesTags);
        }
        let redirection = Arc::new(Redirection {
            _attachment: attachment,
            _map: map,
        });
        let parts = if queues.len() < threads { 1 } else { threads };
        let mut sockets: Vec<XdpSockets> = (0..parts)
            .map(|_| XdpSockets {
                queues: Vec::new(),
                zero_copy,
                _redirection: redirection.clone(),
            })
            .collect();
        for (number, queue) in queues.into_iter().enumerate() {
            sockets[number % parts].queues.push(queue);
        }
        Ok(sockets)
    }

    /// True if the driver writes frames into the shared memory itself.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Descriptors of the sockets, one for each queue.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.queues.iter().map(Queue::descriptor)
    }

    /// Frames that the kernel had no room for since the last call.
    pub(crate) fn overruns(&mut self) -> u64 {
        self.queues.iter_mut().map(Queue::overruns).sum()
    }

    /// Takes the frames that wait at queue `at`, at most a burst; returns how many.
    pub(crate) fn receive(&mut self, at: usize) -> usize {
        self.queues[at].receive()
    }

    /// Frame `next` of the last burst of queue `at`.
    pub(crate) fn frame(&mut self, at: usize, next: usize) -> &mut [u8] {
        self.queues[at].frame(next)
    }

    /// Gives the frames of queue `at`'s last burst back to the kernel.
    pub(crate) fn release(&mut self, at: usize) {
        self.queues[at].release();
    }

    /// Gives `frames` to the interface, in order.
    pub(crate) fn send(&mut self, frames: &[Vec<u8>], longest: usize) -> Sent {
        // All by one queue: a flow's frames must not overtake each other.
        self.queues[0].send(frames, longest)
    }
}

fn open_queues(index: u32, count: u32) -> Result<(Vec<Queue>, bool), XdpRefusal> {
    let open = |zero_copy| {
        (0..count)
            .map(|queue| Queue::open(index, queue, count, zero_copy))
            .collect::<Result<Vec<Queue>, XdpRefusal>>()
    };
    match open(true) {
        Ok(queues) => Ok((queues, true)),
        Err(_) => open(false).map(|queues| (queues, false)),
    }
}
