//! Counts and views of an engine, as metrics and operators see them.

use serde::Serialize;

use crate::sealing::SealReport;

/// An engine's counts since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    /// The engine's term; of one that stands by, that under which it led last.
    pub term: u64,
    /// True while it leads: it has no other beside it, or was elected.
    pub leads: bool,
    /// How often it began to lead.
    pub led: u64,
    /// µs since the epoch of Unix at which the engine started.
    pub started_us: u64,
    /// Datagrams that came.
    pub received: u64,
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that the system did not take.
    pub send_failed: u64,
    /// Dropped: datagrams from an address that is no switch's.
    pub unknown_source: u64,
    /// Dropped: bytes that are no message.
    pub malformed: u64,
    /// Dropped: messages of a group that is not followed.
    pub unknown_group: u64,
    /// Counts of sealed messages, if messages are sealed.
    pub seals: Option<SealReport>,
    /// The groups, in the order of the file.
    pub groups: Vec<GroupReport>,
    /// Flows of stores, in the order of the file.
    pub flows: Vec<FlowsReport>,
    /// Copies for a Redis or Valkey server, if there is one.
    pub redis: Option<RedisReport>,
}

/// Counts of copies for a Redis or Valkey server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RedisReport {
    /// True while the server answers.
    pub connected: bool,
    /// Copies of views that the server took.
    pub views: u64,
    /// Copies of views that the server refused, as it has those of an engine with a higher term.
    pub fenced: u64,
    /// Windows that the server took.
    pub windows: u64,
    /// Windows that the server refused, as it has that number of the group.
    pub repeated: u64,
    /// Windows that the engine kept no longer when the server could be reached.
    pub lost: u64,
    /// Connections that could not be made, or ended.
    pub failed: u64,
}

/// A group's view and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupReport {
    /// Its name.
    pub name: String,
    /// Its locations.
    pub locations: u32,
    /// True if each location has a value.
    pub complete: bool,
    /// True if another engine has a higher term.
    pub fenced: bool,
    /// E; absent while the view is unbounded or incomplete.
    pub bound: Option<u64>,
    /// k: all but so many locations are within `within`.
    pub all_but: u64,
    /// t.
    pub within: u64,
    /// µs since the mark, at most; absent while the view is incomplete.
    pub age_us: Option<u64>,
    /// A, in µs.
    pub sweep_us: u32,
    /// T: no location is farther from what was last sent of it; absent while unbounded, and before
    /// the first mark.
    pub unsent: Option<u64>,
    /// Locations that wait in the switch's ring, as of the mark.
    pub queued: u32,
    /// Behind the last position of the ring that was sent, as far as known.
    pub sent: u64,
    /// Positions that neither came nor were named: lost, or on their way.
    pub missing: u64,
    /// Positions that were named as lost, of which nothing newer came yet.
    pub named: u64,
    /// Positions that were named as lost since the view began.
    pub lost: u64,
    /// Views that began.
    pub generation: u64,
    /// Cuts of the present start of the switch.
    pub epoch: u32,
    /// Number of the last window.
    pub last_window: u64,
    /// Requests that wait.
    pub waiting: usize,
    /// Values of chosen locations.
    pub values: Vec<(u32, u64)>,
    /// Totals of chosen locations of a group of counters, and their discontinuities.
    pub totals: Vec<(u32, u64, u32)>,
    /// UPDATEs.
    pub updates: u64,
    /// Values that were newer than those in the view.
    pub applied: u64,
    /// Lost positions that were asked for.
    pub repairs: u64,
    /// Lost positions that the switch named.
    pub repaired: u64,
    /// Requests that the switch refused.
    pub refused: u64,
    /// Dropped: answers to another START.
    pub foreign: u64,
    /// Dropped: messages with a location that the group does not have.
    pub beyond: u64,
    /// Messages of another start of the switch.
    pub other_incarnation: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Reads that were not met in time.
    pub unmet: u64,
    /// Windows that were kept.
    pub windows: u64,
}

/// View and counts of flows that a store's chains keep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowsReport {
    /// Their name.
    pub name: String,
    /// True once every chain was read whole.
    pub complete: bool,
    /// All that was acknowledged longer ago, in µs, is in the view; absent while it is incomplete.
    pub age_us: Option<u64>,
    /// Chains of the store; 0 while the view is incomplete.
    pub chains: u16,
    /// Flows in the view; 0 while it is incomplete.
    pub flows: usize,
    /// Changes of the view since the engine began to lead.
    pub changes: u64,
    /// Requests that wait.
    pub waiting: usize,
    /// Datagrams of the store that came.
    pub received: u64,
    /// Datagrams for the store.
    pub sent: u64,
    /// Answers of servers that are not the chain's head or tail.
    pub elsewhere: u64,
    /// Dropped: what is no message, or not for this start of the engine.
    pub foreign: u64,
    /// Dropped: answers to no question that is open.
    pub late: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Reads that were not met in time.
    pub unmet: u64,
    /// Changes of clients that were made.
    pub made: u64,
    /// Changes whose condition did not hold.
    pub mismatched: u64,
    /// Changes that the store refused, or that did not fit the state.
    pub refused: u64,
    /// Changes for which no lease came in time.
    pub timed_out: u64,
    /// Changes whose outcome nobody knows.
    pub unknown: u64,
}
