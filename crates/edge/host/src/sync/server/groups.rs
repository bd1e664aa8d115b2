//! Requests about the groups that an engine follows.

use stateplane_sync::Told;

use super::SyncServer;
use crate::clock::boot_time_us;
use crate::sync::work::Work;
use crate::sync::{
    Change, ChangeDone, CutMade, CutRequest, ReadRequest, Reading, Reply, TotalsReading, ViewError,
    Window,
};

impl SyncServer {
    /// Work, and the place of the group in it.
    fn work_of(&mut self, group: &str) -> Result<(&mut Work, usize), ViewError> {
        let at = self.work()?.group(group)?;
        match &mut self.work {
            Some(work) => Ok((work, at)),
            None => Err(ViewError::Standby { leader: None }),
        }
    }

    /// Reads the view of a group; `reply` is called when it is as near and young as asked, or the
    /// request's time is over.
    pub fn read(&mut self, request: ReadRequest, reply: Reply<Reading>) {
        match self.work_of(&request.group) {
            Ok((work, at)) => work.groups[at].begin_read(boot_time_us(), request, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// As [`read`](Self::read), of the totals of a group of counters (rule 25).
    pub fn read_totals(&mut self, request: ReadRequest, reply: Reply<TotalsReading>) {
        match self.work_of(&request.group) {
            Ok((work, at)) => work.groups[at].begin_totals(boot_time_us(), request, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// As [`read`](Self::read), if the view meets the request as it is.
    pub(in crate::sync) fn read_at_once(&mut self, request: &ReadRequest) -> Option<Reading> {
        let (work, at) = self.work_of(&request.group).ok()?;
        work.groups[at].read_at_once(boot_time_us(), request)
    }

    /// The view of a group as it is; `None` while it is incomplete.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownGroup`], [`ViewError::Standby`].
    pub fn present(&mut self, group: &str) -> Result<Option<Reading>, ViewError> {
        let (work, at) = self.work_of(group)?;
        Ok(work.groups[at].reading(boot_time_us()))
    }

    /// Lets `look` see the view of a group as it is, values by location; `None` while it is
    /// incomplete.
    pub(in crate::sync) fn look<T>(
        &self,
        group: &str,
        look: impl FnOnce(&Told, &[u64]) -> T,
    ) -> Result<Option<T>, ViewError> {
        let work = self.work()?;
        let group = &work.groups[work.group(group)?];
        Ok(group.look(boot_time_us(), look))
    }

    /// Changes values; `reply` is called when the view has them (rule 23), or the request's time is
    /// over.
    pub fn change(&mut self, change: Change, reply: Reply<ChangeDone>) {
        match self.work_of(&change.group) {
            Ok((Work { groups, kept, .. }, at)) => {
                groups[at].begin_change(boot_time_us(), change, kept, reply);
            }
            Err(error) => reply(Err(error)),
        }
    }

    /// As [`change`](Self::change), of a value for each location.
    pub fn change_all(&mut self, change: Change, reply: Reply<ChangeDone>) {
        let locations = self
            .work_of(&change.group)
            .map(|(work, at)| work.groups[at].file.locations);
        match locations {
            Ok(locations) if change.values.len() != locations as usize => {
                let message = format!("there are {locations} locations, each of which has a value");
                reply(Err(ViewError::Malformed(message)));
            }
            _ => self.change(change, reply),
        }
    }

    /// Checks that a group has all these locations.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownGroup`], [`ViewError::Location`], [`ViewError::Standby`].
    pub fn check_locations(&self, group: &str, locations: &[u32]) -> Result<(), ViewError> {
        let work = self.work()?;
        let group = &work.groups[work.group(group)?];
        let mut locations = locations.iter();
        match locations.find(|location| **location >= group.file.locations) {
            Some(location) => Err(group.no_location(u64::from(*location))),
            None => Ok(()),
        }
    }

    /// The promise of each group's view, in the order of the file; `None` while it is
    /// incomplete.
    pub fn told(&self) -> Vec<Option<Told>> {
        let now = boot_time_us();
        let groups = self.work.iter().flat_map(|work| &work.groups);
        groups.map(|group| group.engine.told(now)).collect()
    }

    /// Cuts a group; `reply` is called with the window that the cut ended.
    pub fn cut(&mut self, request: CutRequest, reply: Reply<CutMade>) {
        match self.work_of(&request.group) {
            Ok((work, at)) => work.groups[at].begin_cut(boot_time_us(), request, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// The first kept window of a group behind number `after`; `None` if none has come yet.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownGroup`]; [`ViewError::Standby`]; [`ViewError::Gone`] if the one that
    /// follows `after` is not kept any more.
    pub fn window_after(&self, group: &str, after: u64) -> Result<Option<Window>, ViewError> {
        let work = self.work()?;
        work.group(group)?;
        let (oldest, last) = work.kept.window_range(group);
        if after < last && after + 1 < oldest {
            return Err(ViewError::Gone { after, oldest });
        }
        Ok(work.kept.window_after(group, after).cloned())
    }
}
