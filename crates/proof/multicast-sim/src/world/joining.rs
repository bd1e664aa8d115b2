//! Receivers that join: they get the state of a peer, or of its replica.

use super::World;
use crate::receiver::ReceiverNode;

impl World<'_> {
    /// A receiver that waits for it gets the state of a peer that is far enough.
    pub(super) fn join(&mut self, receiver: usize) {
        self.join_replica(receiver);
        let waits = self.receivers[receiver].as_ref();
        let Some(from) = waits.and_then(ReceiverNode::waits_for) else {
            return;
        };
        let group = self.places.group_of(receiver);
        let peers = self
            .places
            .receivers_of(group)
            .filter(|peer| *peer != receiver);
        let found = peers
            .filter_map(|peer| {
                let (position, snapshot) = self.receivers[peer].as_ref()?.snapshot()?;
                let ahead = position.wrapping_sub(from).cast_signed();
                (ahead >= 0).then_some((peer, snapshot))
            })
            .next();
        if let (Some((peer, snapshot)), Some(node)) = (found, &mut self.receivers[receiver]) {
            self.coverage.joined += 1;
            node.join(peer, snapshot);
        }
    }

    /// A replica that waits for it gets the state of a peer that covers its beginning.
    fn join_replica(&mut self, receiver: usize) {
        let node = self.receivers[receiver].as_ref();
        let Some(after) = node.and_then(ReceiverNode::replica_waits_for) else {
            return;
        };
        let group = self.places.group_of(receiver);
        let peers = self.places.receivers_of(group);
        let found = peers
            .filter_map(|peer| {
                let node = self.receivers[peer].as_ref()?;
                node.replica.as_ref()?.snapshot(after)
            })
            .next();
        let node = self.receivers[receiver].as_mut();
        if let (Some(state), Some(replica)) = (found, node.and_then(|node| node.replica.as_mut())) {
            if replica.join(&state) {
                self.coverage.joined += 1;
            } else {
                self.anomaly(format!("receiver {receiver} cannot read a peer's state"));
            }
        }
    }
}
