//! `@synced(kind = "…", …)`: how a register is synchronised.

use crate::codes;
use crate::plan::{Kind, Otherwise};
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_syntax::tree::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind};

/// The annotation's name.
pub(crate) const SYNCED: &str = "synced";

/// First distance that is not counted (rule 4 of docs/sync-protocol.md).
pub(crate) const UNBOUNDED: u64 = 1 << 40;

const FORM: &str = "write @synced, or @synced(kind = \"counter\", \"gauge\" or \"opaque\", group = \"name\", bound = greatest distance, 0 for an exact view, window = µs between two marks, age = µs without a poll of the engine beyond which packets are late, otherwise = \"go on\" or \"drop\")";

/// Arguments of an annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    /// `None`: as the program's writes say.
    pub(crate) kind: Option<Kind>,
    /// `None`: as the program's indices say.
    pub(crate) group: Option<String>,
    /// Greatest t.
    pub(crate) bound: Option<u64>,
    /// µs.
    pub(crate) window: Option<u64>,
    /// µs.
    pub(crate) age: Option<u64>,
    pub(crate) otherwise: Option<Otherwise>,
    pub(crate) span: Span,
}

/// Reads an annotation; `None` if it is wrong, which is reported.
pub(crate) fn read(annotation: &Annotation, diagnostics: &mut Diagnostics) -> Option<Synced> {
    let mut out = Synced {
        kind: None,
        group: None,
        bound: None,
        window: None,
        age: None,
        otherwise: None,
        span: annotation.span,
    };
    let tokens: &[AnnotationToken] = match &annotation.body {
        AnnotationBody::Empty => &[],
        AnnotationBody::Unstructured(tokens) => tokens,
        _ => {
            diagnostics.push(wrong(annotation.span, "it is written with `(…)`"));
            return None;
        }
    };
    let mut items = Vec::new();
    if !tokens.is_empty() {
        items.extend(tokens.split(|token| &*token.text == ","));
    }
    for item in items {
        if let Err(complaint) = argument(item, annotation.span, &mut out) {
            diagnostics.push(*complaint);
            return None;
        }
    }
    if out.otherwise.is_some() && out.age.is_none() {
        let what = "packets are late beyond an `age`, which is not named";
        diagnostics.push(wrong(annotation.span, what));
        return None;
    }
    Some(out)
}

fn argument(
    item: &[AnnotationToken],
    whole: Span,
    out: &mut Synced,
) -> Result<(), Box<Diagnostic>> {
    let [name, equals, value] = item else {
        let span = item.first().map_or(whole, |first| first.span);
        return Err(Box::new(wrong(span, "`name = value` is expected")));
    };
    let span = name.span.to(value.span);
    if &*equals.text != "=" {
        return Err(Box::new(wrong(span, "`name = value` is expected")));
    }
    let number = match &value.kind {
        AnnotationTokenKind::Number(literal) => u64::try_from(&literal.value).ok(),
        _ => None,
    };
    let text = match &value.kind {
        AnnotationTokenKind::String(text) => Some(&**text),
        _ => None,
    };
    let refused = |what| Box::new(wrong(span, what));
    match &*name.text {
        "kind" => {
            let kind = text.and_then(Kind::named);
            out.kind = Some(
                kind.ok_or_else(|| refused("a kind is \"counter\", \"gauge\" or \"opaque\""))?,
            );
        }
        "group" => {
            let group = text.filter(|text| !text.is_empty());
            let group = group.ok_or_else(|| refused("a group is a name in quotes"))?;
            out.group = Some(group.to_owned());
        }
        "bound" => {
            let bound = number.filter(|bound| *bound < UNBOUNDED);
            out.bound = Some(bound.ok_or_else(|| refused("a bound is a number below 2^40"))?);
        }
        "window" => {
            let window = number.filter(|window| (1..=u64::from(u32::MAX)).contains(window));
            out.window = Some(
                window
                    .ok_or_else(|| refused("a window is a number of microseconds, at least 1"))?,
            );
        }
        "age" => {
            let age = number.filter(|age| (1..=u64::from(u32::MAX)).contains(age));
            out.age =
                Some(age.ok_or_else(|| refused("an age is a number of microseconds, at least 1"))?);
        }
        "otherwise" => {
            let otherwise = text.and_then(Otherwise::named);
            out.otherwise = Some(
                otherwise.ok_or_else(|| refused("late packets are to \"go on\" or to \"drop\""))?,
            );
        }
        other => {
            let message = format!("`{other}` is none of its parameters");
            return Err(Box::new(wrong(name.span, &message)));
        }
    }
    Ok(())
}

fn wrong(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(codes::ANNOTATION, span, format!("@{SYNCED}: {what}")).with_help(FORM)
}
