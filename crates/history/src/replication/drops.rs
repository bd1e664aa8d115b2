//! Packets that an application drops by its own rules, apart from those that were lost.

use crate::operation::{Operation, Operations};
use crate::replication::application::Application;
use crate::replication::event::History;
use crate::replication::linearizable::asked_of;
use crate::search::{Program, explain};
use std::collections::BTreeSet;

/// Most states that a flow is taken to be in at once; others are left out.
const MOST_STATES: usize = 4096;

/// The packets of `history` without an output that its application may have dropped by its
/// own rules: in an order of the flow's packets that explains every output, the packet's
/// place has a state in which the application lets nothing out (RedPlane §4, Definition 3).
///
/// A packet without an output may have taken effect or not, so both are looked at. Packets
/// of flows whose outputs no order explains, and histories of no application, have none.
pub fn dropped_by_right(history: &History) -> BTreeSet<u64> {
    let Some(application) = history.system.application else {
        return BTreeSet::new();
    };
    let mut dropped = BTreeSet::new();
    let mut operations = Operations::default();
    for (index, event) in history.events.iter().enumerate() {
        operations.handle(index, event);
    }
    for (packets, asked) in asked_of(operations).into_values() {
        if let Ok(Ok(order)) = explain(&application, &asked) {
            let found = silent_places(&application, &asked, &order);
            dropped.extend(found.into_iter().map(|at| packets[at]));
        }
    }
    dropped
}

/// The operations without an output that have a place in `order` at which the program lets
/// nothing out.
fn silent_places(
    application: &Application,
    operations: &[Operation<u64, Option<u64>>],
    order: &[usize],
) -> BTreeSet<usize> {
    let ordered: BTreeSet<usize> = order.iter().copied().collect();
    let left_out = |at: &usize| operations[*at].ended.is_none() && !ordered.contains(at);
    // Each operation that is not in the order, with the first and the last place that it may
    // have: behind all that ended before it began, before all that began after it did.
    let places: Vec<(usize, usize, usize)> = (0..operations.len())
        .filter(left_out)
        .map(|at| {
            let began = operations[at].began;
            let ended_before = |of: &&usize| {
                let ended = operations[**of].ended.as_ref();
                ended.is_some_and(|(ended, _)| *ended < began)
            };
            let behind = order.iter().rev().position(|of| ended_before(&of));
            let first = behind.map_or(0, |from_end| order.len() - from_end);
            let rest = order[first..].iter();
            let later = rest.take_while(|of| operations[**of].began < began).count();
            (at, first, first + later)
        })
        .collect();
    let mut silent = BTreeSet::new();
    let mut states = BTreeSet::from([application.start()]);
    for place in 0..=order.len() {
        for &(at, _, _) in places
            .iter()
            .filter(|(_, first, last)| (*first..=*last).contains(&place))
        {
            for state in states.clone() {
                for (output, next) in application.steps(&state, &operations[at].input) {
                    if output.is_none() {
                        silent.insert(at);
                    }
                    if states.len() < MOST_STATES {
                        states.insert(next);
                    }
                }
            }
        }
        let Some(&at) = order.get(place) else {
            break;
        };
        let operation = &operations[at];
        let mut after = BTreeSet::new();
        for state in &states {
            for (output, next) in application.steps(state, &operation.input) {
                match &operation.ended {
                    Some((_, seen)) if *seen != output => continue,
                    None if output.is_none() => drop(silent.insert(at)),
                    _ => {}
                }
                after.insert(next);
            }
        }
        states = after;
    }
    silent
}
