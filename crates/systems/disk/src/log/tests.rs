use crate::faulty::{Failure, FaultyFiles};

use super::*;

const LOG: &str = "folder/log";

/// The log on `files`, and its records.
fn open(files: &FaultyFiles) -> Result<(RecordLog<FaultyFiles>, Vec<Vec<u8>>), LogError> {
    let mut records = Vec::new();
    let log = RecordLog::open(files, LOG.as_ref(), 0, None, |record| {
        records.push(record.to_vec());
        true
    })?;
    Ok((log, records))
}

fn is_damaged(files: &FaultyFiles, at: u64) -> bool {
    matches!(open(files), Err(LogError::Damaged { record, .. }) if record == at)
}

fn bytes(files: &FaultyFiles) -> Vec<u8> {
    files.bytes(LOG.as_ref()).unwrap()
}

#[test]
fn what_was_synced_is_there_again() {
    let files = FaultyFiles::new(1);
    let (mut log, records) = open(&files).unwrap();
    assert!(records.is_empty());
    log.append(b"one");
    log.append(b"");
    log.sync().unwrap();
    assert_eq!(open(&files).unwrap_err().code(), "H405");
    drop(log);
    let (mut log, records) = open(&files).unwrap();
    assert_eq!(records, [&b"one"[..], b""]);
    log.append(&[7; 5000]);
    log.sync().unwrap();
    log.append(b"not synced");
    drop(log);
    let (log, records) = open(&files).unwrap();
    assert_eq!(records.len(), 3);
    assert_eq!((log.records(), &records[2]), (3, &vec![7; 5000]));
}

#[test]
fn what_replaces_all_is_there_alone_and_grows() {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    for number in 0..1000u32 {
        log.append(&number.to_be_bytes());
    }
    log.sync().unwrap();
    log.replace([&b"new"[..]]).unwrap();
    assert_eq!(log.records(), 1);
    assert_eq!(open(&files).unwrap_err().code(), "H405");
    log.append(b"newer");
    log.sync().unwrap();
    drop(log);
    assert_eq!(open(&files).unwrap().1, [&b"new"[..], b"newer"]);
}

#[test]
fn what_was_pending_when_all_was_replaced_is_gone() {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    log.append(b"former");
    log.replace([&b"new"[..]]).unwrap();
    assert_eq!(log.length(), bytes(&files).len() as u64);
    log.sync().unwrap();
    drop(log);
    assert_eq!(open(&files).unwrap().1, [b"new"]);
}

/// A closed log with three records, of which the first two were written through, and its
/// bytes.
fn log_of_three() -> (FaultyFiles, Vec<u8>) {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    log.append(b"first");
    log.append(b"second");
    log.sync().unwrap();
    log.append(b"third");
    log.write().unwrap();
    drop(log);
    let whole = bytes(&files);
    (files, whole)
}

#[test]
fn a_torn_end_is_cut_off() {
    let (files, whole) = log_of_three();
    let last = PREFIX + "third".len();
    for torn in 1..=last {
        // Cut short, or with a length that the disk has and bytes that it lacks.
        let mut zeroed = whole.clone();
        let length = zeroed.len();
        zeroed[length - torn..].fill(0);
        for torn_bytes in [&whole[..whole.len() - torn], &zeroed] {
            let files = files.copy();
            files.put(LOG.as_ref(), torn_bytes);
            let (mut log, records) = open(&files).unwrap();
            assert_eq!(records, [&b"first"[..], b"second"], "{torn} bytes");
            let kept = whole.len() - last;
            assert_eq!(log.torn() as usize, torn_bytes.len() - kept);
            assert_eq!(bytes(&files).len(), kept, "it is cut off");
            log.append(b"again");
            log.sync().unwrap();
            drop(log);
            assert_eq!(open(&files).unwrap().1.len(), 3);
        }
    }
    let empty = FaultyFiles::new(2);
    drop(open(&empty).unwrap());
    let whole = bytes(&empty);
    for length in 0..HEAD {
        empty.put(LOG.as_ref(), &whole[..length]);
        assert!(open(&empty).unwrap().1.is_empty(), "{length} bytes");
    }
}

#[test]
fn damage_before_the_end_is_an_error() {
    let (files, whole) = log_of_three();
    let mut log = open(&files).unwrap().0;
    log.sync().unwrap();
    log.append(b"fourth");
    log.sync().unwrap();
    drop(log);
    let longer = bytes(&files);
    let second = HEAD + PREFIX + "first".len();
    for at in second..second + PREFIX + "second".len() {
        for bit in 0..8 {
            let mut damaged = longer.clone();
            damaged[at] ^= 1 << bit;
            files.put(LOG.as_ref(), &damaged);
            assert!(is_damaged(&files, 2), "bit {bit} of byte {at}");
        }
    }
    files.put(LOG.as_ref(), b"something else");
    assert!(is_damaged(&files, 1));
    let (files, _) = log_of_three();
    files.put(LOG.as_ref(), &whole);
    let refused = RecordLog::open(&files, LOG.as_ref(), 0, None, |record| record != b"third");
    assert!(matches!(refused, Err(LogError::Damaged { record: 3, .. })));
}

/// Even where the file with the numbers is gone.
#[test]
fn damage_before_the_end_without_marks_is_an_error() {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    for record in ["first", "second", "third"] {
        log.append(record.as_bytes());
        log.sync().unwrap();
    }
    drop(log);
    files.remove(&beside(LOG.as_ref(), ".synced")).unwrap();
    let whole = bytes(&files);
    for at in HEAD..whole.len() - PREFIX - "third".len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        files.put(LOG.as_ref(), &damaged);
        let second = at >= HEAD + PREFIX + "first".len();
        assert!(is_damaged(&files, 1 + u64::from(second)), "byte {at}");
    }
}

#[test]
fn a_record_out_of_turn_is_damage() {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    for _ in 0..3 {
        log.append(b"equal");
        log.sync().unwrap();
    }
    drop(log);
    let mut bytes = bytes(&files);
    let length = PREFIX + "equal".len();
    bytes.drain(HEAD..HEAD + length);
    files.put(LOG.as_ref(), &bytes);
    assert!(is_damaged(&files, 1));
}

#[test]
fn what_is_made_is_on_the_disk_when_it_is_open() {
    for seed in 0..20 {
        let files = FaultyFiles::new(seed);
        drop(open(&files).unwrap());
        let made = bytes(&files);
        files.lose_power();
        assert_eq!(bytes(&files), made, "seed {seed}");
    }
}

/// The last record was written through: its damage is no torn end.
#[test]
fn damage_of_the_last_synced_record_is_an_error() {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    for record in ["first", "second", "third"] {
        log.append(record.as_bytes());
        log.sync().unwrap();
    }
    drop(log);
    let whole = bytes(&files);
    let third = whole.len() - PREFIX - "third".len();
    for at in third..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        for bytes in [&damaged[..], &whole[..at]] {
            let files = files.copy();
            files.put(LOG.as_ref(), bytes);
            let refused = open(&files).unwrap_err();
            assert_eq!(refused.code(), "H413", "byte {at}: {refused}");
            assert!(refused.to_string().contains("up to 2"), "{refused}");
            assert_eq!(files.bytes(LOG.as_ref()).unwrap(), bytes, "evidence");
        }
    }
    // A mark that is damaged itself counts no more; the one before it does.
    let path = beside(LOG.as_ref(), ".synced");
    let mut marks = files.bytes(&path).unwrap();
    marks[512 + 5] ^= 1;
    files.put(&path, &marks);
    files.put(LOG.as_ref(), &whole[..third]);
    drop(open(&files.copy()).unwrap());
    files.put(LOG.as_ref(), &whole[..HEAD + 3]);
    assert_eq!(open(&files.copy()).unwrap_err().code(), "H413");
    files.put(LOG.as_ref(), &whole[..HEAD - 1]);
    assert_eq!(open(&files).unwrap_err().code(), "H413");
}

#[test]
fn the_number_of_another_life_of_the_log_means_nothing() {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    for _ in 0..9 {
        log.append(b"former");
    }
    log.sync().unwrap();
    // A process that was killed in between has marked nothing.
    let path = beside(LOG.as_ref(), ".synced");
    let marks = files.bytes(&path).unwrap();
    log.replace([&b"new"[..]]).unwrap();
    drop(log);
    files.put(&path, &marks);
    assert_eq!(open(&files).unwrap().1, [b"new"]);
    // After its log is removed, a server may begin anew.
    files.remove(LOG.as_ref()).unwrap();
    assert!(open(&files).unwrap().1.is_empty());
}

#[test]
fn a_log_goes_on_where_the_one_before_it_ended() {
    let files = FaultyFiles::new(1);
    let path = Path::new("folder/next");
    let mut log = RecordLog::open(&files, path, 7, None, |_| true).unwrap();
    log.append(b"eighth");
    log.sync().unwrap();
    assert_eq!((log.last(), log.records()), (8, 1));
    drop(log);
    assert_eq!(RecordLog::begins_behind(&files, path).unwrap(), Some(7));
    let ends_at = |upto| {
        let opened = RecordLog::open(&files, path, 0, Some(upto), |_| true);
        opened.map(|log| log.last()).map_err(|error| error.code())
    };
    assert_eq!(ends_at(8), Ok(8));
    assert_eq!(ends_at(9), Err("H413"));
    assert_eq!(ends_at(7), Err("H404"));
}

#[test]
fn a_file_that_never_grows_is_whole_or_refused() {
    let files = FaultyFiles::new(1);
    let path = Path::new("folder/whole");
    let records = [b"one", b"two"];
    RecordLog::write_whole(&files, path, records).unwrap();
    let whole = files.bytes(path).unwrap();
    let read = || {
        let mut found = 0;
        RecordLog::read_whole(&files, path, |_| {
            found += 1;
            true
        })
        .map(|_| found)
        .map_err(|error| error.code())
    };
    assert_eq!(read(), Ok(2));
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 16;
        for bytes in [&damaged[..], &whole[..at]] {
            files.put(path, bytes);
            assert_eq!(read(), Err("H404"), "byte {at}");
        }
    }
    files.put(path, &[&whole[..], b"x"].concat());
    assert_eq!(read(), Err("H404"));
}

#[test]
fn a_record_within_a_torn_record_is_none() {
    let files = FaultyFiles::new(1);
    let (mut log, _) = open(&files).unwrap();
    let mut inner = Vec::new();
    put(log.seed ^ 1, 5, 1, b"inner", &mut inner);
    inner.extend(b"cut off");
    log.append(&inner);
    log.write().unwrap();
    drop(log);
    let whole = bytes(&files);
    files.put(LOG.as_ref(), &whole[..whole.len() - 1]);
    assert!(open(&files).unwrap().1.is_empty());
}

/// Writes one to four records at a time until the power fails, on many media: each synced record is
/// there, and each record that is there was appended.
#[test]
fn a_power_cut_takes_nothing_that_was_synced() {
    let (mut torn, mut lost, mut begun) = (0, 0, 0);
    for seed in 0..400u64 {
        let files = FaultyFiles::new(seed);
        files.write_short(seed % 2 == 0);
        let (mut appended, mut synced, mut known) = (0u64, 0, None);
        for life in 0..5u64 {
            let (mut log, records) = open(&files).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert!(
                synced <= log.last(),
                "seed {seed}: {} of {synced}",
                log.last()
            );
            assert!(log.last() <= appended, "seed {seed}");
            for (number, record) in (1u64..).zip(&records) {
                let [length, rest @ ..] = &record[..] else {
                    panic!("seed {seed}: an empty record")
                };
                assert_eq!(rest[..8], number.to_be_bytes(), "seed {seed}");
                assert_eq!(rest.len(), usize::from(*length) * 9 + 8);
            }
            lost += u64::from(log.last() < appended);
            torn += u64::from(log.torn() > 0);
            begun += u64::from(known == Some(0));
            (appended, synced) = (log.last(), log.last());
            log.sync().unwrap();
            for _ in 0..seed % 4 + life {
                for _ in 0..=(seed + life) % 4 {
                    appended += 1;
                    let length = (appended * 37 + seed) as u8;
                    let mut record = vec![length];
                    record.extend(appended.to_be_bytes());
                    record.resize(usize::from(length) * 9 + 9, 1);
                    log.append(&record);
                }
                log.write().unwrap();
                if appended % 3 > 0 {
                    log.sync().unwrap();
                    synced = appended;
                }
                if appended % 7 == 0 {
                    log.sync_marks().unwrap();
                }
            }
            known = Some(synced);
            drop(log);
            files.lose_power();
        }
    }
    assert!(
        torn > 50 && lost > 100 && begun > 20,
        "{torn} {lost} {begun}"
    );
}

/// The power fails at any moment of making a log anew.
#[test]
fn a_power_cut_leaves_the_former_log_or_the_new_one() {
    for seed in 0..200u64 {
        let files = FaultyFiles::new(seed);
        let (mut log, _) = open(&files).unwrap();
        log.append(b"former");
        log.sync().unwrap();
        log.replace([b"a", b"b"]).unwrap();
        let replaced = files.copy();
        log.append(b"c");
        log.sync().unwrap();
        for (files, most) in [(&replaced, 2), (&files, 3)] {
            files.lose_power();
            let records = open(files).unwrap().1;
            assert_eq!(records.len(), most, "seed {seed}");
        }
    }
}

#[test]
fn a_log_that_failed_once_takes_nothing_more() {
    for failure in [Failure::Write, Failure::Full, Failure::Sync] {
        let files = FaultyFiles::new(3);
        let (mut log, _) = open(&files).unwrap();
        log.append(b"kept");
        log.sync().unwrap();
        files.fail(failure, 0);
        log.append(b"lost");
        assert_eq!(log.sync().unwrap_err().code(), "H403");
        assert!(!files.is_to_fail());
        // A further attempt would say that all is well.
        assert_eq!(log.sync().unwrap_err().code(), "H403", "{failure:?}");
        assert_eq!(log.replace([b"x"]).unwrap_err().code(), "H403");
        drop(log);
        files.lose_power();
        let records = open(&files).unwrap().1;
        assert_eq!(records[0], b"kept", "{failure:?}");
    }
}

/// The disk fails to write through, the process ends and is started again, perhaps more than
/// once before the disk is sound: what it answers from then on outlives a power cut.
#[test]
fn what_a_process_finds_after_a_failed_write_through_is_written_again() {
    for seed in 0..60u64 {
        let files = FaultyFiles::new(seed);
        let mut synced = 0;
        for _ in 0..seed % 3 {
            let (mut log, _) = open(&files).unwrap();
            log.append(&[1; 900]);
            log.sync().unwrap();
            synced = log.last();
        }
        files.fail_from(Failure::Sync, seed % 4);
        for _ in 0..=seed % 5 {
            let Ok((mut log, _)) = open(&files) else {
                continue;
            };
            for _ in 0..3 {
                log.append(&[2; 900]);
                if log.sync().is_ok() {
                    synced = log.last();
                }
            }
        }
        files.mend();
        let (mut log, records) = open(&files).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(records.len() as u64 >= synced, "seed {seed}");
        log.sync().unwrap();
        log.append(&[3; 100]);
        log.sync().unwrap();
        synced = log.last();
        drop(log);
        files.lose_power();
        let (_, records) = open(&files).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert_eq!(records.len() as u64, synced, "seed {seed}");
    }
}

#[test]
fn the_checksum_is_that_of_ieee_802_3() {
    assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
}
