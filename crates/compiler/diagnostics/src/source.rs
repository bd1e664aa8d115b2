//! Source texts and places in them.

use std::sync::Arc;

/// One inclusion of one file: a file included twice has two identities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

impl FileId {
    /// The position of the file in its [`SourceMap`], in order of addition from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A range of bytes in one file: from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file that the bytes belong to.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset past the last byte; never less than `start`.
    pub end: u32,
}

impl Span {
    /// The range `start..end` of `file`; an `end` before `start` gives an empty range.
    #[must_use]
    pub const fn new(file: FileId, start: u32, end: u32) -> Self {
        let end = if end < start { start } else { end };
        Self { file, start, end }
    }

    /// The smallest range that holds both; `self` where the two lie in different files.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        if self.file != other.file {
            return self;
        }
        Self::new(
            self.file,
            self.start.min(other.start),
            self.end.max(other.end),
        )
    }

    /// The empty range at the start of this one.
    #[must_use]
    pub const fn at_start(self) -> Self {
        Self::new(self.file, self.start, self.start)
    }

    /// The empty range at the end of this one.
    #[must_use]
    pub const fn at_end(self) -> Self {
        Self::new(self.file, self.end, self.end)
    }
}

/// A place as people count: both numbers start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line number from 1.
    pub line: u32,
    /// Column from 1, in characters (Unicode scalar values), not bytes.
    pub column: u32,
}

/// A text with its name, and where it was included from.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    included_from: Option<Span>,
    /// Byte offset at which each line starts; the first is 0.
    lines: Vec<u32>,
    /// `#line` directives, in order of the lines from which they hold.
    renumbered: Vec<Renumbered>,
}

/// From a line on, the text is said to come from elsewhere.
#[derive(Clone, Debug)]
struct Renumbered {
    /// The first line of this text for which it holds, from 1.
    from: u32,
    /// The number that this line is said to have.
    line: u32,
    name: Arc<str>,
}

impl SourceFile {
    /// The name under which the text was added, as shown to users.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The directive that included this file; `None` for the file that was asked for.
    #[must_use]
    pub fn included_from(&self) -> Option<Span> {
        self.included_from
    }

    /// Line and column of a byte offset; an offset past the end gives the end.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self
            .lines
            .partition_point(|&start| start as usize <= offset)
            .max(1)
            - 1;
        let start = self.lines[line] as usize;
        let column = self.text[start..offset].chars().count();
        Position {
            line: line as u32 + 1,
            column: column as u32 + 1,
        }
    }

    /// The place that people are told: line and column of a byte offset, and the file's name,
    /// both as `#line` directives before it say.
    #[must_use]
    pub fn place(&self, offset: u32) -> (&str, Position) {
        let mut position = self.position(offset);
        let (name, line) = self.said(position.line);
        position.line = line;
        (name, position)
    }

    /// The file and number that a line, counted from 1, is said to have.
    pub(crate) fn said(&self, line: u32) -> (&str, u32) {
        let known = self.renumbered.partition_point(|said| said.from <= line);
        match known.checked_sub(1).map(|at| &self.renumbered[at]) {
            None => (&self.name, line),
            Some(said) => (&said.name, said.line.saturating_add(line - said.from)),
        }
    }

    /// The text of a line, counted from 1, without its line end; empty where there is none.
    #[must_use]
    pub fn line(&self, line: u32) -> &str {
        let index = (line as usize).wrapping_sub(1);
        let Some(&start) = self.lines.get(index) else {
            return "";
        };
        let end = self
            .lines
            .get(index + 1)
            .map_or(self.text.len(), |&e| e as usize);
        self.text[start as usize..end].trim_end_matches(['\n', '\r'])
    }
}

/// All texts of one compilation, addressed by [`FileId`].
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// A map without files.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. Texts of 4 GiB and more are cut at the last character that a [`Span`]
    /// can address.
    pub fn add(
        &mut self,
        name: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
        included_from: Option<Span>,
    ) -> FileId {
        let mut text: Arc<str> = text.into();
        if u32::try_from(text.len()).is_err() {
            let mut end = u32::MAX as usize;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text = text[..end].into();
        }
        let lines = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at as u32 + 1))
            .collect();
        let id = FileId(self.files.len() as u32);
        self.files.push(SourceFile {
            name: name.into(),
            text,
            included_from,
            lines,
            renumbered: Vec::new(),
        });
        id
    }

    /// Says, as a `#line` directive does, that the line after the one at `directive` has
    /// number `line`, and comes from the file `name` unless that stays as it was. Holds up to
    /// the next such directive; those of a file are told in their order.
    pub fn renumber(&mut self, directive: Span, line: u32, name: Option<&str>) {
        let Some(file) = self.files.get_mut(directive.file.index()) else {
            return;
        };
        let from = file.position(directive.end).line + 1;
        let name = match name {
            Some(name) => name.into(),
            None => file.said(from).0.into(),
        };
        file.renumbered.push(Renumbered { from, line, name });
    }

    /// The file of an identity that this map gave out; `None` for one of another map.
    #[must_use]
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.index())
    }

    /// All files in order of addition.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files
            .iter()
            .enumerate()
            .map(|(i, f)| (FileId(i as u32), f))
    }

    /// The text that a span covers; empty where the span does not fit its file.
    #[must_use]
    pub fn snippet(&self, span: Span) -> &str {
        self.get(span.file)
            .and_then(|f| f.text.get(span.start as usize..span.end as usize))
            .unwrap_or("")
    }

    /// The directives that led to a file, innermost first; empty for the main file.
    #[must_use]
    pub fn include_chain(&self, file: FileId) -> Vec<Span> {
        let mut chain = Vec::new();
        let mut next = self.get(file).and_then(SourceFile::included_from);
        while let Some(span) = next {
            chain.push(span);
            // An including file precedes what it includes, which bounds the walk.
            next = (span.file < file)
                .then(|| self.get(span.file).and_then(SourceFile::included_from))
                .flatten()
                .filter(|s| s.file < span.file);
        }
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_lines() {
        let mut map = SourceMap::new();
        let id = map.add("a.p4", "één\nb\r\n", None);
        let file = map.get(id).unwrap();
        assert_eq!(file.position(0), Position { line: 1, column: 1 });
        assert_eq!(file.position(4), Position { line: 1, column: 3 });
        assert_eq!(file.position(6), Position { line: 2, column: 1 });
        assert_eq!(file.position(999), Position { line: 3, column: 1 });
        assert_eq!(file.line(1), "één");
        assert_eq!(file.line(2), "b");
        assert_eq!(file.line(3), "");
        assert_eq!(file.line(0), "");
    }

    #[test]
    fn lines_are_renumbered_from_the_one_after_a_directive() {
        let mut map = SourceMap::new();
        let id = map.add("out.p4", "a\n#line\nb\nc\n#line\nd", None);
        map.renumber(Span::new(id, 2, 7), 40, Some("in.p4"));
        map.renumber(Span::new(id, 12, 17), u32::MAX, None);
        let file = map.get(id).unwrap();
        let place = |offset| {
            let (name, position) = file.place(offset);
            (name, position.line, position.column)
        };
        assert_eq!(place(0), ("out.p4", 1, 1));
        assert_eq!(place(8), ("in.p4", 40, 1));
        assert_eq!(place(11), ("in.p4", 41, 2));
        assert_eq!(place(18), ("in.p4", u32::MAX, 1));
        assert_eq!(file.position(18).line, 6);
    }

    #[test]
    fn include_chain_runs_outwards() {
        let mut map = SourceMap::new();
        let main = map.add("main.p4", "#include \"a\"", None);
        let a = map.add("a", "#include \"b\"", Some(Span::new(main, 0, 12)));
        let b = map.add("b", "", Some(Span::new(a, 0, 12)));
        let chain: Vec<_> = map.include_chain(b).iter().map(|s| s.file).collect();
        assert_eq!(chain, [a, main]);
    }

    #[test]
    fn hull_stays_in_one_file() {
        let mut map = SourceMap::new();
        let a = map.add("a", "0123456789", None);
        let b = map.add("b", "0123456789", None);
        assert_eq!(
            Span::new(a, 2, 3).to(Span::new(a, 7, 9)),
            Span::new(a, 2, 9)
        );
        assert_eq!(
            Span::new(a, 2, 3).to(Span::new(b, 7, 9)),
            Span::new(a, 2, 3)
        );
        assert_eq!(map.snippet(Span::new(a, 2, 4)), "23");
        assert_eq!(map.snippet(Span::new(a, 2, 40)), "");
    }
}
