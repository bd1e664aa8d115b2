use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

fn open(path: &Path) -> Result<(RecordLog, Vec<Vec<u8>>), LogError> {
    let mut records = Vec::new();
    let log = RecordLog::open(path, |record| {
        records.push(record.to_vec());
        true
    })?;
    Ok((log, records))
}

fn is_damaged(path: &Path, at: u64) -> bool {
    matches!(open(path), Err(LogError::Damaged { record, .. }) if record == at)
}

#[test]
fn what_was_synced_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut log, records) = open(&path).unwrap();
    assert!(records.is_empty());
    log.append(b"one");
    log.append(b"");
    log.sync().unwrap();
    assert!(matches!(open(&path), Err(LogError::InUse { .. })));
    drop(log);
    let (mut log, records) = open(&path).unwrap();
    assert_eq!(records, [&b"one"[..], b""]);
    log.append(&[7; 5000]);
    log.sync().unwrap();
    log.append(b"not synced");
    drop(log);
    let (log, records) = open(&path).unwrap();
    assert_eq!(records.len(), 3);
    assert_eq!((log.records(), &records[2]), (3, &vec![7; 5000]));
}

#[test]
fn what_replaces_all_is_there_alone_and_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut log, _) = open(&path).unwrap();
    for number in 0..1000u32 {
        log.append(&number.to_be_bytes());
    }
    log.sync().unwrap();
    log.replace([&b"new"[..]]).unwrap();
    assert_eq!(log.records(), 1);
    assert!(matches!(open(&path), Err(LogError::InUse { .. })));
    log.append(b"newer");
    log.sync().unwrap();
    drop(log);
    assert_eq!(open(&path).unwrap().1, [&b"new"[..], b"newer"]);
}

/// A closed log with three records, and its bytes.
fn log_of_three(folder: &TempDir) -> (PathBuf, Vec<u8>) {
    let path = folder.path().join("log");
    let (mut log, _) = open(&path).unwrap();
    for record in ["first", "second", "third"] {
        log.append(record.as_bytes());
    }
    log.sync().unwrap();
    drop(log);
    let whole = fs::read(&path).unwrap();
    (path, whole)
}

#[test]
fn a_torn_end_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole) = log_of_three(&folder);
    let last = PREFIX + "third".len();
    for torn in 1..=last {
        // Cut short, or with a length that the disk has and bytes that it lacks.
        let mut zeroed = whole.clone();
        let length = zeroed.len();
        zeroed[length - torn..].fill(0);
        for bytes in [&whole[..whole.len() - torn], &zeroed] {
            fs::write(&path, bytes).unwrap();
            let (mut log, records) = open(&path).unwrap();
            assert_eq!(records, [&b"first"[..], b"second"], "{torn} bytes");
            log.append(b"again");
            log.sync().unwrap();
            drop(log);
            assert_eq!(open(&path).unwrap().1.len(), 3);
        }
    }
    for length in 0..HEAD {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(open(&path).unwrap().1.is_empty(), "{length} bytes");
    }
}

#[test]
fn damage_before_the_end_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole) = log_of_three(&folder);
    let second = HEAD + PREFIX + "first".len();
    for at in second..second + PREFIX + "second".len() {
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            fs::write(&path, &damaged).unwrap();
            assert!(is_damaged(&path, 2), "bit {bit} of byte {at}");
        }
    }
    fs::write(&path, "something else").unwrap();
    assert!(is_damaged(&path, 1));
    fs::write(&path, &whole).unwrap();
    let refused = RecordLog::open(&path, |record| record != b"third");
    assert!(matches!(refused, Err(LogError::Damaged { record: 3, .. })));
}

#[test]
fn a_record_within_a_torn_record_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let (mut log, _) = open(&path).unwrap();
    let mut inner = Vec::new();
    put(log.seed ^ 1, b"inner", &mut inner);
    log.append(&inner);
    log.sync().unwrap();
    drop(log);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(open(&path).unwrap().1.is_empty());
}

#[test]
fn the_checksum_is_that_of_ieee_802_3() {
    assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
}
