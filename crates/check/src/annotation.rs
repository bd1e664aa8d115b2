//! Annotations: control-plane names, and the form in which the IR keeps them.

use stateplane_diagnostics::SourceMap;
use stateplane_ir as ir;
use stateplane_syntax::tree::{Annotation, AnnotationBody};

/// The annotation of that name, if there is one.
pub(crate) fn find<'t>(annotations: &'t [Annotation], name: &str) -> Option<&'t Annotation> {
    annotations
        .iter()
        .find(|annotation| annotation.name.as_str() == name)
}

/// The control-plane name: `@name` if given, absolute if that starts with a dot, within
/// `prefix` otherwise (spec §18.3).
pub(crate) fn full_name(prefix: &str, name: &str, annotations: &[Annotation]) -> String {
    let local = find(annotations, "name")
        .and_then(Annotation::string)
        .map_or(name, |text| text.as_ref());
    match local.strip_prefix('.') {
        Some(absolute) => absolute.to_owned(),
        None if prefix.is_empty() => local.to_owned(),
        None => format!("{prefix}.{local}"),
    }
}

/// The annotation as the IR keeps it: its body as text.
pub(crate) fn kept(sources: &SourceMap, annotation: &Annotation) -> ir::Annotation {
    let body = match (&annotation.body, annotation.string()) {
        (_, Some(text)) => text.to_string(),
        (AnnotationBody::Empty, _) => String::new(),
        (AnnotationBody::Unstructured(tokens), _) => {
            let mut body = String::new();
            for token in tokens {
                let glued = matches!(token.text.as_ref(), "," | "." | ")" | "]" | "(" | "[");
                let after_dot = body.ends_with(['.', '(', '[']);
                if !body.is_empty() && !glued && !after_dot {
                    body.push(' ');
                }
                body.push_str(&token.text);
            }
            body
        }
        (AnnotationBody::Expressions(exprs), _) => exprs
            .iter()
            .map(|expr| sources.snippet(expr.span))
            .collect::<Vec<_>>()
            .join(", "),
        (AnnotationBody::KeyValues(pairs), _) => pairs
            .iter()
            .map(|pair| sources.snippet(pair.span))
            .collect::<Vec<_>>()
            .join(", "),
    };
    ir::Annotation {
        name: annotation.name.to_string(),
        body,
    }
}
