//! Datagrams of an engine on their way out.

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;

use crate::datagram::Outgoing;
use crate::sealing::Guard;
use crate::sync::SyncReport;

/// The socket, and what seals and counts on the way to it.
pub(super) struct Sending<'a> {
    pub(super) socket: &'a UdpSocket,
    pub(super) guard: Option<&'a mut Guard>,
    pub(super) outgoing: &'a mut Outgoing,
    pub(super) report: &'a mut SyncReport,
}

impl Sending<'_> {
    /// Sends `message`, at the latest at [`finish`](Self::finish).
    pub(super) fn push(&mut self, to: SocketAddrV4, message: Vec<u8>) {
        let trailer = match &mut self.guard {
            None => None,
            // The guard counts a message to an unknown peer, which is not sent.
            Some(guard) => match guard.seal(*to.ip(), &message) {
                None => return,
                trailer => trailer,
            },
        };
        self.report.sent += 1;
        self.outgoing.push(to, Arc::new(message), trailer);
        if self.outgoing.is_full() {
            self.finish();
        }
    }

    /// Sends what waits.
    pub(super) fn finish(&mut self) {
        self.report.send_failed += self.outgoing.send(self.socket);
    }
}
