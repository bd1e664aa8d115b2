//! Every write is acknowledged in the end: a write that the store never gets is
//! seen by later packets of the flow, none of which may leave (RedPlane §5.2).

use crate::checker::{Checker, Objections};
use crate::replication::event::{Event, EventKind, Replication, StateEvent, Violation};

pub(crate) struct Progress(Objections<Replication>);

impl Progress {
    pub(crate) const NAME: &'static str = "progress";
}

impl Default for Progress {
    fn default() -> Self {
        Self(Objections::new(Self::NAME))
    }
}

impl Checker<Replication> for Progress {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Replication, index: usize, event: &Event) {
        let EventKind::Of(StateEvent::Kept {
            switch,
            flow,
            sequence,
            acknowledged,
        }) = &event.kind
        else {
            return;
        };
        if sequence != acknowledged {
            let because = format!(
                "switch {switch} has written up to {sequence}, but only {acknowledged} is acknowledged"
            );
            self.0.add(flow.clone(), index, because);
        }
    }

    fn finish(self: Box<Self>, _: &Replication) -> Vec<Violation> {
        self.0.into_violations()
    }
}
