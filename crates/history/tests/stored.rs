//! The checkers judge the histories kept in `good` and `bad` as these say.

mod judged;

use stateplane_history::replication::{Application, Machine, checkers};

/// Each packet gets a number.
struct Tickets;

const TICKETS: Application = Application::new("tickets", &Tickets);

impl Machine for Tickets {
    fn steps(&self, state: u128, _: u64) -> Vec<(Option<u64>, u128)> {
        vec![(Some(state as u64 + 1), state + 1)]
    }
}

#[test]
fn bad_histories_are_rejected_by_the_checker_they_name_and_no_other() {
    let rejecting = judged::rejecting(env!("CARGO_MANIFEST_DIR"), &[TICKETS]);
    let all = checkers::all().iter().map(|of| of.name()).collect();
    assert_eq!(rejecting, all);
}

#[test]
fn good_histories_are_accepted() {
    judged::all_accepted(env!("CARGO_MANIFEST_DIR"), &[TICKETS]);
}
