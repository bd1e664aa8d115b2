//! Queues and windows are bounded.

use super::event::{Event, EventKind, Filled, Multicast, MulticastEvent, Subject, Violation};
use crate::checker::{Checker, Objections};

/// Copies that a switch holds of a slot at most (rule 23).
const HELD: u64 = 2;

/// Objects to a queue or a window that has more than its bound.
pub(super) struct Bounds {
    found: Objections<Multicast>,
}

impl Bounds {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "bounds";
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Multicast> for Bounds {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, system: &Multicast, index: usize, event: &Event) {
        if let EventKind::Of(MulticastEvent::Fills {
            node,
            group,
            what,
            count,
        }) = event.kind
        {
            let most = match what {
                Filled::Queue => system.queue,
                Filled::Window => system.window,
                Filled::Held => HELD,
            };
            if count > most {
                let because = format!("{count} in its {what}, which has {most} at most");
                self.found.add(Subject::Node(node, group), index, because);
            }
        }
    }

    fn finish(self: Box<Self>, _: &Multicast) -> Vec<Violation> {
        self.found.into_violations()
    }
}
