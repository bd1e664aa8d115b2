//! Check that a program in bounded-inconsistency mode can keep its ε (`p4/lib/snapshot.p4`) with
//! the packet generator that walks over its arrays.

use super::{GeneratorFile, SwitchFileCause};
use stateplane_switch::Port;
use stateplane_target::TargetState;

/// `SNAPSHOT_PORT` of the library.
const WALK_PORT: Port = 508;

/// First argument of a table's default action.
fn first_parameter(state: &TargetState, table: &str) -> Option<u64> {
    let (_, data) = state.table(table).ok()?.default_action();
    u64::try_from(data.first()?).ok()
}

/// Refuses an ε shorter than a snapshot takes, or one without snapshots. Programs without
/// snapshots or without an ε are none of its business.
pub(super) fn check<'a>(
    state: &TargetState,
    mut generators: impl Iterator<Item = &'a GeneratorFile>,
) -> Result<(), SwitchFileCause> {
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
        return Err(SwitchFileCause::NoSnapshots { bound_us });
    };
    // Each element is written, and then looked after.
    let frames = elements.saturating_mul(2);
    let batches = frames.div_ceil(u64::from(walk.batch.max(1)));
    let walk_us = batches.saturating_mul(walk.period_ms.saturating_mul(1000));
    let least_us = period_us.max(walk_us).saturating_add(walk_us);
    if bound_us < least_us {
        return Err(SwitchFileCause::ShortBound {
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
    use crate::switch::SwitchFileError;
    use stateplane_ir::Type;
    use stateplane_ir::builder::Builder;
    use std::path::Path;

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
        let walk = batch.map(|batch| GeneratorFile {
            port: WALK_PORT,
            period_ms: 1,
            batch,
            index_at: None,
            frame: String::new(),
        });
        let cause = check(&state(bound_ms, period_ms), walk.iter()).err()?;
        let error = SwitchFileError::new(Path::new("switch.toml"), None, cause);
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
