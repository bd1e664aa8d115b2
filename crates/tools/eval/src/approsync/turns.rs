//! Operations on real time that take turns, so that what the machine does besides meets all of them, in one
//! order and in the other, so that each finds the caches as each of its neighbours leaves them.

#![allow(clippy::disallowed_methods, reason = "operations are timed")]

use crate::error::EvalError;
use crate::series::check_interrupt;
use crate::statistics::median;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// An operation that gives the time that counts of a turn.
pub(super) type Operation<'a> = &'a mut dyn FnMut() -> Result<Duration, EvalError>;

/// Time after which operations take no more turns, if each has had [`LEAST_TURNS`] that count.
const LONGEST: Duration = Duration::from_secs(20);
const LEAST_TURNS: usize = 3;

/// Time of `work`, which ends with its result.
///
/// # Errors
/// Those of `work`.
pub(super) fn timed<T>(work: impl FnOnce() -> Result<T, EvalError>) -> Result<Duration, EvalError> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed())
}

/// Medians in ns of operations that take turns, after a turn that does not count: of `turns` turns, or
/// of at least three in 20 s.
///
/// # Errors
/// The first of an operation; `LAB130` after ^C.
pub(super) fn medians<const N: usize>(
    turns: usize,
    operations: [Operation<'_>; N],
) -> Result<[f64; N], EvalError> {
    let mut times = [const { Vec::new() }; N];
    let start = Instant::now();
    for turn in 0..=turns {
        if turn > LEAST_TURNS && start.elapsed() > LONGEST {
            break;
        }
        check_interrupt()?;
        for place in 0..N {
            let at = if turn % 2 == 0 { place } else { N - 1 - place };
            let time = operations[at]()?;
            if turn > 0 {
                times[at].push(time.as_nanos() as f64);
            }
        }
    }
    Ok(times.map(|times| median(&times).unwrap_or(f64::NAN)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn the_first_turn_does_not_count_and_medians_are_of_the_others() {
        let mut calls = 0_u64;
        let mut steps = || {
            calls += 1;
            Ok(Duration::from_nanos(if calls == 1 { 9_000 } else { calls }))
        };
        let mut other = || Ok(Duration::from_nanos(5));
        let found = medians(3, [&mut steps, &mut other]).unwrap();
        assert_eq!(found, [3.0, 5.0]);
        assert_eq!(calls, 4);
    }

    #[test]
    fn each_operation_is_as_often_the_first_as_the_last() {
        let order = RefCell::new(Vec::new());
        let operation = |name| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                Ok(Duration::ZERO)
            }
        };
        let (mut a, mut b, mut c) = (operation('a'), operation('b'), operation('c'));
        medians(3, [&mut a, &mut b, &mut c]).unwrap();
        assert_eq!(
            order.into_inner().iter().collect::<String>(),
            "abccbaabccba"
        );
    }

    #[test]
    fn an_operation_that_fails_ends_the_turns() {
        let mut fails = || Err(EvalError::Options("no".to_owned()));
        assert!(medians(3, [&mut fails]).is_err());
    }
}
