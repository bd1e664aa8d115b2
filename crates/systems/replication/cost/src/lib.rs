//! The analytical model of what replication costs a switch (RedPlane §7.2): from what
//! traffic does to state, the messages between the switch and its store, in bytes and
//! requests per second.
//!
//! Lengths are those of Ethernet frames without their check sequence. What replicas send
//! each other is not part of it, nor what is sent again after a loss.
//!
//! Three assumptions: the packets of a flow come evenly spaced, flows share the packets
//! evenly, and from each write of a flow to its next there are as many packets. Where it is
//! known how far writes come in bursts, [`Load::with_writes`] has the load of a burst.

#[cfg(test)]
mod tests;

/// Ethernet, IPv4 and UDP headers and the message's own, in bytes, without the state
/// (`docs/replication-protocol.md`).
pub const HEADERS: f64 = 14.0 + 20.0 + 8.0 + 72.0;

/// Probes of a chain that a switch sends each second, and as many answers, where nothing
/// else is said.
pub const PROBES_PER_S: f64 = 10.0;

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
    /// From one write of a flow to its next, in packets; `None`: spread over all of its
    /// packets, as `writes` says.
    pub write_interval: Option<f64>,
}

/// Replication of the state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protection {
    /// Bytes of state of a flow, or of an element of a snapshot.
    pub state_bytes: f64,
    /// Lease period in seconds.
    pub lease_s: f64,
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
    /// Renewals of leases that were only read under.
    pub renewals_per_s: f64,
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
            + self.renewals_per_s
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
    let lapses = of_flow > 0.0 && 1.0 / of_flow >= protection.lease_s;
    load.leases_per_s = traffic.new_flows_per_s.max(0.0);
    if lapses {
        // Each packet finds the lease run out.
        load.leases_per_s = load.leases_per_s.max(packets);
    }
    load.writes_per_s = packets * share;
    let near = of_flow * protection.round_trip_s.max(0.0) * (1.0 - share);
    load.buffered_per_s = (load.writes_per_s * near).min(packets - load.writes_per_s);
    if !lapses {
        load.renewals_per_s = renewals(load, traffic, of_flow, protection.lease_s);
    }
    load.add(load.leases_per_s, HEADERS + frame, HEADERS + state + frame);
    load.add_written(load.writes_per_s + load.buffered_per_s, traffic, protection);
    load.add(load.renewals_per_s, HEADERS, HEADERS);
}

/// Renewals per second, of flows with `of_flow` packets per second each. The first packet
/// after half the period asks, unless it writes, which renews too (rule 8).
fn renewals(load: &Load, traffic: &Traffic, of_flow: f64, lease_s: f64) -> f64 {
    if of_flow <= 0.0 || lease_s <= 0.0 {
        return 0.0;
    }
    let packets_per_s = traffic.packets_per_s.max(0.0);
    // From one renewal to the next, in packets.
    let renewal = (lease_s / 2.0 * of_flow).ceil().max(1.0);
    // Writes that another write of the same flow and lease follows.
    let followed = (load.writes_per_s - load.leases_per_s).max(0.0);
    let spread = packets_per_s / load.writes_per_s;
    let interval = traffic.write_interval.unwrap_or(spread).max(1.0);
    let between = if followed > 0.0 {
        (packets_per_s / followed).min(interval)
    } else {
        0.0
    };
    // A share of writes is rarely exact in binary.
    let of_interval = ((between / renewal - 1e-9).ceil() - 1.0).max(0.0);
    // A flow ends on its way to its next renewal, on average half way.
    let rest = (packets_per_s - followed * between) / renewal - load.leases_per_s / 2.0;
    followed * of_interval + rest.max(0.0)
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
    // Odd and even snapshots have records of their own, so each is written every second time.
    if 2.0 * snapshots.period_s >= protection.lease_s {
        load.leases_per_s = load.writes_per_s;
    }
    let state = protection.state_bytes.max(0.0);
    load.add(load.leases_per_s, HEADERS, HEADERS + state);
    load.add_written(load.writes_per_s, traffic, protection);
}
