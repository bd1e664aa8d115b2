//! A server's ports: what watches, links and keys do to them.

use super::super::{RemoteCalls, SwitchServerError};
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
                    "a watch is stale (the store does not answer probes): the port is lowered"
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
        for served in &mut self.ports {
            let (up, change) = served.port.look();
            if let Some(change) = change {
                notify(served.number, served.port.name(), &change);
            }
            self.switch.set_link_up(served.number, up);
            if let Some(bytes) = served.port.longest() {
                self.switch.set_longest_frame(served.number, bytes);
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
    }

    /// Lets the keys be read again if their file changed.
    pub(super) fn look_at_keys(&mut self, now: u64, notify: &mut Notify<'_>) {
        let Some(sealing) = &mut self.sealing else {
            return;
        };
        if let Some((port, error)) = sealing.look(now)
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
