//! Makes v1model programs fault-tolerant: annotated P4 source in, P4 source out that keeps
//! the annotated registers in the store, through `p4/lib/replication.p4`.
//!
//! The program is not printed anew but edited: blocks of its own stay as they are, with
//! comments and macros, and get others around them. A replicated register becomes a field
//! of the flow's state, and its reads and writes become assignments. What the program must
//! not do is refused with a code and a reason ([`codes`]); `docs/protect.md` is for users.
//!
//! * [`mod@edited`] reads and checks a program before, and compiles it after;
//! * [`mod@walk`] follows values through ingress, as packets take it;
//! * [`mod@partition`] compares what indices and the key are made of;
//! * [`mod@restrict`] and [`mod@travel`] look for what a packet would lose while it waits;
//! * [`mod@snapshot`] looks at arrays of which snapshots are kept instead, in
//!   bounded-inconsistency mode, whose packets do not wait;
//! * [`mod@emit`] writes the text.

mod annotation;
pub mod codes;
pub mod edit;
pub mod edited;
mod emit;
mod extracts;
pub mod names;
pub mod origin;
mod partition;
mod path;
pub mod pipeline;
mod restrict;
mod snapshot;
mod state;
mod travel;
pub mod walk;

use annotation::{Mode, Reader};
use edited::{Edited, Input, ROOTS};
use names::Names;
use partition::Fields;
use path::Roots;
use pipeline::Pipeline;
use stateplane_diagnostics::{Diagnostic, Diagnostics};
use stateplane_ir as ir;
use stateplane_syntax::tree::ControlDecl;
use stateplane_syntax::{FileLoader, Options};
use walk::{Found, Walk};

/// Maximum width of a key in bits: a flow's 128 without those of its class.
pub const KEY_BITS: u32 = 120;

/// Most bits of state of a flow: what one field of a header may have.
pub const STATE_BITS: u32 = 2048;

/// A register array of which snapshots are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// The register of the original, as control planes call it.
    pub register: String,
    /// Number of elements.
    pub elements: u32,
    /// The register of the protected program that has both copies of each element: copy `c`
    /// of element `e` at `2 * e + c`.
    pub copies: String,
    /// The register that tells of each element which copy was written last.
    pub updated: String,
}

/// Requirements of a program in bounded-inconsistency mode on its switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// Elements of a snapshot: as many as the largest array has.
    pub elements: u32,
    /// From one snapshot to the next (T_snap), in milliseconds.
    pub period: u32,
    /// Greatest age of the newest snapshot that is kept (ε), in milliseconds.
    pub bound: u32,
    /// Frames that the packet generator gives in a millisecond.
    pub batch: u32,
    /// The arrays, in the order of their values in a record.
    pub arrays: Vec<Array>,
}

/// Settings that the store needs for a protected program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// First byte of its keys, from 1.
    pub id: u8,
    /// Bytes of state of a flow.
    pub state_length: u16,
    /// The lease period that the program asks for, in milliseconds.
    pub lease_period: Option<u32>,
    /// In bounded-inconsistency mode, what the switches have to know.
    pub snapshots: Option<Snapshots>,
}

/// A program that is protected and what to tell the store, or why it is not.
pub type Protected = Edited<Class>;

/// Protects the program whose main file is `main_file`. `options` have the folders of the
/// library, as for [`stateplane_check::compile`].
#[must_use]
pub fn protect(loader: &dyn FileLoader, main_file: &str, options: &Options) -> Protected {
    edited::edit(loader, main_file, options, "protected", protected)
}

fn protected(input: &Input<'_>, diagnostics: &mut Diagnostics) -> Option<(String, Class)> {
    if let Some(span) = input.includes("replication.p4") {
        diagnostics.push(
            Diagnostic::error(
                codes::PROGRAM_FORM,
                span,
                "the program uses the replication library already",
            )
            .with_help("protect the program that this one was made of"),
        );
        return None;
    }
    let pipeline = match pipeline::find(input.tree) {
        Ok(pipeline) => pipeline,
        Err(diagnostic) => {
            diagnostics.push(*diagnostic);
            return None;
        }
    };
    let reader = Reader::new(input.sources, input.tree);
    let states = state::find(input.tree, &reader, input.ir, diagnostics)?;
    let replicated = states.names.clone();
    let ingress = input.walk(pipeline.ingress.declaration, &ROOTS, &replicated);
    let egress = input.walk(pipeline.egress.declaration, &ROOTS, &replicated);
    let verify = input.walk(pipeline.verify.declaration, &ROOTS, &replicated);
    let compute = input.walk(pipeline.compute.declaration, &ROOTS, &replicated);
    let deparser = input.walk(
        pipeline.deparser.declaration,
        &["packet", "hdr"],
        &replicated,
    );
    let extracts = extracts::extracts(input.tree, pipeline.parser.declaration);
    if ingress.exhausted {
        diagnostics.push(
            Diagnostic::error(
                codes::PROGRAM_FORM,
                pipeline.ingress.declaration.signature.name.span,
                "ingress is too large to be followed",
            )
            .with_help("make it smaller"),
        );
        return None;
    }
    let waits = states.mode == Mode::Linearizable;
    if waits {
        restrict::effects(&ingress, &[&egress, &compute, &deparser], diagnostics);
    }
    restrict::outside(
        &[&egress, &verify, &compute, &deparser],
        &states,
        diagnostics,
    );
    restrict::accesses(&ingress, diagnostics);
    if waits {
        restrict::headers(&extracts, &ingress, &deparser, input.ir, diagnostics);
        restrict::parser(&extracts.standard, diagnostics);
    }
    restrict::warnings(&ingress, &states, diagnostics);
    if ingress.accesses.is_empty() && !diagnostics.has_errors() {
        diagnostics.push(
            Diagnostic::error(
                codes::NOT_REPLICABLE,
                states.keyed.span,
                "no packet uses the replicated registers in ingress",
            )
            .with_help("use them in ingress, or drop the annotation"),
        );
    }
    let names = Names::new(names::of_program(input.sources));
    let (fields, travellers, plan) = match states.mode {
        Mode::Linearizable => {
            let fields = fields(input, &pipeline, &states, &ingress, diagnostics);
            let later = [&egress, &compute];
            let travellers = travel::travellers(&ingress, &later, input.ir, diagnostics);
            (fields, travellers, None)
        }
        Mode::Bounded => {
            let plan = snapshot::Plan::new(&states, &names, diagnostics);
            (Some(Fields::default()), Vec::new(), plan)
        }
    };
    if diagnostics.has_errors() {
        return None;
    }
    let fields = fields?;
    let emitted = emit::Emit {
        input,
        pipeline: &pipeline,
        states: &states,
        fields: &fields,
        plan: plan.as_ref(),
        names,
        ingress: &ingress,
        egress: &egress,
        travellers: &travellers,
    };
    emitted.text(diagnostics)
}

/// The parameters of ingress, with their types.
pub(crate) fn roots<'a>(input: &Input<'a>, pipeline: &Pipeline<'_>) -> Roots<'a> {
    let types = [
        input.ir.pipeline.headers,
        input.ir.pipeline.metadata,
        ir::Type::Struct(input.ir.pipeline.standard_metadata),
    ];
    let params = &pipeline.ingress.declaration.signature.params;
    let params = params.iter().map(|param| param.name.to_string());
    Roots {
        program: input.ir,
        params: params.zip(types).collect(),
    }
}

/// Fields kept of a flow, if the state is partitioned by the key; otherwise the reason is
/// reported.
fn fields(
    input: &Input<'_>,
    pipeline: &Pipeline<'_>,
    states: &state::States<'_>,
    ingress: &Found,
    diagnostics: &mut Diagnostics,
) -> Option<Fields> {
    let roots = roots(input, pipeline);
    let keyed = &states.keyed;
    let key = keyed.key.as_deref().unwrap_or_default();
    let reverse = keyed.reverse.as_deref().unwrap_or_default();
    for parts in [key, reverse] {
        let mut total = 0u32;
        for part in parts {
            match roots.width(&part.expr) {
                Some(bits) => total = total.saturating_add(bits),
                None => {
                    diagnostics.push(
                        Diagnostic::error(
                            codes::KEY_WIDTH,
                            part.span,
                            format!("`{}` is no bit<W> of a width that can be told", part.text),
                        )
                        .with_note(
                            "a key is made of fields of what ingress is given, as it is given it",
                        )
                        .with_help(
                            "name fields by the parameters of ingress, and cast others: (bit<8>)x",
                        ),
                    );
                    return None;
                }
            }
        }
        if total > KEY_BITS {
            diagnostics.push(
                Diagnostic::error(
                    codes::KEY_WIDTH,
                    keyed.span,
                    format!("the key has {total} bits; {KEY_BITS} is the most"),
                )
                .with_help("leave out what the other fields tell, or parts of long addresses"),
            );
            return None;
        }
    }
    if !reverse.is_empty() && reverse.len() != key.len() {
        diagnostics.push(
            Diagnostic::error(
                codes::ANNOTATION,
                keyed.span,
                "`reverse` has not as many parts as `key`",
            )
            .with_help("write the same fields, exchanged"),
        );
        return None;
    }
    let control = pipeline.ingress.declaration;
    let key = partition::Key {
        parts: key,
        values: key
            .iter()
            .map(|part| key_value(input, part, control, states))
            .collect(),
        reverse: reverse
            .iter()
            .map(|part| key_value(input, part, control, states))
            .collect(),
        span: keyed.span,
    };
    let fields = partition::fields(&key, ingress, states, diagnostics)?;
    let total: u64 = fields.all.iter().map(|field| u64::from(field.bits)).sum();
    if total > u64::from(STATE_BITS) {
        diagnostics.push(state::not_replicable(
            keyed.span,
            format!("the state of a flow has {total} bits; {STATE_BITS} is the most"),
            "replicate fewer or narrower registers",
        ));
        return None;
    }
    Some(fields)
}

fn key_value(
    input: &Input<'_>,
    part: &annotation::Part,
    control: &ControlDecl,
    states: &state::States<'_>,
) -> origin::Value {
    let mut walk = Walk::new(input.sources, input.tree, &states.names);
    walk.key(&part.expr, control, &ROOTS)
}
