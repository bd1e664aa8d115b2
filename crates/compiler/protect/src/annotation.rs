//! `@replicated(key = {…}, …)`: which state is replicated, and how.

use crate::codes;
use stateplane_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use stateplane_syntax::tree::{
    Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind, Declaration, Expr, ExprKind,
    Program,
};
use stateplane_syntax::{MemoryLoader, Options, parse};

/// The annotation's name.
pub(crate) const REPLICATED: &str = "replicated";

/// The class of flow keys where the annotation names none.
const CLASS: u8 = 64;

const FORM: &str = "write @replicated(key = {hdr.ipv4.srcAddr, …}), with reverse = {…}, when = …, class = 1 to 255 and lease_period = milliseconds if they are needed; or @replicated(mode = \"bounded\", bound = milliseconds), with snapshot_period = milliseconds, otherwise = \"go on\", \"drop\" or \"fail\", and merge = \"add\", \"or\" or \"greatest\"";

/// Consistency mode of state (RedPlane §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// No packet leaves before the state of its flow is replicated.
    Linearizable,
    /// Packets do not wait; snapshots of arrays are kept, none older than a bound.
    Bounded,
}

/// Treatment of packets while the newest kept snapshot is older than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Packets are processed, and counted as an alarm.
    GoOn,
    /// Packets are dropped.
    Drop,
    /// Packets are dropped until the switch has taken its ports down.
    Fail,
}

/// Operation with which readers merge the arrays of several switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    Add,
    Or,
    Greatest,
}

impl Merge {
    /// As annotations and `stateplane ctl store sketch --merge` have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Or => "or",
            Self::Greatest => "greatest",
        }
    }
}

/// An expression of the annotation.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) expr: Expr,
    /// Text as written.
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// Arguments of an annotation, with defaults filled in.
#[derive(Clone, Debug)]
pub(crate) struct Replicated {
    /// `None`: as the other annotations say.
    pub(crate) key: Option<Vec<Part>>,
    pub(crate) reverse: Option<Vec<Part>>,
    pub(crate) when: Option<Part>,
    pub(crate) class: u8,
    /// Milliseconds.
    pub(crate) lease_period: Option<u32>,
    /// Mode as written; `None`: the mode of the other annotations.
    pub(crate) mode: Option<Mode>,
    /// Greatest age of the newest snapshot that is kept (ε), in milliseconds; for the
    /// bounded mode alone, as what follows.
    pub(crate) bound: Option<u32>,
    /// Milliseconds from one snapshot to the next (T_snap).
    pub(crate) snapshot_period: Option<u32>,
    pub(crate) otherwise: Option<Otherwise>,
    pub(crate) merge: Option<Merge>,
    pub(crate) span: Span,
}

impl Replicated {
    /// True if two annotations that both have a key mean the same flows.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let texts = |parts: &Option<Vec<Part>>| -> Option<Vec<String>> {
            let parts = parts.as_ref()?.iter();
            Some(parts.map(|part| squeezed(&part.text)).collect())
        };
        let when = |part: &Option<Part>| part.as_ref().map(|part| squeezed(&part.text));
        texts(&self.key) == texts(&other.key)
            && texts(&self.reverse) == texts(&other.reverse)
            && when(&self.when) == when(&other.when)
            && self.class == other.class
            && self.lease_period == other.lease_period
            && self.bound == other.bound
            && self.snapshot_period == other.snapshot_period
            && self.otherwise == other.otherwise
    }

    /// True if it says more than that the register is kept as others are, and how.
    pub(crate) fn is_full(&self) -> bool {
        self.key.is_some() || self.bound.is_some()
    }

    /// A parameter that the linearizable mode has alone.
    pub(crate) fn of_flows(&self) -> Option<&'static str> {
        let key = self.key.as_ref().map(|_| "key");
        key.or(self.reverse.as_ref().map(|_| "reverse"))
            .or(self.when.as_ref().map(|_| "when"))
    }

    /// A parameter that the bounded mode has alone.
    pub(crate) fn of_snapshots(&self) -> Option<&'static str> {
        let bound = self.bound.map(|_| "bound");
        bound
            .or(self.snapshot_period.map(|_| "snapshot_period"))
            .or(self.otherwise.map(|_| "otherwise"))
            .or(self.merge.map(|_| "merge"))
    }
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Reads annotations of one program.
pub(crate) struct Reader<'a> {
    sources: &'a SourceMap,
    /// Declarations of the program's type names, which casts may use.
    types: String,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(sources: &'a SourceMap, tree: &Program) -> Self {
        let names = tree.declarations.iter().filter_map(|declaration| {
            Some(match declaration {
                Declaration::Typedef(d) => &d.name,
                Declaration::Struct(d) => &d.name,
                Declaration::Enum(d) => &d.name,
                _ => return None,
            })
        });
        let types = names.map(|name| format!("typedef bit<1> {name};"));
        Self {
            sources,
            types: types.collect(),
        }
    }

    /// Arguments of `annotation`; `None` if it is wrong, which is reported.
    pub(crate) fn read(
        &self,
        annotation: &Annotation,
        diagnostics: &mut Diagnostics,
    ) -> Option<Replicated> {
        let mut out = Replicated {
            key: None,
            reverse: None,
            when: None,
            class: CLASS,
            lease_period: None,
            mode: None,
            bound: None,
            snapshot_period: None,
            otherwise: None,
            merge: None,
            span: annotation.span,
        };
        let tokens = match &annotation.body {
            AnnotationBody::Empty => return Some(out),
            AnnotationBody::Unstructured(tokens) => tokens,
            _ => {
                diagnostics.push(wrong(annotation.span, "it is written with `(…)`"));
                return None;
            }
        };
        for item in split(tokens) {
            if let Err(complaint) = self.item(item, annotation.span, &mut out) {
                diagnostics.push(*complaint);
                return None;
            }
        }
        if out.key.is_none() && (out.reverse.is_some() || out.when.is_some()) {
            diagnostics.push(wrong(annotation.span, "`reverse` and `when` need a key"));
            return None;
        }
        Some(out)
    }

    fn item(
        &self,
        item: &[AnnotationToken],
        whole: Span,
        out: &mut Replicated,
    ) -> Result<(), Box<Diagnostic>> {
        let [name, equals, value @ ..] = item else {
            return Err(Box::new(wrong(whole, "`name = value` is expected")));
        };
        let span = name.span.to(value.last().unwrap_or(equals).span);
        if &*equals.text != "=" || value.is_empty() {
            return Err(Box::new(wrong(span, "`name = value` is expected")));
        }
        let refused = |what| Box::new(wrong(span, what));
        match &*name.text {
            "key" => out.key = Some(self.list(value, span)?),
            "reverse" => out.reverse = Some(self.list(value, span)?),
            "when" => out.when = Some(self.part(value, span)?),
            "class" => {
                out.class = number(value)
                    .and_then(|number| u8::try_from(number).ok())
                    .filter(|class| *class > 0)
                    .ok_or_else(|| refused("a class is a number from 1 to 255"))?;
            }
            "lease_period" => out.lease_period = Some(milliseconds(value, span)?),
            "bound" => out.bound = Some(milliseconds(value, span)?),
            "snapshot_period" => out.snapshot_period = Some(milliseconds(value, span)?),
            "mode" => {
                let what = "a mode is \"linearizable\" or \"bounded\"";
                let all = [
                    ("linearizable", Mode::Linearizable),
                    ("bounded", Mode::Bounded),
                ];
                out.mode = Some(one_of(value, all).ok_or_else(|| refused(what))?);
            }
            "otherwise" => {
                let what = "beyond the bound a switch can \"go on\", \"drop\" or \"fail\"";
                let all = [
                    ("go on", Otherwise::GoOn),
                    ("drop", Otherwise::Drop),
                    ("fail", Otherwise::Fail),
                ];
                out.otherwise = Some(one_of(value, all).ok_or_else(|| refused(what))?);
            }
            "merge" => {
                let what = "arrays are merged by \"add\", \"or\" or \"greatest\"";
                let all = [Merge::Add, Merge::Or, Merge::Greatest].map(|it| (it.name(), it));
                out.merge = Some(one_of(value, all).ok_or_else(|| refused(what))?);
            }
            other => {
                return Err(Box::new(wrong(
                    name.span,
                    &format!("`{other}` is none of its parameters"),
                )));
            }
        }
        Ok(())
    }

    /// `{a, b}`.
    fn list(&self, tokens: &[AnnotationToken], span: Span) -> Result<Vec<Part>, Box<Diagnostic>> {
        let is = |token: Option<&AnnotationToken>, text| token.is_some_and(|t| &*t.text == text);
        if tokens.len() < 3 || !is(tokens.first(), "{") || !is(tokens.last(), "}") {
            return Err(Box::new(wrong(
                span,
                "a list of expressions in braces is expected",
            )));
        }
        split(&tokens[1..tokens.len() - 1])
            .into_iter()
            .map(|tokens| self.part(tokens, span))
            .collect()
    }

    fn part(&self, tokens: &[AnnotationToken], whole: Span) -> Result<Part, Box<Diagnostic>> {
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return Err(Box::new(wrong(whole, "an expression is missing")));
        };
        let span = first.span.to(last.span);
        let words: Vec<&str> = tokens.iter().map(|token| &*token.text).collect();
        let expanded = words.join(" ");
        let program = format!("{}const bool it = ({expanded});", self.types);
        let loader = MemoryLoader::new().with("annotation", program);
        let parsed = parse(&loader, "annotation", &Options::default());
        let expr = match parsed.tree.declarations.last() {
            Some(Declaration::Const(constant)) if !parsed.diagnostics.has_errors() => {
                constant.value.clone()
            }
            _ => return Err(Box::new(wrong(span, "an expression is expected"))),
        };
        if matches!(expr.kind, ExprKind::List(_) | ExprKind::Struct { .. }) {
            return Err(Box::new(wrong(span, "a number is expected")));
        }
        let written = self.sources.snippet(span);
        let text = if squeezed(written) == squeezed(&expanded) {
            written.split_whitespace().collect::<Vec<_>>().join(" ")
        } else {
            expanded
        };
        Ok(Part { expr, text, span })
    }
}

/// Parts between commas, brackets considered.
fn split(tokens: &[AnnotationToken]) -> Vec<&[AnnotationToken]> {
    let mut items = Vec::new();
    let mut depth = 0usize;
    let mut start = 0;
    for (at, token) in tokens.iter().enumerate() {
        match &*token.text {
            "(" | "{" | "[" => depth += 1,
            ")" | "}" | "]" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                items.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < tokens.len() {
        items.push(&tokens[start..]);
    }
    items
}

fn number(tokens: &[AnnotationToken]) -> Option<u32> {
    match tokens {
        [
            AnnotationToken {
                kind: AnnotationTokenKind::Number(literal),
                ..
            },
        ] => u32::try_from(&literal.value).ok(),
        _ => None,
    }
}

/// A time of at least one millisecond.
fn milliseconds(tokens: &[AnnotationToken], span: Span) -> Result<u32, Box<Diagnostic>> {
    let time = number(tokens).filter(|time| *time > 0);
    let what = "a time is a number of milliseconds, at least 1";
    time.ok_or_else(|| Box::new(wrong(span, what)))
}

/// The text of a string.
fn word(tokens: &[AnnotationToken]) -> Option<&str> {
    match tokens {
        [
            AnnotationToken {
                kind: AnnotationTokenKind::String(text),
                ..
            },
        ] => Some(text),
        _ => None,
    }
}

/// Value that a string denotes.
fn one_of<T, const N: usize>(tokens: &[AnnotationToken], all: [(&str, T); N]) -> Option<T> {
    let word = word(tokens)?;
    let mut all = all.into_iter();
    all.find_map(|(name, meaning)| (name == word).then_some(meaning))
}

fn wrong(span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(codes::ANNOTATION, span, format!("@{REPLICATED}: {what}")).with_help(FORM)
}
