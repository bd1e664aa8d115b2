//! Events of a switch: its configuration, writes of the control plane, and frames that arrive.

mod write;

pub use write::{Change, Write};

use stateplane_runtime::Port;
use stateplane_switch::{Limits, MIN_FRAME, SwitchConfig};
use std::fmt;

/// A frame that arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time in µs; not before that of an earlier arrival.
    pub at: u64,
    /// The port.
    pub port: Port,
    /// The frame.
    pub frame: Vec<u8>,
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} µs, port {}: ", self.at, self.port)?;
        self.frame
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A write of the control plane between frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Time in µs: it comes before the first frame that is not earlier, or behind the
    /// last.
    pub at: u64,
    /// The write.
    pub write: Write,
}

/// Everything that a switch with a program is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Determines the pseudo-random numbers of the engines.
    pub seed: u64,
    /// Ports, mirror sessions, multicast groups, limits.
    pub config: SwitchConfig,
    /// Writes of the control plane, before the first frame.
    pub writes: Vec<Write>,
    /// Writes between frames, in order of time.
    pub updates: Vec<Update>,
    /// The frames in order of time.
    pub arrivals: Vec<Arrival>,
}

/// Bounds under which programs that clone and recirculate without end still leave a
/// switch that answers in microseconds.
pub const LIMITS: Limits = Limits {
    shortest_frame: MIN_FRAME as u32,
    queue: 16,
    transmit: 64,
    held: 16,
    held_bytes: 64 << 10,
    recirculation: 8,
    resubmission: 8,
    resubmits_per_frame: 4,
    work: 48,
    mirror_sessions: 16,
    multicast_groups: 16,
    replicas: 16,
    generators: 4,
    watches: 4,
};

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.config;
        writeln!(f, "engine seed {}, ports {:?}", self.seed, config.ports)?;
        for (number, session) in &config.mirror_sessions {
            writeln!(f, "mirror session {number}: {session:?}")?;
        }
        for (number, replicas) in &config.multicast_groups {
            writeln!(f, "multicast group {number}: {replicas:?}")?;
        }
        for write in &self.writes {
            writeln!(f, "{write}")?;
        }
        for Update { at, write } in &self.updates {
            writeln!(f, "at {at} µs, {write}")?;
        }
        for arrival in &self.arrivals {
            writeln!(f, "{arrival}")?;
        }
        Ok(())
    }
}
