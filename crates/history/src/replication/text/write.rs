//! Histories are written, one event a line.

use crate::replication::event::{
    Direction, Durability, Endpoint, Event, EventKind, History, Occupant, PoolRange, Released,
    StateEvent,
};
use std::fmt;

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(application) = self.system.application {
            writeln!(f, "application {application}")?;
        }
        for pool in &self.system.pools {
            let PoolRange {
                address,
                protocol,
                first,
                last,
            } = pool;
            writeln!(
                f,
                "pool address={address} protocol={protocol} first={first} last={last}"
            )?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

struct Who<'a>(&'a Occupant);

impl fmt::Display for Who<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "switch={} start={}", self.0.switch, self.0.incarnation)
    }
}

/// The field that names the remote endpoint of a mapping that serves it alone.
struct Remote<'a>(&'a Option<Endpoint>);

impl fmt::Display for Remote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(remote) => write!(f, " remote={remote}"),
            None => Ok(()),
        }
    }
}

fn lease(shared: bool) -> &'static str {
    if shared { "shared" } else { "exclusive" }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.at)?;
        match &self.kind {
            EventKind::Call {
                node,
                object,
                operation,
                request,
            } => {
                write!(f, "input switch={node} flow={object} packet={operation}")?;
                match request {
                    Some(request) => write!(f, " request={request}"),
                    None => Ok(()),
                }
            }
            EventKind::Return {
                node,
                object,
                operation,
                response,
            } => {
                write!(f, "output switch={node} flow={object} packet={operation}")?;
                write!(f, "{response}")
            }
            EventKind::Send { content, .. } | EventKind::Deliver { content, .. } => {
                match *content {}
            }
            EventKind::Died { node } => write!(f, "died switch={node}"),
            EventKind::Of(event) => write!(f, "{event}"),
        }
    }
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.value {
            write!(f, " value={value}")?;
        }
        if let Some(Durability { sequence, held }) = &self.durability {
            let held = held.iter().map(|held| match held {
                None => "-".into(),
                Some(number) => number.to_string(),
            });
            let held = held.collect::<Vec<_>>().join(",");
            write!(f, " sequence={sequence} held={held}")?;
        }
        Ok(())
    }
}

impl fmt::Display for StateEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted {
                to,
                flow,
                epoch,
                shared,
            } => write!(
                f,
                "granted {} flow={flow} epoch={epoch} lease={}",
                Who(to),
                lease(*shared)
            ),
            Self::Accepted {
                by,
                flow,
                epoch,
                shared,
                until,
            } => write!(
                f,
                "accepted {} flow={flow} epoch={epoch} lease={} until={until}",
                Who(by),
                lease(*shared)
            ),
            Self::Used { by, flow, epoch } => {
                write!(f, "used {} flow={flow} epoch={epoch}", Who(by))
            }
            Self::Ended { by, flow } => write!(f, "ended {} flow={flow}", Who(by)),
            Self::Translated {
                switch,
                direction,
                inside,
                public,
                remote,
            } => {
                let direction = match direction {
                    Direction::Outbound => "out",
                    Direction::Inbound => "in",
                };
                write!(
                    f,
                    "translated switch={switch} direction={direction} inside={inside} public={public}{}",
                    Remote(remote)
                )
            }
            Self::Taken {
                replica,
                inside,
                public,
                remote,
            } => write!(
                f,
                "taken replica={replica} inside={inside} public={public}{}",
                Remote(remote)
            ),
            Self::Freed {
                replica,
                public,
                remote,
            } => write!(
                f,
                "freed replica={replica} public={public}{}",
                Remote(remote)
            ),
            Self::Mapped {
                replica,
                inside,
                public,
                remote,
            } => write!(
                f,
                "mapped replica={replica} inside={inside} public={public}{}",
                Remote(remote)
            ),
            Self::Remaining {
                replica,
                address,
                protocol,
                free,
            } => write!(
                f,
                "remaining replica={replica} address={address} protocol={protocol} free={free}"
            ),
            Self::Kept {
                switch,
                flow,
                sequence,
                acknowledged,
            } => write!(
                f,
                "kept switch={switch} flow={flow} sequence={sequence} acknowledged={acknowledged}"
            ),
        }
    }
}
