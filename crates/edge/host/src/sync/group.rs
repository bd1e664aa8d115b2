//! One group of an engine: its view, and the requests that wait for it.

use std::collections::VecDeque;
use std::sync::Arc;

use stateplane_disk::Files;
use stateplane_sync::{Engine, Event, LastView, Told};
use stateplane_wire::sync::CutKind;

use super::request::pack;
use super::told::GroupLog;
use super::{
    Change, ChangeDone, CutMade, CutRequest, GroupFile, Kept, Progress, ReadRequest, Reading,
    Reply, TotalsReading, ViewError,
};

use waiting::{Answer, ReadReply, WaitingChange, WaitingCut, WaitingRead, answer};

mod change;
mod totals;
mod waiting;

/// Reads, changes and cuts of a group that wait at one time, each.
const MOST_WAITING: usize = 64;

/// A group.
pub(super) struct Group {
    pub(super) file: GroupFile,
    pub(super) engine: Engine,
    /// The values as bytes, and whether they are the present ones.
    packed: Arc<Vec<u8>>,
    is_packed: bool,
    reads: Vec<WaitingRead>,
    changes: Vec<WaitingChange>,
    cuts: VecDeque<WaitingCut>,
    /// Windows that are to be certain before the core hears of it: position, incarnation and epoch.
    unconfirmed: Vec<(u64, u32, u32)>,
    answers: Vec<Answer>,
    /// Another engine's term with which a switch refused this one.
    pub(super) refused_term: Option<u64>,
    /// The view was complete once.
    pub(super) was_complete: bool,
    /// Reads that were answered, and those that were not met in time.
    pub(super) read: u64,
    pub(super) unmet: u64,
    pub(super) windows: u64,
    /// When totals were kept last, and in which epoch; and the position of the first time, with which the
    /// engine's life is known and totals may be told.
    totals_kept: Option<(u64, u32)>,
    totals_known: u64,
    /// The locations are copies of an array whose snapshots a store has: they are merged with these, and nobody
    /// changes them.
    is_of_snapshots: bool,
    /// Views of copies that ended, until they are merged.
    last_views: Vec<LastView>,
    pub(super) log: GroupLog,
}

impl Group {
    pub(super) fn new(now: u64, file: GroupFile, engine: Engine, is_of_snapshots: bool) -> Group {
        Group {
            file,
            engine,
            packed: Arc::default(),
            is_packed: false,
            reads: Vec::new(),
            changes: Vec::new(),
            cuts: VecDeque::new(),
            unconfirmed: Vec::new(),
            answers: Vec::new(),
            refused_term: None,
            was_complete: false,
            read: 0,
            unmet: 0,
            windows: 0,
            totals_kept: None,
            totals_known: 0,
            is_of_snapshots,
            last_views: Vec::new(),
            log: GroupLog::new(now),
        }
    }

    pub(super) fn handle_datagram(&mut self, now: u64, bytes: &[u8]) {
        self.is_packed = false;
        self.log.hear(now);
        self.engine.handle_datagram(now, bytes);
    }

    /// The present view, without waiting.
    pub(super) fn reading(&mut self, now: u64) -> Option<Reading> {
        let told = self.engine.told(now)?;
        if !self.is_packed {
            self.is_packed = true;
            // A buffer that a reader still has is left to it.
            if Arc::get_mut(&mut self.packed).is_none() {
                self.packed = Arc::default();
            }
            if let Some(bytes) = Arc::get_mut(&mut self.packed) {
                pack(self.engine.values(), bytes);
            }
        }
        Some(Reading {
            told,
            values: self.packed.clone(),
        })
    }

    pub(super) fn look<T>(&self, now: u64, look: impl FnOnce(&Told, &[u64]) -> T) -> Option<T> {
        let told = self.engine.told(now)?;
        Some(look(&told, self.engine.values()))
    }

    /// The present view if it meets `request`.
    pub(super) fn read_at_once(&mut self, now: u64, request: &ReadRequest) -> Option<Reading> {
        let told = self.engine.told(now)?;
        if request.fresh || !request.is_met_by(&told) {
            return None;
        }
        self.read += 1;
        self.reading(now)
    }

    pub(super) fn begin_read(&mut self, now: u64, request: ReadRequest, reply: Reply<Reading>) {
        self.wait_to_read(now, request, ReadReply::Values(reply));
    }

    fn wait_to_read(&mut self, now: u64, request: ReadRequest, reply: ReadReply) {
        if self.reads.len() >= MOST_WAITING {
            let error = ViewError::Busy(format!("{MOST_WAITING} reads"));
            return reply.refuse(&mut self.answers, error);
        }
        let end = now.saturating_add(request.patience_us);
        self.reads.push(WaitingRead {
            request,
            poll: None,
            end,
            reply,
        });
    }

    /// Refuses changes and cuts that cannot be made.
    fn check_follows(&self, now: u64) -> Result<(), ViewError> {
        let name = || self.file.name.clone();
        if self.is_of_snapshots {
            return Err(ViewError::OfSnapshots(name()));
        }
        if self.engine.is_fenced() {
            return Err(ViewError::Fenced(name()));
        }
        if self.engine.told(now).is_none() {
            return Err(ViewError::Incomplete(name()));
        }
        if self.engine.is_read_only() {
            return Err(ViewError::ReadOnly(name()));
        }
        Ok(())
    }

    pub(super) fn no_location(&self, location: u64) -> ViewError {
        ViewError::Location {
            group: self.file.name.clone(),
            location,
            last: self.file.locations - 1,
        }
    }

    pub(super) fn begin_cut(&mut self, now: u64, request: CutRequest, reply: Reply<CutMade>) {
        if self.cuts.len() >= MOST_WAITING {
            return reply(Err(ViewError::Busy(format!("{MOST_WAITING} cuts"))));
        }
        if request.kind == CutKind::None {
            let message = "a cut is CARRIED or FILLED".to_owned();
            return reply(Err(ViewError::Malformed(message)));
        }
        if !request.window && (request.keep || request.kind == CutKind::Carried) {
            let message = "a window that is kept, or of a CARRIED cut, is told".to_owned();
            return reply(Err(ViewError::Malformed(message)));
        }
        if let Err(error) = self.check_follows(now) {
            return reply(Err(error));
        }
        self.cuts.push_back(WaitingCut {
            end: now.saturating_add(request.patience_us),
            request,
            is_asked: false,
            made: None,
            window: None,
            position: 0,
            reply,
        });
    }

    /// Does what is due, and what the datagrams that came let it do.
    pub(super) fn turn<F: Files>(&mut self, now: u64, kept: &mut Kept<F>) {
        while let Some(event) = self.engine.poll_event() {
            self.handle_event(event, kept);
        }
        self.settle_reads(now);
        self.settle_changes(now, kept);
        self.settle_cuts(now, kept);
        self.keep_totals_if_due(now, kept);
        self.engine.handle_timeout(now);
        self.engine.proceed(now);
    }

    fn handle_event<F: Files>(&mut self, event: Event, kept: &mut Kept<F>) {
        match event {
            Event::Generation { last, .. } => {
                self.last_views
                    .extend(last.filter(|_| self.is_of_snapshots));
                // A cut that was with the core may have been sent before.
                if self.cuts.front().is_some_and(|cut| cut.is_asked) {
                    self.end_cut(Err(ViewError::Unknown("the view began anew".into())));
                }
                while self.engine.is_read_only() && !self.cuts.is_empty() {
                    self.end_cut(Err(ViewError::ReadOnly(self.file.name.clone())));
                }
            }
            Event::Complete { .. } => self.was_complete = true,
            Event::Written { ticket, outcome } => self.written(ticket, outcome),
            Event::Cut { epoch, term } => {
                if let Some(cut) = self.cuts.front_mut().filter(|cut| cut.is_asked) {
                    cut.made = Some((epoch, term));
                    self.end_made_cut();
                }
            }
            Event::Window {
                incarnation,
                epoch,
                values,
            } => self.window(incarnation, epoch, &values, kept),
            Event::Waived { incarnation, epoch } => {
                kept.waive_window(&self.file.name, incarnation, epoch);
            }
            Event::Fenced { term } => {
                self.refused_term = Some(term);
                while !self.cuts.is_empty() {
                    self.end_cut(Err(ViewError::Fenced(self.file.name.clone())));
                }
            }
        }
    }

    fn window<F: Files>(
        &mut self,
        incarnation: u32,
        epoch: u32,
        values: &[u64],
        kept: &mut Kept<F>,
    ) {
        let mut bytes = Vec::new();
        pack(values, &mut bytes);
        let values = Arc::new(bytes);
        let cut = self.cuts.front_mut().filter(|cut| cut.is_asked);
        let name = &self.file.name;
        let (number, position) = if cut.as_ref().is_some_and(|cut| !cut.request.keep) {
            kept.waive_window(name, incarnation, epoch);
            (0, 0)
        } else {
            let number = kept.keep_window(name, incarnation, epoch, values.clone());
            self.windows += u64::from(number.is_some());
            (number.unwrap_or(0), kept.position())
        };
        self.unconfirmed.push((position, incarnation, epoch));
        if let Some(cut) = cut {
            cut.position = position;
            cut.window = Some(CutMade {
                number,
                incarnation,
                epoch,
                term: 0,
                values,
            });
            self.end_made_cut();
        }
    }

    /// Ends the first cut if it was made and its window is there.
    fn end_made_cut(&mut self) {
        let Some(cut) = self.cuts.front_mut() else {
            return;
        };
        let Some((epoch, term)) = cut.made else {
            return;
        };
        if let Some(window) = cut.window.take_if(|window| window.epoch == epoch) {
            self.end_cut(Ok(CutMade { term, ..window }));
        }
    }

    fn end_cut(&mut self, said: Result<CutMade, ViewError>) {
        if let Some(cut) = self.cuts.pop_front() {
            answer(&mut self.answers, cut.position, cut.reply, said);
        }
    }

    fn settle_reads(&mut self, now: u64) {
        if self.reads.is_empty() {
            return;
        }
        let told = self.engine.told(now);
        let reads = std::mem::take(&mut self.reads);
        for mut read in reads {
            if let Some(told) = &told
                && self.is_met(now, &mut read, told)
            {
                self.read += 1;
                self.answer_read(now, told, read.reply);
            } else if now >= read.end {
                self.unmet += 1;
                let said = self.unmet_by(told.as_ref(), &read.reply);
                read.reply.refuse(&mut self.answers, said);
            } else {
                self.reads.push(read);
            }
        }
    }

    fn answer_read(&mut self, now: u64, told: &Told, reply: ReadReply) {
        match reply {
            ReadReply::Values(reply) => {
                let reading = self.reading(now);
                let incomplete = || ViewError::Incomplete(self.file.name.clone());
                answer(&mut self.answers, 0, reply, reading.ok_or_else(incomplete));
            }
            ReadReply::Totals(reply) => {
                let said = self.totals_reading(told);
                answer(&mut self.answers, self.totals_known, reply, said);
            }
        }
    }

    fn is_met(&mut self, now: u64, read: &mut WaitingRead, told: &Told) -> bool {
        if self.lacks_totals(&read.reply) {
            return false;
        }
        if read.request.fresh {
            match read.poll {
                Some((generation, poll)) if generation == told.generation => {
                    if told.poll < poll {
                        return false;
                    }
                }
                _ => {
                    read.poll = Some((told.generation, self.engine.refresh(now)));
                    return false;
                }
            }
        }
        read.request.is_met_by(told)
    }

    fn unmet_by(&self, told: Option<&Told>, reply: &ReadReply) -> ViewError {
        let group = self.file.name.clone();
        if self.engine.is_fenced() {
            return ViewError::Fenced(group);
        }
        let Some(told) = told else {
            return ViewError::Incomplete(group);
        };
        if self.lacks_totals(reply) {
            let met = "counts from before the last cut are lacking".to_owned();
            return ViewError::Unmet { group, met };
        }
        let bound = told.bound.map_or("none".to_owned(), |it| it.to_string());
        ViewError::Unmet {
            group,
            met: format!("its bound is {bound}, its age {} µs", told.age_us),
        }
    }

    fn settle_cuts<F: Files>(&mut self, now: u64, kept: &mut Kept<F>) {
        self.end_reset(now, kept);
        while self.cuts.front().is_some_and(|cut| now >= cut.end) {
            let message = "the window did not come in time".to_owned();
            self.end_cut(Err(ViewError::Unknown(message)));
        }
        if let Some(cut) = self.cuts.front_mut().filter(|cut| !cut.is_asked) {
            let CutRequest { kind, fill, .. } = cut.request;
            cut.is_asked = if cut.request.window {
                self.engine.cut(kind, fill)
            } else {
                self.engine.reset(fill)
            };
        }
    }

    /// Ends the first cut if its window is not asked for, once the view has crossed it.
    fn end_reset<F: Files>(&mut self, now: u64, kept: &mut Kept<F>) {
        let cut = self.cuts.front().filter(|cut| !cut.request.window);
        let Some((epoch, term)) = cut.and_then(|cut| cut.made) else {
            return;
        };
        let told = self.engine.told(now).filter(|told| told.epoch >= epoch);
        if let Some(Told { incarnation, .. }) = told {
            kept.waive_window(&self.file.name, incarnation, epoch);
            self.end_cut(Ok(CutMade {
                number: 0,
                incarnation,
                epoch,
                term,
                values: Arc::default(),
            }));
        }
    }

    /// Tells the core which windows are certain, and gives the answers that are.
    pub(super) fn synced<F: Files>(&mut self, kept: &Kept<F>) -> Vec<Answer> {
        let Group {
            unconfirmed,
            engine,
            answers,
            ..
        } = self;
        unconfirmed.retain(|(position, incarnation, epoch)| {
            let is_durable = kept.is_durable(*position);
            if is_durable {
                engine.window_kept(*incarnation, *epoch);
            }
            !is_durable
        });
        let is_certain = |answer: &mut Answer| kept.is_durable(answer.position);
        answers.extract_if(.., is_certain).collect()
    }

    /// The engine leads no more: what was sent has an outcome that nobody knows, and the rest is
    /// refused with `standby`.
    pub(super) fn give_up(self, standby: &ViewError) {
        let unknown = || ViewError::Unknown("the engine lost its lease meanwhile".to_owned());
        for answer in self.answers {
            let is_free = answer.position == 0;
            (answer.give)((!is_free).then(unknown));
        }
        for read in self.reads {
            match read.reply {
                ReadReply::Values(reply) => reply(Err(standby.clone())),
                ReadReply::Totals(reply) => reply(Err(standby.clone())),
            }
        }
        for change in self.changes {
            let said = match change.next {
                0 if change.change.id.is_none() => standby.clone(),
                _ => unknown(),
            };
            for reply in change.replies {
                reply(Err(said.clone()));
            }
        }
        for cut in self.cuts {
            let said = if cut.is_asked {
                unknown()
            } else {
                standby.clone()
            };
            (cut.reply)(Err(said));
        }
    }

    /// Takes the views of copies that ended.
    pub(super) fn take_last_views(&mut self) -> Vec<LastView> {
        std::mem::take(&mut self.last_views)
    }

    /// The value of a location, for metrics.
    pub(super) fn value(&self, location: u32) -> u64 {
        let value = self.engine.values().get(location as usize);
        value.copied().unwrap_or(0)
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.reads.len() + self.changes.len() + self.cuts.len()
    }
}
