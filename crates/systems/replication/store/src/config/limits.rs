//! Bounds of what a replica keeps, and rules that tests turn off.

use stateplane_wire::{ipv4, udp};

/// Bounds of everything that grows. None may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Records, over all shards.
    pub records: usize,
    /// Holders of one shared lease; more than 32,767 count as that many.
    pub holders: u16,
    /// Share in percent, up to 100, of free ports of an address and protocol in a shard
    /// below which taking another is counted, to warn before none is left.
    pub pool_low: u8,
    /// Requests that wait for one flow (rule 23).
    pub parked_per_flow: usize,
    /// Bytes of all requests that wait (rule 23).
    pub parked_bytes: usize,
    /// Bytes of all requests of one switch, by its address, that wait.
    pub parked_bytes_per_switch: usize,
    /// Entries decided that not every replica has, and entries kept that came
    /// before their turn.
    pub link_window: usize,
    /// Bytes of entries packed in one datagram; a larger entry travels alone.
    pub batch: usize,
    /// Entries kept for a replica that joins while it takes the snapshot; beyond
    /// them it gets a new one.
    pub join_backlog: usize,
    /// Changes of records that are kept while observers ask for them, over all shards of the key space: a
    /// chain keeps its share, at most 65,536. An observer that lacks older ones reads all records
    /// (rule 30).
    pub observed_changes: usize,
    /// µs of silence after which a neighbour that owes an acknowledgement is
    /// suspected.
    pub silence: u64,
    /// µs until a holder that was recalled is asked again; also for how long a new
    /// holder for which others wait is left alone.
    pub recall_first: u64,
    /// µs beyond which that time does not double.
    pub recall_bound: u64,
    /// µs from the first recall of a holder, or question whether its lease is idle, until its
    /// switch is not promised the shard any more (rule 5).
    pub withhold_after: u64,
    /// µs between questions for backing to one server (rule 1b).
    pub backing_interval: u64,
    /// µs between these as long as it does not back each chain that it is in.
    pub backing_first: u64,
    /// µs until unacknowledged entries are resent for the first time.
    pub resend_first: u64,
    /// µs beyond which that time does not double.
    pub resend_bound: u64,
    /// Most bytes of a datagram's payload; fewer than UDP's 65,507 if something is put
    /// behind it.
    pub datagram: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            records: 1 << 20,
            holders: 16,
            pool_low: 10,
            parked_per_flow: 16,
            parked_bytes: 16 << 20,
            parked_bytes_per_switch: 4 << 20,
            link_window: 1024,
            batch: 1400,
            join_backlog: 1 << 16,
            observed_changes: 1 << 20,
            silence: 100_000,
            recall_first: 1_000,
            recall_bound: 32_000,
            withhold_after: 100_000,
            backing_interval: 100_000,
            backing_first: 5_000,
            resend_first: 10_000,
            resend_bound: 320_000,
            datagram: 65_535 - ipv4::HEADER_LENGTH - udp::HEADER_LENGTH,
        }
    }
}

impl Limits {
    /// Leaves `bytes` free in each datagram between replicas, for what is put behind it.
    pub fn make_room(&mut self, bytes: usize) {
        self.datagram = self.datagram.saturating_sub(bytes).max(1);
        self.batch = self.batch.saturating_sub(bytes).max(1);
    }
}

/// Rules turned off, so that a test can show that a checker misses them. All are
/// `false` in service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Every write replaces the state, older ones too (against rule 10).
    pub ignore_sequence: bool,
    /// Writes and renewals count, with any lease holder (against rule 12).
    pub ignore_epoch: bool,
    /// The head answers before the chain has the update (against rule 11).
    pub answer_at_head: bool,
    /// An exclusive lease is granted although another one is valid.
    pub ignore_lease_expiry: bool,
    /// Messages between replicas count, with any chain epoch (against rule 21).
    pub ignore_chain_epoch: bool,
    /// Messages between replicas count, from any sender (against rule 21).
    pub ignore_neighbour: bool,
    /// A head outwaits holders without regard to what it promised their switches (against rule 1).
    pub forget_promises: bool,
    /// A promise ends with the configuration in which it was made (against rule 1).
    pub promise_per_chain: bool,
    /// A head promises without being backed by the other members (against rule 1a).
    pub need_no_backing: bool,
    /// Servers back a head whatever configuration they follow (against rule 1b).
    pub back_any_epoch: bool,
    /// A head needs no backing of a replica that may have joined (against rule 1b).
    pub ignore_joiner: bool,
    /// A new head outwaits holders at once (against rule 1c).
    pub inherit_at_once: bool,
    /// A new head outwaits holders after a promise's time, not after that of a backing (against
    /// rule 1c).
    pub inherit_after_term: bool,
    /// A head that starts again outwaits holders at once (against rule 1c).
    pub restart_at_once: bool,
    /// Nothing is withheld from a switch whose holder answers no recall (against rule 5).
    pub never_withhold: bool,
    /// Entries are forgotten as soon as the successor has them, although replicas
    /// behind it may not.
    pub forget_entries: bool,
    /// A joining replica counts before it has every update that was answered.
    pub join_early: bool,
    /// A lease is taken back although writes made under it are still in flight (against rule 19).
    pub release_early: bool,
    /// Messages leave before what they follow from is on the disk.
    pub send_unsaved: bool,
    /// The port of a connection that has ended is given to another one although a switch may still
    /// use it (against rule 29).
    pub reclaim_held: bool,
    /// The port of any connection is given to another one, also if it has not ended (against
    /// rule 29).
    pub reclaim_live: bool,
    /// Observers are told what a replica that joins, and may be the tail, lacks (against rule 30).
    pub observe_early: bool,
    /// Observers are not told of a record that is gone (against rule 30).
    pub observe_no_end: bool,
}
