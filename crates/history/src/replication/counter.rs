//! Linearizability of the per-flow counter (RedPlane §4, Definitions 2 to 4).
//!
//! The program adds one for each packet and the output carries the sum, so an
//! output that carries v says that its input is the v-th of the order S. An order
//! exists exactly if
//!
//! 1. all v are at least 1 and differ;
//! 2. if output x precedes input y, then v_x < v_y;
//! 3. the numbers below the greatest v that no output carries can be given to
//!    inputs without output, each to one, such that an input which began after
//!    output x left has a number above v_x.
//!
//! These are necessary: S gives each input one place, and (2) and (3) are what
//! Definition 3 (2) says of inputs with and without output. They suffice: the
//! numbers are an order of all inputs that have one; the rest go to its end, where
//! they have no visible effect and where every output precedes them.
//!
//! For (3) let b be the greatest v that left before an input without output began:
//! it can have any number above b. A missing number k therefore accepts the inputs
//! with b < k, the next missing number those and perhaps more; for such nested
//! sets Hall's condition is that the j-th missing number accepts at least j inputs.

use crate::checker::{Checker, Objections};
use crate::operation::{Operation, Operations};
use crate::replication::event::{Event, Replication, Violation};
use crate::search::Program;
use std::collections::BTreeMap;

/// The counter as a [`Program`]: every packet counts, and shows the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counter;

impl Program for Counter {
    type State = u64;
    type Input = ();
    type Output = u64;

    fn start(&self) -> u64 {
        0
    }

    fn steps(&self, state: &u64, _: &()) -> Vec<(u64, u64)> {
        vec![(state + 1, state + 1)]
    }
}

#[derive(Default)]
pub(crate) struct CounterChecker(Operations<Replication>);

impl CounterChecker {
    pub(crate) const NAME: &'static str = "counter";
}

impl Checker<Replication> for CounterChecker {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, _: &Replication, index: usize, event: &Event) {
        self.0.handle(index, event);
    }

    fn finish(self: Box<Self>, system: &Replication) -> Vec<Violation> {
        let mut found = Objections::new(Self::NAME);
        if system.application.is_some() {
            return Vec::new();
        }
        for (flow, operations) in self.0.by_object() {
            let operations = operations.into_iter();
            let counted = operations.map(|of| of.map(|(packet, _)| packet, |out| out.value));
            if let Some((event, because)) = objection(&counted.collect::<Vec<_>>()) {
                found.add(flow, event, because);
            }
        }
        found.into_violations()
    }
}

/// Why `operations` of one flow, in the order of their inputs, are not those of a
/// counter, and at which event that shows. Flows whose outputs carry no values are
/// not a counter's.
fn objection(operations: &[Operation<u64, Option<u64>>]) -> Option<(usize, String)> {
    let mut outputs = Vec::new();
    let mut bare = None;
    for operation in operations {
        match operation.ended {
            Some((at, Some(value))) => outputs.push((at, value, operation.input)),
            Some((at, None)) => bare = bare.or(Some((at, operation.input))),
            None => {}
        }
    }
    if outputs.is_empty() {
        return None;
    }
    if let Some((at, packet)) = bare {
        return Some((at, format!("packet {packet} carries no value")));
    }
    outputs.sort_unstable();

    let mut by_value = BTreeMap::new();
    for &(at, value, packet) in &outputs {
        if value == 0 {
            return Some((
                at,
                format!("packet {packet} carries 0, which counts nothing"),
            ));
        }
        if let Some(other) = by_value.insert(value, packet) {
            return Some((
                at,
                format!("packets {other} and {packet} both carry {value}"),
            ));
        }
    }

    // Bound of each operation: the greatest value that left before it began.
    let mut left = outputs.iter().peekable();
    let mut greatest = (0, 0);
    let mut spare_bounds = Vec::new();
    for operation in operations {
        while let Some(&&(_, value, packet)) = left.peek().filter(|(at, ..)| *at < operation.began)
        {
            greatest = greatest.max((value, packet));
            left.next();
        }
        match operation.ended {
            Some((at, Some(value))) if value <= greatest.0 => {
                let (bound, other) = greatest;
                let packet = operation.input;
                return Some((
                    at,
                    format!(
                        "packet {packet} carries {value}, but packet {other} had left with {bound} before it came"
                    ),
                ));
            }
            Some(_) => {}
            None => spare_bounds.push(greatest.0),
        }
    }

    // Bounds grow in the order of inputs, so those below a number are a prefix.
    let mut filled = 0;
    let mut next = 1;
    for (&value, &packet) in &by_value {
        // All numbers from `next` to `value` - 1 are missing; the first that has
        // no input left is where counting fails.
        let mut missing = next;
        while missing < value {
            let available = spare_bounds.partition_point(|&bound| bound < missing) as u64;
            if filled >= available {
                let at = outputs.iter().find(|(_, v, _)| *v == value)?.0;
                return Some((
                    at,
                    format!(
                        "packet {packet} carries {value}, but no packet can have been number {missing}"
                    ),
                ));
            }
            // Up to the next bound, each further number needs one more input.
            let bound = spare_bounds.get(available as usize).copied();
            let same = bound.unwrap_or(u64::MAX).saturating_add(1).min(value) - missing;
            let step = same.min(available - filled);
            filled += step;
            missing += step;
        }
        next = value + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::linearization;
    use proptest::prelude::*;

    fn bare(operations: &[Operation<u64, Option<u64>>]) -> Vec<Operation<(), u64>> {
        let each = |operation: &Operation<u64, Option<u64>>| Operation {
            input: (),
            began: operation.began,
            ended: operation
                .ended
                .map(|(at, value)| (at, value.unwrap_or_default())),
        };
        operations.iter().map(each).collect()
    }

    /// Packets of a flow: when each begins, how long it takes, and what it carries
    /// if it ends. All positions differ.
    fn history(packets: &[(usize, usize, Option<u64>)]) -> Vec<Operation<u64, Option<u64>>> {
        let count = packets.len();
        let operation =
            |(number, &(began, length, value)): (usize, &(usize, usize, Option<u64>))| {
                let end = ((began + length) * count + number) * 2 + 1;
                Operation {
                    input: number as u64,
                    began: (began * count + number) * 2,
                    ended: value.map(|value| (end, Some(value))),
                }
            };
        let mut operations: Vec<_> = packets.iter().enumerate().map(operation).collect();
        operations.sort_by_key(|operation| operation.began);
        operations
    }

    #[test]
    fn a_huge_value_is_judged_at_once() {
        let operations = history(&[(0, 1, Some(u64::MAX)), (0, 1, None)]);
        assert!(objection(&operations).is_some());
    }

    fn any_history() -> impl Strategy<Value = Vec<(usize, usize, Option<u64>)>> {
        let packet = (
            0usize..5,
            0usize..4,
            proptest::option::weighted(0.7, 0u64..8),
        );
        proptest::collection::vec(packet, 0..8)
    }

    /// A history of a counter that counts at a moment between input and output and
    /// loses some inputs and outputs, perhaps with one value changed after the fact.
    fn nearly_good() -> impl Strategy<Value = Vec<Operation<u64, Option<u64>>>> {
        let packet = (0usize..40, 0usize..40, 0usize..40, 0u8..10);
        let packets = proptest::collection::vec(packet, 1..9);
        (packets, proptest::option::of((any::<usize>(), 1u64..9))).prop_map(|(packets, change)| {
            let mut moments: Vec<_> = (0..packets.len()).filter(|&at| packets[at].3 > 1).collect();
            moments.sort_by_key(|&at| (packets[at].0 + packets[at].1, at));
            let count = packets.len();
            let mut operations: Vec<_> = packets
                .iter()
                .enumerate()
                .map(|(at, &(began, wait, rest, fate))| {
                    let place = moments.iter().position(|&m| m == at);
                    let end = (began + wait + rest) * count + at;
                    Operation {
                        input: at as u64,
                        began: (began * count + at) * 2,
                        ended: place
                            .filter(|_| fate > 3)
                            .map(|place| (end * 2 + 1, Some(place as u64 + 1))),
                    }
                })
                .collect();
            if let Some((at, value)) = change {
                let at = at % operations.len();
                if let Some((_, carried)) = &mut operations[at].ended {
                    *carried = Some(value);
                }
            }
            operations.sort_by_key(|operation| operation.began);
            operations
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn the_rule_agrees_with_the_search_on_any_history(packets in any_history()) {
            let operations = history(&packets);
            let order = linearization(&Counter, &bare(&operations)).unwrap();
            prop_assert_eq!(objection(&operations).is_none(), order.is_some());
        }

        #[test]
        fn the_rule_agrees_with_the_search_on_histories_of_a_counter(operations in nearly_good()) {
            let order = linearization(&Counter, &bare(&operations)).unwrap();
            prop_assert_eq!(objection(&operations).is_none(), order.is_some());
        }
    }
}
