//! A control plane beside the packets.

use super::report::ControlReport;
use stateplane_runtime::Engine;
use stateplane_switch::{Port, Switch};
use std::os::fd::RawFd;

/// A control plane that a [`SwitchServer`](super::SwitchServer) serves between bursts of
/// packets, on its own thread: what it changes in the switch, no packet sees half.
pub trait ControlPlane<E: Engine> {
    /// Readable when [`serve`](Self::serve) has something to do; stays open and the same.
    fn descriptor(&self) -> RawFd;

    /// Takes a frame that left the switch by the CPU port.
    fn packet_in(&mut self, frame: &[u8]);

    /// Does a bounded part of what waits, at `now` in µs, and returns when there is more to
    /// do: a time that has passed means at once.
    fn serve(&mut self, switch: &mut Switch<E>, now: u64) -> Option<u64>;

    /// Counts of its connections and messages.
    fn report(&self) -> ControlReport;
}

/// A control plane, or why there is none.
pub type Made<E> = Result<Box<dyn ControlPlane<E>>, String>;

/// Attachment of a control plane to a switch.
pub struct Attachment<'a, E: Engine> {
    /// A port of the switch without interface: its frames go to the control plane.
    pub cpu_port: Option<Port>,
    /// Makes the control plane of a switch whose configuration has been applied.
    pub make: &'a mut dyn FnMut(&Switch<E>) -> Made<E>,
}
