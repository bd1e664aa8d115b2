//! Puts the files of `codes/` into the binary: a table of code and text, in order of code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("codes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        let code = path.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(table, "({code:?}, include_str!({path:?})),");
    }
    table.push_str("]\n");
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&out).join("texts.rs"), table)
}
