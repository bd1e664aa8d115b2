//! A server's ports: what watches, links and keys do to them.

use super::super::workers::Duties;
use super::super::{RemoteCalls, SwitchServerError};
use super::frames::hear;
use super::{Notify, SwitchServer};

use crate::clock::boot_time_us;
use crate::ports::PortNotice;
use stateplane_runtime::Engine;
use stateplane_switch::Port;
use std::collections::BTreeMap;

impl<E: Engine> SwitchServer<E> {
    /// Lets watches speak before any interface is set up: a neighbour should not see
    /// a link come up for an instant.
    pub(super) fn start(&mut self) -> Result<(), SwitchServerError> {
        self.switch.settle(boot_time_us());
        let wanted: BTreeMap<Port, bool> =
            std::iter::from_fn(|| self.switch.poll_port_state()).collect();
        for served in &self.ports {
            served
                .port
                .set_up(*wanted.get(&served.number).unwrap_or(&true))?;
        }
        self.collect();
        self.send();
        Ok(())
    }

    pub(super) fn follow_watches(&mut self, notify: &mut Notify<'_>) {
        let mut changed = false;
        while let Some((number, up)) = self.switch.poll_port_state() {
            if up {
                tracing::info!(port = number, "a watch is fresh again: the port is raised");
            } else {
                tracing::error!(
                    port = number,
                    "a watch is stale (the store does not answer probes or heartbeats): the port is lowered"
                );
            }
            self.pending.insert(number, up);
            changed = true;
        }
        if changed {
            self.look_at_links(notify);
        }
    }

    /// Sets interfaces up or down as watches asked.
    pub(super) fn set_pending(&mut self) {
        let ports = &self.ports;
        let failed = &mut self.port_state_failed;
        let greeter = self.greeter.as_ref();
        self.pending.retain(|number, up| {
            if *up && greeter.is_some_and(|it| it.holds_down(*number)) {
                return true;
            }
            let Ok(at) = ports.binary_search_by_key(number, |served| served.number) else {
                return false;
            };
            let refused = ports[at].port.set_up(*up).is_err();
            *failed += u64::from(refused);
            refused
        });
    }

    pub(super) fn look_at_links(&mut self, notify: &mut Notify<'_>) {
        self.set_pending();
        for (at, served) in self.ports.iter_mut().enumerate() {
            let (up, change) = served.port.look();
            if let Some(queues) = served.port.take_anew() {
                let hardware = served.port.hardware_address();
                self.switch.set_queues(at, hardware, queues);
            }
            self.switch.set_link_up(served.number, up);
            if let Some(bytes) = served.port.longest() {
                self.switch.set_longest_frame(served.number, bytes);
            }
            // Frames pass once it is told that they do.
            if let Some(change) = change {
                notify(served.number, served.port.name(), &change);
            }
        }
        self.listen();
    }

    pub(super) fn tell_notices(&mut self, notify: &mut Notify<'_>) {
        for served in &mut self.ports {
            for notice in served.port.take_notices() {
                notify(served.number, served.port.name(), &notice);
            }
        }
        let Some(workers) = self.switch.workers_mut() else {
            return;
        };
        while let Some((at, notice)) = workers.poll_notice() {
            let served = &self.ports[at];
            notify(served.number, served.port.name(), &notice);
        }
    }

    /// Lets workers have frames.
    pub(super) fn begin(&mut self) {
        let duties = Duties {
            neighbours: self.neighbours.clone(),
            greetings: self.filter,
            sealing: self.shared_sealing.clone(),
        };
        if let Some(workers) = self.switch.workers_mut() {
            workers.begin(&duties);
        }
    }

    /// Does what workers have told, but for the wishes of watches.
    pub(super) fn hear_workers(
        &mut self,
        notify: &mut Notify<'_>,
    ) -> Result<(), SwitchServerError> {
        let Some(workers) = self.switch.workers_mut() else {
            return Ok(());
        };
        while let Some(frame) = workers.poll_heard() {
            let now = boot_time_us();
            hear(self.filter, &mut self.greeter, &mut self.beats, now, &frame);
        }
        if let Some(error) = workers.take_failure() {
            return Err(SwitchServerError::Wait(error));
        }
        self.tell_notices(notify);
        Ok(())
    }

    /// Leaves everything as it was found, and captures written to their end.
    pub(super) fn close(&mut self, notify: &mut Notify<'_>) {
        if let Some(workers) = self.switch.workers_mut() {
            workers.close();
        }
        for served in &mut self.ports {
            served.port.close();
        }
        self.tell_notices(notify);
    }

    /// Lets the keys be read again if their file changed.
    pub(super) fn look_at_keys(&mut self, now: u64, notify: &mut Notify<'_>) {
        let looked = self.with_sealing(|sealing| sealing.look(now));
        if let Some((port, error)) = looked.flatten()
            && let Ok(at) = self.ports.binary_search_by_key(&port, |it| it.number)
        {
            notify(port, self.ports[at].port.name(), &PortNotice::Keys(error));
        }
    }

    /// Waits for the descriptors that the ports have.
    pub(super) fn listen(&mut self) {
        let mut descriptors = Vec::new();
        self.readers.clear();
        for (at, served) in self.ports.iter().enumerate() {
            for (number, descriptor) in served.port.descriptors().into_iter().enumerate() {
                descriptors.push(descriptor);
                self.readers.push((at, number));
            }
        }
        // They are served in each round; their descriptors only end the wait.
        descriptors.extend(self.control.iter().map(|control| control.descriptor()));
        descriptors.extend(self.remote.iter().map(RemoteCalls::descriptor));
        descriptors.extend(self.switch.descriptor());
        self.readable.replace(descriptors);
    }
}
