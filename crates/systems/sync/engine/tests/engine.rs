//! The engine against messages that a switch would send, and against any bytes.

use proptest::prelude::*;
use stateplane_sync::{Engine, Event, Settings, WriteError};
use stateplane_wire::sync::{
    CutKind, Frozen, HEADER_LENGTH, MessageType, Operation, Outcome, Packet, Repr, UNBOUNDED,
    Value, Values,
};

const INCARNATION: u32 = 77;

/// Frozen values that the switch has in a message at most.
const FETCH: u16 = 3;

fn settings() -> Settings {
    Settings {
        group: 3,
        locations: 4,
        batch: 4,
        poll_us: 100,
        retry_us: 500,
        term: 9,
        nonce: 5,
    }
}

/// An engine, and what the switch would echo.
struct Bench {
    engine: Engine,
    now: u64,
    starter: u64,
    poll: u64,
    sent: Vec<(MessageType, u64, u64)>,
}

impl Bench {
    /// An engine that has sent START.
    fn new() -> Bench {
        let mut bench = Bench {
            engine: Engine::new(settings(), 0, []).expect("good settings"),
            now: 0,
            starter: 0,
            poll: 0,
            sent: Vec::new(),
        };
        bench.pass(1);
        bench
    }

    /// An engine with a view that begins at position 10 and stamp 100, and is complete.
    fn complete() -> Bench {
        let mut bench = Bench::new();
        bench.receive(MessageType::Started, &[], |message| {
            message.stamp = 100;
            message.position = 10;
            (message.before, message.after) = (50, 50);
        });
        bench.update(101, 10, &[(0, 1), (1, 1), (2, 1), (3, 1)], 50, 54);
        bench
    }

    /// Lets time pass, and takes what the engine sends.
    fn pass(&mut self, time: u64) {
        self.now += time;
        self.engine.handle_timeout(self.now);
        self.take();
    }

    /// Takes what the engine sends.
    fn take(&mut self) {
        while let Some(bytes) = self.engine.poll_transmit() {
            let packet = Packet::new_checked(&bytes).expect("a message");
            let message = Repr::parse(&packet);
            assert_eq!((message.group, message.term), (3, 9));
            self.starter = message.starter;
            self.poll = self.poll.max(message.poll);
            let position = message.position;
            self.sent
                .push((message.message_type, position, message.number));
        }
    }

    fn was_sent(&self, kind: MessageType) -> usize {
        self.sent.iter().filter(|(one, ..)| *one == kind).count()
    }

    /// Positions of the messages of a kind that were sent.
    fn asked_from(&self, kind: MessageType) -> Vec<u64> {
        let of_kind = self.sent.iter().filter(|(one, ..)| *one == kind);
        of_kind.map(|(_, position, _)| *position).collect()
    }

    fn receive(
        &mut self,
        kind: MessageType,
        values: &[(u32, u64)],
        fill: impl FnOnce(&mut Repr<'_>),
    ) {
        let mut bytes = Vec::new();
        for &(index, value) in values {
            Value { index, value }.push(&mut bytes);
        }
        let mut message = Repr {
            group: 3,
            incarnation: INCARNATION,
            starter: self.starter,
            poll: self.poll,
            fetch: FETCH,
            values: Values::new(&bytes),
            ..Repr::new(kind)
        };
        fill(&mut message);
        let bytes = message.to_vec().expect("it fits");
        self.engine.handle_datagram(self.now, &bytes);
    }

    /// Frozen values of locations from `first` on, at cut `epoch`.
    fn fetched(&mut self, epoch: u32, first: u64, values: &[u64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_be_bytes()).collect();
        let message = Repr {
            group: 3,
            incarnation: INCARNATION,
            starter: self.starter,
            epoch,
            position: first,
            frozen: Frozen::new(&bytes),
            ..Repr::new(MessageType::Fetched)
        };
        let bytes = message.to_vec().expect("it fits");
        self.engine.handle_datagram(self.now, &bytes);
    }

    fn update(
        &mut self,
        stamp: u64,
        position: u64,
        values: &[(u32, u64)],
        before: u64,
        after: u64,
    ) {
        self.receive(MessageType::Update, values, |message| {
            message.stamp = stamp;
            message.position = position;
            (message.before, message.after) = (before, after);
        });
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.engine.poll_event()).collect()
    }
}

#[test]
fn settings_out_of_range_are_refused() {
    for (field, wrong) in [
        (
            "locations",
            Settings {
                locations: 0,
                ..settings()
            },
        ),
        (
            "batch",
            Settings {
                batch: 33,
                ..settings()
            },
        ),
        (
            "poll_us",
            Settings {
                poll_us: 0,
                ..settings()
            },
        ),
        (
            "retry_us",
            Settings {
                retry_us: 0,
                ..settings()
            },
        ),
        (
            "term",
            Settings {
                term: 0,
                ..settings()
            },
        ),
    ] {
        let error = Engine::new(wrong, 0, []).expect_err(field);
        assert_eq!((error.field, error.code()), (field, "SYNC001"));
    }
}

#[test]
fn a_start_is_repeated_until_it_is_answered() {
    let mut bench = Bench::new();
    bench.pass(200);
    assert_eq!(bench.was_sent(MessageType::Start), 1);
    bench.pass(500);
    assert_eq!(bench.was_sent(MessageType::Start), 2);
    assert_eq!(bench.engine.told(bench.now), None);
}

#[test]
fn a_view_is_complete_when_every_location_has_a_later_value() {
    let mut bench = Bench::complete();
    assert_eq!(bench.engine.values(), [1; 4]);
    assert!(bench.events().contains(&Event::Complete { generation: 1 }));
    let told = bench.engine.told(bench.now).expect("a complete view");
    assert_eq!((told.bound, told.all_but, told.stamp), (Some(0), 0, 101));
}

#[test]
fn answers_to_another_start_change_nothing() {
    let mut bench = Bench::complete();
    bench.starter += 1;
    bench.update(102, 14, &[(0, 9)], 54, 62);
    assert_eq!(bench.engine.values(), [1; 4]);
}

#[test]
fn another_start_of_the_switch_begins_a_generation() {
    let mut bench = Bench::complete();
    bench.receive(MessageType::Refused, &[], |message| {
        message.incarnation = INCARNATION + 1;
        message.outcome = Outcome::OtherIncarnation as u8;
    });
    assert_eq!(bench.engine.told(bench.now), None);
    let before = bench.starter;
    bench.pass(100);
    assert!(bench.starter > before);
}

#[test]
fn an_older_value_does_not_take_the_place_of_a_newer_one() {
    let mut bench = Bench::complete();
    bench.update(103, 15, &[(0, 30)], 63, 83);
    bench.update(102, 14, &[(0, 10)], 54, 63);
    assert_eq!(bench.engine.values()[0], 30);
    let told = bench.engine.told(bench.now).expect("a complete view");
    assert_eq!((told.bound, told.stamp), (Some(0), 103));
}

#[test]
fn what_is_lost_is_in_the_bound_until_a_newer_value_of_its_location_came() {
    let mut bench = Bench::complete();
    bench.update(104, 16, &[(1, 2)], 90, 91);
    let told = bench.engine.told(bench.now).expect("a complete view");
    assert_eq!((told.bound, told.all_but), (Some(36), 2));
    bench.pass(100);
    bench.pass(100);
    let asked = (MessageType::Repair, 14, 0);
    assert!(bench.sent.contains(&asked));
    bench.receive(MessageType::Repaired, &[(0, 0), (2, 0)], |message| {
        message.stamp = 104;
        message.position = 14;
    });
    bench.update(105, 17, &[(0, 40)], 91, 91);
    assert_eq!(
        bench.engine.told(bench.now).and_then(|told| told.bound),
        Some(36)
    );
    bench.update(106, 18, &[(2, 5)], 91, 91);
    assert_eq!(
        bench.engine.told(bench.now).and_then(|told| told.bound),
        Some(0)
    );
}

#[test]
fn what_is_not_answered_is_asked_again() {
    let mut bench = Bench::complete();
    bench.update(104, 16, &[], 90, 90);
    for _ in 0..10 {
        bench.pass(100);
    }
    assert_eq!(bench.was_sent(MessageType::Repair), 2);
}

#[test]
fn a_distance_that_is_not_counted_makes_the_bound_unbounded() {
    let mut bench = Bench::complete();
    bench.receive(MessageType::Update, &[], |message| {
        message.stamp = 102;
        message.position = 14;
        (message.before, message.after) = (54, 54);
        message.bound = UNBOUNDED;
    });
    assert_eq!(
        bench.engine.told(bench.now).map(|told| told.bound),
        Some(None)
    );
}

#[test]
fn age_counts_from_the_poll_that_the_mark_echoes() {
    let mut bench = Bench::complete();
    bench.pass(100);
    let poll = bench.poll;
    let sent = bench.now;
    bench.pass(100);
    bench.receive(MessageType::Update, &[], |message| {
        message.stamp = 102;
        message.position = 14;
        message.poll = poll;
    });
    bench.now += 30;
    let told = bench.engine.told(bench.now).expect("a complete view");
    assert_eq!(told.age_us, bench.now - sent);
}

#[test]
fn a_write_ends_when_the_view_has_it() {
    let mut bench = Bench::complete();
    bench.events();
    let ticket = bench.engine.write(Operation::Set, &[(0, 7), (2, 8)], 0);
    let ticket = ticket.expect("a write");
    bench.pass(100);
    bench.receive(MessageType::Written, &[(0, 7), (2, 8)], |message| {
        message.number = 1;
        message.outcome = Outcome::Done as u8;
        message.stamp = 101;
    });
    bench.update(102, 14, &[(0, 7)], 54, 60);
    assert_eq!(bench.events(), []);
    bench.update(103, 15, &[(2, 8)], 60, 67);
    let outcome = Some(Outcome::Done);
    assert_eq!(bench.events(), [Event::Written { ticket, outcome }]);
}

#[test]
fn a_write_is_unknown_when_the_switch_starts_anew() {
    let mut bench = Bench::complete();
    bench.events();
    let ticket = bench
        .engine
        .write(Operation::Add, &[(1, 1)], 0)
        .expect("a write");
    bench.pass(100);
    bench.receive(MessageType::Update, &[], |message| message.incarnation += 1);
    let outcome = None;
    assert_eq!(bench.events(), [Event::Written { ticket, outcome }]);
}

#[test]
fn writes_that_cannot_be_made_are_refused() {
    let mut bench = Bench::complete();
    let mut write = |operation, values: &[(u32, u64)]| {
        bench
            .engine
            .write(operation, values, 0)
            .map_err(|error| error.code())
    };
    assert_eq!(write(Operation::Set, &[]), Err("SYNC011"));
    assert_eq!(write(Operation::Set, &[(0, 0); 5]), Err("SYNC011"));
    assert_eq!(write(Operation::SetIfEqual, &[(0, 0); 2]), Err("SYNC011"));
    assert_eq!(write(Operation::Set, &[(4, 0)]), Err("SYNC012"));
    while write(Operation::Set, &[(0, 0)]).is_ok() {}
    assert_eq!(write(Operation::Set, &[(0, 0)]), Err("SYNC010"));
}

#[test]
fn a_fenced_engine_does_nothing_more() {
    let mut bench = Bench::complete();
    bench.events();
    bench.receive(MessageType::Refused, &[], |message| {
        message.outcome = Outcome::Fenced as u8;
        message.term = 10;
    });
    assert_eq!(bench.events(), [Event::Fenced { term: 10 }]);
    assert_eq!(bench.engine.poll_timeout(), None);
    let write = bench.engine.write(Operation::Set, &[(0, 0)], 0);
    assert_eq!(write, Err(WriteError::Fenced));
}

#[test]
fn a_filled_cut_fills_the_view_and_its_window_is_fetched_and_kept() {
    let mut bench = Bench::complete();
    bench.events();
    assert!(bench.engine.cut(CutKind::Filled, 6));
    assert!(!bench.engine.cut(CutKind::Carried, 0), "one waits");
    bench.pass(100);
    assert_eq!(bench.was_sent(MessageType::Cut), 1);
    bench.receive(MessageType::Update, &[(1, 7)], |message| {
        message.stamp = 103;
        message.position = 15;
        (message.before, message.after) = (60, 61);
        message.epoch = 1;
        message.kind = CutKind::Filled as u8;
        message.operand = 6;
    });
    assert_eq!(bench.engine.values(), [6, 7, 6, 6]);
    // A value of the epoch before comes late.
    bench.update(102, 14, &[(0, 5)], 54, 60);
    assert_eq!(bench.engine.values(), [6, 7, 6, 6]);
    bench.receive(MessageType::CutMade, &[], |message| {
        (message.epoch, message.number) = (1, 9);
    });
    bench.pass(100);
    let fetches: Vec<u64> = bench.asked_from(MessageType::Fetch);
    assert_eq!(fetches, [0, 3]);
    bench.fetched(1, 3, &[1]);
    bench.fetched(1, 0, &[5, 1, 1]);
    let window = Event::Window {
        incarnation: INCARNATION,
        epoch: 1,
        values: vec![5, 1, 1, 1],
    };
    assert_eq!(bench.events(), [Event::Cut { epoch: 1, term: 9 }, window]);
    // The next cut waits until the window is kept.
    assert!(bench.engine.cut(CutKind::Carried, 0));
    bench.pass(600);
    assert_eq!(bench.was_sent(MessageType::Cut), 1);
    bench.engine.window_kept(INCARNATION, 1);
    bench.pass(600);
    assert_eq!(bench.was_sent(MessageType::Cut), 2);
}

/// The switch hears that a window is kept with the next cut at the latest, and not only by the next
/// poll that is due.
#[test]
fn a_cut_tells_first_that_the_last_window_is_kept() {
    let mut bench = Bench::complete();
    bench.receive(MessageType::Update, &[], |message| {
        message.stamp = 102;
        message.position = 14;
        (message.before, message.after) = (54, 54);
        message.epoch = 1;
        message.kind = CutKind::Carried as u8;
    });
    bench.pass(100);
    bench.fetched(1, 0, &[1, 1, 1]);
    bench.fetched(1, 3, &[1]);
    let sent = |bench: &mut Bench| {
        let sent = bench.sent.drain(..).map(|(kind, ..)| kind);
        sent.collect::<Vec<_>>()
    };
    bench.sent.clear();
    bench.engine.window_kept(INCARNATION, 1);
    assert!(bench.engine.cut(CutKind::Carried, 0));
    bench.engine.proceed(bench.now);
    bench.take();
    assert_eq!(sent(&mut bench), [MessageType::Poll, MessageType::Cut]);
    // It knows then: the cut is asked for again with the poll that is due.
    bench.pass(501);
    assert_eq!(sent(&mut bench), [MessageType::Poll, MessageType::Cut]);
}

/// Of a switch that is read only the engine asks neither for writes nor for cuts, and ends those that
/// waited for the view to begin (rule 32).
#[test]
fn a_switch_that_is_read_only_is_asked_for_no_change() {
    let mut bench = Bench::new();
    let [one, more] = [
        bench.engine.write(Operation::Set, &[(0, 7)], 0),
        bench.engine.write_staged(&[(1, 7)]),
    ];
    assert!(bench.engine.cut(CutKind::Carried, 0));
    bench.receive(MessageType::Started, &[], |message| message.operation = 1);
    assert!(bench.engine.is_read_only());
    let outcome = Some(Outcome::NotAllowed);
    let ended = [one, more].map(|ticket| Event::Written {
        ticket: ticket.expect("taken"),
        outcome,
    });
    assert_eq!(bench.events()[1..], ended);
    let write = bench.engine.write(Operation::Set, &[(0, 7)], 0);
    let refused = write.expect_err("it is refused");
    assert_eq!((refused, refused.code()), (WriteError::ReadOnly, "SYNC014"));
    let staged = bench.engine.write_staged(&[(1, 7)]);
    assert_eq!(staged, Err(WriteError::ReadOnly));
    assert!(!bench.engine.cut(CutKind::Filled, 0) && !bench.engine.reset(0));
    bench.pass(600);
    for kind in [MessageType::Write, MessageType::Stage, MessageType::Cut] {
        assert_eq!(bench.was_sent(kind), 0);
    }
    // A view begins of a switch that is not.
    bench.receive(MessageType::Update, &[], |message| message.incarnation = 78);
    bench.pass(600);
    bench.receive(MessageType::Started, &[], |message| {
        message.incarnation = 78;
    });
    assert!(bench.engine.write(Operation::Set, &[(0, 7)], 0).is_ok());
    // It refuses all the same, so that the view begins anew, and what was sent has no known outcome.
    bench.pass(600);
    assert_eq!(bench.was_sent(MessageType::Write), 1);
    bench.events();
    bench.receive(MessageType::Refused, &[], |message| {
        message.incarnation = 78;
        message.outcome = Outcome::NotAllowed as u8;
    });
    let ended = bench.events();
    assert!(
        matches!(ended[..], [Event::Written { outcome: None, .. }]),
        "{ended:?}"
    );
}

/// All of a staged write goes to the switch, then its cut, and the view crosses that. Values from before
/// the cut change nothing where it gave another, and something elsewhere.
#[test]
fn a_staged_write_ends_when_the_view_crosses_its_cut() {
    let mut bench = Bench::complete();
    bench.events();
    let ticket = bench.engine.write_staged(&[(0, 7), (2, 8), (2, 9)]);
    let ticket = ticket.expect("a write");
    bench.pass(100);
    assert_eq!(bench.asked_from(MessageType::Stage), [0]);
    assert_eq!(bench.was_sent(MessageType::Cut), 0);
    bench.receive(MessageType::Staged, &[], |message| {
        (message.number, message.position) = (1, 0);
    });
    bench.pass(100);
    assert_eq!(bench.was_sent(MessageType::Cut), 1);
    bench.receive(MessageType::Update, &[], |message| {
        message.stamp = 104;
        message.position = 16;
        (message.before, message.after) = (62, 62);
        message.epoch = 1;
        message.kind = CutKind::Staged as u8;
    });
    let outcome = Some(Outcome::Done);
    let (incarnation, epoch) = (INCARNATION, 1);
    assert_eq!(
        bench.events(),
        [
            Event::Written { ticket, outcome },
            Event::Waived { incarnation, epoch }
        ]
    );
    bench.update(103, 14, &[(1, 5), (2, 6)], 54, 62);
    assert_eq!(bench.engine.values(), [7, 5, 9, 1]);
    bench.receive(MessageType::CutMade, &[], |message| {
        (message.epoch, message.number) = (1, 9);
    });
    bench.pass(600);
    assert_eq!(bench.events(), []);
    assert_eq!(
        bench.was_sent(MessageType::Fetch),
        0,
        "nobody wants its window"
    );
    assert_eq!(bench.was_sent(MessageType::Cut), 1);
}

/// A cut that is asked for when the last is made, and the view has not crossed it, is another one.
#[test]
fn the_next_cut_waits_until_the_view_has_crossed_the_last() {
    let mut bench = Bench::complete();
    bench.events();
    assert!(bench.engine.cut(CutKind::Carried, 0));
    bench.pass(100);
    bench.receive(MessageType::CutMade, &[], |message| {
        (message.epoch, message.number) = (1, 9);
    });
    assert_eq!(bench.events(), [Event::Cut { epoch: 1, term: 9 }]);
    assert!(bench.engine.reset(7));
    bench.pass(600);
    assert_eq!(bench.was_sent(MessageType::Cut), 1);
    bench.receive(MessageType::Update, &[], |message| {
        message.stamp = 102;
        message.position = 14;
        message.epoch = 1;
        message.kind = CutKind::Carried as u8;
    });
    bench.engine.window_kept(INCARNATION, 1);
    bench.pass(600);
    assert_eq!(bench.was_sent(MessageType::Cut), 2);
}

#[test]
fn a_staged_cut_that_the_engine_did_not_ask_for_begins_a_view() {
    let mut bench = Bench::complete();
    bench.receive(MessageType::Update, &[], |message| {
        message.stamp = 102;
        message.position = 14;
        message.epoch = 1;
        message.kind = CutKind::Staged as u8;
    });
    assert_eq!(bench.engine.told(bench.now), None);
}

#[test]
fn staged_writes_that_cannot_be_made_are_refused() {
    let mut bench = Bench::complete();
    let mut write = |values: &[(u32, u64)]| {
        let refused = bench.engine.write_staged(values);
        refused.map_err(|error| error.code()).err()
    };
    assert_eq!(write(&[]), Some("SYNC011"));
    assert_eq!(write(&[(0, 1), (4, 1)]), Some("SYNC012"));
    while write(&[(0, 1)]).is_none() {}
    assert_eq!(write(&[(0, 1)]), Some("SYNC010"));
}

/// Of a window what came in part, or for locations that the group has not, is asked for again; what
/// is of another cut changes nothing.
#[test]
fn a_window_is_told_when_each_location_has_come() {
    let mut bench = Bench::complete();
    bench.events();
    assert!(bench.engine.cut(CutKind::Carried, 0));
    bench.pass(100);
    bench.receive(MessageType::Update, &[], |message| {
        message.stamp = 102;
        message.position = 14;
        message.epoch = 1;
        message.kind = CutKind::Carried as u8;
    });
    bench.pass(100);
    bench.fetched(2, 0, &[9, 9, 9]);
    bench.fetched(1, 3, &[8, 8]);
    assert_eq!(bench.engine.counters().beyond, 1);
    bench.fetched(1, 0, &[5]);
    bench.fetched(1, 3, &[6]);
    bench.pass(600);
    assert_eq!(bench.asked_from(MessageType::Fetch), [0, 3, 0]);
    assert_eq!(bench.events(), []);
    bench.fetched(1, 0, &[5, 4, 3]);
    let window = Event::Window {
        incarnation: INCARNATION,
        epoch: 1,
        values: vec![5, 4, 3, 6],
    };
    assert_eq!(bench.events(), [window]);
}

/// A location whose only value came from before a cut that filled it has what the cut gave it: the
/// switch sends it no more, and the view is complete.
#[test]
fn a_value_from_before_a_fill_counts_as_come() {
    let mut bench = Bench::new();
    bench.receive(MessageType::Started, &[], |message| {
        message.stamp = 100;
        message.position = 10;
        (message.before, message.after) = (50, 50);
    });
    bench.receive(MessageType::Update, &[(3, 7)], |message| {
        message.stamp = 102;
        message.position = 13;
        (message.before, message.after) = (53, 54);
        message.epoch = 1;
        message.kind = CutKind::Filled as u8;
        message.operand = 6;
    });
    assert_eq!(bench.engine.told(bench.now), None);
    bench.update(101, 10, &[(0, 1), (1, 1), (2, 1)], 50, 53);
    assert_eq!(bench.engine.values(), [6, 6, 6, 7]);
    let told = bench.engine.told(bench.now).expect("a complete view");
    assert_eq!((told.bound, told.all_but), (Some(0), 0));
}

proptest! {
    /// Whatever a switch, or who pretends to be one, sends: nothing panics, and what waits for the
    /// driver is bounded.
    #[test]
    fn any_messages_are_taken_or_ignored(
        messages in proptest::collection::vec(
            (any::<u8>(), any::<[u8; 8]>(), proptest::collection::vec(any::<u8>(), 0..60)),
            0..80,
        ),
    ) {
        let mut bench = Bench::complete();
        for (kind, noise, values) in messages {
            let kind = MessageType::ALL[usize::from(kind) % MessageType::ALL.len()];
            let mut message = Repr {
                group: 3,
                incarnation: INCARNATION + u32::from(noise[0] == 0),
                starter: bench.starter,
                stamp: 100 + u64::from(noise[1]),
                position: u64::from(noise[2]) << (noise[3] % 60),
                before: u64::from(noise[4]) << (noise[3] % 60),
                after: u64::from(noise[5]) << (noise[6] % 60),
                epoch: u32::from(noise[7] % 4),
                outcome: noise[6],
                number: u64::from(noise[5] % 4),
                kind: noise[4] % 4,
                ..Repr::new(kind)
            };
            match kind {
                MessageType::Fetched => message.frozen = Frozen::new(&values),
                _ => message.values = Values::new(&values),
            }
            let bytes = message.to_vec().expect("it fits");
            prop_assert!(bytes.len() >= HEADER_LENGTH);
            bench.engine.handle_datagram(bench.now, &bytes);
            bench.pass(u64::from(noise[7]));
            bench.engine.told(bench.now);
        }
        prop_assert!(bench.sent.len() < 80 * 200);
    }
}
