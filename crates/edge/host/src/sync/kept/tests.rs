//! Restarts, power cuts and long use of the log.

use super::*;
use stateplane_disk::{Failure, FaultyFiles};

fn groups() -> Vec<GroupFile> {
    let text = "data = \"d\"\n[[group]]\nname = \"a\"\nswitch = \"10.0.0.1\"\ngroup = 0\n\
                locations = 2\nwindows = 3\n";
    let file = super::super::SyncEngineFile::parse("engine.toml".as_ref(), text);
    file.expect("a file").groups
}

fn values(of: u64) -> Arc<Vec<u8>> {
    Arc::new(of.to_le_bytes().repeat(2))
}

fn open<F: Files>(files: &F) -> Kept<F> {
    Kept::open_on(files.clone(), Path::new("folder"), &groups()).expect("a log")
}

#[test]
fn a_later_start_has_a_greater_term_and_all_that_was_kept() {
    let files = FaultyFiles::new(1);
    let mut kept = open(&files);
    assert_eq!(kept.next_term(40).unwrap(), 40);
    for epoch in 1..=5 {
        let number = kept.keep_window("a", 7, epoch, values(epoch.into()));
        assert_eq!(number, Some(u64::from(epoch)));
    }
    assert_eq!(kept.keep_window("a", 7, 5, values(5)), None, "it is kept");
    kept.waive_window("a", 7, 6);
    for id in [1, 2, 3] {
        kept.begin_write([id; 16]);
    }
    kept.end_write([1; 16], Some(Outcome::Done));
    kept.end_write([2; 16], None);
    assert_eq!(kept.write(&[3; 16]), Some(Progress::Begun));
    kept.sync().unwrap();
    drop(kept);
    let mut kept = open(&files);
    assert_eq!(kept.next_term(0).unwrap(), 41);
    assert_eq!(kept.epochs("a"), [(7, 6)]);
    assert_eq!(kept.window_range("a"), (3, 5));
    let window = kept.window_after("a", 3).expect("the fourth");
    assert_eq!((window.number, &window.values), (4, &values(4)));
    assert_eq!(kept.window_after("a", 5), None);
    assert_eq!(kept.write(&[1; 16]), Some(Progress::Ended(Outcome::Done)));
    for unknown in [2, 3] {
        assert_eq!(kept.write(&[unknown; 16]), Some(Progress::Unknown));
    }
    assert_eq!(kept.write(&[4; 16]), None);
    // A waived window is not kept later.
    assert_eq!(kept.keep_window("a", 7, 6, values(6)), None);
    assert_eq!(kept.keep_window("a", 8, 1, values(1)), Some(6));
}

#[test]
fn a_power_cut_takes_no_window_and_no_write_that_was_written_through() {
    for seed in 0..50u64 {
        let files = FaultyFiles::new(seed);
        let (mut stored, mut term) = (0, 0);
        for life in 0..4u32 {
            let mut kept = open(&files);
            let (_, last) = kept.window_range("a");
            assert!(last >= stored, "seed {seed}: {last} of {stored}");
            let next = kept.next_term(0).unwrap();
            assert!(next > term, "seed {seed}: term {next} after {term}");
            term = next;
            for epoch in 1..=(seed as u32 + life) % 4 {
                kept.keep_window("a", 100 + life, epoch, values(1));
                kept.begin_write([life as u8; 16]);
                kept.sync().unwrap();
                stored = kept.window_range("a").1;
            }
            files.fail(Failure::Sync, seed % 2);
            kept.keep_window("a", 200 + life, 1, values(2));
            assert_eq!(kept.sync().unwrap_err().code(), "H403");
            drop(kept);
            files.lose_power();
        }
    }
}

#[test]
fn the_log_stays_short_and_forgets_the_oldest_ids() {
    let files = FaultyFiles::new(3);
    let mut kept = open(&files);
    kept.next_term(9).unwrap();
    let id = |number: u64| [number.to_be_bytes(); 2].concat().try_into().unwrap();
    let many = 4 * MOST_WRITE_IDS as u64;
    for number in 0..many {
        kept.begin_write(id(number));
        kept.end_write(id(number), Some(Outcome::Done));
        if number % 4096 == 0 {
            kept.sync().unwrap();
            let live = 100 * (number.min(MOST_WRITE_IDS as u64) + 1);
            let Log::Folder(log) = &kept.log else {
                unreachable!("a log in a folder");
            };
            assert!(log.length() <= 2 * live + SURPLUS);
        }
    }
    kept.sync().unwrap();
    assert_eq!(kept.write(&id(many - MOST_WRITE_IDS as u64 - 1)), None);
    drop(kept);
    let mut kept = open(&files);
    assert_eq!(kept.write(&id(0)), None);
    assert_eq!(
        kept.write(&id(many - 1)),
        Some(Progress::Ended(Outcome::Done))
    );
    assert_eq!(kept.next_term(0).unwrap(), 10);
}

fn shared(facts: Vec<Fact>) -> Kept {
    Kept::shared(&groups(), 7, facts)
}

#[test]
fn what_a_shared_store_has_not_kept_is_not_certain() {
    let mut kept = shared(Vec::new());
    assert!(kept.poll_facts().is_none());
    kept.begin_write([1; 16]);
    let begun = kept.position();
    assert!(!kept.may_send(begun), "the store does not have it");
    assert_eq!(kept.keep_window("a", 7, 1, values(1)), Some(1));
    assert_eq!(
        (kept.window_range("a"), kept.window_after("a", 0)),
        ((1, 0), None)
    );
    let facts = kept.poll_facts().expect("facts");
    assert_eq!(facts.len(), 3, "write, window, epochs: {facts:?}");
    // A fact that comes meanwhile waits for the first, and is not certain with it.
    kept.end_write([1; 16], Some(Outcome::Done));
    assert_eq!(kept.keep_window("a", 7, 2, values(2)), Some(2));
    let ended = kept.position();
    assert!(kept.poll_facts().is_none(), "one batch at a time");
    kept.sync().unwrap();
    assert!(!kept.is_durable(begun));
    kept.facts_kept();
    assert!(kept.may_send(begun) && !kept.is_durable(ended));
    assert_eq!(kept.window_range("a"), (1, 1));
    assert_eq!(kept.window_after("a", 0).map(|it| it.number), Some(1));
    assert_eq!(kept.poll_facts().map(|facts| facts.len()), Some(3));
    kept.facts_kept();
    assert!(kept.is_durable(ended) && kept.poll_facts().is_none());
    assert_eq!(kept.window_range("a"), (1, 2));
}

#[test]
fn a_successor_has_what_the_store_kept_and_knows_no_more_of_writes_under_way() {
    let mut kept = shared(Vec::new());
    let mut stored = Vec::new();
    for epoch in 1..=5 {
        kept.keep_window("a", 7, epoch, values(epoch.into()));
    }
    for id in [1, 2, 3] {
        kept.begin_write([id; 16]);
    }
    kept.end_write([1; 16], Some(Outcome::Done));
    kept.end_write([2; 16], None);
    kept.waive_window("a", 7, 6);
    stored.extend(kept.poll_facts().expect("facts"));
    kept.facts_kept();
    // Waived windows alone are not worth a transaction.
    kept.waive_window("a", 7, 7);
    assert!(kept.poll_facts().is_none());
    let newest = stored.iter().filter_map(|fact| match fact {
        Fact::Window { window, oldest, .. } => Some((window.number, *oldest)),
        _ => None,
    });
    let newest: Vec<_> = newest.collect();
    assert_eq!(newest, [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3)]);
    let mut next = shared(stored);
    assert_eq!(next.epochs("a"), [(7, 6)]);
    assert_eq!(next.window_range("a"), (3, 5));
    let window = next.window_after("a", 3).expect("the fourth");
    assert_eq!((window.number, &window.values), (4, &values(4)));
    assert_eq!(next.write(&[1; 16]), Some(Progress::Ended(Outcome::Done)));
    for unknown in [2, 3] {
        assert_eq!(next.write(&[unknown; 16]), Some(Progress::Unknown));
    }
    assert_eq!(next.keep_window("a", 7, 6, values(6)), None);
    assert_eq!(next.keep_window("a", 8, 1, values(1)), Some(6));
    next.begin_write([4; 16]);
    let facts = next.poll_facts().expect("facts");
    let numbers = facts.iter().filter_map(|fact| match fact {
        Fact::Write { number, .. } => Some(*number),
        _ => None,
    });
    assert_eq!(Vec::from_iter(numbers), [3], "numbers of writes go on");
}

fn totals(of: u64) -> KeptTotals {
    KeptTotals {
        incarnation: 7,
        epoch: 2,
        sum: of,
        values: vec![of, 1],
        totals: vec![of << 20, 9],
        discontinuities: vec![3, 0],
        life: 2,
    }
}

#[test]
fn a_later_start_has_the_last_totals_and_the_log_stays_short() {
    let files = FaultyFiles::new(5);
    let mut kept = open(&files);
    assert_eq!(kept.totals("a"), None);
    for of in 0..1_000_000 {
        kept.keep_totals("a", &totals(of));
        if of % 10_000 == 0 {
            kept.sync().unwrap();
            let Log::Folder(log) = &kept.log else {
                unreachable!("a log in a folder");
            };
            assert!(log.length() <= SURPLUS + 10_000);
        }
    }
    kept.keep_totals("another", &totals(0));
    kept.sync().unwrap();
    assert_eq!(kept.totals("a"), Some(totals(999_999)));
    drop(kept);
    let kept = open(&files);
    assert_eq!(kept.totals("a"), Some(totals(999_999)));
    assert_eq!(kept.totals("another"), None);
}

#[test]
fn a_successor_has_the_totals_that_the_store_kept() {
    let mut kept = shared(Vec::new());
    kept.keep_totals("a", &totals(1));
    let stored = kept.poll_facts().expect("facts");
    let mut next = shared(stored);
    assert_eq!(next.totals("a"), Some(totals(1)));
    next.keep_totals("a", &totals(2));
    let facts = next.poll_facts().expect("facts");
    let numbers: Vec<u64> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Totals { number, .. } => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [2], "places of pieces take turns over engines");
}
