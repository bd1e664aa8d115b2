//! Applications that are judged by a small machine of their own.

use crate::search::Program;
use std::fmt;

/// An application's state of a flow, and what it makes of a packet. Requests and outputs
/// are numbers whose meaning the machine tells.
pub trait Machine: Sync {
    /// Outputs that may leave for a packet with `request` in `state`, which is 0 before the first
    /// packet, each with the state after it. `None`: nothing leaves.
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)>;
}

/// A program whose outputs can be told from its inputs.
#[derive(Clone, Copy)]
pub struct Application {
    name: &'static str,
    machine: &'static dyn Machine,
}

impl Application {
    /// The application of that name, which no other machine has.
    pub const fn new(name: &'static str, machine: &'static dyn Machine) -> Self {
        Self { name, machine }
    }

    /// Its name in texts.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl PartialEq for Application {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Application {}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Application").field(&self.name).finish()
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Program for Application {
    type State = u128;
    type Input = u64;
    type Output = Option<u64>;

    fn start(&self) -> u128 {
        0
    }

    fn steps(&self, state: &u128, request: &u64) -> Vec<(Option<u64>, u128)> {
        self.machine.steps(*state, *request)
    }
}
