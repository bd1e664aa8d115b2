//! Text with places where a line may end, and the choice between them.

use super::WIDTH;
use super::piece::{Kind, Piece};

/// A layout.
#[derive(Clone, Debug)]
pub(super) enum Doc {
    Text(String),
    /// A space.
    Space,
    /// A space, or a line end if the group around it is broken.
    Line,
    /// Nothing, or a line end if the group around it is broken.
    SoftLine,
    /// A line end, and an empty line if `blank`.
    Hard {
        blank: bool,
    },
    /// A comment: on a line of its own, or after what stands before it.
    Comment {
        text: String,
        own_line: bool,
        ends_line: bool,
    },
    /// Lines that begin in the first column.
    Raw(String),
    /// One after the other.
    Seq(Vec<Doc>),
    /// One level further in.
    Indent(Vec<Doc>),
    /// On one line if it fits there and `broken` is not set.
    Group {
        docs: Vec<Doc>,
        broken: bool,
    },
}

/// A text.
pub(super) fn text(text: impl Into<String>) -> Doc {
    Doc::Text(text.into())
}

/// A group, broken if something in it ends a line.
pub(super) fn group(docs: Vec<Doc>) -> Doc {
    let broken = docs.iter().any(Doc::ends_line);
    Doc::Group { docs, broken }
}

/// A comment, directive, pragma or text left as it is.
pub(super) fn trivia(piece: &Piece<'_>) -> Doc {
    match piece.kind {
        Kind::Directive | Kind::Raw => Doc::Raw(piece.text.to_owned()),
        _ => Doc::Comment {
            text: piece.text.to_owned(),
            own_line: piece.lines > 0,
            ends_line: piece.ends_line || piece.kind != Kind::BlockComment,
        },
    }
}

impl Doc {
    /// True if a line may end in it.
    pub(super) fn can_break(&self) -> bool {
        match self {
            Doc::Text(text) => text.contains('\n'),
            Doc::Space => false,
            Doc::Seq(docs) | Doc::Indent(docs) | Doc::Group { docs, .. } => {
                docs.iter().any(Doc::can_break)
            }
            _ => true,
        }
    }

    /// True if it contains a line end at any width.
    fn ends_line(&self) -> bool {
        match self {
            Doc::Text(text) => text.contains('\n'),
            Doc::Space | Doc::Line | Doc::SoftLine => false,
            Doc::Hard { .. } | Doc::Raw(_) => true,
            Doc::Comment {
                text,
                own_line,
                ends_line,
            } => *own_line || *ends_line || text.contains('\n'),
            Doc::Seq(docs) | Doc::Indent(docs) => docs.iter().any(Doc::ends_line),
            Doc::Group { broken, .. } => *broken,
        }
    }
}

/// A layout to be printed, with its indentation and whether it is on one line.
#[derive(Clone, Copy)]
struct Task<'d> {
    doc: &'d Doc,
    indent: usize,
    flat: bool,
}

#[derive(Default)]
struct Printer {
    out: String,
    column: usize,
    /// Line ends to be written before the next text; one of two makes an empty line.
    lines: usize,
    /// True if a space is to be written before the next text.
    space: bool,
}

/// The text of a layout.
pub(super) fn print(docs: &[Doc]) -> String {
    let mut printer = Printer::default();
    let mut tasks: Vec<Task<'_>> = Vec::new();
    push(&mut tasks, docs, 0, false);
    while let Some(Task { doc, indent, flat }) = tasks.pop() {
        match doc {
            Doc::Text(text) => printer.text(text, indent),
            Doc::Space => printer.space = true,
            Doc::Line if flat => printer.space = true,
            Doc::SoftLine if flat => {}
            Doc::Line | Doc::SoftLine => printer.lines = printer.lines.max(1),
            Doc::Hard { blank } => printer.lines = printer.lines.max(1 + usize::from(*blank)),
            Doc::Comment {
                text,
                own_line,
                ends_line,
            } => {
                printer.space = true;
                if *own_line {
                    printer.lines = printer.lines.max(1);
                }
                printer.comment(text, indent);
                printer.space = true;
                if *ends_line {
                    printer.lines = printer.lines.max(1);
                }
            }
            Doc::Raw(text) => {
                printer.lines = printer.lines.max(1);
                printer.text(text, 0);
                printer.lines = 1;
            }
            Doc::Seq(docs) => push(&mut tasks, docs, indent, flat),
            Doc::Indent(docs) => push(&mut tasks, docs, indent + 4, flat),
            Doc::Group { docs, broken } => {
                let flat = flat || !broken && printer.fits(docs, indent, &tasks);
                push(&mut tasks, docs, indent, flat);
            }
        }
    }
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    printer.out
}

fn push<'d>(tasks: &mut Vec<Task<'d>>, docs: &'d [Doc], indent: usize, flat: bool) {
    let task = |doc| Task { doc, indent, flat };
    tasks.extend(docs.iter().rev().map(task));
}

impl Printer {
    /// Writes the line ends or the space that are due.
    fn begin(&mut self, indent: usize) {
        if self.out.is_empty() {
            (self.lines, self.space) = (0, false);
        }
        if self.lines > 0 {
            for _ in 0..self.lines.min(2) {
                self.out.push('\n');
            }
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
        } else if self.space {
            self.out.push(' ');
            self.column += 1;
        }
        (self.lines, self.space) = (0, false);
    }

    fn text(&mut self, text: &str, indent: usize) {
        self.begin(indent);
        self.out.push_str(text);
        let line = text.rfind('\n').map_or(0, |at| at + 1);
        if line > 0 {
            self.column = 0;
        }
        self.column += text[line..].chars().count();
    }

    /// A comment; the lines of one that has a `*` before each move with the first.
    fn comment(&mut self, text: &str, indent: usize) {
        let mut rest = text.lines().skip(1).map(str::trim);
        if !text.contains('\n') || !rest.all(|line| line.starts_with('*')) {
            return self.text(text, indent);
        }
        let margin = " ".repeat(indent + 1);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        self.text(&lines.join(&format!("\n{margin}")), indent);
    }

    /// True if `docs` on one line, and the text behind them up to the next possible line end, fit
    /// the rest of the line.
    fn fits(&self, docs: &[Doc], indent: usize, rest: &[Task<'_>]) -> bool {
        let column = match self.lines {
            0 => self.column + usize::from(self.space),
            _ => indent,
        };
        let mut left = WIDTH.saturating_sub(column);
        let mut tasks: Vec<Task<'_>> = Vec::new();
        push(&mut tasks, docs, 0, true);
        let mut rest = rest.iter().rev();
        loop {
            let Some(task) = tasks.pop().or_else(|| rest.next().copied()) else {
                return true;
            };
            let width = match task.doc {
                Doc::Text(text) => match text.find('\n') {
                    Some(end) => return text[..end].chars().count() <= left,
                    None => text.chars().count(),
                },
                Doc::Space => 1,
                Doc::Line if task.flat => 1,
                Doc::SoftLine if task.flat => 0,
                Doc::Line | Doc::SoftLine | Doc::Hard { .. } | Doc::Raw(_) => return true,
                // A comment may stick out.
                Doc::Comment { .. } => return true,
                Doc::Seq(docs) | Doc::Indent(docs) => {
                    push(&mut tasks, docs, 0, task.flat);
                    0
                }
                Doc::Group { docs, broken } => {
                    push(&mut tasks, docs, 0, task.flat && !broken);
                    0
                }
            };
            match left.checked_sub(width) {
                Some(less) => left = less,
                None => return false,
            }
        }
    }
}
