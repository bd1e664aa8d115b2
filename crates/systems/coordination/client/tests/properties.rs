//! Any bytes, and any order of lost, repeated and late messages.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;

use std::collections::BTreeMap;

use chain::{SWITCH, Service};
use proptest::prelude::*;
use stateplane_coordination::{Agent, Event, Fate, Operation, Place, Ticket, When};
use stateplane_wire::coordination::{Key, MessageType, Outcome, Packet, Repr};

/// An agent with a write, a compared write, a lock and a read under way.
fn busy_agent() -> Agent {
    let mut service = Service::new();
    let mut agent = service.agent(2);
    let place = Place::of(Key([1; 16]));
    let owner = stateplane_coordination::Owner {
        session: 1,
        handle: 1,
    };
    for operation in [
        Operation::put(place.clone(), b"x"),
        Operation::write(place.clone(), b"y", When::Value(vec![7; 40])),
        Operation::acquire(Place::of(Key([2; 16])), owner, true),
        Operation::read(place),
    ] {
        agent.submit(0, operation).expect("submitted");
    }
    agent
}

/// All but the counters.
fn state(agent: &Agent) -> String {
    let all = format!("{agent:?}");
    let from = all.find("counters: Counters").expect("counters");
    let length = all[from..].find('}').expect("their end");
    format!("{}{}", &all[..from], &all[from + length..])
}

proptest! {
    #[test]
    fn any_bytes_change_nothing(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut agent = busy_agent();
        let before = state(&agent);
        agent.handle_datagram(1, SWITCH, &bytes);
        prop_assert_eq!(state(&agent), before);
    }

    /// A sent message with one bit turned over is no message any more.
    #[test]
    fn a_damaged_reply_changes_nothing(which in 0..3usize, bit in 0..8 * 160usize) {
        let mut agent = busy_agent();
        let mut service = Service::new();
        let requests: Vec<_> = std::iter::from_fn(|| agent.poll_transmit()).collect();
        let (_, mut reply) = service.handle(&requests[which].1).expect("a reply");
        reply[bit / 8] ^= 1 << (bit % 8);
        let before = state(&agent);
        agent.handle_datagram(1, SWITCH, &reply);
        prop_assert_eq!(state(&agent), before);
    }

    /// Well-formed replies with any fields end each operation at most once.
    #[test]
    fn forged_replies_end_no_operation_twice(
        forged in prop::collection::vec(
            (0..10u8, any::<u8>(), 0..4u16, 0..4u16, 0..4u32, 0..3u32, 0..4u32, any::<u64>()),
            1..200,
        ),
    ) {
        let mut agent = busy_agent();
        let mut ends: BTreeMap<Ticket, u32> = BTreeMap::new();
        let client = agent.settings().client;
        for (operation, outcome, group, lane, request, epoch, handle, number) in forged {
            let mut reply = Repr::new(MessageType::Reply);
            reply.operation = operation;
            reply.outcome = outcome % 12;
            if outcome >= 200 {
                reply.outcome = 0x81 + outcome % 6;
            }
            reply.group = group;
            reply.lane = lane;
            reply.request = request;
            reply.epoch = epoch;
            reply.handle = handle;
            reply.number = number;
            reply.kind = outcome % 4;
            reply.record = number;
            reply.set_client(client);
            reply.set_chain([*SWITCH.ip()]);
            reply.hops = outcome % 5;
            agent.handle_datagram(number % 1_000_000, SWITCH, &reply.to_vec().expect("fits"));
            while let Some(event) = agent.poll_event() {
                let ends_it = !matches!(event, Event::Resolved { .. });
                if let Some(ticket) = event.ticket().filter(|_| ends_it) {
                    *ends.entry(ticket).or_default() += 1;
                }
            }
        }
        prop_assert!(ends.values().all(|count| *count == 1), "{:?}", ends);
    }

    /// A counter raised by CAS is as high as there are answers that say so, whatever is lost,
    /// repeated or late.
    #[test]
    fn no_operation_is_made_or_told_twice(
        choices in prop::collection::vec((0..10u8, any::<u16>()), 50..400),
    ) {
        let mut service = Service::new();
        let mut agent = service.agent(3);
        let place = Place::within(1, Key([1; 16]));
        let mut requests: Vec<Vec<u8>> = Vec::new();
        let mut replies: Vec<Vec<u8>> = Vec::new();
        let mut told = Told::default();
        let mut asked = 0u64;
        for (choice, pick) in choices {
            requests.extend(std::iter::from_fn(|| agent.poll_transmit()).map(|(_, bytes)| bytes));
            let at = |list: &[Vec<u8>]| usize::from(pick) % list.len().max(1);
            match choice {
                // A CAS from what the asker last knew: it may fail.
                0..=2 => {
                    let when = match told.newest {
                        None => When::Absent,
                        Some(number) => When::Number(number),
                    };
                    let operation = Operation::write(place.clone(), &asked.to_be_bytes(), when);
                    asked += u64::from(agent.submit(service.now, operation).is_ok());
                }
                // A request arrives, or arrives again.
                3..=5 => {
                    if let Some(request) = requests.get(at(&requests)) {
                        replies.extend(service.handle(request).map(|(_, reply)| reply));
                    }
                }
                6..=7 => {
                    if let Some(reply) = replies.get(at(&replies)) {
                        agent.handle_datagram(service.now, SWITCH, reply);
                    }
                }
                8 => service.now += u64::from(pick) * 20,
                _ => service.now += u64::from(pick) * 1_000,
            }
            agent.handle_timeout(service.now);
            told.take(&mut agent);
        }
        // The network is whole again.
        for _ in 0..20 {
            let end = service.now + 1_000_000;
            service.run(&mut agent, end);
            told.take(&mut agent);
        }
        prop_assert_eq!(agent.pending(), 0);
        prop_assert!(told.once(asked), "{:?}", told);
        // No entry has an effect twice: each done write is one number of the log.
        let mut numbers = told.done.clone();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), told.done.len());
        let executed = &service.executed;
        let mut once = executed.clone();
        once.sort_unstable();
        once.dedup();
        prop_assert_eq!(once.len(), executed.len());
        let last = service.record(1, Key([1; 16])).map(|stored| stored.number);
        prop_assert_eq!(last, told.done.iter().max().copied());
    }
}

/// Events that an agent told.
#[derive(Debug, Default)]
struct Told {
    ends: BTreeMap<Ticket, u32>,
    unknown: BTreeMap<Ticket, u32>,
    /// Numbers of the writes that were done.
    done: Vec<u64>,
    newest: Option<u64>,
}

impl Told {
    fn take(&mut self, agent: &mut Agent) {
        while let Some(event) = agent.poll_event() {
            let done = match &event {
                Event::Answered { answer, .. } => {
                    self.newest = match (&answer.record, answer.outcome) {
                        (Some(record), _) => Some(record.number),
                        (None, Outcome::Done) => Some(answer.number),
                        (None, _) => self.newest,
                    };
                    (answer.outcome == Outcome::Done).then_some(answer.number)
                }
                Event::Resolved {
                    fate:
                        Fate::Executed {
                            outcome, number, ..
                        },
                    ..
                } => (*outcome == Outcome::Done).then_some(*number),
                _ => None,
            };
            self.done.extend(done);
            let Some(ticket) = event.ticket() else {
                continue;
            };
            match event {
                Event::Resolved { .. } => {
                    let left = self.unknown.get_mut(&ticket).expect("it was unknown");
                    *left -= 1;
                }
                Event::Unknown { .. } => {
                    *self.ends.entry(ticket).or_default() += 1;
                    *self.unknown.entry(ticket).or_default() += 1;
                }
                _ => *self.ends.entry(ticket).or_default() += 1,
            }
        }
    }

    /// All of `asked` ended once, and what was unknown was resolved.
    fn once(&self, asked: u64) -> bool {
        self.ends.len() as u64 == asked
            && self.ends.values().all(|count| *count == 1)
            && self.unknown.values().all(|left| *left == 0)
    }
}

/// The scripts above meet all kinds of replies.
#[test]
fn a_busy_agents_requests_are_well_formed() {
    let mut agent = busy_agent();
    let sent: Vec<_> = std::iter::from_fn(|| agent.poll_transmit()).collect();
    assert_eq!(sent.len(), 4);
    for (_, bytes) in sent {
        let packet = Packet::new_checked(&bytes).expect("well-formed");
        assert_eq!(packet.message_type(), MessageType::Request);
    }
}
