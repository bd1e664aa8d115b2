//! Goldens of programs: `programs/NAME.p4` gives `programs/NAME.protected.p4`, `refused/NAME.p4`
//! the diagnostics in `refused/NAME.txt`. `UPDATE_GOLDEN=1` writes both anew.
//! `crates/proof/sim/tests/protect.rs` runs the results.

#![allow(clippy::disallowed_methods)]

mod edited;

use edited::{damaged, programs_are_edited, programs_are_refused, read};
use stateplane_compile::{Source, file};
use stateplane_protect::{Protected, protect};
use stateplane_syntax::FileLoader;

fn protected<L: FileLoader>(source: &Source<L>) -> Protected {
    protect(source.loader(), source.main_file(), source.options())
}

fn protect_file(path: &str) -> Protected {
    protected(&file(path, read))
}

#[test]
fn programs_are_protected() {
    programs_are_edited("protected", protect_file);
}

#[test]
fn what_cannot_be_protected_is_refused_with_the_reason() {
    programs_are_refused("protected", protect_file);
}

/// Text that is cut, doubled or mixed up anywhere gives diagnostics or a program, and no
/// panic.
#[test]
fn damaged_programs_do_no_harm() {
    let text = read("programs/connections.p4").expect("a program");
    for damaged in damaged(&text, "@replicated", "apply {", " ,({})=;") {
        let main = "programs/damaged.p4";
        let read = |path: &str| {
            (path == main)
                .then(|| damaged.clone())
                .or_else(|| read(path))
        };
        let protected = protected(&file(main, read));
        assert!(protected.program.is_some() || protected.diagnostics.has_errors());
    }
}
