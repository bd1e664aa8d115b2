//! Names: those that the library declares, and new unused ones.

use crate::annotation::Mode;
use stateplane_diagnostics::SourceMap;
use stateplane_library::{WithLibrary, copied, with_library};
use stateplane_syntax::tree::{Declaration, Program};
use stateplane_syntax::{MemoryLoader, Options, parse};
use std::collections::{BTreeMap, BTreeSet};

/// Names that the library declares at the top level; whether each is an instance, which
/// hosts look up by it.
pub(crate) fn of_library(mode: Mode) -> BTreeMap<String, bool> {
    let text = "#define REPLICATION_STATE_BITS 8\n#include <core.p4>\n#include <v1model.p4>\n";
    let text = match mode {
        Mode::Linearizable => format!("{text}#include \"replication.p4\"\n"),
        Mode::Bounded => format!(
            "#define SNAPSHOT_KEYS 1\n#define SNAPSHOT_SLOTS 1\n{text}#include \"snapshot.p4\"\n"
        ),
    };
    let loader = WithLibrary(MemoryLoader::new().with("names.p4", text));
    let parsed = parse(&loader, "names.p4", &with_library(Options::default()));
    let library = declared(&parsed.tree, &parsed.sources).into_iter();
    library
        .filter(|(file, _)| file.contains("/lib/"))
        .flat_map(|(_, names)| names)
        .map(|it| (it.name, it.is_instance))
        .collect()
}

/// A name that a file declares at its top level.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The name.
    pub name: String,
    /// True if it is an instance's, by which hosts look it up.
    pub is_instance: bool,
}

/// Names of constants, structs, parsers, controls, functions and instances at the top level, in
/// order, by the path of the file that declares them; of a copy of a file of the library by the path of that one.
pub fn declared(tree: &Program, sources: &SourceMap) -> BTreeMap<String, Vec<Declared>> {
    let paths: BTreeMap<_, String> = sources
        .files()
        .map(|(id, file)| {
            let path = copied(file.name(), file.text());
            (id, path.unwrap_or_else(|| file.name().to_owned()))
        })
        .collect();
    let mut names = BTreeMap::<String, Vec<Declared>>::new();
    for declaration in &tree.declarations {
        let (name, is_instance) = match declaration {
            Declaration::Const(d) => (&d.name, false),
            Declaration::Struct(d) => (&d.name, false),
            Declaration::Parser(d) => (&d.signature.name, false),
            Declaration::Control(d) => (&d.signature.name, false),
            Declaration::Function(d) => (&d.prototype.name, false),
            Declaration::Instantiation(d) => (&d.name, true),
            _ => continue,
        };
        let file = paths.get(&name.span.file).cloned().unwrap_or_default();
        names.entry(file).or_default().push(Declared {
            name: name.to_string(),
            is_instance,
        });
    }
    names
}

/// All words in the files of a program that are its own.
pub fn of_program(sources: &SourceMap) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for (_, file) in sources.files().filter(|(_, file)| is_own(file.name())) {
        let text = file.text();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        words.extend(text.split(|c| !is_word(c)).map(str::to_owned));
    }
    words
}

/// True if a file is the program's and not part of what comes with Stateplane or the language.
pub fn is_own(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    !path.starts_with('<') && !["core.p4", "v1model.p4"].contains(&name)
}

/// Names for what is added to a program.
pub struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    /// Names that are none of the words `taken`.
    pub fn new(taken: BTreeSet<String>) -> Self {
        Self { taken }
    }

    /// True if the program has this word.
    pub fn has(&self, word: &str) -> bool {
        self.taken.contains(word)
    }

    /// `wanted`, or that with lines behind it.
    pub fn free(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.taken.contains(&name) {
            name.push('_');
        }
        name
    }

    /// Name in the protected program of the library's `name`.
    pub(crate) fn library(&self, name: &str) -> String {
        if self.taken.contains(name) {
            self.free(&format!("replication_{name}"))
        } else {
            name.to_owned()
        }
    }
}
