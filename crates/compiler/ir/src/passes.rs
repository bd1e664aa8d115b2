//! Passes: what makes a program simpler for a code generator and changes nothing that can be
//! observed: packets, control-plane objects, counters, events, draws of random numbers.
//!
//! Each pass takes and gives a program that the [verifier](crate::verify()) accepts.
//! Tables, registers, counters, meters, action profiles and value sets stay, used or not,
//! since the control plane knows them. So do parser states and the rounds of loops, which
//! are limited in number.

mod branches;
mod copies;
mod dead_assignments;
mod effects;
mod flatten;
mod fold;
mod guard;
mod liveness;
mod parses;
mod resets;
#[cfg(test)]
mod tests;
mod unused;
mod walk;

pub use guard::{Whole, guard};
pub use parses::parses_only;
pub use walk::{Part, children, children_mut, each_op, parts, places};

use crate::Program;

/// A pass.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// Description of the pass, in one line.
    pub about: &'static str,
    /// Does it.
    pub run: fn(&mut Program),
}

/// All passes in the order in which a round runs them.
pub const PASSES: [Pass; 7] = [
    Pass {
        name: "flatten",
        about: "blocks become part of the statements around them",
        run: flatten::run,
    },
    Pass {
        name: "copies",
        about: "a read of a variable becomes a read of what was copied to it, or a constant",
        run: copies::run,
    },
    Pass {
        name: "fold",
        about: "operations on constants, and those that change nothing, are computed",
        run: fold::run,
    },
    Pass {
        name: "branches",
        about: "branches that are never taken and statements that are never reached go",
        run: branches::run,
    },
    Pass {
        name: "dead_assignments",
        about: "what computes a value that nothing reads goes",
        run: dead_assignments::run,
    },
    Pass {
        name: "resets",
        about: "variables that are always set before they are read are not reset",
        run: resets::run,
    },
    Pass {
        name: "unused",
        about: "callables that are never called and variables that are nowhere named go",
        run: unused::run,
    },
];

/// Rounds after which [`optimise`] stops in any case.
const MAX_ROUNDS: usize = 6;

/// Runs all passes, over again while they change something.
pub fn optimise(program: &mut Program) {
    for _ in 0..MAX_ROUNDS {
        let before = program.clone();
        for pass in &PASSES {
            (pass.run)(program);
        }
        if *program == before {
            break;
        }
    }
}
