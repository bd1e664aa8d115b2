//! Fields that only histories of replication have.

use crate::fields::{Fields, TextError};
use crate::replication::event::{Endpoint, Flow, Occupant, Protocol};

/// Names of the events.
pub(super) const EVENT_NAMES: &str = "input, output, granted, accepted, used, ended, died, translated, taken, freed, mapped, remaining and kept";

/// Words that begin a line without an event.
pub(super) const WORDS: &str = "`expect`, `pool` or `application`";

impl Fields<'_> {
    pub(super) fn flow(&mut self) -> Result<Flow, TextError> {
        self.take("flow", "name", |value| {
            (!value.is_empty()).then(|| Flow::new(value))
        })
    }

    pub(super) fn endpoint(&mut self, field: &'static str) -> Result<Endpoint, TextError> {
        self.take(field, "endpoint like 10.0.0.1:4000/tcp", endpoint)
    }

    /// The remote endpoint of a mapping that serves it alone.
    pub(super) fn remote(&mut self) -> Result<Option<Endpoint>, TextError> {
        self.take_optional("remote", "endpoint like 198.51.100.1:80/tcp", endpoint)
    }

    pub(super) fn occupant(&mut self) -> Result<Occupant, TextError> {
        Ok(Occupant {
            switch: self.number("switch")?,
            incarnation: self.number("start")?,
        })
    }

    pub(super) fn shared(&mut self) -> Result<bool, TextError> {
        self.take("lease", "`shared` or `exclusive`", |value| match value {
            "shared" => Some(true),
            "exclusive" => Some(false),
            _ => None,
        })
    }

    pub(super) fn protocol(&mut self) -> Result<Protocol, TextError> {
        self.take("protocol", "`tcp`, `udp` or `icmp`", protocol)
    }
}

fn protocol(word: &str) -> Option<Protocol> {
    match word {
        "tcp" => Some(Protocol::Tcp),
        "udp" => Some(Protocol::Udp),
        "icmp" => Some(Protocol::Icmp),
        _ => None,
    }
}

fn endpoint(word: &str) -> Option<Endpoint> {
    let (rest, of) = word.split_once('/')?;
    let (address, port) = rest.split_once(':')?;
    Some(Endpoint {
        address: address.parse().ok()?,
        port: port.parse().ok()?,
        protocol: protocol(of)?,
    })
}
