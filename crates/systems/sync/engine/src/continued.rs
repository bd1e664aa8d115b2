//! Continued counters: what locations of a counter group have counted, over widths and resets (rule
//! 25).

use stateplane_wire::sync::UNBOUNDED;

/// Totals of an engine that outlive it, and the view to which they belong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptTotals {
    /// The switch's own name for its start.
    pub incarnation: u32,
    /// Number of cuts.
    pub epoch: u32,
    /// Sum of the distances of all values of which the view had the last, modulo 2⁶⁴.
    pub sum: u64,
    /// The view's values by location.
    pub values: Vec<u64>,
    /// Totals by location.
    pub totals: Vec<u64>,
    /// Discontinuities by location.
    pub discontinuities: Vec<u32>,
    /// Engines before this one that went on from what was kept, modulo 2¹⁶.
    pub life: u16,
}

/// Relation of a location's next value to its total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It is the first one, with which the total begins.
    Begins,
    /// It follows from the last one: the total goes on by their difference.
    Follows,
    /// It does not: a discontinuity.
    Breaks,
}

/// Values that the view lacks, of those that the switch sent before another: a width that passed among
/// them is not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// Sum of their distances, of all locations together; 0: none is lacking.
    pub(crate) sum: u64,
    /// Greatest distance of the value itself from what was sent before.
    pub(crate) most: u64,
}

impl Unseen {
    /// True if `step`, by which the view went on, is what was counted. A width more may have passed if
    /// values are lacking: each is within a width of the one sent before it, and a discontinuity counts a
    /// width more, so that a value alone hides none. And no step is longer than the distances: it is of
    /// a counter that is not as wide as the engine was told.
    fn vouches_for(self, step: u64, mask: u64) -> bool {
        let most = match self.most {
            UNBOUNDED.. => mask,
            most => most,
        };
        let (step, reach) = (u128::from(step), u128::from(self.sum) + u128::from(most));
        match self.sum {
            0 => step <= reach,
            UNBOUNDED.. => false,
            _ => step <= reach && reach <= step + u128::from(mask),
        }
    }
}

/// A cut that filled the group, of which the view lacks what locations counted before it.
#[derive(Debug)]
struct Crossing {
    epoch: u32,
    /// The view's values at the cut.
    values: Vec<u64>,
    /// Locations that told a discontinuity since.
    broken: Vec<bool>,
    unseen: Unseen,
    /// Behind the last position that may tell a discontinuity from before the cut.
    until: u64,
    window: Option<Vec<u64>>,
}

/// The last view that ended, and had all values of which `sum` has the distances.
#[derive(Clone, Copy, Debug)]
struct Ended {
    incarnation: u32,
    epoch: u32,
    sum: u64,
}

/// How a view begins.
pub(crate) struct Begin {
    pub(crate) incarnation: u32,
    pub(crate) epoch: u32,
    /// The last cut left values in their places.
    pub(crate) is_carried: bool,
    /// The value that the last cut gave to all locations, if its window will come.
    pub(crate) fill: Option<u64>,
    /// Sum of the distances of all values sent before it.
    pub(crate) sum: u64,
    /// Behind the last position that the ring has.
    pub(crate) end: u64,
}

/// Totals of a counter group by location: what was counted since the engine began to follow it, on top
/// of what it found there first.
///
/// A total never goes back, and is never above what was counted. Between two readings that tell the same
/// discontinuity of a location its total went on by what was counted between them.
#[derive(Debug)]
pub struct Continued {
    /// Ones as wide as a value.
    mask: u64,
    totals: Vec<u64>,
    discontinuities: Vec<u32>,
    values: Vec<u64>,
    next: Vec<Next>,
    /// Sum of distances that passed between the last view and this one.
    passed: u64,
    ended: Option<Ended>,
    crossing: Option<Crossing>,
    /// Engines before this one that went on from what was kept, modulo 2¹⁶.
    life: u16,
}

impl Continued {
    /// Totals of `locations` counters of `bits` bits, 1 to 64, which go on from what was `kept`, if that
    /// is of as many locations.
    pub(crate) fn new(bits: u32, locations: u32, kept: Option<KeptTotals>) -> Continued {
        let count = locations as usize;
        let mut continued = Continued {
            mask: u64::MAX >> (64 - bits.clamp(1, 64)),
            totals: vec![0; count],
            discontinuities: vec![0; count],
            values: vec![0; count],
            next: vec![Next::Begins; count],
            passed: 0,
            ended: None,
            crossing: None,
            life: 0,
        };
        let is_ours = |kept: &KeptTotals| {
            let lengths = [&kept.values, &kept.totals].map(Vec::len);
            lengths == [count; 2] && kept.discontinuities.len() == count
        };
        if let Some(kept) = kept.filter(is_ours) {
            continued.ended = Some(Ended {
                incarnation: kept.incarnation,
                epoch: kept.epoch,
                sum: kept.sum,
            });
            continued.totals = kept.totals;
            continued.discontinuities = kept.discontinuities;
            // The engine before may have told discontinuities that were not kept.
            continued.life = kept.life.wrapping_add(1);
            continued.values = kept.values;
            continued.next.fill(Next::Follows);
        }
        continued
    }

    /// Totals by location, at most 2⁶⁴ − 1.
    pub fn totals(&self) -> &[u64] {
        &self.totals
    }

    /// Numbers by location that change when the total is broken off: what was counted meanwhile is not in
    /// it. 0: it never was; the upper 16 bits are the life of the engine that told it, the lower ones
    /// count those that it told.
    pub fn discontinuities(&self) -> &[u32] {
        &self.discontinuities
    }

    /// True if the view lacks nothing of what was counted before the last cut.
    pub fn is_settled(&self) -> bool {
        self.crossing.is_none()
    }

    /// Totals as they are kept, of a view that is complete; `sum` as in [`KeptTotals`]. `None` while what
    /// was counted before a cut is lacking.
    pub(crate) fn keep(&self, incarnation: u32, epoch: u32, sum: u64) -> Option<KeptTotals> {
        self.is_settled().then(|| KeptTotals {
            incarnation,
            epoch,
            sum,
            values: self.values.clone(),
            totals: self.totals.clone(),
            discontinuities: self.discontinuities.clone(),
            life: self.life,
        })
    }

    /// A view has ended that had all values of this sum of distances, or was not complete.
    pub(crate) fn ended(&mut self, incarnation: u32, epoch: u32, sum: u64, is_complete: bool) {
        let is_of_last = |last: Ended| (last.incarnation, last.epoch) == (incarnation, epoch);
        if !is_complete && self.ended.is_some_and(is_of_last) {
            // Locations without a value in this view have one of the view before it.
            return;
        }
        if !is_complete {
            self.nothing_follows();
        }
        self.ended = Some(Ended {
            incarnation,
            epoch,
            sum,
        });
    }

    fn nothing_follows(&mut self) {
        for next in &mut self.next {
            if *next == Next::Follows {
                *next = Next::Breaks;
            }
        }
    }

    /// A view begins. Its values follow from those of the last one if they are of the same start of the
    /// switch, and no cut lies between but one that the view can follow.
    pub(crate) fn begins(&mut self, begin: &Begin) {
        let was_settled = self.crossing.take().is_none();
        let last = self
            .ended
            .filter(|last| last.incarnation == begin.incarnation);
        self.passed = last.map_or(0, |last| begin.sum.wrapping_sub(last.sum));
        let cuts = last.map(|last| begin.epoch.wrapping_sub(last.epoch));
        match (cuts, begin.fill) {
            (Some(0), _) if was_settled => {}
            (Some(1), _) if was_settled && begin.is_carried => {}
            (Some(1), Some(fill)) if was_settled => {
                let unseen = Unseen {
                    sum: self.passed,
                    most: self.mask,
                };
                self.filled((begin.epoch, fill), unseen, begin.end, true);
            }
            _ => self.nothing_follows(),
        }
    }

    /// A value came, the first of the view or not, behind which the view lacks what is `unseen`.
    pub(crate) fn took(
        &mut self,
        (at, value): (usize, u64),
        is_first: bool,
        tells_discontinuity: bool,
        mut unseen: Unseen,
    ) {
        if is_first {
            unseen.sum = unseen.sum.saturating_add(self.passed);
        }
        let step = value.wrapping_sub(self.values[at]) & self.mask;
        match self.next[at] {
            Next::Begins if !tells_discontinuity => self.totals[at] = value,
            Next::Follows
                if !tells_discontinuity
                    && value <= self.mask
                    && unseen.vouches_for(step, self.mask) =>
            {
                self.counts(at, step);
            }
            _ => self.breaks(at),
        }
        self.next[at] = Next::Follows;
        self.values[at] = value;
    }

    /// A value of an epoch before the present one came, which told a discontinuity.
    pub(crate) fn breaks(&mut self, at: usize) {
        let told = self.discontinuities[at];
        let is_of_this_life = told >> 16 == u32::from(self.life);
        let before = if is_of_this_life { told as u16 } else { 0 };
        let count = before.wrapping_add(1).max(1);
        self.discontinuities[at] = u32::from(self.life) << 16 | u32::from(count);
        if let Some(crossing) = &mut self.crossing {
            crossing.broken[at] = true;
        }
    }

    fn counts(&mut self, at: usize, step: u64) {
        match self.totals[at].checked_add(step) {
            Some(total) => self.totals[at] = total,
            None => self.breaks(at),
        }
    }

    /// A view that goes on crosses a cut that filled all locations. If it is not complete some location has
    /// its value from the last view: what passed between them is unseen, too.
    pub(crate) fn crosses_filled(
        &mut self,
        cut: (u32, u64),
        mut unseen: Unseen,
        until: u64,
        (is_complete, has_window): (bool, bool),
    ) {
        let passed = std::mem::take(&mut self.passed);
        if !is_complete {
            unseen.sum = unseen.sum.saturating_add(passed);
        }
        self.filled(cut, unseen, until, has_window);
    }

    /// The view crosses a cut that filled all locations. `until` is behind the last position that the
    /// ring had then; what locations counted meanwhile is in the window, if that will come.
    fn filled(&mut self, (epoch, fill): (u32, u64), unseen: Unseen, until: u64, has_window: bool) {
        self.gives_up();
        let count = self.values.len();
        let values = std::mem::replace(&mut self.values, vec![fill; count]);
        let is_broken = |next: &Next| *next != Next::Follows || !has_window;
        let broken: Vec<bool> = self.next.iter().map(is_broken).collect();
        for at in (0..count).filter(|at| broken[*at]) {
            self.breaks(at);
            self.next[at] = Next::Follows;
        }
        self.crossing = has_window.then_some(Crossing {
            epoch,
            values,
            broken,
            unseen,
            until,
            window: None,
        });
    }

    /// The view crosses several cuts at once: nobody knows what those before the last gave to locations.
    pub(crate) fn skips(&mut self) {
        self.gives_up();
        self.nothing_follows();
    }

    /// The view crosses a cut that gave this location a value.
    pub(crate) fn given(&mut self, at: usize, value: u64) {
        self.breaks(at);
        self.next[at] = Next::Follows;
        self.values[at] = value;
    }

    /// The window of a cut came.
    pub(crate) fn window(&mut self, epoch: u32, values: &[u64]) {
        if let Some(crossing) = self.crossing.as_mut().filter(|it| it.epoch == epoch) {
            crossing.window = Some(values.to_vec());
        }
    }

    /// The window of a cut will not come, unless it did.
    pub(crate) fn no_window(&mut self, epoch: u32) {
        let waits = self.crossing.as_ref();
        if waits.is_some_and(|it| it.epoch == epoch && it.window.is_none()) {
            self.gives_up();
        }
    }

    /// Nobody will know what locations counted before the last cut.
    fn gives_up(&mut self) {
        if let Some(crossing) = self.crossing.take() {
            for at in (0..self.values.len()).filter(|at| !crossing.broken[*at]) {
                self.breaks(at);
            }
        }
    }

    /// The view has all that the switch sent before `position`. Once that is all that was in the ring at
    /// the last cut, what locations counted before it is in their totals.
    pub(crate) fn has_all_before(&mut self, position: u64) {
        let is_due = |it: &mut Crossing| position >= it.until && it.window.is_some();
        let Some(crossing) = self.crossing.take_if(is_due) else {
            return;
        };
        let window = crossing.window.unwrap_or_default();
        for (at, held) in window.into_iter().enumerate() {
            if crossing.broken.get(at).is_none_or(|broken| *broken) {
                continue;
            }
            let step = held.wrapping_sub(crossing.values[at]) & self.mask;
            if crossing.unseen.vouches_for(step, self.mask) {
                self.counts(at, step);
            } else {
                self.breaks(at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
