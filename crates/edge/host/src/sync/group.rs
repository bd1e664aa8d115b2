//! One group of an engine: its view, and the requests that wait for it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use stateplane_disk::Files;
use stateplane_sync::{Engine, Event, Ticket, Told, WriteError};
use stateplane_wire::sync::{CutKind, Operation, Outcome};

use super::request::pack;
use super::told::GroupLog;
use super::{
    Change, ChangeDone, CutMade, CutRequest, GroupFile, Kept, Progress, ReadRequest, Reading,
    Reply, ViewError,
};

/// Reads, changes and cuts of a group that wait at one time, each.
const MOST_WAITING: usize = 64;

/// Messages of one change that are with the core at one time.
const MOST_PIECES: usize = 64;

/// Most values of a change.
const MOST_VALUES: usize = 1 << 20;

/// An answer that leaves when what it says is on disk.
pub(super) type Answer = Box<dyn FnOnce() + Send>;

struct WaitingRead {
    request: ReadRequest,
    /// Generation and poll that the mark must have.
    poll: Option<(u64, u64)>,
    end: u64,
    reply: Reply<Reading>,
}

struct WaitingChange {
    change: Change,
    next: usize,
    pieces: u32,
    tickets: BTreeSet<Ticket>,
    outcome: Outcome,
    is_unknown: bool,
    end: u64,
    replies: Vec<Reply<ChangeDone>>,
}

struct WaitingCut {
    request: CutRequest,
    /// The core has it.
    is_asked: bool,
    /// Epoch and term, once it was made.
    made: Option<(u32, u64)>,
    /// The window, once it came.
    window: Option<CutMade>,
    end: u64,
    reply: Reply<CutMade>,
}

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
    /// Windows that are to be on disk before the core hears of it: incarnation and epoch.
    unconfirmed: Vec<(u32, u32)>,
    answers: Vec<Answer>,
    /// Reads that were answered, and those that were not met in time.
    pub(super) read: u64,
    pub(super) unmet: u64,
    pub(super) windows: u64,
    pub(super) log: GroupLog,
}

fn answer<T: Send + 'static>(
    answers: &mut Vec<Answer>,
    reply: Reply<T>,
    said: Result<T, ViewError>,
) {
    answers.push(Box::new(move || reply(said)));
}

impl Group {
    pub(super) fn new(now: u64, file: GroupFile, engine: Engine) -> Group {
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
            read: 0,
            unmet: 0,
            windows: 0,
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

    pub(super) fn begin_read(&mut self, now: u64, request: ReadRequest, reply: Reply<Reading>) {
        if self.reads.len() >= MOST_WAITING {
            return reply(Err(ViewError::Busy(format!("{MOST_WAITING} reads"))));
        }
        let end = now.saturating_add(request.patience_us);
        self.reads.push(WaitingRead {
            request,
            poll: None,
            end,
            reply,
        });
    }

    pub(super) fn begin_change<F: Files>(
        &mut self,
        now: u64,
        change: Change,
        kept: &mut Kept<F>,
        reply: Reply<ChangeDone>,
    ) {
        match change.id.and_then(|id| Some((id, kept.write(&id)?))) {
            Some((_, Progress::Ended(outcome))) => {
                let done = ChangeDone { outcome, pieces: 0 };
                return reply(Ok(done));
            }
            Some((_, Progress::Unknown)) => return reply(Err(unknown_before())),
            Some((id, Progress::Begun)) => {
                let mut waiting = self.changes.iter_mut();
                let same = waiting.find(|waiting| waiting.change.id == Some(id));
                return match same.filter(|same| same.replies.len() < MOST_WAITING) {
                    Some(same) => same.replies.push(reply),
                    None => reply(Err(ViewError::Busy("the change is under way".into()))),
                };
            }
            None => {}
        }
        if let Err(error) = self.check_change(now, &change) {
            return reply(Err(error));
        }
        if let Some(id) = change.id {
            kept.begin_write(id);
        }
        self.changes.push(WaitingChange {
            end: now.saturating_add(change.patience_us),
            change,
            next: 0,
            pieces: 0,
            tickets: BTreeSet::new(),
            outcome: Outcome::Done,
            is_unknown: false,
            replies: vec![reply],
        });
    }

    fn check_change(&self, now: u64, change: &Change) -> Result<(), ViewError> {
        let conditional = change.operation == Operation::SetIfEqual;
        let most = if conditional { 1 } else { MOST_VALUES };
        if change.values.is_empty() || change.values.len() > most {
            let message = format!("a change of this kind has 1 to {most} values");
            return Err(ViewError::Malformed(message));
        }
        let last = self.file.locations - 1;
        let beyond = change.values.iter().find(|(location, _)| *location > last);
        if let Some((location, _)) = beyond {
            return Err(self.no_location(u64::from(*location)));
        }
        if self.changes.len() >= MOST_WAITING {
            return Err(ViewError::Busy(format!("{MOST_WAITING} changes")));
        }
        self.check_follows(now)
    }

    fn check_follows(&self, now: u64) -> Result<(), ViewError> {
        let name = || self.file.name.clone();
        if self.engine.is_fenced() {
            return Err(ViewError::Fenced(name()));
        }
        let told = self.engine.told(now);
        told.map(|_| ())
            .ok_or_else(|| ViewError::Incomplete(name()))
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
        self.engine.handle_timeout(now);
        self.engine.proceed(now);
    }

    fn handle_event<F: Files>(&mut self, event: Event, kept: &mut Kept<F>) {
        match event {
            Event::Generation { .. } => {
                // A cut that was with the core may have been sent before.
                if self.cuts.front().is_some_and(|cut| cut.is_asked) {
                    self.end_cut(Err(ViewError::Unknown("the view began anew".into())));
                }
            }
            Event::Complete { .. } => {}
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
            Event::Fenced { .. } => {
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
        let number = if cut.as_ref().is_some_and(|cut| !cut.request.keep) {
            kept.waive_window(name, incarnation, epoch);
            0
        } else {
            let number = kept.keep_window(name, incarnation, epoch, values.clone());
            self.windows += u64::from(number.is_some());
            number.unwrap_or(0)
        };
        self.unconfirmed.push((incarnation, epoch));
        if let Some(cut) = cut {
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
            answer(&mut self.answers, cut.reply, said);
        }
    }

    fn written(&mut self, ticket: Ticket, outcome: Option<Outcome>) {
        let mut waiting = self.changes.iter_mut();
        let Some(change) = waiting.find_map(|it| it.tickets.remove(&ticket).then_some(it)) else {
            return;
        };
        match outcome {
            Some(Outcome::Done) => {}
            Some(outcome) => change.outcome = outcome,
            None => change.is_unknown = true,
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
                && let Some(reading) = self.reading(now)
            {
                self.read += 1;
                answer(&mut self.answers, read.reply, Ok(reading));
            } else if now >= read.end {
                self.unmet += 1;
                let said = self.unmet_by(told.as_ref());
                answer(&mut self.answers, read.reply, Err(said));
            } else {
                self.reads.push(read);
            }
        }
    }

    fn is_met(&mut self, now: u64, read: &mut WaitingRead, told: &Told) -> bool {
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

    fn unmet_by(&self, told: Option<&Told>) -> ViewError {
        let group = self.file.name.clone();
        if self.engine.is_fenced() {
            return ViewError::Fenced(group);
        }
        let Some(told) = told else {
            return ViewError::Incomplete(group);
        };
        let bound = told.bound.map_or("none".to_owned(), |it| it.to_string());
        ViewError::Unmet {
            group,
            met: format!("its bound is {bound}, its age {} µs", told.age_us),
        }
    }

    fn settle_changes<F: Files>(&mut self, now: u64, kept: &mut Kept<F>) {
        let changes = std::mem::take(&mut self.changes);
        for mut change in changes {
            let failed = self.feed(&mut change).err();
            let is_over = change.next == change.change.values.len()
                || change.is_unknown
                || change.outcome != Outcome::Done;
            if failed.is_none() && !(is_over && change.tickets.is_empty()) {
                if now >= change.end {
                    for reply in change.replies.drain(..) {
                        let said = ViewError::Unknown("the switch did not answer in time".into());
                        answer(&mut self.answers, reply, Err(said));
                    }
                }
                self.changes.push(change);
                continue;
            }
            let is_known = !change.is_unknown && failed.is_none();
            let outcome = is_known.then_some(change.outcome);
            if let Some(id) = change.change.id {
                kept.end_write(id, outcome);
            }
            let said = match (failed, outcome) {
                (Some(error), _) => Err(error),
                (None, None) => Err(ViewError::Unknown("the switch's view began anew".into())),
                (None, Some(outcome)) => Ok(ChangeDone {
                    outcome,
                    pieces: change.pieces,
                }),
            };
            for reply in change.replies {
                answer(&mut self.answers, reply, said.clone());
            }
        }
    }

    /// Gives the core what it takes of a change.
    fn feed(&mut self, waiting: &mut WaitingChange) -> Result<(), ViewError> {
        let change = &waiting.change;
        while waiting.next < change.values.len()
            && waiting.tickets.len() < MOST_PIECES
            && !waiting.is_unknown
            && waiting.outcome == Outcome::Done
        {
            let all = change.values.len();
            let batch = self.file.batch as usize;
            let is_staged = change.operation == Operation::Set && all > batch;
            let end = if is_staged {
                all
            } else {
                all.min(waiting.next + batch)
            };
            let piece = &change.values[waiting.next..end];
            let taken = if is_staged {
                self.engine.write_staged(piece)
            } else {
                self.engine.write(change.operation, piece, change.expected)
            };
            match taken {
                Ok(ticket) => waiting.tickets.insert(ticket),
                Err(WriteError::Full(_)) => break,
                Err(error) => return Err(ViewError::of_write(&self.file.name, error)),
            };
            waiting.next = end;
            waiting.pieces += 1;
        }
        Ok(())
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

    /// Tells the core that its records are on disk, and gives clients their answers.
    pub(super) fn synced(&mut self) -> Vec<Answer> {
        for (incarnation, epoch) in self.unconfirmed.drain(..) {
            self.engine.window_kept(incarnation, epoch);
        }
        std::mem::take(&mut self.answers)
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

fn unknown_before() -> ViewError {
    ViewError::Unknown("switch or engine started anew when it was under way".into())
}
