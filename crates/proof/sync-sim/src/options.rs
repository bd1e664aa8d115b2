//! Inputs of a run besides its seed.

use crate::scenario::Scenario;
use stateplane_world::{Chosen, Command, EngineKind, rules};

rules! {
    /// A rule of `docs/sync-protocol.md` that can be turned off, those of the switch when its program
    /// is compiled.
    Rule;
    /// Of opaque values t is 0 (rule 1).
    Opaque = "opaque", Some("SYNC_FAULT_OPAQUE");
    /// A change that takes a location beyond t queues it where it is written (rule 2).
    Tested = "tested", Some("SYNC_FAULT_TESTED");
    /// T has all t of this sweep and the last (rule 3).
    ThresholdKept = "threshold-kept", Some("SYNC_FAULT_THRESHOLD_KEPT");
    /// T has the distances of locations that are queued (rule 3).
    Peak = "peak", Some("SYNC_FAULT_PEAK");
    /// Distances of values that are sent are summed (rule 4).
    Shift = "shift", Some("SYNC_FAULT_SHIFT");
    /// Each UPDATE has a stamp of its own (rule 7).
    Stamp = "stamp", Some("SYNC_FAULT_STAMP");
    /// Locations of a repair are queued again (rule 8).
    Requeued = "requeued", Some("SYNC_FAULT_REQUEUED");
    /// No value is sent beyond the window (rule 9).
    Credit = "credit", Some("SYNC_FAULT_CREDIT");
    /// Each window has a message (rule 10).
    Marks = "marks", Some("SYNC_FAULT_MARKS");
    /// A message is for one start of the switch (rule 11).
    Incarnation = "incarnation", Some("SYNC_FAULT_INCARNATION");
    /// A START has every location queued (rule 11).
    Whole = "whole", Some("SYNC_FAULT_WHOLE");
    /// The sweep queues what rests (rule 12).
    Sweep = "sweep", Some("SYNC_FAULT_SWEEP");
    /// Bytes per second are bounded (rule 13).
    Budget = "budget", Some("SYNC_FAULT_BUDGET");
    /// A location crosses the cut before it is written (rule 15).
    Cross = "cross", Some("SYNC_FAULT_CROSS");
    /// No cut before all locations have crossed the last (rule 15).
    Settled = "settled", Some("SYNC_FAULT_SETTLED");
    /// Of locations that have not crossed a fetch reads what they hold (rule 16).
    Frozen = "frozen", Some("SYNC_FAULT_FROZEN");
    /// A location whose frozen value is fetched crosses the cut (rule 16).
    FetchSettles = "fetch-settles", Some("SYNC_FAULT_FETCH_SETTLES");
    /// A cut that was made is not made again (rule 18).
    CutNumber = "cut-number", Some("SYNC_FAULT_CUT_NUMBER");
    /// A location crosses the last cut before another value is staged for it (rule 19).
    StagedSettled = "staged-settled", Some("SYNC_FAULT_STAGED_SETTLED");
    /// An engine's staging has no values of those before (rules 19, 20).
    StagedApart = "staged-apart", Some("SYNC_FAULT_STAGED_APART");
    /// An engine of a lower term changes nothing (rule 20).
    Fence = "fence", Some("SYNC_FAULT_FENCE");
    /// A write that was taken is not taken again (rule 21).
    Once = "once", Some("SYNC_FAULT_ONCE");
    /// Written locations are queued (rule 23).
    WrittenQueued = "written-queued", Some("SYNC_FAULT_WRITTEN_QUEUED");
    /// A counter whose distance falls at a write tells a discontinuity (rule 25).
    Falls = "falls", Some("SYNC_FAULT_FALLS");
    /// A value that an engine wrote tells a discontinuity (rule 25).
    WrittenBreaks = "written-breaks", Some("SYNC_FAULT_WRITTEN_BREAKS");
    /// A discontinuity counts a width in the sum of distances (rule 25).
    BreakShift = "break-shift", Some("SYNC_FAULT_BREAK_SHIFT");
    /// An engine whose lease is over does not act (rule 20).
    Lease = "lease", None;
}

/// Inputs of a run besides its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Engine of the switch. Equal seeds give equal runs on all engines.
    pub engine: EngineKind,
    /// Traffic, link and faults.
    pub scenario: Scenario,
    /// A rule that is turned off.
    pub without: Option<Rule>,
}

impl Options {
    /// `scenario` with all rules.
    pub fn new(scenario: Scenario) -> Self {
        Self {
            engine: EngineKind::default(),
            scenario,
            without: None,
        }
    }

    /// The same options with one rule disabled.
    #[must_use]
    pub fn without(mut self, rule: Rule) -> Self {
        self.without = Some(rule);
        self
    }

    /// The same options with another engine.
    #[must_use]
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }

    /// The command that repeats the run of `seed`.
    pub fn command(&self, seed: u64) -> String {
        let command = Command {
            program: &format!("--program {PROGRAM}"),
            scenario: self.scenario.name,
            settings: self.scenario.settings(),
            seed,
            chosen: &Chosen::default(),
            without: self.without.map(Rule::name),
            engine: self.engine,
        };
        command.to_string()
    }
}

/// Name of the program on the command line.
pub const PROGRAM: &str = "sync";
