//! An engine as a job: ingress and egress of one frame, without a switch around it.

use crate::limit::Job;
use stateplane_runtime::{
    DROP_PORT, EgressInput, Engine, Forwarded, IngressInput, InstanceType, Preserved,
};

/// An engine and the time that it sees.
pub struct Alone<E> {
    /// The engine.
    pub engine: E,
    /// Time in µs.
    pub now: u64,
}

/// Takes a frame that came by `port` at `now` through an engine's ingress and egress: the
/// port by which what is in `out` leaves, if it does.
#[inline]
pub fn pass<E: Engine>(
    engine: &mut E,
    now: u64,
    port: u16,
    frame: &[u8],
    out: &mut Vec<u8>,
) -> Option<u16> {
    let input = IngressInput {
        frame,
        port,
        instance_type: InstanceType::Normal,
        preserved: &Preserved::default(),
        now,
    };
    let outcome = match engine.forward(&input, out) {
        Forwarded::Sent(port) => return Some(port),
        Forwarded::Done { port, outcome } => return (!outcome.dropped).then_some(port),
        Forwarded::Dropped => return None,
        Forwarded::Waits(outcome) => outcome,
    };
    let port = outcome.egress_spec;
    if port >= DROP_PORT {
        return None;
    }
    let input = EgressInput {
        port,
        rid: 0,
        instance_type: InstanceType::Normal,
        enqueued_at: now,
        enqueue_depth: 0,
        dequeue_depth: 0,
        now,
    };
    let outcome = engine.egress(outcome.packet, &input, out);
    (!outcome.dropped).then_some(port)
}

impl<E: Engine> Job for Alone<E> {
    #[inline]
    fn frame(&mut self, port: u16, frame: &[u8], out: &mut Vec<u8>) -> Option<u16> {
        pass(&mut self.engine, self.now, port, frame, out)
    }

    #[inline]
    fn announce(&mut self, port: u16, frame: &[u8]) {
        self.engine.announce(port, frame);
    }
}
