//! Histories of a group that works are accepted, and those in which one answer was changed are
//! not.

use proptest::prelude::*;
use stateplane_history::Expectation;
use stateplane_history::Object;
use stateplane_history::coordination::{
    Asked, Condition, Coordination, CoordinationEvent, Document, Event, EventKind, Group, Guard,
    History, Holder, Outcome, Request, Response, checkers, judge,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const GENERATION: u64 = 1 << 48;

/// Choices of a run, and the run: a machine that executes one operation after another, and
/// clients whose calls overlap.
struct Run {
    choices: Vec<u32>,
    at: usize,
    group: Group,
    number: u64,
    history: History,
    operations: u64,
    /// Per client, its operation: asked, or executed.
    clients: Vec<Option<(u64, Request, Option<Response>)>>,
    /// Operations whose clients do not wait, that may yet be executed.
    lost: Vec<Request>,
    loses: bool,
}

impl Run {
    fn choose(&mut self, below: u32) -> u32 {
        let choice = self.choices.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        choice % below
    }

    fn note(&mut self, kind: EventKind) {
        let at = self.history.events.len() as u64;
        self.history.events.push(Event { at, kind });
    }

    fn known_number(&mut self) -> u64 {
        let back = u64::from(self.choose(4));
        (GENERATION + self.number).saturating_sub(back)
    }

    fn condition(&mut self) -> Condition {
        match self.choose(6) {
            0 => Condition::Absent,
            1 => Condition::Present,
            2 => Condition::Number(self.known_number()),
            3 => Condition::Value([self.operations as u8].as_slice().into()),
            _ => Condition::None,
        }
    }

    fn request(&mut self, client: usize) -> Request {
        let value = (self.operations as u32).to_be_bytes();
        let lock = self.choose(3) == 0;
        let asked = match (lock, self.choose(6)) {
            (false, 0 | 1) => Asked::Write(value.as_slice().into(), self.condition()),
            (false, 2) => Asked::Delete(self.condition()),
            (true, 0 | 1) => Asked::Acquire(self.choose(2) == 0),
            (true, 2 | 3) => Asked::Release,
            _ => Asked::Read,
        };
        let name = if lock { "lock" } else { "value" };
        let key = Object::new(&format!("{name}{}", self.choose(2)));
        let guard = (self.choose(6) == 0 && !lock).then(|| Guard {
            key: Object::new("lock0"),
            condition: Condition::Token(self.known_number()),
        });
        let token = match self.choose(5) {
            0 if !lock => self.known_number(),
            _ => 0,
        };
        Request {
            key,
            asked,
            token,
            guard,
            holder: Holder {
                session: client as u32 + 1,
                handle: 0,
            },
            until: None,
        }
    }

    fn execute(&mut self, request: &Request) -> Response {
        if !request.reads() {
            // Others, such as `resolve`, take numbers too.
            self.number += 1 + u64::from(self.choose(4) == 0);
        }
        self.group.execute(request, GENERATION + self.number)
    }

    fn step(&mut self) {
        let client = self.choose(self.clients.len() as u32) as usize;
        let (node, object) = (client as u32, Object::new("g"));
        match self.clients[client].take() {
            None if !self.lost.is_empty() && self.choose(3) == 0 => {
                let which = self.choose(self.lost.len() as u32) as usize;
                let request = self.lost.remove(which);
                self.execute(&request);
            }
            None => {
                let request = self.request(client);
                self.operations += 1;
                let operation = self.operations;
                self.clients[client] = Some((operation, request.clone(), None));
                self.note(EventKind::Call {
                    node,
                    object,
                    operation,
                    request,
                });
            }
            Some((operation, request, answer)) if self.loses && self.choose(6) == 0 => {
                if answer.is_none() {
                    self.lost.push(request);
                }
                self.note(EventKind::Of(CoordinationEvent::Unknown {
                    before: None,
                    node,
                    group: object,
                    operation,
                }));
            }
            Some((operation, request, None)) => {
                let answer = self.execute(&request);
                self.clients[client] = Some((operation, request, Some(answer)));
            }
            Some((operation, _, Some(mut response))) => {
                // A repeated request is answered without the record.
                if self.choose(5) == 0 && response.outcome != Outcome::Absent {
                    response.seen = response.seen.filter(|seen| seen.number == 0);
                }
                self.note(EventKind::Return {
                    node,
                    object,
                    operation,
                    response,
                });
            }
        }
    }
}

fn run(choices: Vec<u32>, loses: bool) -> History {
    let mut run = Run {
        choices,
        at: 0,
        group: Group::default(),
        number: 0,
        history: History::default(),
        operations: 0,
        clients: vec![None; 4],
        lost: Vec::new(),
        loses,
    };
    while run.at < run.choices.len() {
        run.step();
    }
    run.history
}

fn answers(history: &mut History) -> Vec<&mut Response> {
    let events = history.events.iter_mut();
    let answers = events.filter_map(|event| match &mut event.kind {
        EventKind::Return { response, .. } => Some(response),
        _ => None,
    });
    answers.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_a_machine_answers_is_accepted(
        choices in proptest::collection::vec(any::<u32>(), 0..1200),
        loses: bool,
    ) {
        let history = run(choices, loses);
        let found: Vec<_> = judge(&history).iter().map(|of| of.to_string()).collect();
        prop_assert!(found.is_empty(), "{found:?}\n{history}");
        let text = history.to_string();
        prop_assert_eq!(Document::read(&text).map(|of| of.history), Ok(history));
    }

    #[test]
    fn one_changed_answer_is_refused(
        choices in proptest::collection::vec(any::<u32>(), 100..1200),
        which: prop::sample::Index,
        how in 0..5,
    ) {
        let mut history = run(choices, false);
        let good = history.clone();
        let mut answers = answers(&mut history);
        prop_assume!(answers.len() > 1);
        let place = which.index(answers.len());
        let other = answers[(place + 1) % answers.len()].number;
        let answer = &mut answers[place];
        match (how, &mut answer.seen) {
            (0, Some(seen)) => seen.number += 1,
            (1, Some(seen)) if seen.value.is_some() => seen.value = Some([9; 7].as_slice().into()),
            (2, _) if answer.token.is_some() => answer.token = answer.token.map(|of| of + 1),
            (3, _) if answer.number != other => answer.number = other,
            _ => {
                answer.outcome = match answer.outcome {
                    Outcome::Done => Outcome::StaleToken,
                    _ => Outcome::Done,
                };
            }
        }
        // Numbers of reads that follow each other may be exchanged.
        let found = judge(&history);
        if how == 3 {
            prop_assume!(!found.is_empty());
        }
        prop_assert!(!found.is_empty(), "{good}\n{history}");
        prop_assert!(found.iter().all(|of| of.checker != checkers::UNDECIDED), "{found:?}");
    }

    #[test]
    fn a_value_that_nobody_wrote_is_refused(
        choices in proptest::collection::vec(any::<u32>(), 100..1000),
        which: prop::sample::Index,
    ) {
        let mut history = run(choices, true);
        let shown = answers(&mut history).into_iter().filter_map(|answer| answer.seen.as_mut());
        let mut shown: Vec<_> = shown.filter(|seen| seen.value.is_some()).collect();
        prop_assume!(!shown.is_empty());
        let place = which.index(shown.len());
        shown[place].value = Some([9; 7].as_slice().into());
        let found: BTreeSet<_> = judge(&history).iter().map(|of| of.checker).collect();
        prop_assert!(!found.is_empty());
    }
}

/// The histories of a folder of this crate's tests, by name.
fn stored(folder: &str) -> Vec<(String, Document)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let entries = fs::read_dir(&folder).expect("the folder of stored histories");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry of it").path())
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).expect("a readable history");
        let document = Document::read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, document)
    };
    paths.iter().map(read).collect()
}

#[test]
fn bad_histories_are_rejected_by_the_checker_they_name_and_no_other() {
    let mut rejecting = BTreeSet::new();
    for (name, document) in stored("coordination_bad") {
        let Some(Expectation::Rejected { by, .. }) = &document.expectation else {
            panic!("{name} names no checker");
        };
        let violations = judge(&document.history);
        let mut objecting: BTreeSet<_> = violations.iter().map(|of| of.checker).collect();
        // No log explains a token that falls, either.
        if *by == checkers::TOKENS {
            objecting.remove(checkers::LINEARIZABLE);
        }
        assert_eq!(objecting, BTreeSet::from([*by]), "{name}: {violations:?}");
        for violation in &violations {
            let relevant = violation.relevant(&document.history, 4);
            assert!(!relevant.is_empty(), "{name}: {violation}");
        }
        rejecting.insert(*by);
    }
    assert_eq!(rejecting, BTreeSet::from(checkers::NAMES));
}

#[test]
fn good_histories_are_accepted() {
    for (name, document) in stored("coordination_good") {
        assert_eq!(document.expectation, Some(Expectation::Accepted), "{name}");
        assert_eq!(judge(&document.history), [], "{name}");
        let text = document.to_string();
        assert_eq!(Document::read(&text), Ok(document), "{name}");
    }
}

#[test]
fn a_system_is_known_before_it_begins() {
    let system = Coordination {
        groups: vec![Object::new("g")],
        serves_within: 5,
    };
    let history = History {
        system,
        events: Vec::new(),
    };
    let text = history.to_string();
    assert_eq!(text, "serves groups=g within=5\n");
    assert_eq!(Document::read(&text).map(|of| of.history), Ok(history));
}
