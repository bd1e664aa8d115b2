//! What is noted of packets that switches release.

use super::{Happening, World};
use crate::frame::{HostPacket, INSIDE_PORT, OUTSIDE_PORT};
use crate::recorder::Write;
use crate::traffic::Sent;
use stateplane_history::{Direction, Durability, EventKind};

impl World<'_> {
    pub(super) fn output(&mut self, switch: usize, port: u16, frame: &[u8]) {
        let now = self.now;
        let packet = HostPacket::read(frame);
        let sent = packet.and_then(|packet| self.traffic.sent(packet.number));
        let (Some(packet), Some(sent)) = (packet, sent.cloned()) else {
            self.anomaly(format!("no host would take this frame: {frame:02x?}"));
            return;
        };
        let expected = match sent.direction {
            Direction::Outbound => OUTSIDE_PORT,
            Direction::Inbound => INSIDE_PORT,
        };
        if port != expected || packet.protocol != sent.packet.protocol {
            self.anomaly(format!("{sent:?} left as {packet:?} by port {port}"));
            return;
        }
        self.recorder.coverage.outputs += 1;
        let number = self.switches[switch].identity.switch;
        if self.options.program.counts() {
            self.counted(number, &sent, &packet);
        } else {
            self.translated(number, &sent, &packet);
        }
        if port == OUTSIDE_PORT {
            let link = self.quality(|options| options.scenario.host_link);
            for delay in link.carry(&mut self.random) {
                self.schedule.add(now + delay, Happening::ToHost { packet });
            }
        }
    }

    pub(super) fn counted(&mut self, switch: u32, sent: &Sent, packet: &HostPacket) {
        let ends = |packet: &HostPacket| (packet.source, packet.destination);
        if ends(packet) != ends(&sent.packet) {
            self.anomaly(format!("{sent:?} left as {packet:?}"));
        }
        let write = self.recorder.write(sent.packet.number);
        let held = |write: Write| {
            let held = self.replicas.iter();
            held.map(|node| node.held(write.shard, &write.key))
                .collect()
        };
        let durability = Durability {
            sequence: write.map_or(0, |write| write.sequence),
            held: write.map(held).unwrap_or_default(),
        };
        let output = EventKind::Output {
            switch,
            flow: sent.flow.clone(),
            packet: sent.packet.number,
            value: Some(packet.value),
            durability: Some(durability),
        };
        self.recorder.note(self.now, output);
    }

    pub(super) fn translated(&mut self, switch: u32, sent: &Sent, packet: &HostPacket) {
        let protocol = packet.protocol;
        let endpoint = |socket| crate::key::endpoint(protocol, socket);
        let (inside, public, others) = match sent.direction {
            Direction::Outbound => (
                sent.packet.source,
                packet.source,
                (sent.packet.destination, packet.destination),
            ),
            Direction::Inbound => (
                packet.destination,
                sent.packet.destination,
                (sent.packet.source, packet.source),
            ),
        };
        if others.0 != others.1 {
            self.anomaly(format!("{sent:?} left as {packet:?}"));
        }
        let (inside, public) = (endpoint(inside), endpoint(public));
        let mapped = match sent.direction {
            Direction::Outbound => public,
            Direction::Inbound => inside,
        };
        let shard = self.recorder.shard(&sent.key);
        let held = shard.map(|shard| {
            let held = self.replicas.iter();
            held.map(|node| node.held_mapping(shard, &sent.key, mapped))
                .collect()
        });
        let durability = Durability {
            sequence: self.first_sequence,
            held: held.unwrap_or_default(),
        };
        let translated = EventKind::Translated {
            switch,
            direction: sent.direction,
            inside,
            public,
        };
        self.recorder.note(self.now, translated);
        let output = EventKind::Output {
            switch,
            flow: sent.flow.clone(),
            packet: sent.packet.number,
            value: None,
            durability: Some(durability),
        };
        self.recorder.note(self.now, output);
    }
}
