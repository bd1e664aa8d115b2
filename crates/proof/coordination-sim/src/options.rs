//! Options of a simulation.

use crate::scenario::Scenario;
use stateplane_world::{Chosen, Command, EngineKind, rules};

rules! {
    /// A rule of `docs/coordination-protocol.md` that can be turned off, to show that a checker
    /// misses it.
    Rule;
    /// A message of another epoch is not of this chain (rule 9).
    Epoch = "epoch", Some("COORDINATION_FAULT_EPOCH");
    /// Entries and reads come from the predecessor alone (rule 9).
    Predecessor = "predecessor", Some("COORDINATION_FAULT_PREDECESSOR");
    /// Asked by the successor alone (rule 9).
    Successor = "successor", Some("COORDINATION_FAULT_SUCCESSOR");
    /// A request of an earlier generation is refused (rule 17).
    Generation = "generation", Some("COORDINATION_FAULT_GENERATION");
    /// Of entries the exactly next is applied (rule 2).
    ExactlyNext = "exactly-next", Some("COORDINATION_FAULT_EXACTLY_NEXT");
    /// The head says BUSY before an entry is overwritten that not all have (rule 2).
    RingBound = "ring-bound", Some("COORDINATION_FAULT_RING_BOUND");
    /// A new head takes the others to be a ring behind (rule 2).
    NewHeadBehind = "new-head-behind", Some("COORDINATION_FAULT_NEW_HEAD_BEHIND");
    /// A member that learns of entries which it lacks asks for them (rule 2).
    NewestAsked = "newest-asked", Some("COORDINATION_FAULT_NEWEST_ASKED");
    /// Members copy the head's outcome, and judge nothing (rule 3).
    OutcomeCopied = "outcome-copied", Some("COORDINATION_FAULT_OUTCOME_COPIED");
    /// Outcomes that are failures pass the chain too (rule 4).
    FailuresPass = "failures-pass", Some("COORDINATION_FAULT_FAILURES_PASS");
    /// A request that was decided is not executed again (rule 5).
    Duplicate = "duplicate", Some("COORDINATION_FAULT_DUPLICATE");
    /// A request before the lane's last is dropped (rule 5).
    LowerRequest = "lower-request", Some("COORDINATION_FAULT_LOWER_REQUEST");
    /// A question is answered where its number is held (rule 5).
    HeldNumber = "held-number", Some("COORDINATION_FAULT_HELD_NUMBER");
    /// Requests of an ended life of a lane are refused (rule 5).
    LaneIncarnation = "lane-incarnation", Some("COORDINATION_FAULT_LANE_INCARNATION");
    /// The first request of a later life of a lane begins it (rule 19).
    LaneBegins = "lane-begins", Some("COORDINATION_FAULT_LANE_BEGINS");
    /// RESOLVE leaves the kept request as it is (rule 6).
    KeptRequest = "kept-request", Some("COORDINATION_FAULT_KEPT_REQUEST");
    /// Only a configuration of a higher epoch is taken (rule 9).
    HigherEpoch = "higher-epoch", Some("COORDINATION_FAULT_HIGHER_EPOCH");
    /// A configuration is for one start of the switch (rules 9, 16).
    Incarnation = "incarnation", Some("COORDINATION_FAULT_INCARNATION");
    /// Only the head decides (rule 10).
    HeadDecides = "head-decides", Some("COORDINATION_FAULT_HEAD_DECIDES");
    /// A read that one switch answers alone needs its lease (rule 14).
    Lease = "lease", Some("COORDINATION_FAULT_LEASE");
    /// A promise to a switch that is no member blocks until it ends (rule 14).
    Promise = "promise", Some("COORDINATION_FAULT_PROMISE");
    /// No promise is given while one to another switch lasts (rule 14).
    OnePromise = "one-promise", Some("COORDINATION_FAULT_ONE_PROMISE");
    /// Values that lay in registers before the group began empty are none of its own (rule 15).
    Era = "era", Some("COORDINATION_FAULT_ERA");
    /// A switch begins to join empty (rule 15).
    JoinerForgets = "joiner-forgets", Some("COORDINATION_FAULT_JOINER_FORGETS");
    /// A copy does not overwrite what is newer (rule 15).
    NewerStays = "newer-stays", Some("COORDINATION_FAULT_NEWER_STAYS");
    /// Of what a lane keeps, too, the newer stays when the lane is copied (rule 15).
    KeptCopied = "kept-copied", Some("COORDINATION_FAULT_KEPT_COPIED");
    /// The tail hands over when the joiner has all that its ring may lose (rule 15).
    Closes = "closes", Some("COORDINATION_FAULT_CLOSES");
    /// Once a copy has begun again, the head's bound keeps what the joiner lacks (rule 15).
    HoldsAcks = "holds-acks", Some("COORDINATION_FAULT_HOLDS_ACKS");
    /// A group that stands still between members that live changes.
    Standstill = "standstill", None;
    /// The copy's answers are of the same round (rule 15).
    Round = "round", Some("COORDINATION_FAULT_ROUND");
    /// The joiner answers when it holds the hand-over's number (rule 15).
    Floor = "floor", Some("COORDINATION_FAULT_FLOOR");
    /// The tail answers nothing after the hand-over (rule 15).
    HandedSilent = "handed-silent", Some("COORDINATION_FAULT_HANDED_SILENT");
    /// A switch that holds nothing of a group becomes no member of it (rule 15).
    EmptyMember = "empty-member", Some("COORDINATION_FAULT_EMPTY_MEMBER");
    /// A token below the highest that the record has seen is refused (rule 21).
    Token = "token", Some("COORDINATION_FAULT_TOKEN");
    /// A record that has seen a token stays when it is deleted (rule 21).
    TokenKept = "token-kept", Some("COORDINATION_FAULT_TOKEN_KEPT");
    /// The guard is judged (rule 21).
    Guard = "guard", Some("COORDINATION_FAULT_GUARD");
    /// A switch that joins becomes a member only once it answers (rule 15).
    Joined = "joined", None;
    /// A watching client gets entries from the answerer alone (rule 23).
    AnswererPushes = "answerer-pushes", Some("COORDINATION_FAULT_ANSWERER_PUSHES");
    /// A client that asks for an entry that left the ring is told so (rule 23).
    Compacted = "compacted", Some("COORDINATION_FAULT_COMPACTED");
    /// A subscription that is not renewed ends (rule 23).
    SubscriptionEnds = "subscription-ends", Some("COORDINATION_FAULT_SUBSCRIPTION_ENDS");
    /// A client tells an entry once, when it has all before it (rule 23).
    InTurn = "in-turn", None;
    /// A client renews its subscription, as a new answerer knows none (rule 23).
    Renewed = "renewed", None;
}

/// Inputs of a run besides its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Engine of the switches. Equal seeds give equal runs on all engines.
    pub engine: EngineKind,
    /// Traffic, links and faults.
    pub scenario: Scenario,
    /// A rule that is turned off.
    pub without: Option<Rule>,
    /// Part of the plan that is executed: of its operations, as packets, and faults.
    pub chosen: Chosen,
}

impl Options {
    /// `scenario` with all rules.
    pub fn new(scenario: Scenario) -> Self {
        Self {
            engine: EngineKind::default(),
            scenario,
            without: None,
            chosen: Chosen::default(),
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
            chosen: &self.chosen,
            without: self.without.map(Rule::name),
            engine: self.engine,
        };
        command.to_string()
    }
}

/// Name of the program on the command line.
pub const PROGRAM: &str = "coordination";
