//! Why a request was refused: a canonical code and a text.

use stateplane_runtime::StateError;
use stateplane_switch::SwitchError;
use std::fmt;
use tonic::Code;

/// A refused request. The state is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The canonical code that the specification gives this case.
    pub code: Code,
    /// The error, and how to mend it.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(code: Code, message: impl fmt::Display) -> Refusal {
        Refusal {
            code,
            message: message.to_string(),
        }
    }

    /// `INVALID_ARGUMENT`.
    pub fn invalid(message: impl fmt::Display) -> Refusal {
        Refusal::new(Code::InvalidArgument, message)
    }

    /// `NOT_FOUND`.
    pub fn not_found(message: impl fmt::Display) -> Refusal {
        Refusal::new(Code::NotFound, message)
    }

    /// `UNIMPLEMENTED`.
    pub fn unimplemented(message: impl fmt::Display) -> Refusal {
        Refusal::new(Code::Unimplemented, message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refusal {}

impl From<StateError> for Refusal {
    fn from(error: StateError) -> Refusal {
        let code = match &error {
            StateError::Unknown { .. }
            | StateError::NoEntry { .. }
            | StateError::NoMember { .. }
            | StateError::NoProfileMember { .. }
            | StateError::NoGroup { .. } => Code::NotFound,
            StateError::Duplicate { .. }
            | StateError::DuplicateMember { .. }
            | StateError::ProfileExists { .. } => Code::AlreadyExists,
            StateError::Full { .. }
            | StateError::FullSet { .. }
            | StateError::FullProfile { .. }
            | StateError::Weights { .. } => Code::ResourceExhausted,
            StateError::Constant { .. } | StateError::ActionNotAllowed { .. } => {
                Code::PermissionDenied
            }
            StateError::InUse { .. } => Code::FailedPrecondition,
            StateError::Index { .. } | StateError::TooWide { .. } => Code::OutOfRange,
            _ => Code::InvalidArgument,
        };
        Refusal::new(code, error)
    }
}

impl From<SwitchError> for Refusal {
    fn from(error: SwitchError) -> Refusal {
        let code = match &error {
            SwitchError::TooMany { .. } => Code::ResourceExhausted,
            SwitchError::UnknownMirrorSession(_) | SwitchError::UnknownMulticastGroup(_) => {
                Code::NotFound
            }
            _ => Code::InvalidArgument,
        };
        Refusal::new(code, error)
    }
}

/// A write that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteRefusal {
    /// None of its updates was attempted.
    Whole(Refusal),
    /// Results of the updates, in order.
    Updates(Vec<Result<(), Refusal>>),
}

impl From<Refusal> for WriteRefusal {
    fn from(refusal: Refusal) -> WriteRefusal {
        WriteRefusal::Whole(refusal)
    }
}
