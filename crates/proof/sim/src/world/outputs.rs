//! Records of packets that switches release.

use super::World;
use crate::frame::{OUTSIDE_PORT, number_in};
use crate::traffic::{Carried, Sent};
use stateplane_apps::{Asked, Translation};
use stateplane_history::replication::{Direction, Durability, EventKind, Released, StateEvent};

impl World<'_> {
    pub(super) fn output(&mut self, switch: usize, port: u16, frame: &[u8]) {
        let sent = number_in(frame).and_then(|number| self.traffic.sent(number));
        let Some(sent) = sent.cloned() else {
            self.anomaly(format!("no host would take this frame: {frame:02x?}"));
            return;
        };
        match &sent.carried {
            Carried::Asked(asked) => self.answered(switch, port, frame, &sent, asked),
            Carried::Own(..) => self.released_own(switch, port, frame, &sent),
        }
    }

    /// Durability of the packet `number` when it left, if it passed the store.
    fn durability(&self, number: u64) -> Option<Durability> {
        let write = self.recorder.write(number)?;
        let keepers = self.sure_keepers(write.shard).into_iter();
        let held =
            keepers.map(|store| self.stores[store].held(self.options, write.shard, &write.key));
        Some(Durability {
            sequence: write.sequence,
            held: held.collect(),
        })
    }

    /// A program of the user's let a packet out.
    fn released_own(&mut self, switch: usize, port: u16, frame: &[u8], sent: &Sent) {
        let Some(number) = number_in(frame) else {
            return;
        };
        self.traffic.released_own(number, port, frame);
        self.recorder.coverage.outputs += 1;
        let output = EventKind::Return {
            node: self.switches[switch].identity.switch,
            object: sent.flow.clone(),
            operation: number,
            response: Released {
                value: None,
                durability: self.durability(number),
            },
        };
        self.recorder.note(self.now, output);
    }

    /// An application let a packet out.
    fn answered(&mut self, switch: usize, port: u16, frame: &[u8], sent: &Sent, asked: &Asked) {
        let value = match self.traffic.observe(asked, port, frame) {
            Ok(value) => value,
            Err(because) => {
                self.anomaly(format!(
                    "{because}: {asked:?} left as {frame:02x?} by port {port}"
                ));
                return;
            }
        };
        let by = self.switches[switch].occupant();
        self.traffic.released(self.now, by, asked, frame);
        self.recorder.coverage.outputs += 1;
        let durability = self.durability(asked.number);
        let response = match self.traffic.translated(asked, frame) {
            Some(translation) => self.translated(by.switch, sent, durability, translation),
            None => Released {
                value: Some(value),
                durability: match self.options.program.machine() {
                    Some(_) => durability,
                    // Without a machine, every output of the program is a write.
                    None => durability.or(Some(Durability {
                        sequence: 0,
                        held: Vec::new(),
                    })),
                },
            },
        };
        let output = EventKind::Return {
            node: by.switch,
            object: sent.flow.clone(),
            operation: asked.number,
            response,
        };
        self.recorder.note(self.now, output);
        if port == OUTSIDE_PORT && self.traffic.listens() {
            self.send_to_host(switch, asked.number, frame);
        }
    }

    /// Notes the translation of a packet; what the store's replicas hold of it. `written` is
    /// the durability of what the packet wrote, if it did.
    fn translated(
        &mut self,
        switch: u32,
        sent: &Sent,
        written: Option<Durability>,
        of: Translation,
    ) -> Released {
        let mapped = match of.direction {
            Direction::Outbound => of.public,
            Direction::Inbound => of.inside,
        };
        let shard = self.recorder.shard(&sent.key);
        let held = shard.map(|shard| {
            let keepers = self.sure_keepers(shard).into_iter();
            keepers
                .map(|store| {
                    self.stores[store].held_mapping(self.options, shard, &sent.key, mapped)
                })
                .collect()
        });
        let translated = EventKind::Of(StateEvent::Translated {
            switch,
            direction: of.direction,
            inside: of.inside,
            public: of.public,
            remote: of.remote,
        });
        self.recorder.note(self.now, translated);
        let held: Vec<Option<u32>> = held.unwrap_or_default();
        // A packet that was on its way back when its connection's port went to another one leaves
        // after the mapping.
        let is_gone = of.remote.is_some() && held.first() == Some(&None);
        let made = Durability {
            sequence: self.first_sequence,
            held,
        };
        let durability = match of.remote {
            Some(_) => written.or(Some(made)).filter(|_| !is_gone),
            None => Some(made),
        };
        Released {
            value: None,
            durability,
        }
    }
}
