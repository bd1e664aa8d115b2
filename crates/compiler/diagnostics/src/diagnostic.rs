//! One thing to tell the user.

use crate::{Code, Span};

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program is accepted, but probably does not mean what its author thinks.
    Warning,
}

impl Severity {
    /// The word shown to users: `error` or `warning`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A place, with what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// Text of the label; may be empty.
    pub message: String,
}

/// A coded message about a place in the source.
///
/// Build one with [`Diagnostic::error`] or [`Diagnostic::warning`] and the `with_…` methods:
/// say what is wrong in the message, where in the labels, why in notes, and how to mend it
/// in the help line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// The kind of diagnostic.
    pub code: Code,
    /// Severity of the diagnostic.
    pub severity: Severity,
    /// Message in one line, lower case, without a full stop.
    pub message: String,
    /// Position; its message is shown beside the underlined source.
    pub primary: Label,
    /// Other places that explain the first.
    pub secondary: Vec<Label>,
    /// Further facts.
    pub notes: Vec<String>,
    /// Help: how to mend it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    #[must_use]
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, span, message)
    }

    /// A warning at `span`.
    #[must_use]
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, span, message)
    }

    fn new(code: Code, severity: Severity, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            message: message.into(),
            primary: Label {
                span,
                message: String::new(),
            },
            secondary: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// Sets what is shown beside the primary place.
    #[must_use]
    pub fn with_label(mut self, message: impl Into<String>) -> Self {
        self.primary.message = message.into();
        self
    }

    /// Adds another place.
    #[must_use]
    pub fn with_secondary(mut self, span: Span, message: impl Into<String>) -> Self {
        self.secondary.push(Label {
            span,
            message: message.into(),
        });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the advice on how to mend it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// True if the program is refused because of this.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
