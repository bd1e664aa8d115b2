//! Clients of the coordination service, as state machines without IO.
//!
//! An [`Agent`] is driven from outside: datagrams and the time go in through `handle_*`, datagrams,
//! events and the time of the next wake-up come out of `poll_*`. Equal settings, seed and inputs
//! give equal outputs. Times are µs of a clock that does not go back.
//!
//! `docs/coordination-protocol.md` is the contract; where the code follows one of its rules it
//! names the rule's number.

mod agent;
mod call;
mod connection;
mod directory;
mod event;
mod leader;
mod membership;
mod mutex;
mod name;
mod operation;
mod permits;
mod reaper;
mod redo;
mod session;
mod settings;
mod survey;
mod transaction;
mod watch;

pub use agent::{Agent, Lanes, Refused};
pub use connection::{Connection, ConnectionEvent};
pub use directory::{Chain, group_of};
pub use event::{Answer, Entry, Event, Fate, LockState, Reason, Record, Ticket};
pub use leader::LeaderLatch;
pub use membership::{Barrier, Membership, MembershipEvent, Passage, Seat};
pub use mutex::{Denied, Hold, Mutex, Wait};
pub use name::{MAX_NAME, Name, NameError};
pub use operation::{Action, Delete, Guard, Lane, Operation, Owner, Place, Reading, When, Write};
pub use permits::{ReadWriteLock, Semaphore};
pub use reaper::{Reaper, ReaperSettings};
pub use redo::MAX_CHANGE;
pub use session::{Session, SessionRecord, SessionSettings, SessionState};
pub use settings::{Counters, Settings};
pub use survey::{Difference, Seen, Survey, Surveyed};
pub use transaction::{Change, Transaction, TransactionState};
pub use watch::{Watch, WatchEvent, WatchSettings};
