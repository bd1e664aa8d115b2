//! Refusals as gRPC statuses.

use stateplane_host::sync::ViewError;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// Name of the metadata in which a refusal has its code.
pub const CODE_KEY: &str = "stateplane-code";

/// The status of a refusal.
pub(crate) fn refused(error: &ViewError) -> Status {
    let code = match error {
        ViewError::UnknownGroup { .. } => Code::NotFound,
        ViewError::Incomplete(_) => Code::Unavailable,
        ViewError::Unmet { .. } => Code::DeadlineExceeded,
        ViewError::Location { .. } | ViewError::Gone { .. } => Code::OutOfRange,
        ViewError::Malformed(_) => Code::InvalidArgument,
        ViewError::Unknown(_) => Code::Unknown,
        ViewError::Busy(_) => Code::ResourceExhausted,
        ViewError::Fenced(_) => Code::FailedPrecondition,
    };
    let mut status = Status::new(code, error.to_string());
    let name = MetadataValue::from_static(error.code());
    status.metadata_mut().insert(CODE_KEY, name);
    status
}

/// The code of a refusal, as `stateplane explain` knows it.
pub fn code_of(status: &Status) -> Option<&str> {
    status.metadata().get(CODE_KEY)?.to_str().ok()
}
