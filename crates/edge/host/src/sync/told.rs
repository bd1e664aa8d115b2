//! The engine's log of changes: groups whose switch is silent, back or started anew, views that are
//! complete, requests that the switch refuses, and other engines with a higher term.

use stateplane_sync::Engine;

/// µs between looks at what changed.
const PERIOD: u64 = 100_000;

/// µs without a datagram from which a switch is silent.
const SILENT: u64 = 3_000_000;

/// State of a group that was told last.
#[derive(Debug)]
pub(super) struct GroupLog {
    next: u64,
    /// When the last datagram came; at first, when the group began.
    heard: u64,
    silent: bool,
    complete: bool,
    generation: u64,
    fenced: bool,
    refused: u64,
}

impl GroupLog {
    /// Tells what changes from `now` on.
    pub(super) fn new(now: u64) -> GroupLog {
        GroupLog {
            next: 0,
            heard: now,
            silent: false,
            complete: false,
            generation: 0,
            fenced: false,
            refused: 0,
        }
    }

    /// A datagram of the group came.
    pub(super) fn hear(&mut self, now: u64) {
        self.heard = now;
    }

    /// Tells what changed in the group `name`.
    pub(super) fn tell(&mut self, now: u64, name: &str, engine: &Engine) {
        if now < self.next {
            return;
        }
        self.next = now + PERIOD;
        let silent = now.saturating_sub(self.heard) >= SILENT;
        match (self.silent, silent) {
            (false, true) => tracing::warn!(group = name, "the switch is silent: the view ages"),
            (true, false) => tracing::info!(group = name, "the switch is back"),
            _ => {}
        }
        self.silent = silent;
        let told = engine.told(now);
        let generation = told.map_or(self.generation, |told| told.generation);
        if generation > self.generation && self.generation > 0 {
            tracing::warn!(group = name, "the switch started anew; so does the view");
        }
        self.generation = generation;
        if told.is_some() && !self.complete {
            tracing::info!(group = name, "the view is complete");
        }
        self.complete = told.is_some();
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
        }
        self.refused = refused;
    }
}
