//! A look at register groups: what sources give, and pictures are made of.

use crate::error::TopError;
use stateplane_sketch::Verdict;
use std::time::Duration;

/// Looks at the register groups of a switch, again and again.
pub trait Source: Send {
    /// Names of its program, place and traffic.
    fn title(&self) -> Title;

    /// Lets an interval pass, and looks.
    ///
    /// # Errors
    ///
    /// [`TopError`] if there is nothing to look at. A source that has looked before tells of what
    /// may pass as [`Look::trouble`].
    fn next(&mut self, interval: Duration) -> Result<Look, TopError>;
}

/// Names of what a source looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Title {
    /// The program, or the family of its sketch.
    pub program: String,
    /// The switch and its link, or the engine's address.
    pub place: String,
    /// Origin of the packets; empty if it is not known.
    pub traffic: String,
}

/// Register groups at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// The source's clock in µs: that of the switch in this process, or the time since the first
    /// look at an engine.
    pub at_us: u64,
    /// Packets that the switch had; `None` if it is not known.
    pub packets: Option<u64>,
    /// Share of real time at which the clock runs, at most 1; `None` if it is not paced.
    pub speed: Option<f64>,
    /// Reason for which there are no groups; it may pass.
    pub trouble: Option<String>,
    /// The groups, in the order of the program or of the engine's file.
    pub groups: Vec<GroupLook>,
}

/// Promise about a view (rules 5, 6 of `docs/sync-protocol.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// E: no location is farther from what the switch held at the mark; `None`: unbounded.
    pub bound: Option<u64>,
    /// k: all but so many locations are within `within`.
    pub all_but: u64,
    /// t: the greatest threshold of the last two sweeps.
    pub within: u64,
    /// The mark is not older, in µs.
    pub age_us: u64,
    /// Views that began since the engine started.
    pub generation: u64,
}

/// Kind of the rows of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finding {
    /// Flows above a threshold.
    HeavyHitters,
    /// Sources with more destinations than a threshold.
    SuperSpreaders,
    /// Destinations with more sources than a threshold.
    Victims,
    /// The locations with the greatest values.
    #[default]
    Locations,
}

impl Finding {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Finding::HeavyHitters => "heavy hitters",
            Finding::SuperSpreaders => "super-spreaders",
            Finding::Victims => "victims of many sources",
            Finding::Locations => "greatest locations",
        }
    }

    /// Things that are above the threshold, and of what they have more.
    pub fn above(self) -> (&'static str, &'static str) {
        match self {
            Finding::HeavyHitters => ("flows", "packets"),
            Finding::SuperSpreaders => ("sources", "destinations"),
            Finding::Victims => ("destinations", "sources"),
            Finding::Locations => ("locations", ""),
        }
    }
}

/// A flow, an address or a location, with the interval in which its count was at the mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its key, as `stateplane sketch` writes it.
    pub name: String,
    /// The estimate.
    pub estimate: u64,
    /// The count was not smaller, as sure as the sketch is.
    pub low: u64,
    /// The count was not greater; `None`: unbounded.
    pub high: Option<u64>,
    /// Its place about the threshold; `None` without one.
    pub verdict: Option<Verdict>,
    /// The count at the mark, where the source knows it.
    pub count: Option<u64>,
}

/// A register group at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupLook {
    /// Its name.
    pub name: String,
    /// Its locations.
    pub locations: u32,
    /// The promise; `None` while the view is incomplete.
    pub told: Option<Promise>,
    /// T: no location is farther from what was last sent of it (rule 3); `None`: unbounded, or not
    /// known.
    pub unsent: Option<u64>,
    /// Locations that wait in the switch's ring.
    pub queued: u32,
    /// Places of the ring; `None` if it is not known.
    pub places: Option<u32>,
    /// Positions of the ring that were sent.
    pub sent: u64,
    /// Positions that were named as lost since the view began (rule 8).
    pub lost: u64,
    /// Positions that neither came nor were named: lost, or on their way.
    pub missing: u64,
    /// The distance of the farthest location from the register at the mark, where the source sees
    /// the registers.
    pub off: Option<u64>,
    /// Kind of the rows.
    pub finding: Finding,
    /// The threshold of the rows.
    pub threshold: Option<u64>,
    /// The greatest, in order, at most 64.
    pub rows: Vec<Row>,
}
