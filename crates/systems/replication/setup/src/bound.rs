//! Check that a program in bounded-inconsistency mode can keep its ε (`p4/lib/snapshot.p4`) with
//! the packet generator that walks over its arrays.

use stateplane_runtime::TargetState;
use stateplane_switch::{Generator, Port};

/// `SNAPSHOT_PORT` of the library.
const WALK_PORT: Port = 508;

/// Reason why snapshots do not keep a program's ε.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BoundError {
    /// An ε that no snapshot keeps.
    #[error(
        "ε is {bound_us} µs (`snapshot_bound`), but no snapshots are made: set `snapshot_period` and add a generator at port 508"
    )]
    NoSnapshots {
        /// ε in µs.
        bound_us: u64,
    },
    /// An ε that snapshots cannot keep.
    #[error(
        "ε of {bound_us} µs (`snapshot_bound`) is shorter than a snapshot takes: with one each {period_us} µs (`snapshot_period`) and {walk_us} µs for the {frames} frames of its walk it has to be {least_us} µs at least; make ε longer, or the batch of the generator at port 508 greater"
    )]
    ShortBound {
        /// ε in µs.
        bound_us: u64,
        /// From one snapshot to the next, in µs.
        period_us: u64,
        /// Frames of the generator that a snapshot takes.
        frames: u64,
        /// Time that these take, in µs.
        walk_us: u64,
        /// The least ε in µs.
        least_us: u64,
    },
}

impl BoundError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            BoundError::NoSnapshots { .. } => "H229",
            BoundError::ShortBound { .. } => "H230",
        }
    }
}

/// First argument of a table's default action.
fn first_parameter(state: &TargetState, table: &str) -> Option<u64> {
    let (_, data) = state.table(table).ok()?.default_action();
    u64::try_from(data.first()?).ok()
}

/// Refuses an ε shorter than a snapshot takes, or one without snapshots. Programs without
/// snapshots or without an ε pass.
///
/// # Errors
///
/// [`BoundError`], with the figures.
pub fn check_bound<'a>(
    state: &TargetState,
    mut generators: impl Iterator<Item = &'a Generator>,
) -> Result<(), BoundError> {
    let bound_us = first_parameter(state, "snapshot_bound").unwrap_or(0);
    let Some(period_us) = first_parameter(state, "snapshot_period").filter(|_| bound_us > 0) else {
        return Ok(());
    };
    // One bit for each element of an array; all arrays of a program are walked at once.
    let arrays = state.registers().iter();
    let elements = arrays
        .filter(|register| register.name().ends_with(".updated"))
        .map(|register| register.size())
        .max()
        .unwrap_or(0);
    let Some(walk) = generators.find(|g| g.port == WALK_PORT && period_us > 0) else {
        return Err(BoundError::NoSnapshots { bound_us });
    };
    // Each element is written, and then looked after.
    let frames = elements.saturating_mul(2);
    let batches = frames.div_ceil(u64::from(walk.batch.max(1)));
    let walk_us = batches.saturating_mul(walk.period_us);
    let least_us = period_us.max(walk_us).saturating_add(walk_us);
    if bound_us < least_us {
        return Err(BoundError::ShortBound {
            bound_us,
            period_us,
            frames,
            walk_us,
            least_us,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_ir::Type;
    use stateplane_ir::builder::Builder;

    /// Sixteen tenants of 64 elements, ε and T_snap in ms.
    fn state(bound_ms: u64, period_ms: u64) -> TargetState {
        let mut b = Builder::new();
        let nothing = b.structure("nothing", &[]);
        b.pipeline(nothing, nothing);
        let time = b.var("microseconds", Type::Bits(48));
        let within = b.action("age.keep_within", &[time], vec![]);
        let each = b.action("walk.snapshot_each", &[time], vec![]);
        let neither = b.action("neither", &[], vec![]);
        b.table("age.snapshot_bound", vec![], &[within, neither]);
        b.table("walk.snapshot_period", vec![], &[each, neither]);
        b.register("row.updated", Type::Bits(1), 1024);
        let mut state = TargetState::new(&b.finish().unwrap(), 1).unwrap();
        for (table, action, ms) in [
            ("snapshot_bound", "keep_within", bound_ms),
            ("snapshot_period", "snapshot_each", period_ms),
        ] {
            let table = state.table_mut(table).unwrap();
            table.set_default(action, &[(ms * 1000).into()]).unwrap();
        }
        state
    }

    fn code(bound_ms: u64, period_ms: u64, batch: Option<u32>) -> Option<(&'static str, String)> {
        let walk = batch.map(|batch| Generator {
            port: WALK_PORT,
            period_us: 1_000,
            batch,
            index_at: None,
            spread: false,
            frame: Vec::new(),
        });
        let error = check_bound(&state(bound_ms, period_ms), walk.iter()).err()?;
        Some((error.code(), error.to_string()))
    }

    #[test]
    fn a_bound_that_snapshots_keep_is_taken() {
        // The walk takes 16 ms.
        assert_eq!(code(36, 20, Some(128)), None);
        assert_eq!(code(0, 20, None), None);
        assert_eq!(code(0, 0, None), None);
    }

    #[test]
    fn a_bound_shorter_than_a_snapshot_takes_is_refused_with_the_figures() {
        let (code_of, text) = code(35, 20, Some(128)).unwrap();
        assert_eq!(code_of, "H230");
        for figure in ["35000", "20000", "16000", "2048", "36000"] {
            assert!(text.contains(figure), "{text}");
        }
        // Snapshots that are begun less often than ε allows, and a walk longer than a period.
        assert!(code(36, 40, Some(128)).is_some());
        assert!(code(36, 10, Some(64)).is_some());
        assert!(code(64, 10, Some(64)).is_none());
    }

    #[test]
    fn a_bound_without_snapshots_is_refused() {
        assert_eq!(code(36, 20, None).unwrap().0, "H229");
        assert_eq!(code(36, 0, Some(128)).unwrap().0, "H229");
    }
}
