//! The store: datagrams of its replicas, and their states at the end.

use super::World;
use crate::parcel::Parcel;
use crate::places::{Places, port};
use stateplane_multicast_store::{Store, To, Transmit};

impl World<'_> {
    /// Datagrams of a replica go to receivers of a shard, or to one host.
    pub(super) fn send_of_replica(&mut self, receiver: usize) {
        let node = self.receivers[receiver].as_mut();
        let Some(replica) = node.and_then(|node| node.replica.as_mut()) else {
            return;
        };
        while let Some(Transmit { to, bytes }) = replica.poll_transmit() {
            let to: Vec<usize> = match to {
                To::Shard(shard) => {
                    let peers = self.places.receivers_of(shard);
                    peers.map(Places::receiver).collect()
                }
                To::Address(address) => self.places.at(*address.ip()).into_iter().collect(),
            };
            let from = port(Places::receiver(receiver));
            for to in to.into_iter().filter(|to| *to != from.node) {
                self.net.send(from, port(to), &Parcel::Store(bytes.clone()));
            }
        }
    }

    /// Replicas that have no state, that cannot go on, or of which one differs from its peers.
    pub(super) fn finish_store(&mut self) {
        let mut wrong = Vec::new();
        for group in 0..self.options.scenario.groups {
            let mut first: Option<(usize, &Store)> = None;
            for receiver in self.places.receivers_of(group) {
                let node = self.receivers[receiver].as_ref();
                let node = node.filter(|node| node.is_in());
                let Some(replica) = node.and_then(|node| node.replica.as_ref()) else {
                    continue;
                };
                if replica.is_stuck() {
                    wrong.push(format!("the replica at receiver {receiver} is stuck"));
                }
                let Some(store) = replica.store() else {
                    wrong.push(format!("the replica at receiver {receiver} has no state"));
                    continue;
                };
                let (peer, other) = *first.get_or_insert((receiver, store));
                if !store.records().eq(other.records()) || store.clients() != other.clients() {
                    wrong.push(format!(
                        "the replicas at receivers {peer} and {receiver} differ"
                    ));
                }
            }
        }
        for what in wrong {
            self.anomaly(what);
        }
    }
}
