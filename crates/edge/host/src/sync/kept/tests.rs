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
            assert!(kept.log.length() <= 2 * live + SURPLUS);
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
