//! Locks of atomic blocks, as machine code takes them.

use super::Plan;
use stateplane_cells::LockPlan;
use stateplane_ir::passes::each_op;
use stateplane_ir::{MeterId, Op, Program, RegisterId};
use stateplane_runtime::register::LockPlacement;

/// Locks of atomic blocks.
#[derive(Debug)]
pub(crate) struct Locks {
    pub(crate) plan: LockPlan,
    /// By domain.
    pub(crate) placements: Vec<LockPlacement>,
    /// By domain the locks that a block may hold at once.
    at_once: Vec<usize>,
}

impl Locks {
    pub(super) fn new(program: &Program, plan: LockPlan, placements: Vec<LockPlacement>) -> Locks {
        let mut at_once = vec![1; placements.len()];
        each_op(program, &mut |op| {
            if let Op::Uses { units, numbers } = op
                && let Some(domain) = plan.of_units(units)
                && placements[domain].stride > 0
            {
                at_once[domain] = numbers.len().max(at_once[domain]);
            }
        });
        Locks {
            plan,
            placements,
            at_once,
        }
    }
}

impl Plan {
    /// The lock domain of a register, if it has one.
    pub(crate) fn lock_of_register(&self, register: RegisterId) -> Option<usize> {
        self.locks.as_ref()?.plan.of_register(register)
    }

    /// The lock domain of a meter, if it has one.
    pub(crate) fn lock_of_meter(&self, meter: MeterId) -> Option<usize> {
        self.locks.as_ref()?.plan.of_meter(meter)
    }

    /// The lock domain of units, if they have one.
    pub(crate) fn lock_of_units(&self, units: &str) -> Option<usize> {
        self.locks.as_ref()?.plan.of_units(units)
    }

    /// The locks of all domains that a block may hold at once.
    pub(crate) fn locks_held(&self) -> usize {
        let locks = self.locks.as_ref();
        locks.map_or(0, |it| it.at_once.iter().sum())
    }

    /// The locks of a domain that a block may hold at once.
    pub(crate) fn locks_at_once(&self, domain: usize) -> usize {
        let locks = self.locks.as_ref();
        locks
            .and_then(|it| it.at_once.get(domain).copied())
            .unwrap_or(1)
    }
}
