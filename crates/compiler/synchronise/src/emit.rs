//! The text of the synchronised program: the original with its registers at the front, and the
//! blocks of the library around its own.

mod blocks;
mod front;

use crate::annotation::SYNCED;
use crate::plan::{Group, Plan};
use crate::registers::Register;
use crate::uses::{Place, Uses};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{BESIDE, IN_VIEW, UNIT};
use stateplane_library::{WithLibrary, with_library};
use stateplane_protect::codes::PROGRAM_FORM;
use stateplane_protect::edit::{Edits, after_comments};
use stateplane_protect::edited::Input;
use stateplane_protect::names::{self, Declared, Names, declared, is_own};
use stateplane_protect::pipeline::Pipeline;
use stateplane_syntax::{MemoryLoader, Options, parse};
use std::collections::BTreeMap;

/// All that is known of the program.
pub(crate) struct Emit<'a> {
    input: &'a Input<'a>,
    pipeline: &'a Pipeline<'a>,
    registers: &'a [Register<'a>],
    uses: &'a Uses<'a>,
    plan: &'a Plan,
    names: Names,
    /// Names of the registers and of the functions that access them.
    called: Vec<Called>,
    /// Names of the library that the program has too, and those that they get.
    renamed: BTreeMap<String, String>,
}

/// Name of a register at the front, and what reads and writes call, by their place.
struct Called {
    register: String,
    read: [String; 3],
    write: [String; 3],
}

impl Called {
    fn function(&self, writes: bool, place: Place) -> &str {
        let functions = if writes { &self.write } else { &self.read };
        &functions[place as usize]
    }
}

/// The library's register of the values that were sent last, by location.
const SENT: &str = "sync_sent";

/// Names that the files of the library declare, in order, by file.
type ByFile = BTreeMap<String, Vec<Declared>>;

fn of_library() -> ByFile {
    let text = "#define SYNC_GROUPS 1\n#define SYNC_LOCATIONS 2\n#define SYNC_RINGS 65\n\
        #include <core.p4>\n#include <v1model.p4>\n#include \"sync/shape.p4\"\n\
        control SyncShape(in bit<16> group, out sync_shape_t shape) { apply { } }\n\
        control SyncAccess(in bit<16> group, in bit<32> index, in bool write, inout bit<64> value) \
        { apply { } }\n#include \"sync.p4\"\n#include \"sync/access.p4\"\n";
    let loader = WithLibrary(MemoryLoader::new().with("names.p4", text));
    let parsed = parse(&loader, "names.p4", &with_library(Options::default()));
    let mut names = declared(&parsed.tree, &parsed.sources);
    names.retain(|file, _| !file.contains("/include/"));
    names
}

impl<'a> Emit<'a> {
    pub(crate) fn new(
        input: &'a Input<'a>,
        pipeline: &'a Pipeline<'a>,
        registers: &'a [Register<'a>],
        uses: &'a Uses<'a>,
        plan: &'a Plan,
    ) -> Self {
        let names = Names::new(names::of_program(input.sources));
        let called = registers
            .iter()
            .map(|register| {
                let own = register.declaration.name.as_str();
                let name = match register.owner {
                    None => own.to_owned(),
                    Some(owner) => names.free(&format!("{owner}_{own}")),
                };
                let free = |end| names.free(&format!("{name}_{end}"));
                Called {
                    // There is nothing to do before a read of what has crossed the last cut.
                    read: [free("read"), free("read_in_action"), format!("{name}.read")],
                    write: ["write", "write_in_action", "write_crossed"].map(free),
                    register: name,
                }
            })
            .collect();
        Self {
            input,
            pipeline,
            registers,
            uses,
            plan,
            names,
            called,
            renamed: BTreeMap::new(),
        }
    }

    /// Name in the synchronised program of the library's `name`.
    fn library(&self, name: &str) -> String {
        let renamed = self.renamed.get(name);
        renamed.cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The registers of a group, with their names.
    fn members(&self, group: &Group) -> Vec<(&Register<'a>, &Called)> {
        let registers = self.registers.iter().zip(&self.called);
        let of = |member: &crate::Member| {
            let mut registers = registers.clone();
            registers.find(|(register, _)| register.name == member.register)
        };
        group.registers.iter().filter_map(of).collect()
    }

    /// Gives names of the library that the program has too others. A file of the library that
    /// the program includes as well is there once, with the names that it has there.
    fn rename(&mut self) -> Result<(), Box<Diagnostic>> {
        let shared = declared(self.input.tree, self.input.sources);
        for (file, names) in of_library() {
            let there = shared.get(&file).filter(|there| there.len() == names.len());
            for (at, Declared { name, is_instance }) in names.into_iter().enumerate() {
                if let Some(there) = there {
                    let called = &there[at].name;
                    if *called != name {
                        self.renamed.insert(name, called.clone());
                    }
                } else if self.names.has(&name) {
                    if is_instance {
                        let span = self.pipeline.main.name.span;
                        let message = format!(
                            "the program has a word `{name}`, which is a register of the library"
                        );
                        return Err(Box::new(
                            Diagnostic::error(PROGRAM_FORM, span, message)
                                .with_help("give it another name"),
                        ));
                    }
                    let other = self.names.free(&format!("synced_{name}"));
                    self.renamed.insert(name, other);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn text(mut self) -> Result<String, Box<Diagnostic>> {
        self.rename()?;
        let sources = self.input.sources;
        let mut edits = Edits::default();
        self.edit(&mut edits).map_err(by_macro)?;
        edits.replace(self.pipeline.main.span, self.blocks());
        let first = sources.files().next().map(|(file, _)| file);
        let first = first.unwrap_or(self.pipeline.main.span.file);
        let text = sources.get(first).map_or("", |file| file.text());
        let front = after_comments(text) as u32;
        edits.insert(Span::new(first, front, front), &self.front());
        // `main` may be in a file of a library, which is then changed, too.
        let main = self.pipeline.main.span.file;
        let inline = |id| id == main || sources.get(id).is_some_and(|file| is_own(file.name()));
        edits.apply(sources, first, &inline).map_err(by_macro)
    }

    /// Takes the declarations of registers away, and makes calls of functions of their reads and
    /// writes; or the place of what a macro has written, which cannot be changed.
    fn edit(&self, edits: &mut Edits) -> Result<(), Span> {
        let sources = self.input.sources;
        for (register, called) in self.registers.iter().zip(&self.called) {
            let declaration = register.declaration;
            let text = sources.snippet(declaration.span);
            if !text.ends_with(';') || !text.contains(declaration.name.as_str()) {
                return Err(declaration.span);
            }
            let note = format!(
                "/* {} is at the front: it is synchronised. */",
                called.register
            );
            edits.replace(declaration.span, note);
        }
        for call in &self.uses.calls {
            let mut all = self.registers.iter().zip(&self.called);
            let Some((register, called)) = all.find(|(it, _)| it.place() == call.register) else {
                continue;
            };
            let written: String = sources.snippet(call.callee).split_whitespace().collect();
            let name = register.declaration.name.as_str();
            let method = if call.writes { "write" } else { "read" };
            let expected = format!("{name}.{method}");
            if written != expected && written != format!(".{expected}") {
                return Err(call.callee);
            }
            edits.replace(call.callee, called.function(call.writes, call.place));
        }
        Ok(())
    }

    /// Annotations of a register as text, on lines of their own, with `@in_view` in the place of
    /// `@synced`; the name for control planes stays. Units are left out: they may be of constants that
    /// are declared later, and workers wait for each other at the ring anyway.
    fn annotations(&self, register: &Register<'_>) -> String {
        let mut out = format!("@{IN_VIEW}\n");
        // Packets use an element with what is kept of its location.
        let of = |group: &&Group| {
            group
                .registers
                .iter()
                .any(|it| it.register == register.name)
        };
        if let Some(group) = self.plan.groups.iter().find(of).filter(|it| it.words == 1) {
            let first = self.plan.first_location(group);
            let sent = self.library(SENT);
            out.push_str(&format!("@{BESIDE}[\"{sent}\", {first}]\n"));
        }
        if register.owner.is_some() {
            out.push_str(&format!("@name(\".{}\")\n", register.name));
        }
        for annotation in &register.declaration.annotations {
            let name = annotation.name.as_str();
            let is_name = register.owner.is_some() && name == "name";
            if ![SYNCED, UNIT, IN_VIEW, BESIDE].contains(&name) && !is_name {
                out.push_str(self.input.sources.snippet(annotation.span));
                out.push('\n');
            }
        }
        out
    }
}

fn by_macro(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(
            PROGRAM_FORM,
            span,
            "this is written by a macro, where it cannot be rewritten",
        )
        .with_help("write it out"),
    )
}
