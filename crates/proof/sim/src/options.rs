//! Options of a simulation: program, engine, scenario, disabled rules.

use crate::model::MODELLED;
use crate::scenario::Scenario;
use stateplane_apps::{APPS, AppId, Judge, app};
use stateplane_history::replication::Application;
use stateplane_world::{Chosen, Command, EngineKind};
use std::fmt;

/// Program on the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramKind {
    /// A model of a switch in Rust, to test the store alone.
    Model,
    /// An application.
    App(AppId),
    /// A protected program, [`Own`](crate::Own).
    Own(Class),
}

/// Flow class of a protected program, as the store has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// First byte of its keys.
    pub id: u8,
    /// Bytes of state of a flow.
    pub state_length: u16,
    /// In bounded-inconsistency mode, how switches walk over their arrays.
    pub walk: Option<Walk>,
}

/// Walk of a switch over its arrays in bounded-inconsistency mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Walk {
    /// Frames of the packet generator in a millisecond.
    pub batch: u32,
    /// Number of arrays.
    pub arrays: usize,
}

impl ProgramKind {
    /// All that come with Stateplane.
    pub fn all() -> Vec<Self> {
        let apps = APPS.into_iter().map(Self::App);
        [Self::Model].into_iter().chain(apps).collect()
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::App(app) => app.name(),
            Self::Own(_) => "own",
        }
    }

    /// The program of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|kind| kind.name() == name)
    }

    /// The application whose hosts speak, if it is one of the list.
    pub(crate) fn app(self) -> Option<AppId> {
        match self {
            Self::Model => app(MODELLED),
            Self::App(app) => Some(app),
            Self::Own(_) => None,
        }
    }

    /// The application's judge.
    pub(crate) fn judge(self) -> Option<Judge> {
        self.app().map(AppId::judge)
    }

    /// The machine that judges a flow's outputs, if an application's machine does.
    pub(crate) fn machine(self) -> Option<Application> {
        self.judge().and_then(Judge::machine)
    }

    /// If the store maps endpoints from a pool, the class of keys with a public one.
    pub(crate) fn mapped_class(self) -> Option<u8> {
        let app = self.app()?;
        let maps = app.judge() == Judge::Translations;
        let class = app.room().class_made("none").filter(|_| maps);
        class.map(|class| class.id)
    }
}

impl fmt::Display for ProgramKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rule of `docs/replication-protocol.md` that can be turned off, to show that a
/// checker misses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The store keeps the newer of two states (rule 10).
    SequenceCheck,
    /// The store refuses messages that are not from the present owner (rule 12).
    EpochCheck,
    /// Only the tail answers (rule 11).
    WholeChainAcknowledgement,
    /// The store waits for the end of a lease before it grants another (rule 1).
    LeaseExpiry,
    /// The switch stops at its deadline (rule 1).
    LeaseDeadline,
    /// Only a grant with a newer epoch installs state (rule 3).
    InstallOnce,
    /// A packet that comes back is released or processed once (rule 4).
    ReleaseOnce,
    /// A packet does not overtake those of its flow that wait (rule 26).
    ReleaseOrder,
    /// A switch drops replies to another incarnation (rule 6).
    IncarnationCheck,
    /// A switch drops messages whose checksum is wrong.
    MessageChecksum,
    /// An unacknowledged message is sent again (paper §5.2).
    Retransmission,
    /// A slot belongs to the flow whose key it holds.
    KeyComparison,
    /// A snapshot's read brings both copies of its element up to date (rule 24).
    SnapshotSynchronise,
    /// A snapshot visits every element before the next begins (rule 24).
    SnapshotEveryElement,
    /// A snapshot is acknowledged before the next begins.
    SnapshotAcknowledged,
    /// A switch that cannot keep snapshots within ε does what its configuration says.
    SnapshotBound,
    /// Replicas drop what was sent in another configuration of the chain (rule 21).
    ChainEpoch,
    /// Replicas drop what does not come from a neighbour (rule 21).
    ChainNeighbour,
    /// A replica keeps an update until every replica behind it has it.
    KeptUpdates,
    /// A joining replica counts only when it has every update that was answered.
    WholeJoin,
    /// A switch stops using a lease when it gives it up (rule 19).
    RecallStops,
    /// A lease is taken back only when the store has all that was written under it
    /// (rule 19).
    ReleaseAfterWrites,
    /// A message is sent after the records that it follows from are on the disk.
    SaveFirst,
    /// A server whose disk fails a write ends.
    FailedSave,
    /// The port of an ended connection is given to another one when no switch can use it (rule 29).
    ReclaimAfterLeases,
    /// Only a connection that has ended loses its port to another one (rule 29).
    ReclaimEnded,
    /// A head outwaits no lease of a switch that it promised so (rule 1).
    Promises,
    /// A promise outlasts the configuration in which it was made (rule 1).
    LastingPromises,
    /// A head promises only while the other members back it (rule 1a).
    Backing,
    /// Servers back a head only in the configuration that they follow (rule 1b).
    BackedConfiguration,
    /// A head needs the backing of a replica that may have joined (rule 1b).
    JoinerBacks,
    /// A new head outwaits nobody at first (rule 1c).
    NewHeadWaits,
    /// A new head outwaits nobody for the time of a backing, not of a promise (rule 1c).
    NewHeadWaitsLong,
    /// A head that starts again outwaits nobody at first (rule 1c).
    RestartWaits,
    /// A shard is withheld from a switch whose holder answers no recall (rule 5).
    Withholding,
    /// A deadline counts from when the heartbeat was sent (rule 1).
    DeadlineFromSending,
    /// A term that ended and begins again is noticed (rule 1d).
    LapseNoticed,
    /// A term begins when a reply is handled, not when its heartbeat was sent (rule 1d).
    SinceReply,
    /// A lease of before the term is not used (rule 1d).
    LeaseSince,
    /// A grant counts from when it was asked for (rule 1d).
    GrantSent,
    /// Beginning and deadline of a term are written at once (rule 1d).
    TermAtOnce,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 41] = [
        Self::SequenceCheck,
        Self::EpochCheck,
        Self::WholeChainAcknowledgement,
        Self::LeaseExpiry,
        Self::LeaseDeadline,
        Self::InstallOnce,
        Self::ReleaseOnce,
        Self::ReleaseOrder,
        Self::IncarnationCheck,
        Self::MessageChecksum,
        Self::Retransmission,
        Self::KeyComparison,
        Self::SnapshotSynchronise,
        Self::SnapshotEveryElement,
        Self::SnapshotAcknowledged,
        Self::SnapshotBound,
        Self::ChainEpoch,
        Self::ChainNeighbour,
        Self::KeptUpdates,
        Self::WholeJoin,
        Self::RecallStops,
        Self::ReleaseAfterWrites,
        Self::SaveFirst,
        Self::FailedSave,
        Self::ReclaimAfterLeases,
        Self::ReclaimEnded,
        Self::Promises,
        Self::LastingPromises,
        Self::Backing,
        Self::BackedConfiguration,
        Self::JoinerBacks,
        Self::NewHeadWaits,
        Self::NewHeadWaitsLong,
        Self::RestartWaits,
        Self::Withholding,
        Self::DeadlineFromSending,
        Self::LapseNoticed,
        Self::SinceReply,
        Self::LeaseSince,
        Self::GrantSent,
        Self::TermAtOnce,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SequenceCheck => "sequence-check",
            Self::EpochCheck => "epoch-check",
            Self::WholeChainAcknowledgement => "whole-chain-acknowledgement",
            Self::LeaseExpiry => "lease-expiry",
            Self::LeaseDeadline => "lease-deadline",
            Self::InstallOnce => "install-once",
            Self::ReleaseOnce => "release-once",
            Self::ReleaseOrder => "release-order",
            Self::IncarnationCheck => "incarnation-check",
            Self::MessageChecksum => "message-checksum",
            Self::Retransmission => "retransmission",
            Self::KeyComparison => "key-comparison",
            Self::SnapshotSynchronise => "snapshot-synchronise",
            Self::SnapshotEveryElement => "snapshot-every-element",
            Self::SnapshotAcknowledged => "snapshot-acknowledged",
            Self::SnapshotBound => "snapshot-bound",
            Self::ChainEpoch => "chain-epoch",
            Self::ChainNeighbour => "chain-neighbour",
            Self::KeptUpdates => "kept-updates",
            Self::WholeJoin => "whole-join",
            Self::RecallStops => "recall-stops",
            Self::ReleaseAfterWrites => "release-after-writes",
            Self::SaveFirst => "save-first",
            Self::FailedSave => "failed-save",
            Self::ReclaimAfterLeases => "reclaim-after-leases",
            Self::ReclaimEnded => "reclaim-ended",
            Self::Promises => "promises",
            Self::LastingPromises => "lasting-promises",
            Self::Backing => "backing",
            Self::BackedConfiguration => "backed-configuration",
            Self::JoinerBacks => "joiner-backs",
            Self::NewHeadWaits => "new-head-waits",
            Self::NewHeadWaitsLong => "new-head-waits-long",
            Self::RestartWaits => "restart-waits",
            Self::Withholding => "withholding",
            Self::DeadlineFromSending => "deadline-from-sending",
            Self::LapseNoticed => "lapse-noticed",
            Self::SinceReply => "since-reply",
            Self::LeaseSince => "lease-since",
            Self::GrantSent => "grant-sent",
            Self::TermAtOnce => "term-at-once",
        }
    }

    /// The rule of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// The macro that turns it off when a program is compiled; `None` if it is the
    /// store's.
    pub const fn macro_name(self) -> Option<&'static str> {
        match self {
            Self::SequenceCheck
            | Self::EpochCheck
            | Self::WholeChainAcknowledgement
            | Self::LeaseExpiry
            | Self::ChainEpoch
            | Self::ChainNeighbour
            | Self::KeptUpdates
            | Self::WholeJoin
            | Self::ReleaseAfterWrites
            | Self::SaveFirst
            | Self::FailedSave
            | Self::ReclaimAfterLeases
            | Self::ReclaimEnded
            | Self::Promises
            | Self::LastingPromises
            | Self::Backing
            | Self::BackedConfiguration
            | Self::JoinerBacks
            | Self::NewHeadWaits
            | Self::NewHeadWaitsLong
            | Self::RestartWaits
            | Self::Withholding
            | Self::DeadlineFromSending
            | Self::LapseNoticed
            | Self::SinceReply
            | Self::TermAtOnce => None,
            Self::LeaseSince => Some("REPLICATION_FAULT_LEASE_SINCE"),
            Self::GrantSent => Some("REPLICATION_FAULT_GRANT_SENT"),
            Self::LeaseDeadline => Some("REPLICATION_FAULT_LEASE_DEADLINE"),
            Self::InstallOnce => Some("REPLICATION_FAULT_INSTALL_ONCE"),
            Self::ReleaseOnce => Some("REPLICATION_FAULT_RELEASE_ONCE"),
            Self::ReleaseOrder => Some("REPLICATION_FAULT_RELEASE_ORDER"),
            Self::IncarnationCheck => Some("REPLICATION_FAULT_INCARNATION"),
            Self::MessageChecksum => Some("REPLICATION_FAULT_MESSAGE_CHECKSUM"),
            Self::Retransmission => Some("REPLICATION_FAULT_RETRANSMISSION"),
            Self::KeyComparison => Some("REPLICATION_FAULT_KEY_COMPARISON"),
            Self::SnapshotSynchronise => Some("SNAPSHOT_FAULT_SYNCHRONISE"),
            Self::SnapshotEveryElement => Some("SNAPSHOT_FAULT_EVERY_ELEMENT"),
            Self::SnapshotAcknowledged => Some("SNAPSHOT_FAULT_ACKNOWLEDGED"),
            Self::SnapshotBound => Some("SNAPSHOT_FAULT_BOUND"),
            Self::RecallStops => Some("REPLICATION_FAULT_RECALL_STOPS"),
        }
    }

    /// Faults of the store with this rule disabled.
    pub(crate) fn store_faults(self) -> stateplane_store::Faults {
        let mut faults = stateplane_store::Faults::default();
        match self {
            Self::SequenceCheck => faults.ignore_sequence = true,
            Self::EpochCheck => faults.ignore_epoch = true,
            Self::WholeChainAcknowledgement => faults.answer_at_head = true,
            Self::LeaseExpiry => faults.ignore_lease_expiry = true,
            Self::ChainEpoch => faults.ignore_chain_epoch = true,
            Self::ChainNeighbour => faults.ignore_neighbour = true,
            Self::KeptUpdates => faults.forget_entries = true,
            Self::WholeJoin => faults.join_early = true,
            Self::ReleaseAfterWrites => faults.release_early = true,
            Self::SaveFirst => faults.send_unsaved = true,
            Self::ReclaimAfterLeases => faults.reclaim_held = true,
            Self::ReclaimEnded => faults.reclaim_live = true,
            Self::Promises => faults.forget_promises = true,
            Self::LastingPromises => faults.promise_per_chain = true,
            Self::Backing => faults.need_no_backing = true,
            Self::BackedConfiguration => faults.back_any_epoch = true,
            Self::JoinerBacks => faults.ignore_joiner = true,
            Self::NewHeadWaits => faults.inherit_at_once = true,
            Self::NewHeadWaitsLong => faults.inherit_after_term = true,
            Self::RestartWaits => faults.restart_at_once = true,
            Self::Withholding => faults.never_withhold = true,
            _ => {}
        }
        faults
    }

    /// Faults of a switch's terms with this rule disabled.
    pub(crate) fn term_faults(self) -> stateplane_term::Faults {
        stateplane_term::Faults {
            ignore_lapse: self == Self::LapseNoticed,
            since_asked: self == Self::SinceReply,
            deadline_from_arrival: self == Self::DeadlineFromSending,
        }
    }

    /// Faults of the model with this rule disabled.
    pub(crate) fn model_faults(self) -> ModelFaults {
        ModelFaults {
            ignore_since: self == Self::LeaseSince,
            count_from_arrival: self == Self::GrantSent,
            tear_terms: self == Self::TermAtOnce,
        }
    }
}

/// Rules turned off in the model of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct ModelFaults {
    /// A lease of before the term is used.
    pub(crate) ignore_since: bool,
    /// A grant counts from its arrival.
    pub(crate) count_from_arrival: bool,
    /// The deadline of a term is written before its beginning.
    pub(crate) tear_terms: bool,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Inputs of a run besides its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Program on the switches.
    pub program: ProgramKind,
    /// Engine of the switches. Equal seeds give equal runs on all engines.
    pub engine: EngineKind,
    /// Scenario: traffic, links and faults.
    pub scenario: Scenario,
    /// A rule that is turned off.
    pub without: Option<Rule>,
    /// Part of the plan that is executed.
    pub chosen: Chosen,
    /// The options of `stateplane sim` that name a program of the user's.
    pub own_program: Option<String>,
}

impl Options {
    /// `program` in the world of every misfortune, with all rules.
    pub fn new(program: ProgramKind) -> Self {
        Self {
            program,
            engine: EngineKind::default(),
            scenario: Scenario::mixed(),
            without: None,
            chosen: Chosen::default(),
            own_program: None,
        }
    }

    /// The same options with another scenario.
    #[must_use]
    pub fn scenario(mut self, scenario: Scenario) -> Self {
        self.scenario = scenario;
        self
    }

    /// The same options with another engine.
    #[must_use]
    pub fn engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }

    /// The same options with one rule disabled.
    #[must_use]
    pub fn without(mut self, rule: Rule) -> Self {
        self.without = Some(rule);
        self
    }

    /// The same options with a part of the plan.
    #[must_use]
    pub fn chosen(mut self, chosen: Chosen) -> Self {
        self.chosen = chosen;
        self
    }

    /// The command that repeats the run of `seed`.
    pub fn command(&self, seed: u64) -> String {
        let program = match (self.program, &self.own_program) {
            (ProgramKind::Own(_), Some(own)) => own.clone(),
            (ProgramKind::Own(_), None) => "--p4 PROGRAM.p4 --stf TEST.stf".to_owned(),
            (program, _) => format!("--program {program}"),
        };
        let command = Command {
            program: &program,
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
