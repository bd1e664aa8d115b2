//! Sender and receiver of a log ordered by etcd. All groups have one log, since etcd orders nothing
//! across two.

use super::host::{Receives, Sends};
use super::system::{self, Shape};
use stateplane_host::clock::boot_time_us;
use stateplane_peers::{EtcdLog, EtcdWatch, etcd_clients};
use std::net::SocketAddrV4;
use std::time::Duration;

/// Members: they stand where the switches of the first group do.
fn members(shape: Shape) -> Vec<SocketAddrV4> {
    let places = (0..shape.members).map(system::place);
    places.map(etcd_clients).collect()
}

fn until(until: u64) -> Duration {
    Duration::from_micros(until.saturating_sub(boot_time_us()))
}

/// A writer of the log, with a connection for each message in flight.
pub struct LogSender(EtcdLog);

impl LogSender {
    /// Opens the connections.
    ///
    /// # Errors
    /// No member leads.
    pub fn open(shape: Shape, connections: u8) -> Result<Self, String> {
        EtcdLog::open(&members(shape), connections.into()).map(Self)
    }
}

impl Sends for LogSender {
    fn under_way(&self) -> usize {
        self.0.under_way()
    }

    fn send(&mut self, _: u32, number: u64, payload: &[u8]) -> Result<bool, String> {
        self.0.put(number, payload.to_vec()).map(|()| true)
    }

    fn step(&mut self, limit: u64) -> Result<(), String> {
        self.0.wait(until(limit)).map(drop)
    }
}

/// A reader of the log.
pub struct LogReceiver(EtcdWatch);

impl LogReceiver {
    /// Watches at the member in whose place the receiver's switch would be.
    ///
    /// # Errors
    /// The member does not answer.
    pub fn open(shape: Shape, number: u8) -> Result<Self, String> {
        let members = members(shape);
        let member = members[usize::from(number) % members.len()];
        EtcdWatch::open(member, boot_time_us).map(Self)
    }
}

impl Receives for LogReceiver {
    fn step(&mut self, limit: u64, take: &mut dyn FnMut(u64, &[u8])) -> Result<(), String> {
        self.0.wait(until(limit), take)
    }
}
