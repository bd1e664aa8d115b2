//! The replica of the store at a receiver.

use super::receiver_number;
use crate::options::Rule;
use crate::places::{Places, store_socket};
use crate::scenario::Scenario;
use stateplane_apps::multicast_store::executed;
use stateplane_history::multicast::MulticastEvent;
use stateplane_multicast::FinalTime;
use stateplane_multicast_store::{
    Message, Part, Replica, ReplicaConfig, Snapshot, Store, StoreConfig, Transmit, Verdict,
    shard_of,
};

/// Messages that wait in a replica.
const QUEUE: usize = 4;
/// µs after which a part is asked for, and at most.
const ASK: u64 = 1_000;
const LONGEST_ASK: u64 = 20_000;

/// A replica, or the place of one that waits for a peer's state.
pub(crate) struct ReplicaPart {
    config: ReplicaConfig,
    receiver: usize,
    replica: Option<Replica>,
    /// Final timestamp behind which the receiver gets all messages, and up to which it hands out none.
    after: u64,
    without: Option<Rule>,
}

impl ReplicaPart {
    /// The replica of a receiver; None if there is no store.
    pub(super) fn new(
        receiver: usize,
        shard: u8,
        scenario: &Scenario,
        without: Option<Rule>,
    ) -> Option<Self> {
        let config = ReplicaConfig {
            queue: QUEUE,
            ask_us: ASK,
            longest_ask_us: LONGEST_ASK,
            ..ReplicaConfig::new(StoreConfig::new(shard, scenario.groups))
        };
        (scenario.keys > 0).then_some(Self {
            config,
            receiver,
            replica: None,
            after: 0,
            without,
        })
    }

    /// The shard begins with it.
    pub(super) fn found(&mut self) {
        self.replica = Some(Replica::new(self.config));
    }

    /// Its receiver gets what is behind a timestamp; the rest is to come from a peer.
    pub(super) fn begin(&mut self, after: u64) {
        self.replica = None;
        self.after = after;
    }

    /// Its receiver is on the list no more.
    pub(super) fn end(&mut self) {
        self.replica = None;
    }

    /// Final timestamp behind which the receiver gets all messages; 0 if the shard began with it.
    pub(super) fn after(&self) -> u64 {
        self.after
    }

    /// The timestamp that a peer's state has to cover, while it has none.
    pub(super) fn waits_for(&self) -> Option<u64> {
        self.replica.is_none().then_some(self.after)
    }

    /// Its state, if that covers a timestamp.
    pub(crate) fn snapshot(&self, after: u64) -> Option<Vec<u8>> {
        let snapshot = self.replica.as_ref()?.snapshot();
        let covers = snapshot.covers(after) || self.without == Some(Rule::StateCovers);
        covers.then(|| snapshot.to_vec())
    }

    /// Goes on with a peer's state; true if that is one of its shard.
    pub(crate) fn join(&mut self, bytes: &[u8]) -> bool {
        let snapshot = Snapshot::parse(self.config.store, bytes).ok();
        self.replica = snapshot.map(|snapshot| Replica::joining(self.config, snapshot));
        self.replica.is_some()
    }

    /// The shard, once it has a state.
    pub(crate) fn store(&self) -> Option<&Store> {
        self.replica.as_ref().map(Replica::store)
    }

    /// True if a replica of another shard has forgotten what this one lacks.
    pub(crate) fn is_stuck(&self) -> bool {
        self.replica.as_ref().is_some_and(|of| of.stuck().is_some())
    }

    /// True if it takes another message of its receiver.
    pub(super) fn has_room(&self) -> bool {
        self.replica.as_ref().is_some_and(Replica::has_room)
    }

    /// True if a message at this place is none of those that the receiver is to hand out.
    pub(super) fn is_before(&self, at: FinalTime) -> bool {
        at.time <= self.after
    }

    /// Takes a message that the receiver hands out.
    pub(super) fn handle_delivery(
        &mut self,
        now: u64,
        at: FinalTime,
        destinations: u32,
        payload: Vec<u8>,
    ) {
        if self.without == Some(Rule::PartsOfShards) {
            for part in self.made_up(at, &payload) {
                self.handle_datagram(now, self.receiver, &Message::Part { part }.to_vec());
            }
        }
        if let Some(replica) = &mut self.replica {
            replica.handle_delivery(now, at, destinations, payload);
        }
    }

    /// Parts of the other shards of an operation, of which nobody was asked: they have no record.
    fn made_up(&self, at: FinalTime, payload: &[u8]) -> Vec<Part> {
        let Ok(Message::Command { command }) = Message::parse(payload) else {
            return Vec::new();
        };
        let StoreConfig { shard, shards, .. } = self.config.store;
        let groups = command.operation.groups(shards);
        let keys = command.operation.keys();
        let others = (0..shards).filter(|of| *of != shard && (groups >> of) & 1 == 1);
        let parts = others.map(|of| Part {
            at,
            shard: of,
            verdict: Verdict::New {},
            room: true,
            values: keys
                .iter()
                .filter(|key| shard_of(key, shards) == of)
                .map(|_| None)
                .collect(),
        });
        parts.collect()
    }

    /// Takes a datagram of the replica at another receiver.
    pub(super) fn handle_datagram(&mut self, now: u64, from: usize, bytes: &[u8]) {
        if let Some(replica) = &mut self.replica {
            let from = store_socket(Places::receiver_address(from));
            replica.handle_datagram(now, from, bytes);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: u64) {
        if let Some(replica) = &mut self.replica {
            replica.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.replica.as_ref().and_then(Replica::poll_timeout)
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.replica.as_mut()?.poll_transmit()
    }

    /// The receiver handed out all up to a timestamp.
    pub(super) fn handle_passed(&mut self, time: u64) {
        if let Some(replica) = &mut self.replica {
            replica.handle_passed(time);
        }
    }

    /// Notes operations that it executed, but for those that were executed before.
    pub(super) fn collect(&mut self, notes: &mut Vec<MulticastEvent>) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        let (node, shard) = (receiver_number(self.receiver), self.config.store.shard);
        while let Some(of) = replica.poll_executed() {
            notes.extend(executed(node, shard, &of));
        }
    }
}
