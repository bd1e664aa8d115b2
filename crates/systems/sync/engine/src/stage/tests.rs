use super::*;
use crate::write::Writes;

const RETRY: u64 = 1_000;
const BATCH: usize = 4;

fn values(count: u32) -> Vec<(u32, u64)> {
    (0..count).map(|at| (at, u64::from(at) + 100)).collect()
}

fn stages(writes: &mut Writes, count: u32) -> (Stages, Ticket) {
    let mut stages = Stages::default();
    let ticket = writes.ticket();
    stages.add(ticket, &values(count)).unwrap();
    (stages, ticket)
}

#[test]
fn pieces_go_out_until_they_are_acknowledged_and_then_the_cut() {
    let (mut stages, ticket) = stages(&mut Writes::default(), 10);
    assert_eq!(stages.due(0, RETRY, BATCH), (1, vec![0, 1, 2]));
    assert_eq!(stages.piece(2, BATCH).len(), 2);
    assert_eq!(stages.due(RETRY - 1, RETRY, BATCH).1, []);
    stages.staged(1, 0);
    stages.staged(1, 2);
    stages.staged(7, 1);
    assert_eq!(stages.whole(BATCH), None);
    assert_eq!(stages.due(RETRY, RETRY, BATCH).1, [1]);
    stages.staged(1, 1);
    assert_eq!(stages.crossed(), None, "no cut was asked for");
    assert_eq!(stages.whole(BATCH), Some((1, 10)));
    stages.cutting();
    assert_eq!(stages.whole(BATCH), None, "it is asked for once");
    let (ended, given) = stages.crossed().unwrap();
    assert_eq!((ended, given.len()), (ticket, 10));
    assert_eq!(stages.crossed(), None);
}

#[test]
fn so_many_pieces_are_with_the_switch_at_one_time() {
    let (mut stages, _) = stages(&mut Writes::default(), 1_000);
    assert_eq!(stages.due(0, RETRY, BATCH).1.len(), PIECES);
    stages.staged(1, 5);
    assert_eq!(stages.due(1, RETRY, BATCH).1, [PIECES]);
}

#[test]
fn the_last_value_of_a_location_counts() {
    let mut stages = Stages::default();
    let ticket = Writes::default().ticket();
    stages.add(ticket, &[(3, 1), (2, 5), (3, 9)]).unwrap();
    stages.due(0, RETRY, BATCH);
    let value = |index, value| Value { index, value };
    assert_eq!(stages.piece(0, BATCH), [value(2, 5), value(3, 9)]);
    stages.staged(1, 0);
    assert_eq!(stages.whole(BATCH), Some((1, 2)));
}

#[test]
fn one_that_was_not_cut_is_staged_anew_under_another_number() {
    let (mut stages, ticket) = stages(&mut Writes::default(), 4);
    stages.due(0, RETRY, BATCH);
    stages.staged(1, 0);
    assert_eq!(stages.forget(false), None);
    assert_eq!(stages.whole(BATCH), None);
    stages.due(0, RETRY, BATCH);
    stages.staged(2, 0);
    stages.cutting();
    assert_eq!(stages.forget(true), None, "the cut was not sent");
    assert_eq!(stages.due(1, RETRY, BATCH), (3, vec![0]));
    stages.staged(2, 0);
    assert_eq!(stages.whole(BATCH), None, "that was of the staging before");
    stages.staged(3, 0);
    stages.cutting();
    assert_eq!(stages.forget(false), Some(ticket));
    assert_eq!(stages.due(2, RETRY, BATCH), (0, vec![]));
}

#[test]
fn what_the_switch_lacks_is_staged_anew() {
    let (mut stages, _) = stages(&mut Writes::default(), 4);
    stages.due(0, RETRY, BATCH);
    stages.staged(1, 0);
    stages.cutting();
    assert!(!stages.lacking(3));
    assert!(stages.lacking(1));
    assert_eq!(stages.crossed(), None);
    assert_eq!(stages.due(1, RETRY, BATCH), (2, vec![0]));
}

#[test]
fn so_many_writes_wait() {
    let mut writes = Writes::default();
    let (mut stages, _) = stages(&mut writes, 4);
    for _ in 1..MOST {
        stages.add(writes.ticket(), &values(4)).unwrap();
    }
    let full = stages.add(writes.ticket(), &values(4));
    assert_eq!(full, Err(WriteError::Full(MOST)));
}
