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

/// The key has this value.
pub(crate) fn is_value(key: &str, value: Vec<u8>) -> Compare {
    equal(key, CompareTarget::Value, TargetUnion::Value(value))
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
    delete_between(key, "")
}

/// Deletes the keys from `first` on that are less than `end`; `first` alone if `end` is empty.
pub(crate) fn delete_between(first: &str, end: &str) -> RequestOp {
    operation(Request::RequestDeleteRange(DeleteRangeRequest {
        key: first.into(),
        range_end: end.into(),
    }))
}

/// Reads one key.
pub(crate) fn get(key: &str) -> RequestOp {
    operation(Request::RequestRange(RangeRequest {
        key: key.into(),
        range_end: Vec::new(),
        limit: 0,
    }))
}

/// Reads all keys that begin with `folder`, which ends with `/`.
pub(crate) fn get_all(folder: &str) -> RequestOp {
    get_some(folder.into(), folder, 0)
}

/// Reads the first `limit` keys from `first` on, all if it is 0, that begin with `folder`, which ends
/// with `/`.
pub(crate) fn get_some(first: Vec<u8>, folder: &str, limit: i64) -> RequestOp {
    // What follows `/` directly: the first key that no longer begins so.
    let mut end = folder.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    operation(Request::RequestRange(RangeRequest {
        key: first,
        range_end: end,
        limit,
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
