//! Lists the built-in files: the P4 library, and of each application's room the programs and
//! `app.toml`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

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

fn list(name: &str, front: &Path, files: &[PathBuf]) -> String {
    let mut list = format!("const {name}: &[(&str, &str)] = &[\n");
    for file in files {
        let path = file.strip_prefix(front).unwrap_or(file);
        let _ = writeln!(list, "    ({path:?}, include_str!({file:?})),");
    }
    list + "];\n"
}

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
    let text = list("LIBRARY", &root.join("p4"), &library) + &list("ROOMS", &root, &rooms);
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("files.rs"), text)
}
