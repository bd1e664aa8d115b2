//! The socket between a switch's process and its controllers.

use super::super::Sealing;
use super::Remote;
use crate::clock::boot_time_us;
use crate::datagram::receive;
use stateplane_runtime::Engine;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Longest datagram in bytes.
const LONGEST: usize = 65_536;

/// The switch has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// A socket towards controllers. Sealed messages are sealed and opened by the switch's own thread,
/// with the keys of its ports: controllers hear program and process under one number, and would take
/// two ends of one number for one that starts again and again.
pub(super) struct Line {
    socket: Arc<UdpSocket>,
    sealed: bool,
    buffer: Vec<u8>,
}

impl Line {
    /// A socket at any address.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(super) fn open(sealed: bool) -> io::Result<Line> {
        let socket = UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Line {
            socket: Arc::new(socket),
            sealed,
            buffer: vec![0; LONGEST],
        })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends `message` to all `controllers`. One that is gone takes nothing: it hears the next one.
    ///
    /// # Errors
    ///
    /// [`Gone`].
    pub(super) fn send<E: Engine + 'static>(
        &self,
        remote: &Remote<E>,
        controllers: &[SocketAddrV4],
        message: Vec<u8>,
    ) -> Result<(), Gone> {
        if !self.sealed {
            for controller in controllers {
                let _ = self.socket.send_to(&message, controller);
            }
            return Ok(());
        }
        let (socket, controllers) = (Arc::clone(&self.socket), controllers.to_vec());
        let sent = remote.call(move |server| {
            server.with_sealing(|sealing| {
                for controller in controllers {
                    let _ = sealing.send_datagram(&socket, controller, &message);
                }
            });
        });
        sent.ok_or(Gone)
    }

    /// The next message of one of `controllers`, if one is there.
    ///
    /// # Errors
    ///
    /// The system refuses; [`Gone`].
    pub(super) fn receive<E: Engine + 'static>(
        &mut self,
        remote: &Remote<E>,
        controllers: &[SocketAddrV4],
    ) -> io::Result<Result<Option<&[u8]>, Gone>> {
        let received = receive(&self.socket, &mut self.buffer)?;
        let known = received.filter(|(_, from)| controllers.contains(from));
        let Some((length, from)) = known else {
            return Ok(Ok(None));
        };
        if !self.sealed {
            return Ok(Ok(Some(&self.buffer[..length])));
        }
        let (socket, bytes) = (Arc::clone(&self.socket), self.buffer[..length].to_vec());
        let opened = remote.call(move |server| {
            let open = |sealing: &mut Sealing| {
                sealing.open_datagram(boot_time_us(), &socket, from, &bytes)
            };
            server.with_sealing(open).flatten()
        });
        Ok(match opened {
            None => Err(Gone),
            Some(length) => Ok(length.map(|length| &self.buffer[..length])),
        })
    }
}
