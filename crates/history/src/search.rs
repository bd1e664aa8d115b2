//! Search for a linearization under any deterministic program, after Wing and Gong
//! ("Testing and verifying concurrent objects", 1993) with the memory of visited
//! configurations that Lowe added ("Testing for linearizability", 2017).

use crate::operation::Operation;
use std::collections::BTreeSet;
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
    /// What a packet brings.
    type Input;
    /// What is seen of the packet that leaves.
    type Output: PartialEq;

    /// The state before the first packet.
    fn start(&self) -> Self::State;

    /// What may be the output for `input` in `state`, each with the state after it.
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
    // What left first is tried first, so that an order like that of the outputs is
    // found at once; what never left comes last.
    let mut tried: Vec<usize> = (0..operations.len()).collect();
    let end = |at: usize| operations[at].ended.as_ref().map(|(position, _)| *position);
    tried.sort_by_key(|&at| end(at).unwrap_or(usize::MAX));
    let mut search = Search {
        program,
        operations,
        tried,
        visited: BTreeSet::new(),
        order: Vec::new(),
        reached: 0,
    };
    let none = vec![0; operations.len().div_ceil(64)];
    match search.extend(&none, program.start())? {
        true => Ok(Ok(search.order)),
        false => Ok(Err(search.reached)),
    }
}

/// A set of operations, a bit each.
type Done = Vec<u64>;

fn contains(done: &Done, at: usize) -> bool {
    done[at / 64] >> (at % 64) & 1 == 1
}

struct Search<'a, P: Program> {
    program: &'a P,
    operations: &'a [Operation<P::Input, P::Output>],
    /// The operations in the order in which they are tried.
    tried: Vec<usize>,
    /// Sets of operations that took effect, and states, from which no order leads
    /// to the end.
    visited: BTreeSet<(Done, P::State)>,
    order: Vec<usize>,
    /// The latest of the first outputs that were still to be explained.
    reached: usize,
}

impl<P: Program> Search<'_, P> {
    fn extend(&mut self, done: &Done, state: P::State) -> Result<bool, SearchError> {
        // Only what began before every remaining output left may come next.
        let mut waiting = self.tried.iter().filter(|&&at| !contains(done, at));
        let first_end = waiting
            .next()
            .and_then(|&at| self.operations[at].ended.as_ref());
        let Some(&(first_end, _)) = first_end else {
            return Ok(true);
        };
        self.reached = self.reached.max(first_end);
        if !self.visited.insert((done.clone(), state.clone())) {
            return Ok(false);
        }
        if self.visited.len() > WIDEST_SEARCH {
            return Err(SearchError::TooWide);
        }
        for place in 0..self.tried.len() {
            let at = self.tried[place];
            let operation = &self.operations[at];
            if contains(done, at) || operation.began > first_end {
                continue;
            }
            for (output, next) in self.program.steps(&state, &operation.input) {
                match &operation.ended {
                    Some((_, seen)) if *seen != output => continue,
                    // It would explain nothing.
                    None if next == state => continue,
                    _ => {}
                }
                let mut more = done.clone();
                more[at / 64] |= 1 << (at % 64);
                self.order.push(at);
                if self.extend(&more, next)? {
                    return Ok(true);
                }
                self.order.pop();
            }
        }
        Ok(false)
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
