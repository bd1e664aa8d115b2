//! Calm, five times the budget, and calm again.

use super::Making;
use super::bed::{Bed, Control, Divergence, STEP_US, Setting, packet_bytes};
use super::programs::Shape;
use crate::error::EvalError;

/// Traffic in calm times and in the overload, in budgets: what the link carries if it carries each
/// update by itself.
const CALM: f64 = 0.2;
pub(super) const OVERLOAD: f64 = 5.0;

/// Longest time in ms after the overload until the bound is as before.
pub(super) const BACK_MS: u64 = 100;

/// A course of traffic, in ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    /// Updates each µs that the link carries.
    pub(super) budget: f64,
    /// Before the overload.
    pub(super) before: u64,
    /// The overload.
    pub(super) overload: u64,
    /// After it.
    pub(super) after: u64,
    /// Without packets.
    pub(super) quiet: u64,
}

impl Course {
    /// The course of a figure.
    pub(super) fn of(making: &Making<'_>) -> Self {
        if making.quick {
            Self {
                budget: 1.5,
                before: 20,
                overload: 15,
                after: 120,
                quiet: 40,
            }
        } else {
            Self {
                budget: 7.0,
                before: 100,
                overload: 100,
                after: 200,
                quiet: 200,
            }
        }
    }
}

/// A moment of a course.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment {
    /// ms since the course began.
    pub(super) ms: u64,
    /// True divergence.
    pub(super) divergence: Divergence,
    /// The greatest divergence that the system tells: E of sync, t of the paper.
    pub(super) told: Option<u64>,
}

/// Result of a course.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) moments: Vec<Moment>,
    /// Updates that were sent and lost in the course.
    pub(super) sent: u64,
    pub(super) lost: u64,
    /// Moments at which a location was farther off than was told.
    pub(super) untrue: usize,
    /// Greatest told before the overload; ms after its end until it is so again.
    pub(super) before: Option<u64>,
    pub(super) back_ms: Option<u64>,
    /// Greatest divergence in the overload, and its mean share at the end of the overload.
    pub(super) most: u64,
    pub(super) relative: f64,
    /// Locations that differ when all has been quiet.
    pub(super) wrong: u64,
}

impl Outcome {
    /// Share of the updates that were sent and lost, in %.
    pub(super) fn lost_percent(&self) -> f64 {
        100.0 * self.lost as f64 / self.sent.max(1) as f64
    }
}

/// A bed whose link carries all updates of `budget` packets each µs.
pub(super) fn setting(shape: Shape, sources: u32, budget: f64, control: Control) -> Setting {
    Setting {
        shape,
        sources,
        rate: budget * packet_bytes(shape),
        control,
        seed: 1,
    }
}

/// Runs a course. `take` gets each moment's bed.
pub(super) fn run(setting: Setting, course: Course, overload: f64) -> Result<Outcome, EvalError> {
    let compiled = setting.shape.compile()?;
    let mut bed = Bed::new(setting, &compiled)?;
    bed.pass(course.before / 2, CALM * course.budget)?;
    bed.counts = Default::default();
    let mut outcome = Outcome::default();
    let end = course.before + course.overload;
    for ms in 0..end + course.after {
        let is_over = (course.before..end).contains(&ms);
        let load = if is_over { overload } else { CALM };
        let moment = look(&mut bed, ms, load * course.budget)?;
        outcome.untrue += usize::from(
            moment
                .told
                .is_some_and(|told| moment.divergence.most > told),
        );
        if ms < course.before {
            outcome.before = outcome.before.max(moment.told);
        } else if is_over {
            outcome.most = outcome.most.max(moment.divergence.most);
            outcome.relative = moment.divergence.relative;
        } else if outcome.back_ms.is_none()
            && moment.told.is_some()
            && moment.told <= outcome.before
        {
            outcome.back_ms = Some(ms + 1 - end);
        }
        outcome.moments.push(moment);
    }
    bed.pass(course.quiet, 0.0)?;
    outcome.wrong = bed.divergence().wrong;
    (outcome.sent, outcome.lost) = (bed.counts.sent, bed.counts.lost);
    Ok(outcome)
}

/// Lets a ms pass, and looks at a moment in its second half at which something is told.
fn look(bed: &mut Bed, ms: u64, packets: f64) -> Result<Moment, EvalError> {
    let steps = 1000 / STEP_US;
    let mut moment = None;
    for step in 0..steps {
        bed.step(packets)?;
        if moment.is_none()
            && step >= steps / 2
            && let Some(told) = bed.told()
        {
            moment = Some(Moment {
                ms,
                divergence: bed.divergence(),
                told: Some(told.bound.unwrap_or(u64::MAX)),
            });
        }
    }
    Ok(moment.unwrap_or_else(|| Moment {
        ms,
        divergence: bed.divergence(),
        told: bed.pushes_told(),
    }))
}
