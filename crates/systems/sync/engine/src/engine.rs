//! The engine of one group of one switch.

mod receive;
mod ring;

pub use ring::Ring;

use crate::continued::{Continued, KeptTotals};
use crate::cut::Cuts;
use crate::stage::Stages;
use crate::tracker::Tracker;
use crate::write::{Ticket, WriteError, Writes};
use stateplane_wire::sync::{
    CutKind, MAX_VALUES, MessageType, Operation, Outcome, Repr, UNBOUNDED, Values,
};
use std::collections::{BTreeMap, VecDeque};

/// Settings of an engine. Times are in µs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The group.
    pub group: u16,
    /// Its locations, at least 1.
    pub locations: u32,
    /// Values that the switch takes in a message: SYNC_BATCH of the library, at most
    /// [`MAX_VALUES`].
    pub batch: u32,
    /// Between two polls, at least 1.
    pub poll_us: u64,
    /// Before what has no answer is asked again, more than a round trip.
    pub retry_us: u64,
    /// The engine's term: the low 64 bits of its election id, which no other engine has, nor an
    /// earlier start of this one (rule 20). Not 0.
    pub term: u64,
    /// Drawn at the engine's start, so that answers to another are not taken for its own.
    pub nonce: u32,
}

impl Settings {
    /// Checks that the group has all these locations.
    pub(crate) fn check_locations(&self, values: &[(u32, u64)]) -> Result<(), WriteError> {
        let beyond = values.iter().find(|(at, _)| *at >= self.locations);
        match beyond {
            Some((location, _)) => Err(WriteError::Location(*location)),
            None => Ok(()),
        }
    }
}

/// Why settings are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {must}")]
pub struct SettingsError {
    /// The setting.
    pub field: &'static str,
    /// Its permitted range.
    pub must: &'static str,
}

impl SettingsError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        "SYNC001"
    }
}

/// Promise about the view (rules 5, 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// E: no location is farther from what the data plane held at the mark; `None`: unbounded.
    pub bound: Option<u64>,
    /// k: all but so many locations are within `within`.
    pub all_but: u64,
    /// The greatest t of the sweep and of the last.
    pub within: u64,
    /// The mark is not older than this.
    pub age_us: u64,
    /// Stamp of the mark.
    pub stamp: u64,
    /// The newest poll that the switch had when it made the mark.
    pub poll: u64,
    /// Which start of the switch, counted from 1 (rule 11).
    pub generation: u64,
    /// The switch's own name for its start.
    pub incarnation: u32,
    /// Number of cuts.
    pub epoch: u32,
    /// A: what rests so long is exact, once its ring position came; 0 before it is known.
    pub sweep_us: u32,
}

/// The view as it was before another one began in its place, of the same start of the switch or of the next
/// one (rule 26): values that the switch sent, of which some location may lack any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastView {
    /// The switch's own name for its start.
    pub incarnation: u32,
    /// When it ended, in µs.
    pub ended: u64,
    /// Its promise as it was then; `None` if the view was incomplete.
    pub told: Option<Told>,
    /// Values by location; 0 of those that had none yet.
    pub values: Vec<u64>,
}

/// Event for the engine's driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A new start of the switch, or a new view of it, which is incomplete (rule 11).
    Generation {
        /// Counted from 1.
        generation: u64,
        /// The switch's own name for its start.
        incarnation: u32,
        /// The view before it; `None` of the first.
        last: Option<LastView>,
    },
    /// Every location has a value.
    Complete {
        /// The generation.
        generation: u64,
    },
    /// A write ended, and the view has it (rule 23).
    Written {
        /// The write.
        ticket: Ticket,
        /// Its outcome; `None`: unknown, because the switch started anew (rule 21).
        outcome: Option<Outcome>,
    },
    /// The switch has a cut of this number, which was asked for by [`Engine::cut`] or [`Engine::reset`].
    Cut {
        /// Its number.
        epoch: u32,
        /// Term of the engine that made it.
        term: u64,
    },
    /// All of a window that a cut ended: `values` are what locations held at the cut. The driver
    /// keeps it and says so with [`Engine::window_kept`] (rules 15, 26).
    Window {
        /// The switch's own name for its start.
        incarnation: u32,
        /// Number of the cut that ended it.
        epoch: u32,
        /// Values by location.
        values: Vec<u64>,
    },
    /// The cut of a staged write was made: its window is neither fetched nor delivered, and counts as
    /// kept.
    Waived {
        /// The switch's own name for its start.
        incarnation: u32,
        /// Number of the cut.
        epoch: u32,
    },
    /// Another engine has a higher term: this one does nothing more (rule 20).
    Fenced {
        /// The higher term.
        term: u64,
    },
}

/// Counts of an engine since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// UPDATEs of the present view.
    pub updates: u64,
    /// Values that were newer than those in the view.
    pub applied: u64,
    /// Lost positions that were asked for.
    pub repairs: u64,
    /// Lost positions whose locations the switch named.
    pub repaired: u64,
    /// Messages that the switch refused.
    pub refused: u64,
    /// Dropped: bytes that are no message.
    pub malformed: u64,
    /// Dropped: answers to another START, of another group, or that came after the engine was
    /// fenced.
    pub foreign: u64,
    /// Dropped: messages with a location that the group does not have.
    pub beyond: u64,
    /// Messages of another start of the switch, each of which has the view begin anew.
    pub other_incarnation: u64,
}

/// Polls whose times are kept; a later one counts as old as the last of them.
const POLLS: usize = 1024;

/// Datagrams that wait for the driver; further ones are not made.
const OUTBOX: usize = 4096;

/// Named positions for each location that are open before the engine begins a new view: so often
/// was the same location lost in a row.
const OPEN_PER_LOCATION: usize = 8;

/// Pieces of missing positions that are asked for at once.
const REPAIRS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// START was sent, or is due.
    Starting,
    Following,
    Fenced,
}

/// The newest message of the switch by its stamp.
#[derive(Clone, Copy, Debug)]
struct Mark {
    stamp: u64,
    bound: u64,
    threshold: u64,
    queued: u32,
    poll: u64,
    sweep: u32,
}

/// The engine of one group of one switch, without IO.
#[derive(Debug)]
pub struct Engine {
    settings: Settings,
    life: Life,
    /// Number of the present START.
    starter: u64,
    started_at: Option<u64>,
    start_sent: Option<u64>,
    incarnation: u32,
    generation: u64,
    /// The switch refuses writes and cuts (rule 32).
    is_read_only: bool,
    /// When the last view ended, and its promise; `None` while there is none or it goes on.
    ended: Option<(u64, Option<Told>)>,
    /// Stamp at which the view begins.
    first_stamp: u64,
    values: Vec<u64>,
    stamps: Vec<u64>,
    /// Of each location the last cut of the view that gave it its value; 0: none did (rule 17).
    given: Vec<u32>,
    /// The greatest of them.
    last_given: u32,
    /// Locations without a value since the view began.
    unseen: u32,
    mark: Option<Mark>,
    tracker: Tracker,
    /// Positions below are missing for a poll's time at least.
    overdue: u64,
    asked: BTreeMap<u64, u64>,
    poll: u64,
    /// Last window that a poll told the switch to be kept.
    kept_told: u32,
    polls: VecDeque<(u64, u64)>,
    poll_due: u64,
    cuts: Cuts,
    writes: Writes,
    stages: Stages,
    continued: Option<Continued>,
    outbox: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Engine {
    /// An engine that starts at `now`. `kept` are the last windows that its store has, by
    /// incarnation: of each the number of the last (rule 26).
    ///
    /// # Errors
    ///
    /// [`SettingsError`] if a setting is out of its range.
    pub fn new(
        settings: Settings,
        now: u64,
        kept: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Engine, SettingsError> {
        let most = MAX_VALUES as u32;
        let wrong = [
            (settings.locations == 0, "locations", "at least 1"),
            (
                settings.batch == 0 || settings.batch > most,
                "batch",
                "1 to 32",
            ),
            (settings.poll_us == 0, "poll_us", "at least 1"),
            (settings.retry_us == 0, "retry_us", "at least 1"),
            (settings.term == 0, "term", "at least 1"),
        ];
        if let Some((_, field, must)) = wrong.into_iter().find(|(wrong, ..)| *wrong) {
            return Err(SettingsError { field, must });
        }
        let mut engine = Engine {
            life: Life::Starting,
            starter: u64::from(settings.nonce) << 32,
            started_at: None,
            start_sent: None,
            incarnation: 0,
            generation: 0,
            is_read_only: false,
            ended: None,
            first_stamp: 0,
            values: vec![0; settings.locations as usize],
            stamps: vec![0; settings.locations as usize],
            given: vec![0; settings.locations as usize],
            last_given: 0,
            unseen: settings.locations,
            mark: None,
            tracker: Tracker::new(0, 0),
            overdue: 0,
            asked: BTreeMap::new(),
            poll: 0,
            kept_told: 0,
            polls: VecDeque::new(),
            poll_due: now,
            cuts: Cuts::new(kept),
            writes: Writes::default(),
            stages: Stages::default(),
            continued: None,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            settings,
        };
        engine.begin(now);
        Ok(engine)
    }

    /// Begins a new view (rule 11).
    fn begin(&mut self, now: u64) {
        if self.life == Life::Following {
            self.ended = Some((now, self.told(now)));
            let (epoch, sum) = (self.cuts.epoch(), self.seen_sum());
            let is_complete = self.is_complete();
            if let Some(continued) = &mut self.continued {
                continued.ended(self.incarnation, epoch, sum, is_complete);
            }
        }
        self.life = Life::Starting;
        self.starter += 1;
        self.started_at = None;
        self.start_sent = None;
        self.mark = None;
        self.poll_due = now;
        let staged_cut_waits = self.cuts.forget();
        let staged = self.stages.forget(staged_cut_waits);
        let unknown = self.writes.forget().chain(staged);
        self.events.extend(unknown.map(|ticket| Event::Written {
            ticket,
            outcome: None,
        }));
    }

    /// The path from the switch has room for messages with so many frozen values, at least 1, and the
    /// engine asks for no more at once. Without this call it asks for as many as the switch sends.
    pub fn set_room(&mut self, frozen: u32) {
        self.cuts.set_room(frozen.max(1));
    }

    /// The group's values are counters of `bits` bits, 1 to 64, whose totals the engine keeps up, on top of
    /// what was `kept` (rule 25). A driver says so before the first datagram.
    pub fn continue_counters(&mut self, bits: u32, kept: Option<KeptTotals>) {
        self.continued = Some(Continued::new(bits, self.settings.locations, kept));
    }

    /// The totals; `None` unless they are kept up.
    pub fn continued(&self) -> Option<&Continued> {
        self.continued.as_ref()
    }

    /// The totals as they outlive the engine. `None` unless they are kept up and the view is complete, and
    /// while what was counted before a cut is lacking.
    pub fn keep_totals(&self) -> Option<KeptTotals> {
        let continued = self.continued.as_ref().filter(|_| self.is_complete())?;
        continued.keep(self.incarnation, self.cuts.epoch(), self.seen_sum())
    }

    /// Sum of the distances of all values that are in the view, or that a later one is in.
    fn seen_sum(&self) -> u64 {
        self.tracker.sum().wrapping_sub(self.tracker.hidden())
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Counts since the engine was made.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// True if another engine has a higher term: this one does nothing more (rule 20).
    pub fn is_fenced(&self) -> bool {
        self.life == Life::Fenced
    }

    /// True if the switch says that it refuses writes and cuts (rule 32).
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// The values by location: complete if [`Engine::told`] says something.
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Promise about the values; `None` while the view is incomplete.
    pub fn told(&self, now: u64) -> Option<Told> {
        let mark = self.mark.filter(|_| self.is_complete())?;
        let hidden = self.tracker.hidden();
        let bound = mark.bound.checked_add(hidden);
        let bound = bound.filter(|_| mark.bound < UNBOUNDED && hidden < UNBOUNDED);
        let within = mark.threshold;
        Some(Told {
            bound,
            all_but: u64::from(mark.queued) + self.tracker.open(),
            within,
            age_us: now.saturating_sub(self.asked_at(mark.poll)),
            stamp: mark.stamp,
            poll: mark.poll,
            generation: self.generation,
            incarnation: self.incarnation,
            epoch: self.cuts.epoch(),
            sweep_us: mark.sweep,
        })
    }

    fn is_complete(&self) -> bool {
        self.life == Life::Following && self.unseen == 0
    }

    /// When a poll was sent, or one that was sent before it.
    fn asked_at(&self, poll: u64) -> u64 {
        let before = self.polls.iter().rev().find(|(number, _)| *number <= poll);
        before.map_or(self.started_at.unwrap_or(0), |(_, at)| *at)
    }

    /// Asks for a mark at once; [`Told::poll`] has the number or a greater one when it came.
    pub fn refresh(&mut self, now: u64) -> u64 {
        self.poll_due = now;
        self.poll + 1
    }

    fn check_writes(&self) -> Result<(), WriteError> {
        if self.life == Life::Fenced {
            return Err(WriteError::Fenced);
        }
        if self.is_read_only {
            return Err(WriteError::ReadOnly);
        }
        Ok(())
    }

    /// Asks for values to be written, whole and once (rules 19, 22, 23): `values` are locations
    /// and values, at most [`Settings::batch`]. [`Operation::SetIfEqual`] takes one, which has to
    /// hold `expected`.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the write cannot be made or too many wait.
    pub fn write(
        &mut self,
        operation: Operation,
        values: &[(u32, u64)],
        expected: u64,
    ) -> Result<Ticket, WriteError> {
        self.check_writes()?;
        self.writes.add(&self.settings, operation, values, expected)
    }

    /// Asks for values to be written, all of them between two packets and once (rule 19): `values` are
    /// locations and values, of a location named twice the last. It waits for the cuts before it,
    /// and for all locations to cross them.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the write cannot be made or too many wait.
    pub fn write_staged(&mut self, values: &[(u32, u64)]) -> Result<Ticket, WriteError> {
        self.check_writes()?;
        if values.is_empty() {
            return Err(WriteError::Count(self.settings.locations));
        }
        self.settings.check_locations(values)?;
        let ticket = self.writes.ticket();
        self.stages.add(ticket, values)?;
        Ok(ticket)
    }

    /// Asks for a cut: of [`CutKind::Filled`] all locations become `fill`. One that waits already
    /// goes first, and this one is not taken: false, as when the engine is fenced or the switch
    /// refuses cuts.
    pub fn cut(&mut self, kind: CutKind, fill: u64) -> bool {
        self.check_writes().is_ok() && self.cuts.ask(kind, fill, true)
    }

    /// As [`Engine::cut`] of [`CutKind::Filled`], with a window that nobody wants: it is neither
    /// fetched nor delivered, and counts as kept once [`Event::Cut`] says that this engine made it.
    pub fn reset(&mut self, fill: u64) -> bool {
        self.check_writes().is_ok() && self.cuts.ask(CutKind::Filled, fill, false)
    }

    /// The driver has kept the window that cut `epoch` of `incarnation` ended, or gives it up.
    pub fn window_kept(&mut self, incarnation: u32, epoch: u32) {
        self.cuts.window_kept(incarnation, epoch);
        self.no_window(incarnation, epoch);
    }

    /// The window of a cut will not come any more, unless it did.
    fn no_window(&mut self, incarnation: u32, epoch: u32) {
        let is_present = incarnation == self.incarnation;
        if let Some(continued) = self.continued.as_mut().filter(|_| is_present) {
            continued.no_window(epoch);
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next datagram for the switch.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    /// When [`Engine::handle_timeout`] is due; `None` when never again.
    pub fn poll_timeout(&self) -> Option<u64> {
        (self.life != Life::Fenced).then_some(self.poll_due)
    }

    /// Does what is due: polls, and what has no answer yet again.
    pub fn handle_timeout(&mut self, now: u64) {
        if now < self.poll_due || self.life == Life::Fenced {
            return;
        }
        self.poll_due = now + self.settings.poll_us;
        let retry = |sent: Option<u64>| sent.is_none_or(|at| now >= at + self.settings.retry_us);
        if self.life == Life::Starting {
            if retry(self.start_sent) {
                self.start_sent = Some(now);
                self.started_at.get_or_insert(now);
                self.send(MessageType::Start, |message| message.incarnation = 0);
            }
            return;
        }
        self.send_poll(now);
        self.send_repairs(now);
        self.proceed(now);
    }

    /// Sends what answers made room for, without a poll: the next write, staged values, cut and ranges
    /// of frozen values. A driver calls it when it has handled the datagrams that were there.
    pub fn proceed(&mut self, now: u64) {
        if self.life == Life::Following {
            self.send_write(now);
            self.send_staged(now);
            self.send_cut(now);
        }
    }

    /// A message to the switch, without what it says.
    fn request(&self, message_type: MessageType) -> Repr<'static> {
        Repr {
            group: self.settings.group,
            incarnation: self.incarnation,
            term: self.settings.term,
            starter: self.starter,
            ..Repr::new(message_type)
        }
    }

    fn send(&mut self, message_type: MessageType, fill: impl FnOnce(&mut Repr<'_>)) {
        if self.outbox.len() >= OUTBOX {
            return;
        }
        let mut message = self.request(message_type);
        fill(&mut message);
        // No field of a request is too wide.
        self.outbox.extend(message.to_vec().ok());
    }

    fn send_poll(&mut self, now: u64) {
        self.poll += 1;
        if self.polls.len() < POLLS {
            self.polls.push_back((self.poll, now));
        }
        let poll = self.poll;
        let next = self.tracker.next();
        let lost = u32::try_from(self.tracker.lost()).unwrap_or(u32::MAX);
        let kept = self.cuts.kept(self.incarnation);
        self.kept_told = kept;
        self.send(MessageType::Poll, |message| {
            message.poll = poll;
            message.position = next;
            message.lost = lost;
            message.epoch = kept;
        });
    }

    /// Asks what overdue positions held (rule 8).
    fn send_repairs(&mut self, now: u64) {
        let batch = u64::from(self.settings.batch);
        let (overdue, retry) = (self.overdue, self.settings.retry_us);
        self.overdue = self.tracker.end();
        let next = self.tracker.next();
        self.asked
            .retain(|at, sent| *at >= next && now < *sent + retry);
        let mut pieces = Vec::new();
        for lost in self.tracker.missing() {
            let end = lost.end.min(overdue);
            let mut at = lost.start;
            while at < end && pieces.len() < REPAIRS {
                let until = end.min(at + batch);
                if !self.asked.contains_key(&at) {
                    pieces.push((at, until - at));
                }
                at = until;
            }
        }
        for (at, count) in pieces {
            self.asked.insert(at, now);
            self.counters.repairs += count;
            self.send(MessageType::Repair, |message| {
                message.position = at;
                message.queued = count as u32;
            });
        }
    }

    fn send_write(&mut self, now: u64) {
        let Some(due) = self.writes.due(now, self.settings.retry_us) else {
            return;
        };
        let mut bytes = Vec::new();
        for value in due.values {
            value.push(&mut bytes);
        }
        let (number, operation, expected) = (due.number, due.operation, due.expected);
        if self.outbox.len() >= OUTBOX {
            return;
        }
        let message = Repr {
            operation: operation as u8,
            number,
            operand: expected,
            values: Values::new(&bytes),
            ..self.request(MessageType::Write)
        };
        self.outbox.extend(message.to_vec().ok());
    }

    /// Sends values that are to be staged, and asks for the cut when all are (rule 19).
    fn send_staged(&mut self, now: u64) {
        let batch = self.settings.batch as usize;
        let (number, pieces) = self.stages.due(now, self.settings.retry_us, batch);
        for piece in pieces {
            if self.outbox.len() >= OUTBOX {
                return;
            }
            let mut bytes = Vec::new();
            for value in self.stages.piece(piece, batch) {
                value.push(&mut bytes);
            }
            let message = Repr {
                number,
                position: piece as u64,
                values: Values::new(&bytes),
                ..self.request(MessageType::Stage)
            };
            self.outbox.extend(message.to_vec().ok());
        }
        if let Some((number, locations)) = self.stages.whole(batch)
            && self.cuts.ask_staged(number, locations)
        {
            self.stages.cutting();
        }
    }

    fn send_cut(&mut self, now: u64) {
        if let Some(due) = self.cuts.due(now, self.settings.retry_us) {
            // The switch makes no cut before it hears that the last window is kept (rule 15).
            if self.cuts.kept(self.incarnation) > self.kept_told {
                self.send_poll(now);
            }
            self.send(MessageType::Cut, |message| {
                message.kind = due.kind as u8;
                message.operand = due.operand;
                message.number = due.staging;
                message.epoch = due.epoch;
            });
        }
        let epoch = self.cuts.epoch();
        for (first, count) in self.cuts.fetches(now, self.settings.retry_us) {
            self.send(MessageType::Fetch, |message| {
                message.epoch = epoch;
                message.position = first.into();
                message.queued = count;
            });
        }
    }
}

#[cfg(test)]
mod tests;
