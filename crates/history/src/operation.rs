//! Inputs and their outputs, flow by flow.

use crate::event::{EventKind, Flow, History};
use std::collections::BTreeMap;

/// An input and, unless it was lost, its output. Positions are indices of the
/// events of the history: output x precedes input y if its index is the lower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<I, O> {
    /// What came in.
    pub input: I,
    /// Where in the history it came in.
    pub began: usize,
    /// Where in the history its output left, and what it was. `None` if it has not
    /// left: the input may or may not have taken effect (RedPlane §4.2).
    pub ended: Option<(usize, O)>,
}

/// The operations of each flow in the order of their inputs. Of several outputs of
/// one packet the first counts, and outputs without an input are left out: both
/// are the business of the checker `outputs`.
pub fn operations_of(history: &History) -> BTreeMap<Flow, Vec<Operation<u64, Option<u64>>>> {
    let mut flows: BTreeMap<Flow, Vec<Operation<u64, Option<u64>>>> = BTreeMap::new();
    let mut places: BTreeMap<(&Flow, u64), usize> = BTreeMap::new();
    for (index, event) in history.events.iter().enumerate() {
        match &event.kind {
            EventKind::Input { flow, packet, .. } => {
                let operations = flows.entry(flow.clone()).or_default();
                places.insert((flow, *packet), operations.len());
                operations.push(Operation {
                    input: *packet,
                    began: index,
                    ended: None,
                });
            }
            EventKind::Output {
                flow,
                packet,
                value,
                ..
            } => {
                let place = places.get(&(flow, *packet));
                let operations = flows.get_mut(flow);
                if let (Some(&place), Some(operations)) = (place, operations) {
                    operations[place].ended.get_or_insert((index, *value));
                }
            }
            _ => {}
        }
    }
    flows
}
