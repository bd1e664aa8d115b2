use super::*;

fn made(files: &FaultyFiles, path: &str) -> FaultyFile {
    files.open(path.as_ref(), Way::Made).unwrap()
}

#[test]
fn what_is_not_written_through_may_be_lost_or_torn() {
    let (mut whole, mut gone, mut torn) = (0, 0, 0);
    for seed in 0..300 {
        let files = FaultyFiles::new(seed);
        let mut file = made(&files, "folder/a");
        file.write_all_at(0, &[1; 700]).unwrap();
        file.sync().unwrap();
        files.sync_folder("folder".as_ref()).unwrap();
        file.write_all_at(700, &[2; 900]).unwrap();
        files.lose_power();
        let found = files.bytes("folder/a".as_ref()).unwrap();
        assert_eq!(found[..700], [1; 700], "seed {seed}");
        match found.len() {
            700 => gone += 1,
            1600 if found[700..] == [2; 900] => whole += 1,
            _ => torn += 1,
        }
    }
    assert!(
        whole > 30 && gone > 30 && torn > 30,
        "{whole} {gone} {torn}"
    );
}

#[test]
fn names_are_kept_in_the_order_in_which_they_were_given() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..50 {
        let files = FaultyFiles::new(seed);
        let (a, b) = (Path::new("folder/a"), Path::new("folder/b"));
        let mut file = made(&files, "folder/a");
        file.write_all_at(0, b"new").unwrap();
        files.rename(a, b).unwrap();
        files.remove(b).unwrap();
        files.lose_power();
        let names = files.names("folder".as_ref()).unwrap();
        outcomes.insert(names);
        // A name may be there before what it names.
        assert!(files.bytes(b).is_none_or(|bytes| bytes.len() <= 3));
    }
    let all = [vec![], vec!["a".to_owned()], vec!["b".to_owned()]];
    assert_eq!(outcomes, BTreeSet::from(all));
}

#[test]
fn each_failure_comes_once_and_a_lie_keeps_nothing() {
    let files = FaultyFiles::new(1);
    let mut file = made(&files, "folder/a");
    files.sync_folder("folder".as_ref()).unwrap();
    files.fail(Failure::Write, 1);
    assert_eq!(file.write_at(0, b"abcd").unwrap(), 4);
    assert!(file.write_at(4, b"efgh").is_err());
    assert_eq!(file.write_at(4, b"efgh").unwrap(), 4);
    files.fail(Failure::Sync, 0);
    assert!(file.sync().is_err());
    assert!(file.sync().is_ok(), "what was to be written is forgotten");
    files.fail(Failure::Full, 0);
    assert_eq!(
        file.write_at(8, b"ijkl").unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    files.lie_after(0);
    file.cut(0).unwrap();
    file.write_all_at(0, b"all").unwrap();
    file.sync().unwrap();
    assert_eq!(files.bytes("folder/a".as_ref()).unwrap(), b"all");
    let kept = (0..20).filter(|seed| {
        let files = files.copy();
        files.medium().random = *seed;
        files.lose_power();
        files.bytes("folder/a".as_ref()).unwrap() == b"all"
    });
    assert!(kept.count() < 20);
}

#[test]
fn a_failure_lasts_until_the_disk_is_mended() {
    let files = FaultyFiles::new(1);
    let mut file = made(&files, "folder/a");
    files.sync_folder("folder".as_ref()).unwrap();
    files.fail_from(Failure::Sync, 1);
    file.write_all_at(0, b"kept").unwrap();
    file.sync().unwrap();
    file.write_all_at(4, b"lost").unwrap();
    for _ in 0..2 {
        assert!(file.sync().is_err());
        assert!(files.sync_folder("folder".as_ref()).is_err());
    }
    assert!(files.is_to_fail());
    files.mend();
    // What failed is forgotten.
    file.sync().unwrap();
    files.lose_power();
    assert_eq!(files.bytes("folder/a".as_ref()).unwrap(), b"kept");
}
