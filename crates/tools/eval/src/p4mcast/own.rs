//! Sender and receiver of this project, as they ship.

use super::host::{Receives, Sends};
use super::system::{CONTROLLER, RECEIVERS};
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_receiver::{MulticastReceiver, MulticastReceiverConfig, Received};
use stateplane_host::multicast_sender::{MulticastSender, MulticastSenderConfig};
use stateplane_multicast::{Event, SendError};
use stateplane_wire::control::PORT;
use std::net::SocketAddrV4;

/// Time in µs for which a host waits for the controller.
const PATIENCE_US: u64 = 30_000_000;
/// Messages in a receiver's queue at most.
const QUEUE: usize = 1024;

fn controllers() -> Vec<SocketAddrV4> {
    vec![SocketAddrV4::new(CONTROLLER, PORT)]
}

/// A sender of multicast.
pub struct OwnSender {
    sender: MulticastSender,
    under_way: usize,
}

impl OwnSender {
    /// Opens a session with `lanes` lanes.
    ///
    /// # Errors
    /// The controller gives none.
    pub fn open(lanes: u8) -> Result<Self, String> {
        let config = MulticastSenderConfig {
            lanes,
            ..MulticastSenderConfig::new(controllers())
        };
        let end = boot_time_us() + PATIENCE_US;
        let sender = MulticastSender::connect(config, None, end);
        Ok(Self {
            sender: sender.map_err(|error| error.to_string())?,
            under_way: 0,
        })
    }
}

impl Sends for OwnSender {
    fn under_way(&self) -> usize {
        self.under_way
    }

    fn send(&mut self, to: u32, _: u64, payload: &[u8]) -> Result<bool, String> {
        match self.sender.send(to, payload.to_vec()) {
            Ok(_) => {
                self.under_way += 1;
                Ok(true)
            }
            Err(SendError::NoLane) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn step(&mut self, until: u64) -> Result<(), String> {
        let stepped = self.sender.step(until);
        stepped.map_err(|error| error.to_string())?;
        while let Some(event) = self.sender.poll_event() {
            match event {
                Event::Complete { .. } => self.under_way -= 1,
                Event::Refused { code, .. } => {
                    return Err(format!("a message was refused: {code:?}"));
                }
                // Its lane stays taken.
                Event::Unknown { .. } => {}
            }
        }
        Ok(())
    }
}

/// A receiver of multicast.
pub struct OwnReceiver(MulticastReceiver);

impl OwnReceiver {
    /// Joins the group of the receiver `number`.
    ///
    /// # Errors
    /// It is not listed.
    pub fn open(number: u8) -> Result<Self, String> {
        let config = MulticastReceiverConfig {
            controllers: controllers(),
            address: None,
            group: number / RECEIVERS,
            queue: QUEUE,
        };
        let end = boot_time_us() + PATIENCE_US;
        let receiver = MulticastReceiver::connect(config, None, end);
        receiver.map(Self).map_err(|error| error.to_string())
    }
}

impl Receives for OwnReceiver {
    fn step(&mut self, until: u64, take: &mut dyn FnMut(u64, &[u8])) -> Result<(), String> {
        let stepped = self.0.step(until);
        stepped.map_err(|error| error.to_string())?;
        while let Some(received) = self.0.poll() {
            match received {
                Received::Message { payload, .. } => take(boot_time_us(), &payload),
                Received::TakenOff => return Err("the receiver was taken off its list".to_owned()),
            }
        }
        Ok(())
    }
}
