//! gRPC statuses of refused requests, small enough for what clients take as metadata.

use crate::proto::{rpc, v1};
use crate::refusal::{Refusal, WriteRefusal};
use prost::Message;
use tonic::{Code, Status};

/// Error space of our own codes, for `p4.v1.Error.space`.
const SPACE: &str = "stateplane";

/// Type of the details that the specification has for each update.
const ERROR: &str = "type.googleapis.com/p4.v1.Error";

/// Bytes of metadata that clients take: beyond them gRPC's own implementation may refuse an
/// answer, and with it the status.
const MAX_METADATA: usize = 8192;

/// Bytes that the names of all headers of an answer and their short values take, as HTTP/2
/// counts them.
const OTHER_METADATA: usize = 512;

/// Bytes of the longest text of a failed batch.
const MAX_SUMMARY: usize = 384;

/// Bytes of the longest text of one update's error, tried one after another until all errors
/// fit.
const DETAILS: [usize; 4] = [512, 128, 40, 0];

/// Bytes of the longest text of one update's error where not all errors fit.
const NAMED_DETAIL: usize = 96;

/// Bytes of a text as a header: all but letters and digits are taken to be escaped.
fn escaped(text: &str) -> usize {
    let bytes = text.bytes();
    bytes
        .map(|byte| if byte.is_ascii_alphanumeric() { 1 } else { 3 })
        .sum()
}

/// Bytes of binary metadata as a header: in base64.
fn encoded(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// The beginning of a text, of at most `longest` bytes by `size`, with a mark if something was
/// cut off.
fn shortened(text: &str, longest: usize, size: fn(&str) -> usize) -> String {
    if size(text) <= longest {
        return text.to_owned();
    }
    let mark = "…";
    let Some(room) = longest.checked_sub(size(mark)) else {
        return String::new();
    };
    let mut used = 0;
    let kept = text.char_indices().find(|(_, char)| {
        used += size(char.encode_utf8(&mut [0; 4]));
        used > room
    });
    let end = kept.map_or(text.len(), |(at, _)| at);
    format!("{}{mark}", &text[..end])
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        let longest = MAX_METADATA - OTHER_METADATA;
        Status::new(refusal.code, shortened(&refusal.message, longest, escaped))
    }
}

fn detail(error: &v1::Error) -> prost_types::Any {
    prost_types::Any {
        type_url: ERROR.to_owned(),
        value: error.encode_to_vec(),
    }
}

fn failure(refusal: &Refusal, message: String) -> v1::Error {
    v1::Error {
        canonical_code: refusal.code.into(),
        message,
        space: SPACE.to_owned(),
        ..v1::Error::default()
    }
}

/// One error for each update, in order.
fn in_order(outcomes: &[Result<(), Refusal>], longest: usize) -> Vec<prost_types::Any> {
    let errors = outcomes.iter().map(|outcome| match outcome {
        Ok(()) => v1::Error::default(),
        Err(refusal) => failure(refusal, shortened(&refusal.message, longest, str::len)),
    });
    errors.map(|error| detail(&error)).collect()
}

/// As many errors of updates that failed as fit `room` bytes, each with the number of its
/// update, and a summary of the others.
fn by_number(outcomes: &[Result<(), Refusal>], room: usize) -> Vec<prost_types::Any> {
    let failed = outcomes.iter().enumerate();
    let failed = failed.filter_map(|(at, outcome)| Some((at, outcome.as_ref().err()?)));
    let (undone, real): (Vec<_>, Vec<_>) =
        failed.partition(|(_, refusal)| refusal.code == Code::Aborted);
    let total = undone.len() + real.len();
    let summary = |named: usize| {
        let more = total - named;
        let message = match more {
            0 => format!("the other {} updates succeeded", outcomes.len() - total),
            _ => format!(
                "{more} more updates failed, {} succeeded; write fewer at once to get their errors",
                outcomes.len() - total
            ),
        };
        let code = match more {
            0 => Code::Ok,
            _ => Code::Unknown,
        };
        detail(&v1::Error {
            canonical_code: code.into(),
            message,
            space: SPACE.to_owned(),
            ..v1::Error::default()
        })
    };
    // Each detail has a tag and a length of up to two bytes before it.
    let size = |any: &prost_types::Any| any.encoded_len() + 3;
    let mut left = room.saturating_sub(size(&summary(0)));
    let mut details = Vec::new();
    for (at, refusal) in real.into_iter().chain(undone) {
        let text = format!("update {at}: {}", refusal.message);
        let named = detail(&failure(refusal, shortened(&text, NAMED_DETAIL, str::len)));
        let Some(rest) = left.checked_sub(size(&named)) else {
            break;
        };
        left = rest;
        details.push(named);
    }
    details.push(summary(details.len()));
    details
}

impl From<WriteRefusal> for Status {
    /// With one `p4.v1.Error` for each update in the details, as the specification ("Error
    /// Reporting") has it; where they do not fit into what clients take, with those of updates
    /// that failed, by number.
    fn from(refusal: WriteRefusal) -> Status {
        let outcomes = match refusal {
            WriteRefusal::Whole(refusal) => return refusal.into(),
            WriteRefusal::Updates(outcomes) => outcomes,
        };
        let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
        // Updates that were undone because of another say less than that one.
        let errors = || outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let first = errors().find(|refusal| refusal.code != Code::Aborted);
        let text = match first.or_else(|| errors().next()) {
            Some(first) => format!("{failed} of {} updates failed: {first}", outcomes.len()),
            None => "no update failed".to_owned(),
        };
        let message = shortened(&text, MAX_SUMMARY, str::len);
        let status = |details| rpc::Status {
            code: Code::Unknown.into(),
            message: message.clone(),
            details,
        };
        let room = MAX_METADATA - OTHER_METADATA - escaped(&message);
        let fits = |status: &rpc::Status| encoded(status.encoded_len()) <= room;
        let whole = DETAILS
            .iter()
            .map(|longest| status(in_order(&outcomes, *longest)));
        let chosen = whole.into_iter().find(fits).unwrap_or_else(|| {
            let bytes = room / 4 * 3;
            let details = bytes.saturating_sub(status(Vec::new()).encoded_len());
            status(by_number(&outcomes, details))
        });
        Status::with_details(Code::Unknown, message, chosen.encode_to_vec().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the metadata of a status, as HTTP/2 counts them.
    fn metadata(status: &Status) -> usize {
        let response = status.clone().into_http::<tonic::body::Body>();
        let headers = response.headers();
        let sizes = headers
            .iter()
            .map(|(name, value)| 32 + name.as_str().len() + value.len());
        sizes.sum()
    }

    fn errors(status: &Status) -> Vec<v1::Error> {
        let details = rpc::Status::decode(status.details()).unwrap().details;
        let errors = details.iter().map(|any| v1::Error::decode(&*any.value));
        errors.collect::<Result<_, _>>().unwrap()
    }

    fn batch(count: usize, failing: &[usize], text: &str) -> Status {
        let outcomes = (0..count).map(|at| {
            let failed = failing.binary_search(&at).is_ok();
            failed.then(|| Refusal::invalid(text)).map_or(Ok(()), Err)
        });
        WriteRefusal::Updates(outcomes.collect()).into()
    }

    #[test]
    fn statuses_of_all_sizes_fit_what_clients_take() {
        let nasty = "ä{}\n% ".repeat(1000);
        let whole = Status::from(Refusal::invalid(&nasty));
        assert!(metadata(&whole) <= 8192 && whole.message().len() > 1000);
        for count in [1, 10, 60, 100, 150, 1000, 60_000] {
            for failing in [vec![0], vec![count - 1], (0..count).collect::<Vec<_>>()] {
                let few: Vec<_> = failing.into_iter().take(2000).collect();
                let status = batch(count, &few, &nasty);
                assert!(metadata(&status) <= 8192, "{count} {}", metadata(&status));
                let errors = errors(&status);
                let known = errors
                    .iter()
                    .filter(|error| error.canonical_code == 3)
                    .count();
                assert!(known > 0 && known <= few.len(), "{count}");
            }
        }
    }

    #[test]
    fn updates_that_failed_are_named_where_not_all_fit() {
        let status = batch(1000, &[700, 999], "no such table");
        let errors = errors(&status);
        let texts: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        let expected = [
            "update 700: no such table",
            "update 999: no such table",
            "the other 998 updates succeeded",
        ];
        assert_eq!(texts, expected);
        let codes: Vec<i32> = errors.iter().map(|error| error.canonical_code).collect();
        assert_eq!(codes, [3, 3, 0]);
        let all: Vec<usize> = (0..1000).collect();
        let many = self::errors(&batch(1000, &all, "no"));
        let last = many.last().unwrap();
        let named = many.len() - 1;
        assert!(named > 20, "{named}");
        let rest = format!("{} more updates failed, 0 succeeded", 1000 - named);
        assert!(last.message.starts_with(&rest), "{}", last.message);
        assert_eq!(last.canonical_code, Code::Unknown as i32);
    }
}
