//! The tokens of a lock never fall (`docs/coordination-protocol.md`, rules 20 and 21).

use crate::checker::{Checker, Objections, Violation};
use crate::coordination::event::{Coordination, Event, EventKind, Number, Subject};
use crate::event::Object;
use std::collections::BTreeMap;

/// A group and a key.
type Lock = (Object, Object);

/// Objects to an answer whose token is below one that was told before its operation began.
pub(super) struct Tokens {
    highest: BTreeMap<Lock, u64>,
    /// The lock of each call without an answer, and its highest token then.
    asked: BTreeMap<(Object, u64), (Lock, u64)>,
    found: Objections<Coordination>,
}

impl Tokens {
    /// Its name in texts.
    pub(super) const NAME: &'static str = "tokens";
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            highest: BTreeMap::new(),
            asked: BTreeMap::new(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Coordination> for Tokens {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Coordination, index: usize, event: &Event) {
        match &event.kind {
            EventKind::Call {
                object,
                operation,
                request,
                ..
            } => {
                let lock = (object.clone(), request.key.clone());
                let highest = self.highest.get(&lock).copied().unwrap_or(0);
                self.asked
                    .insert((object.clone(), *operation), (lock, highest));
            }
            EventKind::Return {
                object,
                operation,
                response,
                ..
            } => {
                let asked = self.asked.remove(&(object.clone(), *operation));
                let Some(((lock, highest), token)) = asked.zip(response.token) else {
                    return;
                };
                if token < highest {
                    let because = format!(
                        "operation {operation} is told token {}, though {} was told before",
                        Number(token),
                        Number(highest)
                    );
                    let subject = Subject {
                        group: lock.0.clone(),
                        key: Some(lock.1.clone()),
                    };
                    self.found.add(subject, index, because);
                }
                let highest = self.highest.entry(lock).or_default();
                *highest = (*highest).max(token);
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, _: &Coordination) -> Vec<Violation<Coordination>> {
        self.found.into_violations()
    }
}
