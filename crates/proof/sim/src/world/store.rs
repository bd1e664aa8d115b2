//! Messages at the store servers.

use super::{Happening, World};
use crate::chain::{self, SHARDS, link_address};
use crate::frame::{MESSAGE_AT, STORE_PORT, message_to_switch, store_address};
use crate::plan::{Node, SWITCHES};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::{EventKind, StateEvent};
use stateplane_store::{Recipient, Replica};
use stateplane_wire::replication::{MessageType, Packet};

impl World<'_> {
    /// A message comes from a switch to a server. One that finds it at rest waits.
    pub(super) fn request(&mut self, to: Ipv4Addr, from: SocketAddrV4, bytes: Vec<u8>) {
        let Some(store) = (0..self.stores.len()).find(|&store| store_address(store) == to) else {
            self.anomaly(format!("a request goes to {to}, where no server is"));
            return;
        };
        let until = self.stores[store].busy_until;
        if self.now < until {
            self.schedule
                .add(until, Happening::Request { to, from, bytes });
            return;
        }
        self.witness(SWITCHES + store, &bytes);
        let node = &mut self.stores[store];
        let local = node.clock.local(self.now);
        if let Some(server) = &mut node.server {
            server.handle_request(local, from, &bytes);
            self.after_store(store);
        }
    }

    /// A message comes to a server from another, or from the controller.
    pub(super) fn link_message(&mut self, store: usize, from: Node, bytes: Vec<u8>) {
        let until = self.stores[store].busy_until;
        if self.now < until {
            let again = Happening::ToStore { store, from, bytes };
            self.schedule.add(until, again);
            return;
        }
        self.witness(SWITCHES + store, &bytes);
        let node = &mut self.stores[store];
        let local = node.clock.local(self.now);
        if let Some(server) = &mut node.server {
            match from {
                Node::Store(from) => server.handle_link(local, link_address(from), &bytes),
                Node::Controller => server.handle_control(local, &bytes),
            }
            self.after_store(store);
        }
    }

    pub(super) fn store_timer(&mut self, store: usize) {
        let now = self.now;
        let node = &mut self.stores[store];
        if node.timer != Some(now) {
            return;
        }
        if now < node.busy_until {
            node.timer = Some(node.busy_until);
            self.schedule
                .add(node.busy_until, Happening::StoreTimer { store });
            return;
        }
        node.timer = None;
        let local = node.clock.local(now);
        if let Some(server) = &mut node.server {
            server.handle_timeout(local);
            self.after_store(store);
        }
    }

    /// Notes what the server holds, takes its datagrams, and sees when it wants to be
    /// woken.
    pub(super) fn after_store(&mut self, store: usize) {
        let now = self.now;
        self.note_lost_chains(store);
        let saved = self.save(store);
        // Unsaved mappings may be lost, and then count as never made.
        if let Some(class) = self.options.program.mapped_class().filter(|_| saved) {
            self.note_mappings(store, class);
        }
        let node = &mut self.stores[store];
        let Some(server) = &mut node.server else {
            return;
        };
        let local = node.clock.local(now);
        let mut datagrams = Vec::new();
        while let Some(datagram) = server.poll_transmit(local) {
            datagrams.push(datagram);
        }
        let due = server.poll_timeout();
        let due = due.map(|due| node.clock.time_of(due).max(now + 1));
        if let Some(due) = due
            && node.timer != Some(due)
        {
            node.timer = Some(due);
            self.schedule.add(due, Happening::StoreTimer { store });
        }
        for datagram in datagrams {
            match datagram.to {
                Recipient::Switch(to) => self.replied(to, &datagram.bytes),
                Recipient::Neighbour(address) => {
                    let to = (0..self.stores.len()).find(|&to| link_address(to) == address);
                    match to {
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
        let now = self.now;
        let link = self.quality(|options| options.scenario.chain_link);
        let cut = self.cuts.get(&(from, to)).is_some_and(|until| now < *until);
        for delay in link.carry(&mut self.random).filter(|_| !cut) {
            let bytes = bytes.to_vec();
            let arrival = match (from, to) {
                (_, Node::Store(store)) => Happening::ToStore { store, from, bytes },
                (Node::Store(store), Node::Controller) => Happening::ToController {
                    from: link_address(store),
                    bytes,
                },
                (Node::Controller, Node::Controller) => continue,
            };
            self.schedule.add(now + delay, arrival);
        }
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

    /// Those [`World::keepers`] whose disk has not rotted, or which took a copy since.
    pub(super) fn sure_keepers(&self, shard: u16) -> Vec<usize> {
        let mut keepers = self.keepers(shard);
        keepers.retain(|store| {
            let node = &self.stores[*store];
            let replica = node.replica(self.options, shard);
            let copied = replica.is_some_and(|it| it.counters().snapshots_installed > 0);
            !node.rotted || copied
        });
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
        self.anomalies.extend(found);
    }

    pub(super) fn replied(&mut self, to: SocketAddrV4, bytes: &[u8]) {
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
        let frame = message_to_switch(to, bytes);
        let link = self.quality(|options| options.scenario.protocol_link);
        let mut copies = 0;
        for delay in link.carry(&mut self.random) {
            copies += 1;
            let mut frame = frame.clone();
            self.damage(&mut frame, MESSAGE_AT);
            let arrival = Happening::ToSwitch {
                switch,
                port: STORE_PORT,
                frame,
            };
            self.schedule.add(now + delay, arrival);
        }
        self.count_copies(copies);
    }
}
