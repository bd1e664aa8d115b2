//! Diagnostics as JSON for tools.

use serde::Serialize;

use crate::{Diagnostic, Diagnostics, Label, SourceMap};

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    primary: JsonLabel<'a>,
    secondary: Vec<JsonLabel<'a>>,
    notes: &'a [String],
    help: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonLabel<'a> {
    file: &'a str,
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    start_byte: u32,
    end_byte: u32,
    message: &'a str,
}

/// The kept diagnostics in order of place, one JSON object a line. Lines and columns count
/// from 1, columns in characters; bytes count from 0, the end excluded.
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
        primary: label(&diagnostic.primary, sources),
        secondary: diagnostic
            .secondary
            .iter()
            .map(|l| label(l, sources))
            .collect(),
        notes: &diagnostic.notes,
        help: diagnostic.help.as_deref(),
    })
}

fn label<'a>(label: &'a Label, sources: &'a SourceMap) -> JsonLabel<'a> {
    let span = label.span;
    let (file, start, end) = sources.get(span.file).map_or(("", None, None), |f| {
        (
            f.name(),
            Some(f.position(span.start)),
            Some(f.position(span.end)),
        )
    });
    JsonLabel {
        file,
        line: start.map_or(1, |p| p.line),
        column: start.map_or(1, |p| p.column),
        end_line: end.map_or(1, |p| p.line),
        end_column: end.map_or(1, |p| p.column),
        start_byte: span.start,
        end_byte: span.end,
        message: &label.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Span};

    #[test]
    fn an_object_a_line() {
        let mut sources = SourceMap::new();
        let file = sources.add("a\"b.p4", "x\nyz", None);
        let mut list = Diagnostics::new();
        list.push(
            Diagnostic::error(Code::new("E0001", "t"), Span::new(file, 2, 4), "bad")
                .with_label("here")
                .with_help("mend"),
        );
        assert_eq!(
            to_json_lines(&list, &sources).unwrap(),
            "{\"code\":\"E0001\",\"severity\":\"error\",\"message\":\"bad\",\"primary\":{\"file\":\"a\\\"b.p4\",\"line\":2,\"column\":1,\"end_line\":2,\"end_column\":3,\"start_byte\":2,\"end_byte\":4,\"message\":\"here\"},\"secondary\":[],\"notes\":[],\"help\":\"mend\"}\n"
        );
    }
}
