//! Watches of a record or of a whole group (rule 23).

use std::collections::{BTreeMap, VecDeque};

use stateplane_wire::coordination::{Key, Kind, Outcome};

use crate::call::{Call, End};
use crate::{Action, Agent, Answer, Entry, Event, Operation, Place, Record};

/// Most entries that wait for one before them.
const MOST_WAITING: u64 = 64;

/// Most events that wait to be taken, beyond which entries are asked for later.
const MOST_EVENTS: usize = 256;

/// Entries that follow the answer to one request.
const ASKED_ENTRIES: u64 = 16;

/// Event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// The record is this one since the entry `record.number`.
    Put {
        /// The record.
        record: Record,
    },
    /// There is no record. It was deleted by the entry `number` or one before it.
    Deleted {
        /// The record's key.
        key: Key,
        /// A number at which there was no record.
        number: u64,
    },
    /// The switches have forgotten entries before `oldest` that were to be told: records may have
    /// changed and changed again meanwhile. What follows is complete from `oldest` on; the watch
    /// of a record tells first what that is, if it changed last before `oldest` and that was not told.
    Compacted {
        /// Number of the first entry that is not missing.
        oldest: u64,
    },
    /// Another name has the same key.
    Clash,
}

/// Times of a watch, in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchSettings {
    /// Time between renewals of a subscription, which lasts 3 s at the switch. So long an entry may
    /// stay unknown if its message was lost and no other follows.
    pub renew: u64,
    /// Time between two looks while the switch has no place for the subscription, and after an
    /// answer that did not come.
    pub poll: u64,
    /// Time for which an entry is waited for that one behind it has overtaken.
    pub gap: u64,
}

impl Default for WatchSettings {
    fn default() -> WatchSettings {
        WatchSettings {
            renew: 500_000,
            poll: 50_000,
            gap: 2_000,
        }
    }
}

/// Records that are watched.
#[derive(Debug, Clone)]
enum Scope {
    Record(Place),
    Group(u16),
}

/// The record before the entries that are told, which a watch of a record tells first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// It needs none, or it was told.
    Told,
    /// The record is to be read.
    Wanted,
    /// There was no record when this number was the newest. Entries up to it may tell how that
    /// came.
    Absent(u64),
}

/// A watch of one record or of a whole group. The answerer of the group's chain sends the entries;
/// the watch tells each of them that changed a record once, in the order of their numbers, or that
/// some are missing. It can be resumed from [`Watch::next`].
///
/// ```
/// # #[allow(dead_code)]
/// # mod chain { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/mod.rs")); }
/// use stateplane_coordination::{Name, Operation, Watch, WatchEvent};
///
/// # let mut service = chain::Service::new();
/// # let mut agent = service.agent(4);
/// let place = Name::new(b"lamp").unwrap().place(4);
/// let mut watch = Watch::new(place.clone(), None);
/// watch.handle_timeout(0, &mut agent);
/// for event in service.events(&mut agent) {
///     watch.handle_event(0, &event);
/// }
/// watch.handle_timeout(0, &mut agent);
/// agent.submit(0, Operation::put(place, b"on"))?;
/// for event in service.events(&mut agent) {
///     watch.handle_event(0, &event);
/// }
/// let Some(WatchEvent::Deleted { number: 0, .. }) = watch.poll_event() else { panic!() };
/// let Some(WatchEvent::Put { record }) = watch.poll_event() else { panic!() };
/// assert_eq!((record.number, record.value.as_slice()), (1, b"on".as_slice()));
/// # Ok::<(), stateplane_coordination::Refused>(())
/// ```
#[derive(Debug)]
pub struct Watch {
    scope: Scope,
    settings: WatchSettings,
    group: Option<u16>,
    /// The first entry that was not told.
    next: Option<u64>,
    /// The newest entry that is known to be there.
    newest: u64,
    /// The last entry whose record was told.
    told: u64,
    /// Entries behind `next`.
    waiting: BTreeMap<u64, Entry>,
    before: Before,
    /// The subscription, and the request for entries.
    asks: Call,
    /// The last entry that it brings, if there are more; else 0.
    asked_to: u64,
    reads: Call,
    /// When the subscription is renewed, and when the record may be read.
    due: u64,
    look: u64,
    /// The entry that was missed, and when it is asked for.
    missed: Option<(u64, u64)>,
    events: VecDeque<WatchEvent>,
}

impl Watch {
    /// A watch of the record at `place`. It tells the record as it is first, or, with `from`, the
    /// changes by the entry of that number and those behind it.
    pub fn new(place: Place, from: Option<u64>) -> Watch {
        let before = match from {
            Some(_) => Before::Told,
            None => Before::Wanted,
        };
        Watch::of(Scope::Record(place), from, before)
    }

    /// A watch of all records of a group, which tells the changes from now on or, with `from`, by
    /// the entry of that number and those behind it.
    pub fn group(group: u16, from: Option<u64>) -> Watch {
        Watch::of(Scope::Group(group), from, Before::Told)
    }

    fn of(scope: Scope, from: Option<u64>, before: Before) -> Watch {
        Watch {
            group: match scope {
                Scope::Record(_) => None,
                Scope::Group(group) => Some(group),
            },
            scope,
            settings: WatchSettings::default(),
            next: from.map(|from| from.max(1)),
            newest: 0,
            // A watch that is resumed told before what came before.
            told: from.unwrap_or(0).saturating_sub(1),
            waiting: BTreeMap::new(),
            before,
            asks: Call::default(),
            asked_to: 0,
            reads: Call::default(),
            due: 0,
            look: 0,
            missed: None,
            events: VecDeque::new(),
        }
    }

    /// The watch with other times.
    pub fn with_settings(self, settings: WatchSettings) -> Watch {
        Watch { settings, ..self }
    }

    /// Number of the first entry that was not told: from there a watch can be resumed, once
    /// [`Watch::poll_event`] gives nothing more. `None` before the switch answered.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<WatchEvent> {
        let event = self.events.pop_front()?;
        self.advance();
        Some(event)
    }

    /// Ends the subscription, so that its place at the switch is free at once. Another watch of the
    /// same agent and group renews it.
    pub fn end(&mut self, now: u64, agent: &mut Agent) {
        self.due = u64::MAX;
        if let Some(group) = self.group {
            let place = Place::within(group, Key::default());
            // Without an answer the subscription ends by itself.
            _ = self
                .asks
                .begin(now, agent, Operation::new(place, Action::Unwatch));
        }
    }

    /// Takes an event of the agent; true if it was the watch's alone.
    pub fn handle_event(&mut self, now: u64, event: &Event) -> bool {
        if let Event::Entry { group, entry } = event {
            if self.group == Some(*group) {
                self.came(now, entry);
            }
            return false;
        }
        let concerned = self.asks.concerns(event) || self.reads.concerns(event);
        if let Some(end) = self.asks.end(event) {
            match end {
                End::Answered(answer) => self.answered(now, &answer),
                _ => self.due = now.saturating_add(self.settings.poll),
            }
        } else if let Some(end) = self.reads.end(event) {
            match end {
                End::Answered(answer) => self.looked(&answer),
                End::Clash => {
                    self.before = Before::Told;
                    self.events.push_back(WatchEvent::Clash);
                    self.advance();
                }
                End::Never | End::Lost => {}
            }
        }
        concerned
    }

    /// Asks after `wait` for the next entry, if it is there and does not come until then.
    fn miss(&mut self, now: u64, wait: u64) {
        if let Some(next) = self.next.filter(|next| *next <= self.newest)
            && self.missed.is_none()
        {
            self.missed = Some((next, now.saturating_add(wait)));
        }
    }

    /// The switch subscribed this client, or has no place for it; entries that were asked for
    /// follow, unless they left its ring.
    fn answered(&mut self, now: u64, answer: &Answer) {
        self.due = now.saturating_add(match answer.outcome {
            Outcome::Full => self.settings.poll,
            _ => self.settings.renew,
        });
        self.newest = self.newest.max(answer.newest);
        let next = *self.next.get_or_insert(answer.newest + 1);
        if answer.outcome == Outcome::Compacted && next < answer.number {
            let oldest = answer.number;
            self.events.push_back(WatchEvent::Compacted { oldest });
            self.next = Some(oldest);
            self.waiting.retain(|number, _| *number >= oldest);
            if matches!(self.scope, Scope::Record(_)) {
                self.before = Before::Wanted;
            }
            self.due = now;
        }
        if answer.newest <= self.asked_to {
            self.asked_to = 0;
        }
        self.advance();
        self.miss(now, self.settings.gap);
    }

    /// The record as it was when `answer.newest` was the newest entry.
    fn looked(&mut self, answer: &Answer) {
        let next = self.next.unwrap_or(answer.newest + 1);
        if answer.newest.saturating_add(1) < next {
            // Another answer is to tell what lies behind.
            return;
        }
        let record = answer.record.as_ref();
        self.before = match record.filter(|_| answer.outcome == Outcome::Done) {
            Some(record) => {
                if record.number < next && record.number > self.told {
                    let record = record.clone();
                    self.told = record.number;
                    self.events.push_back(WatchEvent::Put { record });
                }
                Before::Told
            }
            None => Before::Absent(answer.newest),
        };
        self.advance();
    }

    fn came(&mut self, now: u64, entry: &Entry) {
        self.newest = self.newest.max(entry.newest);
        let number = entry.record.number;
        let Some(next) = self.next else {
            return;
        };
        if number < next || number - next >= MOST_WAITING {
            return;
        }
        self.waiting.entry(number).or_insert_with(|| entry.clone());
        self.advance();
        let all_came = self.asked_to != 0 && self.next.is_some_and(|next| next > self.asked_to);
        if all_came {
            // And there are more.
            self.asked_to = 0;
            self.missed = None;
            self.miss(now, 0);
        } else {
            self.miss(now, self.settings.gap);
        }
    }

    /// Tells what waits and has its turn.
    fn advance(&mut self) {
        let Some(mut next) = self.next else {
            return;
        };
        while self.before != Before::Wanted && self.events.len() < MOST_EVENTS {
            if let Before::Absent(at) = self.before
                && next > at
            {
                self.before = Before::Told;
                if let Scope::Record(place) = &self.scope {
                    let (key, number) = (place.key, next - 1);
                    self.events.push_back(WatchEvent::Deleted { key, number });
                }
            }
            let Some(entry) = self.waiting.remove(&next) else {
                break;
            };
            next += 1;
            if entry.changes {
                self.tell(entry.record);
            }
        }
        self.next = Some(next);
    }

    fn tell(&mut self, mut record: Record) {
        if let Scope::Record(place) = &self.scope {
            if record.key != place.key {
                return;
            }
            self.before = Before::Told;
            self.told = record.number;
            if record.kind == Kind::Value {
                match record.value.strip_prefix(place.prefix.as_slice()) {
                    Some(value) => record.value = value.to_vec(),
                    None => return self.events.push_back(WatchEvent::Clash),
                }
            }
        }
        self.events.push_back(match record.kind {
            Kind::Value | Kind::Lock => WatchEvent::Put { record },
            Kind::None | Kind::Empty => WatchEvent::Deleted {
                key: record.key,
                number: record.number,
            },
        });
    }

    /// Does what is due at `now`: renews the subscription, asks for entries that are missing, reads
    /// the record.
    pub fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        let group = match &self.scope {
            Scope::Record(place) => agent.group(place),
            Scope::Group(group) => *group,
        };
        self.group = Some(group);
        // An agent without room is asked at the next look.
        if self.wants_record()
            && now >= self.look
            && let Scope::Record(place) = &self.scope
        {
            self.look = now.saturating_add(self.settings.poll);
            _ = self.reads.begin(now, agent, Operation::read(place.clone()));
        }
        if self.asks.is_busy() || !(self.is_missing(now) || now >= self.due) {
            return;
        }
        self.due = now.saturating_add(self.settings.poll);
        let room = self.events.len() < MOST_EVENTS && self.waiting.len() < MOST_WAITING as usize;
        let from = self.next.filter(|_| room).unwrap_or(0);
        self.asked_to = match from {
            0 => 0,
            from => from + (ASKED_ENTRIES - 1),
        };
        let place = Place::within(group, Key::default());
        _ = self
            .asks
            .begin(now, agent, Operation::new(place, Action::Watch(from)));
    }

    /// True if an entry is missing since the time for which it is waited.
    fn is_missing(&mut self, now: u64) -> bool {
        let Some((number, _)) = self.missed.take_if(|(_, at)| *at <= now) else {
            return false;
        };
        // What waits for the record's state is there.
        let missing = self.next == Some(number) && !self.waiting.contains_key(&number);
        if !missing {
            self.miss(now, self.settings.gap);
        }
        missing
    }

    /// True if the record is to be read: once it is known which entries are told.
    fn wants_record(&self) -> bool {
        self.before == Before::Wanted && self.next.is_some() && !self.reads.is_busy()
    }

    /// When [`Watch::handle_timeout`] is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        let look = self.wants_record().then_some(self.look);
        let missed = self.missed.map(|(_, at)| at);
        let asks = (!self.asks.is_busy()).then_some(missed.map_or(self.due, |at| at.min(self.due)));
        look.into_iter().chain(asks).min()
    }
}
