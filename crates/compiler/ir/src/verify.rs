//! The verifier: checks the rules that every [`Program`] satisfies, so that engines and compilers
//! need not check them.
//!
//! 1. **Handles** lie within their tables.
//! 2. **Types**: `bit<W>` has W ≤ 2048, `int<W>` 1 ≤ W ≤ 2048, `varbit<W>` W ≤ 65535;
//!    members of headers are scalars, structs and arrays of them, and varbits;
//!    members of unions are headers; stacks hold at least one element, and neither
//!    stacks nor varbits.
//!    Types nest at most [`MAX_TYPE_DEPTH`] deep, which excludes a type that contains
//!    itself, and have at most [`MAX_LEAVES`] parts.
//! 3. **Expressions** have the type that their operands give them (the rules are
//!    those of [`ExprKind`](crate::ExprKind)); constants fit their type.
//! 4. **Places**: each step exists in the type before it; a slice is the last step;
//!    an index is a `bit<W>`.
//! 5. **Statements**: both sides of an assignment have one type; conditions are
//!    `bool`; labels of a `switch` are distinct and fit its value; validity is set on
//!    headers, stacks are shifted; `break` and `continue` stand in the body of a loop.
//! 6. **Calls** give one argument for each parameter, of its direction and type; a
//!    result is taken of functions that have one.
//! 7. **Tables**: keys are scalars; each action gets its directed parameters bound;
//!    calls of the default action and of entries give as many data as the action has,
//!    each within its width; entries have one key set for each key. Tables with keys of
//!    [`MatchKind::Selector`](crate::MatchKind::Selector) have an action selector.
//! 8. **Parsers**: transitions go to states that exist; a `select` has one key set for
//!    each key, and key sets fit their keys. The fields of a value set stand at keys of
//!    their widths one after the other; they are compared as exact, lpm, ternary or
//!    range, and there is at least one.
//! 9. **No recursion**: the graph of calls, with tables and the actions that they
//!    run, has no circle. Statements, expressions and calls together nest at most
//!    [`MAX_NESTING`] deep.
//! 10. **Operations** have the operands that [`Op`](crate::Op) names; those that read
//!     the packet stand in parsers, `emit` in controls; a header that is extracted has at
//!     most one varbit; indirect counters and meters
//!     have no table, direct ones have theirs.
//! 11. **Pipeline**: the six blocks have the parameters that
//!     [`Pipeline`](crate::Pipeline) names.
//! 12. **Field lists** name members of the user metadata; their numbers are distinct.

mod calls;
mod entities;
mod expr;
mod ops;
mod stmt;
#[cfg(test)]
mod tests;

use crate::{Program, Type};
use std::fmt;

/// Greatest nesting of statements, expressions and calls.
pub const MAX_NESTING: u32 = 512;

/// Greatest nesting of types.
pub const MAX_TYPE_DEPTH: u32 = 64;

/// Greatest number of parts of a type.
pub const MAX_LEAVES: u64 = 1 << 20;

/// Greatest width of a scalar in bits.
pub const MAX_WIDTH: u32 = 2048;

/// Greatest width of a `varbit` in bits.
pub const MAX_VARBIT_WIDTH: u32 = 65_535;

/// Errors after which the verifier stops.
const MAX_ERRORS: usize = 50;

/// A rule that a program breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// Number of the rule in the module's documentation.
    pub rule: u8,
    /// Entity and position in it.
    pub place: String,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (rule {})", self.place, self.message, self.rule)
    }
}

impl std::error::Error for VerifyError {}

/// Checks a program against all rules.
///
/// # Errors
///
/// The rules that it breaks, at least one and at most 50.
pub fn verify(program: &Program) -> Result<(), Vec<VerifyError>> {
    let mut verifier = Verifier {
        program,
        errors: Vec::new(),
        place: String::new(),
        in_parser: false,
        in_control: false,
        graph: calls::Graph::new(program),
        depth: 0,
        in_loop: false,
    };
    verifier.types();
    // The other rules follow handles, and look into types.
    if verifier.errors.is_empty() {
        verifier.objects();
        verifier.callables();
        verifier.tables();
        verifier.pipeline();
        verifier.field_lists();
        if verifier.errors.is_empty() {
            verifier.call_graph();
        }
    }
    verifier.errors.truncate(MAX_ERRORS);
    if verifier.errors.is_empty() {
        Ok(())
    } else {
        Err(verifier.errors)
    }
}

struct Verifier<'a> {
    program: &'a Program,
    errors: Vec<VerifyError>,
    /// Position of the verifier.
    place: String,
    in_parser: bool,
    in_control: bool,
    graph: calls::Graph,
    /// Nesting of statements and expressions within the callable.
    depth: u32,
    /// True if the statement is in the body of a loop of the callable.
    in_loop: bool,
}

impl Verifier<'_> {
    fn fail(&mut self, rule: u8, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(VerifyError {
                rule,
                place: self.place.clone(),
                message: message.into(),
            });
        }
    }

    /// Runs `inside` one level deeper; not at all beyond the limit.
    fn nested(&mut self, inside: impl FnOnce(&mut Self)) {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            self.fail(9, format!("nested deeper than {MAX_NESTING}"));
        } else {
            self.graph.note_depth(self.depth);
            inside(self);
        }
        self.depth -= 1;
    }

    fn expect_type(&mut self, rule: u8, what: &str, wanted: Type, found: Type) {
        if wanted != found {
            self.fail(rule, format!("{what} is {found:?}, not {wanted:?}"));
        }
    }
}

/// Width of the values that one word of a scalar may have; errors and enums are
/// 32-bit indices.
fn index_or_scalar_width(ty: Type) -> Option<u32> {
    match ty {
        Type::Error | Type::Enum(_) => Some(32),
        _ => ty.scalar_width(),
    }
}

fn is_number(ty: Type) -> bool {
    matches!(ty, Type::Bits(_) | Type::Int(_))
}
