//! Messages at the store servers.

use super::World;
use super::controller::CONTROLLER;
use super::switches::damaged;
use crate::chain::{self, SHARDS, link_address};
use crate::frame::{MESSAGE_AT, STORE_PORT, message_to_switch, store_address};
use crate::places::Message;
use crate::plan::Node;
use core::net::SocketAddrV4;
use stateplane_history::replication::{EventKind, StateEvent};
use stateplane_store::{Recipient, Replica};
use stateplane_wire::replication::{MessageType, Packet};
use stateplane_world::{Node as _, NodePort};

impl World<'_> {
    /// A server takes a message.
    pub(super) fn store_takes(&mut self, store: usize, from: NodePort, port: u16, of: Message) {
        let local = self.net.local(self.places.store(store));
        self.stores[store].handle_message(local, port, from, of);
        self.after_store(store);
    }

    pub(super) fn store_timer(&mut self, store: usize) {
        let local = self.net.local(self.places.store(store));
        self.stores[store].handle_timeout(local);
        self.after_store(store);
    }

    /// Notes what the server holds, takes its datagrams, and sees when it wants to be
    /// woken.
    pub(super) fn after_store(&mut self, store: usize) {
        self.note_lost_chains(store);
        self.note_waits(store);
        self.stores[store].regain();
        let saved = self.save(store);
        let local = self.net.local(self.places.store(store));
        self.stores[store].ask_again(local);
        // Unsaved mappings may be lost, and then count as never made.
        if let Some(class) = self.options.program.mapped_class().filter(|_| saved) {
            self.note_mappings(store, class);
        }
        let place = self.places.store(store);
        for datagram in self.net.poll(place, &mut self.stores[store]) {
            match datagram.to {
                Recipient::Switch(to) => self.replied(store, to, &datagram.bytes),
                Recipient::Neighbour(address) => {
                    let to = (0..self.stores.len()).find(|&to| link_address(to) == address);
                    match to {
                        // It was to leave before the server took another place.
                        Some(to) if to == store => {}
                        Some(to) => {
                            let to = Node::Store(to);
                            self.between_nodes(Node::Store(store), to, &datagram.bytes);
                        }
                        None => self.anomaly(format!("no server has {address}")),
                    }
                }
                Recipient::Controller => {
                    self.between_nodes(Node::Store(store), Node::Controller, &datagram.bytes);
                }
            }
        }
    }

    /// Carries a message from a server or the controller to another.
    pub(super) fn between_nodes(&mut self, from: Node, to: Node, bytes: &[u8]) {
        let address = match from {
            Node::Store(store) => link_address(store),
            Node::Controller => CONTROLLER,
        };
        let (from, to) = (self.places.cluster(from), self.places.cluster(to));
        let message = Message::Datagram {
            from: address,
            bytes: bytes.to_vec(),
        };
        self.net.send(from, to, &message);
    }

    /// Notes how long requests wait for holders.
    fn note_waits(&mut self, store: usize) {
        let local = self.net.local(self.places.store(store));
        let server = self.stores[store].server.iter();
        let replicas = server.flat_map(|server| server.replicas());
        let waits = replicas.map(|(_, replica)| replica.longest_wait(local));
        let coverage = &mut self.recorder.coverage;
        coverage.longest_wait = waits.fold(coverage.longest_wait, u64::max);
    }

    fn note_mappings(&mut self, store: usize, class: u8) {
        let now = self.now;
        let cluster = self.options.scenario.cluster.is_some();
        let Some(server) = &self.stores[store].server else {
            return;
        };
        let mut events = Vec::new();
        for (chain, replica) in server.replicas() {
            // With a controller, what the head of each shard holds is what the store
            // holds; without one, each replica is judged.
            let number = if cluster { 0 } else { store as u8 };
            if !cluster || replica.is_head() {
                let key = (number, chain);
                events.extend(
                    self.mappings
                        .entry(key)
                        .or_default()
                        .events(replica, number, class),
                );
            }
        }
        for event in events {
            let coverage = &mut self.recorder.coverage;
            match event {
                StateEvent::Taken { replica: 0, .. } => coverage.ports_taken += 1,
                StateEvent::Freed { replica: 0, .. } => coverage.ports_freed += 1,
                _ => {}
            }
            self.recorder.note(now, EventKind::Of(event));
        }
    }

    /// The servers that keep `shard` in the newest configuration of its chain, and are
    /// alive or have it on their disk, head first.
    pub(super) fn keepers(&self, shard: u16) -> Vec<usize> {
        if self.options.scenario.cluster.is_none() {
            return (0..self.stores.len()).collect();
        }
        let Some(config) = self.controller.current.get(&shard) else {
            return Vec::new();
        };
        let place = |member: &stateplane_wire::control::Member| {
            let mut stores = self.stores.iter();
            stores.position(|node| {
                (node.server.is_some() || node.remains.is_some())
                    && (node.identity.server, node.identity.incarnation)
                        == (member.server, member.incarnation)
            })
        };
        config.members.iter().filter_map(place).collect()
    }

    /// Those [`World::keepers`] that have all that they had, whatever their disks lost.
    pub(super) fn sure_keepers(&self, shard: u16) -> Vec<usize> {
        let mut keepers = self.keepers(shard);
        keepers.retain(|store| self.stores[*store].is_sure(self.options, shard));
        keepers
    }

    /// Checks the pools and replicas at the end.
    pub(super) fn finish_stores(&mut self) {
        let now = self.now;
        let fixed = self.options.scenario.cluster.is_none();
        let chains: Vec<Vec<&Replica>> = (0..SHARDS)
            .map(|shard| {
                let keepers = self.keepers(shard).into_iter();
                keepers
                    .filter_map(|store| self.stores[store].replica(self.options, shard))
                    .collect()
            })
            .collect();
        let mut found = Vec::new();
        let mut events = Vec::new();
        let mapped = self.options.program.mapped_class();
        if fixed {
            for (position, replica) in (0..).zip(&chains[0]) {
                if let Some(class) = mapped {
                    events.extend(chain::pool_at_the_end(&[*replica], position, class));
                }
            }
            found.extend(chain::anomalies(0, &chains[0]));
        } else {
            let heads: Vec<&Replica> = chains.iter().filter_map(|c| c.first().copied()).collect();
            if let Some(class) = mapped {
                events.extend(chain::pool_at_the_end(&heads, 0, class));
            }
            for (shard, replicas) in (0..).zip(&chains) {
                found.extend(chain::anomalies(shard, replicas));
            }
        }
        let tails = if fixed {
            chains[0].last().into_iter().collect()
        } else {
            chains.iter().filter_map(|c| c.last()).collect::<Vec<_>>()
        };
        let records = tails.iter().flat_map(|replica| replica.records());
        let records = records.map(|(_, key, record)| (*key, record.state().to_vec()));
        let records: Vec<_> = records.collect();
        found.extend(self.traffic.recovered(&records));
        for event in events {
            self.recorder.note(now, EventKind::Of(event));
        }
        let servers = self.stores.iter().filter_map(|node| node.server.as_ref());
        let snapshots = servers.map(|server| server.counters().snapshots_installed);
        self.recorder.coverage.snapshots += snapshots.sum::<u64>();
        let servers = self.stores.iter().filter_map(|node| node.server.as_ref());
        let withheld = servers.clone().map(|server| server.counters().withheld);
        self.recorder.coverage.withheld = withheld.sum();
        let reclaimed = servers.flat_map(|server| server.replicas());
        let reclaimed = reclaimed.map(|(_, replica)| replica.counters().reclaimed);
        self.recorder.coverage.reclaimed = reclaimed.sum();
        self.anomalies.extend(found);
    }

    pub(super) fn replied(&mut self, store: usize, to: SocketAddrV4, bytes: &[u8]) {
        let now = self.now;
        if let Ok(reply) = Packet::new_checked(bytes) {
            self.recorder.reply(now, &reply);
            // Only what the tail sends is an answer of the chain.
            let by_head = [MessageType::Refusal, MessageType::Recall];
            if !by_head.contains(&reply.message_type()) {
                self.resumed(reply.shard(), reply.chain_epoch());
            }
        }
        let [.., number] = to.ip().octets();
        let switch = usize::from(number).wrapping_sub(1);
        if switch >= self.switches.len() {
            self.anomaly(format!("the store answers to {to}, which nobody has"));
            return;
        }
        let frame = message_to_switch(store_address(store), to, bytes);
        let (from, to) = (
            self.places.requests(store),
            self.places.port(switch, STORE_PORT),
        );
        let damage = self.options.scenario.damage;
        let copies = self.net.send_each(from, to, |random| {
            let mut frame = frame.clone();
            damaged(damage, random, &mut frame, MESSAGE_AT);
            Message::Frame(frame)
        });
        self.count_copies(copies);
    }
}
