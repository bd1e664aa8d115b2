//! Why a request was refused: a canonical code and a text.

use crate::proto::{rpc, v1};
use prost::Message;
use stateplane_runtime::StateError;
use stateplane_switch::SwitchError;
use std::fmt;
use tonic::{Code, Status};

/// Error space of our own codes, for `p4.v1.Error.space`.
const SPACE: &str = "stateplane";

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

/// Bytes of the longest text of a status: clients take 8 KiB of metadata.
const MAX_TEXT: usize = 4096;

/// Bytes of the longest text of one update's error.
const MAX_DETAIL: usize = 512;

fn shortened(mut text: String, longest: usize) -> String {
    if longest == 0 {
        return String::new();
    }
    if text.len() > longest {
        let end = (0..=longest).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        Status::new(refusal.code, shortened(refusal.message, MAX_TEXT))
    }
}

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

impl From<WriteRefusal> for Status {
    /// With one `p4.v1.Error` for each update in the details, as the specification
    /// ("Error Reporting") has it.
    fn from(refusal: WriteRefusal) -> Status {
        let outcomes = match refusal {
            WriteRefusal::Whole(refusal) => return refusal.into(),
            WriteRefusal::Updates(outcomes) => outcomes,
        };
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        let first = outcomes.iter().find_map(|outcome| outcome.as_ref().err());
        let message = shortened(
            match first {
                Some(first) => format!("{failed} of {} updates failed: {first}", outcomes.len()),
                None => "no update failed".to_owned(),
            },
            MAX_DETAIL,
        );
        let texts = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let all: usize = texts.map(|refusal| refusal.message.len()).sum();
        // Clients take little metadata: without room for all texts, the codes matter most.
        let longest = if all > MAX_TEXT { 0 } else { MAX_DETAIL };
        let details = outcomes.into_iter().map(|outcome| {
            let error = match outcome {
                Ok(()) => v1::Error::default(),
                Err(refusal) => v1::Error {
                    canonical_code: refusal.code.into(),
                    message: shortened(refusal.message, longest),
                    space: SPACE.to_owned(),
                    ..v1::Error::default()
                },
            };
            prost_types::Any {
                type_url: "type.googleapis.com/p4.v1.Error".to_owned(),
                value: error.encode_to_vec(),
            }
        });
        let status = rpc::Status {
            code: Code::Unknown.into(),
            message: message.clone(),
            details: details.collect(),
        };
        Status::with_details(Code::Unknown, message, status.encode_to_vec().into())
    }
}
