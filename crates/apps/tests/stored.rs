//! The applications' machines judge the histories kept in `good` and `bad` as these say.

#[path = "../../history/tests/judged/mod.rs"]
mod judged;

use stateplane_history::replication::checkers;
use std::collections::BTreeSet;

#[test]
fn bad_histories_are_rejected_by_the_checker_they_name_and_no_other() {
    let known = stateplane_apps::judged();
    let rejecting = judged::rejecting(env!("CARGO_MANIFEST_DIR"), &known);
    assert_eq!(rejecting, BTreeSet::from([checkers::APPLICATION]));
}

#[test]
fn good_histories_are_accepted() {
    judged::all_accepted(env!("CARGO_MANIFEST_DIR"), &stateplane_apps::judged());
}
