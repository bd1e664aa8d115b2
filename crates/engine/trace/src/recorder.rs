//! The observer that keeps what it is told.

use crate::Step;
use stateplane_interp::{Event, Observer};
use stateplane_ir::{Callee, Program};

/// Steps kept at most; those that follow are counted.
pub const MAX_STEPS: usize = 100_000;

/// Keeps a [`Step`] for each event.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    steps: Vec<Step>,
    /// For each block or call under way: whether it has a step of its own, and whether a
    /// parser state is open in it.
    open: Vec<Scope>,
    /// True if the latest event was the look-up of a table.
    looked_up: bool,
    dropped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Scope {
    shown: bool,
    in_state: bool,
}

impl Recorder {
    /// A recorder without steps.
    #[must_use]
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Recorded steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Number of steps after [`MAX_STEPS`].
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn depth(&self) -> usize {
        let depth = self
            .open
            .iter()
            .map(|scope| usize::from(scope.shown) + usize::from(scope.in_state));
        1 + depth.sum::<usize>()
    }

    fn push(&mut self, program: &Program, event: &Event<'_>, depth: usize) {
        if self.steps.len() >= MAX_STEPS {
            self.dropped += 1;
        } else if let Some(step) = Step::of(program, event) {
            self.steps.push(Step { depth, ..step });
        }
    }

    fn enter(&mut self, shown: bool) {
        self.open.push(Scope {
            shown,
            in_state: false,
        });
    }

    fn in_state(&mut self, in_state: bool) {
        if let Some(scope) = self.open.last_mut() {
            scope.in_state = in_state;
        }
    }
}

impl Observer for Recorder {
    fn event(&mut self, program: &Program, event: Event<'_>) {
        let looked_up =
            std::mem::replace(&mut self.looked_up, matches!(event, Event::Apply { .. }));
        match &event {
            Event::Ingress(_) | Event::Reparse(_) | Event::Egress(_) => {
                self.open.clear();
                self.push(program, &event, 0);
            }
            Event::Block(_) => {
                self.push(program, &event, self.depth());
                self.enter(true);
            }
            Event::Call(callee, _) => {
                // The table's own step names the action and its data.
                let named = looked_up && matches!(callee, Callee::Action(_));
                if !named {
                    self.push(program, &event, self.depth());
                }
                self.enter(true);
            }
            Event::End => {
                self.open.pop();
                // A block that did nothing is not worth a line.
                let depth = self.depth();
                let idle = |step: &Step| {
                    let is_block = matches!(step.what, "parser" | "control" | "deparser")
                        || step.what.ends_with("checksums in");
                    is_block && step.depth == depth
                };
                if self.steps.last().is_some_and(idle) {
                    self.steps.pop();
                }
            }
            Event::State(..) => {
                self.in_state(false);
                self.push(program, &event, self.depth());
                self.in_state(true);
            }
            Event::Transition(..) => {
                self.push(program, &event, self.depth());
                self.in_state(false);
            }
            Event::ParserError(_) => {
                self.in_state(false);
                self.push(program, &event, self.depth());
            }
            _ => self.push(program, &event, self.depth()),
        }
    }
}
