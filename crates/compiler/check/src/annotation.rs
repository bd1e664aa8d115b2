//! Annotations: control-plane names, and the form in which the IR keeps them.

use crate::checker::Checker;
use crate::value::{Known, ValueKind};
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, Annotation, AnnotationBody, AnnotationTokenKind};

/// The annotation of that name, if there is one.
pub(crate) fn find<'t>(annotations: &'t [Annotation], name: &str) -> Option<&'t Annotation> {
    annotations
        .iter()
        .find(|annotation| annotation.name.as_str() == name)
}

/// True if an annotation has a structured body, in brackets.
pub(crate) fn is_structured(annotation: &Annotation) -> bool {
    matches!(
        annotation.body,
        AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_)
    )
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

impl<'a> Checker<'a> {
    /// The annotation as the IR keeps it.
    pub(crate) fn kept_annotation(&mut self, annotation: &'a Annotation) -> ir::Annotation {
        let body = match &annotation.body {
            AnnotationBody::Empty => ir::AnnotationBody::Empty,
            AnnotationBody::Unstructured(tokens) => {
                ir::AnnotationBody::Tokens(tokens.iter().map(kept_token).collect())
            }
            AnnotationBody::Expressions(exprs) => ir::AnnotationBody::Values(
                exprs
                    .iter()
                    .filter_map(|expr| self.annotation_value(expr))
                    .collect(),
            ),
            AnnotationBody::KeyValues(pairs) => ir::AnnotationBody::Pairs(
                pairs
                    .iter()
                    .filter_map(|pair| {
                        let value = self.annotation_value(&pair.value)?;
                        Some((pair.name.to_string(), value))
                    })
                    .collect(),
            ),
        };
        ir::Annotation {
            name: annotation.name.to_string(),
            body,
        }
    }

    /// A value of a structured annotation, known at compile time (spec §20.2).
    fn annotation_value(&mut self, expr: &'a tree::Expr) -> Option<ir::AnnotationValue> {
        let value = self.constant(expr, "a value in an annotation")?;
        match value.kind {
            ValueKind::Const(Known::Int(number)) => Some(ir::AnnotationValue::Int(number)),
            ValueKind::Const(Known::Bool(value)) => Some(ir::AnnotationValue::Bool(value)),
            ValueKind::Const(Known::Str(text)) => Some(ir::AnnotationValue::String(text)),
            ValueKind::Const(Known::Index(_)) => {
                let text = self.sources.snippet(expr.span).to_owned();
                Some(ir::AnnotationValue::String(text))
            }
            _ => None,
        }
    }
}

fn kept_token(token: &tree::AnnotationToken) -> ir::AnnotationToken {
    match &token.kind {
        AnnotationTokenKind::String(text) => ir::AnnotationToken::String(text.to_string()),
        AnnotationTokenKind::Number(literal) => {
            ir::AnnotationToken::Number(literal.value.clone(), token.text.to_string())
        }
        AnnotationTokenKind::Word | AnnotationTokenKind::Symbol => {
            ir::AnnotationToken::Other(token.text.to_string())
        }
    }
}
