//! Annotations in the text form.

use super::names;
use crate::{Annotation, AnnotationBody, AnnotationToken, AnnotationValue};

/// The annotation as `notes` in the grammar of [`crate::parse`] has it.
pub(super) fn text(annotation: &Annotation) -> String {
    let name = names::annotation(&annotation.name);
    match &annotation.body {
        AnnotationBody::Empty => format!("@{name}"),
        AnnotationBody::Tokens(tokens) => {
            let tokens: Vec<String> = tokens.iter().map(token).collect();
            format!("@{name}({})", tokens.join(" "))
        }
        AnnotationBody::Values(values) => {
            let values: Vec<String> = values.iter().map(value).collect();
            format!("@{name}[{}]", values.join(", "))
        }
        AnnotationBody::Pairs(pairs) => {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|(key, of)| format!("{} = {}", names::member(key), value(of)))
                .collect();
            format!("@{name}[{}]", pairs.join(", "))
        }
    }
}

fn token(token: &AnnotationToken) -> String {
    match token {
        AnnotationToken::String(text) => format!("{text:?}"),
        AnnotationToken::Number(number, text) => format!("{number}:{text:?}"),
        AnnotationToken::Other(text) => format!(".{text:?}"),
    }
}

fn value(value: &AnnotationValue) -> String {
    match value {
        AnnotationValue::String(text) => format!("{text:?}"),
        AnnotationValue::Int(number) => number.to_string(),
        AnnotationValue::Bool(value) => value.to_string(),
    }
}
