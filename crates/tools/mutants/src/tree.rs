//! The copy of the repository in which mutants are made.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// Files of the repository at `root`: those that git knows, and new ones that it does not
/// ignore.
pub fn files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .map_err(Error::command("git"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Git(message.trim().to_owned()));
    }
    let names = String::from_utf8_lossy(&output.stdout);
    let names = names.split_terminator('\0').map(PathBuf::from);
    // One that was deleted, and not yet from git, is still listed.
    Ok(names.filter(|name| root.join(name).is_file()).collect())
}

/// Makes the folder `copy` hold `files` of `root` and no others.
///
/// A file that is the same already is left alone, with its time, so that what was built
/// of it counts.
pub fn copy(root: &Path, files: &[PathBuf], copy: &Path) -> Result<(), Error> {
    let wanted: BTreeSet<&Path> = files.iter().map(PathBuf::as_path).collect();
    remove_others(copy, Path::new(""), &wanted)?;
    for file in files {
        let (from, to) = (root.join(file), copy.join(file));
        if same(&from, &to).map_err(Error::file(&from))? {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(Error::file(folder))?;
        }
        let text = fs::read(&from).map_err(Error::file(&from))?;
        fs::write(&to, text).map_err(Error::file(&to))?;
        let permissions = fs::metadata(&from)
            .map_err(Error::file(&from))?
            .permissions();
        fs::set_permissions(&to, permissions).map_err(Error::file(&to))?;
    }
    Ok(())
}

fn same(from: &Path, to: &Path) -> io::Result<bool> {
    let (from_metadata, to_metadata) = match (fs::metadata(from), fs::metadata(to)) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(error), _) => return Err(error),
        (_, Err(_)) => return Ok(false),
    };
    Ok(from_metadata.len() == to_metadata.len() && fs::read(from)? == fs::read(to)?)
}

fn remove_others(copy: &Path, below: &Path, wanted: &BTreeSet<&Path>) -> Result<(), Error> {
    let folder = copy.join(below);
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(&folder).map_err(Error::file(&folder))? {
        let name = below.join(entry.map_err(Error::file(&folder))?.file_name());
        let path = copy.join(&name);
        if path.is_dir() {
            remove_others(copy, &name, wanted)?;
        } else if !wanted.contains(name.as_path()) {
            fs::remove_file(&path).map_err(Error::file(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written() {
        let (root, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (root, to) = (root.path(), to.path());
        let files = [PathBuf::from("a/same.rs"), PathBuf::from("a/other.rs")];
        fs::create_dir(root.join("a")).unwrap();
        for file in &files {
            fs::write(root.join(file), "text").unwrap();
        }
        copy(root, &files, to).unwrap();
        let written = |file: &Path| fs::metadata(to.join(file)).unwrap().modified().unwrap();
        let (same, other) = (written(&files[0]), written(&files[1]));
        fs::write(to.join(&files[1]), "fresh").unwrap();
        fs::write(to.join("a/gone.rs"), "text").unwrap();
        while fs::metadata(to.join("a/gone.rs"))
            .unwrap()
            .modified()
            .unwrap()
            <= other
        {
            fs::write(to.join("a/gone.rs"), "text").unwrap();
        }
        copy(root, &files, to).unwrap();
        assert_eq!(written(&files[0]), same);
        assert_ne!(written(&files[1]), other);
        assert_eq!(fs::read_to_string(to.join(&files[1])).unwrap(), "text");
        assert!(!to.join("a/gone.rs").exists());
    }
}
