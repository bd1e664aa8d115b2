use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, Recipient, Replica};
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};

use super::*;

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

fn open(folder: &Path) -> Result<(Disk, Server), DiskError> {
    Disk::open(folder, &setup(config(), 7), 1_000)
}

fn replica(server: &Server) -> &Replica {
    server.replica(0).unwrap()
}

/// Serves one request; gives epoch and sequence of the reply, if there is one.
fn ask(disk: &mut Disk, server: &mut Server, request: &Repr<'_>) -> Option<(u32, u32)> {
    server.handle_request(2_000, SWITCH, &request.to_vec().unwrap());
    let unsaved = server.poll_transmit(2_000);
    assert_eq!(unsaved, None, "nothing leaves before it is saved");
    disk.save(server).unwrap();
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
fn write(disk: &mut Disk, server: &mut Server, flow: u8, writes: u32) {
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

#[test]
fn what_was_answered_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made");
    let (mut disk, mut server) = open(&path).unwrap();
    write(&mut disk, &mut server, 1, 9);
    write(&mut disk, &mut server, 2, 3);
    assert!(open(&path).is_err_and(|error| error.code() == "H405"));
    let (digest, applied) = (replica(&server).digest(), replica(&server).applied());
    drop(disk);
    // It comes back under its former incarnation, whatever was drawn for it.
    let (disk, server) = Disk::open(&path, &setup(config(), 99), 5_000).unwrap();
    assert_eq!((held(&server, 1), held(&server, 2)), (Some(10), Some(4)));
    let back = replica(&server);
    assert_eq!((back.digest(), back.applied()), (digest, applied));
    assert_eq!(server.incarnation(), 7);
    assert_eq!(disk.report().recovered_entries, applied);
    assert_eq!(disk.report().torn_bytes, 0);
}

#[test]
fn a_torn_end_is_cut_off_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut server) = open(folder.path()).unwrap();
    write(&mut disk, &mut server, 1, 5);
    drop(disk);
    let log = folder.path().join("log-0");
    let whole = fs::read(&log).unwrap();
    for cut in 1..200 {
        fs::write(&log, &whole[..whole.len() - cut]).unwrap();
        let (mut disk, mut server) = open(folder.path()).unwrap();
        let found = held(&server, 1).unwrap();
        assert!((3..6).contains(&found), "{cut} bytes cut, {found}");
        let torn = disk.report().torn_bytes;
        assert!(torn < 200 && (torn > 0 || cut > 80), "{cut}: {torn}");
        write(&mut disk, &mut server, 2, 1);
        drop(disk);
        let (_, server) = open(folder.path()).unwrap();
        assert_eq!((held(&server, 1), held(&server, 2)), (Some(found), Some(2)));
    }
}

#[test]
fn damage_and_foreign_states_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut server) = open(folder.path()).unwrap();
    write(&mut disk, &mut server, 1, 5);
    drop(disk);
    let code = || open(folder.path()).unwrap_err().code();
    let log = folder.path().join("log-0");
    let whole = fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&log, &damaged).unwrap();
    assert_eq!(code(), "H404");
    fs::write(&log, &whole).unwrap();
    let other = Config {
        shards: 2,
        ..config()
    };
    let refused = Disk::open(folder.path(), &setup(other, 7), 0).unwrap_err();
    assert_eq!(refused.code(), "S020");
    fs::remove_file(folder.path().join("snapshot-0")).unwrap();
    assert_eq!(code(), "H121");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(open(&file).unwrap_err().code(), "H120");
}

#[test]
fn snapshots_take_the_place_of_logs() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut server) = open(folder.path()).unwrap();
    disk.set_snapshot_after(2_000);
    for flow in 0..100 {
        write(&mut disk, &mut server, flow, 3);
    }
    drop(disk);
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() <= 3, "{names:?}");
    assert!(!names.contains(&"snapshot-0".to_owned()), "{names:?}");
    let (disk, server) = open(folder.path()).unwrap();
    assert!((0..100).all(|flow| held(&server, flow) == Some(4)));
    assert!(disk.report().recovered_entries < 400);
}

/// The power fails while a snapshot is being written.
#[test]
fn an_unfinished_snapshot_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (mut disk, mut server) = open(folder.path()).unwrap();
    write(&mut disk, &mut server, 1, 5);
    drop(disk);
    drop(RecordLog::open(&folder.path().join("snapshot-1"), |_| true).unwrap());
    let (mut disk, mut server) = open(folder.path()).unwrap();
    assert_eq!(held(&server, 1), Some(6));
    // The next log was begun, its snapshot not.
    disk.log = RecordLog::open(&disk.path("log", 1), |_| false).unwrap();
    disk.number = 1;
    write(&mut disk, &mut server, 2, 2);
    drop(disk);
    let (_, server) = open(folder.path()).unwrap();
    assert_eq!((held(&server, 1), held(&server, 2)), (Some(6), Some(3)));
}
