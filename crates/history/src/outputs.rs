//! Every output belongs to one input, and no input has two (RedPlane §4.1: each
//! input packet produces exactly one output packet).

use crate::checker::{Checker, Subject, Violation};
use crate::event::{EventKind, Flow, History};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Input,
    Output,
}

pub(crate) fn check(history: &History) -> Vec<Violation> {
    let mut seen: BTreeMap<(&Flow, u64), Seen> = BTreeMap::new();
    let mut found = Vec::new();
    let mut guilty = BTreeSet::new();
    for (index, event) in history.events.iter().enumerate() {
        let (flow, because) = match &event.kind {
            EventKind::Input { flow, packet, .. } => {
                match seen.insert((flow, *packet), Seen::Input) {
                    None => continue,
                    Some(_) => (flow, format!("packet {packet} is the name of two inputs")),
                }
            }
            EventKind::Output { flow, packet, .. } => {
                match seen.insert((flow, *packet), Seen::Output) {
                    Some(Seen::Input) => continue,
                    Some(Seen::Output) => (flow, format!("packet {packet} left twice")),
                    None => (flow, format!("packet {packet} left but never came")),
                }
            }
            _ => continue,
        };
        if guilty.insert(flow) {
            found.push(Violation {
                checker: Checker::Outputs,
                subject: Subject::Flow(flow.clone()),
                event: index,
                because,
            });
        }
    }
    found
}
