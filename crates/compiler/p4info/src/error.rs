//! Errors in a program's control-plane interface, and in P4Info that is read.

use thiserror::Error;

/// Why a program has no P4Info.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// `@id` has another kind's prefix.
    #[error(
        "the @id of `{name}` is {id:#x}, but the high byte of a {kind}'s id is 0 or {prefix:#x}"
    )]
    WrongPrefix {
        /// Control-plane name.
        name: String,
        /// Kind of the object.
        kind: &'static str,
        /// The id written.
        id: u32,
        /// The prefix of its kind.
        prefix: u32,
    },
    /// Two objects, or two fields of one, have the same `@id`.
    #[error(
        "the @id {id} of `{name}` is taken: ids are unique among all objects, and among the fields of one"
    )]
    DuplicateId {
        /// Control-plane name of the second.
        name: String,
        /// The id.
        id: u32,
    },
    /// `@id` is not a number from 1 to 2^32 - 1.
    #[error("the @id of `{name}` is not a number from 1 to 4294967295")]
    InvalidId {
        /// Control-plane name.
        name: String,
    },
    /// No id is left for an object.
    #[error("no id is left for `{name}`: 2^24 objects of one kind are the most")]
    NoIdLeft {
        /// Control-plane name.
        name: String,
    },
    /// Two objects of one kind have one name.
    #[error("two objects of one kind are called `{name}`: give one another name with @name")]
    DuplicateName {
        /// Control-plane name.
        name: String,
    },
    /// An annotation that P4Runtime gives a meaning is not written as it says.
    #[error("`{annotation}` of `{name}`: {expected}")]
    Annotation {
        /// Name of the annotated object.
        name: String,
        /// The annotation as written.
        annotation: String,
        /// Expected form.
        expected: &'static str,
    },
}

impl GenerateError {
    /// Stable code, `PI` and three digits.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::WrongPrefix { .. } => "PI001",
            Self::DuplicateId { .. } => "PI002",
            Self::InvalidId { .. } => "PI003",
            Self::NoIdLeft { .. } => "PI004",
            Self::DuplicateName { .. } => "PI005",
            Self::Annotation { .. } => "PI006",
        }
    }
}

/// Why a text or bytes are not P4Info.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The file is not a P4Info message in text form.
    #[error("not P4Info in text form: {0}")]
    Text(String),
    /// The file is not a P4Info message in binary form.
    #[error("not P4Info in binary form: {0}")]
    Binary(String),
}
