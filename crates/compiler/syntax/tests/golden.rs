//! Goldens of programs: `name.p4` with `name.tree`, the canonical text of its tree, and with
//! `name.stderr`, its diagnostics, if there are any.
//!
//! `UPDATE_GOLDEN=1 cargo test -p stateplane-syntax --test golden` writes the files anew;
//! look at the difference before you commit it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stateplane_diagnostics::{Color, Diagnostics, render_all};
use stateplane_syntax::{
    FileLoader, LoadError, MemoryLoader, Options, parse, print, token, tokenize,
};

/// Files of the folder `golden`, and those under `include/` from the standard includes.
struct Folder(PathBuf);

impl FileLoader for Folder {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        let path = match path.strip_prefix("include/") {
            Some(name) => include_folder().join(name),
            None => self.0.join(path),
        };
        fs::read_to_string(path)
            .map(Into::into)
            .map_err(|_| LoadError::NotFound)
    }
}

fn include_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../p4/include")
}

fn options() -> Options {
    Options {
        include_dirs: vec!["include".into()],
        ..Options::default()
    }
}

#[test]
fn golden_programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".p4"))
        .collect();
    names.sort();
    assert!(names.len() >= 8, "the golden programs are missing");
    let mut wrong = Vec::new();
    for name in names {
        let parsed = parse(&Folder(folder.clone()), &name, &options());
        let mut own = parsed.tree.clone();
        // Of an included library, only the program's own part is of interest.
        let main = parsed.sources.files().next().unwrap().0;
        own.declarations.retain(|d| d.span().file == main);
        let told = render_all(&parsed.diagnostics, &parsed.sources, Color::Never);
        for (extension, actual) in [("tree", print(&own)), ("stderr", told)] {
            let path = folder.join(&name).with_extension(extension);
            let expected = fs::read_to_string(&path).unwrap_or_default();
            if actual == expected {
                continue;
            }
            if !update {
                wrong.push(format!(
                    "{}: expected\n{expected}\ngot\n{actual}",
                    path.display()
                ));
            } else if actual.is_empty() {
                fs::remove_file(&path).unwrap();
            } else {
                fs::write(&path, &actual).unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tokens_are_listed_with_their_places() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut diagnostics = Diagnostics::new();
    let loader = Folder(folder.clone());
    let (tokens, sources) = tokenize(&loader, "conditionals.p4", &options(), &mut diagnostics);
    let actual = token::list(&tokens, &sources);
    let path = folder.join("conditionals.tokens");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &actual).unwrap();
    }
    assert_eq!(actual, fs::read_to_string(&path).unwrap_or_default());
}

#[test]
fn the_standard_declarations_are_read_without_complaint() {
    for name in ["core.p4", "v1model.p4"] {
        let parsed = parse(&Folder(include_folder()), name, &options());
        let told = render_all(&parsed.diagnostics, &parsed.sources, Color::Never);
        assert_eq!(told, "");
        let text = print(&parsed.tree);
        let again = parse(
            &MemoryLoader::new().with("x", text.as_str()),
            "x",
            &options(),
        );
        assert!(again.diagnostics.is_empty());
        assert_eq!(print(&again.tree), text);
    }
}
