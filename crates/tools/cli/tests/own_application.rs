//! An application of the user's own, from a folder outside of the repository: a copy of
//! `docs/examples/sources`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;
use support::{repository, stateplane};

/// A copy of the example, with `replaced` in its `app.toml`.
fn application(replaced: &str, by: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tests")).unwrap();
    for file in ["app.toml", "sources.p4", "tests/sources.stf"] {
        let text = fs::read_to_string(repository().join("docs/examples/sources").join(file));
        let text = text.unwrap();
        let text = match file {
            "app.toml" => {
                assert!(text.contains(replaced), "{text}");
                text.replace(replaced, by)
            }
            _ => text,
        };
        fs::write(folder.path().join(file), text).unwrap();
    }
    folder
}

fn simulated(folder: &Path) -> Output {
    let folder = folder.display().to_string();
    let mut command = stateplane(&["sim", "--app", &folder, "--seeds", "3"]);
    command.output().unwrap()
}

#[test]
fn a_folder_is_tested_and_simulated() {
    let folder = application("", "");
    let path = folder.path().display().to_string();
    let tested = stateplane(&["test", &path]).output().unwrap();
    let text = String::from_utf8_lossy(&tested.stdout).into_owned();
    assert!(tested.status.success(), "{tested:?}");
    assert!(text.ends_with("1 of 1 passed\n"), "{text}");
    let ran = simulated(folder.path());
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{ran:?}");
    assert!(text.contains("3 seeds, 0 with objections"), "{text}");
}

#[test]
fn a_wrong_app_toml_is_refused_with_its_code() {
    for (replaced, by, code, said) in [
        ("shards = 4", "shards = ", "APP002", "line"),
        ("shards = 4", "shards = 3", "APP003", "power of two"),
        ("sources.p4", "other.p4", "APP003", "other.p4"),
        (
            "id = 200",
            "id = 201",
            "APP003",
            "the program's flows have 200 and 4",
        ),
        ("protects = true\n", "", "APP003", "protect"),
        ("packets = \"tests/sources.stf\"\n", "", "APP003", "packets"),
    ] {
        let folder = application(replaced, by);
        let ran = simulated(folder.path());
        let text = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(2), "{by}: {text}");
        assert!(
            text.starts_with(&format!("error[{code}]: ")),
            "{by}: {text}"
        );
        assert!(text.contains(said), "{by}: {text}");
    }
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().display().to_string();
    for ran in [
        simulated(empty.path()),
        stateplane(&["test", &path]).output().unwrap(),
    ] {
        let text = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(text.starts_with("error[APP001]: "), "{text}");
    }
}
