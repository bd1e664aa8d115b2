//! Linearizability of the applications that have no checker of their own: each is a
//! small machine here, and [`explain`] searches an order of a flow's packets in
//! which it gives their outputs (RedPlane §4, Definitions 2 to 4).
//!
//! A request and an output are numbers whose meaning the machine's module tells. An
//! input without a request belongs to no machine.

mod firewall;

use crate::checker::{Checker, Subject, Violation};
use crate::event::{EventKind, History};
use crate::operation::{Operation, operations_of};
use crate::search::{Program, explain};
use std::collections::BTreeMap;
use std::fmt;

/// A program whose outputs can be told from its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Application {
    /// `p4/apps/firewall`. A request has the TCP control bits (RFC 9293 3.1) in its
    /// lowest byte, bit 8 if the packet comes from outside, bit 9 if it is UDP. The
    /// output is 1: the packet passed.
    Firewall,
}

/// The names for a message.
pub(crate) const APPLICATION_NAMES: &str = "firewall";

impl Application {
    /// All of them.
    pub const ALL: [Self; 1] = [Self::Firewall];

    /// Its name in texts, and of its folder in `p4/apps`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Firewall => "firewall",
        }
    }

    /// The application of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Program for Application {
    type State = u128;
    type Input = u64;
    /// `None`: no packet leaves.
    type Output = Option<u64>;

    fn start(&self) -> u128 {
        0
    }

    fn steps(&self, state: &u128, request: &u64) -> Vec<(Option<u64>, u128)> {
        match self {
            Self::Firewall => vec![firewall::step(*state, *request)],
        }
    }
}

pub(crate) fn check(history: &History) -> Vec<Violation> {
    let Some(application) = history.application else {
        return Vec::new();
    };
    let requests: BTreeMap<u64, u64> = history
        .events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Input {
                packet, request, ..
            } => Some((packet, request?)),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for (flow, operations) in operations_of(history) {
        let asked: Vec<Operation<u64, Option<u64>>> = operations
            .into_iter()
            .filter_map(|operation| {
                Some(Operation {
                    input: *requests.get(&operation.input)?,
                    began: operation.began,
                    ended: operation.ended,
                })
            })
            .collect();
        let (event, because) = match explain(&application, &asked) {
            Ok(Ok(_)) => continue,
            Ok(Err(event)) => (
                event,
                format!("no order of the packets explains what the {application} let out"),
            ),
            Err(error) => (
                asked.first().map_or(0, |operation| operation.began),
                error.to_string(),
            ),
        };
        found.push(Violation {
            checker: Checker::Application,
            subject: Subject::Flow(flow),
            event,
            because,
        });
    }
    found
}
