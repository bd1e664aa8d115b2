//! The registers that are replicated.

use crate::annotation::{Mode, REPLICATED, Reader, Replicated};
use crate::codes;
use crate::walk::type_name;
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_ir::{self as ir, Type};
use stateplane_syntax::tree::{
    Annotation, ControlLocal, Declaration, Instantiation, ParserLocal, Program,
};
use std::collections::BTreeMap;

/// A replicated register.
pub(crate) struct State<'t> {
    pub(crate) declaration: &'t Instantiation,
    pub(crate) bits: u32,
    pub(crate) signed: bool,
    /// Elements of the register.
    pub(crate) size: u64,
    /// Name for control planes.
    pub(crate) control_name: String,
    pub(crate) annotation: Replicated,
}

/// All replicated registers, at least one.
pub(crate) struct States<'t> {
    pub(crate) all: Vec<State<'t>>,
    /// Names by place of declaration.
    pub(crate) names: BTreeMap<Span, String>,
    pub(crate) mode: Mode,
    /// The annotation with the key or the bound.
    pub(crate) keyed: Replicated,
    /// Registers that are not replicated.
    pub(crate) local: Vec<&'t Instantiation>,
}

/// Finds them; `None` if something is wrong, which is reported.
pub(crate) fn find<'t>(
    tree: &'t Program,
    reader: &Reader<'_>,
    program: &ir::Program,
    diagnostics: &mut Diagnostics,
) -> Option<States<'t>> {
    let mut all = Vec::new();
    let mut local = Vec::new();
    for instance in instances(tree, diagnostics) {
        let Some(annotation) = annotated(&instance.annotations) else {
            if type_name(&instance.ty) == Some("register") {
                local.push(instance);
            }
            continue;
        };
        let Some(read) = reader.read(annotation, diagnostics) else {
            continue;
        };
        match type_name(&instance.ty) {
            Some("register") => {
                all.extend(state(instance, read, program, diagnostics));
            }
            _ => diagnostics.push(not_replicable(
                annotation.span,
                format!("`{}` is no register", instance.name),
                "keep what packets change in a register",
            )),
        }
    }
    if diagnostics.has_errors() {
        return None;
    }
    let Some(first) = all.first() else {
        let span = tree
            .declarations
            .last()
            .map_or_else(Span::default, |d| d.span());
        diagnostics.push(
            Diagnostic::error(codes::NOTHING_REPLICATED, span, codes::NOTHING_REPLICATED.meaning())
                .with_help("annotate the registers whose state has to outlive the switch: @replicated(key = {hdr.ipv4.srcAddr, …})"),
        );
        return None;
    };
    let annotations = || all.iter().map(|state| &state.annotation);
    let Some(keyed) = annotations().find(|a| a.is_full()) else {
        let bounded = annotations().find(|a| a.mode == Some(Mode::Bounded));
        let (span, what, help) = match bounded {
            Some(bounded) => (
                bounded.span,
                "no annotation names a bound",
                "say how old the newest snapshot may be: @replicated(mode = \"bounded\", bound = 300)",
            ),
            None => (
                first.annotation.span,
                "no annotation names a key",
                "say by which fields the state is kept: @replicated(key = {hdr.ipv4.srcAddr, …})",
            ),
        };
        diagnostics.push(Diagnostic::error(codes::ANNOTATION, span, what).with_help(help));
        return None;
    };
    let keyed = keyed.clone();
    let mode = keyed.mode.unwrap_or(Mode::Linearizable);
    for annotation in annotations() {
        if let Some(complaint) = misfit(annotation, mode, &keyed) {
            diagnostics.push(complaint);
            return None;
        }
        if annotation.is_full() && !annotation.agrees(&keyed) {
            diagnostics.push(
                Diagnostic::error(
                    codes::DIFFERENT_KEYS,
                    annotation.span,
                    "two registers are replicated with different arguments",
                )
                .with_secondary(keyed.span, "other arguments")
                .with_note(match mode {
                    Mode::Linearizable => "a packet waits for one flow at most",
                    Mode::Bounded => "a snapshot is of all arrays at one moment",
                })
                .with_help(match mode {
                    Mode::Linearizable => {
                        "give all replicated registers one key, or divide the program in two"
                    }
                    Mode::Bounded => "give all replicated registers one bound",
                }),
            );
            return None;
        }
    }
    let names = all.iter().map(|state| {
        (
            state.declaration.name.span,
            state.declaration.name.to_string(),
        )
    });
    Some(States {
        names: names.collect(),
        all,
        mode,
        keyed,
        local,
    })
}

/// Argument that does not fit the program's mode.
fn misfit(annotation: &Replicated, mode: Mode, keyed: &Replicated) -> Option<Diagnostic> {
    let wrong = |message: String| Diagnostic::error(codes::MODE, annotation.span, message);
    if annotation.mode.is_some_and(|own| own != mode) {
        let complaint = wrong("one program is replicated in two modes".to_owned())
            .with_secondary(keyed.span, "another mode")
            .with_help("replicate all registers in one mode, or divide the program in two");
        return Some(complaint);
    }
    match mode {
        Mode::Linearizable => {
            let parameter = annotation.of_snapshots()?;
            let message = format!("`{parameter}` is for bounded inconsistency");
            Some(wrong(message).with_help("write mode = \"bounded\", or leave it out"))
        }
        Mode::Bounded => annotation.of_flows().map(|parameter| {
            wrong(format!(
                "`{parameter}` is for registers of which each flow has an element"
            ))
            .with_note("snapshots are of whole arrays, whatever packets index them by")
            .with_help("leave it out, or write mode = \"linearizable\"")
        }),
    }
}

fn annotated(annotations: &[Annotation]) -> Option<&Annotation> {
    annotations.iter().find(|a| a.name.as_str() == REPLICATED)
}

pub(crate) fn not_replicable(span: Span, message: String, help: &str) -> Diagnostic {
    Diagnostic::error(codes::NOT_REPLICABLE, span, message).with_help(help)
}

/// All instances; annotated tables, actions and others are reported.
fn instances<'t>(tree: &'t Program, diagnostics: &mut Diagnostics) -> Vec<&'t Instantiation> {
    let mut found = Vec::new();
    for declaration in &tree.declarations {
        match declaration {
            Declaration::Instantiation(instance) => found.push(instance),
            Declaration::Parser(parser) => {
                for local in &parser.locals {
                    if let ParserLocal::Instantiation(instance) = local {
                        found.push(instance);
                    }
                }
            }
            Declaration::Control(control) => {
                for local in &control.locals {
                    match local {
                        ControlLocal::Instantiation(instance) => found.push(instance),
                        ControlLocal::Table(table) => {
                            if let Some(annotation) = annotated(&table.annotations) {
                                diagnostics.push(
                                    not_replicable(
                                        annotation.span,
                                        format!("`{}` is a table", table.name),
                                        "keep what packets change in a register, and look that up",
                                    )
                                    .with_note("entries are the control plane's: it gives them to every switch, and no packet changes them"),
                                );
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn state<'t>(
    instance: &'t Instantiation,
    annotation: Replicated,
    program: &ir::Program,
    diagnostics: &mut Diagnostics,
) -> Option<State<'t>> {
    let written = instance
        .annotations
        .iter()
        .find(|a| a.name.as_str() == "name");
    let name = written.and_then(Annotation::string);
    let name = name.as_deref().unwrap_or(instance.name.as_str());
    let name = name.trim_start_matches('.');
    let end = format!(".{name}");
    let found: Vec<&ir::Register> = program
        .registers
        .iter()
        .filter(|register| register.name == name || register.name.ends_with(&end))
        .collect();
    let [register] = found.as_slice() else {
        let (message, help) = if found.is_empty() {
            ("is in no block of the pipeline", "use it in ingress")
        } else {
            (
                "is there several times",
                "declare it at the top level, or its control's instance only once",
            )
        };
        diagnostics.push(not_replicable(
            annotation.span,
            format!("the register `{name}` {message}"),
            help,
        ));
        return None;
    };
    let (bits, signed) = match register.element {
        Type::Bits(bits) if bits > 0 => (bits, false),
        Type::Int(bits) => (bits, true),
        _ => {
            diagnostics.push(not_replicable(
                annotation.span,
                format!("the elements of `{name}` are no numbers"),
                "use a register<bit<W>>, or one for each member",
            ));
            return None;
        }
    };
    Some(State {
        declaration: instance,
        bits,
        signed,
        size: register.size,
        control_name: register.name.clone(),
        annotation,
    })
}
