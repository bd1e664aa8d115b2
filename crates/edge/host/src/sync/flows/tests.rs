//! Flows of a store with one server, which says what a test has it say.

use super::*;

use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, channel};

use stateplane_wire::observe::{Answer, Holding, Message, Record, answer_flag};
use stateplane_wire::replication::{MessageType, Packet, Repr};

const STORE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4793);

/// µs between a request and what the store says.
const TRIP: u64 = 100;

fn key(class: u8, last: u8) -> Key {
    let mut key = Key::default();
    (key.0[0], key.0[15]) = (class, last);
    key
}

/// A store's only server: head and tail of the one chain, which grants all leases.
struct Store {
    /// States and their numbers, by shard and key.
    flows: BTreeMap<(u16, Key), (u32, Vec<u8>)>,
    /// Counted by each change.
    upto: u64,
    epoch: u32,
    /// Refuses requests for leases so.
    refuses: Option<RefusalCode>,
    is_mute: bool,
}

impl Store {
    fn new(flows: &[(u16, Key, &[u8])]) -> Store {
        let flow = |(shard, key, state): &(u16, Key, &[u8])| ((*shard, *key), (1, state.to_vec()));
        Store {
            flows: flows.iter().map(flow).collect(),
            upto: 1,
            epoch: 1,
            refuses: None,
            is_mute: false,
        }
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.is_mute {
            return None;
        }
        if let Ok(Message::Observe(question)) = Message::parse(bytes) {
            let mut body = Vec::new();
            for ((shard, key), (sequence, state)) in &self.flows {
                let record = Record {
                    shard: *shard,
                    key: *key,
                    epoch: self.epoch,
                    sequence: *sequence,
                    lease: Some(Holding::Nobody),
                    state,
                };
                record.append(&mut body).expect("it fits");
            }
            let is_new = question.stream != self.upto;
            let anew = if is_new { answer_flag::ANEW } else { 0 };
            let answer = Answer {
                flags: anew | answer_flag::LATEST | answer_flag::SCANNED,
                incarnation: question.incarnation,
                switch_id: question.switch_id,
                number: question.number,
                chain: question.chain,
                chains: 1,
                part: 0,
                parts: 1,
                scan_shard: 0,
                scan: 0,
                chain_epoch: 1,
                // Each change begins a stream, so that all records are told anew.
                stream: self.upto,
                upto: 1,
                applied: self.upto,
                body: if is_new { &body } else { &[] },
            };
            return Some(answer.to_vec());
        }
        let packet = Packet::new_checked(bytes).expect("a request");
        let request = Repr::parse(&packet);
        let reply = match request.message_type {
            MessageType::ProbeRequest => MessageType::ProbeReply,
            MessageType::LeaseRequest if self.refuses.is_some() => MessageType::Refusal,
            MessageType::LeaseRequest => MessageType::LeaseReply,
            MessageType::WriteRequest => MessageType::WriteReply,
            _ => return None,
        };
        let flow = self.flows.get_mut(&(request.shard, request.key));
        let (sequence, state) = match (flow, request.message_type) {
            (Some(flow), MessageType::WriteRequest) => {
                *flow = (request.sequence, request.state.to_vec());
                self.upto += 1;
                (request.sequence, Vec::new())
            }
            (Some(flow), MessageType::LeaseRequest) if self.refuses.is_none() => flow.clone(),
            _ => (0, Vec::new()),
        };
        let code = self.refuses.filter(|_| reply == MessageType::Refusal);
        let reply = Repr {
            message_type: reply,
            chain_epoch: 1,
            code: code.map_or(0, |code| code as u8),
            lease_epoch: self.epoch,
            sequence,
            state: &state,
            packet: None,
            ..request
        };
        Some(reply.to_vec().expect("it fits"))
    }
}

/// Flows that are followed, and their store.
struct Followed {
    flows: Flows,
    store: Store,
    now: u64,
}

impl Followed {
    fn new(store: Store, settings: impl FnOnce(&mut FlowsFile)) -> Followed {
        let mut file = FlowsFile {
            name: "nat".to_owned(),
            stores: vec![STORE],
            switch: 9,
            classes: Vec::new(),
            poll_us: 10_000,
            retry_us: 20_000,
            most_flows: 100,
            writes: true,
            snapshots: Vec::new(),
        };
        settings(&mut file);
        let flows = Flows::begin(1_000_000, &file, 0).expect("settings");
        Followed {
            flows,
            store,
            now: 1_000_000,
        }
    }

    /// With a complete view.
    fn complete(store: Store) -> Followed {
        let mut followed = Followed::new(store, |_| ());
        followed.go_on(50_000);
        assert!(followed.flows.report(followed.now).complete);
        followed
    }

    /// Lets so many µs pass.
    fn go_on(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            self.flows.turn(self.now);
            self.now += TRIP;
            while let Some((to, bytes)) = self.flows.poll_transmit() {
                assert_eq!(to, STORE);
                if let Some(answer) = self.store.answer(&bytes) {
                    self.flows.handle_datagram(self.now, STORE, &answer);
                }
            }
            for answer in self.flows.take_answers() {
                answer();
            }
        }
    }

    fn read(&mut self, request: FlowsRequest) -> Receiver<Result<FlowsReading, ViewError>> {
        let (give, take) = channel();
        let reply = move |said| give.send(said).expect("the test waits");
        self.flows.begin_read(self.now, request, Box::new(reply));
        take
    }

    fn change(
        &mut self,
        key: Key,
        shard: Option<u16>,
        operation: Operation,
    ) -> Receiver<Result<FlowsDone, ViewError>> {
        let (give, take) = channel();
        let change = FlowsChange {
            name: "nat".to_owned(),
            key,
            shard,
            operation,
            patience_us: 200_000,
        };
        let reply = move |said| give.send(said).expect("the test waits");
        self.flows.begin_change(self.now, change, Box::new(reply));
        take
    }

    /// The end of a change.
    fn changed(
        &mut self,
        key: Key,
        shard: Option<u16>,
        operation: Operation,
    ) -> Result<FlowsDone, ViewError> {
        let end = self.change(key, shard, operation);
        self.go_on(300_000);
        end.try_recv().expect("an end")
    }
}

fn any() -> FlowsRequest {
    FlowsRequest {
        patience_us: 100_000,
        ..FlowsRequest::default()
    }
}

/// Classes and states.
fn seen(reading: &FlowsReading) -> Vec<(u8, &[u8])> {
    let records = reading.records.iter();
    records.map(|it| (it.key.class(), &*it.state)).collect()
}

fn three() -> Store {
    let (a, b) = (key(1, 1), key(2, 2));
    Store::new(&[(0, a, b"aa"), (0, b, b"bb"), (3, b, b"cc")])
}

#[test]
fn all_flows_one_class_or_one_key_are_read() {
    let mut followed = Followed::complete(three());
    let class = FlowsRequest {
        class: Some(2),
        ..any()
    };
    let one = FlowsRequest {
        key: Some(key(1, 1)),
        ..any()
    };
    let (all, class, one) = (
        followed.read(any()),
        followed.read(class),
        followed.read(one),
    );
    followed.go_on(TRIP);
    let all = all.try_recv().expect("an answer").expect("a view");
    let every: [(u8, &[u8]); 3] = [(1, b"aa"), (2, b"bb"), (2, b"cc")];
    assert_eq!(seen(&all), every);
    assert_eq!((all.told.chains, all.told.flows), (1, 3));
    let class = class.try_recv().expect("an answer").expect("a view");
    assert_eq!(seen(&class), every[1..]);
    let one = one.try_recv().expect("an answer").expect("a view");
    assert_eq!(seen(&one), every[..1]);
    assert_eq!(followed.flows.report(followed.now).reads, 3);
}

#[test]
fn states_that_did_not_change_are_shared_with_earlier_readings() {
    let mut followed = Followed::complete(three());
    let before = followed.flows.reading(followed.now).expect("a view");
    let set = Operation::Set(b"xx".to_vec());
    followed.changed(key(1, 1), None, set).expect("a change");
    let after = followed.flows.reading(followed.now).expect("a view");
    assert_eq!(&*after.records[0].state, b"xx");
    for at in 1..3 {
        let (old, new) = (&before.records[at], &after.records[at]);
        assert!(Arc::ptr_eq(&old.state, &new.state), "{at}");
    }
    let again = followed.flows.reading(followed.now).expect("a view");
    assert!(Arc::ptr_eq(&after.records, &again.records));
}

#[test]
fn subscribers_are_told_a_view_whose_packing_took_long_for_a_while() {
    let mut followed = Followed::complete(three());
    followed.flows.reading(followed.now).expect("a view");
    let rests_until = followed.now + 1_000_000;
    let packed = followed.flows.packed.as_mut().expect("a view");
    packed.rests_until = rests_until;
    // As long as nothing changes, the view is as young as it is.
    followed.go_on(30_000);
    let same = followed.flows.present(followed.now).expect("a view");
    assert!(same.told.age_us < 15_000, "{:?}", same.told);
    let set = Operation::Set(b"xx".to_vec());
    followed.changed(key(1, 1), None, set).expect("a change");
    let (now, begun) = (followed.now, followed.now - 30_000);
    let old = followed.flows.present(now).expect("a view");
    assert_ne!(&*old.records[0].state, b"xx");
    assert!(old.told.age_us >= now - begun, "{:?}", old.told);
    let new = followed.flows.present(rests_until).expect("a view");
    assert_eq!(&*new.records[0].state, b"xx");
}

#[test]
fn a_read_for_which_the_view_is_too_old_asks_the_chains() {
    let mut followed = Followed::complete(three());
    followed.go_on(20 * TRIP);
    let young = FlowsRequest {
        max_age_us: Some(5 * TRIP),
        ..any()
    };
    let read = followed.read(young);
    followed.go_on(5 * TRIP);
    read.try_recv()
        .expect("before the next poll")
        .expect("a view");
}

#[test]
fn a_fresh_read_has_what_was_acknowledged_before_it() {
    let mut followed = Followed::complete(three());
    let state = (2, b"zz".to_vec());
    followed.store.flows.insert((0, key(1, 1)), state);
    followed.store.upto += 1;
    let fresh = FlowsRequest {
        fresh: true,
        ..any()
    };
    let read = followed.read(fresh.clone());
    followed.go_on(5 * TRIP);
    let reading = read.try_recv().expect("before the next poll");
    assert_eq!(seen(&reading.expect("a view"))[0], (1, &b"zz"[..]));
    followed.store.is_mute = true;
    let read = followed.read(fresh);
    followed.go_on(150_000);
    let unmet = read.try_recv().expect("an answer").expect_err("no answer");
    assert_eq!(unmet.code(), "SYNC022");
    let young = FlowsRequest {
        max_age_us: Some(1_000),
        ..any()
    };
    let read = followed.read(young);
    followed.go_on(150_000);
    let unmet = read.try_recv().expect("an answer").expect_err("too old");
    assert_eq!(unmet.code(), "SYNC022");
    assert_eq!(followed.flows.report(followed.now).unmet, 2);
}

#[test]
fn changes_are_made_as_an_owner_does_and_told() {
    let mut followed = Followed::complete(three());
    let made = |state: &[u8], sequence| FlowsDone::Made {
        epoch: 1,
        sequence,
        state: state.to_vec(),
    };
    let set = Operation::Set(b"yy".to_vec());
    let said = followed.changed(key(1, 1), None, set);
    assert_eq!(said, Ok(made(b"yy", 2)));
    let unequal = |expected: &[u8]| Operation::SetIfEqual {
        expected: expected.to_vec(),
        state: b"zz".to_vec(),
    };
    let state = b"yy".to_vec();
    let said = followed.changed(key(1, 1), None, unequal(b"aa"));
    assert_eq!(said, Ok(FlowsDone::Mismatch { state }));
    let said = followed.changed(key(1, 1), None, unequal(b"yy"));
    assert_eq!(said, Ok(made(b"zz", 3)));
    let add = |at, length| Operation::Add {
        at,
        length,
        amount: 2,
    };
    let said = followed.changed(key(2, 2), Some(3), add(0, 0));
    assert_eq!(said, Ok(made(b"ce", 2)), "to the end of the state");
    let said = followed.changed(key(2, 2), Some(0), add(0, 1));
    assert_eq!(said, Ok(made(b"db", 2)));
    let report = followed.flows.report(followed.now);
    assert_eq!((report.made, report.mismatched), (4, 1));
}

#[test]
fn changes_that_cannot_be_are_refused_with_codes() {
    let mut followed = Followed::complete(three());
    let set = || Operation::Set(b"yy".to_vec());
    let mut code = |key, shard, operation| {
        let refused = followed.changed(key, shard, operation);
        refused.expect_err("refused").code()
    };
    assert_eq!(code(key(7, 7), None, set()), "SYNC031");
    assert_eq!(code(key(2, 2), None, set()), "SYNC031", "two shards");
    let long = Operation::Set(b"yyy".to_vec());
    assert_eq!(code(key(1, 1), None, long), "SYNC033");
    let add = |at, length| Operation::Add {
        at,
        length,
        amount: 2,
    };
    assert_eq!(code(key(1, 1), None, add(1, 2)), "SYNC033");
    assert_eq!(code(key(1, 1), None, add(2, 0)), "SYNC033");
    assert_eq!(code(key(1, 1), None, add(0, 9)), "SYNC023");
    assert_eq!(code(key(7, 7), None, add(0, 1)), "SYNC031");
    followed.store.refuses = Some(RefusalCode::NotWritable);
    let refused = followed.changed(key(1, 1), None, set());
    let refused = refused.expect_err("shared leases");
    assert_eq!(refused.code(), "SYNC032");
    assert!(refused.to_string().contains("only read"), "{refused}");
    followed.store.is_mute = true;
    let late = followed.changed(key(1, 1), None, set());
    assert_eq!(late.expect_err("no lease").code(), "SYNC035");
}

#[test]
fn nothing_is_changed_without_a_view_or_where_the_file_forbids_it() {
    let set = || Operation::Set(b"yy".to_vec());
    let mut blind = Followed::new(three(), |_| ());
    blind.store.is_mute = true;
    let refused = blind.changed(key(1, 1), None, set());
    assert_eq!(refused.expect_err("no view").code(), "SYNC021");
    let read = blind.read(any());
    blind.go_on(150_000);
    let refused = read.try_recv().expect("an answer");
    assert_eq!(refused.expect_err("no view").code(), "SYNC021");
    let mut reader = Followed::new(three(), |file| file.writes = false);
    reader.go_on(50_000);
    let refused = reader.changed(key(1, 1), None, set());
    assert_eq!(refused.expect_err("no writes").code(), "SYNC034");
}

#[test]
fn as_many_requests_wait_as_may_and_all_are_told_when_the_engine_stands_by() {
    let mut followed = Followed::complete(three());
    followed.store.is_mute = true;
    let fresh = FlowsRequest {
        fresh: true,
        ..any()
    };
    let mut reads = Vec::new();
    let mut changes = Vec::new();
    for _ in 0..=MOST_WAITING {
        reads.push(followed.read(fresh.clone()));
        let set = Operation::Set(b"yy".to_vec());
        changes.push(followed.change(key(1, 1), None, set));
    }
    assert_eq!(followed.flows.waiting(), 2 * MOST_WAITING);
    let busy = reads.pop().expect("a read").try_recv().expect("an answer");
    assert_eq!(busy.expect_err("too many").code(), "SYNC026");
    let busy = changes.pop().expect("a change").try_recv();
    let busy = busy.expect("an answer");
    assert_eq!(busy.expect_err("too many").code(), "SYNC026");
    followed.flows.give_up(&ViewError::Standby { leader: None });
    for read in reads {
        let refused = read.try_recv().expect("an answer");
        assert_eq!(refused.expect_err("stands by").code(), "SYNC027");
    }
    for change in changes {
        let refused = change.try_recv().expect("an answer");
        assert_eq!(refused.expect_err("stands by").code(), "SYNC024");
    }
}
