//! Compiles the programs that come with Stateplane.

use crate::options::{ProgramKind, Rule};
use stateplane_check::compile;
use stateplane_diagnostics::{Color, render_all};
use stateplane_ir::Program;
use stateplane_library::{WithLibrary, path_of, with_library};
use stateplane_syntax::{MemoryLoader, Options};

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
    let mut options = Options::default();
    let mut define = |name: &str, value: String| options.defines.push((name.into(), value));
    define("REPLICATION_BUCKETS", buckets.to_string());
    for (name, body) in &application.room().macros {
        define(name, body.clone());
    }
    for (name, body) in application.hosts().defines() {
        define(name, body);
    }
    if let Some(fault) = without.and_then(Rule::macro_name) {
        define(fault, "1".into());
    }
    let loader = WithLibrary(MemoryLoader::new());
    let compiled = compile(
        &loader,
        &path_of(&application.room().path()),
        &with_library(options),
    );
    match compiled.program {
        Some(program) => Ok(Some(program)),
        None => Err(render_all(
            &compiled.diagnostics,
            &compiled.sources,
            Color::Never,
        )),
    }
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
