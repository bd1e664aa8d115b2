//! Programs beside what becomes of them: `golden/name.p4` with `name.ir`, the text of its
//! IR, and for some of them `name.checked`, the checked program as P4-like text;
//! `rejected/name.p4`, with errors, and `warned/name.p4`, with warnings only, with
//! `name.stderr`, what the user is told. They include `include/shell.p4`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p stateplane-check --test programs` writes the files anew;
//! look at the difference before you commit it.

use stateplane_check::{Compiled, compile};
use stateplane_diagnostics::{Color, render_all};
use stateplane_syntax::{FileLoader, LoadError, Options};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files below one folder.
struct Folder(PathBuf);

impl FileLoader for Folder {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        fs::read_to_string(self.0.join(path))
            .map(Into::into)
            .map_err(|_| LoadError::NotFound)
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn compile_file(path: &str) -> Compiled {
    compile_with(path, &[])
}

/// Compiles with macros defined.
fn compile_with(path: &str, defines: &[&str]) -> Compiled {
    let options = Options {
        include_dirs: [
            "p4/include",
            "p4/lib",
            "crates/compiler/check/tests/include",
        ]
        .map(String::from)
        .to_vec(),
        defines: defines
            .iter()
            .map(|name| ((*name).to_owned(), "1".to_owned()))
            .collect(),
    };
    compile(&Folder(root()), path, &options)
}

fn programs(folder: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".p4"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    names.sort();
    names
}

/// The files that differ from what they should be; written anew if asked for.
fn compare(path: &str, extension: &str, actual: &str) -> Option<String> {
    let path = root().join(path).with_extension(extension);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, actual).unwrap();
        return None;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    (expected != actual).then(|| format!("{}:\n{actual}", path.display()))
}

fn told(compiled: &Compiled) -> String {
    render_all(&compiled.diagnostics, &compiled.sources, Color::Never)
}

fn parses_back(path: &str, program: &stateplane_ir::Program) {
    let parsed = stateplane_ir::parse(&program.to_string());
    let parsed = parsed.unwrap_or_else(|error| panic!("the IR of {path}: {error}"));
    assert!(
        parsed == *program,
        "the IR of {path} parses to another program"
    );
}

#[test]
fn golden_programs_become_their_ir() {
    let mut wrong = Vec::new();
    for path in programs("crates/compiler/check/tests/golden") {
        let compiled = compile_file(&path);
        let told = told(&compiled);
        let Some(program) = compiled.program else {
            panic!("{path} is refused:\n{told}");
        };
        stateplane_ir::verify(&program).unwrap();
        parses_back(&path, &program);
        wrong.extend(compare(&path, "ir", &program.to_string()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn checked_programs_read_like_p4() {
    let mut wrong = Vec::new();
    for name in ["constructors", "externs", "operators", "parsers", "tables"] {
        let path = format!("crates/compiler/check/tests/golden/{name}.p4");
        let program = compile_file(&path).program.expect(name);
        wrong.extend(compare(&path, "checked", &stateplane_ir::p4_text(&program)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rejected_and_doubtful_programs_get_their_diagnostics() {
    let mut wrong = Vec::new();
    let mut codes = BTreeSet::new();
    for path in programs("crates/compiler/check/tests/rejected") {
        let compiled = compile_file(&path);
        assert!(compiled.program.is_none(), "{path} is accepted");
        assert!(compiled.diagnostics.has_errors(), "{path} has no errors");
        codes.extend(compiled.diagnostics.iter().map(|d| d.code.id()));
        wrong.extend(compare(&path, "stderr", &told(&compiled)));
    }
    for path in programs("crates/compiler/check/tests/warned") {
        let compiled = compile_file(&path);
        let told = told(&compiled);
        assert!(compiled.program.is_some(), "{path} is refused:\n{told}");
        codes.extend(compiled.diagnostics.iter().map(|d| d.code.id()));
        wrong.extend(compare(&path, "stderr", &told));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Exceeding the compiler's limits needs a program too big for a file here.
    let missing: Vec<_> = stateplane_check::codes::ALL
        .iter()
        .map(|code| code.id())
        .filter(|id| !codes.contains(id) && *id != "E1702")
        .collect();
    assert!(missing.is_empty(), "no program shows {missing:?}");
}

#[test]
fn the_applications_compile() {
    for path in [
        "apps/counter/counter.p4",
        "apps/nat/controlled.p4",
        "apps/nat/nat.p4",
        "apps/nat/unprotected.p4",
    ] {
        let compiled = compile_file(path);
        assert!(
            compiled.diagnostics.is_empty(),
            "{path}:\n{}",
            told(&compiled)
        );
        let Some(program) = compiled.program else {
            panic!("{path} gives no program");
        };
        parses_back(path, &program);
    }
}

#[test]
fn each_rule_of_the_replication_library_can_be_switched_off() {
    let rules = fs::read_to_string(root().join("p4/lib/replication_rules.p4")).unwrap();
    let faults: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.strip_prefix("#ifdef "))
        .collect();
    assert!(!faults.is_empty());
    for path in ["apps/counter/counter.p4", "apps/nat/nat.p4"] {
        let normal = compile_file(path).program.unwrap().to_string();
        for fault in &faults {
            let compiled = compile_with(path, &[fault]);
            assert!(
                compiled.diagnostics.is_empty(),
                "{fault}: {}",
                told(&compiled)
            );
            let changed = compiled.program.unwrap().to_string();
            assert_ne!(normal, changed, "{path}: {fault} changes nothing");
        }
    }
}

/// A program as text, with the includes of [`Folder`].
struct Text(String);

impl FileLoader for Text {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        match path {
            "program.p4" => Ok(self.0.as_str().into()),
            _ => Folder(root()).load(path),
        }
    }
}

fn compile_text(text: String) -> Compiled {
    let include_dirs = ["p4/include", "crates/compiler/check/tests/include"];
    let options = Options {
        include_dirs: include_dirs.map(String::from).to_vec(),
        defines: Vec::new(),
    };
    compile(&Text(text), "program.p4", &options)
}

/// Each level of types costs as much as the one before, not twice that.
#[test]
fn generic_types_nest_forty_deep() {
    let nested = (0..40).fold("bit<8>".to_owned(), |inner, _| format!("one_t<{inner}>"));
    let compiled = compile_text(format!(
        "#include \"shell.p4\"
        struct one_t<T> {{ T part; }}
        control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
            {nested} deep;
            apply {{}}
        }}
        SWITCH(EmptyParser, C);"
    ));
    assert!(compiled.program.is_some(), "{}", told(&compiled));
}

/// A chain of `else if` beyond the limit is refused with the limit.
#[test]
fn chains_have_a_limit() {
    let chain = |length: usize| {
        let links: Vec<String> = (0..length)
            .map(|number| format!("if (meta.x == {number}) {{ meta.x = 1; }}"))
            .collect();
        compile_text(format!(
            "#include \"shell.p4\"
            control C(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
                apply {{ {} }}
            }}
            SWITCH(EmptyParser, C);",
            links.join(" else ")
        ))
    };
    let compiled = chain(150);
    assert!(compiled.program.is_some(), "{}", told(&compiled));
    let refused = told(&chain(250));
    assert!(refused.contains("nests more than 200"), "{refused}");
}
