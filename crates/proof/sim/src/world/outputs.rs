//! Records of packets that switches release.

use super::World;
use crate::frame::{HostPacket, INSIDE_PORT, OUTSIDE_PORT, number_in};
use crate::traffic::{Carried, STRANGER, Sent};
use stateplane_apps::Asked;
use stateplane_history::replication::{Direction, Durability, EventKind, Released, StateEvent};

impl World<'_> {
    pub(super) fn output(&mut self, switch: usize, port: u16, frame: &[u8]) {
        let sent = number_in(frame).and_then(|number| self.traffic.sent(number));
        let Some(sent) = sent.cloned() else {
            self.anomaly(format!("no host would take this frame: {frame:02x?}"));
            return;
        };
        let before = match &sent.carried {
            Carried::Plain(before) => before,
            Carried::Asked(asked) => return self.answered(switch, port, frame, &sent, asked),
            Carried::Own(..) => return self.released_own(switch, port, frame, &sent),
        };
        let Some(packet) = HostPacket::read(frame) else {
            self.anomaly(format!("no host would take this frame: {frame:02x?}"));
            return;
        };
        let expected = match sent.direction {
            Direction::Outbound => OUTSIDE_PORT,
            Direction::Inbound => INSIDE_PORT,
        };
        if port != expected || packet.protocol != before.protocol {
            self.anomaly(format!("{sent:?} left as {packet:?} by port {port}"));
            return;
        }
        self.recorder.coverage.outputs += 1;
        let number = self.switches[switch].identity.switch;
        if self.options.program.counts() {
            self.counted(number, &sent, before, &packet);
        } else {
            self.translated(number, &sent, before, &packet);
        }
        if port == OUTSIDE_PORT {
            self.send_to_host(switch, packet);
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
        self.traffic.released(self.now, by, asked);
        self.recorder.coverage.outputs += 1;
        let output = EventKind::Return {
            node: by.switch,
            object: sent.flow.clone(),
            operation: asked.number,
            response: Released {
                value: Some(value),
                durability: self.durability(asked.number),
            },
        };
        self.recorder.note(self.now, output);
    }

    fn counted(&mut self, switch: u32, sent: &Sent, before: &HostPacket, packet: &HostPacket) {
        let ends = |packet: &HostPacket| (packet.source, packet.destination);
        if ends(packet) != ends(before) {
            self.anomaly(format!("{sent:?} left as {packet:?}"));
        }
        let durability = self.durability(before.number).unwrap_or(Durability {
            sequence: 0,
            held: Vec::new(),
        });
        let output = EventKind::Return {
            node: switch,
            object: sent.flow.clone(),
            operation: before.number,
            response: Released {
                value: Some(packet.value),
                durability: Some(durability),
            },
        };
        self.recorder.note(self.now, output);
    }

    fn translated(&mut self, switch: u32, sent: &Sent, before: &HostPacket, packet: &HostPacket) {
        let protocol = packet.protocol;
        let endpoint = |socket| crate::key::endpoint(protocol, socket);
        let (inside, public, others) = match sent.direction {
            Direction::Outbound => (
                before.source,
                packet.source,
                (before.destination, packet.destination),
            ),
            Direction::Inbound => (
                packet.destination,
                before.destination,
                (before.source, packet.source),
            ),
        };
        if others.0 != others.1 {
            self.anomaly(format!("{sent:?} left as {packet:?}"));
        }
        if *before.source.ip() == STRANGER {
            self.anomaly(format!("{sent:?} was let in"));
        }
        let (inside, public) = (endpoint(inside), endpoint(public));
        let mapped = match sent.direction {
            Direction::Outbound => public,
            Direction::Inbound => inside,
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
        let durability = Durability {
            sequence: self.first_sequence,
            held: held.unwrap_or_default(),
        };
        let translated = EventKind::Of(StateEvent::Translated {
            switch,
            direction: sent.direction,
            inside,
            public,
        });
        self.recorder.note(self.now, translated);
        let output = EventKind::Return {
            node: switch,
            object: sent.flow.clone(),
            operation: before.number,
            response: Released {
                value: None,
                durability: Some(durability),
            },
        };
        self.recorder.note(self.now, output);
    }
}
