//! Settings and counters of an agent.

use core::net::{Ipv4Addr, SocketAddrV4};

/// How an agent asks. Times are µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address to which answers are sent.
    pub client: SocketAddrV4,
    /// Number of groups of the service, at least 1.
    pub groups: u16,
    /// Time that an operation has from its submission.
    pub deadline_us: u64,
    /// Time before the first repetition as long as no round trip was measured.
    pub first_timeout_us: u64,
    /// Least time before a repetition.
    pub least_timeout_us: u64,
    /// Most time between two repetitions of a request.
    pub most_timeout_us: u64,
    /// Time before the first repetition of a request that was refused with BUSY.
    pub busy_us: u64,
    /// Least time between two [`Event::ChainWanted`](crate::Event::ChainWanted) of one group.
    pub learn_us: u64,
    /// Most operations at a time, those that wait for a lane included.
    pub most_operations: usize,
}

impl Settings {
    /// Settings for a network of one place: a deadline of 5 s, repetitions after 0.5 to 20 ms.
    pub fn new(client: SocketAddrV4, groups: u16) -> Settings {
        Settings {
            client,
            groups,
            deadline_us: 5_000_000,
            first_timeout_us: 5_000,
            least_timeout_us: 500,
            most_timeout_us: 20_000,
            busy_us: 200,
            learn_us: 20_000,
            most_operations: 4_096,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0), 64)
    }
}

/// Events that an agent counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Operations submitted.
    pub submitted: u64,
    /// Operations refused on submission.
    pub refused: u64,
    /// Operations answered.
    pub answered: u64,
    /// Operations whose deadline passed without effect.
    pub expired: u64,
    /// Operations whose deadline passed while a request was under way.
    pub unknown: u64,
    /// Operations whose fate was learnt after that.
    pub resolved: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Datagrams sent, repetitions included.
    pub sent: u64,
    /// Repetitions.
    pub repeated: u64,
    /// Datagrams that are no reply to this agent.
    pub malformed: u64,
    /// Replies to nothing that is asked: late or repeated ones.
    pub unasked: u64,
    /// Replies of an epoch older than was known when the operation was asked (rule 10).
    pub outdated: u64,
    /// Refusals with BUSY.
    pub busy: u64,
    /// Refusals with MOVED.
    pub moved: u64,
    /// Other refusals.
    pub refusals: u64,
    /// Values compared by the agent that had to be read again, as the record changed in between.
    pub reread: u64,
    /// Entries of groups that are watched.
    pub entries: u64,
    /// Entries that were dropped because too many events wait.
    pub entries_dropped: u64,
    /// Chains learnt.
    pub chains: u64,
}
