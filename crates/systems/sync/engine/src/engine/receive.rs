//! Handling of the switch's messages.

use super::{Engine, Event, LastView, Life, Mark, OPEN_PER_LOCATION};
use crate::continued::{Begin, Unseen};
use crate::tracker::Tracker;
use stateplane_wire::sync::{CutKind, MessageType, Outcome, Packet, Repr, Value};

impl Engine {
    /// Takes a datagram of the switch. What is not of this view changes nothing: another START's
    /// answers, messages of another start of the switch, and bytes that are no message.
    pub fn handle_datagram(&mut self, now: u64, bytes: &[u8]) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let message = Repr::parse(&packet);
        if message.group != self.settings.group
            || message.starter != self.starter
            || self.life == Life::Fenced
        {
            self.counters.foreign += 1;
            return;
        }
        let locations = self.settings.locations;
        let end = message.position.saturating_add(message.frozen.len() as u64);
        let is_update = message.message_type == MessageType::Update;
        let location = |value: Value| {
            if is_update {
                value.location()
            } else {
                value.index
            }
        };
        if message
            .values
            .iter()
            .any(|value| location(value) >= locations)
            || (!message.frozen.is_empty() && end > u64::from(locations))
        {
            self.counters.beyond += 1;
            return;
        }
        if self.life == Life::Starting {
            match message.message_type {
                MessageType::Started => self.started(&message),
                MessageType::Refused => self.refused(now, &message),
                _ => {}
            }
            return;
        }
        if message.incarnation != self.incarnation {
            // A later start of the switch, which has nothing of what this view has seen; or an
            // earlier one that took the same START.
            self.counters.other_incarnation += 1;
            self.begin(now);
            return;
        }
        match message.message_type {
            MessageType::Update => self.update(now, &message),
            MessageType::Repaired => self.repaired(now, &message),
            MessageType::Written => self.written(&message),
            MessageType::CutMade => {
                let term = message.number;
                let is_own = term == self.settings.term;
                if let Some((epoch, kind)) = self.cuts.made(message.epoch, is_own)
                    && kind != CutKind::Staged
                {
                    if self.cuts.kept(self.incarnation) >= epoch {
                        self.no_window(self.incarnation, epoch);
                    }
                    self.events.push_back(Event::Cut { epoch, term });
                }
            }
            MessageType::Fetched => self.fetched(&message),
            MessageType::Staged => self.stages.staged(message.number, message.position),
            MessageType::Refused => self.refused(now, &message),
            _ => {}
        }
    }

    /// The view that ended, with its values, which become zeros.
    fn last_view(&mut self) -> Option<LastView> {
        let (ended, told) = self.ended.take()?;
        let nothing = vec![0; self.values.len()];
        Some(LastView {
            incarnation: self.incarnation,
            ended,
            told,
            values: core::mem::replace(&mut self.values, nothing),
        })
    }

    /// The view begins (rule 11).
    fn started(&mut self, message: &Repr<'_>) {
        let last = self.last_view();
        self.life = Life::Following;
        self.incarnation = message.incarnation;
        self.generation += 1;
        self.first_stamp = message.stamp;
        self.stamps.fill(0);
        self.given.fill(0);
        self.last_given = 0;
        self.unseen = self.settings.locations;
        self.tracker = Tracker::new(message.position, message.after);
        self.overdue = message.position;
        self.asked.clear();
        self.polls.clear();
        self.poll = 0;
        self.cuts.begin(
            (message.incarnation, message.epoch),
            message.fetch,
            self.settings.locations,
        );
        self.kept_told = 0;
        if let Some(continued) = &mut self.continued {
            let is_filled = message.kind == CutKind::Filled as u8;
            continued.begins(&Begin {
                incarnation: message.incarnation,
                epoch: message.epoch,
                is_carried: message.kind == CutKind::Carried as u8,
                fill: (is_filled && self.cuts.is_fetching()).then_some(message.operand),
                sum: message.after,
                end: message.position.saturating_add(message.queued.into()),
            });
        }
        self.writes.begin(message.number);
        self.is_read_only = message.operation != 0;
        self.events.push_back(Event::Generation {
            generation: self.generation,
            incarnation: self.incarnation,
            last,
        });
        if self.is_read_only {
            self.cuts.withdraw();
            let refused = self.writes.refuse().chain(self.stages.refuse());
            self.events.extend(refused.map(|ticket| Event::Written {
                ticket,
                outcome: Some(Outcome::NotAllowed),
            }));
        }
    }

    fn update(&mut self, now: u64, message: &Repr<'_>) {
        if message.stamp <= self.first_stamp {
            return;
        }
        self.counters.updates += 1;
        let count = message.values.len() as u64;
        self.tracker
            .came(message.position, count, message.before, message.after);
        if message.epoch > self.cuts.epoch() && !self.cross(now, message) {
            return;
        }
        // This pass waits for the memory of all stamps at once, the next finds them in the cache.
        let is_newer = |value: &Value| {
            let at = value.location() as usize;
            self.stamps
                .get(at)
                .is_some_and(|stamp| message.stamp > *stamp)
        };
        let newer = message.values.iter().filter(is_newer).count();
        if newer > 0 {
            self.apply(message);
        }
        if let Some(continued) = &mut self.continued {
            continued.has_all_before(self.tracker.whole());
        }
        if self.mark.is_none_or(|mark| message.stamp > mark.stamp) {
            // Of polls that were echoed, the newest tells how old the mark is.
            while self
                .polls
                .get(1)
                .is_some_and(|(poll, _)| *poll <= message.poll)
            {
                self.polls.pop_front();
            }
            self.mark = Some(Mark {
                stamp: message.stamp,
                bound: message.bound,
                threshold: message.threshold,
                queued: message.queued,
                poll: message.poll,
                sweep: message.sweep,
            });
        }
    }

    /// Gives locations the values of a message that are newer than theirs (rule 7).
    fn apply(&mut self, message: &Repr<'_>) {
        let unseen = self.unseen(message);
        for value in message.values.iter() {
            let location = value.location();
            let at = location as usize;
            let Some(stamp) = self.stamps.get_mut(at) else {
                continue;
            };
            if message.stamp > *stamp {
                let is_first = *stamp <= self.first_stamp;
                if is_first {
                    self.unseen = self.unseen.saturating_sub(1);
                    if self.unseen == 0 {
                        let generation = self.generation;
                        self.events.push_back(Event::Complete { generation });
                    }
                }
                *stamp = message.stamp;
                // The value before a cut that gave the location another is nothing any more (rule
                // 17). It came all the same: the view has what the cut gave, which is later.
                if message.epoch >= self.last_given || message.epoch >= self.given[at] {
                    self.counters.applied += 1;
                    self.values[at] = value.value;
                    if let Some(continued) = &mut self.continued {
                        let breaks = value.tells_discontinuity();
                        continued.took((at, value.value), is_first, breaks, unseen);
                    }
                } else if let Some(continued) = &mut self.continued
                    && value.tells_discontinuity()
                {
                    continued.breaks(at);
                }
                self.tracker.applied(location, message.stamp);
                let seen = (location, message.stamp);
                self.events
                    .extend(
                        self.writes
                            .seen(seen)
                            .map(|(ticket, outcome)| Event::Written {
                                ticket,
                                outcome: Some(outcome),
                            }),
                    );
            }
        }
    }

    /// Values that the view lacks, of those that the switch sent before those of a message.
    fn unseen(&self, message: &Repr<'_>) -> Unseen {
        if self.continued.is_none() {
            return Unseen::default();
        }
        Unseen {
            sum: self.tracker.hidden(),
            most: message.after.saturating_sub(message.before),
        }
    }

    /// The first message of a new epoch: the view crosses the cut (rule 17). False if it begins anew,
    /// because the engine does not know what the cut gave to locations.
    fn cross(&mut self, now: u64, message: &Repr<'_>) -> bool {
        let kind = CutKind::from_u8(message.kind).unwrap_or(CutKind::None);
        let staged = match kind {
            CutKind::Staged => {
                let Some(staged) = self.stages.crossed() else {
                    self.begin(now);
                    return false;
                };
                Some(staged)
            }
            _ => None,
        };
        if message.epoch - self.cuts.epoch() > 1
            && let Some(continued) = &mut self.continued
        {
            continued.skips();
        }
        self.cuts
            .crossed(message.epoch, kind, self.settings.locations);
        if kind == CutKind::Filled {
            self.total_filled(message);
            self.values.fill(message.operand);
            self.given.fill(message.epoch);
            self.last_given = message.epoch;
        }
        if let Some((ticket, values)) = staged {
            for value in values {
                let at = value.index as usize;
                self.values[at] = value.value;
                self.given[at] = message.epoch;
                if let Some(continued) = &mut self.continued {
                    continued.given(at, value.value);
                }
            }
            self.last_given = message.epoch;
            let outcome = Some(Outcome::Done);
            let (incarnation, epoch) = (self.incarnation, message.epoch);
            self.events.push_back(Event::Written { ticket, outcome });
            self.events.push_back(Event::Waived { incarnation, epoch });
        }
        true
    }

    /// Totals cross a cut that filled all locations (rule 25).
    fn total_filled(&mut self, message: &Repr<'_>) {
        let unseen = Unseen {
            most: message.number,
            ..self.unseen(message)
        };
        let end = message
            .position
            .saturating_add(message.values.len() as u64)
            .saturating_add(message.queued.into());
        let (is_complete, has_window) = (self.unseen == 0, self.cuts.is_fetching());
        if let Some(continued) = &mut self.continued {
            let cut = (message.epoch, message.operand);
            continued.crosses_filled(cut, unseen, end, (is_complete, has_window));
        }
    }

    /// The switch named what lost positions held (rule 8).
    fn repaired(&mut self, now: u64, message: &Repr<'_>) {
        for (at, value) in message.values.iter().enumerate() {
            let newest = self.stamps.get(value.index as usize).copied();
            let position = message.position.saturating_add(at as u64);
            self.counters.repaired += 1;
            if let Some(newest) = newest {
                self.tracker
                    .named(position, value.index, message.stamp, newest);
            }
        }
        self.asked.remove(&message.position);
        if self.tracker.named_open() > OPEN_PER_LOCATION * self.values.len() {
            self.begin(now);
        }
    }

    fn written(&mut self, message: &Repr<'_>) {
        let Some(outcome) = Outcome::from_u8(message.outcome) else {
            return;
        };
        let stamps = &self.stamps;
        let newest = |location: u32| stamps.get(location as usize).copied().unwrap_or(0);
        let ended = self
            .writes
            .answered(message.number, outcome, message.stamp, newest);
        self.events
            .extend(ended.map(|(ticket, outcome)| Event::Written {
                ticket,
                outcome: Some(outcome),
            }));
    }

    fn fetched(&mut self, message: &Repr<'_>) {
        let window = self
            .cuts
            .fetched(message.epoch, message.position, message.frozen.iter());
        if let Some((epoch, values)) = window {
            let incarnation = self.incarnation;
            if let Some(continued) = &mut self.continued {
                continued.window(epoch, &values);
                continued.has_all_before(self.tracker.whole());
            }
            self.events.push_back(Event::Window {
                incarnation,
                epoch,
                values,
            });
        }
    }

    fn refused(&mut self, now: u64, message: &Repr<'_>) {
        self.counters.refused += 1;
        match Outcome::from_u8(message.outcome) {
            Some(Outcome::Fenced) if message.term > self.settings.term => {
                self.begin(now);
                self.life = Life::Fenced;
                let term = message.term;
                self.events.push_back(Event::Fenced { term });
            }
            Some(Outcome::NotStarted) => self.begin(now),
            // It did not say so when the view began.
            Some(Outcome::NotAllowed) if !self.is_read_only => self.begin(now),
            // NOT_SETTLED and NOT_KEPT pass: the cut is asked for again.
            // Acknowledged values are counted, unless somebody forged the acknowledgement.
            Some(Outcome::NotStaged) if self.stages.lacking(message.number) => {
                self.cuts.withdraw();
            }
            Some(Outcome::NotHeld) => _ = self.asked.remove(&message.position),
            _ => {}
        }
    }
}
