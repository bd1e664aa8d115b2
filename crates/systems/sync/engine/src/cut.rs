//! Cuts, and the windows that they end (rules 15 to 18, 26).

use stateplane_wire::sync::{CutKind, MAX_FROZEN};
use std::collections::BTreeMap;

/// Ranges of frozen values that are asked for at once.
const FETCHES: usize = 64;

/// Frozen values that come in.
#[derive(Debug)]
struct Fetch {
    values: Vec<u64>,
    /// The location's value has come.
    has_come: Vec<bool>,
    missing: usize,
    /// Locations of a range.
    step: u32,
    /// First location that was not asked for.
    next: u32,
    /// When ranges that have not come were asked for, by their first location.
    asked: BTreeMap<u32, u64>,
}

/// A cut that waits or was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    kind: CutKind,
    fill: u64,
    /// Of a staged cut, the number of its staging.
    staging: u64,
    /// Somebody wants its window.
    has_window: bool,
}

/// A cut that goes to the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) kind: CutKind,
    /// The value that fills locations, or how many are staged.
    pub(crate) operand: u64,
    /// Of a staged cut, the number of its staging.
    pub(crate) staging: u64,
    pub(crate) epoch: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Cuts {
    epoch: u32,
    asked: Option<Asked>,
    sent: Option<u64>,
    /// Number of a cut that was asked for and is not known to be made. It stays when the switch
    /// refuses for the time being: the refusal may be older than the cut.
    wanted: Option<u32>,
    /// Number of the last cut of this view that is known to be made; the view crosses it later.
    made: u32,
    fetch: Option<Fetch>,
    /// Last window kept, by incarnation.
    kept: BTreeMap<u32, u32>,
    incarnation: u32,
    /// Frozen values that are asked for at once.
    most: u32,
    /// Frozen values for which the path has room; `None`: for all that a message has.
    room: Option<u32>,
}

impl Cuts {
    pub(crate) fn new(kept: impl IntoIterator<Item = (u32, u32)>) -> Cuts {
        Cuts {
            kept: kept.into_iter().collect(),
            ..Cuts::default()
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The view ends: of a cut that was asked for it is unknown whether it was made. True if a staged
    /// one waits that was not sent.
    pub(crate) fn forget(&mut self) -> bool {
        self.fetch = None;
        self.wanted = None;
        let was_sent = self.sent.take().is_some();
        let is_staged = self
            .asked
            .is_some_and(|asked| asked.kind == CutKind::Staged);
        if was_sent || is_staged {
            self.asked = None;
        }
        is_staged && !was_sent
    }

    /// The switch will not make the staged cut that was asked for.
    pub(crate) fn withdraw(&mut self) {
        self.asked = None;
        self.sent = None;
        self.wanted = None;
    }

    /// The path has room for so many frozen values.
    pub(crate) fn set_room(&mut self, room: u32) {
        self.room = Some(room);
        self.most = self.most.min(room);
    }

    /// A view begins with `epoch` cuts, of a switch whose messages have `most` frozen values at
    /// most. The last window is fetched unless it is kept.
    pub(crate) fn begin(&mut self, (incarnation, epoch): (u32, u32), most: u16, locations: u32) {
        let room = self.room.unwrap_or(MAX_FROZEN as u32);
        self.most = u32::from(most).min(room).max(1);
        self.incarnation = incarnation;
        self.epoch = epoch;
        self.made = epoch;
        self.fetch = None;
        if epoch > self.kept(incarnation) {
            self.fetch = Some(Fetch::new(locations, self.most));
        }
    }

    /// Asks for a carried or filled cut, whose window is fetched if somebody wants it.
    pub(crate) fn ask(&mut self, kind: CutKind, fill: u64, has_window: bool) -> bool {
        let free = self.asked.is_none() && matches!(kind, CutKind::Carried | CutKind::Filled);
        if free {
            self.asked = Some(Asked {
                kind,
                fill,
                staging: 0,
                has_window,
            });
        }
        free
    }

    /// Asks for the cut that takes a staging of so many locations.
    pub(crate) fn ask_staged(&mut self, staging: u64, locations: u64) -> bool {
        let free = self.asked.is_none();
        if free {
            self.asked = Some(Asked {
                kind: CutKind::Staged,
                fill: locations,
                staging,
                has_window: false,
            });
        }
        free
    }

    /// The cut that is to be asked for, if it was not asked for `retry` µs.
    pub(crate) fn due(&mut self, now: u64, retry: u64) -> Option<Due> {
        let asked = self.asked?;
        let has_crossed = self.made <= self.epoch && self.fetch.is_none();
        let ready = has_crossed && self.kept(self.incarnation) == self.epoch;
        if self.sent.is_some_and(|at| now < at + retry) || (self.wanted.is_none() && !ready) {
            return None;
        }
        self.sent = Some(now);
        let epoch = *self.wanted.get_or_insert(self.epoch + 1);
        Some(Due {
            kind: asked.kind,
            operand: asked.fill,
            staging: asked.staging,
            epoch,
        })
    }

    /// The switch has made cut `epoch`, for this engine if it `is_own`: its number and kind, the first
    /// time.
    pub(crate) fn made(&mut self, epoch: u32, is_own: bool) -> Option<(u32, CutKind)> {
        if self.wanted != Some(epoch) {
            return None;
        }
        self.wanted = None;
        self.sent = None;
        self.made = epoch;
        let asked = self.asked.take()?;
        if is_own && !asked.has_window {
            self.window_kept(self.incarnation, epoch);
        }
        Some((epoch, asked.kind))
    }

    /// The view crosses to `epoch`; its window is fetched.
    pub(crate) fn crossed(&mut self, epoch: u32, kind: CutKind, locations: u32) {
        self.epoch = epoch;
        if kind == CutKind::Staged {
            self.window_kept(self.incarnation, epoch);
        }
        // It is over already if nobody wants it.
        let is_due = epoch > self.kept(self.incarnation);
        self.fetch = is_due.then(|| Fetch::new(locations, self.most));
    }

    /// True if the last window comes in.
    pub(crate) fn is_fetching(&self) -> bool {
        self.fetch.is_some()
    }

    /// Ranges that are to be asked for: first location, and how many.
    pub(crate) fn fetches(&mut self, now: u64, retry: u64) -> Vec<(u32, u32)> {
        let Some(fetch) = &mut self.fetch else {
            return Vec::new();
        };
        let mut due = Vec::new();
        for (first, sent) in &mut fetch.asked {
            if now >= *sent + retry {
                *sent = now;
                due.push(*first);
            }
        }
        while fetch.asked.len() < FETCHES && (fetch.next as usize) < fetch.values.len() {
            fetch.asked.insert(fetch.next, now);
            due.push(fetch.next);
            fetch.next = fetch.next.saturating_add(fetch.step);
        }
        due.into_iter().map(|first| (first, fetch.step)).collect()
    }

    /// Frozen values of the last window came, of locations from `first` on: its number and values,
    /// once it is whole.
    pub(crate) fn fetched(
        &mut self,
        epoch: u32,
        first: u64,
        values: impl Iterator<Item = u64>,
    ) -> Option<(u32, Vec<u64>)> {
        let fetch = self.fetch.as_mut().filter(|_| epoch == self.epoch)?;
        let first = usize::try_from(first).ok()?;
        let places = fetch.values.iter_mut().zip(&mut fetch.has_come);
        for ((place, has_come), value) in places.skip(first).zip(values) {
            *place = value;
            fetch.missing -= usize::from(!*has_come);
            *has_come = true;
        }
        // What came of a range in part is asked for again.
        let mut range = fetch.has_come.iter().skip(first).take(fetch.step as usize);
        if range.all(|has_come| *has_come) {
            fetch.asked.remove(&(first as u32));
        }
        if fetch.missing > 0 {
            return None;
        }
        let fetch = self.fetch.take()?;
        Some((epoch, fetch.values))
    }

    pub(crate) fn window_kept(&mut self, incarnation: u32, epoch: u32) {
        let kept = self.kept.entry(incarnation).or_default();
        *kept = (*kept).max(epoch);
        if incarnation == self.incarnation && epoch >= self.epoch {
            self.fetch = None;
        }
    }

    /// Last window of a start of the switch that is kept; 0: none.
    pub(crate) fn kept(&self, incarnation: u32) -> u32 {
        self.kept.get(&incarnation).copied().unwrap_or(0)
    }
}

impl Fetch {
    fn new(locations: u32, step: u32) -> Fetch {
        Fetch {
            step,
            values: vec![0; locations as usize],
            has_come: vec![false; locations as usize],
            missing: locations as usize,
            next: 0,
            asked: BTreeMap::new(),
        }
    }
}
