//! Histories kept in the folders `good` and `bad` of a crate's tests, and what they say of their
//! judgement. `stateplane-apps` has its own, with the machines of the applications.

use stateplane_history::replication::{Application, Document, Expectation, judge};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Documents in a folder of the tests of the crate at `manifest`, which may name applications
/// `known`.
fn stored(manifest: &str, folder: &str, known: &[Application]) -> Vec<(PathBuf, Document)> {
    let folder = Path::new(manifest).join("tests").join(folder);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of stored histories")
        .map(|entry| entry.expect("an entry of it").path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a readable history");
            let document = Document::read(&text, known);
            let document = document.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path, document)
        })
        .collect()
}

/// Asserts that each bad history is rejected by the checker that it names and no other; gives
/// the checkers.
pub fn rejecting(manifest: &str, known: &[Application]) -> BTreeSet<&'static str> {
    let mut rejecting = BTreeSet::new();
    for (path, document) in stored(manifest, "bad", known) {
        let path = path.display();
        let Some(Expectation::Rejected { by, .. }) = &document.expectation else {
            panic!("{path} names no checker");
        };
        let violations = judge(&document.history);
        let checkers: BTreeSet<_> = violations.iter().map(|v| v.checker).collect();
        assert_eq!(checkers, BTreeSet::from([*by]), "{path}: {violations:?}");
        for violation in &violations {
            let relevant = violation.relevant(&document.history, 4);
            assert!(!relevant.is_empty(), "{path}: {violation}");
        }
        rejecting.insert(*by);
    }
    rejecting
}

/// Asserts that all good histories are accepted.
pub fn all_accepted(manifest: &str, known: &[Application]) {
    let good = stored(manifest, "good", known);
    assert!(!good.is_empty());
    for (path, document) in good {
        assert_eq!(document.expectation, Some(Expectation::Accepted));
        assert_eq!(judge(&document.history), [], "{}", path.display());
    }
}
