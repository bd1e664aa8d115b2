use core::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;
use stateplane_wire::replication::{Key, MessageType, Repr};

use super::*;
use crate::config::{ClassConfig, IdleTimeouts};

const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4793);

fn config(chain_length: u8) -> Config {
    let config = Config::new(chain_length, 0).with_class(ClassConfig {
        class: 1,
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

fn ask(replica: &mut Replica, flow: u8) {
    let mut key = [0; 16];
    key[..2].copy_from_slice(&[1, flow]);
    let request = Repr {
        chain_epoch: 1,
        switch_id: 1,
        incarnation: 1,
        claim: flow.into(),
        request: 1,
        ..Repr::new(MessageType::LeaseRequest, Key(key))
    };
    replica.handle_request(1, SWITCH, &request.to_vec().unwrap());
}

/// A replica that granted `flows` leases, and its records.
fn granted(chain_length: u8, flows: u8) -> (Replica, Vec<Vec<u8>>) {
    let mut replica = Replica::new(config(chain_length), 7).unwrap();
    let mut records: Vec<_> = replica.saved_state().unwrap().collect();
    for flow in 0..flows {
        ask(&mut replica, flow);
        records.extend(std::iter::from_fn(|| replica.poll_record()));
        replica.handle_saved();
    }
    (replica, records)
}

fn recovered(chain_length: u8, records: &[Vec<u8>]) -> Result<Replica, RecoveryError> {
    let mut recovery = Recovery::new(config(chain_length)).unwrap();
    for record in records {
        recovery.take(9, record)?;
    }
    recovery.finish()
}

#[test]
fn nothing_is_sent_before_it_is_saved() {
    let mut replica = Replica::new(config(1), 7).unwrap();
    ask(&mut replica, 1);
    assert_eq!(replica.poll_transmit(1), None);
    assert!(replica.saved_state().is_none(), "a record waits");
    assert!(replica.poll_record().is_some());
    assert_eq!(replica.poll_transmit(1), None);
    replica.handle_saved();
    assert!(replica.poll_transmit(1).is_some());
}

#[test]
fn a_head_comes_back_with_what_its_successor_may_lack() {
    let (replica, records) = granted(3, 5);
    let mut back = recovered(3, &records).unwrap();
    assert_eq!(back.digest(), replica.digest());
    assert_eq!((back.applied(), back.base()), (5, 0));
    assert!(back.poll_transmit(9).is_some(), "it sends them again");
    // And again from a snapshot, which keeps them.
    let snapshot: Vec<_> = replica.saved_state().unwrap().collect();
    let back = recovered(3, &snapshot).unwrap();
    assert_eq!(back.digest(), replica.digest());
    assert_eq!((back.applied(), back.base()), (5, 0));
}

#[test]
fn a_tail_keeps_nothing_for_others() {
    let (replica, records) = granted(1, 5);
    assert_eq!(replica.log.len(), 0);
    let back = recovered(1, &records).unwrap();
    assert_eq!(back.digest(), replica.digest());
    assert_eq!((back.applied(), back.log.len()), (5, 0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (_, records) = granted(1, 3);
    let refused = |records: &[Vec<u8>]| recovered(1, records).unwrap_err();
    assert_eq!(refused(&[]), RecoveryError::Incomplete);
    assert_eq!(refused(&records[..1]), RecoveryError::Incomplete);
    assert_eq!(refused(&records[1..]), RecoveryError::Malformed);
    let mut twice = records.clone();
    twice.insert(1, records[0].clone());
    assert_eq!(refused(&twice), RecoveryError::Malformed);
    let mut newer = records.clone();
    newer[0][1] = 9;
    assert_eq!(refused(&newer), RecoveryError::Version { version: 9 });
    let other = recovered(2, &records).unwrap_err();
    assert_eq!(other, RecoveryError::OtherConfiguration);
    assert_eq!(other.code(), "S020");
}

proptest! {
    /// Whatever a disk says.
    #[test]
    fn no_record_makes_it_panic(
        at in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
        noise in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let (_, mut records) = granted(2, 4);
        let record = at.index(records.len());
        let place = place.index(records[record].len());
        records[record][place] = value;
        records.insert(at.index(records.len()), noise);
        if let Ok(mut replica) = recovered(2, &records) {
            replica.handle_timeout(10);
            while replica.poll_transmit(10).is_some() {}
        }
        records.remove(at.index(records.len() - 1));
        let _ = recovered(2, &records);
    }
}
