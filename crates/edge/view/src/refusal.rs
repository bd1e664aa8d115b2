//! Refusals as gRPC statuses.

use stateplane_host::sync::ViewError;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// Name of the metadata in which a refusal has its code.
pub const CODE_KEY: &str = "stateplane-code";

/// Name of the metadata in which an engine that stands by has the address of the one that leads.
pub const LEADER_KEY: &str = "stateplane-leader";

/// Code of the refusal of an engine that stands by: nothing was done, and another one may do it.
pub const STANDBY_CODE: &str = "SYNC027";

/// The status of a refusal.
pub(crate) fn refused(error: &ViewError) -> Status {
    let code = match error {
        ViewError::UnknownGroup { .. } | ViewError::UnknownFlows { .. } => Code::NotFound,
        ViewError::UnknownFlow { shards, .. } if shards.is_empty() => Code::NotFound,
        ViewError::UnknownFlow { .. } | ViewError::StateLength { .. } => Code::InvalidArgument,
        ViewError::Incomplete(_)
        | ViewError::FlowsIncomplete(_)
        | ViewError::Standby { .. }
        | ViewError::Stopped => Code::Unavailable,
        ViewError::Unmet { .. } | ViewError::FlowsUnmet { .. } | ViewError::NotInTime => {
            Code::DeadlineExceeded
        }
        ViewError::Location { .. } | ViewError::Gone { .. } => Code::OutOfRange,
        ViewError::Malformed(_) => Code::InvalidArgument,
        ViewError::Unknown(_) => Code::Unknown,
        ViewError::Busy(_) => Code::ResourceExhausted,
        ViewError::Fenced(_)
        | ViewError::ReadOnly(_)
        | ViewError::FlowsReadOnly(_)
        | ViewError::NotContinued(_)
        | ViewError::OfSnapshots(_)
        | ViewError::StoreRefused { .. } => Code::FailedPrecondition,
        ViewError::Nested => Code::Internal,
    };
    let mut status = Status::new(code, error.to_string());
    let name = MetadataValue::from_static(error.code());
    status.metadata_mut().insert(CODE_KEY, name);
    if let ViewError::Standby {
        leader: Some(leader),
    } = error
        && let Ok(leader) = MetadataValue::try_from(leader.as_str())
    {
        status.metadata_mut().insert(LEADER_KEY, leader);
    }
    status
}

/// The code of a refusal, as `stateplane explain` knows it.
pub fn code_of(status: &Status) -> Option<&str> {
    status.metadata().get(CODE_KEY)?.to_str().ok()
}

/// True if an engine that stands by refused, which has done nothing.
pub fn is_standby(status: &Status) -> bool {
    code_of(status) == Some(STANDBY_CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_stands_by_names_the_one_that_leads() {
        let leader = Some("10.0.0.1:9560".to_owned());
        let status = refused(&ViewError::Standby { leader });
        assert!(is_standby(&status) && status.code() == Code::Unavailable);
        let named = status.metadata().get(LEADER_KEY);
        assert_eq!(named.and_then(|it| it.to_str().ok()), Some("10.0.0.1:9560"));
        assert!(status.message().contains("10.0.0.1:9560"), "{status:?}");
        let status = refused(&ViewError::Standby { leader: None });
        assert!(is_standby(&status) && !status.metadata().contains_key(LEADER_KEY));
        assert!(!is_standby(&refused(&ViewError::Incomplete(
            "a".to_owned()
        ))));
    }
}
