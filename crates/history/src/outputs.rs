//! Every output belongs to one input, and no input has two (RedPlane §4.1: each
//! input packet produces exactly one output packet).

use crate::checker::{Checker, Objections, Violation};
use crate::event::{Event, EventKind, Object, System};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Input,
    Output,
}

/// Objects to returns without a call and to calls that return twice.
pub struct Outputs<S: System> {
    seen: BTreeMap<(Object, u64), Seen>,
    found: Objections<S>,
}

impl<S: System> Outputs<S> {
    /// Its name in texts.
    pub const NAME: &'static str = "outputs";
}

impl<S: System> Default for Outputs<S> {
    fn default() -> Self {
        Self {
            seen: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl<S: System> Checker<S> for Outputs<S> {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &S, index: usize, event: &Event<S>) {
        let (object, because) = match &event.kind {
            EventKind::Call {
                object, operation, ..
            } => {
                let seen = self.seen.insert((object.clone(), *operation), Seen::Input);
                match seen {
                    None => return,
                    Some(_) => (
                        object,
                        format!("packet {operation} is the name of two inputs"),
                    ),
                }
            }
            EventKind::Return {
                object, operation, ..
            } => {
                let seen = self.seen.insert((object.clone(), *operation), Seen::Output);
                match seen {
                    Some(Seen::Input) => return,
                    Some(Seen::Output) => (object, format!("packet {operation} left twice")),
                    None => (object, format!("packet {operation} left but never came")),
                }
            }
            _ => return,
        };
        self.found.add(object.clone(), index, because);
    }

    fn finish(self: Box<Self>, _: &S) -> Vec<Violation<S>> {
        self.found.into_violations()
    }
}
