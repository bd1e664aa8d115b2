//! Egress queues.

use stateplane_runtime::{DROP_PORT, InstanceType, Port};
use std::collections::VecDeque;

/// A packet that waits for egress.
pub(crate) struct Queued<P> {
    pub(crate) packet: P,
    pub(crate) port: Port,
    pub(crate) rid: u16,
    pub(crate) instance_type: InstanceType,
    pub(crate) enqueued_at: u64,
    pub(crate) enqueue_depth: u32,
}

impl<P> Queued<P> {
    pub(crate) fn new(packet: P, port: Port, instance_type: InstanceType) -> Self {
        Self {
            packet,
            port,
            rid: 0,
            instance_type,
            enqueued_at: 0,
            enqueue_depth: 0,
        }
    }
}

/// One queue for each port, served in the order of arrival over all ports: since
/// ports have no rate of their own here, one list and a depth for each port are the
/// same as a list for each port.
pub(crate) struct EgressQueues<P> {
    packets: VecDeque<Queued<P>>,
    depths: Vec<u32>,
    max_depth: u32,
}

impl<P> EgressQueues<P> {
    pub(crate) fn new(max_depth: u32) -> Self {
        Self {
            packets: VecDeque::new(),
            depths: vec![0; usize::from(DROP_PORT)],
            max_depth: max_depth.max(1),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn has_room(&self, port: Port) -> bool {
        self.depths[usize::from(port)] < self.max_depth
    }

    /// Adds the packet; returns false if there is no room. `packet.port` is below [`DROP_PORT`].
    #[inline]
    pub(crate) fn push(&mut self, now: u64, packet: Queued<P>) -> bool {
        let depth = &mut self.depths[usize::from(packet.port)];
        if *depth >= self.max_depth {
            return false;
        }
        self.packets.push_back(Queued {
            enqueued_at: now,
            enqueue_depth: *depth,
            ..packet
        });
        *depth += 1;
        true
    }

    /// The first packet, and the depth of its port's queue without it.
    pub(crate) fn pop(&mut self) -> Option<(Queued<P>, u32)> {
        let packet = self.packets.pop_front()?;
        let depth = &mut self.depths[usize::from(packet.port)];
        *depth -= 1;
        let depth = *depth;
        Some((packet, depth))
    }
}
