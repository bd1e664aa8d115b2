//! Systems from outside this crate bring their own types, events and checkers.

use stateplane_history::{
    Checker, Event, EventKind, History, Object, Objections, Operation, Operations, Outputs,
    Program, System, Violation, judge_by, linearization,
};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// A register under each key. Clients that hear nothing do not know what became of a call.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Registers;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    Read,
    Write(u8),
}

impl System for Registers {
    type Request = Request;
    type Response = u8;
    type Message = Infallible;
    type Event = Infallible;
    type Subject = Object;

    fn concerns(subject: &Object, event: &EventKind<Self>) -> bool {
        event.object() == Some(subject)
    }
}

impl Program for Registers {
    type State = u8;
    type Input = Request;
    type Output = u8;

    fn start(&self) -> u8 {
        0
    }

    fn steps(&self, state: &u8, input: &Request) -> Vec<(u8, u8)> {
        match input {
            Request::Read => vec![(*state, *state)],
            Request::Write(value) => vec![(*value, *value)],
        }
    }
}

#[derive(Default)]
struct Linearizable(Operations<Registers>);

impl Checker<Registers> for Linearizable {
    fn name(&self) -> &'static str {
        "registers"
    }

    fn handle(&mut self, _: &Registers, index: usize, event: &Event<Registers>) {
        self.0.handle(index, event);
    }

    fn finish(self: Box<Self>, system: &Registers) -> Vec<Violation<Registers>> {
        let mut found = Objections::new("registers");
        for (key, operations) in self.0.by_object() {
            let asked = operations.into_iter();
            let asked: Vec<Operation<Request, u8>> = asked
                .map(|of| of.map(|(_, request)| request, |answer| answer))
                .collect();
            if !matches!(linearization(system, &asked), Ok(Some(_))) {
                found.add(key, 0, "no order explains the answers".into());
            }
        }
        found.into_violations()
    }
}

/// Calls by a client, each with its answer, one after another.
fn calls(of: &[(Request, Option<u8>)]) -> History<Registers> {
    let key = Object::new("k");
    let mut history = History::default();
    for (operation, (request, answer)) in (0..).zip(of.iter().cloned()) {
        let call = EventKind::Call {
            node: 1,
            object: key.clone(),
            operation,
            request,
        };
        let answer = answer.map(|response| EventKind::Return {
            node: 1,
            object: key.clone(),
            operation,
            response,
        });
        let kinds = [Some(call), answer].into_iter().flatten();
        let at = operation;
        history.events.extend(kinds.map(|kind| Event { at, kind }));
    }
    history
}

#[test]
fn a_call_of_unknown_outcome_may_have_taken_effect_or_not() {
    use Request::{Read, Write};
    let judged = |of: &[(Request, Option<u8>)]| {
        let checkers: Vec<Box<dyn Checker<Registers>>> = vec![
            Box::<Outputs<Registers>>::default(),
            Box::<Linearizable>::default(),
        ];
        let found = judge_by(&calls(of), checkers);
        found.iter().map(|of| of.checker).collect::<Vec<_>>()
    };
    assert!(judged(&[(Write(7), None), (Read, Some(7))]).is_empty());
    assert!(judged(&[(Write(7), None), (Read, Some(0))]).is_empty());
    let unseen = [(Write(7), None), (Read, Some(7)), (Read, Some(0))];
    assert_eq!(judged(&unseen), ["registers"]);
}

/// Groups whose members deliver numbered messages; a member may leave.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Groups;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Left {
    node: u32,
}

impl System for Groups {
    type Request = Infallible;
    type Response = Infallible;
    type Message = &'static str;
    type Event = Left;
    type Subject = Object;

    fn concerns(subject: &Object, event: &EventKind<Self>) -> bool {
        event.object() == Some(subject) || matches!(event, EventKind::Of(Left { .. }))
    }
}

/// Each member delivers each place of a group's order once, and nothing once it left.
#[derive(Default)]
struct NoGaps {
    next: BTreeMap<(Object, u32), Option<u64>>,
    wrong: Vec<(Object, usize)>,
}

impl Checker<Groups> for NoGaps {
    fn name(&self) -> &'static str {
        "no-gaps"
    }

    fn handle(&mut self, _: &Groups, index: usize, event: &Event<Groups>) {
        match &event.kind {
            EventKind::Deliver {
                node,
                object,
                place,
                ..
            } => {
                let next = self.next.entry((object.clone(), *node)).or_insert(Some(0));
                if place.is_none() || place != next {
                    self.wrong.push((object.clone(), index));
                }
                *next = place.map(|place| place + 1);
            }
            EventKind::Of(Left { node }) => {
                let members = self.next.iter_mut().filter(|((_, of), _)| of == node);
                members.for_each(|(_, next)| *next = None);
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, _: &Groups) -> Vec<Violation<Groups>> {
        let mut found = Objections::new("no-gaps");
        for (group, event) in self.wrong {
            found.add(group, event, "a place was left out".into());
        }
        found.into_violations()
    }
}

#[test]
fn deliveries_and_events_of_a_systems_own_are_judged() {
    let deliver = |node, place| EventKind::Deliver {
        node,
        object: Object::new("g"),
        message: place,
        place: Some(place),
        content: "hello",
    };
    let judged = |kinds: &[EventKind<Groups>]| {
        let events = (0..).zip(kinds.iter().cloned());
        let history = History {
            system: Groups,
            events: events.map(|(at, kind)| Event { at, kind }).collect(),
        };
        let found = judge_by(&history, vec![Box::<NoGaps>::default()]);
        let shown = found
            .iter()
            .map(|of| (of.event, of.relevant(&history, 9).len()));
        shown.collect::<Vec<_>>()
    };
    let left = EventKind::Of(Left { node: 2 });
    let both = [deliver(1, 0), deliver(2, 0), deliver(1, 1), left.clone()];
    assert!(judged(&both).is_empty());
    assert_eq!(judged(&[deliver(1, 0), deliver(1, 2)]), [(1, 2)]);
    assert_eq!(judged(&[deliver(2, 0), left, deliver(2, 1)]), [(2, 3)]);
}
