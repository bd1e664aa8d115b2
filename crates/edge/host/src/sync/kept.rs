//! State of an engine that outlives the process: its term, windows, totals, and ids of writes.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use stateplane_disk::{Files, LogError, RecordLog};
use stateplane_sync::KeptTotals;
use stateplane_wire::sync::Outcome;

use super::{Fact, GroupFile};
use crate::files::SystemFiles;

use log::{
    Log, State, Waiting, begun_record, ended_record, term_record, totals_record, waived_record,
    window_record,
};

mod log;
mod totals;
mod writes;

use writes::WriteIds;
pub use writes::{MOST_WRITE_IDS, Progress, WriteId};

/// Starts of a switch whose last windows are remembered.
const MOST_INCARNATIONS: usize = 64;

/// Records of waived windows that wait for one that has to be written through.
const MOST_UNWRITTEN: usize = 256;

/// Bytes beyond twice those in force with which the log is written anew.
const SURPLUS: u64 = 16 << 20;

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
    /// Windows, each with the position of its fact.
    kept: VecDeque<(u64, Window)>,
    /// Last window by start of the switch, the latest start behind.
    epochs: VecDeque<(u32, u32)>,
    most: usize,
    /// How often totals were kept, and the last.
    totals: (u64, Arc<Vec<u8>>),
}

impl Windows {
    fn add(&mut self, position: u64, window: Window) {
        self.last = window.number;
        self.passed(window.incarnation, window.epoch);
        self.kept.push_back((position, window));
        while self.kept.len() > self.most {
            self.kept.pop_front();
        }
    }

    /// Windows whose facts are behind none later than `durable`.
    fn durable(&self, durable: u64) -> impl DoubleEndedIterator<Item = &Window> {
        let kept = self.kept.iter();
        kept.filter_map(move |(position, window)| (*position <= durable).then_some(window))
    }

    fn epochs_fact(&self, group: &str) -> Fact {
        Fact::Epochs {
            group: group.to_owned(),
            epochs: self.epochs.iter().copied().collect(),
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

/// Facts that an engine keeps: in a [`RecordLog`] whose lock keeps other engines of the machine out,
/// or in a store that engines share.
#[derive(Debug)]
pub struct Kept<F: Files = SystemFiles> {
    log: Log<F>,
    term: u64,
    groups: BTreeMap<String, Windows>,
    writes: WriteIds,
    /// Facts wait to be written through.
    is_dirty: bool,
    /// Facts of waived windows that were not written.
    waived: usize,
    /// Facts so far, which is the position of the last one, and those that are certain.
    position: u64,
    durable: u64,
}

/// The windows of all groups, none yet.
fn no_windows(groups: &[GroupFile]) -> BTreeMap<String, Windows> {
    let windows = groups.iter().map(|group| {
        let windows = Windows {
            most: group.windows,
            ..Windows::default()
        };
        (group.name.clone(), windows)
    });
    windows.collect()
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
        let mut state = State {
            term: 0,
            groups: no_windows(groups),
            writes: WriteIds::default(),
        };
        let log = RecordLog::open(&files, &path, 0, None, |bytes| state.take(bytes).is_some())?;
        let State {
            term,
            groups,
            mut writes,
        } = state;
        writes.give_up();
        let mut kept = Kept {
            log: Log::Folder(log),
            term,
            groups,
            writes,
            is_dirty: false,
            waived: 0,
            position: 0,
            durable: 0,
        };
        kept.shorten()?;
        Ok(kept)
    }

    /// State that the facts of a shared store give, for the engine with `term`. Those of windows are in the
    /// order of their numbers.
    pub fn shared(groups: &[GroupFile], term: u64, facts: Vec<Fact>) -> Kept<F> {
        let (mut groups, mut writes) = (no_windows(groups), Vec::new());
        for fact in facts {
            match fact {
                // A group that the file does not name any more is let go.
                Fact::Window { group, window, .. } => {
                    if let Some(group) = groups.get_mut(&group) {
                        group.add(0, window);
                    }
                }
                Fact::Epochs { group, epochs } => {
                    if let Some(group) = groups.get_mut(&group) {
                        for (incarnation, epoch) in epochs {
                            group.passed(incarnation, epoch);
                        }
                    }
                }
                Fact::Totals {
                    group,
                    number,
                    bytes,
                } => {
                    if let Some(group) = groups.get_mut(&group) {
                        group.totals = (number, bytes);
                    }
                }
                Fact::Write {
                    number,
                    id,
                    progress,
                } => writes.push((number, id, progress)),
            }
        }
        writes.sort_unstable_by_key(|(number, ..)| *number);
        let mut ids = WriteIds::default();
        for (number, id, progress) in writes {
            ids.restore(number, id, progress);
        }
        ids.give_up();
        Kept {
            log: Log::Shared(Waiting::default()),
            term,
            groups,
            writes: ids,
            is_dirty: false,
            waived: 0,
            position: 0,
            durable: 0,
        }
    }

    /// Position of the last fact; what follows from it may be done once it is durable.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// True if all facts up to `position` are kept for certain.
    pub fn is_durable(&self, position: u64) -> bool {
        position <= self.durable
    }

    /// True if a message that needs the fact at `position` may be made: it leaves after the next
    /// [`sync`](Self::sync).
    pub fn may_send(&self, position: u64) -> bool {
        matches!(self.log, Log::Folder(_)) || self.is_durable(position)
    }

    /// A term greater than all before and at least `least`, which is kept at once.
    ///
    /// # Errors
    ///
    /// [`LogError`].
    pub fn next_term(&mut self, least: u64) -> Result<u64, LogError> {
        self.term = (self.term + 1).max(least);
        if let Log::Folder(log) = &mut self.log {
            log.append(&term_record(self.term));
            self.is_dirty = true;
        }
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
        let number = window.number;
        self.position += 1;
        windows.add(self.position, window.clone());
        let oldest = windows.kept.front().map_or(number, |(_, it)| it.number);
        match &mut self.log {
            Log::Folder(log) => log.append(&window_record(group, &window)),
            Log::Shared(waiting) => {
                waiting.passed(group);
                waiting.facts.push(Fact::Window {
                    group: group.to_owned(),
                    window,
                    oldest,
                });
            }
        }
        self.is_dirty = true;
        Some(number)
    }

    /// Notes that the last window of a start is over whose values nobody wants.
    pub fn waive_window(&mut self, group: &str, incarnation: u32, epoch: u32) {
        if let Some(windows) = self.groups.get_mut(group) {
            windows.passed(incarnation, epoch);
            match &mut self.log {
                Log::Folder(log) => log.append(&waived_record(group, incarnation, epoch)),
                Log::Shared(waiting) => waiting.passed(group),
            }
            // One that is lost has the window delivered again, which nobody wanted.
            self.waived += 1;
            self.is_dirty |= self.waived >= MOST_UNWRITTEN;
        }
    }

    /// Keeps the totals of a group in place of those before.
    pub fn keep_totals(&mut self, group: &str, totals: &KeptTotals) {
        let Some(windows) = self.groups.get_mut(group) else {
            return;
        };
        let bytes = Arc::new(totals::to_vec(totals));
        let number = windows.totals.0 + 1;
        match &mut self.log {
            Log::Folder(log) => log.append(&totals_record(group, &bytes)),
            Log::Shared(waiting) => waiting.facts.push(Fact::Totals {
                group: group.to_owned(),
                number,
                bytes: bytes.clone(),
            }),
        }
        windows.totals = (number, bytes);
        self.position += 1;
        self.is_dirty = true;
    }

    /// The totals of a group that are kept.
    pub fn totals(&self, group: &str) -> Option<KeptTotals> {
        totals::parse(&self.groups.get(group)?.totals.1)
    }

    /// The first window of a group that comes after number `after`, of those that are certain.
    pub fn window_after(&self, group: &str, after: u64) -> Option<&Window> {
        let mut windows = self.groups.get(group)?.durable(self.durable);
        windows.find(|window| window.number > after)
    }

    /// Numbers of the oldest window kept and of the last one that is certain; of a group without
    /// windows the first is above the second.
    pub fn window_range(&self, group: &str) -> (u64, u64) {
        let Some(windows) = self.groups.get(group) else {
            return (1, 0);
        };
        let mut durable = windows.durable(self.durable);
        let Some(oldest) = durable.next() else {
            // Of those that are not certain the first follows the last that was.
            let first = windows.kept.front().map(|(_, window)| window.number);
            let first = first.unwrap_or(windows.last + 1);
            return (first, first - 1);
        };
        let last = durable.next_back().unwrap_or(oldest);
        (oldest.number, last.number)
    }

    /// Progress of a write; `None` if it never began, or was forgotten.
    pub fn write(&self, id: &WriteId) -> Option<Progress> {
        let (_, progress) = self.writes.progress.get(id)?;
        Some(*progress)
    }

    /// A write is about to be sent.
    pub fn begin_write(&mut self, id: WriteId) {
        let number = self.writes.begin(id);
        self.note_write(number, id, Progress::Begun, &begun_record(&id));
    }

    /// A write ended; without an outcome it is unknown whether it took effect.
    pub fn end_write(&mut self, id: WriteId, outcome: Option<Outcome>) {
        if let Some(number) = self.writes.end(id, outcome) {
            self.note_write(number, id, outcome.into(), &ended_record(&id, outcome));
        }
    }

    fn note_write(&mut self, number: u64, id: WriteId, progress: Progress, record: &[u8]) {
        self.position += 1;
        self.is_dirty = true;
        match &mut self.log {
            Log::Folder(log) => log.append(record),
            Log::Shared(waiting) => waiting.facts.push(Fact::Write {
                number,
                id,
                progress,
            }),
        }
    }

    /// The facts that a shared store is to keep next, if it has kept all that it was given before.
    pub fn poll_facts(&mut self) -> Option<Vec<Fact>> {
        let Log::Shared(waiting) = &mut self.log else {
            return None;
        };
        if waiting.under_way.is_some() || !self.is_dirty {
            return None;
        }
        waiting.under_way = Some(self.position);
        let mut facts = std::mem::take(&mut waiting.facts);
        for name in std::mem::take(&mut waiting.passed) {
            let windows = self.groups.get(&name);
            facts.extend(windows.map(|windows| windows.epochs_fact(&name)));
        }
        (self.is_dirty, self.waived) = (false, 0);
        Some(facts)
    }

    /// True if a shared store does not have all facts yet.
    pub fn is_behind(&self) -> bool {
        match &self.log {
            Log::Folder(_) => false,
            Log::Shared(waiting) => self.is_dirty || waiting.under_way.is_some(),
        }
    }

    /// The shared store has kept them.
    pub fn facts_kept(&mut self) {
        if let Log::Shared(waiting) = &mut self.log
            && let Some(position) = waiting.under_way.take()
        {
            self.durable = position;
        }
    }

    /// Writes everything through to the folder, if there is something to write; of a shared store
    /// [`poll_facts`](Self::poll_facts) has it.
    ///
    /// # Errors
    ///
    /// [`LogError`]. Nothing is certain then.
    pub fn sync(&mut self) -> Result<(), LogError> {
        let Log::Folder(log) = &mut self.log else {
            return Ok(());
        };
        if !self.is_dirty {
            return Ok(());
        }
        log.sync()?;
        log.sync_marks()?;
        (self.is_dirty, self.waived) = (false, 0);
        self.durable = self.position;
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
        let Log::Folder(log) = &mut self.log else {
            return Ok(());
        };
        let windows = self.groups.values().flat_map(|group| &group.kept);
        let bytes: usize = windows.map(|(_, window)| window.values.len() + 128).sum();
        let totals = self.groups.values().map(|group| group.totals.1.len());
        let live = (bytes + totals.sum::<usize>() + self.writes.order.len() * 100) as u64;
        if log.length() <= 2 * live + SURPLUS {
            return Ok(());
        }
        let mut records = vec![term_record(self.term)];
        for (name, group) in &self.groups {
            let windows = group.kept.iter();
            records.extend(windows.map(|(_, window)| window_record(name, window)));
            let epochs = group.epochs.iter();
            records.extend(epochs.map(|(of, epoch)| waived_record(name, *of, *epoch)));
            if !group.totals.1.is_empty() {
                records.push(totals_record(name, &group.totals.1));
            }
        }
        for id in &self.writes.order {
            records.push(begun_record(id));
            match self.writes.progress.get(id) {
                Some((_, Progress::Ended(outcome))) => {
                    records.push(ended_record(id, Some(*outcome)));
                }
                Some((_, Progress::Unknown)) => records.push(ended_record(id, None)),
                Some((_, Progress::Begun)) | None => {}
            }
        }
        log.replace(records)
    }
}

#[cfg(test)]
mod tests;
