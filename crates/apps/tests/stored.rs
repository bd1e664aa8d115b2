//! The applications' machines judge the histories kept in `good` and `bad` as these say.

use stateplane_apps::judged;
use stateplane_history::replication::{Document, Expectation, checkers, judge};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn stored(folder: &str) -> Vec<(PathBuf, Document)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("the folder of stored histories")
        .map(|entry| entry.expect("an entry of it").path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a readable history");
            let document = Document::read(&text, &judged());
            let document = document.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path, document)
        })
        .collect()
}

#[test]
fn bad_histories_are_rejected_by_the_checker_they_name_and_no_other() {
    let mut rejecting = BTreeSet::new();
    for (path, document) in stored("bad") {
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
    assert_eq!(rejecting, BTreeSet::from([checkers::APPLICATION]));
}

#[test]
fn good_histories_are_accepted() {
    let good = stored("good");
    assert!(!good.is_empty());
    for (path, document) in good {
        assert_eq!(document.expectation, Some(Expectation::Accepted));
        assert_eq!(judge(&document.history), [], "{}", path.display());
    }
}
