//! Search for a linearization under any deterministic program, after Wing and Gong
//! ("Testing and verifying concurrent objects", 1993) with the memory of visited
//! configurations that Lowe added ("Testing for linearizability", 2017).

use crate::operation::Operation;
use std::collections::BTreeMap;
use thiserror::Error;

/// Most operations that [`linearization`] takes.
pub const LONGEST_SEARCH: usize = 1024;

/// Most configurations that [`linearization`] looks at.
pub const WIDEST_SEARCH: usize = 1 << 18;

/// A stateful program (RedPlane, Definition 1) with one output for each input. One
/// that chooses, for instance a server for a new connection, has several steps.
pub trait Program {
    /// The state of one flow.
    type State: Clone + Ord;
    /// Input that a packet brings.
    type Input: PartialEq;
    /// Output as the packet that leaves shows it.
    type Output: PartialEq;

    /// The state before the first packet.
    fn start(&self) -> Self::State;

    /// Possible outputs for `input` in `state`, each with the state after it.
    fn steps(&self, state: &Self::State, input: &Self::Input) -> Vec<(Self::Output, Self::State)>;
}

/// Why no order was searched to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SearchError {
    /// A history of more than [`LONGEST_SEARCH`] operations.
    #[error(
        "HI100: {operations} operations are too many to search; the most is {LONGEST_SEARCH}: cut the history or use a checker made for the program"
    )]
    TooLong {
        /// How many there are.
        operations: usize,
    },
    /// A history with more than [`WIDEST_SEARCH`] configurations.
    #[error(
        "HI101: no order was found among the first {WIDEST_SEARCH} configurations; record fewer operations without an output, or use a checker made for the program"
    )]
    TooWide,
}

/// Searches an order of `operations` that explains every output (RedPlane,
/// Definition 3): the indices of the operations that took effect, in that order,
/// or `None` if there is no such order. Operations without an output are in it
/// only if some output needs their effect.
///
/// Takes exponential time in the worst case.
///
/// # Errors
///
/// [`SearchError`].
pub fn linearization<P: Program>(
    program: &P,
    operations: &[Operation<P::Input, P::Output>],
) -> Result<Option<Vec<usize>>, SearchError> {
    Ok(explain(program, operations)?.ok())
}

/// As [`linearization`]; without an order, the position of the first output to
/// which no order leads.
pub(crate) fn explain<P: Program>(
    program: &P,
    operations: &[Operation<P::Input, P::Output>],
) -> Result<Result<Vec<usize>, usize>, SearchError> {
    if operations.len() > LONGEST_SEARCH {
        return Err(SearchError::TooLong {
            operations: operations.len(),
        });
    }
    let mut left = Vec::new();
    let mut lost = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        match &operation.ended {
            Some((end, _)) => left.push((*end, at)),
            None => lost.push(at),
        }
    }
    left.sort_unstable();
    let mut search = Search {
        program,
        operations,
        left,
        lost,
        failed: BTreeMap::new(),
        looked_at: 0,
        reached: 0,
    };
    let mut order = Vec::new();
    let none = Set::new(operations.len());
    if search.extend(&none, &none, program.start(), &mut order)? {
        Ok(Ok(order))
    } else {
        Ok(Err(search.reached))
    }
}

/// A set of operations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Set(Vec<u64>);

impl Set {
    fn new(operations: usize) -> Self {
        Self(vec![0; operations.div_ceil(64)])
    }

    fn contains(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    fn with(&self, at: usize) -> Self {
        let mut more = self.clone();
        more.0[at / 64] |= 1 << (at % 64);
        more
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&other.0)
            .all(|(own, other)| own & !other == 0)
    }
}

/// A state that operations without output lead to.
struct Reached<S> {
    state: S,
    used: Set,
    by: Vec<usize>,
}

struct Search<'a, P: Program> {
    program: &'a P,
    operations: &'a [Operation<P::Input, P::Output>],
    /// Those with an output, by when it left.
    left: Vec<(usize, usize)>,
    /// Those without.
    lost: Vec<usize>,
    /// For operations with output that took effect and a state, the sets of those
    /// without output that were used, from which no order leads to the end. Nor does
    /// one from a greater set, which leaves less to use.
    failed: BTreeMap<(Set, P::State), Vec<Set>>,
    looked_at: usize,
    /// The latest of the first outputs that were still to be explained.
    reached: usize,
}

impl<P: Program> Search<'_, P> {
    /// Orders what is not in `done` or `used`, after `order`.
    fn extend(
        &mut self,
        done: &Set,
        used: &Set,
        state: P::State,
        order: &mut Vec<usize>,
    ) -> Result<bool, SearchError> {
        let mut waiting = self.left.iter().filter(|(_, at)| !done.contains(*at));
        // Only what began before every remaining output left may come next.
        let Some(&(first_end, _)) = waiting.next() else {
            return Ok(true);
        };
        self.reached = self.reached.max(first_end);
        let failed = self.failed.entry((done.clone(), state.clone()));
        let failed = failed.or_default();
        if failed.iter().any(|earlier| earlier.is_within(used)) {
            return Ok(false);
        }
        failed.push(used.clone());

        // The fewer operations without output come before one with, the better: they
        // may be needed later.
        let mut seen: BTreeMap<P::State, Vec<Set>> = BTreeMap::new();
        let mut layer = vec![Reached {
            state,
            used: used.clone(),
            by: Vec::new(),
        }];
        while !layer.is_empty() {
            self.looked_at += layer.len();
            if self.looked_at > WIDEST_SEARCH {
                return Err(SearchError::TooWide);
            }
            for reached in &layer {
                if self.take_effect(done, reached, first_end, order)? {
                    return Ok(true);
                }
            }
            layer = self.next_layer(&layer, first_end, &mut seen);
        }
        Ok(false)
    }

    /// Lets one of the operations with output come next.
    fn take_effect(
        &mut self,
        done: &Set,
        from: &Reached<P::State>,
        first_end: usize,
        order: &mut Vec<usize>,
    ) -> Result<bool, SearchError> {
        for place in 0..self.left.len() {
            let (_, at) = self.left[place];
            let operation = &self.operations[at];
            if done.contains(at) || operation.began > first_end {
                continue;
            }
            for (output, next) in self.program.steps(&from.state, &operation.input) {
                if operation
                    .ended
                    .as_ref()
                    .is_none_or(|(_, seen)| *seen != output)
                {
                    continue;
                }
                let length = order.len();
                order.extend(&from.by);
                order.push(at);
                if self.extend(&done.with(at), &from.used, next, order)? {
                    return Ok(true);
                }
                order.truncate(length);
            }
        }
        Ok(false)
    }

    /// The states to which one more operation without output leads.
    fn next_layer(
        &self,
        layer: &[Reached<P::State>],
        first_end: usize,
        seen: &mut BTreeMap<P::State, Vec<Set>>,
    ) -> Vec<Reached<P::State>> {
        let mut next_layer = Vec::new();
        for from in layer {
            let mut tried: Vec<&P::Input> = Vec::new();
            for &at in &self.lost {
                let operation = &self.operations[at];
                // Of equal ones that have begun any is as good as another.
                if from.used.contains(at)
                    || operation.began > first_end
                    || tried.contains(&&operation.input)
                {
                    continue;
                }
                tried.push(&operation.input);
                for (_, state) in self.program.steps(&from.state, &operation.input) {
                    let used = from.used.with(at);
                    let ways = seen.entry(state.clone()).or_default();
                    if state == from.state || ways.iter().any(|way| way.is_within(&used)) {
                        continue;
                    }
                    ways.push(used.clone());
                    let by = [&from.by[..], &[at]].concat();
                    next_layer.push(Reached { state, used, by });
                }
            }
        }
        next_layer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: `Some` writes and gives the old value, `None` reads.
    struct Register;

    impl Program for Register {
        type State = u8;
        type Input = Option<u8>;
        type Output = u8;

        fn start(&self) -> u8 {
            0
        }

        fn steps(&self, state: &u8, input: &Option<u8>) -> Vec<(u8, u8)> {
            vec![(*state, input.unwrap_or(*state))]
        }
    }

    fn operation(
        input: Option<u8>,
        began: usize,
        ended: Option<(usize, u8)>,
    ) -> Operation<Option<u8>, u8> {
        Operation {
            input,
            began,
            ended,
        }
    }

    #[test]
    fn a_lost_write_may_have_taken_effect_or_not() {
        let lost = operation(Some(7), 0, None);
        let sees = |value| [lost.clone(), operation(None, 1, Some((2, value)))];
        assert_eq!(linearization(&Register, &sees(7)), Ok(Some(vec![0, 1])));
        assert_eq!(linearization(&Register, &sees(0)), Ok(Some(vec![1])));
        assert_eq!(linearization(&Register, &sees(3)), Ok(None));
    }

    #[test]
    fn a_write_that_was_seen_is_not_unseen() {
        let run = [
            operation(Some(7), 0, None),
            operation(None, 1, Some((2, 7))),
            operation(None, 3, Some((4, 0))),
        ];
        assert_eq!(linearization(&Register, &run), Ok(None));
    }

    #[test]
    fn overlapping_operations_may_be_exchanged_and_others_not() {
        let mut run = [
            operation(Some(7), 0, Some((3, 0))),
            operation(None, 1, Some((2, 7))),
        ];
        assert_eq!(linearization(&Register, &run), Ok(Some(vec![0, 1])));
        run[0].began = 3;
        run[0].ended = Some((4, 0));
        assert_eq!(linearization(&Register, &run), Ok(None));
    }

    #[test]
    fn long_histories_are_refused() {
        let run: Vec<_> = (0..1025).map(|at| operation(None, at, None)).collect();
        assert_eq!(
            linearization(&Register, &run),
            Err(SearchError::TooLong { operations: 1025 })
        );
    }
}
