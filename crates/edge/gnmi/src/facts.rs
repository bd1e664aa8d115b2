//! State of an engine at one moment, as far as a request needs it.

use std::collections::BTreeSet;
use std::sync::Arc;

use stateplane_host::sync::{SyncServer, VALUE_BYTES, ViewError, Window};
use stateplane_sync::Told;

/// A group as the engine's file has it: it does not change while the engine runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// Its locations.
    pub locations: u32,
}

/// State of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupFacts {
    /// The promise; `None` while the view is incomplete.
    pub told: Option<Told>,
    /// Another engine has a higher term.
    pub fenced: bool,
    /// Number of the last window that is kept; 0 before the first.
    pub last_window: u64,
    /// Values by location, 8 bytes each, little-endian; `None` while the view is incomplete, or if
    /// they were not asked for.
    pub values: Option<Arc<Vec<u8>>>,
}

/// The answer for a window behind a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowNext {
    /// The first one behind it.
    Window(Window),
    /// None has come yet.
    NotYet,
    /// The one that follows is not kept any more.
    Gone {
        /// Number of the oldest that is kept.
        oldest: u64,
    },
}

/// State of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The engine's term.
    pub term: u64,
    /// The groups, in the order of the file.
    pub groups: Vec<GroupFacts>,
    /// Windows that were asked for: group, number behind which, answer.
    pub windows: Vec<(usize, u64, WindowNext)>,
}

/// Facts that are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Term, `fenced` and `last_window`.
    pub report: bool,
    /// Groups whose values are wanted.
    pub values: BTreeSet<usize>,
    /// Windows: group, and number behind which.
    pub windows: BTreeSet<(usize, u64)>,
}

impl Facts {
    /// The groups of `server`.
    ///
    /// # Errors
    ///
    /// [`ViewError::Standby`]: one that stands by follows none.
    pub fn groups(server: &SyncServer) -> Result<Vec<GroupInfo>, ViewError> {
        server.check_leads()?;
        let groups = server.report().groups.into_iter();
        Ok(groups
            .map(|group| GroupInfo {
                name: group.name,
                locations: group.locations,
            })
            .collect())
    }

    /// State of `server`, whose groups are `groups`.
    ///
    /// # Errors
    ///
    /// [`ViewError::Standby`]; the engine has all groups, and gives no others.
    pub fn of(
        server: &mut SyncServer,
        groups: &[GroupInfo],
        needs: &Needs,
    ) -> Result<Facts, ViewError> {
        server.check_leads()?;
        let mut facts = Facts {
            term: server.term(),
            ..Facts::default()
        };
        facts.groups = server
            .told()
            .into_iter()
            .map(|told| GroupFacts {
                told,
                ..GroupFacts::default()
            })
            .collect();
        if needs.report {
            for (group, report) in facts.groups.iter_mut().zip(server.report().groups) {
                group.fenced = report.fenced;
                group.last_window = report.last_window;
            }
        }
        for at in &needs.values {
            let (Some(info), Some(group)) = (groups.get(*at), facts.groups.get_mut(*at)) else {
                continue;
            };
            // Promise and values are of one moment.
            let reading = server.present(&info.name)?;
            group.told = reading.as_ref().map(|reading| reading.told);
            group.values = reading.map(|reading| reading.values);
        }
        for (at, after) in &needs.windows {
            let Some(info) = groups.get(*at) else {
                continue;
            };
            let next = match server.window_after(&info.name, *after) {
                Ok(Some(window)) => WindowNext::Window(window),
                Ok(None) => WindowNext::NotYet,
                Err(ViewError::Gone { oldest, .. }) => WindowNext::Gone { oldest },
                Err(error) => return Err(error),
            };
            facts.windows.push((*at, *after, next));
        }
        Ok(facts)
    }
}

/// The value at a location; `None` beyond the last one.
pub(crate) fn value_at(values: &[u8], location: u32) -> Option<u64> {
    let start = location as usize * VALUE_BYTES;
    let bytes = values.get(start..start + VALUE_BYTES)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
