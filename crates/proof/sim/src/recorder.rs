//! Recorder of events, as seen by an observer of everything.

use crate::key::flow_name;
use crate::options::ProgramKind;
use crate::report::Coverage;
use stateplane_history::replication::{
    Event, EventKind, Flow, History, Occupant, PoolRange, Replication, StateEvent,
};
use stateplane_wire::replication::{Key, MessageType, Packet};
use std::collections::{BTreeMap, BTreeSet};

/// The request that carries an output packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) key: Key,
    pub(crate) shard: u16,
    pub(crate) sequence: u32,
}

/// The history of a run, and what is needed to write it.
pub(crate) struct Recorder {
    program: ProgramKind,
    pub(crate) history: History,
    pub(crate) coverage: Coverage,
    first_sequence: u32,
    names: BTreeMap<Key, Flow>,
    shards: BTreeMap<Key, u16>,
    /// By number of the packet on board.
    writes: BTreeMap<u64, Write>,
    last_owner: BTreeMap<Key, u32>,
    wrapped: BTreeSet<Key>,
    /// Epoch and deadline of leases as last noted.
    leases: BTreeMap<(Occupant, Key), (u32, u64)>,
}

impl Recorder {
    pub(crate) fn new(program: ProgramKind, pools: Vec<PoolRange>, first_sequence: u32) -> Self {
        let application = program.machine();
        Self {
            program,
            history: History {
                system: Replication { pools, application },
                events: Vec::new(),
            },
            coverage: Coverage::default(),
            first_sequence,
            names: BTreeMap::new(),
            shards: BTreeMap::new(),
            writes: BTreeMap::new(),
            last_owner: BTreeMap::new(),
            wrapped: BTreeSet::new(),
            leases: BTreeMap::new(),
        }
    }

    pub(crate) fn note(&mut self, at: u64, kind: EventKind) {
        self.history.events.push(Event { at, kind });
    }

    pub(crate) fn name(&mut self, key: &Key) -> Flow {
        let (name, program) = (self.names.entry(*key), self.program);
        name.or_insert_with(|| flow_name(program, key)).clone()
    }

    /// The shard that switches gave for `key`.
    pub(crate) fn shard(&self, key: &Key) -> Option<u16> {
        self.shards.get(key).copied()
    }

    /// The request that carried packet `number` when it was processed.
    pub(crate) fn write(&self, number: u64) -> Option<Write> {
        self.writes.get(&number).copied()
    }

    /// A switch sent `request`, with the host packet `number` on board.
    pub(crate) fn request(&mut self, at: u64, request: &Packet<'_>, number: Option<u64>) {
        let key = request.key();
        self.shards.insert(key, request.shard());
        if request.attempt() > 0 {
            self.coverage.retransmissions += 1;
            return;
        }
        if request.message_type() != MessageType::WriteRequest {
            return;
        }
        let by = Occupant {
            switch: request.switch_id(),
            incarnation: request.incarnation(),
        };
        let sequence = request.sequence();
        if sequence < self.first_sequence && self.wrapped.insert(key) {
            self.coverage.sequence_wraps += 1;
        }
        if let Some(number) = number {
            let write = Write {
                key,
                shard: request.shard(),
                sequence,
            };
            self.writes.insert(number, write);
        }
        let flow = self.name(&key);
        let epoch = request.lease_epoch();
        self.note(at, EventKind::Of(StateEvent::Used { by, flow, epoch }));
    }

    /// The store sent `reply`.
    pub(crate) fn reply(&mut self, at: u64, reply: &Packet<'_>) {
        let key = reply.key();
        match reply.message_type() {
            MessageType::LeaseReply => {
                let to = Occupant {
                    switch: reply.switch_id(),
                    incarnation: reply.incarnation(),
                };
                let earlier = self.last_owner.insert(key, to.switch);
                if earlier.is_some_and(|earlier| earlier != to.switch) {
                    self.coverage.owner_changes += 1;
                }
                self.coverage.shared_grants += u64::from(reply.shared());
                let flow = self.name(&key);
                let granted = EventKind::Of(StateEvent::Granted {
                    to,
                    flow,
                    epoch: reply.lease_epoch(),
                    shared: reply.shared(),
                });
                self.note(at, granted);
            }
            MessageType::Refusal => self.coverage.refusals += 1,
            MessageType::Recall => self.coverage.recalls += 1,
            _ => {}
        }
    }

    /// A switch believes that it holds `key` under `epoch` until `until`, or that
    /// it does not.
    pub(crate) fn lease(
        &mut self,
        at: u64,
        by: Occupant,
        key: &Key,
        lease: Option<(u32, bool, u64)>,
    ) {
        match lease {
            Some((epoch, shared, until)) => {
                let earlier = self.leases.insert((by, *key), (epoch, until));
                if earlier != Some((epoch, until)) {
                    let flow = self.name(key);
                    let accepted = EventKind::Of(StateEvent::Accepted {
                        by,
                        flow,
                        epoch,
                        shared,
                        until,
                    });
                    self.note(at, accepted);
                }
            }
            None => {
                if self.leases.remove(&(by, *key)).is_some() {
                    let flow = self.name(key);
                    self.note(at, EventKind::Of(StateEvent::Ended { by, flow }));
                }
            }
        }
    }

    pub(crate) fn died(&mut self, at: u64, of: Occupant) {
        self.coverage.deaths += 1;
        self.leases.retain(|(by, _), _| *by != of);
        self.note(at, EventKind::Died { node: of.switch });
    }
}
