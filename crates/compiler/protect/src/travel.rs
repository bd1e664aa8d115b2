//! Values that travel with a packet to the store and back: decisions of ingress, which nothing
//! computes again when the packet is released.

use crate::codes;
use crate::path::type_of;
use crate::walk::Found;
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_ir::{Program, Type};

/// Fields of standard metadata by which ingress tells the traffic manager where to.
const DECISIONS: [(&str, u32); 3] = [("egress_spec", 9), ("mcast_grp", 16), ("priority", 3)];

/// One field of the header that travels.
pub(crate) struct Traveller {
    /// Its name in the header.
    pub(crate) field: String,
    pub(crate) bits: u32,
    /// Place that is saved and restored, in the terms of the wrapper: `meta.own.x`.
    pub(crate) place: String,
    /// Casts of the place to bits, and back.
    pub(crate) casts: Option<(String, String)>,
}

/// All that travels; what cannot is reported.
pub(crate) fn travellers(
    ingress: &Found,
    later: &[&Found],
    program: &Program,
    diagnostics: &mut Diagnostics,
) -> Vec<Traveller> {
    let mut out = Vec::new();
    for (field, bits) in DECISIONS {
        let place = format!("standard_metadata.{field}");
        if field != "priority" || ingress.writes.contains_key(&place) {
            out.push(Traveller {
                field: field.to_owned(),
                bits,
                place,
                casts: None,
            });
        }
    }
    for found in later {
        for (way, span) in &found.reads {
            if let Some(field) = way.strip_prefix("standard_metadata.") {
                let decided = DECISIONS.iter().any(|(name, _)| *name == field);
                if ingress.writes.contains_key(way) && !decided {
                    diagnostics.push(lost(*span, way));
                }
                continue;
            }
            if way != "meta" && !way.starts_with("meta.") {
                continue;
            }
            let place = format!("meta.own{}", &way["meta".len()..]);
            if out.iter().any(|other| other.place == place) {
                continue;
            }
            match traveller(way, place, program) {
                Some(mut traveller) => {
                    while out.iter().any(|other| other.field == traveller.field) {
                        traveller.field.push('_');
                    }
                    out.push(traveller);
                }
                None => diagnostics.push(lost(*span, way)),
            }
        }
    }
    out
}

fn traveller(way: &str, place: String, program: &Program) -> Option<Traveller> {
    let parts: Vec<String> = way.split('.').skip(1).map(str::to_owned).collect();
    let (bits, casts) = match type_of(program, program.pipeline.metadata, &parts)? {
        Type::Bits(bits) => (bits, None),
        Type::Int(bits) => (
            bits,
            Some((format!("(bit<{bits}>)"), format!("(int<{bits}>)"))),
        ),
        Type::Bool => (1, Some(("(bit<1>)".to_owned(), "(bool)".to_owned()))),
        _ => return None,
    };
    if place.contains("[*]") || bits == 0 {
        return None;
    }
    let field = parts.join("_").replace(['[', ']'], "_");
    Some(Traveller {
        field,
        bits,
        place,
        casts,
    })
}

fn lost(span: Span, way: &str) -> Diagnostic {
    Diagnostic::error(
        codes::METADATA_LOST,
        span,
        format!("egress reads `{way}`, which cannot travel with a packet that waits"),
    )
    .with_note("fields of metadata travel if they are bit<W>, int<W> or bool")
    .with_help("put what egress needs into fields of the metadata struct")
}
