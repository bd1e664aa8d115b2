//! Cuts, and the windows that they end (rules 15 to 18, 26).

use stateplane_wire::sync::{CutKind, MAX_FROZEN};
use std::collections::BTreeMap;

/// Ranges of frozen values that are asked for at once.
const FETCHES: usize = 64;

/// Frozen values that come in.
#[derive(Debug)]
struct Fetch {
    values: Vec<Option<u64>>,
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
    /// Somebody wants its window.
    has_window: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Cuts {
    epoch: u32,
    /// Number of the last cut that filled the locations.
    filled: u32,
    asked: Option<Asked>,
    sent: Option<u64>,
    /// Number of a cut that was asked for and is not known to be made. It stays when the switch
    /// refuses for the time being: the refusal may be older than the cut.
    wanted: Option<u32>,
    fetch: Option<Fetch>,
    /// Last window kept, by incarnation.
    kept: BTreeMap<u32, u32>,
    incarnation: u32,
    /// Frozen values that a message of the switch has at most.
    most: u32,
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

    /// Number of the last cut that filled the locations; 0: none is known.
    pub(crate) fn filled(&self) -> u32 {
        self.filled
    }

    /// The view ends: of a cut that was asked for it is unknown whether it was made.
    pub(crate) fn forget(&mut self) {
        self.fetch = None;
        if self.sent.take().is_some() {
            self.asked = None;
        }
        self.wanted = None;
    }

    /// A view begins with `epoch` cuts, of a switch whose messages have `most` frozen values at
    /// most. The last window is fetched unless it is kept.
    pub(crate) fn begin(&mut self, (incarnation, epoch): (u32, u32), most: u16, locations: u32) {
        self.most = u32::from(most).clamp(1, MAX_FROZEN as u32);
        self.incarnation = incarnation;
        self.epoch = epoch;
        self.filled = 0;
        self.fetch = None;
        if epoch > self.kept(incarnation) {
            self.fetch = Some(Fetch::new(locations, self.most));
        }
    }

    /// Asks for a cut, whose window is fetched if somebody wants it.
    pub(crate) fn ask(&mut self, kind: CutKind, fill: u64, has_window: bool) -> bool {
        let free = self.asked.is_none() && kind != CutKind::None;
        if free {
            self.asked = Some(Asked {
                kind,
                fill,
                has_window,
            });
        }
        free
    }

    /// The cut that is to be asked for, if it was not asked for `retry` µs.
    pub(crate) fn due(&mut self, now: u64, retry: u64) -> Option<(CutKind, u64, u32)> {
        let Asked { kind, fill, .. } = self.asked?;
        let ready = self.kept(self.incarnation) == self.epoch && self.fetch.is_none();
        if self.sent.is_some_and(|at| now < at + retry) || (self.wanted.is_none() && !ready) {
            return None;
        }
        self.sent = Some(now);
        let epoch = *self.wanted.get_or_insert(self.epoch + 1);
        Some((kind, fill, epoch))
    }

    /// The switch has made cut `epoch`, for this engine if it `is_own`: its number, the first time.
    pub(crate) fn made(&mut self, epoch: u32, is_own: bool) -> Option<u32> {
        if self.wanted != Some(epoch) {
            return None;
        }
        self.wanted = None;
        self.sent = None;
        let asked = self.asked.take();
        if is_own && asked.is_some_and(|asked| !asked.has_window) {
            self.window_kept(self.incarnation, epoch);
        }
        Some(epoch)
    }

    /// The view crosses to `epoch`; its window is fetched.
    pub(crate) fn crossed(&mut self, epoch: u32, kind: CutKind, locations: u32) {
        self.epoch = epoch;
        if kind == CutKind::Filled {
            self.filled = epoch;
        }
        // It is over already if nobody wants it.
        let is_due = epoch > self.kept(self.incarnation);
        self.fetch = is_due.then(|| Fetch::new(locations, self.most));
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
        for (place, value) in fetch.values.iter_mut().skip(first).zip(values) {
            if place.replace(value).is_none() {
                fetch.missing -= 1;
            }
        }
        // What came of a range in part is asked for again.
        let mut range = fetch.values.iter().skip(first).take(fetch.step as usize);
        if range.all(Option::is_some) {
            fetch.asked.remove(&(first as u32));
        }
        if fetch.missing > 0 {
            return None;
        }
        let fetch = self.fetch.take()?;
        let values = fetch.values.into_iter().flatten().collect();
        Some((epoch, values))
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
            values: vec![None; locations as usize],
            missing: locations as usize,
            next: 0,
            asked: BTreeMap::new(),
        }
    }
}
