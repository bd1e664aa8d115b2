//! Restrictions on a program whose packets wait for the store.

use crate::annotation::Mode;
use crate::codes;
use crate::extracts::Extracts;
use crate::state::States;
use crate::walk::Found;
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_ir::{Program, Type};
use std::collections::BTreeMap;

/// The header that a path leads into: `ipv4` of `hdr.ipv4.srcAddr`.
fn header_of(way: &str) -> Option<&str> {
    let rest = way.strip_prefix("hdr.")?;
    rest.split(['.', '[']).next()
}

/// Effects of ingress and of others, which would be seen before the state is kept.
pub(crate) fn effects(ingress: &Found, others: &[&Found], diagnostics: &mut Diagnostics) {
    for (span, name) in &ingress.effects {
        diagnostics.push(effect(*span, name));
    }
    for found in others {
        for (span, name) in &found.effects {
            if name != "exit" && name != "truncate" {
                diagnostics.push(effect(*span, name));
            }
        }
    }
}

fn effect(span: Span, name: &str) -> Diagnostic {
    let (message, help) = match name {
        "exit" => (
            "`exit` ends ingress before what was written is sent to the store",
            "use `return`, or conditions",
        ),
        "truncate" => (
            "a packet is cut, and with it the message to the store that carries it",
            "cut packets after they have left the switch",
        ),
        "digest" => (
            "the control plane is told of a packet whose state is not kept yet",
            "let the control plane read the state from the store",
        ),
        _ => (
            "a packet is copied or sent again before its state is kept",
            "use a multicast group, which is chosen anew when the packet is released",
        ),
    };
    Diagnostic::error(codes::EARLY_EFFECT, span, message)
        .with_label(format!("`{name}`"))
        .with_help(help)
}

/// Replicated state outside of ingress.
pub(crate) fn outside(others: &[&Found], states: &States<'_>, diagnostics: &mut Diagnostics) {
    for found in others {
        for access in &found.accesses {
            let name = states
                .names
                .get(&access.register)
                .map_or("", String::as_str);
            diagnostics.push(
                Diagnostic::error(
                    codes::OUTSIDE_INGRESS,
                    access.span,
                    format!("`{name}` is replicated and used outside of ingress"),
                )
                .with_note(match states.mode {
                    Mode::Linearizable => {
                        "a packet gets there when it is released, when its state has been sent"
                    }
                    Mode::Bounded => {
                        "a packet gets there some time after ingress, and a snapshot may begin between"
                    }
                })
                .with_help("use the register in ingress"),
            );
        }
    }
}

/// Accesses of ingress that cannot be rewritten.
pub(crate) fn accesses(found: &Found, diagnostics: &mut Diagnostics) {
    for access in &found.accesses {
        let message = if access.in_free_action {
            "replicated state is used in an action outside of controls"
        } else if access.statement.is_none() {
            "a call on replicated state is no statement by itself"
        } else {
            continue;
        };
        diagnostics.push(
            Diagnostic::error(codes::PROGRAM_FORM, access.span, message)
                .with_help("move it into the control that declares the register"),
        );
    }
}

/// Registers that stay with the switch, and state that holds times.
pub(crate) fn warnings(found: &Found, states: &States<'_>, diagnostics: &mut Diagnostics) {
    for instance in &states.local {
        if found
            .local
            .iter()
            .any(|(span, writes)| *writes && *span == instance.name.span)
        {
            diagnostics.push(
                Diagnostic::warning(
                    codes::LOCAL_STATE,
                    instance.name.span,
                    format!("`{}` is not replicated", instance.name),
                )
                .with_note("what it holds is lost with the switch")
                .with_help("annotate it @replicated if packets rely on it"),
            );
        }
    }
    const CLOCK: &str = "standard_metadata.ingress_global_timestamp";
    for access in found.accesses.iter().filter(|access| access.writes) {
        let mut leaves = access.value.iter().flat_map(|origin| &origin.leaves);
        let is_time = leaves.any(
            |leaf| matches!(leaf, crate::origin::Leaf::Field(field) if field.starts_with(CLOCK)),
        );
        if is_time {
            diagnostics.push(
                Diagnostic::warning(
                    codes::LOCAL_CLOCK,
                    access.operand,
                    "a time of this switch's clock is kept",
                )
                .with_note("another switch compares it with its own clock, which may begin anywhere")
                .with_help("give the switches a common clock, or let a jump of the time only cost accuracy"),
            );
        }
    }
}

/// Reports headers that a packet would lose on its path to the store, and headers that the parser
/// would read differently when it comes back.
pub(crate) fn headers(
    extracts: &Extracts,
    ingress: &Found,
    deparser: &Found,
    program: &Program,
    diagnostics: &mut Diagnostics,
) {
    let fields: Vec<&str> = match program.pipeline.headers {
        Type::Struct(id) => {
            let def = program.structs.get(id.index());
            let fields = def.map(|def| def.fields.iter().map(|field| field.name.as_str()));
            fields.into_iter().flatten().collect()
        }
        _ => Vec::new(),
    };
    let mut emitted: Vec<&str> = Vec::new();
    for way in &deparser.emitted {
        match header_of(way) {
            Some(header) => emitted.push(header),
            None => emitted.extend(&fields),
        }
    }
    let place = |header: &str| emitted.iter().position(|emitted| *emitted == header);
    let help = "emit all headers that the parser extracts, in the same order";
    for (way, span) in extracts.all() {
        let header = header_of(way);
        if header.is_none_or(|header| place(header).is_none()) {
            let what = header.map_or("these bytes are".to_owned(), |h| format!("`{h}` is"));
            diagnostics.push(
                Diagnostic::error(
                    codes::HEADER_LOST,
                    *span,
                    format!("{what} extracted, but not emitted"),
                )
                .with_note("a packet that waits travels to the store as it is deparsed")
                .with_help(help),
            );
        }
    }
    for span in &extracts.advances {
        diagnostics.push(
            Diagnostic::error(
                codes::HEADER_LOST,
                *span,
                "these bytes are passed over, and not emitted",
            )
            .with_help("extract and emit them"),
        );
    }
    for ((first, _), (second, span)) in extracts.ordered() {
        let places = (header_of(first), header_of(second));
        if let (Some(one), Some(other)) = places
            && one != other
            && let (Some(before), Some(after)) = (place(one), place(other))
            && before > after
        {
            diagnostics.push(
                Diagnostic::error(
                    codes::HEADER_LOST,
                    *span,
                    format!("`{other}` is extracted after `{one}`, but emitted before it"),
                )
                .with_note("a packet that waits travels to the store as it is deparsed")
                .with_help(help),
            );
            break;
        }
    }
    for (way, span) in &ingress.validated {
        let header = header_of(way);
        let known = extracts
            .all()
            .any(|(extracted, _)| header_of(extracted) == header);
        if header.is_some() && !known {
            diagnostics.push(
                Diagnostic::error(
                    codes::HEADER_LOST,
                    *span,
                    format!("`{way}` is added, and the parser does not know it"),
                )
                .with_note("a packet that waited is parsed again before egress")
                .with_help("let the parser extract it where it occurs, or add it in egress"),
            );
        }
    }
}

/// Reads of standard metadata by the parser, which are reported.
pub(crate) fn parser(standard: &BTreeMap<String, Span>, diagnostics: &mut Diagnostics) {
    for (field, span) in standard {
        diagnostics.push(
            Diagnostic::error(
                codes::PARSER_INPUT,
                *span,
                format!("the parser looks at `{field}`"),
            )
            .with_note("a packet that waited comes from the store's port, in another frame")
            .with_help("decide in ingress, where it has its first value"),
        );
    }
}
