use super::*;

fn check(invariants: &mut Invariants, holds: bool) -> bool {
    invariant!(invariants, ParkedRequests, holds, "{} bytes", 7)
}

#[test]
#[should_panic(expected = "invariant SI008 broke at crates/invariant/src/tests.rs:4: 7 bytes")]
fn a_broken_invariant_panics_in_tests() {
    let mut invariants = Invariants::new(false);
    assert!(check(&mut invariants, true));
    check(&mut invariants, false);
}

#[test]
fn in_production_it_is_counted_and_said_once() {
    in_production(|| {
        let mut invariants = Invariants::new(false);
        assert!(check(&mut invariants, true));
        assert_eq!(invariants.poll(), None);
        for _ in 0..3 {
            assert!(!check(&mut invariants, false));
        }
        let broken = invariants.poll().unwrap();
        assert_eq!(broken.invariant, Invariant::ParkedRequests);
        assert!(broken.to_string().contains("explain SI008"), "{broken}");
        assert_eq!(invariants.poll(), None);
        assert_eq!(invariants.counts().of(Invariant::ParkedRequests), 3);
        assert_eq!(invariants.silenced(), None);
        let shown = serde_json::to_string(&invariants.counts()).unwrap();
        assert_eq!(
            shown,
            r#"{"broken_invariants":3,"broken_parked_requests":3}"#
        );
    });
}

#[test]
fn the_first_that_silences_is_kept() {
    in_production(|| {
        let mut invariants = Invariants::new(true);
        invariant!(invariants, EarlyUpdates, false, "dropped");
        invariant!(invariants, ChainNumber, false, "first");
        invariant!(invariants, ChainEntry, false, "second");
        let silenced = invariants.silenced().map(|broken| broken.invariant);
        assert_eq!(silenced, Some(Invariant::ChainNumber));
        let said: Vec<&str> = core::iter::from_fn(|| invariants.poll())
            .map(|it| it.invariant.code())
            .collect();
        assert_eq!(said, ["SI001", "SI003", "SI009"]);
    });
}

/// Neither in tests nor in production: a stranger could have sent it.
#[test]
fn what_members_send_counts_only_where_it_is_authentic() {
    let mut invariants = Invariants::new(false);
    assert!(!invariant!(invariants, ChainEntry, false, "forged"));
    assert_eq!(invariants, Invariants::new(false));
}

#[test]
fn production_ends_with_its_test() {
    assert!(mode::panics());
    in_production(|| {
        in_production(|| assert!(!mode::panics()));
        assert!(!mode::panics());
    });
    assert!(mode::panics());
}

#[test]
fn codes_and_counters_are_not_given_twice() {
    let mut names: Vec<&str> = Invariant::ALL
        .iter()
        .flat_map(|it| [it.code(), it.counter()])
        .collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 2 * Invariant::ALL.len());
}
