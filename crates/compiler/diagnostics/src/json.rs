//! Diagnostics as JSON for tools.

use serde::Serialize;

use crate::{Diagnostic, Diagnostics, Position, SourceMap, Span};

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    #[serde(flatten)]
    place: JsonPlace<'a>,
    label: &'a str,
    secondary: Vec<JsonLabel<'a>>,
    notes: &'a [String],
    help: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonLabel<'a> {
    #[serde(flatten)]
    place: JsonPlace<'a>,
    message: &'a str,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end: JsonPosition,
    bytes: [u32; 2],
}

#[derive(Serialize)]
struct JsonPosition {
    line: u32,
    column: u32,
}

/// The kept diagnostics in order of place, one JSON object a line: `code`, `severity`,
/// `message`, the primary place with its `label`, `secondary` places with a `message` each,
/// `notes`, `help`.
///
/// A place is `file`, `line` and `column` of its first character, `end` with those past its
/// last, and `bytes`, the same two as offsets. Lines and columns count from 1, columns in
/// characters, and lines are those that `#line` directives say; offsets count from 0.
///
/// # Errors
/// Those of the JSON writer, which a text in memory does not cause.
pub fn to_json_lines(
    diagnostics: &Diagnostics,
    sources: &SourceMap,
) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    for diagnostic in diagnostics.sorted() {
        out.push_str(&to_json(diagnostic, sources)?);
        out.push('\n');
    }
    Ok(out)
}

/// One diagnostic as a JSON object on one line, as [`to_json_lines`] has it.
///
/// # Errors
/// As [`to_json_lines`].
pub fn to_json(diagnostic: &Diagnostic, sources: &SourceMap) -> Result<String, serde_json::Error> {
    serde_json::to_string(&JsonDiagnostic {
        code: diagnostic.code.id(),
        severity: diagnostic.severity.word(),
        message: &diagnostic.message,
        place: place(diagnostic.primary.span, sources),
        label: &diagnostic.primary.message,
        secondary: diagnostic
            .secondary
            .iter()
            .map(|label| JsonLabel {
                place: place(label.span, sources),
                message: &label.message,
            })
            .collect(),
        notes: &diagnostic.notes,
        help: diagnostic.help.as_deref(),
    })
}

fn place(span: Span, sources: &SourceMap) -> JsonPlace<'_> {
    let first = Position { line: 1, column: 1 };
    let (file, start, end) = sources.get(span.file).map_or(("", first, first), |file| {
        let (name, start) = file.place(span.start);
        (name, start, file.place(span.end).1)
    });
    JsonPlace {
        file,
        line: start.line,
        column: start.column,
        end: JsonPosition {
            line: end.line,
            column: end.column,
        },
        bytes: [span.start, span.end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn an_object_a_line() {
        let mut sources = SourceMap::new();
        let file = sources.add("a\"b.p4", "x\nyz", None);
        let mut list = Diagnostics::new();
        list.push(
            Diagnostic::error(Code::new("E0001", "t"), Span::new(file, 2, 4), "bad")
                .with_label("here")
                .with_secondary(Span::new(file, 0, 1), "there")
                .with_help("mend"),
        );
        assert_eq!(
            to_json_lines(&list, &sources).unwrap(),
            r#"{"code":"E0001","severity":"error","message":"bad","file":"a\"b.p4","line":2,"column":1,"end":{"line":2,"column":3},"bytes":[2,4],"label":"here","secondary":[{"file":"a\"b.p4","line":1,"column":1,"end":{"line":1,"column":2},"bytes":[0,1],"message":"there"}],"notes":[],"help":"mend"}"#.to_owned() + "\n"
        );
    }
}
