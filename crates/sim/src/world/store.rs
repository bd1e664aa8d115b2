//! Messages at the replicas.

use super::{Happening, World};
use crate::frame::{STORE_PORT, message_to_switch};
use crate::plan::SWITCHES;
use core::net::SocketAddrV4;
use stateplane_history::EventKind;
use stateplane_store::Destination;
use stateplane_wire::replication::Packet;

impl World<'_> {
    /// A message comes to the head. One that finds it stalled waits.
    pub(super) fn request(&mut self, from: SocketAddrV4, bytes: Vec<u8>) {
        let until = self.replicas[0].busy_until;
        if self.now < until {
            self.schedule.add(until, Happening::Request { from, bytes });
            return;
        }
        self.witness(SWITCHES, &bytes);
        let head = &mut self.replicas[0];
        let local = head.clock.local(self.now);
        head.replica.handle_request(local, from, &bytes);
        self.after_replica(0);
    }

    /// A message comes to a replica from its neighbour.
    pub(super) fn chain_message(&mut self, replica: usize, from: u8, bytes: Vec<u8>) {
        let until = self.replicas[replica].busy_until;
        if self.now < until {
            let again = Happening::ToReplica {
                replica,
                from,
                bytes,
            };
            self.schedule.add(until, again);
            return;
        }
        self.witness(SWITCHES + replica, &bytes);
        let node = &mut self.replicas[replica];
        let local = node.clock.local(self.now);
        node.replica.handle_chain(local, from, &bytes);
        self.after_replica(replica);
    }

    pub(super) fn replica_timer(&mut self, replica: usize) {
        let now = self.now;
        let node = &mut self.replicas[replica];
        if node.timer != Some(now) {
            return;
        }
        if now < node.busy_until {
            node.timer = Some(node.busy_until);
            self.schedule
                .add(node.busy_until, Happening::ReplicaTimer { replica });
            return;
        }
        node.timer = None;
        node.replica.handle_timeout(node.clock.local(now));
        self.after_replica(replica);
    }

    pub(super) fn after_replica(&mut self, replica: usize) {
        let now = self.now;
        let node = &mut self.replicas[replica];
        if self.options.program.maps() {
            for event in node.pool_events(replica) {
                if replica == 0 && matches!(event, EventKind::Freed { .. }) {
                    self.recorder.coverage.ports_freed += 1;
                }
                self.recorder.note(now, event);
            }
        }
        let mut datagrams = Vec::new();
        while let Some(transmit) = node.replica.poll_transmit() {
            datagrams.push(transmit);
        }
        let due = node.replica.poll_timeout();
        let due = due.map(|due| node.clock.time_of(due).max(now + 1));
        if let Some(due) = due
            && node.timer != Some(due)
        {
            node.timer = Some(due);
            self.schedule.add(due, Happening::ReplicaTimer { replica });
        }
        for datagram in datagrams {
            match datagram.to {
                Destination::Switch(to) => self.replied(to, &datagram.bytes),
                Destination::Replica(to) => {
                    let link = self.quality(|options| options.scenario.chain_link);
                    for delay in link.carry(&mut self.random) {
                        let arrival = Happening::ToReplica {
                            replica: to.into(),
                            from: replica as u8,
                            bytes: datagram.bytes.to_vec(),
                        };
                        self.schedule.add(now + delay, arrival);
                    }
                }
            }
        }
    }

    pub(super) fn replied(&mut self, to: SocketAddrV4, bytes: &[u8]) {
        let now = self.now;
        if let Ok(reply) = Packet::new_checked(bytes) {
            self.recorder.reply(now, &reply);
        }
        let [.., number] = to.ip().octets();
        let switch = usize::from(number).wrapping_sub(1);
        if switch >= self.switches.len() {
            self.anomaly(format!("the store answers to {to}, which nobody has"));
            return;
        }
        let frame = message_to_switch(to, bytes);
        let link = self.quality(|options| options.scenario.protocol_link);
        let mut copies = 0;
        for delay in link.carry(&mut self.random) {
            copies += 1;
            let arrival = Happening::ToSwitch {
                switch,
                port: STORE_PORT,
                frame: frame.clone(),
            };
            self.schedule.add(now + delay, arrival);
        }
        self.count_copies(copies);
    }
}
