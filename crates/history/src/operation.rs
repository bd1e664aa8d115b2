//! Calls and their returns, object by object.

use crate::event::{Event, EventKind, History, Object, System};
use std::collections::BTreeMap;

/// An input and, unless it was lost, its output. Positions are indices of the
/// events of the history: output x precedes input y if its index is the lower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<I, O> {
    /// The input.
    pub input: I,
    /// Place in the history at which it came in.
    pub began: usize,
    /// Place in the history at which its output left, and the output. `None` if it has not
    /// left: the input may or may not have taken effect (RedPlane §4.2).
    pub ended: Option<(usize, O)>,
}

impl<I, O> Operation<I, O> {
    /// The operation with another input and output at the same places.
    pub fn map<J, P>(
        self,
        input: impl FnOnce(I) -> J,
        output: impl FnOnce(O) -> P,
    ) -> Operation<J, P> {
        Operation {
            input: input(self.input),
            began: self.began,
            ended: self.ended.map(|(at, of)| (at, output(of))),
        }
    }
}

/// A call: number of the operation, and what is asked.
pub type Call<S> = (u64, <S as System>::Request);

/// An operation of a system.
pub type OperationOf<S> = Operation<Call<S>, <S as System>::Response>;

/// Collects the operations of each object from events.
#[derive(Clone, Debug)]
pub struct Operations<S: System> {
    objects: BTreeMap<Object, Vec<OperationOf<S>>>,
    places: BTreeMap<(Object, u64), usize>,
}

impl<S: System> Default for Operations<S> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }
}

impl<S: System> Operations<S> {
    /// Takes the event of number `index`.
    pub fn handle(&mut self, index: usize, event: &Event<S>) {
        match &event.kind {
            EventKind::Call {
                object,
                operation,
                request,
                ..
            } => {
                let operations = self.objects.entry(object.clone()).or_default();
                self.places
                    .insert((object.clone(), *operation), operations.len());
                operations.push(Operation {
                    input: (*operation, request.clone()),
                    began: index,
                    ended: None,
                });
            }
            EventKind::Return {
                object,
                operation,
                response,
                ..
            } => {
                let place = self.places.get(&(object.clone(), *operation));
                let operations = self.objects.get_mut(object);
                if let (Some(&place), Some(operations)) = (place, operations) {
                    let ended = &mut operations[place].ended;
                    ended.get_or_insert_with(|| (index, response.clone()));
                }
            }
            _ => {}
        }
    }

    /// The operations of each object in the order of their calls. Of several returns of
    /// one call the first counts, and returns without a call are left out: both are the
    /// business of the checker `outputs`.
    pub fn by_object(self) -> BTreeMap<Object, Vec<OperationOf<S>>> {
        self.objects
    }
}

/// The operations in `history`; see [`Operations::by_object`].
pub fn operations_of<S: System>(history: &History<S>) -> BTreeMap<Object, Vec<OperationOf<S>>> {
    let mut operations = Operations::default();
    for (index, event) in history.events.iter().enumerate() {
        operations.handle(index, event);
    }
    operations.by_object()
}
