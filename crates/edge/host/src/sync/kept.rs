//! State of an engine that outlives the process: its term, windows, and ids of writes.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use stateplane_disk::{Files, LogError, RecordLog};
use stateplane_wire::sync::Outcome;

use super::GroupFile;
use crate::files::SystemFiles;

/// First byte of the record of a start: the term.
const TERM: u8 = 1;

/// First byte of the record of a window.
const WINDOW: u8 = 2;

/// First byte of the record of a window whose values are not kept.
const WAIVED: u8 = 3;

/// First byte of the record of a write that may have been sent.
const BEGUN: u8 = 4;

/// First byte of the record of a write that ended.
const ENDED: u8 = 5;

/// Ids of writes that are remembered; older ones are forgotten.
pub const MOST_WRITE_IDS: usize = 1 << 16;

/// Starts of a switch whose last windows are remembered.
const MOST_INCARNATIONS: usize = 64;

/// Records of waived windows that wait for one that has to be written through.
const MOST_UNWRITTEN: usize = 256;

/// Bytes beyond twice those in force with which the log is written anew.
const SURPLUS: u64 = 16 << 20;

/// Number that a client drew for a write, by which the write is told from others.
pub type WriteId = [u8; 16];

/// A window that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its place among the windows of the group, from 1, across starts of switch and engine.
    pub number: u64,
    /// The switch's own name for its start.
    pub incarnation: u32,
    /// Number of the cut that ended it, in this start of the switch.
    pub epoch: u32,
    /// Values by location, 8 bytes each, little-endian.
    pub values: Arc<Vec<u8>>,
}

/// Windows of one group.
#[derive(Debug, Default)]
struct Windows {
    /// Number of the last one.
    last: u64,
    kept: VecDeque<Window>,
    /// Last window by start of the switch, the latest start behind.
    epochs: VecDeque<(u32, u32)>,
    most: usize,
}

impl Windows {
    fn add(&mut self, window: Window) {
        self.last = window.number;
        self.passed(window.incarnation, window.epoch);
        self.kept.push_back(window);
        while self.kept.len() > self.most {
            self.kept.pop_front();
        }
    }

    fn passed(&mut self, incarnation: u32, epoch: u32) {
        let before = self.epochs.iter().position(|(of, _)| *of == incarnation);
        let before = before.and_then(|at| self.epochs.remove(at));
        let epoch = before.map_or(epoch, |(_, before)| before.max(epoch));
        self.epochs.push_back((incarnation, epoch));
        while self.epochs.len() > MOST_INCARNATIONS {
            self.epochs.pop_front();
        }
    }
}

/// How far a write has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It was sent, and has not ended.
    Begun,
    /// It ended.
    Ended(Outcome),
    /// It ended, and nobody knows whether it took effect.
    Unknown,
}

impl From<Option<Outcome>> for Progress {
    fn from(outcome: Option<Outcome>) -> Progress {
        outcome.map_or(Progress::Unknown, Progress::Ended)
    }
}

/// The progress of writes by their ids, the oldest forgotten first.
#[derive(Debug, Default)]
struct WriteIds {
    progress: BTreeMap<WriteId, Progress>,
    order: VecDeque<WriteId>,
}

impl WriteIds {
    fn begin(&mut self, id: WriteId) {
        if self.progress.insert(id, Progress::Begun).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > MOST_WRITE_IDS {
            if let Some(oldest) = self.order.pop_front() {
                self.progress.remove(&oldest);
            }
        }
    }

    fn end(&mut self, id: WriteId, outcome: Option<Outcome>) {
        if let Some(known) = self.progress.get_mut(&id) {
            *known = outcome.into();
        }
    }
}

/// Facts that an engine keeps, in a [`RecordLog`] whose lock keeps other engines of the machine out.
#[derive(Debug)]
pub struct Kept<F: Files = SystemFiles> {
    log: RecordLog<F>,
    term: u64,
    groups: BTreeMap<String, Windows>,
    writes: WriteIds,
    /// Records wait to be written through.
    is_dirty: bool,
    /// Records of waived windows that were not written.
    waived: usize,
}

impl Kept {
    /// Opens the log in `folder`, or makes both.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    pub fn open(folder: &Path, groups: &[GroupFile]) -> Result<Kept, LogError> {
        Kept::open_on(SystemFiles, folder, groups)
    }
}

impl<F: Files> Kept<F> {
    /// As [`Kept::open`], on other files than those of the system.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    pub fn open_on(files: F, folder: &Path, groups: &[GroupFile]) -> Result<Kept<F>, LogError> {
        let path = folder.join("sync.log");
        files
            .make_folder(folder)
            .map_err(|cause| LogError::System {
                path: folder.into(),
                cause,
            })?;
        let windows = groups.iter().map(|group| {
            let windows = Windows {
                most: group.windows,
                ..Windows::default()
            };
            (group.name.clone(), windows)
        });
        let mut state = State {
            term: 0,
            groups: windows.collect(),
            writes: WriteIds::default(),
        };
        let log = RecordLog::open(&files, &path, 0, None, |bytes| state.take(bytes).is_some())?;
        let State {
            term,
            groups,
            mut writes,
        } = state;
        // Whether the switch took them is known to nobody.
        for progress in writes.progress.values_mut() {
            if *progress == Progress::Begun {
                *progress = Progress::Unknown;
            }
        }
        let mut kept = Kept {
            log,
            term,
            groups,
            writes,
            is_dirty: false,
            waived: 0,
        };
        kept.shorten()?;
        Ok(kept)
    }

    /// A term greater than all before and at least `least`, which is kept at once.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    pub fn next_term(&mut self, least: u64) -> Result<u64, LogError> {
        self.term = (self.term + 1).max(least);
        self.append(&term_record(self.term));
        self.sync()?;
        Ok(self.term)
    }

    /// The last windows of a group: starts of the switch, and of each the number of the last.
    pub fn epochs(&self, group: &str) -> Vec<(u32, u32)> {
        let windows = self.groups.get(group);
        windows.map_or(Vec::new(), |it| it.epochs.iter().copied().collect())
    }

    /// Keeps a window of a group, once it is written through; gives its number. `None` if the
    /// group is unknown or the window is not new.
    pub fn keep_window(
        &mut self,
        group: &str,
        incarnation: u32,
        epoch: u32,
        values: Arc<Vec<u8>>,
    ) -> Option<u64> {
        let windows = self.groups.get_mut(group)?;
        let known = windows.epochs.iter();
        if known
            .copied()
            .any(|(of, last)| of == incarnation && epoch <= last)
        {
            return None;
        }
        let window = Window {
            number: windows.last + 1,
            incarnation,
            epoch,
            values,
        };
        let record = window_record(group, &window);
        let number = window.number;
        windows.add(window);
        self.append(&record);
        Some(number)
    }

    /// Notes that the last window of a start is over whose values nobody wants.
    pub fn waive_window(&mut self, group: &str, incarnation: u32, epoch: u32) {
        if let Some(windows) = self.groups.get_mut(group) {
            windows.passed(incarnation, epoch);
            self.log.append(&waived_record(group, incarnation, epoch));
            // One that is lost has the window delivered again, which nobody wanted.
            self.waived += 1;
            self.is_dirty |= self.waived >= MOST_UNWRITTEN;
        }
    }

    /// The first window of a group that comes after number `after`.
    pub fn window_after(&self, group: &str, after: u64) -> Option<&Window> {
        let windows = self.groups.get(group)?;
        windows.kept.iter().find(|window| window.number > after)
    }

    /// Numbers of the oldest window kept and of the last one; of a group without windows the
    /// first is above the second.
    pub fn window_range(&self, group: &str) -> (u64, u64) {
        let Some(windows) = self.groups.get(group) else {
            return (1, 0);
        };
        let oldest = windows.kept.front();
        let oldest = oldest.map_or(windows.last + 1, |window| window.number);
        (oldest, windows.last)
    }

    /// Progress of a write; `None` if it never began, or was forgotten.
    pub fn write(&self, id: &WriteId) -> Option<Progress> {
        self.writes.progress.get(id).copied()
    }

    /// A write is about to be sent.
    pub fn begin_write(&mut self, id: WriteId) {
        self.writes.begin(id);
        self.append(&begun_record(&id));
    }

    /// A write ended; without an outcome it is unknown whether it took effect.
    pub fn end_write(&mut self, id: WriteId, outcome: Option<Outcome>) {
        self.writes.end(id, outcome);
        self.append(&ended_record(&id, outcome));
    }

    fn append(&mut self, record: &[u8]) {
        self.log.append(record);
        self.is_dirty = true;
    }

    /// Writes everything through, if there is something to write.
    ///
    /// # Errors
    ///
    /// [`LogError`]. Nothing is certain then.
    pub fn sync(&mut self) -> Result<(), LogError> {
        if !self.is_dirty {
            return Ok(());
        }
        self.log.sync()?;
        self.log.sync_marks()?;
        (self.is_dirty, self.waived) = (false, 0);
        self.shorten()
    }

    /// Writes everything through, waived windows too, as the engine ends.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    pub fn close(&mut self) -> Result<(), LogError> {
        self.is_dirty |= self.waived > 0;
        self.sync()
    }

    /// Forgets records that are no longer in force, when they are many.
    fn shorten(&mut self) -> Result<(), LogError> {
        let windows = self.groups.values().flat_map(|group| &group.kept);
        let bytes: usize = windows.map(|window| window.values.len() + 128).sum();
        let live = (bytes + self.writes.order.len() * 100) as u64;
        if self.log.length() <= 2 * live + SURPLUS {
            return Ok(());
        }
        let mut records = vec![term_record(self.term)];
        for (name, group) in &self.groups {
            records.extend(group.kept.iter().map(|window| window_record(name, window)));
            let epochs = group.epochs.iter();
            records.extend(epochs.map(|(of, epoch)| waived_record(name, *of, *epoch)));
        }
        for id in &self.writes.order {
            records.push(begun_record(id));
            match self.writes.progress.get(id) {
                Some(Progress::Ended(outcome)) => records.push(ended_record(id, Some(*outcome))),
                Some(Progress::Unknown) => records.push(ended_record(id, None)),
                Some(Progress::Begun) | None => {}
            }
        }
        self.log.replace(records)
    }
}

/// The facts that the records of a log say.
struct State {
    term: u64,
    groups: BTreeMap<String, Windows>,
    writes: WriteIds,
}

impl State {
    /// Takes one record; `None` if it makes no sense.
    fn take(&mut self, bytes: &[u8]) -> Option<()> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            TERM => self.term = self.term.max(u64::from_be_bytes(rest.try_into().ok()?)),
            WINDOW | WAIVED => {
                let length = usize::from(*take::<1>(&mut rest)?.first()?);
                let (name, mut rest) = rest.split_at_checked(length)?;
                let name = std::str::from_utf8(name).ok()?;
                let incarnation = u32::from_be_bytes(take(&mut rest)?);
                let epoch = u32::from_be_bytes(take(&mut rest)?);
                // A group that the file does not name any more is let go.
                let group = self.groups.get_mut(name);
                if *kind == WAIVED {
                    if let Some(group) = group {
                        group.passed(incarnation, epoch);
                    }
                    return rest.is_empty().then_some(());
                }
                let number = u64::from_be_bytes(take(&mut rest)?);
                let window = Window {
                    number,
                    incarnation,
                    epoch,
                    values: Arc::new(rest.to_vec()),
                };
                if let Some(group) = group {
                    group.add(window);
                }
            }
            BEGUN => self.writes.begin(rest.try_into().ok()?),
            ENDED => {
                let id = take(&mut rest)?;
                let outcome = match take(&mut rest)? {
                    [0] => None,
                    [outcome] => Some(Outcome::from_u8(outcome)?),
                };
                self.writes.end(id, outcome);
            }
            _ => return None,
        }
        Some(())
    }
}

/// The next bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn term_record(term: u64) -> Vec<u8> {
    let mut record = vec![TERM];
    record.extend(term.to_be_bytes());
    record
}

fn of_group(kind: u8, group: &str, incarnation: u32, epoch: u32) -> Vec<u8> {
    // Names have at most 64 bytes.
    let mut record = vec![kind, group.len() as u8];
    record.extend(group.as_bytes());
    record.extend(incarnation.to_be_bytes());
    record.extend(epoch.to_be_bytes());
    record
}

fn window_record(group: &str, window: &Window) -> Vec<u8> {
    let mut record = of_group(WINDOW, group, window.incarnation, window.epoch);
    record.extend(window.number.to_be_bytes());
    record.extend_from_slice(&window.values);
    record
}

fn waived_record(group: &str, incarnation: u32, epoch: u32) -> Vec<u8> {
    of_group(WAIVED, group, incarnation, epoch)
}

fn begun_record(id: &WriteId) -> Vec<u8> {
    let mut record = vec![BEGUN];
    record.extend(id);
    record
}

fn ended_record(id: &WriteId, outcome: Option<Outcome>) -> Vec<u8> {
    let mut record = vec![ENDED];
    record.extend(id);
    record.push(outcome.map_or(0, |outcome| outcome as u8));
    record
}

#[cfg(test)]
mod tests;
