//! Disks on which the version before kept its records: entries with the times of leases, and
//! messages of version 1.

use stateplane_wire::chain::{Entry, entry_field};

use super::*;
use crate::record::Lease;
use crate::saved::{RecoveryError, kind};
use crate::server::Recovery;

/// Bytes of an entry's record before the entry: kind, chain and predecessor.
const FRONT: usize = 3 + 4;

/// Offset at which an entry of the version before has 8 bytes more.
const TIMES: usize = 8;

/// `records` as the version before wrote them. A shared grant takes the first of `places` that are
/// left.
fn older_records(records: &[Vec<u8>], mut places: &[u16]) -> Vec<Vec<u8>> {
    let holder = entry_field::HOLDER;
    let older = records.iter().map(|record| {
        let mut record = record.clone();
        if record[0] == kind::BEGIN {
            record[3] = 3;
        }
        if record[0] != kind::ENTRY {
            return record;
        }
        let mut message = Entry::parse(&record[FRONT..]).unwrap().request.to_vec();
        let mut fixed = record[FRONT..record.len() - message.len()].to_vec();
        if let Some((place, rest)) = places.split_first() {
            fixed[holder..holder + 2].copy_from_slice(&place.to_be_bytes());
            places = rest;
        }
        let probe = older::probe(1, 1, 0, 1, 0).unwrap();
        message[0] = probe[0];
        let sum = u16::from_be_bytes([message[10], message[11]]);
        // The version is in the first byte of a word, and lower by one.
        let sum = sum.checked_add(0x0100).unwrap_or(sum.wrapping_add(0x0101));
        message[10..12].copy_from_slice(&sum.to_be_bytes());
        record.truncate(FRONT);
        record.extend(&fixed[..TIMES]);
        record.extend([0; 8]);
        record.extend(&fixed[TIMES..]);
        record.extend(message);
        record
    });
    older.collect()
}

/// Asks for a shared lease of one flow under `claim`.
fn ask_shared(server: &mut Server, claim: u32) {
    let request = Repr {
        chain_epoch: 1,
        switch_id: 1,
        incarnation: 1,
        claim,
        request: 1,
        shared: true,
        ..Repr::new(MessageType::LeaseRequest, Key([1; 16]))
    };
    server.handle_request(1_000_000, SWITCH, &request.to_vec().unwrap());
}

/// The claims that hold the only record of `server`.
fn claims(server: &Server) -> Vec<u32> {
    let replica = server.replica(0).unwrap();
    let (_, _, record) = replica.records().next().unwrap();
    let holders = record.lease().holders().iter();
    holders.map(|holder| holder.owner.claim).collect()
}

fn digest(server: &Server) -> u64 {
    server.replica(0).unwrap().digest()
}

#[test]
fn nobody_is_outwaited_for_the_time_of_older_leases() {
    let setup = testing::fixed(1, 0, 7);
    let mut server = started(&setup);
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    testing::ask(&mut server, 0, 1, 1);
    save(&mut server, &mut records);
    let back = testing::recovered(setup, &older_records(&records, &[])).unwrap();
    assert_eq!(digest(&back), digest(&server));
    let (_, _, record) = back.replica(0).unwrap().records().next().unwrap();
    let owner = record.lease().holders()[0].owner;
    assert_eq!(back.replica(0).unwrap().outwaits(0, &owner), 9 + Q);
    assert_eq!(back.promises.until(0, &owner), 9 + 1_000_000);
    assert!(back.counts_older(9 + 999_999) && !back.counts_older(9 + 1_000_000));
    assert!(!server.counts_older(0));
}

#[test]
fn entries_of_both_versions_may_follow_one_another() {
    let setup = testing::fixed(1, 0, 7);
    let mut server = started(&setup);
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    testing::ask(&mut server, 0, 1, 1);
    save(&mut server, &mut records);
    let mut records = older_records(&records, &[]);
    for flow in 2..5 {
        let mut recovery = Recovery::new(setup.clone());
        for record in &records {
            recovery.take(9, record).unwrap();
        }
        let mut back = recovery.finish().unwrap();
        assert_eq!(digest(&back), digest(&server), "before flow {flow}");
        for server in [&mut back, &mut server] {
            testing::ask(server, 0, flow, 1);
        }
        // The records of this version, START and ENTRY, follow the older ones.
        save(&mut back, &mut records);
        save(&mut server, &mut Vec::new());
    }
    let mut newer = records.clone();
    let start = newer.iter_mut().rfind(|record| record[0] == kind::START);
    start.unwrap()[3] = 9;
    let refused = testing::recovered(setup, &newer).unwrap_err();
    assert_eq!(refused, RecoveryError::Version { version: 9 });
}

/// A head of that version left earlier claims of a switch beside the later one.
#[test]
fn earlier_claims_stay_where_the_version_before_left_them() {
    let setup = testing::fixed(1, 0, 7);
    let mut server = started(&setup);
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    for claim in 1..4 {
        ask_shared(&mut server, claim);
        save(&mut server, &mut records);
    }
    assert_eq!(claims(&server), [3]);
    let mut records = older_records(&records, &[0, 1, 2]);
    let mut recovery = Recovery::new(setup.clone());
    for record in &records {
        recovery.take(9, record).unwrap();
    }
    let mut back = recovery.finish().unwrap();
    assert_eq!(claims(&back), [1, 2, 3]);
    // A grant that is repeated leaves them, a new one does not.
    ask_shared(&mut back, 3);
    save(&mut back, &mut records);
    assert_eq!(claims(&back), [1, 2, 3]);
    assert_eq!(back.counters().grant_repeated, 1);
    ask_shared(&mut back, 4);
    save(&mut back, &mut records);
    assert_eq!(claims(&back), [4]);
    let again = testing::recovered(setup, &records).unwrap();
    assert_eq!(digest(&again), digest(&back));
    let replica = again.replica(0).unwrap();
    let (_, _, record) = replica.records().next().unwrap();
    assert!(matches!(record.lease(), Lease::Shared(holders) if holders.len() == 1));
}
