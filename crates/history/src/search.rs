//! Search for a linearization under any deterministic program, after Wing and Gong
//! ("Testing and verifying concurrent objects", 1993) with the memory of visited
//! configurations that Lowe added ("Testing for linearizability", 2017).

use crate::operation::Operation;
use std::collections::BTreeSet;
use thiserror::Error;

/// Most operations that [`linearization`] takes.
pub const LONGEST_SEARCH: usize = 128;

/// A stateful program (RedPlane, Definition 1) with one output for each input.
pub trait Program {
    /// The state of one flow.
    type State: Clone + Ord;
    /// What a packet brings.
    type Input;
    /// What is seen of the packet that leaves.
    type Output: PartialEq;

    /// The state before the first packet.
    fn start(&self) -> Self::State;

    /// The output for `input` in `state`, and the state after it.
    fn step(&self, state: &Self::State, input: &Self::Input) -> (Self::Output, Self::State);
}

/// A history of more than [`LONGEST_SEARCH`] operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "HI100: {operations} operations are too many to search; the most is {LONGEST_SEARCH}: cut the history or use a checker made for the program"
)]
pub struct TooLong {
    /// How many there are.
    pub operations: usize,
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
/// [`TooLong`].
pub fn linearization<P: Program>(
    program: &P,
    operations: &[Operation<P::Input, P::Output>],
) -> Result<Option<Vec<usize>>, TooLong> {
    if operations.len() > LONGEST_SEARCH {
        return Err(TooLong {
            operations: operations.len(),
        });
    }
    let mut search = Search {
        program,
        operations,
        visited: BTreeSet::new(),
        order: Vec::new(),
    };
    let explained = search.extend(0, program.start());
    Ok(explained.then_some(search.order))
}

struct Search<'a, P: Program> {
    program: &'a P,
    operations: &'a [Operation<P::Input, P::Output>],
    /// Sets of operations that took effect, and states, from which no order leads
    /// to the end.
    visited: BTreeSet<(u128, P::State)>,
    order: Vec<usize>,
}

impl<P: Program> Search<'_, P> {
    fn extend(&mut self, done: u128, state: P::State) -> bool {
        let waiting = |&at: &usize| done & (1 << at) == 0;
        // Only what began before every remaining output left may come next.
        let ends = (0..self.operations.len()).filter(waiting).filter_map(|at| {
            let ended = self.operations[at].ended.as_ref();
            ended.map(|(position, _)| *position)
        });
        let Some(first_end) = ends.min() else {
            return true;
        };
        if !self.visited.insert((done, state.clone())) {
            return false;
        }
        for at in (0..self.operations.len()).filter(waiting) {
            let operation = &self.operations[at];
            if operation.began > first_end {
                continue;
            }
            let (output, next) = self.program.step(&state, &operation.input);
            if operation.ended.as_ref().is_some_and(|(_, o)| *o != output) {
                continue;
            }
            self.order.push(at);
            if self.extend(done | 1 << at, next) {
                return true;
            }
            self.order.pop();
        }
        false
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

        fn step(&self, state: &u8, input: &Option<u8>) -> (u8, u8) {
            (*state, input.unwrap_or(*state))
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
        let run: Vec<_> = (0..129).map(|at| operation(None, at, None)).collect();
        assert_eq!(
            linearization(&Register, &run),
            Err(TooLong { operations: 129 })
        );
    }
}
