//! Nothing is released before it is kept: when an output leaves, every replica of
//! the chain holds at least the state that it depends on.

use crate::checker::{Checker, Subject, Violation};
use crate::event::{Durability, EventKind, History};
use crate::serial::newer;
use std::collections::BTreeSet;

pub(crate) fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut guilty = BTreeSet::new();
    for (index, event) in history.events.iter().enumerate() {
        let EventKind::Output {
            flow,
            packet,
            durability: Some(durability),
            ..
        } = &event.kind
        else {
            continue;
        };
        let Some(lack) = lack(durability) else {
            continue;
        };
        if guilty.insert(flow) {
            found.push(Violation {
                checker: Checker::Durable,
                subject: Subject::Flow(flow.clone()),
                event: index,
                because: format!("packet {packet} left, but {lack}"),
            });
        }
    }
    found
}

fn lack(durability: &Durability) -> Option<String> {
    let Durability { sequence, held } = durability;
    if held.is_empty() {
        return Some("no replica is there to hold it".into());
    }
    held.iter()
        .enumerate()
        .find_map(|(replica, held)| match held {
            None => Some(format!("replica {replica} had no record")),
            Some(held) if newer(*sequence, *held) => {
                Some(format!("replica {replica} held {held} and not {sequence}"))
            }
            Some(_) => None,
        })
}
