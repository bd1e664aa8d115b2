//! Every write is acknowledged in the end: a write that the store never gets is
//! seen by later packets of the flow, none of which may leave (RedPlane §5.2).

use crate::checker::{Checker, Subject, Violation};
use crate::event::{EventKind, History};
use std::collections::BTreeSet;

pub(crate) fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut guilty = BTreeSet::new();
    for (index, event) in history.events.iter().enumerate() {
        let EventKind::Kept {
            switch,
            flow,
            sequence,
            acknowledged,
        } = &event.kind
        else {
            continue;
        };
        if sequence != acknowledged && guilty.insert(flow) {
            found.push(Violation {
                checker: Checker::Progress,
                subject: Subject::Flow(flow.clone()),
                event: index,
                because: format!(
                    "switch {switch} has written up to {sequence}, but only {acknowledged} is acknowledged"
                ),
            });
        }
    }
    found
}
