//! A control plane beside the packets.

use super::report::ControlReport;
use stateplane_runtime::{Digest, Engine};
use stateplane_switch::{Fellows, Port, Switch};
use std::os::fd::RawFd;

/// A control plane that a [`SwitchServer`](super::SwitchServer) serves between bursts of
/// packets, on its own thread: what it changes in the switch, no packet sees half.
pub trait ControlPlane<E: Engine> {
    /// Readable when [`serve`](Self::serve) has something to do; stays open and the same.
    fn descriptor(&self) -> RawFd;

    /// Takes a frame that left the switch by the CPU port.
    fn packet_in(&mut self, frame: &[u8]);

    /// Takes a digest of the program at `now` in µs, which a worker's switch had; those of a switch
    /// alone are in its state.
    fn digest(&mut self, digest: &Digest, now: u64);

    /// When [`serve`](Self::serve) has something to do, at `now` in µs: a time that has passed means
    /// at once. Workers are stopped for `serve`, and not for this.
    fn due(&mut self, now: u64) -> Option<u64>;

    /// Does a bounded part of what waits, at `now` in µs, and returns when there is more to
    /// do: a time that has passed means at once. `switch` is the first of those that run the
    /// program, `fellows` are the others.
    fn serve(
        &mut self,
        switch: &mut Switch<E>,
        fellows: &mut dyn Fellows<E>,
        now: u64,
    ) -> Option<u64>;

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
