use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, Recipient, Replica};
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};

use crate::faulty::{Failure, FaultyFiles};

use super::*;

const FOLDER: &str = "data/store";

/// When no lease of the version before counts any more, in µs.
const LATER: u64 = 10_000_000;

const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4793);

fn config() -> Config {
    let config = Config::new(1, 0).with_class(ClassConfig {
        class: 3,
        state_length: 4,
        first_lease: FirstLease::Zero,
        shared_only: false,
        idle: IdleTimeouts::never(),
        quota: None,
    });
    Config {
        durable: true,
        ..config
    }
}

fn setup(config: Config, incarnation: u32) -> Setup {
    Setup::Fixed {
        config,
        incarnation,
        links: Vec::new(),
    }
}

fn key(flow: u8) -> Key {
    let mut key = [0; 16];
    key[..2].copy_from_slice(&[3, flow]);
    Key(key)
}

type FaultyDisk = Disk<FaultyFiles>;

fn open(files: &FaultyFiles) -> Result<(FaultyDisk, Server), DiskError> {
    Disk::open(files.clone(), FOLDER.as_ref(), &setup(config(), 7), 1_000)
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

fn names(files: &FaultyFiles) -> Vec<String> {
    let mut names = files.names(FOLDER.as_ref()).unwrap();
    names.sort();
    names
}

/// Flips a bit of the file called `name`, `before` bytes before its end.
fn flip(files: &FaultyFiles, name: &str, before_end: usize) {
    let mut bytes = files.bytes(&path(name)).unwrap();
    let at = bytes.len() - before_end;
    bytes[at] ^= 1;
    files.put(&path(name), &bytes);
}

fn replica(server: &Server) -> &Replica {
    server.replica(0).unwrap()
}

/// Serves one request; gives epoch and sequence of the reply, if there is one.
fn ask(disk: &mut FaultyDisk, server: &mut Server, request: &Repr<'_>) -> Option<(u32, u32)> {
    server.handle_request(2_000, SWITCH, &request.to_vec().unwrap());
    let unsaved = server.poll_transmit(2_000);
    assert_eq!(unsaved, None, "nothing leaves before it is saved");
    disk.save(server, 2_000).unwrap();
    let transmit = server.poll_transmit(2_000)?;
    assert_eq!(transmit.to, Recipient::Switch(SWITCH));
    let reply = Packet::new_checked(&transmit.bytes).unwrap();
    Some((reply.lease_epoch(), reply.sequence()))
}

fn request(kind: MessageType, flow: u8) -> Repr<'static> {
    Repr {
        chain_epoch: 1,
        switch_id: 1,
        incarnation: 1,
        claim: 1,
        request: 1,
        ..Repr::new(kind, key(flow))
    }
}

/// Leases `flow` and writes `writes` times.
fn write(disk: &mut FaultyDisk, server: &mut Server, flow: u8, writes: u32) {
    let lease = request(MessageType::LeaseRequest, flow);
    let (epoch, first) = ask(disk, server, &lease).unwrap();
    for sequence in first + 1..=first + writes {
        let state = sequence.to_be_bytes();
        let write = Repr {
            lease_epoch: epoch,
            sequence,
            state: &state,
            ..request(MessageType::WriteRequest, flow)
        };
        let reply = ask(disk, server, &write);
        assert_eq!(reply, Some((epoch, sequence)));
    }
}

fn held(server: &Server, flow: u8) -> Option<u32> {
    let record = replica(server).record(0, &key(flow))?;
    assert_eq!(record.state(), record.sequence().to_be_bytes());
    Some(record.sequence())
}

/// Makes a snapshot, if one is due.
fn snapshot(disk: &mut FaultyDisk, server: &Server) {
    if let Some(snapshot) = disk.begin_snapshot(server, LATER).unwrap() {
        disk.end_snapshot(snapshot.write()).unwrap();
    }
}

/// The time in which nobody is outwaited is known by the older records alone.
#[test]
fn older_records_stay_while_their_leases_may_count() {
    let files = FaultyFiles::new(1);
    drop(open(&files).unwrap());
    let server = setup(config(), 7).server(1_000).unwrap();
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    // The version of the state that begins here.
    records[0][3] = 3;
    super::write(&files, &path("snapshot-0"), records.into_iter()).unwrap();
    let until = 1_000 + u64::from(config().older_lease);
    for _ in 0..2 {
        let (mut disk, mut server) = open(&files).unwrap();
        disk.set_snapshot_after(1);
        write(&mut disk, &mut server, 1, 1);
        assert!(disk.due_snapshot(&server, until - 1).is_none());
        assert!(disk.due_snapshot(&server, until).is_some());
    }
}

#[test]
fn what_was_answered_is_there_again() {
    let files = FaultyFiles::new(1);
    let (mut disk, mut server) = open(&files).unwrap();
    write(&mut disk, &mut server, 1, 9);
    write(&mut disk, &mut server, 2, 3);
    assert!(open(&files).is_err_and(|error| error.code() == "H405"));
    let (digest, applied) = (replica(&server).digest(), replica(&server).applied());
    drop(disk);
    // It comes back under its former incarnation, whatever was drawn for it.
    let other = setup(config(), 99);
    let (disk, server) = Disk::open(files, FOLDER.as_ref(), &other, 5_000).unwrap();
    assert_eq!((held(&server, 1), held(&server, 2)), (Some(10), Some(4)));
    let back = replica(&server);
    assert_eq!((back.digest(), back.applied()), (digest, applied));
    assert_eq!(server.incarnation(), 7);
    assert_eq!(disk.report().recovered_entries, applied);
    assert_eq!(disk.report().torn_bytes, 0);
}

#[test]
fn a_torn_end_is_cut_off_and_told() {
    let files = FaultyFiles::new(1);
    let (mut disk, mut server) = open(&files).unwrap();
    write(&mut disk, &mut server, 1, 5);
    // Bytes that were written and not synced.
    let lease = request(MessageType::LeaseRequest, 3);
    server.handle_request(2_000, SWITCH, &lease.to_vec().unwrap());
    assert!(disk.write(&mut server).unwrap());
    let answered = files.bytes(&path("log-0")).unwrap().len();
    drop(disk);
    let whole = files.bytes(&path("log-0")).unwrap();
    assert_eq!(whole.len(), answered);
    for cut in 1..100 {
        let files = files.copy();
        files.put(&path("log-0"), &whole[..whole.len() - cut]);
        let (mut disk, mut server) = open(&files).unwrap();
        assert_eq!((held(&server, 1), held(&server, 3)), (Some(6), None));
        assert!(disk.report().torn_bytes > 0, "{cut}");
        write(&mut disk, &mut server, 2, 1);
        drop(disk);
        let (_, server) = open(&files).unwrap();
        assert_eq!((held(&server, 1), held(&server, 2)), (Some(6), Some(2)));
    }
}

#[test]
fn damage_and_foreign_states_are_refused() {
    let files = FaultyFiles::new(1);
    let (mut disk, mut server) = open(&files).unwrap();
    write(&mut disk, &mut server, 1, 5);
    drop(disk);
    let code = |files: &FaultyFiles| open(files).unwrap_err().code();
    let length = files.bytes(&path("log-0")).unwrap().len();
    for (file, before_end, found) in [
        ("log-0", length / 2, "H404"),
        // The last record, which was answered.
        ("log-0", 1, "H413"),
        ("log-0", length, "H404"),
        ("snapshot-0", 1, "H404"),
    ] {
        let files = files.copy();
        flip(&files, file, before_end);
        assert_eq!(code(&files), found, "{file}, {before_end}");
    }
    let other = Config {
        shards: 2,
        ..config()
    };
    let other = Disk::open(files.clone(), FOLDER.as_ref(), &setup(other, 7), 0);
    assert_eq!(other.unwrap_err().code(), "S020");
    files.remove(&path("snapshot-0")).unwrap();
    assert_eq!(code(&files), "H121");
}

/// The record of the log is whole, and what a server wrote into it is not.
#[test]
fn a_group_with_a_torn_record_is_refused() {
    let files = FaultyFiles::new(1);
    let (mut disk, mut server) = open(&files).unwrap();
    server.handle_request(
        2_000,
        SWITCH,
        &request(MessageType::LeaseRequest, 1).to_vec().unwrap(),
    );
    let mut group = Vec::new();
    while let Some(record) = server.poll_record() {
        put(&record, &mut group);
    }
    assert!(split(&group).all(|record| record.is_some()));
    for length in [group.len() - 1, PREFIX + 1, PREFIX, PREFIX - 1, 1] {
        let files = files.copy();
        let mut log = RecordLog::open(&files, &path("log-0"), 0, None, |_| true).unwrap();
        log.append(&group[..length]);
        log.sync().unwrap();
        drop(log);
        let refused = open(&files).unwrap_err();
        let is_state = matches!(
            refused,
            DiskError::State {
                cause: RecoveryError::Malformed,
                ..
            }
        );
        assert!(is_state, "{length}: {refused}");
    }
    disk.group = group;
    disk.save(&mut server, 2_000).unwrap();
    drop(disk);
    open(&files).unwrap();
}

/// Three logs of a server, whose snapshots were never finished.
fn three_logs() -> FaultyFiles {
    let files = FaultyFiles::new(1);
    let (mut disk, mut server) = open(&files).unwrap();
    disk.set_snapshot_after(1);
    for flow in 0..3 {
        write(&mut disk, &mut server, flow, 3);
        if flow < 2 {
            assert!(disk.begin_snapshot(&server, LATER).unwrap().is_some());
            disk.writing = false;
        }
    }
    files
}

#[test]
fn logs_follow_one_another_without_a_gap() {
    let files = three_logs();
    files.lose_process();
    let (_, server) = open(&files.copy()).unwrap();
    assert_eq!([0, 1, 2].map(|flow| held(&server, flow)), [Some(4); 3]);
    let code = |harm: &dyn Fn(&FaultyFiles)| {
        let files = files.copy();
        harm(&files);
        let refused = open(&files).unwrap_err();
        // Nothing is cut off, and the next attempt finds the same.
        let again = open(&files).unwrap_err();
        assert_eq!(refused.to_string(), again.to_string());
        (refused.code(), refused.to_string())
    };
    let cut = |name: &'static str, bytes: usize, marks: bool| {
        move |files: &FaultyFiles| {
            let whole = files.bytes(&path(name)).unwrap();
            files.put(&path(name), &whole[..whole.len() - bytes]);
            if !marks {
                files.remove(&path(&format!("{name}.synced"))).unwrap();
            }
        }
    };
    for name in ["log-0", "log-1"] {
        assert_eq!(code(&cut(name, 1, false)).0, "H413", "{name}");
        assert_eq!(code(&cut(name, 1, true)).0, "H413", "{name}");
        assert_eq!(code(&|files| flip(files, name, 1)).0, "H413", "{name}");
    }
    for name in ["log-0", "log-1"] {
        let (found, said) = code(&|files| files.remove(&path(name)).unwrap());
        assert_eq!(found, "H122");
        assert!(said.contains(name), "{said}");
    }
    let (found, _) = code(&|files| {
        for name in ["log-0", "log-1", "log-2"] {
            files.remove(&path(name)).unwrap();
        }
    });
    assert_eq!(found, "H122", "a snapshot alone");
}

/// The power fails between the first two files of a folder.
#[test]
fn a_folder_that_was_being_made_is_made_again() {
    for failure in 0..4 {
        let files = FaultyFiles::new(failure);
        files.fail(Failure::Write, failure);
        let first = open(&files);
        drop(first);
        files.lose_power();
        let (mut disk, mut server) = open(&files).unwrap();
        write(&mut disk, &mut server, 1, 3);
        drop(disk);
        assert_eq!(held(&open(&files).unwrap().1, 1), Some(4));
    }
}

#[test]
fn what_a_killed_process_had_not_finished_is_removed() {
    let files = FaultyFiles::new(1);
    let (mut disk, mut server) = open(&files).unwrap();
    write(&mut disk, &mut server, 1, 5);
    drop(disk);
    files.put(&path("snapshot-1.new"), b"SPLOG");
    files.put(&path("something else"), b"");
    let (disk, server) = open(&files).unwrap();
    assert_eq!(held(&server, 1), Some(6));
    drop(disk);
    let left = ["log-0", "log-0.synced", "snapshot-0", "something else"];
    assert_eq!(names(&files), left);
}

#[test]
fn snapshots_take_the_place_of_logs() {
    let files = FaultyFiles::new(1);
    let (mut disk, mut server) = open(&files).unwrap();
    disk.set_snapshot_after(2_000);
    for flow in 0..100 {
        write(&mut disk, &mut server, flow, 3);
        snapshot(&mut disk, &server);
    }
    let number = disk.number;
    assert!(number > 3);
    drop(disk);
    let left = ["log-N", "log-N.synced", "snapshot-N"];
    let left = left.map(|name| name.replace('N', &number.to_string()));
    assert_eq!(names(&files), left);
    let (disk, server) = open(&files).unwrap();
    assert!((0..100).all(|flow| held(&server, flow) == Some(4)));
    assert!(disk.report().recovered_entries < 400);
}

/// A record that the medium refuses is not reported as written, and nothing that it replaces is
/// removed.
#[test]
fn a_disk_that_fails_answers_nothing_and_removes_nothing() {
    for failure in [Failure::Write, Failure::Full, Failure::Sync] {
        for calls in 0..2 {
            let files = FaultyFiles::new(calls);
            let (mut disk, mut server) = open(&files).unwrap();
            write(&mut disk, &mut server, 1, 5);
            files.fail(failure, 0);
            let lease = request(MessageType::LeaseRequest, 9).to_vec().unwrap();
            server.handle_request(2_000, SWITCH, &lease);
            assert_eq!(disk.save(&mut server, 2_000).unwrap_err().code(), "H403");
            assert_eq!(server.poll_transmit(2_000), None);
            assert!(disk.save(&mut server, 2_000).is_err());
            drop(disk);
            files.lose_power();
            assert_eq!(held(&open(&files).unwrap().1, 1), Some(6), "{failure:?}");

            let files = FaultyFiles::new(calls);
            let (mut disk, mut server) = open(&files).unwrap();
            disk.set_snapshot_after(1);
            write(&mut disk, &mut server, 1, 5);
            let snapshot = disk.begin_snapshot(&server, LATER).unwrap().unwrap();
            files.fail(failure, calls);
            let written = snapshot.write();
            assert!(written.is_err() && !files.is_to_fail());
            assert!(disk.end_snapshot(written).is_err());
            drop(disk);
            files.lose_power();
            let (_, server) = open(&files).unwrap();
            assert_eq!(held(&server, 1), Some(6), "{failure:?}");
        }
    }
}

/// A server writes and makes snapshots on a medium that loses power at any moment.
#[test]
fn a_power_cut_takes_nothing_that_was_answered() {
    let (mut torn, mut snapshots) = (0, 0);
    for seed in 0..150u64 {
        let files = FaultyFiles::new(seed);
        files.write_short(seed % 3 == 0);
        let mut answered = 0;
        for life in 0..6 {
            let opened = open(&files);
            let (mut disk, mut server) = opened.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let held = replica(&server).record(0, &key(1));
            let held = held.map_or(0, |record| record.sequence());
            assert!(
                answered <= held,
                "seed {seed}, life {life}: {held} of {answered}"
            );
            torn += u64::from(disk.report().torn_bytes > 0);
            disk.set_snapshot_after(600);
            let lease = request(MessageType::LeaseRequest, 1);
            let (epoch, first) = ask(&mut disk, &mut server, &lease).unwrap();
            answered = first;
            let last = first + (seed as u32 + life) % 5;
            for sequence in first + 1..=last {
                let state = sequence.to_be_bytes();
                let write = Repr {
                    lease_epoch: epoch,
                    sequence,
                    state: &state,
                    message_type: MessageType::WriteRequest,
                    ..lease
                };
                if sequence == last {
                    server.handle_request(2_000, SWITCH, &write.to_vec().unwrap());
                    disk.write(&mut server).unwrap();
                } else {
                    ask(&mut disk, &mut server, &write).unwrap();
                    answered = sequence;
                }
            }
            if seed % 2 == 0 {
                disk.sync(&mut server, u64::from(life) * MARKS_AFTER)
                    .unwrap();
                answered = last;
                if let Some(snapshot) = disk.begin_snapshot(&server, LATER).unwrap() {
                    match (seed / 2 + u64::from(life)) % 3 {
                        0 => drop(snapshot),
                        1 => drop(snapshot.write()),
                        _ => disk.end_snapshot(snapshot.write()).unwrap(),
                    }
                    snapshots += 1;
                }
            }
            drop(disk);
            files.lose_power();
        }
    }
    assert!(torn > 20 && snapshots > 100, "{torn} {snapshots}");
}

#[test]
#[should_panic(expected = "SI014")]
fn a_snapshot_that_did_not_begin_does_not_end() {
    let (mut disk, _) = open(&FaultyFiles::new(1)).unwrap();
    let _ = disk.end_snapshot(Ok(9));
}

#[test]
fn in_production_no_log_is_removed_for_a_snapshot_that_did_not_begin() {
    stateplane_invariant::in_production(|| {
        let files = FaultyFiles::new(1);
        let (mut disk, _) = open(&files).unwrap();
        disk.number = 1;
        let before = names(&files);
        disk.end_snapshot(Ok(9)).unwrap();
        assert_eq!(names(&files), before);
        assert_eq!(disk.report().broken.total(), 1);
        assert_eq!(disk.poll_broken().unwrap().invariant.code(), "SI014");
        assert_eq!(disk.poll_broken(), None);
    });
}
