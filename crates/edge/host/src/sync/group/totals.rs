//! Totals of a group of counters (rule 25).

use stateplane_disk::Files;
use stateplane_sync::{Continued, Told};

use super::waiting::ReadReply;
use super::{Group, Kept, ReadRequest, Reply, TotalsReading, ViewError, pack};

/// µs between two times at which totals are kept, and if a cut lies between, behind which an engine
/// that was killed could not go on.
const KEEP_US: u64 = 10_000_000;
const KEEP_AFTER_CUT_US: u64 = 1_000_000;

impl Group {
    pub(in crate::sync) fn begin_totals(
        &mut self,
        now: u64,
        request: ReadRequest,
        reply: Reply<TotalsReading>,
    ) {
        if self.engine.continued().is_none() {
            return reply(Err(ViewError::NotContinued(self.file.name.clone())));
        }
        self.wait_to_read(now, request, ReadReply::Totals(reply));
    }

    /// True if it would be answered with totals, and the view lacks counts from before the last cut, or the
    /// engine has not kept yet that it goes on with the totals.
    pub(super) fn lacks_totals(&self, reply: &ReadReply) -> bool {
        let is_settled = self.engine.continued().is_some_and(Continued::is_settled);
        matches!(reply, ReadReply::Totals(_)) && !(is_settled && self.totals_kept.is_some())
    }

    pub(super) fn totals_reading(&self, told: &Told) -> Result<TotalsReading, ViewError> {
        let continued = self.engine.continued();
        let continued = continued.ok_or_else(|| ViewError::NotContinued(self.file.name.clone()))?;
        let mut totals = Vec::new();
        pack(continued.totals(), &mut totals);
        let breaks = continued.discontinuities().iter();
        Ok(TotalsReading {
            told: *told,
            totals,
            discontinuities: breaks.flat_map(|it| it.to_le_bytes()).collect(),
        })
    }

    /// A location with its total and discontinuities, for metrics.
    pub(in crate::sync) fn total(&self, location: u32) -> Option<(u32, u64, u32)> {
        let continued = self.engine.continued()?;
        let total = continued.totals().get(location as usize)?;
        let breaks = continued.discontinuities().get(location as usize)?;
        Some((location, *total, *breaks))
    }

    pub(super) fn keep_totals_if_due<F: Files>(&mut self, now: u64, kept: &mut Kept<F>) {
        if self.engine.continued().is_none() {
            return;
        }
        let is_due = match self.totals_kept {
            None => true,
            Some((at, _)) if now < at + KEEP_AFTER_CUT_US => false,
            Some((at, epoch)) => {
                let told = self.engine.told(now);
                now >= at + KEEP_US || told.is_some_and(|told| told.epoch != epoch)
            }
        };
        if is_due {
            self.keep_totals(now, kept);
        }
    }

    /// Keeps the totals, if the view is complete and lacks nothing of them.
    pub(in crate::sync) fn keep_totals<F: Files>(&mut self, now: u64, kept: &mut Kept<F>) {
        if let Some(totals) = self.engine.keep_totals() {
            kept.keep_totals(&self.file.name, &totals);
            if self.totals_kept.is_none() {
                self.totals_known = kept.position();
            }
            self.totals_kept = Some((now, totals.epoch));
        }
    }
}
