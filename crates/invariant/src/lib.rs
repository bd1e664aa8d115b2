//! Invariants that the code checks as it runs.
//!
//! [`invariant!`] checks one. A broken invariant panics in tests and simulation. In production
//! it is counted, reported once by its host, and has its [`Effect`]: the core that owns the
//! [`Invariants`] falls silent, or drops what it was about to do.
//!
//! Input is no invariant: what a stranger may send is refused and counted, never checked here. A
//! check of what other members of a deployment send ([`Cause::Member`]) counts only where
//! messages are authentic ([`Invariants::new`]); elsewhere a forged message could silence a
//! replica.

mod mode;

pub use mode::{in_production, panic_in_release};

use core::fmt;
use core::ops::AddAssign;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Effect of a broken invariant in production.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The core answers and forwards nothing more, and leaves its state on the disk as it is.
    Silence,
    /// The core drops the packet, message or decision, and goes on.
    Drop,
}

/// Those who can break an invariant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The process itself, whatever it receives.
    Own,
    /// A member of the deployment, by the messages that it sends.
    Member,
}

macro_rules! invariants {
    ($($(#[$doc:meta])* $name:ident => $code:literal, $counter:literal, $effect:ident, $cause:ident;)*) => {
        /// An invariant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant {
            $($(#[$doc])* $name,)*
        }

        impl Invariant {
            /// All invariants, in the order of their codes.
            pub const ALL: &'static [Invariant] = &[$(Invariant::$name),*];

            /// A short stable code, for messages and tests.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Invariant::$name => $code,)*
                }
            }

            /// The counter's name, in snake case.
            pub const fn counter(self) -> &'static str {
                match self {
                    $(Invariant::$name => concat!("broken_", $counter),)*
                }
            }

            /// Effect in production.
            pub const fn effect(self) -> Effect {
                match self {
                    $(Invariant::$name => Effect::$effect,)*
                }
            }

            /// Those who can break it.
            pub const fn cause(self) -> Cause {
                match self {
                    $(Invariant::$name => Cause::$cause,)*
                }
            }
        }
    };
}

invariants! {
    /// An entry of a chain fits the state of each replica that applies it.
    ChainEntry => "SI001", "chain_entry", Silence, Member;
    /// A successor acknowledges no entry that its predecessor does not have.
    ChainAcknowledgement => "SI002", "chain_acknowledgement", Silence, Member;
    /// A replica numbers entries without gap and wrap, and knows none beyond its last as complete.
    ChainNumber => "SI003", "chain_number", Silence, Member;
    /// A replica keeps no more entries for its successor than the window and a copy need.
    ChainBacklog => "SI004", "chain_backlog", Silence, Member;
    /// A copy of a replica has the digest of the original, and no item that contradicts another.
    ChainCopy => "SI005", "chain_copy", Drop, Member;
    /// Two configurations of one chain have different numbers.
    Configuration => "SI006", "configuration", Drop, Member;
    /// The number of records is that of the records made and not forgotten.
    RecordCount => "SI007", "record_count", Silence, Member;
    /// Requests that wait for a lease have room in the bytes set aside for them.
    ParkedRequests => "SI008", "parked_requests", Drop, Own;
    /// Updates that came before their turn are no more than the window.
    EarlyUpdates => "SI009", "early_updates", Drop, Own;
    /// A configuration is stored as it was decided, and only after it was.
    StoredDecision => "SI010", "stored_decision", Silence, Own;
    /// A configuration has a greater number than the one that it replaces.
    DecisionNumber => "SI011", "decision_number", Drop, Own;
    /// The tables of a controller have no more rows than their bounds.
    ControllerTable => "SI012", "controller_table", Drop, Own;
    /// Held copies of a switch are no more, in number and bytes, than its limits.
    HeldCopies => "SI013", "held_copies", Drop, Own;
    /// A snapshot on the disk ends only after it has begun.
    DiskSnapshot => "SI014", "disk_snapshot", Drop, Own;
    /// Requests that wait at the sockets of a store server have room in their queue.
    RequestQueue => "SI015", "request_queue", Drop, Own;
}

/// Number of invariants.
const COUNT: usize = Invariant::ALL.len();

/// An invariant that broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// The invariant.
    pub invariant: Invariant,
    /// File and line of the check.
    pub place: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self.invariant.effect() {
            Effect::Silence => "it falls silent",
            Effect::Drop => "it drops what it was about to do",
        };
        let (code, place) = (self.invariant.code(), self.place);
        write!(f, "a broken invariant at {place}: {effect}; ")?;
        write!(f, "`stateplane explain {code}` says what to do")
    }
}

/// Counters of broken invariants. As data, their sum and those that are not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BrokenCounts([u64; COUNT]);

impl BrokenCounts {
    /// Number of times that `invariant` broke.
    pub fn of(&self, invariant: Invariant) -> u64 {
        self.0[invariant as usize]
    }

    /// Number of times that any invariant broke.
    pub fn total(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl AddAssign for BrokenCounts {
    fn add_assign(&mut self, other: BrokenCounts) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(count);
        }
    }
}

impl Serialize for BrokenCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("broken_invariants", &self.total())?;
        for invariant in Invariant::ALL.iter().filter(|it| self.of(**it) > 0) {
            map.serialize_entry(invariant.counter(), &self.of(*invariant))?;
        }
        map.end()
    }
}

/// The invariants of one core, and which of them broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invariants {
    authentic: bool,
    counts: BrokenCounts,
    /// Place of the first break of each invariant, until [`Invariants::poll`] gives it.
    unsaid: [Option<&'static str>; COUNT],
    silenced: Option<Broken>,
}

impl Invariants {
    /// Invariants of which none broke. `authentic` says that messages of members come from
    /// members alone: they are sealed, or nobody else reaches the network.
    pub fn new(authentic: bool) -> Invariants {
        Invariants {
            authentic,
            counts: BrokenCounts::default(),
            unsaid: [None; COUNT],
            silenced: None,
        }
    }

    /// Takes note of a broken invariant. Called by [`invariant!`].
    ///
    /// # Panics
    ///
    /// In tests, in simulation, and where [`panic_in_release`] was called, unless
    /// [`in_production`] runs.
    #[cold]
    pub fn broke(&mut self, invariant: Invariant, place: &'static str, what: fmt::Arguments<'_>) {
        if invariant.cause() == Cause::Member && !self.authentic {
            return;
        }
        let code = invariant.code();
        assert!(!mode::panics(), "invariant {code} broke at {place}: {what}");
        let count = &mut self.counts.0[invariant as usize];
        if *count == 0 {
            self.unsaid[invariant as usize] = Some(place);
        }
        *count = count.saturating_add(1);
        if invariant.effect() == Effect::Silence {
            self.silenced.get_or_insert(Broken { invariant, place });
        }
    }

    /// The next invariant to report: each that broke, once.
    pub fn poll(&mut self) -> Option<Broken> {
        Invariant::ALL.iter().find_map(|&invariant| {
            let place = self.unsaid[invariant as usize].take()?;
            Some(Broken { invariant, place })
        })
    }

    /// The first broken invariant that silences the core.
    pub fn silenced(&self) -> Option<Broken> {
        self.silenced
    }

    /// Counters since the start.
    pub fn counts(&self) -> BrokenCounts {
        self.counts
    }
}

/// Checks an invariant: `invariant!(invariants, Name, holds, "what", …)`, with a place of
/// [`Invariants`], a name of [`Invariant`], a condition, and a description for the panic. Gives the
/// condition, so that the caller can drop what it was about to do.
#[macro_export]
macro_rules! invariant {
    ($invariants:expr, $name:ident, $holds:expr, $($what:tt)+) => {{
        let holds: bool = $holds;
        if !holds {
            let place = concat!(file!(), ":", line!());
            $invariants.broke($crate::Invariant::$name, place, format_args!($($what)+));
        }
        holds
    }};
}

#[cfg(test)]
mod tests;
