//! A server's control plane: when it works, and with which switches.

use super::super::ControlPlane;
use super::super::forwarding::Forwarding;
use super::super::workers::Workers;
use super::SwitchServer;

use crate::clock::boot_time_us;
use stateplane_runtime::Engine;
use stateplane_switch::Alone;

impl<E: Engine> SwitchServer<E> {
    /// Lets the control plane work, and returns when it wants to again.
    pub(super) fn serve_control(&mut self) -> Option<u64> {
        let control = self.control.as_mut()?;
        let due = match &mut self.switch {
            Forwarding::Alone(switch) => control.serve(switch, &mut Alone, boot_time_us()),
            Forwarding::Workers(workers) => with_workers(&mut **control, workers),
        };
        self.collect();
        self.send();
        due
    }
}

/// Lets `control` work with the workers, which are stopped only if there is something to do.
fn with_workers<E: Engine>(
    control: &mut dyn ControlPlane<E>,
    workers: &mut Workers<E>,
) -> Option<u64> {
    let now = boot_time_us();
    tell(control, workers, now);
    let sweep = workers.sweep_due();
    let due = control.due(now).into_iter().chain(sweep).min();
    if due.is_none_or(|due| due > now) && !workers.take_ports_changed() {
        return due;
    }
    // A failure that has ended a worker ends the run.
    let mut gathered = workers.gather()?;
    // Controllers hear what packets told before the change, and then its outcome.
    tell(control, workers, now);
    let due = workers.serve(&mut gathered, now, |switch, fellows| {
        control.serve(switch, fellows, now)
    });
    due.flatten().into_iter().chain(workers.sweep_due()).min()
}

/// Tells `control` what workers have for it.
fn tell<E: Engine>(control: &mut dyn ControlPlane<E>, workers: &mut Workers<E>, now: u64) {
    while let Some(frame) = workers.poll_packet_in() {
        control.packet_in(&frame);
    }
    while let Some(digest) = workers.poll_digest() {
        control.digest(&digest, now);
    }
}
