//! Annotations in P4Info: kept, or turned into fields.

use crate::error::GenerateError;
use crate::proto;
use num_traits::ToPrimitive;
use stateplane_ir::{Annotation, AnnotationBody, AnnotationToken, AnnotationValue};

/// Unstructured annotations that P4Info has fields for.
const FIELDS: [&str; 4] = ["name", "id", "brief", "description"];

/// Annotations as P4Info keeps them: those without brackets or with parentheses as text,
/// those with square brackets as messages.
pub(crate) struct Kept {
    pub(crate) unstructured: Vec<String>,
    pub(crate) structured: Vec<proto::StructuredAnnotation>,
}

/// Annotations that are kept, without the unstructured ones named in `except`.
pub(crate) fn kept(annotations: &[Annotation], except: &[&str]) -> Kept {
    let mut kept = Kept {
        unstructured: Vec::new(),
        structured: Vec::new(),
    };
    for annotation in annotations {
        match structured(annotation) {
            Some(message) => kept.structured.push(message),
            None => {
                let name = annotation.name.as_str();
                if !FIELDS.contains(&name) && !except.contains(&name) {
                    kept.unstructured.push(with_lines(&annotation.to_string()));
                }
            }
        }
    }
    kept
}

/// The text of an annotation in which line breaks in strings are what they are, not `\\n`.
fn with_lines(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            lines.push(character);
            continue;
        }
        // Every backslash of a string has another one before it.
        match characters.next() {
            Some('n') => lines.push('\n'),
            other => lines.extend([character].into_iter().chain(other)),
        }
    }
    lines
}

fn structured(annotation: &Annotation) -> Option<proto::StructuredAnnotation> {
    use proto::structured_annotation::Body;
    let body = match &annotation.body {
        AnnotationBody::Empty | AnnotationBody::Tokens(_) => return None,
        AnnotationBody::Values(values) => Body::ExpressionList(proto::ExpressionList {
            expressions: values.iter().map(expression).collect(),
        }),
        AnnotationBody::Pairs(pairs) => Body::KvPairList(proto::KeyValuePairList {
            kv_pairs: pairs
                .iter()
                .map(|(key, value)| proto::KeyValuePair {
                    key: key.clone(),
                    value: Some(expression(value)),
                })
                .collect(),
        }),
    };
    Some(proto::StructuredAnnotation {
        name: annotation.name.clone(),
        body: Some(body),
        source_location: None,
    })
}

/// A number that does not fit becomes a string, as the reference compiler advises.
fn expression(value: &AnnotationValue) -> proto::Expression {
    use proto::expression::Value;
    let value = match value {
        AnnotationValue::String(text) => Value::StringValue(text.clone()),
        AnnotationValue::Bool(value) => Value::BoolValue(*value),
        AnnotationValue::Int(number) => match number.to_i64() {
            Some(number) => Value::Int64Value(number),
            None => Value::StringValue(number.to_string()),
        },
    };
    proto::Expression { value: Some(value) }
}

/// From `@brief` and `@description`, if there is one of them.
pub(crate) fn documentation(annotations: &[Annotation]) -> Option<proto::Documentation> {
    let text = |name| Annotation::find(annotations, name).and_then(Annotation::string);
    let (brief, description) = (text("brief"), text("description"));
    if brief.is_none() && description.is_none() {
        return None;
    }
    Some(proto::Documentation {
        brief: brief.unwrap_or_default().to_owned(),
        description: description.unwrap_or_default().to_owned(),
    })
}

/// True if there is an annotation of that name.
pub(crate) fn has(annotations: &[Annotation], name: &str) -> bool {
    Annotation::find(annotations, name).is_some()
}

/// The number of `@id`.
pub(crate) fn written_id(
    owner: &str,
    annotations: &[Annotation],
) -> Result<Option<u32>, GenerateError> {
    let Some(id) = Annotation::find(annotations, "id") else {
        return Ok(None);
    };
    match id.integer().and_then(ToPrimitive::to_u32) {
        Some(number) if number > 0 => Ok(Some(number)),
        _ => Err(GenerateError::InvalidId {
            name: owner.to_owned(),
        }),
    }
}

/// The pairs of `@name(key = value, …)` or `@name[key = value, …]`.
pub(crate) fn pairs(
    owner: &str,
    annotation: &Annotation,
) -> Result<Vec<(String, AnnotationValue)>, GenerateError> {
    let tokens = match &annotation.body {
        AnnotationBody::Pairs(pairs) => return Ok(pairs.clone()),
        AnnotationBody::Empty => return Ok(Vec::new()),
        AnnotationBody::Tokens(tokens) => tokens,
        AnnotationBody::Values(_) => {
            return Err(wrong(owner, annotation, "expected key = value pairs"));
        }
    };
    let comma = AnnotationToken::Other(",".to_owned());
    tokens
        .split(|token| *token == comma)
        .map(|pair| match pair {
            [
                AnnotationToken::Other(key),
                AnnotationToken::Other(equals),
                value,
            ] if equals == "=" => {
                let value = match value {
                    AnnotationToken::String(text) => AnnotationValue::String(text.clone()),
                    AnnotationToken::Number(number, _) => AnnotationValue::Int(number.clone()),
                    AnnotationToken::Other(word) => AnnotationValue::Bool(word == "true"),
                };
                Ok((key.clone(), value))
            }
            _ => Err(wrong(owner, annotation, "expected key = value pairs")),
        })
        .collect()
}

/// An annotation that is not written as P4Runtime says.
pub(crate) fn wrong(owner: &str, annotation: &Annotation, expected: &'static str) -> GenerateError {
    GenerateError::Annotation {
        name: owner.to_owned(),
        annotation: annotation.to_string(),
        expected,
    }
}
