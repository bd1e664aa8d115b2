//! The engine's log of changes: groups whose switch is silent, back or started anew, views that are
//! complete, and other engines with a higher term.

use stateplane_sync::Engine;

/// µs between looks at what changed.
const PERIOD: u64 = 100_000;

/// Age of a mark, in µs, from which the switch of a group is silent; a sweep of a large group takes
/// less.
const SILENT: u64 = 3_000_000;

/// State of a group that was told last.
#[derive(Debug)]
pub(super) struct GroupLog {
    started: u64,
    next: u64,
    state: Option<State>,
    generation: u64,
    fenced: bool,
    refused: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Followed,
    Silent,
}

impl GroupLog {
    /// Tells what changes from `now` on.
    pub(super) fn new(now: u64) -> GroupLog {
        GroupLog {
            started: now,
            next: 0,
            state: None,
            generation: 0,
            fenced: false,
            refused: 0,
        }
    }

    /// Tells what changed in the group `name`.
    pub(super) fn tell(&mut self, now: u64, name: &str, engine: &Engine) {
        if now < self.next {
            return;
        }
        self.next = now + PERIOD;
        let told = engine.told(now);
        let age = told.map_or(now - self.started, |told| told.age_us);
        let state = if age >= SILENT {
            Some(State::Silent)
        } else {
            told.map(|_| State::Followed).or(self.state)
        };
        if state != self.state {
            self.tell_state(state, name, age);
        }
        let generation = told.map_or(self.generation, |told| told.generation);
        if generation > self.generation {
            if self.generation > 0 {
                tracing::warn!(group = name, "the switch started anew; so does the view");
            }
            self.generation = generation;
        }
        if engine.is_fenced() && !self.fenced {
            tracing::error!(
                group = name,
                "another engine has a higher term: this one changes nothing any more"
            );
        }
        self.fenced = engine.is_fenced();
        let refused = engine.counters().refused;
        if refused > self.refused {
            let count = refused - self.refused;
            tracing::warn!(group = name, count, "the switch refused requests");
            self.refused = refused;
        }
    }

    fn tell_state(&mut self, state: Option<State>, name: &str, age_us: u64) {
        match (self.state, state) {
            (None, Some(State::Followed)) => tracing::info!(group = name, "the view is complete"),
            (_, Some(State::Followed)) => tracing::info!(group = name, "the switch is back"),
            (_, Some(State::Silent)) => tracing::warn!(
                group = name,
                age_us,
                "the switch is silent: the view is no newer than this"
            ),
            (_, None) => {}
        }
        self.state = state;
    }
}
