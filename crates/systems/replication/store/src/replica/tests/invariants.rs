//! Each invariant of a replica, broken.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stateplane_invariant::{Effect, Invariant, in_production};
use stateplane_wire::chain::{self, Decision, Entry, Item, Kind};

use super::*;

/// Breaks an invariant of a replica in a chain of two, and gives the replica's position.
type Break = fn(&mut [Replica]) -> usize;

const BREAKS: [(Invariant, Break); 9] = [
    (Invariant::ChainEntry, expires_no_record),
    (Invariant::ChainAcknowledgement, acknowledges_the_future),
    (Invariant::ChainNumber, knows_the_future),
    (Invariant::ChainNumber, runs_out_of_numbers),
    (Invariant::ChainBacklog, keeps_all_entries),
    (Invariant::ChainCopy, copies_another_state),
    (Invariant::RecordCount, forgets_more_records_than_there_are),
    (Invariant::ParkedRequests, parks_more_than_fits),
    (Invariant::EarlyUpdates, keeps_updates_beyond_the_window),
];

/// A chain of two in which one flow has a lease.
fn pair(authentic: bool) -> Vec<Replica> {
    let replica = |position| {
        let config = Config {
            authentic,
            ..config(2, position)
        };
        Replica::new(config, 7).unwrap()
    };
    let mut replicas = vec![replica(0), replica(1)];
    ask(&mut replicas, 1, 1);
    assert_eq!(deliver(&mut replicas, 1, || false).len(), 1);
    replicas
}

/// The head is asked for a lease of `flow` by the switch of that number.
fn ask(replicas: &mut [Replica], number: u8, flow: u8) {
    let step = Step {
        wait: 0,
        switch: number,
        claim: 1,
        kind: 0,
        key: flow,
        shared: false,
        epoch: 0,
        sequence: 1,
        damage: None,
        cut: None,
        position: 0,
    };
    replicas[0].promise(1, number.into(), 9);
    replicas[0].handle_request(1, switch(number), &request(&step));
}

fn message(kind: Kind, from: u8, number: u64, body: &[u8]) -> Vec<u8> {
    let message = chain::Repr {
        kind,
        replica: from,
        chain: 0,
        chain_epoch: 1,
        incarnation: 7,
        number,
        base: 1,
        body,
    };
    message.to_vec().unwrap()
}

/// An update that forgets a record that nobody made.
fn expiry() -> Vec<u8> {
    let entry = Entry {
        decision: Decision::Expire {
            shard: 0,
            key: Key([CLASS_COUNTER; 16]),
        },
        switch: switch(1),
        request: &[],
    };
    let mut body = vec![0; entry.buffer_len()];
    entry.emit(&mut body).unwrap();
    let mut update = (body.len() as u16).to_be_bytes().to_vec();
    update.extend(body);
    update
}

fn expires_no_record(replicas: &mut [Replica]) -> usize {
    replicas[1].handle_chain(1, 0, &message(Kind::Update, 0, 2, &expiry()));
    1
}

fn acknowledges_the_future(replicas: &mut [Replica]) -> usize {
    replicas[0].handle_chain(1, 1, &message(Kind::Ack, 1, 9, &[]));
    0
}

fn knows_the_future(replicas: &mut [Replica]) -> usize {
    replicas[0].base = 5;
    ask(replicas, 1, 2);
    0
}

fn runs_out_of_numbers(replicas: &mut [Replica]) -> usize {
    (replicas[0].applied, replicas[0].base) = (u64::MAX, u64::MAX);
    ask(replicas, 1, 2);
    assert_eq!(replicas[0].applied, u64::MAX);
    0
}

fn keeps_all_entries(replicas: &mut [Replica]) -> usize {
    let head = &mut replicas[0];
    let most = head.most_kept();
    while head.log.len() < most {
        head.log.push([].into());
    }
    head.applied = head.log.last();
    head.base = head.applied;
    ask(replicas, 1, 2);
    0
}

fn copies_another_state(replicas: &mut [Replica]) -> usize {
    let joins = Place {
        epoch: 1,
        length: 1,
        position: 1,
        feeds: false,
    };
    replicas[1].place = Place { epoch: 0, ..joins };
    replicas[1].reconfigure(1, joins);
    let mut end = Vec::new();
    Item::End { digest: 1 }.emit(&mut end).unwrap();
    replicas[1].handle_chain(1, 0, &message(Kind::Snapshot, 0, 1, &end));
    assert!(replicas[1].install.as_ref().is_some_and(|it| !it.is_done()));
    1
}

fn forgets_more_records_than_there_are(replicas: &mut [Replica]) -> usize {
    replicas[0].record_count = 0;
    replicas[0].handle_timeout(60_000_000);
    assert_eq!(replicas[0].record_count, 0);
    0
}

fn parks_more_than_fits(replicas: &mut [Replica]) -> usize {
    replicas[0].config.limits.parked_bytes = 0;
    ask(replicas, 2, 1);
    assert_eq!(replicas[0].parked(), (0, 0));
    0
}

fn keeps_updates_beyond_the_window(replicas: &mut [Replica]) -> usize {
    replicas[1].config.limits.link_window = 0;
    replicas[1].handle_chain(1, 0, &message(Kind::Update, 0, 5, &expiry()));
    assert_eq!(replicas[1].predecessor.early(), 0);
    1
}

#[test]
fn in_tests_a_broken_invariant_panics() {
    for (invariant, break_it) in BREAKS {
        let mut replicas = pair(true);
        let broken = catch_unwind(AssertUnwindSafe(|| break_it(&mut replicas)));
        let message = broken.expect_err(invariant.code());
        let message = message.downcast_ref::<String>().unwrap();
        assert!(message.contains(invariant.code()), "{message}");
    }
}

#[test]
fn in_production_a_broken_invariant_has_its_effect() {
    for (invariant, break_it) in BREAKS {
        in_production(|| {
            let mut replicas = pair(true);
            let at = break_it(&mut replicas);
            assert_eq!(replicas[at].broken().of(invariant), 1, "{invariant:?}");
            assert_eq!(replicas[at].poll_broken().unwrap().invariant, invariant);
            assert_eq!(replicas[at].poll_broken(), None);
            let silenced = replicas[at].silenced().map(|broken| broken.invariant);
            let silences = invariant.effect() == Effect::Silence;
            assert_eq!(silenced, silences.then_some(invariant));
            if silences {
                let digest = replicas[at].digest();
                ask(&mut replicas, 1, 3);
                replicas[at].handle_timeout(90_000_000);
                assert_eq!(replicas[at].poll_transmit(90_000_000), None);
                assert_eq!(replicas[at].poll_timeout(), None);
                assert!(at == 1 || replicas[at].digest() == digest);
            }
        });
    }
}

/// A stranger's message that contradicts the state silences no replica.
#[test]
fn without_keys_no_message_silences_a_replica() {
    for break_it in [
        expires_no_record,
        acknowledges_the_future,
        copies_another_state,
    ] {
        let mut replicas = pair(false);
        let at = break_it(&mut replicas);
        assert_eq!(replicas[at].broken().total(), 0);
        assert_eq!(replicas[at].silenced(), None);
        let counters = replicas[at].counters();
        let refused =
            counters.chain_inconsistent + counters.chain_bad_ack + counters.snapshot_mismatch;
        assert_eq!(refused, 1);
    }
}
