//! Totals of counters against what they have counted (rule 25).

use stateplane_sync::{Continued, KeptTotals, Told};

/// A moment at which an engine's view was exact.
#[derive(Clone)]
struct Exact {
    totals: Vec<u64>,
    discontinuities: Vec<u32>,
    counted: Vec<u64>,
}

/// Totals of a group as an engine told them, over its lives.
#[derive(Clone, Default)]
pub(crate) struct Totals {
    last: Vec<u64>,
    exact: Option<Exact>,
    /// Totals that the store of the engines has, and the exact ones before them.
    kept: Option<(KeptTotals, Option<Exact>)>,
}

/// Result of a look at totals.
#[derive(Default)]
pub(crate) struct Judged {
    pub(crate) exact: u64,
    pub(crate) discontinuities: u64,
    pub(crate) wrong: Option<String>,
}

impl Totals {
    /// The store keeps totals.
    pub(crate) fn keep(&mut self, kept: KeptTotals) {
        self.kept = Some((kept, self.exact.clone()));
    }

    /// Totals that the store has.
    pub(crate) fn kept(&self) -> Option<KeptTotals> {
        self.kept.as_ref().map(|(kept, _)| kept.clone())
    }

    /// Those of an engine that begins with what the store has: the one before it may have told more.
    pub(crate) fn restarted(&self) -> Totals {
        Totals {
            last: self.kept().map(|kept| kept.totals).unwrap_or_default(),
            exact: self.kept.as_ref().and_then(|(_, exact)| exact.clone()),
            kept: self.kept.clone(),
        }
    }

    /// Judges what an engine tells while `counted` is what the locations have counted at the mark.
    pub(crate) fn judge(&mut self, told: &Told, continued: &Continued, counted: &[u64]) -> Judged {
        let (totals, breaks) = (continued.totals(), continued.discontinuities());
        let mut judged = Judged::default();
        let back = self
            .last
            .iter()
            .zip(totals)
            .position(|(before, total)| total < before);
        if let Some(at) = back {
            let (before, total) = (self.last[at], totals[at]);
            judged.wrong = Some(format!("location {at} went back from {before} to {total}"));
        }
        self.last = totals.to_vec();
        let is_exact = (told.bound, told.all_but) == (Some(0), 0) && continued.is_settled();
        if let Some(base) = &self.exact {
            for (at, total) in totals.iter().enumerate() {
                let told = total.wrapping_sub(base.totals[at]);
                let truth = counted[at] - base.counted[at];
                let is_whole = breaks[at] == base.discontinuities[at];
                if told > truth || (is_exact && is_whole && told != truth) {
                    let what =
                        format!("location {at} counted {truth}, its total went on by {told}");
                    judged.wrong.get_or_insert(what);
                }
                judged.exact += u64::from(is_exact && is_whole && truth > 0);
                judged.discontinuities += u64::from(is_exact && !is_whole);
            }
        }
        if is_exact {
            self.exact = Some(Exact {
                totals: totals.to_vec(),
                discontinuities: breaks.to_vec(),
                counted: counted.to_vec(),
            });
        }
        judged
    }
}
