//! Refusals: a gRPC code, a message and the project's code.

use stateplane_view::CODE_KEY;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// Code of requests that make no sense to the service (`stateplane explain SYNC023`).
const MALFORMED: &str = "SYNC023";

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The canonical code of gRPC.
    pub status: Code,
    /// Mistake, and how to mend it.
    pub message: String,
    /// The code that `stateplane explain` knows.
    pub code: &'static str,
}

impl Refusal {
    pub(crate) fn of(status: Code, code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal {
            status,
            message: message.into(),
            code,
        }
    }

    /// The request is wrong, whatever the engine holds.
    pub(crate) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::of(Code::InvalidArgument, MALFORMED, message)
    }

    /// The protocol has it, this server does not.
    pub(crate) fn unimplemented(message: impl Into<String>) -> Refusal {
        Refusal::of(Code::Unimplemented, MALFORMED, message)
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        let mut status = Status::new(refusal.status, refusal.message);
        let code = MetadataValue::from_static(refusal.code);
        status.metadata_mut().insert(CODE_KEY, code);
        status
    }
}
