//! Requests about the flows that an engine follows.

use std::collections::BTreeMap;

use stateplane_observe::Life;

use super::SyncServer;
use crate::clock::boot_time_us;
use crate::sync::flows::{Arrays, Flows};
use crate::sync::{
    FlowsChange, FlowsDone, FlowsFile, FlowsReading, FlowsReport, FlowsRequest, Reply, Snapshot,
    SnapshotsReading, ViewError,
};

impl SyncServer {
    fn flows_of(&mut self, name: &str) -> Result<&mut Flows, ViewError> {
        let at = self.work()?.flows(name)?;
        let flows = self.work.as_mut().and_then(|work| work.flows.get_mut(at));
        flows.ok_or(ViewError::Standby { leader: None })
    }

    /// Reads flows; `reply` is called when their view is as young as asked, or the request's time
    /// is over.
    pub fn flows_read(&mut self, request: FlowsRequest, reply: Reply<FlowsReading>) {
        match self.flows_of(&request.name) {
            Ok(flows) => flows.begin_read(boot_time_us(), request, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// Changes a flow as an owner does: the engine takes the lease, writes and gives it up. `reply`
    /// is called when the view has the change, or the request's time is over.
    pub fn flows_change(&mut self, change: FlowsChange, reply: Reply<FlowsDone>) {
        match self.flows_of(&change.name) {
            Ok(flows) => flows.begin_change(boot_time_us(), change, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// All flows of the name as they are, or were a short time ago, as their age says; `None` while their
    /// view is incomplete.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownFlows`], [`ViewError::Standby`].
    pub fn flows_present(&mut self, name: &str) -> Result<Option<FlowsReading>, ViewError> {
        Ok(self.flows_of(name)?.present(boot_time_us()))
    }

    /// Snapshots of a name, and the flows that their elements are.
    fn snapshots_of(&self, name: &str) -> Result<(&Flows, &Arrays), ViewError> {
        let mut flows = self.work()?.flows.iter();
        let found = flows.find_map(|flows| Some((flows, flows.arrays(name)?)));
        found.ok_or_else(|| {
            let known = self.file.flows.iter().flat_map(|flows| &flows.snapshots);
            let known = known.map(|snapshots| snapshots.name.as_str());
            ViewError::UnknownFlows {
                name: name.to_owned(),
                known: known.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// The newest complete snapshots of arrays of programs in bounded inconsistency, those of dead
    /// switches too.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownFlows`], [`ViewError::Standby`]; [`ViewError::FlowsIncomplete`] before all
    /// records were read.
    pub fn snapshots(&mut self, name: &str) -> Result<SnapshotsReading, ViewError> {
        let now = boot_time_us();
        if let Some(work) = &mut self.work {
            let mut arrays = work.flows.iter_mut().flat_map(Flows::all_arrays);
            if let Some(arrays) = arrays.find(|arrays| arrays.name() == name) {
                arrays.see_present(now, &work.groups);
            }
        }
        let (flows, arrays) = self.snapshots_of(name)?;
        Ok(arrays.reading(now, flows.told(now)?))
    }

    /// The next snapshot that is newer than the one of its life whose number `after` has; `None` if none
    /// has come yet.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownFlows`], [`ViewError::Standby`].
    pub fn snapshot_after(
        &self,
        name: &str,
        after: &BTreeMap<Life, u32>,
    ) -> Result<Option<Snapshot>, ViewError> {
        let (_, arrays) = self.snapshots_of(name)?;
        Ok(arrays.newer_than(after))
    }

    /// The sections of the file that name flows, with their counts, in its order.
    ///
    /// # Errors
    ///
    /// [`ViewError::Standby`].
    pub fn flows(&self) -> Result<Vec<(FlowsFile, FlowsReport)>, ViewError> {
        let reports = self.work()?.flows_report();
        Ok(self.file.flows.iter().cloned().zip(reports).collect())
    }
}
