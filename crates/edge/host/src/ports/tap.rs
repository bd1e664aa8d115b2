//! TAP devices (`Documentation/networking/tuntap.rst` of Linux).

use super::packet_socket::{BURST, Sent};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

const DEVICE: &str = "/dev/net/tun";

/// Longest frame, as for the switch.
const MAX_FRAME: usize = stateplane_switch::MAX_FRAME;

/// The far end of a TAP device. The kernel completes frames before it gives them.
#[derive(Debug)]
pub(crate) struct Tap {
    device: File,
    frames: Vec<Vec<u8>>,
    lengths: Vec<usize>,
}

impl Tap {
    /// Makes the device `name`, which must not exist; it goes when this is dropped.
    #[allow(unsafe_code)]
    pub(crate) fn create(name: &str) -> io::Result<Tap> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(DEVICE)?;
        let mut request = super::interface::request(name)?;
        request.ifr_ifru.ifru_flags =
            (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as libc::c_short;
        // SAFETY: the operation takes an `ifreq`, which lives through the call.
        let outcome =
            unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
        if outcome < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Tap {
            device,
            frames: vec![vec![0; MAX_FRAME]; BURST],
            lengths: Vec::with_capacity(BURST),
        })
    }

    /// Takes the frames that wait, at most a burst.
    pub(crate) fn receive(&mut self) -> io::Result<usize> {
        self.lengths.clear();
        for frame in &mut self.frames {
            match self.device.read(frame) {
                Ok(length) => self.lengths.push(length),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if self.lengths.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(self.lengths.len())
    }

    pub(crate) fn frame(&mut self, next: usize) -> &mut [u8] {
        &mut self.frames[next][..self.lengths[next]]
    }

    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) -> Sent {
        let mut sent = Sent::default();
        for frame in frames {
            match self.device.write(frame) {
                Ok(length) if length == frame.len() => sent.frames += 1,
                Ok(_) => sent.refused += 1,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EIO) => sent.down += 1,
                    Some(libc::EAGAIN | libc::ENOBUFS) => sent.full += 1,
                    _ => sent.refused += 1,
                },
            }
        }
        sent
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.device.as_raw_fd()
    }
}
