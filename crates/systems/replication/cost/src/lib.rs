//! The analytical model of what replication costs a switch (RedPlane §7.2): from what
//! traffic does to state, the messages between the switch and its store, in bytes and
//! requests per second.
//!
//! Lengths are those of Ethernet frames without their check sequence. What replicas send
//! each other is not part of it, nor what is sent again after a loss.
//!
//! Two assumptions: the packets of a flow come evenly spaced, and flows share the packets evenly.
//! Where it is known how far writes come in bursts, [`Load::with_writes`] has the load of a burst.
//!
//! A lease lasts while the switch's term with the head of the chain lasts, so that readers cost
//! nothing: heartbeats keep the terms, whatever the flows are.

#[cfg(test)]
mod tests;

/// Ethernet, IPv4 and UDP headers and the message's own, in bytes, without the state
/// (`docs/replication-protocol.md`).
pub const HEADERS: f64 = 14.0 + 20.0 + 8.0 + 72.0;

/// Probes of a chain that a switch sends each second, and as many answers, where nothing
/// else is said.
pub const PROBES_PER_S: f64 = 4.0;

/// A head's promise in seconds, where nothing else is said: `term_ms` of the store.
pub const TERM_S: f64 = 0.1;

/// A heartbeat, and the answer if nothing changed, in bytes of frame.
pub const HEARTBEAT: f64 = 14.0 + 20.0 + 8.0 + 32.0;
/// As [`HEARTBEAT`].
pub const HEARTBEAT_REPLY: f64 = 14.0 + 20.0 + 8.0 + 40.0;

/// Heartbeats that a switch sends within a head's promise.
const BEATS: f64 = 2.0;

/// Traffic of one switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// Packets per second of flows that have state.
    pub packets_per_s: f64,
    /// Mean length of their frames, in bytes.
    pub frame_bytes: f64,
    /// Flows at a time, by the program's key: a connection through a NAT has two, one for
    /// each direction.
    pub flows: f64,
    /// Flows per second that the switch has no lease for: new ones, and such as move here.
    pub new_flows_per_s: f64,
    /// Packets that write their flow's state, as a share, 0 to 1.
    pub writes: f64,
}

/// Replication of the state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protection {
    /// Bytes of state of a flow, or of an element of a snapshot.
    pub state_bytes: f64,
    /// For how long a head promises, in seconds.
    pub term_s: f64,
    /// Heads of the chains: store servers to which the switch sends heartbeats.
    pub heads: f64,
    /// From a write at the switch to its acknowledgement there, in seconds.
    pub round_trip_s: f64,
    /// Probes per second.
    pub probes_per_s: f64,
    /// In bounded-inconsistency mode: packets neither wait nor write, snapshots do.
    pub snapshots: Option<Snapshots>,
}

/// Snapshots of register arrays (RedPlane §5.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshots {
    /// Elements of each snapshot, a message each: those of one array times the keys. Arrays
    /// that are walked together share messages, and add to the state.
    pub elements: f64,
    /// From one snapshot to the next, in seconds.
    pub period_s: f64,
}

/// Traffic between a switch and its store, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Requests for leases; each but those of snapshots carries its packet.
    pub leases_per_s: f64,
    /// Writes; outside of snapshots each carries its packet.
    pub writes_per_s: f64,
    /// Packets that wrote nothing and had to travel because their flow had a write in flight
    /// (RedPlane §5.1).
    pub buffered_per_s: f64,
    /// Heartbeats, to all heads.
    pub heartbeats_per_s: f64,
    /// Probes of the chain.
    pub probes_per_s: f64,
    /// Bytes per second to the store.
    pub to_store_bytes_per_s: f64,
    /// Bytes per second from the store.
    pub from_store_bytes_per_s: f64,
}

impl Load {
    /// Requests per second that the store answers.
    pub fn requests_per_s(&self) -> f64 {
        self.leases_per_s
            + self.writes_per_s
            + self.buffered_per_s
            + self.heartbeats_per_s
            + self.probes_per_s
    }

    /// Bytes per second in both directions.
    pub fn bytes_per_s(&self) -> f64 {
        self.to_store_bytes_per_s + self.from_store_bytes_per_s
    }

    /// Replication's share of all bytes that the switch sends and receives, 0 to 1: what
    /// RedPlane's Fig. 10 shows. A packet counts as it comes and as it leaves.
    pub fn share(&self, traffic: &Traffic) -> f64 {
        let own = 2.0 * traffic.packets_per_s * traffic.frame_bytes;
        let all = self.bytes_per_s() + own;
        if all > 0.0 {
            self.bytes_per_s() / all
        } else {
            0.0
        }
    }

    /// The load while writes come `times` as often as on average, and with them the packets
    /// that have to wait behind them; what else is said stays. The model spreads writes evenly
    /// over time, a store has to take them as they come. Below 1, `times` counts as 1.
    #[must_use]
    pub fn with_writes(&self, times: f64, traffic: &Traffic, protection: &Protection) -> Load {
        let times = times.max(1.0);
        let mut load = *self;
        load.writes_per_s *= times;
        load.buffered_per_s *= times;
        let more = (self.writes_per_s + self.buffered_per_s) * (times - 1.0);
        load.add_written(more, traffic, protection);
        load
    }

    /// Messages of packets that wrote, or waited behind one that did.
    fn add_written(&mut self, per_s: f64, traffic: &Traffic, protection: &Protection) {
        let frame = match protection.snapshots {
            Some(_) => 0.0,
            None => traffic.frame_bytes.max(0.0),
        };
        let state = protection.state_bytes.max(0.0);
        self.add(per_s, HEADERS + state + frame, HEADERS + frame);
    }

    fn add(&mut self, per_s: f64, request: f64, reply: f64) {
        self.to_store_bytes_per_s += per_s * request;
        self.from_store_bytes_per_s += per_s * reply;
    }
}

/// Predicts what replication of `traffic` costs. Figures below 0 count as 0, and a share
/// above 1 as 1.
pub fn load(traffic: &Traffic, protection: &Protection) -> Load {
    let mut load = Load {
        probes_per_s: protection.probes_per_s.max(0.0),
        ..Load::default()
    };
    load.add(load.probes_per_s, HEADERS, HEADERS);
    if protection.term_s > 0.0 {
        load.heartbeats_per_s = protection.heads.max(0.0) * BEATS / protection.term_s;
    }
    load.add(load.heartbeats_per_s, HEARTBEAT, HEARTBEAT_REPLY);
    match protection.snapshots {
        Some(snapshots) => add_snapshots(&mut load, &snapshots, traffic, protection),
        None => add_packets(&mut load, traffic, protection),
    }
    load
}

fn add_packets(load: &mut Load, traffic: &Traffic, protection: &Protection) {
    let state = protection.state_bytes.max(0.0);
    let frame = traffic.frame_bytes.max(0.0);
    let packets = traffic.packets_per_s.max(0.0);
    let flows = traffic.flows.max(0.0);
    let share = traffic.writes.clamp(0.0, 1.0);
    let of_flow = if flows > 0.0 { packets / flows } else { 0.0 };
    load.leases_per_s = traffic.new_flows_per_s.max(0.0);
    load.writes_per_s = packets * share;
    let near = of_flow * protection.round_trip_s.max(0.0) * (1.0 - share);
    load.buffered_per_s = (load.writes_per_s * near).min(packets - load.writes_per_s);
    load.add(load.leases_per_s, HEADERS + frame, HEADERS + state + frame);
    load.add_written(load.writes_per_s + load.buffered_per_s, traffic, protection);
}

fn add_snapshots(
    load: &mut Load,
    snapshots: &Snapshots,
    traffic: &Traffic,
    protection: &Protection,
) {
    if snapshots.period_s <= 0.0 {
        return;
    }
    load.writes_per_s = snapshots.elements.max(0.0) / snapshots.period_s;
    load.add_written(load.writes_per_s, traffic, protection);
}
