//! Packet sockets (`packet(7)`): whole Ethernet frames of one interface, several in
//! one call.

mod fanout;

use super::offload::{PartialChecksum, TAG_BYTES, VlanTag, complete_checksum, insert_tag};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Frames taken from the ring, or given to it, in one call.
pub(crate) const BURST: usize = 32;

/// Longest frame, as for the switch.
const MAX_FRAME: usize = stateplane_switch::MAX_FRAME;

/// `struct virtio_net_hdr` stands before every frame of such a socket.
const PREFIX_BYTES: usize = size_of::<Prefix>();

/// Bytes asked for in each direction. The receiving one is where frames wait while the
/// program runs, or while the system runs something else: for some 10,000 small frames, 20 ms
/// at 500,000 frames in a second. More would add delay rather than throughput.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;
const SEND_BUFFER: libc::c_int = 4 << 20;

/// `struct virtio_net_hdr` of `linux/virtio_net.h`, in the machine's byte order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Prefix {
    flags: u8,
    segmentation: u8,
    header_length: u16,
    segment_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

const PREFIX_NEEDS_CHECKSUM: u8 = 1;

/// Room for one `tpacket_auxdata` as control message.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; 64]);

/// One frame of a burst.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received<'a> {
    /// A frame as it would be on the wire.
    Frame(&'a mut [u8]),
    /// Longer than [`MAX_FRAME`].
    TooLong,
    /// Several segments merged into one frame, or not yet cut into segments.
    Super,
    /// A checksum is missing whose place is not in the frame.
    BadChecksum,
}

/// Buffers for one burst.
pub(crate) struct Burst {
    /// Of each frame: room for a tag, the frame.
    frames: Vec<Vec<u8>>,
    prefixes: Vec<Prefix>,
    controls: Vec<Control>,
    messages: Vec<libc::mmsghdr>,
    received: usize,
}

// SAFETY: the pointers in the headers are into buffers of the burst itself, on the heap, and into a
// stack frame that is gone; those are written anew before a call uses them, and nothing is bound to
// the thread that made it.
#[allow(unsafe_code)]
unsafe impl Send for Burst {}

impl Burst {
    #[allow(unsafe_code)]
    pub(crate) fn new() -> Burst {
        Burst {
            frames: vec![vec![0; TAG_BYTES + MAX_FRAME]; BURST],
            prefixes: vec![Prefix::default(); BURST],
            controls: vec![Control([0; 64]); BURST],
            // SAFETY: headers of messages are made of integers and pointers, for
            // which zero is valid.
            messages: vec![unsafe { std::mem::zeroed() }; BURST],
            received: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.received
    }

    /// Frame `at` of the last burst as the kernel gave it.
    pub(crate) fn as_received(&self, at: usize) -> &[u8] {
        let length = self.messages[..self.received][at].msg_len as usize;
        let length = length.saturating_sub(PREFIX_BYTES).min(MAX_FRAME);
        &self.frames[at][TAG_BYTES..][..length]
    }

    /// Frame `at` of the last burst, made whole.
    pub(crate) fn frame(&mut self, at: usize) -> Received<'_> {
        let message = &self.messages[..self.received][at];
        let prefix = self.prefixes[at];
        let length = (message.msg_len as usize).saturating_sub(PREFIX_BYTES);
        if prefix.segmentation != 0 {
            return Received::Super;
        }
        if length > MAX_FRAME || message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            return Received::TooLong;
        }
        let buffer = &mut self.frames[at][..TAG_BYTES + length];
        if prefix.flags & PREFIX_NEEDS_CHECKSUM != 0 {
            let partial = PartialChecksum {
                start: prefix.checksum_start,
                offset: prefix.checksum_offset,
            };
            if !complete_checksum(&mut buffer[TAG_BYTES..], partial) {
                return Received::BadChecksum;
            }
        }
        match vlan_tag(&message.msg_hdr) {
            Some(_) if length + TAG_BYTES > MAX_FRAME => Received::TooLong,
            Some(tag) if insert_tag(buffer, tag) => Received::Frame(buffer),
            _ => Received::Frame(&mut buffer[TAG_BYTES..]),
        }
    }
}

/// The tag that the kernel took out of a frame.
#[allow(unsafe_code)]
fn vlan_tag(message: &libc::msghdr) -> Option<VlanTag> {
    // SAFETY: the kernel has filled the control buffer that the header points to,
    // and stated its length there; the auxiliary data is read as it may lie
    // unaligned.
    let auxiliary: libc::tpacket_auxdata = unsafe {
        let control = libc::CMSG_FIRSTHDR(message);
        if control.is_null()
            || (*control).cmsg_level != libc::SOL_PACKET
            || (*control).cmsg_type != libc::PACKET_AUXDATA
        {
            return None;
        }
        std::ptr::read_unaligned(libc::CMSG_DATA(control).cast())
    };
    if auxiliary.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let protocol = if auxiliary.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
        auxiliary.tp_vlan_tpid
    } else {
        libc::ETH_P_8021Q as u16
    };
    Some(VlanTag {
        protocol,
        control: auxiliary.tp_vlan_tci,
    })
}

/// Result of [`PacketSocket::send`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Taken by the interface.
    pub(crate) frames: usize,
    /// Longer than the interface's MTU allows.
    pub(crate) too_long: u64,
    /// The interface was down.
    pub(crate) down: u64,
    /// The socket's or the interface's queue was full.
    pub(crate) full: u64,
    /// Refused for another reason.
    pub(crate) refused: u64,
}

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    fd: OwnedFd,
}

impl PacketSocket {
    /// Opens a socket that receives nothing until it is bound.
    #[allow(unsafe_code)]
    pub(crate) fn open() -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let socket = PacketSocket {
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
        };
        let one: libc::c_int = 1;
        for option in [
            libc::PACKET_VNET_HDR,
            libc::PACKET_AUXDATA,
            libc::PACKET_IGNORE_OUTGOING,
        ] {
            socket.set(libc::SOL_PACKET, option, &one)?;
        }
        for (force, plain, size) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, RECEIVE_BUFFER),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER),
        ] {
            socket
                .set(libc::SOL_SOCKET, force, &size)
                .or_else(|_| socket.set(libc::SOL_SOCKET, plain, &size))?;
        }
        Ok(socket)
    }

    /// Receives all frames of the interface `index` from here on, with any destination address.
    #[allow(unsafe_code)]
    pub(crate) fn bind(&self, index: i32) -> io::Result<()> {
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        // SAFETY: an address is made of integers, for which zero is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the address lives through the call and is as long as stated.
        let outcome = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if outcome < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Frames that the kernel had no room for since the last call.
    pub(crate) fn overruns(&self) -> u64 {
        let mut statistics = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let read = self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut statistics);
        read.map_or(0, |()| u64::from(statistics.tp_drops))
    }

    /// Takes the frames that wait, at most [`BURST`], into `burst`.
    ///
    /// # Errors
    ///
    /// Error of the operating system; an empty socket is not an error.
    #[allow(unsafe_code)]
    pub(crate) fn receive(&self, burst: &mut Burst) -> io::Result<()> {
        burst.received = 0;
        let mut parts = [[libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; 2]; BURST];
        for (at, message) in burst.messages.iter_mut().enumerate() {
            let frame = &mut burst.frames[at][TAG_BYTES..];
            parts[at] = [
                libc::iovec {
                    iov_base: (&raw mut burst.prefixes[at]).cast(),
                    iov_len: PREFIX_BYTES,
                },
                libc::iovec {
                    iov_base: frame.as_mut_ptr().cast(),
                    iov_len: frame.len(),
                },
            ];
            let header = &mut message.msg_hdr;
            header.msg_iov = parts[at].as_mut_ptr();
            header.msg_iovlen = 2;
            header.msg_control = burst.controls[at].0.as_mut_ptr().cast();
            header.msg_controllen = burst.controls[at].0.len() as _;
            header.msg_flags = 0;
        }
        // SAFETY: every header points to parts and control buffers that live through
        // the call and are as long as stated; the headers' number is that given.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                burst.messages.as_mut_ptr(),
                BURST as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _,
                std::ptr::null_mut(),
            )
        };
        if count >= 0 {
            burst.received = count as usize;
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }
    }

    /// Gives `frames` to the interface, in order. A frame that is refused does not
    /// keep back the next.
    #[allow(unsafe_code)]
    pub(crate) fn send(&self, frames: &[Vec<u8>]) -> Sent {
        let mut sent = Sent::default();
        let mut prefix = Prefix::default();
        let mut next = 0;
        // The frame for which the system told that the interface is down. It tells once
        // of a time that is over, so a second try decides.
        let mut told_down = None;
        while next < frames.len() {
            let chunk = &frames[next..frames.len().min(next + BURST)];
            let mut parts = [[libc::iovec {
                iov_base: std::ptr::null_mut(),
                iov_len: 0,
            }; 2]; BURST];
            // SAFETY: headers of messages are made of integers and pointers, for
            // which zero is valid.
            let mut messages: [libc::mmsghdr; BURST] = unsafe { std::mem::zeroed() };
            for ((frame, part), message) in chunk.iter().zip(&mut parts).zip(&mut messages) {
                *part = [
                    libc::iovec {
                        iov_base: (&raw mut prefix).cast(),
                        iov_len: PREFIX_BYTES,
                    },
                    libc::iovec {
                        iov_base: frame.as_ptr().cast_mut().cast(),
                        iov_len: frame.len(),
                    },
                ];
                message.msg_hdr.msg_iov = part.as_mut_ptr();
                message.msg_hdr.msg_iovlen = 2;
            }
            // SAFETY: every header points to parts that live through the call and
            // are as long as stated; sending does not write to them.
            let count = unsafe {
                libc::sendmmsg(
                    self.fd.as_raw_fd(),
                    messages.as_mut_ptr(),
                    chunk.len() as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            };
            if count > 0 {
                sent.frames += count as usize;
                next += count as usize;
                continue;
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::EMSGSIZE) => sent.too_long += 1,
                Some(libc::ENETDOWN) if told_down != Some(next) => {
                    told_down = Some(next);
                    continue;
                }
                Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => sent.down += 1,
                Some(libc::EAGAIN | libc::ENOBUFS) => sent.full += 1,
                _ => sent.refused += 1,
            }
            next += 1;
        }
        sent
    }

    #[allow(unsafe_code)]
    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the value lives through the call and is as long as stated; each
        // caller gives the type that the option takes.
        let outcome = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw const *value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if outcome < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    #[allow(unsafe_code)]
    fn get<T>(&self, level: libc::c_int, option: libc::c_int, value: &mut T) -> io::Result<()> {
        let mut length = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value lives through the call and is as long as stated; each
        // caller gives the type that the option has, which is made of integers.
        let outcome = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw mut *value).cast(),
                &raw mut length,
            )
        };
        if outcome < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
