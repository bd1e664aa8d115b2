//! Report of a switch's events, as data.

use super::{GreetingReport, TermReport};
use crate::ports::{HostPortCounters, PortMode};
use crate::sealing::FrameCounters;
use serde::Serialize;
use stateplane_runtime::{Count, TargetState};
use stateplane_switch::{Counters, Occupancy, Port};
use std::collections::BTreeMap;

/// Counts of a switch since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SwitchReport {
    /// Its ports, ascending.
    pub ports: Vec<PortReport>,
    /// Packets in all.
    pub packets: PacketReport,
    /// Packets dropped by the switch, by reason
    /// ([`DropReason`](stateplane_switch::DropReason)); reasons that never occurred
    /// are left out.
    pub drops: BTreeMap<&'static str, u64>,
    /// Times that an interface could not be set up or down as a watch asked.
    pub port_state_failed: u64,
    /// Sealed messages, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seals: Option<SealReport>,
    /// Greetings of the store, of a replicated program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greeting: Option<GreetingReport>,
    /// Terms with the heads of the chains, of a replicated program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<TermReport>,
    /// Connections of controllers, if they are served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlReport>,
    /// Its workers, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerReport>,
}

/// Counts of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerReport {
    /// Frames that its switch got.
    pub received: u64,
    /// Locks of atomic blocks and of direct meters that another worker held when it came to them.
    pub lock_waits: u64,
    /// Frames that it took from a port and gave to the workers that they fell to.
    pub handed_over: u64,
    /// The processor that it stays on, if it is pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<usize>,
}

/// Counts of a control plane's connections and messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ControlReport {
    /// Open connections.
    pub open: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Idle connections that were closed to make room.
    pub closed_idle: u64,
    /// Connections that were closed because their handshake took too long.
    pub closed_late: u64,
    /// Connections that were refused for lack of room.
    pub refused: u64,
    /// Messages dropped because a controller did not read them in time.
    pub messages_dropped: u64,
}

/// Counts of sealed messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SealReport {
    /// Counters of messages, by result.
    #[serde(flatten)]
    pub messages: stateplane_seal::Counters,
    /// Dropped: from an address that is not its sender's.
    pub wrong_address: u64,
    /// Frames whose messages could not be looked for.
    #[serde(flatten)]
    pub frames: FrameCounters,
}

/// Counts of one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortReport {
    /// Its number.
    pub port: Port,
    /// Its interface.
    pub interface: String,
    /// Kernel interface of the port.
    pub mode: PortMode,
    /// True if frames pass: the link is up and no watch is stale.
    pub up: bool,
    /// Frames given to the program.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that the switch sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Counters between the wire and the switch.
    pub host: HostPortCounters,
}

/// Counts of packets ([`Counters`]) and packets inside ([`Occupancy`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketReport {
    /// Frames that came to the switch.
    pub received: u64,
    /// Frames that left it.
    pub transmitted: u64,
    /// Frames injected by packet generators.
    pub generated: u64,
    /// Clones made by ingress.
    pub ingress_clones: u64,
    /// Clones made by egress.
    pub egress_clones: u64,
    /// Multicast copies.
    pub replicas: u64,
    /// Recirculations.
    pub recirculated: u64,
    /// Resubmissions.
    pub resubmitted: u64,
    /// Copies that mirror sessions hold at the moment.
    pub held: u64,
    /// Packets in egress queues at the moment.
    pub queued: u64,
    /// Frames that wait for recirculation or resubmission at the moment.
    pub returning: u64,
}

impl PacketReport {
    pub(crate) fn new(counters: &Counters, occupancy: Occupancy) -> PacketReport {
        PacketReport {
            received: counters.received,
            transmitted: counters.transmitted,
            generated: counters.generated,
            ingress_clones: counters.ingress_clones,
            egress_clones: counters.egress_clones,
            replicas: counters.replicas,
            recirculated: counters.recirculated,
            resubmitted: counters.resubmitted,
            held: occupancy.held,
            queued: occupancy.queued,
            returning: occupancy.recirculating + occupancy.resubmitting,
        }
    }
}

/// Elements beyond which a counter array is not reported.
const MOST_ELEMENTS: usize = 1024;

/// Contents of a program's objects, and its events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramReport {
    /// Its tables.
    pub tables: Vec<TableReport>,
    /// Its counter arrays of at most 1,024 elements.
    pub counters: Vec<CounterReport>,
    /// Counters of other events.
    pub events: EventReport,
}

/// A table at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// Its full name.
    pub name: String,
    /// Its entries.
    pub entries: u64,
    /// Entries that fit.
    pub size: u64,
    /// Packets that hit an entry since the program was loaded, if it has a direct counter.
    pub hits: Option<Count>,
}

/// A counter array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterReport {
    /// Its full name.
    pub name: String,
    /// Its elements that are not zero, with their indices.
    pub counts: Vec<(usize, Count)>,
}

/// Counts of events since the program was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventReport {
    /// Packets whose parser ended with an error.
    pub parser_errors: u64,
    /// Packets with a wrong checksum.
    pub checksum_errors: u64,
    /// Calls of `assert` and `assume` that were false.
    pub failed_assertions: u64,
    /// Digests for which there was no room.
    pub digests_dropped: u64,
}

impl ProgramReport {
    /// Adds what another worker with the same program and entries counted.
    pub(crate) fn add(&mut self, other: ProgramReport) {
        fn plus(left: Count, right: Count) -> Count {
            Count {
                packets: left.packets.wrapping_add(right.packets),
                bytes: left.bytes.wrapping_add(right.bytes),
            }
        }
        for (table, same) in self.tables.iter_mut().zip(other.tables) {
            table.hits = table.hits.zip(same.hits).map(|(a, b)| plus(a, b));
        }
        for (counter, same) in self.counters.iter_mut().zip(other.counters) {
            let mut counts: BTreeMap<usize, Count> = counter.counts.drain(..).collect();
            for (index, count) in same.counts {
                let sum = counts.entry(index).or_default();
                *sum = plus(*sum, count);
            }
            counter.counts = counts.into_iter().collect();
        }
        self.events.parser_errors += other.events.parser_errors;
        self.events.checksum_errors += other.events.checksum_errors;
        self.events.failed_assertions += other.events.failed_assertions;
        self.events.digests_dropped += other.events.digests_dropped;
    }

    pub(crate) fn new(state: &TargetState) -> ProgramReport {
        let tables = state.tables().iter().map(|table| TableReport {
            name: table.name().to_owned(),
            entries: table.len(),
            size: table.size(),
            hits: table.hits(),
        });
        let arrays = state.counters().iter().filter(|counter| {
            let elements = counter.counts().len();
            (1..=MOST_ELEMENTS).contains(&elements)
        });
        let counters = arrays.map(|counter| {
            let counts = counter.counts().iter().copied().enumerate();
            CounterReport {
                name: counter.name().to_owned(),
                counts: counts
                    .filter(|(_, count)| *count != Count::default())
                    .collect(),
            }
        });
        ProgramReport {
            tables: tables.collect(),
            counters: counters.collect(),
            events: EventReport {
                parser_errors: state.events.parser_errors.iter().sum(),
                checksum_errors: state.events.checksum_errors,
                failed_assertions: state.events.failed_assertions,
                digests_dropped: state.digests.dropped(),
            },
        }
    }
}
