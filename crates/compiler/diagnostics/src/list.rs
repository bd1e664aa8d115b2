//! A bounded collection of diagnostics.

use crate::{Code, Diagnostic, Severity, Span};

/// Diagnostics in the making: bounded in number, duplicates dropped.
///
/// Diagnostics past the bound are counted, not kept, so that a hostile program cannot make the
/// compiler fill memory with complaints; the counts of errors and warnings stay exact.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    limit: usize,
    dropped: usize,
    errors: usize,
    warnings: usize,
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }
}

impl Diagnostics {
    /// Number of diagnostics that are kept unless told otherwise.
    pub const DEFAULT_LIMIT: usize = 100;

    /// An empty list of the default limit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list that keeps at most `limit` diagnostics.
    #[must_use]
    pub const fn with_limit(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            limit,
            dropped: 0,
            errors: 0,
            warnings: 0,
        }
    }

    /// Adds a diagnostic, unless an equal one is there already.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.kept.contains(&diagnostic) {
            return;
        }
        match diagnostic.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        if self.kept.len() < self.limit {
            self.kept.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds all of another list; what that list dropped counts as dropped here.
    pub fn append(&mut self, other: Self) {
        let (kept_errors, kept_warnings) =
            other.kept.iter().fold(
                (0, 0),
                |(e, w), d| {
                    if d.is_error() { (e + 1, w) } else { (e, w + 1) }
                },
            );
        self.errors += other.errors - kept_errors;
        self.warnings += other.warnings - kept_warnings;
        self.dropped += other.dropped;
        other.kept.into_iter().for_each(|d| self.push(d));
    }

    /// Drops the warnings whose code `allowed` names; those past the limit stay counted.
    pub fn allow(&mut self, allowed: impl Fn(Code) -> bool) {
        let before = self.kept.len();
        self.kept
            .retain(|d| d.severity == Severity::Error || !allowed(d.code));
        self.warnings -= before - self.kept.len();
    }

    /// Makes errors of all warnings, with `note` on each.
    pub fn deny_warnings(&mut self, note: &str) {
        for diagnostic in &mut self.kept {
            if diagnostic.severity == Severity::Warning {
                diagnostic.severity = Severity::Error;
                diagnostic.notes.push(note.to_owned());
            }
        }
        self.errors += std::mem::take(&mut self.warnings);
    }

    /// True if any error was added, kept or not.
    #[must_use]
    pub const fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors added, kept or not.
    #[must_use]
    pub const fn error_count(&self) -> usize {
        self.errors
    }

    /// The number of warnings added, kept or not.
    #[must_use]
    pub const fn warning_count(&self) -> usize {
        self.warnings
    }

    /// The number of diagnostics that came after the limit was reached.
    #[must_use]
    pub const fn dropped(&self) -> usize {
        self.dropped
    }

    /// True if nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.dropped == 0
    }

    /// Kept diagnostics, in order of addition.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.kept.iter()
    }

    /// Kept diagnostics, in order of position: by file, then offset, errors before warnings.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Diagnostic> {
        let key = |d: &Diagnostic| -> (Span, Severity, &'static str) {
            (d.primary.span, d.severity, d.code.id())
        };
        let mut sorted: Vec<_> = self.kept.iter().collect();
        sorted.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message)));
        sorted
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, iter: I) {
        iter.into_iter().for_each(|d| self.push(d));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileId;

    const CODE: Code = Code::new("E0001", "for tests");

    fn at(start: u32) -> Diagnostic {
        Diagnostic::error(CODE, Span::new(FileId::default(), start, start + 1), "bad")
    }

    #[test]
    fn equal_diagnostics_are_told_once() {
        let mut list = Diagnostics::new();
        list.push(at(3));
        list.push(at(3));
        assert_eq!(
            (list.iter().count(), list.error_count(), list.dropped()),
            (1, 1, 0)
        );
    }

    #[test]
    fn the_limit_keeps_the_first_and_counts_the_rest() {
        let mut list = Diagnostics::with_limit(2);
        list.extend((0..5).map(at));
        assert_eq!(
            (list.iter().count(), list.error_count(), list.dropped()),
            (2, 5, 3)
        );
        let mut whole = Diagnostics::with_limit(3);
        whole.append(list);
        assert_eq!(
            (whole.iter().count(), whole.error_count(), whole.dropped()),
            (2, 5, 3)
        );
    }

    #[test]
    fn warnings_are_dropped_or_become_errors() {
        const OTHER: Code = Code::new("W0002", "for tests");
        let span = Span::new(FileId::default(), 0, 1);
        let mut list = Diagnostics::new();
        list.push(at(3));
        list.push(Diagnostic::warning(OTHER, span, "doubtful"));
        list.push(Diagnostic::warning(CODE, span, "doubtful"));
        list.allow(|code| code == CODE);
        assert_eq!((list.error_count(), list.warning_count()), (1, 1));
        list.deny_warnings("asked for");
        assert_eq!((list.error_count(), list.warning_count()), (2, 0));
        let denied = list.iter().find(|d| d.code == OTHER).unwrap();
        assert!(denied.is_error() && denied.notes == ["asked for"]);
    }

    #[test]
    fn sorted_by_place() {
        let mut list = Diagnostics::new();
        list.extend([at(9), at(1), at(5)]);
        let starts: Vec<_> = list.sorted().iter().map(|d| d.primary.span.start).collect();
        assert_eq!(starts, [1, 5, 9]);
    }
}
