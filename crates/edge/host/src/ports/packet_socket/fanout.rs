//! Several packet sockets that share the frames of one interface (`PACKET_FANOUT` of `packet(7)`).

use super::PacketSocket;
use std::io;

/// Frames go by the hash of their addresses and ports, which is the same for both directions of a
/// flow and passes over VLAN tags. Fragments go by their addresses: those of a datagram fall
/// together. `PACKET_FANOUT_FLAG_DEFRAG` would put them by the datagram's ports too, but gives one
/// long frame in the place of those that came, and a switch forwards frames as they are.
///
/// The group has a hook of its own at the interface, so it is the group that must not see what the
/// sockets send.
const BY_FLOW: libc::c_uint = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;

/// Bits of the group's number in the option.
const NUMBER_BITS: u32 = 16;

impl PacketSocket {
    /// Opens `count` sockets that share the frames of the interface `index` by their flows. Frames
    /// of a flow come to one of them, in order; no frame comes to two.
    ///
    /// # Errors
    ///
    /// Error of the operating system; `EINVAL` before Linux 6.13 while the interface is down.
    pub(crate) fn open_group(index: i32, count: usize) -> io::Result<Vec<PacketSocket>> {
        let sockets = (0..count)
            .map(|_| PacketSocket::open())
            .collect::<io::Result<Vec<PacketSocket>>>()?;
        let mut group = None;
        for socket in &sockets {
            // Until it is in the group, a bound socket has a copy of every frame.
            socket.refuse_all()?;
            socket.bind(index)?;
            group = Some(socket.join(group)?);
        }
        for socket in &sockets {
            socket.set(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0_i32)?;
        }
        Ok(sockets)
    }

    /// Takes no frame as long as the filter is there.
    fn refuse_all(&self) -> io::Result<()> {
        let mut keep_nothing = libc::sock_filter {
            code: (libc::BPF_RET | libc::BPF_K) as u16,
            jt: 0,
            jf: 0,
            k: 0,
        };
        let program = libc::sock_fprog {
            len: 1,
            filter: &raw mut keep_nothing,
        };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Joins `group`, or a new one, and gives its number.
    fn join(&self, group: Option<u16>) -> io::Result<u16> {
        let (number, mode) = match group {
            Some(group) => (group, BY_FLOW),
            None => (0, BY_FLOW | libc::PACKET_FANOUT_FLAG_UNIQUEID),
        };
        let option = libc::c_uint::from(number) | mode << NUMBER_BITS;
        self.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &option)?;
        match group {
            Some(group) => Ok(group),
            None => {
                let mut option: libc::c_uint = 0;
                self.get(libc::SOL_PACKET, libc::PACKET_FANOUT, &mut option)?;
                Ok((option & 0xffff) as u16)
            }
        }
    }
}
