//! Lists the built-in files: the P4 library, and of each application's room the programs and
//! `app.toml`.
//!
//! If the environment variable `STATEPLANE_LIBRARY_AT_RUN_TIME` is set, the texts are no part of
//! the binary but read from the repository when they are first asked for: `make mutants` builds
//! tests once and runs them with many changes of the P4 library.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Environment variable: set if texts are read at run time.
const AT_RUN_TIME: &str = "STATEPLANE_LIBRARY_AT_RUN_TIME";

/// Files of `folder` with one of these endings, and its folders, in the order of their names.
fn entries(folder: &Path, endings: &[&str]) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            folders.push(path);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
    files.sort();
    folders.sort();
    Ok((files, folders))
}

fn list(name: &str, front: &Path, files: &[PathBuf], at_run_time: bool) -> String {
    let (begin, text, end) = if at_run_time {
        let list = "std::sync::LazyLock<Vec<(&str, &str)>>";
        let begin = format!("static {name}: {list} = std::sync::LazyLock::new(|| vec![\n");
        (begin, "text_of", "]);\n")
    } else {
        let begin = format!("const {name}: &[(&str, &str)] = &[\n");
        (begin, "include_str!", "];\n")
    };
    let mut list = begin;
    for file in files {
        let path = file.strip_prefix(front).unwrap_or(file);
        let _ = writeln!(list, "    ({path:?}, {text}({file:?})),");
    }
    list + end
}

/// Function of the generated code that reads a text when it is asked for.
const TEXT_OF: &str = "fn text_of(path: &str) -> &'static str {
    let text = std::fs::read_to_string(path);
    String::leak(text.unwrap_or_else(|error| panic!(\"{path}: {error}\")))
}
";

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let root = root.canonicalize()?;
    let mut library = Vec::new();
    let mut open = vec![root.join("p4")];
    while let Some(folder) = open.pop() {
        let (files, folders) = entries(&folder, &[".p4", ".stf"])?;
        library.extend(files);
        open.extend(folders);
    }
    let mut rooms = Vec::new();
    for folder in ["apps", "lab/apps"] {
        for room in entries(&root.join(folder), &[])?.1 {
            let files = entries(&room, &[".p4", "app.toml"])?.0;
            if files.iter().any(|file| file.ends_with("app.toml")) {
                rooms.extend(files);
            }
        }
    }
    println!("cargo::rerun-if-env-changed={AT_RUN_TIME}");
    let at_run_time = env::var_os(AT_RUN_TIME).is_some();
    let mut text = list("LIBRARY", &root.join("p4"), &library, at_run_time)
        + &list("ROOMS", &root, &rooms, at_run_time);
    if at_run_time {
        text += TEXT_OF;
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("files.rs"), text)
}
