//! Report on the views.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Report on the view of one switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    /// The switch.
    pub switch: String,
    /// Readings.
    pub readings: u64,
    /// Of these, such as fell into a time in which the switch lived and was heard.
    pub heard: u64,
    /// Of these, such as were refused, unbounded or too old.
    pub late: u64,
    /// Readings in which a dead switch's last view was told.
    pub dead: u64,
    /// Starts of the switch that were told.
    pub incarnations: u64,
    /// Median of the ages while it was heard, in ms.
    pub age_median_ms: f64,
    /// Greatest of these, in ms.
    pub age_greatest_ms: f64,
    /// Greatest bound while it was heard.
    pub greatest_bound: u64,
    /// Longest time, in ms, from when the switch was back to the first reading of its new view.
    pub back_within_ms: Option<f64>,
    /// Packets that the last views of all its starts tell.
    pub told: u64,
    /// Packets that came back from it.
    pub received: u64,
}

/// Report on the view of flows that the store has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredReport {
    /// Readings.
    pub readings: u64,
    /// Of these, such as were refused or too old.
    pub late: u64,
    /// Greatest age, in ms.
    pub greatest_age_ms: f64,
    /// Changes that were made.
    pub changes: u64,
    /// Changes that did not come in time, or whose outcome is unknown.
    pub in_vain: u64,
    /// Packets that the last numbers of all flows tell.
    pub told: u64,
}

/// Report on the views.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewReport {
    /// By switch.
    pub groups: Vec<GroupReport>,
    /// Of the store.
    pub stored: StoredReport,
}

impl ViewReport {
    /// True if views of all switches and of the store were read, packets were told, and flows changed.
    pub(in super::super) fn bites(&self) -> bool {
        let read = |group: &GroupReport| group.heard > 0 && group.told > 0;
        let stored = self.stored.told > 0 && self.stored.changes > 0;
        stored && !self.groups.is_empty() && self.groups.iter().all(read)
    }
}

impl fmt::Display for ViewReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for group in &self.groups {
            write!(
                f,
                "      view of {}: {} readings, {} of them late, {} of it dead; {} starts, {} packets \
                 told, {} came through; age {:.1} ms (median), {:.1} ms (greatest); bound {} at most",
                group.switch,
                group.readings,
                group.late,
                group.dead,
                group.incarnations,
                group.told,
                group.received,
                group.age_median_ms,
                group.age_greatest_ms,
                group.greatest_bound,
            )?;
            if let Some(within) = group.back_within_ms {
                write!(f, "; anew within {within:.0} ms of a return")?;
            }
            writeln!(f)?;
        }
        let stored = &self.stored;
        writeln!(
            f,
            "      view of the store: {} readings, {} of them late; age {:.1} ms (greatest); {} packets \
             told; {} changes made, {} in vain",
            stored.readings,
            stored.late,
            stored.greatest_age_ms,
            stored.told,
            stored.changes,
            stored.in_vain,
        )
    }
}
