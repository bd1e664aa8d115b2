//! Datagrams that nobody of the store sent, or not as they come: they change nothing, and are counted.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::collections::BTreeSet;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use stateplane_observe::{
    Change, ChangeError, Event, Faults, Holding, Observer, Operation, Outcome, Settings,
};
use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, Recipient, Server};
use stateplane_wire::replication::{Key, MessageType, RefusalCode, Repr};

const STORE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 1), 4793);
const OWN: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 9, 9), 5_000);
const STRANGER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 7, 7), 4793);

fn observer() -> Observer {
    observer_of_start(7)
}

fn observer_of_start(incarnation: u32) -> Observer {
    let settings = Settings {
        stores: vec![STORE],
        switch: 60_000,
        incarnation,
        classes: BTreeSet::new(),
        told_classes: BTreeSet::new(),
        poll_us: 1_000,
        retry_us: 1_500,
        most_flows: 2_000,
        faults: Faults::default(),
    };
    Observer::new(settings, 0).unwrap()
}

fn store() -> Server {
    let config = Config::new(1, 0).with_class(ClassConfig {
        class: 1,
        state_length: 4,
        first_lease: FirstLease::Zero,
        shared_only: false,
        idle: IdleTimeouts::never(),
        quota: None,
    });
    Server::fixed(config, 3, vec![STORE]).unwrap()
}

/// Makes `count` records, as a switch that asks for leases does.
fn fill(store: &mut Server, now: u64, count: u16) {
    for number in 0..count {
        let mut key = [0; 16];
        let [high, low] = number.to_be_bytes();
        key[..3].copy_from_slice(&[1, low, high]);
        let request = Repr {
            chain_epoch: 1,
            switch_id: 1,
            incarnation: 1,
            claim: number.into(),
            request: 1,
            ..Repr::new(MessageType::LeaseRequest, Key(key))
        };
        store.handle_request(now, STRANGER, &request.to_vec().unwrap());
    }
    while store.poll_transmit(now).is_some() {}
}

/// Lets the two exchange datagrams from `now` to `end`; `see` gets those to the observer before it does.
fn exchange(
    observer: &mut Observer,
    store: &mut Server,
    (mut now, end): (u64, u64),
    mut see: impl FnMut(&mut Observer, &[u8]),
) {
    while now < end {
        now += 100;
        store.handle_timeout(now);
        observer.handle_timeout(now);
        while let Some((_, bytes)) = observer.poll_transmit() {
            store.handle_request(now, OWN, &bytes);
        }
        while let Some(datagram) = store.poll_transmit(now) {
            if datagram.to == Recipient::Switch(OWN) {
                see(observer, &datagram.bytes);
                observer.handle_datagram(now, STORE, &datagram.bytes);
            }
        }
    }
}

#[test]
fn damaged_and_forged_datagrams_change_nothing() {
    for seed in 0..40 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (mut observer, mut store) = (observer(), store());
        fill(&mut store, 1, 90);
        exchange(&mut observer, &mut store, (0, 5_000), |observer, bytes| {
            let before = observer.counters().foreign;
            let mut damaged = bytes.to_vec();
            let bit = rng.random_range(0..damaged.len() * 8);
            damaged[bit / 8] ^= 1 << (bit % 8);
            observer.handle_datagram(1, STORE, &damaged);
            let cut = rng.random_range(0..bytes.len());
            observer.handle_datagram(1, STORE, &bytes[..cut]);
            // Whole, from somebody else.
            observer.handle_datagram(1, STRANGER, bytes);
            assert!(observer.counters().foreign >= before + 2, "seed {seed}");
        });
        assert_eq!(observer.flows().count(), 90, "seed {seed}");
        assert!(observer.as_of().is_some_and(|as_of| as_of > 3_000));
    }
}

#[test]
fn a_view_has_no_more_flows_than_it_may_and_is_incomplete_then() {
    let (mut observer, mut store) = (observer(), store());
    fill(&mut store, 1, 90);
    exchange(&mut observer, &mut store, (0, 5_000), |_, _| {});
    assert!(observer.told(5_000).is_some_and(|told| told.flows == 90));
    fill(&mut store, 5_000, 2_001);
    exchange(&mut observer, &mut store, (5_000, 9_000), |_, _| {});
    assert_eq!(observer.told(9_000), None);
    assert_eq!(observer.flow_count(), 2_000);
}

#[test]
fn a_view_is_whole_when_all_records_were_told() {
    let (mut observer, mut store) = (observer(), store());
    fill(&mut store, 1, 1_500);
    let mut incomplete = 0;
    exchange(&mut observer, &mut store, (0, 5_000), |observer, _| {
        let is_whole = observer.flow_count() == 1_500;
        assert_eq!(observer.as_of().is_some(), is_whole);
        incomplete += u32::from(!is_whole);
    });
    assert!(observer.as_of().is_some());
    assert!(incomplete > 32, "one answer has 16 datagrams: {incomplete}");
}

#[test]
fn answers_to_another_start_change_nothing() {
    let (mut one, mut store) = (observer(), store());
    fill(&mut store, 1, 5);
    let mut other = observer_of_start(8);
    exchange(&mut one, &mut store, (0, 5_000), |_, bytes| {
        other.handle_timeout(1);
        other.handle_datagram(1, STORE, bytes);
    });
    assert!(one.as_of().is_some());
    assert_eq!((other.as_of(), other.flow_count()), (None, 0));
    assert!(other.counters().foreign > 0);
}

#[test]
fn a_lease_that_comes_late_is_given_back() {
    let (mut observer, mut store) = (observer(), store());
    fill(&mut store, 1, 1);
    exchange(&mut observer, &mut store, (0, 3_000), |_, _| {});
    let key = *observer.flows().next().unwrap().1;
    let change = Change {
        key,
        shard: None,
        operation: Operation::Set(vec![1; 4]),
        end: 3_050,
    };
    let ticket = observer.begin(3_001, change).unwrap();
    let requests: Vec<_> = core::iter::from_fn(|| observer.poll_transmit()).collect();
    observer.handle_timeout(3_100);
    let outcome = Outcome::TimedOut;
    let events: Vec<_> = core::iter::from_fn(|| observer.poll_event()).collect();
    assert!(events.contains(&Event::Done { ticket, outcome }));
    for (_, bytes) in requests {
        store.handle_request(3_200, OWN, &bytes);
    }
    exchange(&mut observer, &mut store, (3_200, 9_000), |_, _| {});
    let (_, flow) = observer.flow(&key).next().unwrap();
    assert_eq!(
        (flow.lease, &flow.state[..]),
        (Holding::Nobody, &[0; 4][..])
    );
}

#[test]
fn a_change_is_refused_or_ends_as_the_store_says() {
    let (mut observer, mut store) = (observer(), store());
    let key = |class, number| {
        let mut key = [0; 16];
        key[..2].copy_from_slice(&[class, number]);
        Key(key)
    };
    let change = |key, operation| Change {
        key,
        shard: None,
        operation,
        end: 50_000,
    };
    let set = |state: &[u8]| Operation::Set(state.to_vec());
    let begun = observer.begin(0, change(key(1, 0), set(&[1; 4])));
    assert_eq!(begun, Err(ChangeError::Incomplete));
    fill(&mut store, 1, 2);
    exchange(&mut observer, &mut store, (0, 3_000), |_, _| {});
    let unknown = observer.begin(3_000, change(key(1, 9), set(&[1; 4])));
    assert_eq!(unknown, Err(ChangeError::UnknownFlow));
    let conditional = Operation::SetIfEqual {
        expected: vec![9; 4],
        state: vec![8; 4],
    };
    let foreign = Change {
        shard: Some(0),
        ..change(key(2, 0), set(&[1; 4]))
    };
    let changes = [
        change(key(1, 0), set(&[9; 4])),
        change(key(1, 0), conditional.clone()),
        change(key(1, 0), conditional),
        change(key(1, 1), set(&[1; 3])),
        foreign,
    ];
    for (at, change) in (1..).zip(changes) {
        assert_eq!(observer.begin(3_000, change), Ok(at));
    }
    exchange(&mut observer, &mut store, (3_000, 20_000), |_, _| {});
    let mut outcomes: Vec<_> = core::iter::from_fn(|| observer.poll_event())
        .filter_map(|event| match event {
            Event::Done { ticket, outcome } => Some((ticket, outcome)),
            _ => None,
        })
        .collect();
    outcomes.sort_by_key(|(ticket, _)| *ticket);
    let is_done = |at: usize, wanted: &[u8], number| match &outcomes[at].1 {
        Outcome::Done {
            sequence, state, ..
        } => (*sequence, &state[..]) == (number, wanted),
        _ => false,
    };
    assert!(is_done(0, &[9; 4], 2), "{outcomes:?}");
    assert!(is_done(1, &[8; 4], 3), "{outcomes:?}");
    assert_eq!(outcomes[2].1, Outcome::Mismatch { state: vec![8; 4] });
    assert_eq!(outcomes[3].1, Outcome::BadState { length: 4 });
    assert_eq!(outcomes[4].1, Outcome::Refused(RefusalCode::BadState));
    let (_, flow) = observer
        .flow(&key(1, 0))
        .next()
        .map(|it| (it.0, it.1.clone()))
        .unwrap();
    assert_eq!((flow.state, flow.lease), (vec![8; 4], Holding::Nobody));
}
