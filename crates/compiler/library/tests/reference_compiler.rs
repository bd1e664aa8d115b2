//! Our P4, shipped, measured and in packet tests, is plain P4-16 for v1model: the reference
//! compiler takes it too. Where it is not on the PATH, the test says so and passes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Commands of the reference compiler, and what they need to read v1model programs.
const COMPILERS: [(&str, &[&str]); 2] = [
    ("p4c-bm2-ss", &["--std", "p4-16"]),
    ("p4c", &["--target", "bmv2", "--arch", "v1model"]),
];

/// Folders with programs.
const FOLDERS: [&str; 4] = [
    "apps",
    "docs/examples",
    "bench/p4",
    "crates/engine/stf/tests/programs",
];

/// Programs in P4-16 that the reference compiler has not got, and what it says of them.
const BEYOND: [(&str, &str); 1] = [("loops_over.p4", "BMV2 does not support for-in loops")];

fn compiler() -> Option<(&'static str, &'static [&'static str])> {
    COMPILERS.into_iter().find(|(name, _)| {
        Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    })
}

/// True if a text instantiates the package, itself or through the library.
fn is_whole(text: &str) -> bool {
    text.contains(") main;") || text.contains("#include \"replicated_switch.p4\"")
}

/// Whole programs below `folder`.
fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder is part of the repository");
    for entry in entries {
        let path = entry.expect("its entries can be read").path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|end| end == "p4")
            && std::fs::read_to_string(&path).is_ok_and(|text| is_whole(&text))
        {
            found.push(path);
        }
    }
}

#[test]
fn the_reference_compiler_takes_every_program() {
    let Some((name, arguments)) = compiler() else {
        eprintln!("skipped: neither p4c-bm2-ss nor p4c is on the PATH");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut found = Vec::new();
    for folder in FOLDERS {
        let before = found.len();
        programs(&root.join(folder), &mut found);
        assert!(found.len() > before, "{folder} has no programs");
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for program in &found {
        let output = Command::new(name)
            .args(arguments)
            .arg("-I")
            .arg(root.join("p4/lib"))
            .arg("-o")
            .arg(folder.path().join("out.json"))
            .arg(program)
            .output()
            .expect("the compiler runs");
        let messages = String::from_utf8_lossy(&output.stderr);
        let beyond = BEYOND.iter().find(|(name, _)| program.ends_with(name));
        match beyond {
            None => assert!(output.status.success(), "{}: {messages}", program.display()),
            Some((_, reason)) => assert!(messages.contains(reason), "{messages}"),
        }
    }
    eprintln!("{name} took {} programs", found.len() - BEYOND.len());
}
