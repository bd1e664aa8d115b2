//! The examples of multicast in Rust, C and Python, which send lines and print them.

use super::python::skip;
use super::repository;
use stateplane_lab::Process;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Languages and the words that run their examples. Says which language is not there.
pub fn examples(folder: &Path) -> Vec<(&'static str, Vec<String>)> {
    let mut languages = vec![("rust", rust("multicast_lines"))];
    let script = repository().join("python/stateplane_multicast/examples/lines.py");
    for (language, words) in [("c", c(folder)), ("python", python(&script))] {
        match words {
            Ok(words) => languages.push((language, words)),
            Err(reason) => skip(&format!("multicast in {language}"), &reason),
        }
    }
    languages
}

/// The folder in which cargo puts what tests are linked with.
fn built() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    own.parent().expect("its folder").to_path_buf()
}

/// The C library, which is built with the test since the command's tests depend on its crate.
fn library() -> PathBuf {
    let library = built().join("libstateplane_multicast_c.so");
    assert!(library.exists(), "{} is not built", library.display());
    library
}

/// Words that run an example in Rust. Cargo builds it with all tests, but not for one that is named
/// alone.
pub fn rust(name: &str) -> Vec<String> {
    let example = built().join("../examples").join(name);
    if !example.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "stateplane-cli"]);
        cargo.args(["--example", name]);
        let built = cargo.current_dir(repository()).status();
        assert!(built.expect("cargo").success());
    }
    vec![example.to_str().expect("a path of letters").to_owned()]
}

/// The example in C, compiled, or why it cannot be.
fn c(folder: &Path) -> Result<Vec<String>, String> {
    let crate_folder = repository().join("crates/edge/multicast-c");
    let program = folder.join("lines-c");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o"])
        .arg(&program)
        .arg(crate_folder.join("examples/lines.c"))
        .arg("-I")
        .arg(crate_folder.join("include"))
        .arg("-L")
        .arg(built())
        .arg("-lstateplane_multicast_c")
        .arg(format!("-Wl,-rpath,{}", built().display()));
    library();
    let output = compiler.output().map_err(|error| format!("cc: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Ok(vec![
        program.to_str().expect("a path of letters").to_owned(),
    ])
}

/// Words that run a script of Python with the module.
pub fn python(script: &Path) -> Result<Vec<String>, String> {
    let there = Command::new("python3").arg("--version").output();
    there.map_err(|error| format!("python3: {error}"))?;
    let module = repository().join("python/stateplane_multicast/src");
    Ok(vec![
        "env".to_owned(),
        format!("STATEPLANE_MULTICAST_LIBRARY={}", library().display()),
        format!("PYTHONPATH={}", module.display()),
        "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        "python3".to_owned(),
        script.to_str().expect("a path of letters").to_owned(),
    ])
}

/// Places and texts of a receiver's lines.
pub fn lines(receiver: &Process) -> Vec<((u64, u8), String)> {
    let text = fs::read_to_string(receiver.output()).expect("an output");
    let line = |line: &str| {
        let (place, text) = line.split_once(' ')?;
        let (time, group) = place.split_once('.')?;
        Some(((time.parse().ok()?, group.parse().ok()?), text.to_owned()))
    };
    let lines = text
        .lines()
        .map(|text| line(text).expect("a place and a text"));
    lines.collect()
}
