//! Compiles the programs that come with Stateplane.

use crate::options::{ProgramKind, Rule};
use stateplane_compile::shipped;
use stateplane_ir::Program;

/// Buckets of a flow table in which flows of a run rarely are in each other's way.
const WIDE: u32 = 1024;

/// The program `kind` with flow tables of `buckets` buckets and without a rule;
/// `None` for what is no program.
///
/// # Errors
///
/// The compiler's diagnostics as text.
pub(crate) fn program(
    kind: ProgramKind,
    buckets: u32,
    without: Option<Rule>,
) -> Result<Option<Program>, String> {
    let application = match kind {
        ProgramKind::Model | ProgramKind::Own(_) => return Ok(None),
        ProgramKind::App(application) => application,
    };
    let mut macros = Vec::new();
    let mut define = |name: &str, value: String| macros.push((name.to_owned(), value));
    define("REPLICATION_BUCKETS", buckets.to_string());
    if buckets < WIDE {
        // Few slots change hands sooner, as runs are short.
        define("REPLICATION_IDLE_MICROSECONDS", "200000".into());
    }
    for (name, body) in &application.room().macros {
        define(name, body.clone());
    }
    for (name, body) in application.hosts().defines() {
        define(name, body);
    }
    if let Some(fault) = without.and_then(Rule::macro_name) {
        define(fault, "1".into());
    }
    let source = shipped(&application.room().path()).defines(macros);
    let program = source.program().map_err(|refused| refused.to_string())?;
    Ok(Some(program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_apps::APPS;

    #[test]
    fn the_programs_compile_with_and_without_each_rule() {
        for application in APPS {
            let kind = ProgramKind::App(application);
            // All of the library is in those that no machine judges.
            let rules: &[Rule] = match kind.machine() {
                None => &Rule::ALL,
                Some(_) => &[],
            };
            let rules = rules.iter().copied().map(Some);
            for without in rules.chain([None]) {
                let program = program(kind, 4, without);
                assert!(program.is_ok_and(|p| p.is_some()), "{kind} {without:?}");
            }
        }
    }
}
