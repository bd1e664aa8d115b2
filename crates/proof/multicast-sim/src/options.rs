//! Options of a simulation.

use crate::scenario::Scenario;
use stateplane_world::{Chosen, Command, EngineKind, rules};

rules! {
    /// A rule of `docs/multicast-protocol.md` that can be turned off, to show that a checker misses
    /// it.
    Rule;
    /// A majority of the group commits, not any member (rule 1).
    Majority = "majority", Some("MULTICAST_FAULT_MAJORITY");
    /// A timestamp is beyond that of the log's last entry, whatever the clock is (rule 2).
    LogClock = "log-clock", Some("MULTICAST_FAULT_LOG_CLOCK");
    /// A follower accepts an entry behind one that it has with its term (rule 3).
    EntryBefore = "entry-before", Some("MULTICAST_FAULT_ENTRY_BEFORE");
    /// An entry of another term is cut off with all behind it (rule 3).
    CutOff = "cut-off", Some("MULTICAST_FAULT_CUT_OFF");
    /// A follower takes over what is committed as far as its log matches (rule 3).
    CommitMatched = "commit-matched", Some("MULTICAST_FAULT_COMMIT_MATCHED");
    /// A leader commits from its first own entry on (rule 4).
    OwnTerm = "own-term", Some("MULTICAST_FAULT_OWN_TERM");
    /// A message to a member is for one start of it (rules 5, 6).
    Incarnation = "incarnation", Some("MULTICAST_FAULT_INCARNATION");
    /// A member takes nothing of an older epoch than it promised (rule 6).
    Fence = "fence", Some("MULTICAST_FAULT_FENCE");
    /// An ACK counts in the epoch in which it was said (rule 6).
    AckEpoch = "ack-epoch", Some("MULTICAST_FAULT_ACK_EPOCH");
    /// A new leader asks anew up to which index logs match (rule 8).
    MatchesForgotten = "matches-forgotten", Some("MULTICAST_FAULT_MATCHES_FORGOTTEN");
    /// A new leader appends a no-op (rule 8).
    OwnNoOp = "own-no-op", Some("MULTICAST_FAULT_OWN_NO_OP");
    /// A leader's knowledge of an entry does not count for the next in its place (rule 8).
    MarksOfEntry = "marks-of-entry", Some("MULTICAST_FAULT_MARKS_OF_ENTRY");
    /// A member leads in the epoch of its appointment (rule 9).
    LeadEpoch = "lead-epoch", Some("MULTICAST_FAULT_LEAD_EPOCH");
    /// A leader stops when it sees a greater epoch (rule 9).
    StepsDown = "steps-down", Some("MULTICAST_FAULT_STEPS_DOWN");
    /// A learner is not counted (rule 12).
    LearnerNoVote = "learner-no-vote", Some("MULTICAST_FAULT_LEARNER_NO_VOTE");
    /// A member behind what was freed is told from where to go on (rule 12).
    Skip = "skip", Some("MULTICAST_FAULT_SKIP");
    /// A HINT moves the clock alone (rule 13).
    Hint = "hint", Some("MULTICAST_FAULT_HINT");
    /// A timestamp that receivers wait for goes into the log (rule 14).
    ClockLogged = "clock-logged", Some("MULTICAST_FAULT_CLOCK_LOGGED");
    /// A leader that lacks another group's decision sends START (rule 15).
    Finish = "finish", Some("MULTICAST_FAULT_FINISH");
    /// Only leaders of destinations get a copy (rule 16).
    AddressedOnly = "addressed-only", Some("MULTICAST_FAULT_ADDRESSED_ONLY");
    /// DELIVER follows commitment in all destination groups (rule 19).
    Uniform = "uniform", Some("MULTICAST_FAULT_UNIFORM");
    /// A lane's last number is compared with the entry at its index (rule 21).
    LaneCompared = "lane-compared", Some("MULTICAST_FAULT_LANE_COMPARED");
    /// A message below its lane's last number, or freed, is not ordered again (rules 21, 25).
    LaneEnded = "lane-ended", Some("MULTICAST_FAULT_LANE_ENDED");
    /// COMPLETE waits while its entry is beyond a half of the window (rule 22).
    HeldBack = "held-back", Some("MULTICAST_FAULT_HELD_BACK");
    /// A held copy sends what someone lacks (rule 23).
    Retransmit = "retransmit", Some("MULTICAST_FAULT_RETRANSMIT");
    /// An entry is freed when all receivers have it (rule 24).
    AllReceived = "all-received", Some("MULTICAST_FAULT_ALL_RECEIVED");
    /// An entry is freed when all its groups are done (rule 24).
    Done = "done", Some("MULTICAST_FAULT_DONE");
    /// An entry is freed behind a committed timestamp that is not below its final one (rule 24).
    Covered = "covered", Some("MULTICAST_FAULT_COVERED");
    /// A message that is over elsewhere is delivered void (rule 25).
    Void = "void", Some("MULTICAST_FAULT_VOID");
    /// A receiver answers by the list that its leader has (rule 26).
    ListVersion = "list-version", Some("MULTICAST_FAULT_LIST_VERSION");
    /// Indices and epochs are serial numbers (rule 27).
    Serial = "serial", Some("MULTICAST_FAULT_SERIAL");
    /// A member that starts anew is another, and joins (rule 5).
    Memory = "memory", None;
    /// A controller that restarts begins new epochs (rule 6).
    NewEpochAtRestart = "new-epoch-at-restart", None;
    /// The new leader is a promiser with the greatest last entry (rule 7).
    GreatestLog = "greatest-log", None;
    /// Majorities of every configuration that is not settled promise (rule 11).
    EveryConfiguration = "every-configuration", None;
    /// A learner has promised the present epoch (rule 12).
    LearnerPromises = "learner-promises", None;
    /// A call is complete when every destination group has answered (rule 17).
    AllAnswered = "all-answered", None;
    /// START bears the greatest final timestamp that its host knows (rule 17).
    GreatestTold = "greatest-told", None;
    /// A receiver delivers what is not beyond the last entry that it took (rule 18).
    Watermark = "watermark", None;
    /// A receiver drops what it took (rule 20).
    Once = "once", None;
    /// A receiver takes nothing while its queue is full (rule 26).
    QueueBound = "queue-bound", None;
    /// A joining receiver has a peer's state that is not behind the list's first entry (rule 26).
    SnapshotBehind = "snapshot-behind", None;
    /// A receiver's number passes on when the leader has a list without it (rule 26).
    NumberCools = "number-cools", None;
    /// A replica of the store joins with a state that covers where its receiver begins.
    StateCovers = "state-covers", None;
    /// An operation of several shards is executed with what each of them has at its place.
    PartsOfShards = "parts-of-shards", None;
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
    /// Part of the plan that is executed: of its messages, as packets, and faults.
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
pub const PROGRAM: &str = "multicast";
