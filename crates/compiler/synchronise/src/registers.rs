//! The registers that are synchronised.

use crate::annotation::{SYNCED, Synced, read};
use crate::codes;
use crate::plan::LOCATIONS;
use crate::uses::{Declared, Uses};
use stateplane_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span, nearest};
use stateplane_ir::{self as ir, DataType, Type};
use stateplane_protect::edited::Input;
use stateplane_protect::names::is_own;
use stateplane_protect::pipeline::Pipeline;
use stateplane_syntax::tree::{Annotation, Instantiation};
use std::collections::BTreeMap;

/// A register of the program.
pub(crate) struct Register<'t> {
    pub(crate) declaration: &'t Instantiation,
    /// The parser or control that has it.
    pub(crate) owner: Option<&'t str>,
    /// As control planes call it.
    pub(crate) name: String,
    pub(crate) element: Element,
    pub(crate) bits: u32,
    pub(crate) size: u32,
    pub(crate) annotation: Option<Synced>,
}

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Bits,
    Int,
    Bool,
}

impl Register<'_> {
    /// Place of its name in the declaration, by which it is known.
    pub(crate) fn place(&self) -> Span {
        self.declaration.name.span
    }

    /// 64-bit words of an element, to a power of two.
    pub(crate) fn words(&self) -> u32 {
        self.bits.div_ceil(64).next_power_of_two()
    }
}

/// Which registers are synchronised.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'a> {
    /// Those annotated `@synced`; all, if none is.
    Annotated,
    /// Those with these names: names for control planes, or what these end with.
    Named(&'a [String]),
}

/// Finds them; at least one, or errors are reported.
pub(crate) fn find<'t>(
    input: &Input<'_>,
    pipeline: &Pipeline<'_>,
    uses: &Uses<'t>,
    selection: Selection<'_>,
    diagnostics: &mut Diagnostics,
) -> Vec<Register<'t>> {
    let paths = paths(pipeline, uses);
    let own = |of: &&Declared<'_>| is_of_program(input.sources, of.instance.span);
    let own: Vec<Declared<'t>> = uses.registers.iter().filter(own).copied().collect();
    let places: Vec<Vec<usize>> = own
        .iter()
        .map(|declared| places(declared, &paths, input.ir))
        .collect();
    let selected = match selection {
        Selection::Named(names) => named(&own, &places, input, names, diagnostics),
        Selection::Annotated => annotated(&own, &places),
    };
    let mut out = Vec::new();
    for at in selected {
        let annotation = synced(own[at].instance);
        let annotation = match annotation.map(|annotation| read(annotation, diagnostics)) {
            Some(None) => continue,
            annotation => annotation.flatten(),
        };
        match register(&own[at], &places[at], annotation, input) {
            Ok(register) => out.push(register),
            Err(complaint) => diagnostics.push(*complaint),
        }
    }
    let locations: u64 = out
        .iter()
        .map(|of| u64::from(of.size) * u64::from(of.words()))
        .sum();
    let widest = out.iter().max_by_key(|of| of.size);
    if let Some(register) = widest
        && locations > LOCATIONS
    {
        diagnostics.push(refused(
            register.place(),
            format!("{locations} locations are too many: {LOCATIONS} is the most"),
            "name the registers that are synchronised: --registers a,b",
        ));
    }
    if out.is_empty() && !diagnostics.has_errors() {
        let span = pipeline.main.name.span;
        diagnostics.push(
            Diagnostic::error(codes::NO_REGISTER, span, "no block of the program has a register")
                .with_help("keep in registers what the control plane is to see: register<bit<64>>(1024) packets;"),
        );
    }
    out
}

/// True if text is the program's, and not that of a library.
fn is_of_program(sources: &SourceMap, span: Span) -> bool {
    sources
        .get(span.file)
        .is_some_and(|file| is_own(file.name()))
}

fn synced(instance: &Instantiation) -> Option<&Annotation> {
    let mut annotations = instance.annotations.iter();
    annotations.find(|annotation| annotation.name.as_str() == SYNCED)
}

/// Those with an annotation; all that are in a block, if none has one.
fn annotated(own: &[Declared<'_>], places: &[Vec<usize>]) -> Vec<usize> {
    let all = 0..own.len();
    let chosen: Vec<usize> = all
        .clone()
        .filter(|&at| synced(own[at].instance).is_some())
        .collect();
    if chosen.is_empty() {
        return all.filter(|&at| !places[at].is_empty()).collect();
    }
    chosen
}

/// Those of these names.
fn named(
    own: &[Declared<'_>],
    places: &[Vec<usize>],
    input: &Input<'_>,
    names: &[String],
    diagnostics: &mut Diagnostics,
) -> Vec<usize> {
    let full = |at: usize| {
        let mut found = places[at].iter();
        found.find_map(|&place| input.ir.registers.get(place).map(|of| of.name.as_str()))
    };
    let mut chosen = Vec::new();
    for name in names {
        let end = format!(".{name}");
        let is = |at: &usize| full(*at).is_some_and(|it| it == name || it.ends_with(&end));
        let found: Vec<usize> = (0..own.len()).filter(is).collect();
        match found.as_slice() {
            [one] => {
                if !chosen.contains(one) {
                    chosen.push(*one);
                }
            }
            [] => {
                let known = (0..own.len()).filter_map(full);
                let message = format!("no register of the program is called `{name}`");
                let mut complaint = Diagnostic::error(codes::NO_REGISTER, Span::default(), message);
                if let Some(near) = nearest(name, known) {
                    complaint = complaint.with_help(format!("did you mean `{near}`?"));
                }
                diagnostics.push(complaint);
            }
            several => {
                let all: Vec<&str> = several.iter().filter_map(|&at| full(at)).collect();
                let message = format!("several registers are called `{name}`");
                diagnostics.push(
                    Diagnostic::error(codes::NO_REGISTER, Span::default(), message)
                        .with_help(format!("write one of {}", all.join(", "))),
                );
            }
        }
    }
    chosen.sort_unstable();
    chosen
}

/// Names of the instances of each control and parser, from the pipeline's blocks on.
fn paths(pipeline: &Pipeline<'_>, uses: &Uses<'_>) -> BTreeMap<String, Vec<String>> {
    /// Instances of instances that are followed: P4 has no recursion, so that this many are
    /// enough.
    const MOST: usize = 10_000;
    let blocks = [
        pipeline.parser.declaration.signature.name.as_str(),
        pipeline.verify.declaration.signature.name.as_str(),
        pipeline.ingress.declaration.signature.name.as_str(),
        pipeline.egress.declaration.signature.name.as_str(),
        pipeline.compute.declaration.signature.name.as_str(),
        pipeline.deparser.declaration.signature.name.as_str(),
    ];
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut open: Vec<(String, String)> = Vec::new();
    for block in blocks {
        open.push((block.to_owned(), block.to_owned()));
    }
    let mut steps = 0;
    while let Some((ty, path)) = open.pop() {
        let known = out.entry(ty.clone()).or_default();
        if known.contains(&path) || steps > MOST {
            continue;
        }
        known.push(path.clone());
        steps += 1;
        for (owner, name, inner) in &uses.instances {
            if *owner == ty {
                let path = match name.strip_prefix('.') {
                    Some(absolute) => absolute.to_owned(),
                    None => format!("{path}.{name}"),
                };
                open.push(((*inner).to_owned(), path));
            }
        }
    }
    out
}

/// Positions in the IR of the registers that a declaration makes.
fn places(
    declared: &Declared<'_>,
    paths: &BTreeMap<String, Vec<String>>,
    program: &ir::Program,
) -> Vec<usize> {
    let instance = declared.instance;
    let written = instance.annotations.iter();
    let mut written = written.filter(|annotation| annotation.name.as_str() == "name");
    let name = written.find_map(Annotation::string);
    let name = name.as_deref().unwrap_or(instance.name.as_str());
    let names: Vec<String> = match (name.strip_prefix('.'), declared.owner) {
        (Some(absolute), _) => vec![absolute.to_owned()],
        (None, None) => vec![name.to_owned()],
        (None, Some(owner)) => {
            let paths = paths.get(owner).into_iter().flatten();
            paths.map(|path| format!("{path}.{name}")).collect()
        }
    };
    let registers = program.registers.iter().enumerate();
    registers
        .filter(|(_, register)| names.contains(&register.name))
        .map(|(place, _)| place)
        .collect()
}

fn register<'t>(
    declared: &Declared<'t>,
    places: &[usize],
    annotation: Option<Synced>,
    input: &Input<'_>,
) -> Result<Register<'t>, Box<Diagnostic>> {
    let declaration = declared.instance;
    let name = declaration.name.as_str();
    let span = declaration.name.span;
    let complain = |message: String, help: &str| Err(Box::new(refused(span, message, help)));
    if let Some(replicated) = declaration
        .annotations
        .iter()
        .find(|annotation| annotation.name.as_str() == "replicated")
    {
        let message = format!("`{name}` is to be kept in the store");
        return Err(Box::new(
            Diagnostic::error(codes::REPLICATED, replicated.span, message)
                .with_note("`stateplane protect` makes fields of flows of replicated registers")
                .with_help("synchronise the others: --registers a,b; or protect the program first, and synchronise what comes out"),
        ));
    }
    let place = match places {
        [place] => *place,
        [] => {
            return complain(
                format!("the register `{name}` is in no block of the pipeline"),
                "use it, or do not name it",
            );
        }
        _ => {
            return complain(
                format!("the register `{name}` is there {} times", places.len()),
                "declare it at the top level, or make one instance of its control",
            );
        }
    };
    let (Some(found), Some(described)) = (
        input.ir.registers.get(place),
        input.interface.registers.get(&ir::RegisterId(place as u32)),
    ) else {
        return complain(
            format!("the register `{name}` has no description"),
            "declare it at the top level",
        );
    };
    let (element, bits) = match (found.element, &described.element) {
        (Type::Bits(bits), DataType::Bits(_)) if bits > 0 => (Element::Bits, bits),
        (Type::Int(bits), DataType::Int(_)) => (Element::Int, bits),
        (Type::Bool, DataType::Bool) => (Element::Bool, 1),
        _ => {
            return complain(
                format!("the elements of `{name}` are neither bit<W>, int<W> nor bool"),
                "use a register<bit<W>>, or one for each member",
            );
        }
    };
    let size = u32::try_from(found.size).unwrap_or(u32::MAX);
    if size == 0 {
        return complain(
            format!("the register `{name}` has no elements"),
            "give it one at least",
        );
    }
    Ok(Register {
        declaration,
        owner: declared.owner,
        name: found.name.clone(),
        element,
        bits,
        size,
        annotation,
    })
}

/// A register that cannot be synchronised.
pub(crate) fn refused(span: Span, message: String, help: &str) -> Diagnostic {
    Diagnostic::error(codes::NOT_SYNCHRONISED, span, message).with_help(help)
}
