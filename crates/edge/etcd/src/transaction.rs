//! Conditions and operations of transactions.

use crate::proto::compare::{CompareTarget, TargetUnion};
use crate::proto::request_op::Request;
use crate::proto::response_op::Response;
use crate::proto::{
    Compare, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest, RequestOp, TxnResponse,
};

fn equal(key: &str, target: CompareTarget, value: TargetUnion) -> Compare {
    Compare {
        target: target.into(),
        key: key.into(),
        target_union: Some(value),
        ..Compare::default()
    }
}

/// There is no such key.
pub(crate) fn is_absent(key: &str) -> Compare {
    let never = TargetUnion::CreateRevision(0);
    equal(key, CompareTarget::Create, never)
}

/// The key is bound to the lease with number `lease`.
pub(crate) fn has_lease(key: &str, lease: i64) -> Compare {
    equal(key, CompareTarget::Lease, TargetUnion::Lease(lease))
}

/// The key was last written at `revision`; 0 if there is none.
pub(crate) fn is_of(key: &str, revision: i64) -> Compare {
    let revision = TargetUnion::ModRevision(revision);
    equal(key, CompareTarget::Mod, revision)
}

fn operation(request: Request) -> RequestOp {
    RequestOp {
        request: Some(request),
    }
}

/// Writes `value`, bound to `lease` unless that is 0.
pub(crate) fn put(key: &str, value: Vec<u8>, lease: i64) -> RequestOp {
    operation(Request::RequestPut(PutRequest {
        key: key.into(),
        value,
        lease,
    }))
}

pub(crate) fn delete(key: &str) -> RequestOp {
    operation(Request::RequestDeleteRange(DeleteRangeRequest {
        key: key.into(),
    }))
}

/// Reads one key.
pub(crate) fn get(key: &str) -> RequestOp {
    operation(Request::RequestRange(RangeRequest {
        key: key.into(),
        range_end: Vec::new(),
    }))
}

/// Reads all keys that begin with `folder`, which ends with `/`.
pub(crate) fn get_all(folder: &str) -> RequestOp {
    // What follows `/` directly: the first key that no longer begins so.
    let mut end = folder.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    operation(Request::RequestRange(RangeRequest {
        key: folder.into(),
        range_end: end,
    }))
}

/// Result of read operation `at`.
pub(crate) fn read(response: &TxnResponse, at: usize) -> &[KeyValue] {
    let response = response.responses.get(at);
    match response.and_then(|response| response.response.as_ref()) {
        Some(Response::ResponseRange(range)) => &range.kvs,
        _ => &[],
    }
}
