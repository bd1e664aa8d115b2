//! The agent against a chain in memory.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use chain::{GROUPS, SWITCH, Service};
use stateplane_coordination::{
    Action, Answer, Chain, Event, Fate, Operation, Owner, Place, Reading, Reason, Refused, Ticket,
    When, Write,
};
use stateplane_wire::coordination::{Key, MessageType, Outcome, Packet, Repr, flag};

fn key(number: u8) -> Place {
    Place::of(Key([number; 16]))
}

fn done(event: Option<&Event>) -> &Answer {
    match event {
        Some(Event::Answered { answer, .. }) => answer,
        other => panic!("{other:?} is no answer"),
    }
}

/// The answer of one operation on a quiet network.
fn ask(
    service: &mut Service,
    agent: &mut stateplane_coordination::Agent,
    operation: Operation,
) -> Answer {
    agent.submit(service.now, operation).expect("submitted");
    service.exchange(agent);
    done(service.events(agent).last()).clone()
}

#[test]
fn what_is_written_is_read() {
    let mut service = Service::new();
    let mut agent = service.agent(2);
    let wrote = ask(&mut service, &mut agent, Operation::put(key(1), b"one"));
    assert_eq!(
        (wrote.outcome, wrote.record.is_none()),
        (Outcome::Done, true)
    );
    let read = ask(&mut service, &mut agent, Operation::read(key(1)));
    let record = read.record.expect("a record");
    assert_eq!(
        (record.value.as_slice(), record.number),
        (b"one".as_slice(), wrote.number)
    );
    let absent = ask(&mut service, &mut agent, Operation::read(key(2)));
    assert_eq!((absent.outcome, absent.record), (Outcome::Absent, None));
}

#[test]
fn conditions_are_the_switches() {
    let mut service = Service::new();
    let mut agent = service.agent(2);
    let mut write = |value: &[u8], when| {
        let operation = Operation::write(key(1), value, when);
        let answer = ask(&mut service, &mut agent, operation);
        (
            answer.outcome,
            answer.number,
            answer.record.map(|record| record.value),
        )
    };
    assert_eq!(write(b"a", When::Present).0, Outcome::Mismatch);
    let (outcome, number, _) = write(b"a", When::Absent);
    assert_eq!(outcome, Outcome::Done);
    let kept = Some(b"a".to_vec());
    assert_eq!(
        write(b"b", When::Absent),
        (Outcome::Mismatch, number + 1, kept)
    );
    assert_eq!(write(b"b", When::Number(number)).0, Outcome::Done);
    assert_eq!(write(b"c", When::Number(number)).0, Outcome::Mismatch);
    assert_eq!(write(b"c", When::Value(b"b".to_vec())).0, Outcome::Done);
}

#[test]
fn long_values_are_compared_by_the_agent() {
    let mut service = Service::new();
    let (mut agent, mut other) = (service.agent(2), service.agent(2));
    let long = [7; 40];
    ask(&mut service, &mut agent, Operation::put(key(1), &long));
    let wrong = Operation::write(key(1), b"new", When::Value(vec![8; 40]));
    assert_eq!(
        ask(&mut service, &mut agent, wrong).outcome,
        Outcome::Mismatch
    );
    // Somebody writes the same value between the agent's reading and its writing.
    let right = Operation::write(key(1), b"new", When::Value(long.to_vec()));
    agent.submit(0, right).expect("submitted");
    let (_, read) = agent.poll_transmit().expect("a read");
    let (_, reply) = service.handle(&read).expect("its reply");
    agent.handle_datagram(0, SWITCH, &reply);
    ask(&mut service, &mut other, Operation::put(key(1), &long));
    assert_eq!(
        done(service.events(&mut agent).last()).outcome,
        Outcome::Done
    );
    assert_eq!(agent.counters().reread, 1);
}

#[test]
fn a_lost_reply_is_asked_for_again_and_not_executed_twice() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    service.lose_replies = 3;
    agent
        .submit(0, Operation::put(key(1), b"one"))
        .expect("submitted");
    service.run(&mut agent, 1_000_000);
    let answer = done(service.events(&mut agent).last()).clone();
    assert_eq!((answer.outcome, answer.number), (Outcome::Done, 1));
    assert_eq!(service.executed.len(), 1);
    assert_eq!(agent.counters().repeated, 3);
}

#[test]
fn busy_is_never_final() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    service.busy = 5;
    agent
        .submit(0, Operation::put(key(1), b"one"))
        .expect("submitted");
    service.run(&mut agent, 1_000_000);
    assert_eq!(
        done(service.events(&mut agent).last()).outcome,
        Outcome::Done
    );
    assert_eq!(agent.counters().busy, 5);
}

/// Rule 6: the lane's next request after an unknown outcome tells what became of it.
#[test]
fn an_unknown_outcome_is_resolved() {
    for (lost_requests, lost_replies) in [(1000, 0), (0, 1000)] {
        let mut service = Service::new();
        let mut agent = service.agent(1);
        (service.lose_requests, service.lose_replies) = (lost_requests, lost_replies);
        let ticket = agent
            .submit(0, Operation::put(key(1), b"one"))
            .expect("submitted");
        service.run(&mut agent, 5_000_000);
        let refusal = None;
        assert_eq!(
            service.events(&mut agent),
            [Event::Unknown { ticket, refusal }]
        );
        // What the lane is asked for meanwhile waits.
        let next = agent
            .submit(service.now, Operation::put(key(1), b"two"))
            .expect("submitted");
        service.run(&mut agent, 5_100_000);
        assert_eq!(service.events(&mut agent), []);
        (service.lose_requests, service.lose_replies) = (0, 0);
        service.run(&mut agent, 6_000_000);
        let events = service.events(&mut agent);
        let fate = match lost_requests {
            0 => Fate::Executed {
                outcome: Outcome::Done,
                number: 1,
                token: 0,
            },
            _ => Fate::Never,
        };
        assert_eq!(events[0], Event::Resolved { ticket, fate });
        assert_eq!(events[1].ticket(), Some(next));
        assert_eq!(done(events.last()).outcome, Outcome::Done);
    }
}

#[test]
fn a_read_in_vain_expires() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    service.lose_replies = 10_000;
    let ticket = agent.submit(0, Operation::read(key(1))).expect("submitted");
    service.run(&mut agent, 5_000_000);
    let refusal = None;
    assert_eq!(
        service.events(&mut agent),
        [Event::Expired { ticket, refusal }]
    );
    assert_eq!(agent.poll_timeout(), None);
}

/// Rule 5: a lane has one request in flight in a group; what keeps to it is made in order.
#[test]
fn a_lane_bears_one_request_at_a_time() {
    let mut service = Service::new();
    let mut agent = service.agent(2);
    let owner = Owner {
        session: 1,
        handle: 1,
    };
    agent
        .submit(0, Operation::acquire(key(1), owner, false))
        .expect("submitted");
    agent
        .submit(0, Operation::release(key(1), owner))
        .expect("submitted");
    let (_, first) = agent.poll_transmit().expect("the first");
    assert_eq!(agent.poll_transmit(), None);
    let (_, reply) = service.handle(&first).expect("its reply");
    agent.handle_datagram(0, SWITCH, &reply);
    assert!(agent.poll_transmit().is_some());
    // Others take other lanes, and wait if there is none.
    agent
        .submit(0, Operation::put(key(1), b"x"))
        .expect("submitted");
    assert!(agent.poll_transmit().is_some());
    agent
        .submit(0, Operation::put(key(1), b"y"))
        .expect("submitted");
    assert_eq!(agent.poll_transmit(), None);
}

/// Rule 10.
#[test]
fn a_reply_of_an_older_epoch_than_known_is_dropped() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    let group = agent.group(&key(1));
    let newer = |epoch| Chain {
        epoch,
        ..chain::chain(group)
    };
    agent.learn(0, newer(3));
    agent.learn(0, newer(2));
    assert_eq!(agent.chain(group).expect("known").epoch, 3);
    agent.submit(0, Operation::read(key(1))).expect("submitted");
    // The switch of the test is of epoch 1.
    service.exchange(&mut agent);
    assert_eq!((agent.counters().outdated, agent.pending()), (1, 1));
}

#[test]
fn a_reply_teaches_its_chain() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    agent.submit(0, Operation::read(key(1))).expect("submitted");
    let (_, request) = agent.poll_transmit().expect("a read");
    let (_, reply) = service.handle(&request).expect("its reply");
    let packet = Packet::new_checked(&reply).expect("well-formed");
    let mut repr = Repr::parse(&packet);
    let third = std::net::Ipv4Addr::new(10, 0, 0, 3);
    repr.epoch = 7;
    repr.set_chain([*SWITCH.ip(), third]);
    agent.handle_datagram(0, SWITCH, &repr.to_vec().expect("fits"));
    let known = agent.chain(agent.group(&key(1))).expect("known");
    assert_eq!((known.epoch, known.joining), (7, Some(third)));
    assert_eq!(
        done(service.events(&mut agent).last()).outcome,
        Outcome::Absent
    );
}

#[test]
fn moved_asks_the_next_switch_and_the_controller() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    let group = agent.group(&key(1));
    let second = std::net::Ipv4Addr::new(10, 0, 0, 2);
    let members = vec![*SWITCH.ip(), second];
    agent.learn(
        0,
        Chain {
            epoch: 2,
            members,
            ..chain::chain(group)
        },
    );
    agent
        .submit(0, Operation::put(key(1), b"x"))
        .expect("submitted");
    let (to, request) = agent.poll_transmit().expect("a request");
    assert_eq!(to, SWITCH);
    let packet = Packet::new_checked(&request).expect("well-formed");
    let mut refusal = Repr::parse(&packet);
    refusal.message_type = MessageType::Reply;
    refusal.outcome = Outcome::Moved as u8;
    agent.handle_datagram(0, SWITCH, &refusal.to_vec().expect("fits"));
    assert_eq!(agent.poll_event(), Some(Event::ChainWanted { group }));
    let at = agent.poll_timeout().expect("a repetition");
    agent.handle_timeout(at);
    assert_eq!(*agent.poll_transmit().expect("repeated").0.ip(), second);
    service.now = at;
}

#[test]
fn what_has_no_chain_waits_until_one_is_learnt() {
    let client = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 9);
    let settings = stateplane_coordination::Settings::new(client, GROUPS);
    let mut agent = stateplane_coordination::Agent::new(settings, 1);
    agent
        .submit(0, Operation::read(Place::within(2, Key([1; 16]))))
        .expect("submitted");
    assert_eq!(agent.poll_transmit(), None);
    assert_eq!(agent.poll_event(), Some(Event::ChainWanted { group: 2 }));
    agent.learn(50, chain::chain(2));
    assert!(agent.poll_transmit().is_some());
}

/// Rule 19: who writes on a lane of a session that ended learns so.
#[test]
fn an_ended_lane_ends_all_lanes() {
    let mut service = Service::new();
    let (mut agent, mut reaper) = (service.agent(1), service.agent(1));
    let group = agent.group(&key(1));
    let next = Action::LaneNext {
        lane: 0,
        incarnation: 1,
    };
    let place = Place::within(group, Key::default());
    let moved = ask(&mut service, &mut reaper, Operation::new(place, next));
    assert_eq!(moved.outcome, Outcome::Done);
    let ticket = agent
        .submit(0, Operation::put(key(1), b"late"))
        .expect("submitted");
    let events = service.events(&mut agent);
    let reason = Reason::LaneEnded;
    assert_eq!(
        events,
        [Event::Failed { ticket, reason }, Event::LanesEnded]
    );
    let refused = agent.submit(0, Operation::put(key(1), b"later"));
    assert_eq!(refused, Err(Refused::NoLanes));
    assert!(agent.submit(0, Operation::read(key(1))).is_ok());
}

/// Rule 17.
#[test]
fn operations_of_a_former_founding_end() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    let group = agent.group(&key(1));
    service.lose_requests = 100;
    let write = agent
        .submit(0, Operation::put(key(1), b"x"))
        .expect("submitted");
    let read = agent.submit(0, Operation::read(key(1))).expect("submitted");
    service.exchange(&mut agent);
    agent.learn(
        0,
        Chain {
            generation: 1,
            epoch: 9,
            ..chain::chain(group)
        },
    );
    let events = service.events(&mut agent);
    let (refusal, reason) = (None, Reason::Refounded);
    assert_eq!(
        events[0],
        Event::Unknown {
            ticket: write,
            refusal
        }
    );
    assert_eq!(
        events[1],
        Event::Resolved {
            ticket: write,
            fate: Fate::Lost
        }
    );
    assert_eq!(
        events[2],
        Event::Failed {
            ticket: read,
            reason
        }
    );
}

#[test]
fn a_scan_shows_each_record_once() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    let at = |number| Place::within(1, Key([number; 16]));
    for number in 1..20 {
        ask(
            &mut service,
            &mut agent,
            Operation::put(at(number), &[number]),
        );
    }
    let (mut slot, mut seen) = (0, Vec::new());
    loop {
        let scan = Action::Scan {
            slot,
            reading: Reading::Chain,
        };
        let answer = ask(&mut service, &mut agent, Operation::new(at(0), scan));
        match (answer.record, answer.more) {
            (Some(record), _) => {
                seen.push(record.value[0]);
                slot = answer.slot + 1;
            }
            (None, true) => slot = answer.slot,
            (None, false) => break,
        }
    }
    assert_eq!(seen, (1..20).collect::<Vec<_>>());
}

#[test]
fn stale_reads_are_spread_over_the_members_and_those_of_one_member_stay_there() {
    let mut agent = Service::new().agent(0);
    let members: Vec<Ipv4Addr> = (1..4).map(|host| Ipv4Addr::new(10, 1, 0, host)).collect();
    agent.learn(
        0,
        Chain {
            epoch: 2,
            members: members.clone(),
            ..chain::chain(1)
        },
    );
    let mut asked = |reading| {
        let read = Operation::new(Place::within(1, Key([7; 16])), Action::Read(reading));
        agent.submit(0, read).expect("room");
        let (to, bytes) = agent.poll_transmit().expect("a request");
        let packet = Packet::new_checked(&bytes).expect("a message");
        let request = Repr::parse(&packet);
        assert_eq!(request.flags, flag::STALE);
        (*to.ip(), request.hops)
    };
    let all: BTreeSet<_> = (0..3).map(|_| asked(Reading::Stale)).collect();
    assert_eq!(all, members.iter().map(|member| (*member, 2)).collect());
    assert_eq!(asked(Reading::Of(members[1])), (members[1], 0));
    assert_eq!(asked(Reading::Of(members[1])), (members[1], 0));
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let mut service = Service::new();
    let mut agent = service.agent(1);
    let long = agent.submit(0, Operation::put(key(1), &[0; 1025]));
    assert_eq!(long, Err(Refused::TooLong(1025)));
    let nowhere = agent.submit(0, Operation::read(Place::within(GROUPS, Key::default())));
    assert_eq!(nowhere, Err(Refused::NoGroup(GROUPS)));
    let most = agent.settings().most_operations;
    let all: Vec<Ticket> = (0..most)
        .map(|_| agent.submit(0, Operation::put(key(1), b"x")).expect("room"))
        .collect();
    let write = Action::Write(Write::default());
    let more = agent.submit(0, Operation::new(key(1), write));
    assert_eq!(more, Err(Refused::Full));
    agent.cancel(0, all[most - 1]);
    let event = agent.poll_event();
    assert_eq!(
        event,
        Some(Event::Expired {
            ticket: all[most - 1],
            refusal: None
        })
    );
    assert_eq!(agent.counters().refused, 3);
}

#[test]
fn what_was_never_sent_expires() {
    let client = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 9);
    let settings = stateplane_coordination::Settings::new(client, GROUPS);
    let mut agent = stateplane_coordination::Agent::new(settings, 1);
    agent.set_lanes(stateplane_coordination::Lanes {
        session: 1,
        first: 0,
        count: 1,
        incarnation: 0,
    });
    let ticket = agent
        .submit(0, Operation::put(key(1), b"x"))
        .expect("submitted");
    agent.handle_timeout(10_000_000);
    let events: Vec<Event> = std::iter::from_fn(|| agent.poll_event()).collect();
    let refusal = None;
    assert!(
        events.contains(&Event::Expired { ticket, refusal }),
        "{events:?}"
    );
    // The lane is free for what comes next.
    agent
        .submit(10_000_000, Operation::put(key(1), b"y"))
        .expect("submitted");
    agent.learn(10_000_001, chain::chain(agent.group(&key(1))));
    assert!(agent.poll_transmit().is_some());
}
