//! A search through all orders explains every history that the checkers of the store accept.

use proptest::prelude::*;
use stateplane_history::Object;
use stateplane_history::multicast::{
    Event, EventKind, Final, History, Multicast, MulticastEvent, Request, Response, checkers, judge,
};
use std::collections::{BTreeMap, BTreeSet};

const KEYS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
struct Operation {
    request: Request,
    /// Times of call and answer; the answer may be missing.
    called: u64,
    answered: Option<u64>,
    response: Response,
}

type Records = BTreeMap<Object, Object>;

/// Executes a request, as the description of the operations says.
fn execute(records: &mut Records, request: &Request) -> Response {
    let find = |records: &Records, key: &Object| records.get(key).cloned();
    match request {
        Request::Get { key } => Response::Values {
            values: vec![find(records, key)],
        },
        Request::Put { key, value } => {
            records.insert(key.clone(), value.clone());
            Response::Done
        }
        Request::Delete { key } => {
            records.remove(key);
            Response::Done
        }
        Request::Swap {
            key,
            expected,
            value,
        } => {
            let before = find(records, key);
            let done = before == *expected;
            if done {
                records.remove(key);
                records.extend(value.iter().map(|value| (key.clone(), value.clone())));
            }
            Response::Decided {
                done,
                values: vec![before],
            }
        }
        Request::Move { from, to } => {
            let values = vec![find(records, from), find(records, to)];
            let done = values[0].is_some() && values[1].is_none();
            if done && let Some(value) = records.remove(from) {
                records.insert(to.clone(), value);
            }
            Response::Decided { done, values }
        }
        Request::Read { keys } => Response::Values {
            values: keys.iter().map(|key| find(records, key)).collect(),
        },
    }
}

/// True if the operations that are left can follow in some order.
fn explained(operations: &[Operation], left: &BTreeSet<usize>, records: &Records) -> bool {
    left.is_empty()
        || left.iter().any(|&next| {
            let of = &operations[next];
            let early = |&other: &usize| {
                let answered = operations[other].answered;
                other != next && answered.is_some_and(|answered| answered < of.called)
            };
            if left.iter().any(early) {
                return false;
            }
            let mut after = records.clone();
            let response = execute(&mut after, &of.request);
            if of.answered.is_some() && response != of.response {
                return false;
            }
            let mut rest = left.clone();
            rest.remove(&next);
            explained(operations, &rest, &after)
        })
}

fn history(operations: &[Operation]) -> History {
    let mut events = Vec::new();
    let mut note = |at, kind| events.push(Event { at, kind });
    let store = Object::new("store");
    for (number, of) in (1..).zip(operations) {
        note(
            2 * of.called,
            EventKind::Call {
                node: 9,
                object: store.clone(),
                operation: number,
                request: of.request.clone(),
            },
        );
        let executed = MulticastEvent::Executed {
            node: number as u32,
            group: 0,
            operation: number,
            at: Final {
                time: number,
                group: 0,
            },
        };
        note(2 * of.called + 1, EventKind::Of(executed));
        if let Some(answered) = of.answered {
            note(
                2 * answered,
                EventKind::Return {
                    node: 9,
                    object: store.clone(),
                    operation: number,
                    response: of.response.clone(),
                },
            );
        }
    }
    events.sort_by_key(|event| event.at);
    let system = Multicast::default();
    History { system, events }
}

fn keys() -> impl Strategy<Value = Object> {
    (0..KEYS.len()).prop_map(|at| Object::new(KEYS[at]))
}

fn values() -> impl Strategy<Value = Object> {
    (0..2u8).prop_map(|value| Object::new(&value.to_string()))
}

fn requests() -> impl Strategy<Value = Request> {
    let found = || prop::option::of(values());
    prop_oneof![
        keys().prop_map(|key| Request::Get { key }),
        (keys(), values()).prop_map(|(key, value)| Request::Put { key, value }),
        keys().prop_map(|key| Request::Delete { key }),
        (keys(), found(), found()).prop_map(|(key, expected, value)| Request::Swap {
            key,
            expected,
            value
        }),
        (keys(), keys()).prop_map(|(from, to)| Request::Move { from, to }),
        prop::collection::vec(keys(), 1..4).prop_map(|keys| Request::Read { keys }),
    ]
}

/// Operations in the order of their places, with the answers of that order and any times.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let one = (requests(), 0..12u64, prop::option::weighted(0.9, 1..6u64));
    prop::collection::vec(one, 2..7).prop_map(|all| {
        let mut records = Records::new();
        let mut used = BTreeSet::new();
        let mut free = |mut time: u64| {
            while !used.insert(time) {
                time += 1;
            }
            time
        };
        let operations = all.into_iter().map(|(request, called, lasts)| {
            let response = execute(&mut records, &request);
            let called = free(called);
            Operation {
                request,
                called,
                answered: lasts.map(|lasts| free(called + lasts)),
                response,
            }
        });
        operations.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_accepted_has_an_order(operations in operations()) {
        let objections = judge(&history(&operations));
        let all = (0..operations.len()).collect();
        if objections.is_empty() {
            prop_assert!(explained(&operations, &all, &Records::new()));
        }
        // Answers are those of the places; times alone can be wrong.
        prop_assert!(objections.iter().all(|of| of.checker == checkers::STRICT));
    }

    /// An answer that is not that of the places is refused.
    #[test]
    fn an_answer_that_is_exchanged_is_refused(
        mut operations in operations(),
        which: prop::sample::Index,
    ) {
        let answered = (0..operations.len()).filter(|of| operations[*of].answered.is_some());
        let answered: Vec<usize> = answered.collect();
        prop_assume!(!answered.is_empty());
        let of = &mut operations[answered[which.index(answered.len())]];
        of.response = Response::Values { values: vec![Some(Object::new("never"))] };
        let objections = judge(&history(&operations));
        prop_assert!(objections.iter().any(|of| of.checker == checkers::SERIAL));
    }
}
