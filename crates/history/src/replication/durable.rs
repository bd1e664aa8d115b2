//! Nothing is released before it is kept: when an output leaves, every replica of
//! the chain holds at least the state that it depends on.

use crate::checker::{Checker, Objections};
use crate::replication::event::{Durability, Event, EventKind, Replication, Violation};
use crate::serial::newer;

pub(crate) struct Durable(Objections<Replication>);

impl Durable {
    pub(crate) const NAME: &'static str = "durable";
}

impl Default for Durable {
    fn default() -> Self {
        Self(Objections::new(Self::NAME))
    }
}

impl Checker<Replication> for Durable {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Replication, index: usize, event: &Event) {
        let EventKind::Return {
            object,
            operation,
            response,
            ..
        } = &event.kind
        else {
            return;
        };
        if let Some(lack) = response.durability.as_ref().and_then(lack) {
            let because = format!("packet {operation} left, but {lack}");
            self.0.add(object.clone(), index, because);
        }
    }

    fn finish(self: Box<Self>, _: &Replication) -> Vec<Violation> {
        self.0.into_violations()
    }
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
