//! Diagnostics as text for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::{Diagnostic, Diagnostics, FileId, Severity, SourceFile, SourceMap, Span};

/// Markup of text for a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// ANSI escape sequences (ECMA-48, select graphic rendition).
    Ansi,
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const BLUE: &str = "\x1b[1;34m";
const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// The most characters of a source line that are shown.
const MAX_WIDTH: usize = 160;
/// The most including files that are shown.
const MAX_CHAIN: usize = 4;
/// Text shown for a tab.
const TAB: &str = "    ";

impl Color {
    fn paint(self, style: &str, text: &str) -> String {
        match self {
            Self::Ansi if !text.is_empty() => format!("{style}{text}{RESET}"),
            _ => text.to_owned(),
        }
    }
}

/// A label on one line of a file.
struct Mark<'a> {
    /// First character, counted from 0.
    from: usize,
    /// Number of characters, at least 1.
    length: usize,
    message: &'a str,
    primary: bool,
}

/// One diagnostic with the source lines that it is about:
///
/// ```text
/// error[E0301]: unknown name `x`
///  --> main.p4:3:5
///   |
/// 3 |     x = 1;
///   |     ^ not declared
///   |
///   = help: declare it
/// ```
#[must_use]
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, color: Color) -> String {
    let mut out = String::new();
    let style = match diagnostic.severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
    };
    let head = format!("{}[{}]", diagnostic.severity.word(), diagnostic.code);
    let _ = writeln!(
        out,
        "{}{}",
        color.paint(style, &head),
        color.paint(BOLD, &format!(": {}", diagnostic.message))
    );

    // The primary file first, then the others in order.
    let mut files: Vec<FileId> = vec![diagnostic.primary.span.file];
    for label in &diagnostic.secondary {
        if !files.contains(&label.span.file) {
            files.push(label.span.file);
        }
    }
    let gutter = gutter_width(diagnostic, sources);
    let blank = " ".repeat(gutter);
    for (i, &id) in files.iter().enumerate() {
        let Some(file) = sources.get(id) else {
            continue;
        };
        let first = if i == 0 {
            Some(diagnostic.primary.span)
        } else {
            diagnostic
                .secondary
                .iter()
                .map(|l| l.span)
                .find(|s| s.file == id)
        };
        let arrow = if i == 0 { "-->" } else { ":::" };
        if let Some(span) = first {
            let place = place(file, span.start);
            let _ = writeln!(out, "{blank}{} {place}", color.paint(BLUE, arrow));
        }
        let chain = sources.include_chain(id);
        for from in chain.iter().take(MAX_CHAIN) {
            if let Some(including) = sources.get(from.file) {
                let place = place(including, from.start);
                let arrow = color.paint(BLUE, ":::");
                let _ = writeln!(out, "{blank}{arrow} included from {place}");
            }
        }
        if chain.len() > MAX_CHAIN {
            let more = chain.len() - MAX_CHAIN;
            let _ = writeln!(out, "{blank}{} and {more} more", color.paint(BLUE, ":::"));
        }
        render_lines(&mut out, diagnostic, file, id, gutter, style, color);
    }
    for note in &diagnostic.notes {
        render_note(&mut out, &blank, "note", note, color);
    }
    if let Some(help) = &diagnostic.help {
        render_note(&mut out, &blank, "help", help, color);
    }
    out
}

/// All that a list keeps, in order of place, with blank lines between, and at the end how
/// many errors and warnings there are. Empty for an empty list.
#[must_use]
pub fn render_all(diagnostics: &Diagnostics, sources: &SourceMap, color: Color) -> String {
    let mut out = String::new();
    if diagnostics.is_empty() {
        return out;
    }
    for diagnostic in diagnostics.sorted() {
        out.push_str(&render(diagnostic, sources, color));
        out.push('\n');
    }
    let count = |n: usize, word: &str| match n {
        0 => None,
        1 => Some(format!("1 {word}")),
        _ => Some(format!("{n} {word}s")),
    };
    let counts: Vec<_> = [
        count(diagnostics.error_count(), "error"),
        count(diagnostics.warning_count(), "warning"),
    ]
    .into_iter()
    .flatten()
    .collect();
    out.push_str(&counts.join(", "));
    if diagnostics.dropped() > 0 {
        let _ = write!(out, "; {} not shown", diagnostics.dropped());
    }
    out.push('\n');
    out
}

fn place(file: &SourceFile, offset: u32) -> String {
    let (name, position) = file.place(offset);
    format!("{name}:{}:{}", position.line, position.column)
}

fn labels(diagnostic: &Diagnostic) -> impl Iterator<Item = (&crate::Label, bool)> {
    std::iter::once((&diagnostic.primary, true))
        .chain(diagnostic.secondary.iter().map(|l| (l, false)))
}

fn gutter_width(diagnostic: &Diagnostic, sources: &SourceMap) -> usize {
    labels(diagnostic)
        .filter_map(|(l, _)| {
            sources
                .get(l.span.file)
                .map(|f| f.place(l.span.start).1.line)
        })
        .max()
        .unwrap_or(1)
        .to_string()
        .len()
}

fn render_lines(
    out: &mut String,
    diagnostic: &Diagnostic,
    file: &SourceFile,
    id: FileId,
    gutter: usize,
    style: &str,
    color: Color,
) {
    let mut lines: BTreeMap<u32, Vec<Mark<'_>>> = BTreeMap::new();
    for (label, primary) in labels(diagnostic).filter(|(l, _)| l.span.file == id) {
        let (line, from, length) = extent(file, label.span);
        lines.entry(line).or_default().push(Mark {
            from,
            length,
            message: &label.message,
            primary,
        });
    }
    let blank = " ".repeat(gutter);
    let bar = color.paint(BLUE, "|");
    let _ = writeln!(out, "{blank} {bar}");
    let mut previous: Option<u32> = None;
    for (line, mut marks) in lines {
        if previous.is_some_and(|p| p + 1 != line) {
            let _ = writeln!(out, "{}", color.paint(BLUE, "..."));
        }
        previous = Some(line);
        let text = file.line(line);
        marks.sort_by_key(|m| (!m.primary, m.from));
        let window = window(text, marks.first().map_or(0, |m| m.from));
        let shown: String = text
            .chars()
            .skip(window.0)
            .take(window.1)
            .flat_map(visible)
            .collect();
        let number = color.paint(BLUE, &format!("{:>gutter$}", file.said(line).1));
        let _ = writeln!(out, "{}", format!("{number} {bar} {shown}").trim_end());
        for mark in marks {
            if mark.from < window.0 {
                continue;
            }
            let skip: usize = text
                .chars()
                .skip(window.0)
                .take(mark.from - window.0)
                .map(|c| visible(c).count())
                .sum();
            let width: usize = text
                .chars()
                .skip(mark.from)
                .take(mark.length)
                .map(|c| visible(c).count())
                .sum::<usize>()
                .clamp(1, MAX_WIDTH);
            let (sign, mark_style) = if mark.primary {
                ("^", style)
            } else {
                ("-", BLUE)
            };
            let underline = format!("{} {}", sign.repeat(width), mark.message);
            let underline = color.paint(mark_style, underline.trim_end());
            let _ = writeln!(out, "{blank} {bar} {}{underline}", " ".repeat(skip));
        }
    }
    if !diagnostic.notes.is_empty() || diagnostic.help.is_some() {
        let _ = writeln!(out, "{blank} {bar}");
    }
}

fn render_note(out: &mut String, blank: &str, word: &str, text: &str, color: Color) {
    let mut lines = text.lines();
    let word = color.paint(BOLD, word);
    let first = lines.next().unwrap_or_default();
    let _ = writeln!(out, "{blank} {} {word}: {first}", color.paint(BLUE, "="));
    for line in lines {
        let _ = writeln!(out, "{blank}         {line}");
    }
}

/// Line, first character from 0 and number of characters of a span; of one that runs over
/// several lines, as far as its first line goes.
fn extent(file: &SourceFile, span: Span) -> (u32, usize, usize) {
    let (start, end) = (file.position(span.start), file.position(span.end));
    let from = start.column as usize - 1;
    let to = if end.line == start.line {
        end.column as usize - 1
    } else {
        file.line(start.line).chars().count()
    };
    (start.line, from, to.saturating_sub(from).max(1))
}

/// The part of a line that is shown: first character and number of characters.
fn window(text: &str, from: usize) -> (usize, usize) {
    if text.chars().count() <= MAX_WIDTH {
        return (0, MAX_WIDTH);
    }
    (from.saturating_sub(MAX_WIDTH / 2), MAX_WIDTH)
}

/// Characters shown for a character of the source: tabs as spaces, other control characters and
/// those that change the direction of text as a replacement mark.
fn visible(c: char) -> impl Iterator<Item = char> {
    let text = match c {
        '\t' => TAB,
        c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
            "\u{fffd}"
        }
        _ => "",
    };
    text.chars().chain(text.is_empty().then_some(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Code;

    const CODE: Code = Code::new("E0301", "for tests");

    #[test]
    fn one_label() {
        let mut sources = SourceMap::new();
        let file = sources.add("main.p4", "a\n\n\tx = 1;\n", None);
        let diagnostic = Diagnostic::error(CODE, Span::new(file, 4, 5), "unknown name `x`")
            .with_label("not declared")
            .with_note("a note\nof two lines")
            .with_help("declare it");
        assert_eq!(
            render(&diagnostic, &sources, Color::Never),
            "error[E0301]: unknown name `x`\n --> main.p4:3:2\n  |\n3 |     x = 1;\n  |     ^ not declared\n  |\n  = note: a note\n          of two lines\n  = help: declare it\n"
        );
        let painted = render(&diagnostic, &sources, Color::Ansi);
        assert!(painted.starts_with("\x1b[1;31merror[E0301]\x1b[0m"));
    }

    #[test]
    fn labels_on_several_lines_and_files() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.p4", "one\ntwo\nthree\nfour\n", None);
        let other = sources.add("other.p4", "five\n", Some(Span::new(main, 0, 3)));
        let diagnostic = Diagnostic::warning(CODE, Span::new(main, 14, 18), "odd")
            .with_secondary(Span::new(main, 0, 3), "here")
            .with_secondary(Span::new(main, 4, 12), "over two lines")
            .with_secondary(Span::new(other, 0, 4), "and there");
        assert_eq!(
            render(&diagnostic, &sources, Color::Never),
            "warning[E0301]: odd\n --> main.p4:4:1\n  |\n1 | one\n  | --- here\n2 | two\n  | --- over two lines\n...\n4 | four\n  | ^^^^\n ::: other.p4:1:1\n ::: included from main.p4:1:1\n  |\n1 | five\n  | ---- and there\n"
        );
    }

    #[test]
    fn renumbered_lines_bear_the_numbers_they_are_said_to_have() {
        let mut sources = SourceMap::new();
        let main = sources.add("out.p4", "# 99 \"in.p4\"\nx\ny\n", None);
        sources.renumber(Span::new(main, 0, 12), 99, Some("in.p4"));
        let diagnostic = Diagnostic::error(CODE, Span::new(main, 15, 16), "bad")
            .with_secondary(Span::new(main, 13, 14), "here");
        assert_eq!(
            render(&diagnostic, &sources, Color::Never),
            "error[E0301]: bad\n   --> in.p4:100:1\n    |\n 99 | x\n    | - here\n100 | y\n    | ^\n"
        );
    }

    #[test]
    fn the_end_of_the_list_counts() {
        let mut sources = SourceMap::new();
        let file = sources.add("main.p4", "abc", None);
        let mut list = Diagnostics::with_limit(1);
        for start in 0..3 {
            list.push(Diagnostic::error(
                CODE,
                Span::new(file, start, start + 1),
                "bad",
            ));
        }
        let text = render_all(&list, &sources, Color::Never);
        assert!(text.ends_with("\n\n3 errors; 2 not shown\n"), "{text}");
        assert_eq!(render_all(&Diagnostics::new(), &sources, Color::Never), "");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_can_be_shown(
            text in "(.|\n|\t|é){0,300}",
            spans in prop::collection::vec((0_u32..400, 0_u32..400), 1..4),
        ) {
            let mut sources = SourceMap::new();
            let file = sources.add("f", text.as_str(), None);
            let mut diagnostic =
                Diagnostic::error(CODE, Span::new(file, spans[0].0, spans[0].1), "m");
            for &(start, end) in &spans {
                diagnostic = diagnostic.with_secondary(Span::new(file, start, end), "s");
            }
            prop_assert!(render(&diagnostic, &sources, Color::Ansi).ends_with('\n'));
        }
    }
}
