mod invariants;
mod joins;

use core::net::Ipv4Addr;

use proptest::prelude::*;
use stateplane_wire::replication::{Key, MessageType};

use super::*;
use crate::config::FirstLease;
use crate::config::{IdleTimeouts, NatPool};

const CLASS_COUNTER: u8 = 3;

fn config(chain_length: u8, position: u8) -> Config {
    Config::new(chain_length, position)
        .with_nat(
            NatPool {
                addresses: vec![Ipv4Addr::new(203, 0, 113, 1)],
                first_port: 1024,
                last_port: 1031,
            },
            1,
            2,
        )
        .with_class(ClassConfig {
            class: CLASS_COUNTER,
            state_length: 4,
            first_lease: FirstLease::Zero,
            shared_only: false,
            idle: IdleTimeouts {
                default: Some(3_000_000),
                by_protocol: BTreeMap::new(),
                in_state: Vec::new(),
            },
            quota: None,
        })
}

fn chain(length: u8) -> Vec<Replica> {
    let replica = |position| Replica::new(config(length, position), 7).unwrap();
    (0..length).map(replica).collect()
}

fn switch(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, number), 4793)
}

/// Carries every datagram to its replica, except those that `lost` picks.
fn deliver(replicas: &mut [Replica], now: u64, mut lost: impl FnMut() -> bool) -> Vec<Vec<u8>> {
    let mut replies = Vec::new();
    let mut moved = true;
    while core::mem::take(&mut moved) {
        for from in 0..replicas.len() {
            while let Some(transmit) = replicas[from].poll_transmit(now) {
                moved = true;
                match transmit.to {
                    Destination::Switch(_) => replies.push(transmit.bytes.to_vec()),
                    Destination::Replica(to) => {
                        if !lost() {
                            replicas[usize::from(to)].handle_chain(
                                now,
                                from as u8,
                                &transmit.bytes,
                            );
                        }
                    }
                }
            }
        }
    }
    replies
}

/// However often a connection changes, and however many come and go, each is on the list of idle
/// times once.
#[test]
fn a_record_is_looked_at_at_one_time() {
    let pool = NatPool {
        addresses: vec![Ipv4Addr::new(203, 0, 113, 1)],
        first_port: 1024,
        last_port: 1024,
    };
    let config = Config::new(1, 0).with_dependent_nat(pool, 1, 2);
    let mut replica = Replica::new(config, 7).unwrap();
    let key = |inside| Key([1, 6, 10, 0, 0, inside, 0, 9, 198, 51, 100, 1, 0, 80, 0, 0]);
    for round in 0..20u8 {
        let now = 2_000_000 * u64::from(round);
        let ask = |message_type| Repr {
            chain_epoch: 1,
            switch_id: 1,
            incarnation: 1,
            claim: round.into(),
            ..Repr::new(message_type, key(round))
        };
        let lease = ask(MessageType::LeaseRequest).to_vec().unwrap();
        replica.handle_request(now, switch(1), &lease);
        let epoch = replica.record(0, &key(round)).unwrap().epoch();
        for (sequence, flags) in [(2, 2), (3, 6), (4, 10)] {
            let write = Repr {
                lease_epoch: epoch,
                sequence,
                state: &[203, 0, 113, 1, 4, 0, flags],
                ..ask(MessageType::WriteRequest)
            };
            replica.handle_request(now, switch(1), &write.to_vec().unwrap());
        }
        assert_eq!((replica.record_count(), replica.expiry_due.len()), (2, 1));
        assert_eq!(replica.audit(), Ok(()));
    }
    assert_eq!(replica.counters().reclaimed, 19);
}

#[derive(Debug, Clone)]
struct Step {
    wait: u64,
    switch: u8,
    claim: u8,
    kind: u8,
    key: u8,
    shared: bool,
    epoch: u8,
    sequence: u32,
    damage: Option<(u8, u8)>,
    cut: Option<u8>,
    position: u8,
}

fn step() -> impl Strategy<Value = Step> {
    let who = (1u8..4, 1u8..3, 0u8..5, 0u8..10, any::<bool>());
    let what = (0u64..400_000, 0u8..6, 0u32..6);
    let how = (
        proptest::option::weighted(0.05, any::<(u8, u8)>()),
        proptest::option::weighted(0.02, any::<u8>()),
        prop_oneof![20 => Just(0u8), 1 => 1u8..3],
    );
    (who, what, how).prop_map(
        |((switch, claim, kind, key, shared), (wait, epoch, sequence), (damage, cut, position))| {
            Step {
                wait,
                switch,
                claim,
                kind,
                key,
                shared,
                epoch,
                sequence,
                damage,
                cut,
                position,
            }
        },
    )
}

fn request(step: &Step) -> Vec<u8> {
    let mut key = [0; 16];
    match step.key {
        0..4 => (key[0], key[15]) = (CLASS_COUNTER, step.key),
        4..9 => key[..8].copy_from_slice(&[1, 6, 10, 0, 0, step.key, 1, 2]),
        _ => key[..8].copy_from_slice(&[2, 6, 203, 0, 113, 1, 4, step.epoch]),
    }
    let message_type = [
        MessageType::LeaseRequest,
        MessageType::LeaseRequest,
        MessageType::WriteRequest,
        MessageType::RenewRequest,
        MessageType::ProbeRequest,
    ][usize::from(step.kind)];
    let write = message_type == MessageType::WriteRequest;
    let repr = Repr {
        shared: step.shared,
        chain_epoch: 1,
        switch_id: step.switch.into(),
        incarnation: 9,
        claim: step.claim.into(),
        request: step.sequence,
        lease_epoch: step.epoch.into(),
        sequence: step.sequence,
        state: if write { &[1, 2, 3, 4] } else { &[] },
        packet: Some(b"frame"),
        ..Repr::new(message_type, Key(key))
    };
    let mut bytes = repr.to_vec().unwrap();
    if let Some((at, value)) = step.damage {
        let at = usize::from(at) % bytes.len();
        bytes[at] ^= value;
    }
    if let Some(cut) = step.cut {
        bytes.truncate(cut.into());
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Damaged requests among good ones, over links that lose: nothing panics,
    /// the pool stays exact, and the replicas agree once the links are whole.
    #[test]
    fn replicas_agree_after_any_requests(
        steps in proptest::collection::vec(step(), 1..120),
        losses in proptest::collection::vec(any::<bool>(), 64),
    ) {
        let mut replicas = chain(3);
        let mut now = 0;
        let mut drawn = 0;
        for step in &steps {
            now += step.wait;
            for replica in &mut replicas {
                replica.handle_timeout(now);
            }
            let head = &mut replicas[0];
            head.promise(now, step.switch.into(), 9);
            replicas[usize::from(step.position)].handle_request(now, switch(step.switch), &request(step));
            deliver(&mut replicas, now, || {
                drawn += 1;
                losses[drawn % losses.len()]
            });
            for replica in &replicas {
                prop_assert_eq!(replica.audit(), Ok(()));
            }
        }
        for _ in 0..200 {
            now += 320_000;
            for replica in &mut replicas {
                replica.handle_timeout(now);
            }
            deliver(&mut replicas, now, || false);
        }
        for replica in &replicas {
            prop_assert_eq!(replica.unacknowledged(), 0);
            prop_assert_eq!(replica.digest(), replicas[0].digest());
            prop_assert_eq!(replica.counters().applied, replicas[0].counters().applied);
            prop_assert_eq!(replica.counters().chain_inconsistent, 0);
        }
        prop_assert_eq!(replicas[0].parked(), (0, 0));
    }

    #[test]
    fn any_bytes_from_anywhere_are_survived(
        requests in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..160), 0..20),
        chain_bytes in proptest::collection::vec((0u8..4, proptest::collection::vec(any::<u8>(), 0..200)), 0..20),
        shape: bool,
    ) {
        let mut replica = Replica::new(config(3, 1), 1).unwrap();
        let mut head = Replica::new(config(1, 0), 1).unwrap();
        for (at, mut bytes) in requests.into_iter().enumerate() {
            if shape && bytes.len() >= 72 {
                bytes[0] = 1;
                bytes[1] = 1 + bytes[1] % 4;
                bytes[4..10].copy_from_slice(&[0, 0, 0, 1, 0, 0]);
                bytes[36] = 1 + bytes[36] % 3;
                (bytes[70], bytes[71]) = (0, bytes[71] % 8);
            }
            head.handle_request(at as u64, switch(1), &bytes);
            replica.handle_request(at as u64, switch(1), &bytes);
        }
        for (from, mut bytes) in chain_bytes {
            if shape && bytes.len() >= 32 {
                bytes[..8].copy_from_slice(&[b'S', b'P', b'C', b'2', 1, from, 0, 0]);
                bytes[8..12].copy_from_slice(&[0, 0, 0, 1]);
                bytes[16..24].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1]);
            }
            replica.handle_chain(100, from, &bytes);
        }
        prop_assert_eq!(head.audit(), Ok(()));
        prop_assert_eq!(replica.audit(), Ok(()));
    }
}

#[test]
fn equal_inputs_give_equal_outputs() {
    let run = || {
        let mut replicas = chain(3);
        let mut out = Vec::new();
        for at in 0..40u8 {
            let step = Step {
                wait: 0,
                switch: 1 + at % 3,
                claim: 1,
                kind: 0,
                key: at % 9,
                shared: at % 2 == 0,
                epoch: 0,
                sequence: 0,
                damage: None,
                cut: None,
                position: 0,
            };
            replicas[0].handle_request(at.into(), switch(step.switch), &request(&step));
            out.extend(deliver(&mut replicas, at.into(), || false));
        }
        out
    };
    assert_eq!(run(), run());
}

#[test]
fn a_head_whose_window_is_full_drops_and_goes_on_when_it_opens() {
    let mut replicas = chain(2);
    replicas[0].config.limits.link_window = 2;
    // Nothing but answers is sent.
    replicas[0].config.recall = false;
    let step = |switch| Step {
        wait: 0,
        switch,
        claim: 1,
        kind: 0,
        key: 0,
        shared: false,
        epoch: 0,
        sequence: 0,
        damage: None,
        cut: None,
        position: 0,
    };
    replicas[0].promise(0, 1, 9);
    for number in [1, 2, 1, 1] {
        replicas[0].handle_request(0, switch(number), &request(&step(number)));
    }
    assert_eq!(replicas[0].counters().window_full, 1);
    replicas[0].handle_timeout(1_000_000);
    assert_eq!(replicas[0].parked().0, 1);
    let replies = deliver(&mut replicas, 1_000_000, || false);
    assert_eq!(replies.len(), 3);
    assert_eq!(replicas[0].parked().0, 0);
    assert_eq!(replicas[0].digest(), replicas[1].digest());
}

#[test]
fn a_configuration_that_cannot_run_is_refused() {
    let mut wrong = config(3, 0);
    wrong.nat = None;
    assert_eq!(Replica::new(wrong, 1).unwrap_err().code(), "S010");
}

#[test]
fn a_place_of_an_older_configuration_is_not_taken() {
    let mut replica = Replica::new(config(1, 0), 1).unwrap();
    let place = |epoch, length| Place {
        epoch,
        length,
        position: 0,
        feeds: false,
    };
    replica.reconfigure(0, place(5, 2));
    for epoch in [5, 4] {
        replica.reconfigure(1, place(epoch, 1));
        assert_eq!(replica.place(), place(5, 2));
    }
    replica.reconfigure(1, place(6, 1));
    assert_eq!(replica.place(), place(6, 1));
}
