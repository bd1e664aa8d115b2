//! Formatting changes no program: what is compiled from the formatted text, with all that it
//! includes formatted too, is the same.

use stateplane_check::compile;
use stateplane_ir::{Op, Program, Stmt};
use stateplane_syntax::{FileLoader, LoadError, Options, format};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of the repository, formatted or as they are.
struct Files {
    formatted: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

impl FileLoader for Files {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        let text = fs::read_to_string(root().join(path)).map_err(|_| LoadError::NotFound)?;
        Ok(if self.formatted {
            format(&text).unwrap_or(text).into()
        } else {
            text.into()
        })
    }
}

/// The program, without the places of `assert`, which formatting moves.
fn program(path: &str, formatted: bool) -> Option<Program> {
    let options = Options {
        include_dirs: [
            "p4/include",
            "p4/lib",
            "crates/compiler/check/tests/include",
        ]
        .map(String::from)
        .to_vec(),
        ..Options::default()
    };
    let mut program = compile(&Files { formatted }, path, &options).program?;
    let controls = program.controls.iter_mut().map(|control| &mut control.body);
    let actions = program.actions.iter_mut().map(|action| &mut action.body);
    for body in controls.chain(actions) {
        unplace(body);
    }
    Some(program)
}

fn unplace(stmts: &mut [Stmt]) {
    for stmt in stmts {
        match stmt {
            Stmt::Op(Op::Assert { location, .. }) => location.clear(),
            Stmt::If {
                then, otherwise, ..
            } => {
                unplace(then);
                unplace(otherwise);
            }
            Stmt::Block(body) | Stmt::Atomic(body) => unplace(body),
            _ => {}
        }
    }
}

fn find(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let name = entry.unwrap().file_name();
        let path = folder.join(name);
        if root().join(&path).is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "p4") {
            found.push(path.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn formatting_changes_no_program() {
    let mut paths = Vec::new();
    for folder in ["p4", "apps", "docs", "crates"] {
        find(Path::new(folder), &mut paths);
    }
    let mut accepted = 0;
    for path in paths {
        let (before, after) = (program(&path, false), program(&path, true));
        assert_eq!(before.is_some(), after.is_some(), "{path}");
        assert!(before == after, "{path} becomes another program");
        accepted += u32::from(before.is_some());
    }
    assert!(accepted > 10, "{accepted} programs");
}
