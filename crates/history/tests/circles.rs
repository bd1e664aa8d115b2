//! No files of this crate import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Name of a module from the crate's root: `replication::text`, and nothing for the root.
type Module = String;

fn read(folder: &Path, module: &str, found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry of it").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.expect("a name in UTF-8");
        let name = match (module, stem) {
            ("", "lib") => String::new(),
            ("", stem) => stem.to_owned(),
            (module, stem) => format!("{module}::{stem}"),
        };
        if path.is_dir() {
            read(&path, &name, found);
        } else {
            found.insert(name, fs::read_to_string(&path).expect("a source in UTF-8"));
        }
    }
}

/// The paths in `text` that begin at its start, `{a, b}` written out.
fn paths(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let (path, rest) = text.split_at(end.unwrap_or(text.len()));
    let Some(group) = rest.strip_prefix('{').filter(|_| path.ends_with("::")) else {
        return vec![path.trim_end_matches(':').to_owned()];
    };
    let mut depth = 0;
    let mut members = vec![0];
    for (at, sign) in group.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => members.push(at + 1),
            _ => {}
        }
    }
    let written_out = members.into_iter().flat_map(|at| {
        let member = paths(group[at..].trim_start());
        member.into_iter().map(|member| format!("{path}{member}"))
    });
    written_out.collect()
}

/// The modules that the source of `module` names.
fn imports(module: &str, source: &str, modules: &BTreeSet<&Module>) -> BTreeSet<Module> {
    let mut named = Vec::new();
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let here = at;
        at += line.len();
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        for (place, _) in line.match_indices("crate::") {
            let from = &source[here + place + "crate::".len()..];
            named.extend(paths(&format!("x::{from}")));
        }
        // Within a module of the same file, `super` is that file.
        let outermost = code.len() == line.len();
        if let Some(place) = line.find("super::").filter(|_| outermost) {
            let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
            let from = &source[here + place + "super::".len()..];
            let parent = format!("x::{parent}{}", if parent.is_empty() { "" } else { "::" });
            named.extend(
                paths(from)
                    .into_iter()
                    .map(|path| format!("{parent}{path}")),
            );
        }
        let relative = code.strip_prefix("pub use ").or(code.strip_prefix("use "));
        if let Some(relative) = relative.filter(|_| outermost) {
            let own = format!("{module}{}", if module.is_empty() { "" } else { "::" });
            let child = relative.split("::").next().unwrap_or_default();
            if modules.contains(&format!("{own}{child}")) {
                named.push(format!("x::{own}{child}"));
            }
        }
    }
    let file = |path: String| {
        let mut path = path.strip_prefix("x::")?.to_owned();
        while !modules.contains(&path) {
            path = path.rsplit_once("::").map_or("", |(of, _)| of).to_owned();
        }
        Some(path)
    };
    let mut files: BTreeSet<Module> = named.into_iter().filter_map(file).collect();
    files.remove(module);
    files
}

/// Modules that import each other in a circle, if there are any.
fn circle(files: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let modules: BTreeSet<&Module> = files.keys().collect();
    let mut arrows: BTreeMap<Module, BTreeSet<Module>> = files
        .iter()
        .map(|(module, source)| (module.clone(), imports(module, source, &modules)))
        .collect();
    // What imports nothing that is left is in no circle.
    loop {
        let left: BTreeSet<Module> = arrows.keys().cloned().collect();
        arrows.retain(|_, to| to.iter().any(|to| left.contains(to)));
        if arrows.len() == left.len() {
            return left;
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut files = BTreeMap::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    read(&sources, "", &mut files);
    assert!(files.len() > 10, "{:?}", files.keys());
    assert_eq!(circle(&files), BTreeSet::new());
}

#[test]
fn a_circle_is_found_in_each_form_of_import() {
    let forms = [
        "use crate::{b, c};\n",
        "use crate::c;\nuse crate::b::{self, Thing};\n",
        "fn f() -> crate::b::Thing {}\n",
        "use super::b::Thing;\n",
        "use super::*;\n",
    ];
    for form in forms {
        let files = BTreeMap::from([
            (
                String::new(),
                "mod a;\nmod b;\nmod c;\npub use b::Thing;\n".to_owned(),
            ),
            ("a".to_owned(), form.to_owned()),
            (
                "b".to_owned(),
                "//! As [`crate::c`].\nuse crate::a::Other;\n".to_owned(),
            ),
            ("c".to_owned(), String::new()),
        ]);
        let found = circle(&files);
        assert!(
            found.contains("a") && found.contains("b"),
            "{form:?}: {found:?}"
        );
        assert!(!found.contains("c"), "{form:?}: {found:?}");
    }
    let tree = BTreeMap::from([
        (
            "a".to_owned(),
            "use crate::b;\nmod tests {\n    use super::*;\n}\n".to_owned(),
        ),
        ("b".to_owned(), "mod d;\nuse d::Thing;\n".to_owned()),
        ("b::d".to_owned(), "// crate::a\n".to_owned()),
    ]);
    assert_eq!(circle(&tree), BTreeSet::new());
}
