//! The begin of a client: the number of groups, and a session's lanes.

use std::io;

use stateplane_coordination::{ConnectionEvent, Lanes};

use super::{Client, ClientConfig};
use crate::sealing::Guard;

/// Reason why a client could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Every lane belongs to a session.
    #[error("the controller has no free lanes: too many clients, or no reaper runs")]
    NoLanes,
    /// The time passed.
    #[error("no controller answers")]
    Silent,
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The answers that a client needs before its first operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Number of groups.
    pub groups: u16,
    /// The session's lanes, unless the client only reads.
    pub lanes: Option<Lanes>,
    /// Time in µs without a keepalive after which the session may be ended; 0 without lanes.
    pub ttl_us: u64,
}

impl Client {
    /// Opens a client, and waits until it knows the groups and has the lanes that it wants: at most
    /// the time of an operation. With a guard only sealed messages are sent and taken.
    ///
    /// # Errors
    ///
    /// [`ConnectError`].
    pub fn connect(
        config: &ClientConfig,
        guard: Option<Guard>,
    ) -> Result<(Client, Opened), ConnectError> {
        let mut client = Client::open_sealed(config, guard)?;
        let end = client.now() + config.deadline_us;
        let mut opened = Opened {
            groups: 0,
            lanes: None,
            ttl_us: 0,
        };
        let mut refused = false;
        while opened.groups == 0 || (config.lanes > 0 && opened.lanes.is_none()) {
            while let Some(event) = client.poll_event() {
                match event {
                    ConnectionEvent::Opened { lanes, ttl_us } => {
                        opened.lanes = Some(lanes);
                        opened.ttl_us = ttl_us;
                    }
                    ConnectionEvent::NoLanes => refused = true,
                    _ => {}
                }
            }
            let agent = client.connection().agent();
            opened.groups = agent.map_or(0, |agent| agent.settings().groups);
            if client.now() >= end {
                return Err(if refused {
                    ConnectError::NoLanes
                } else {
                    ConnectError::Silent
                });
            }
            client.step(end)?;
        }
        Ok((client, opened))
    }
}
