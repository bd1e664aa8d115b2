//! Changes of a source text.

use stateplane_diagnostics::{FileId, SourceMap, Span};
use std::collections::BTreeMap;

/// Replacements, by the place that they replace.
#[derive(Default)]
pub struct Edits {
    by_place: BTreeMap<Span, String>,
}

impl Edits {
    /// Puts `text` in the place of what is at `span`.
    pub fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.by_place.insert(span, text.into());
    }

    /// Puts text in front of what is at a place; after what was put there before.
    pub fn insert(&mut self, at: Span, text: &str) {
        self.by_place
            .entry(at.at_start())
            .or_default()
            .push_str(text);
    }

    /// The text of `file` with all changes, with included files in the places of the
    /// directives that include them where `inline` says so; or the place of a change that
    /// lies within another, as macros make them.
    ///
    /// # Errors
    ///
    /// The place of the change that cannot be made.
    pub fn apply(
        &self,
        sources: &SourceMap,
        file: FileId,
        inline: &dyn Fn(FileId) -> bool,
    ) -> Result<String, Span> {
        let Some(source) = sources.get(file) else {
            return Ok(String::new());
        };
        let text = source.text();
        let mut pieces: Vec<(Span, String)> = self
            .by_place
            .iter()
            .filter(|(span, _)| span.file == file)
            .map(|(span, text)| (*span, text.clone()))
            .collect();
        for (inner, included) in sources.files() {
            if let Some(directive) = included.included_from()
                && directive.file == file
                && inline(inner)
            {
                let line = line_of(text, directive);
                pieces.push((line, self.apply(sources, inner, inline)?));
            }
        }
        pieces.sort_by_key(|(span, _)| (span.start, span.end));
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (span, piece) in &pieces {
            let (start, end) = (span.start as usize, span.end as usize);
            let Some(kept) = text.get(at..start) else {
                return Err(*span);
            };
            out.push_str(kept);
            out.push_str(piece);
            at = end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Ok(out)
    }
}

/// The whole line of a directive, without its end.
fn line_of(text: &str, directive: Span) -> Span {
    let (start, end) = (directive.start as usize, directive.end as usize);
    let begin = text.get(..start).and_then(|front| front.rfind('\n'));
    let stop = text.get(end..).and_then(|rest| rest.find('\n'));
    Span::new(
        directive.file,
        begin.map_or(0, |at| at as u32 + 1),
        stop.map_or(text.len(), |at| end + at) as u32,
    )
}

/// Start of the program, behind comments at the front of the text.
pub fn after_comments(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        let start = text.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at = start + trimmed.find('\n').map_or(trimmed.len(), |end| end + 1);
        } else if let Some(end) = trimmed.strip_prefix("/*").and_then(|rest| rest.find("*/")) {
            at = start + end + 4;
        } else {
            return start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_made_in_order_and_included_texts_take_their_place() {
        let mut sources = SourceMap::new();
        let main = sources.add("main", "a\n#include \"b\"\nc d\n", None);
        let inner = sources.add("b", "x y", Some(Span::new(main, 11, 14)));
        let mut edits = Edits::default();
        edits.replace(Span::new(main, 15, 16), "C");
        edits.insert(Span::new(main, 17, 18), "very ");
        edits.insert(Span::new(main, 17, 18), "dear ");
        edits.replace(Span::new(inner, 0, 1), "X");
        let text = edits.apply(&sources, main, &|_| true);
        assert_eq!(text.as_deref(), Ok("a\nX y\nC very dear d\n"));
        let text = edits.apply(&sources, main, &|_| false);
        assert_eq!(text.as_deref(), Ok("a\n#include \"b\"\nC very dear d\n"));
        edits.replace(Span::new(main, 14, 17), "twice");
        assert!(edits.apply(&sources, main, &|_| false).is_err());
    }

    #[test]
    fn comments_in_front_stay_in_front() {
        assert_eq!(after_comments("// a\n/* b\n */\n\n#include"), 15);
        assert_eq!(after_comments("x // a"), 0);
        assert_eq!(after_comments("/* open"), 0);
        assert_eq!(after_comments("// only"), 7);
    }
}
