//! Linearizability of the applications that have no checker of their own: [`explain`]
//! searches an order of a flow's packets in which the application's machine gives their
//! outputs (RedPlane §4, Definitions 2 to 4).

use crate::checker::{Checker, Objections};
use crate::operation::{Operation, OperationOf, Operations};
use crate::replication::event::{Event, Flow, Replication, Violation};
use crate::search::explain;
use std::collections::BTreeMap;

/// Packets of a flow, and what each asked with what came of it.
pub(crate) type Asked = (Vec<u64>, Vec<Operation<u64, Option<u64>>>);

/// For each flow, its packets with a request and, beside each, what it asked and what came of
/// it.
pub(crate) fn asked_of(operations: Operations<Replication>) -> BTreeMap<Flow, Asked> {
    let asked = |operation: OperationOf<Replication>| {
        let (packet, request) = operation.input;
        let request = request?;
        let operation = operation.map(|_| request, |released| released.value);
        Some((packet, operation))
    };
    operations
        .by_object()
        .into_iter()
        .map(|(flow, operations)| (flow, operations.into_iter().filter_map(asked).unzip()))
        .collect()
}

#[derive(Default)]
pub(crate) struct Linearizable(Operations<Replication>);

impl Linearizable {
    pub(crate) const NAME: &'static str = "application";
}

impl Checker<Replication> for Linearizable {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Replication, index: usize, event: &Event) {
        self.0.handle(index, event);
    }

    fn finish(self: Box<Self>, system: &Replication) -> Vec<Violation> {
        let Some(application) = system.application else {
            return Vec::new();
        };
        let mut found = Objections::new(Self::NAME);
        for (flow, (_, asked)) in asked_of(self.0) {
            let (event, because) = match explain(&application, &asked) {
                Ok(Ok(_)) => continue,
                Ok(Err(event)) => (
                    event,
                    format!("no order of the packets explains what the {application} let out"),
                ),
                Err(error) => (
                    asked.first().map_or(0, |operation| operation.began),
                    error.to_string(),
                ),
            };
            found.add(flow, event, because);
        }
        found.into_violations()
    }
}
