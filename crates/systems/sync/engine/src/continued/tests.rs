use super::*;

/// Nothing is lacking before a value that is anywhere within its width.
const ALONE: Unseen = Unseen { sum: 0, most: 255 };

/// Totals of four counters of 8 bits that all hold 10, of the first view of start 7, in epoch 1.
fn followed() -> Continued {
    let mut continued = Continued::new(8, 4, None);
    continued.begins(&begin(7, 1, 100));
    for at in 0..4 {
        continued.took((at, 10), true, false, ALONE);
    }
    assert_eq!(continued.totals(), [10; 4]);
    assert_eq!(continued.discontinuities(), [0; 4]);
    continued
}

fn begin(incarnation: u32, epoch: u32, sum: u64) -> Begin {
    Begin {
        incarnation,
        epoch,
        is_carried: false,
        fill: None,
        sum,
        end: 0,
    }
}

fn lacks(sum: u64, most: u64) -> Unseen {
    Unseen { sum, most }
}

#[test]
fn a_width_that_passes_in_view_is_counted() {
    let mut continued = followed();
    continued.took((1, 250), false, false, ALONE);
    continued.took((1, 4), false, false, ALONE);
    assert_eq!(continued.totals(), [10, 260, 10, 10]);
    assert_eq!(continued.discontinuities(), [0; 4]);
}

#[test]
fn a_width_that_may_have_passed_unseen_is_told() {
    let mut continued = followed();
    // From 10 to 40 in 30 steps, or in 286: those that are lacking and the value's own say which.
    continued.took((0, 40), false, false, lacks(200, 85));
    assert_eq!(
        (continued.totals()[0], continued.discontinuities()[0]),
        (40, 0)
    );
    continued.took((1, 40), false, false, lacks(200, 86));
    assert_eq!(
        (continued.totals()[1], continued.discontinuities()[1]),
        (10, 1)
    );
    continued.took((1, 50), false, false, ALONE);
    assert_eq!(
        continued.totals()[1],
        20,
        "it goes on from what it held then"
    );
    // Nothing is lacking: each value is within a width of the last.
    continued.took((2, 5), false, false, lacks(0, 10_000));
    assert_eq!(
        (continued.totals()[2], continued.discontinuities()[2]),
        (261, 0)
    );
    // Sums that are not counted hide everything, and distances that are not counted may be any.
    continued.took((3, 11), false, false, lacks(UNBOUNDED, 0));
    assert_eq!(
        (continued.totals()[3], continued.discontinuities()[3]),
        (10, 1)
    );
    continued.took((3, 12), false, false, lacks(1, UNBOUNDED));
    assert_eq!(
        (continued.totals()[3], continued.discontinuities()[3]),
        (11, 1)
    );
    continued.took((3, 13), false, false, lacks(2, UNBOUNDED));
    assert_eq!(
        (continued.totals()[3], continued.discontinuities()[3]),
        (11, 2)
    );
}

#[test]
fn what_the_switch_tells_is_told() {
    let mut continued = followed();
    continued.took((0, 90), false, true, ALONE);
    assert_eq!(
        (continued.totals()[0], continued.discontinuities()[0]),
        (10, 1)
    );
    continued.took((0, 91), false, false, ALONE);
    assert_eq!(
        (continued.totals()[0], continued.discontinuities()[0]),
        (11, 1)
    );
    continued.given(1, 0);
    continued.took((1, 3), false, false, ALONE);
    assert_eq!(
        (continued.totals()[1], continued.discontinuities()[1]),
        (13, 1)
    );
}

#[test]
fn totals_cross_a_cut_with_its_window() {
    let mut continued = followed();
    continued.filled((2, 0), ALONE, 50, true);
    continued.took((0, 6), false, false, ALONE);
    assert_eq!(continued.totals()[0], 16);
    assert!(!continued.is_settled());
    assert!(continued.keep(7, 2, 0).is_none());
    // Location 1 held 30 at the cut, and location 2 tells that a width passed before it.
    continued.window(1, &[99; 4]);
    continued.window(2, &[10, 30, 30, 10]);
    continued.took((2, 1), false, true, ALONE);
    continued.has_all_before(49);
    assert_eq!(continued.totals()[1], 10, "what the ring held is lacking");
    continued.has_all_before(50);
    assert!(continued.is_settled());
    assert_eq!(continued.totals(), [16, 30, 10, 10]);
    assert_eq!(continued.discontinuities(), [0, 0, 1, 0]);
    // The window is not taken again.
    continued.no_window(2);
    continued.has_all_before(60);
    assert_eq!(continued.totals(), [16, 30, 10, 10]);
}

#[test]
fn a_width_that_may_have_passed_before_a_cut_is_told() {
    let mut continued = followed();
    continued.filled((2, 0), lacks(200, 80), 50, true);
    continued.window(2, &[10, 34, 35, 36]);
    continued.has_all_before(50);
    assert_eq!(continued.discontinuities(), [1, 1, 0, 0]);
    assert_eq!(continued.totals(), [10, 10, 35, 36]);
}

#[test]
fn a_cut_without_a_window_breaks_all_totals() {
    let mut continued = followed();
    continued.filled((2, 0), ALONE, 0, false);
    assert!(continued.is_settled());
    assert_eq!(continued.discontinuities(), [1; 4]);
    // One whose window was given up later, and one before whose end the next cut came.
    continued.filled((3, 0), ALONE, 0, true);
    continued.no_window(2);
    assert!(!continued.is_settled());
    continued.no_window(3);
    assert!(continued.is_settled());
    assert_eq!(continued.discontinuities(), [2; 4]);
    continued.filled((4, 0), ALONE, 9, true);
    continued.took((0, 1), false, true, ALONE);
    continued.filled((5, 0), ALONE, 9, true);
    assert_eq!(continued.discontinuities(), [3; 4]);
    assert_eq!(continued.totals(), [10; 4]);
}

#[test]
fn the_next_view_of_the_same_start_follows() {
    let mut continued = followed();
    continued.ended(7, 1, 120, true);
    continued.begins(&begin(7, 1, 300));
    // 180 passed unseen: 40 after 10 may be 286 steps only if the message had 106 or more.
    continued.took((0, 40), true, false, lacks(0, 105));
    continued.took((1, 40), true, false, lacks(0, 106));
    continued.took((2, 12), true, false, lacks(70, 7));
    continued.took((2, 14), false, false, lacks(70, 8));
    assert_eq!(continued.totals(), [40, 10, 12 + 2, 10]);
    assert_eq!(continued.discontinuities(), [0, 1, 0, 0]);
    // A view that did not have all locations leaves the others with what they had before it.
    continued.ended(7, 1, 500, false);
    continued.begins(&begin(7, 1, 500));
    continued.took((3, 20), true, false, lacks(0, 10));
    assert_eq!(
        (continued.totals()[3], continued.discontinuities()[3]),
        (10, 1)
    );
}

#[test]
fn what_passed_between_views_is_unseen_at_a_cut_before_the_first_values() {
    let crossed = |is_complete| {
        let mut continued = followed();
        continued.ended(7, 1, 120, true);
        continued.begins(&begin(7, 1, 420));
        // Of the 300 that passed a location may have counted 276, and hold 30.
        continued.crosses_filled((2, 0), ALONE, 0, (is_complete, true));
        continued.window(2, &[30; 4]);
        continued.has_all_before(0);
        // Values that were sent since the cut are in this view.
        continued.took((0, 5), true, false, ALONE);
        (continued.totals()[0], continued.discontinuities()[0])
    };
    assert_eq!(crossed(false), (15, 1));
    assert_eq!(crossed(true), (35, 0));
}

#[test]
fn another_start_or_unknown_cuts_break_all_totals() {
    let cases: [(u32, u32, bool, Option<u64>); 4] = [
        (8, 1, false, None),
        (7, 2, false, None),
        (7, 3, true, None),
        (7, 3, false, Some(0)),
    ];
    for (incarnation, epoch, is_carried, fill) in cases {
        let mut continued = followed();
        continued.ended(7, 1, 100, true);
        continued.begins(&Begin {
            is_carried,
            fill,
            ..begin(incarnation, epoch, 100)
        });
        continued.took((0, 11), true, false, ALONE);
        continued.took((0, 12), false, false, ALONE);
        assert_eq!(
            (continued.totals()[0], continued.discontinuities()[0]),
            (11, 1)
        );
    }
    let mut continued = followed();
    continued.ended(7, 1, 100, true);
    continued.begins(&Begin {
        is_carried: true,
        ..begin(7, 2, 100)
    });
    continued.took((0, 11), true, false, ALONE);
    assert_eq!(
        (continued.totals()[0], continued.discontinuities()[0]),
        (11, 0)
    );
}

#[test]
fn a_view_that_begins_behind_a_cut_has_its_window() {
    let mut continued = followed();
    continued.ended(7, 1, 100, true);
    continued.begins(&Begin {
        fill: Some(0),
        end: 20,
        ..begin(7, 2, 100)
    });
    continued.took((0, 3), true, false, ALONE);
    continued.window(2, &[14, 10, 10, 10]);
    continued.has_all_before(20);
    assert_eq!(continued.totals(), [17, 10, 10, 10]);
    assert_eq!(continued.discontinuities(), [0; 4]);
}

#[test]
fn kept_totals_go_on() {
    let mut continued = followed();
    continued.took((0, 250), false, false, ALONE);
    continued.took((0, 4), false, false, ALONE);
    let kept = continued.keep(7, 1, 400).expect("it is settled");
    let mut next = Continued::new(8, 4, Some(kept.clone()));
    next.begins(&begin(7, 1, 410));
    next.took((0, 10), true, false, lacks(0, 6));
    assert_eq!((next.totals()[0], next.discontinuities()[0]), (266, 0));
    // Another start of the switch, or another group.
    let mut next = Continued::new(8, 4, Some(kept.clone()));
    next.begins(&begin(9, 0, 0));
    next.took((0, 10), true, false, ALONE);
    assert_eq!(
        (next.totals()[0], next.discontinuities()[0]),
        (260, 0x1_0001)
    );
    let next = Continued::new(8, 5, Some(kept));
    assert_eq!(next.totals(), [0; 5]);
}

#[test]
fn a_total_that_is_full_stays() {
    let mut continued = Continued::new(64, 1, None);
    continued.begins(&begin(7, 0, 0));
    continued.took((0, u64::MAX - 5), true, false, ALONE);
    continued.took((0, 3), false, false, ALONE);
    assert_eq!(continued.totals(), [u64::MAX - 5]);
    assert_eq!(continued.discontinuities(), [1]);
}

#[test]
fn a_counter_of_another_width_is_told() {
    // The register has 8 bits, and the engine was told 32: it passes its width with 6 steps.
    let mut continued = Continued::new(32, 1, None);
    continued.begins(&begin(7, 0, 0));
    continued.took((0, 252), true, false, ALONE);
    continued.took((0, 2), false, false, lacks(0, 6));
    assert_eq!(
        (continued.totals()[0], continued.discontinuities()[0]),
        (252, 1)
    );
    // It has 32 bits, and the engine was told 8.
    let mut continued = followed();
    continued.took((0, 266), false, false, lacks(0, 256));
    assert_eq!(
        (continued.totals()[0], continued.discontinuities()[0]),
        (10, 1)
    );
}

#[test]
fn no_two_engines_tell_a_discontinuity_by_one_number() {
    let kept = followed().keep(7, 1, 100).expect("it is settled");
    let told = |kept: &KeptTotals| {
        let mut continued = Continued::new(8, 4, Some(kept.clone()));
        continued.begins(&begin(9, 0, 0));
        continued.took((0, 1), true, false, ALONE);
        continued.took((0, 2), false, true, ALONE);
        (
            continued.discontinuities()[0],
            continued.keep(9, 0, 0).expect("it is settled"),
        )
    };
    let (first, next) = told(&kept);
    let (second, _) = told(&next);
    assert_eq!((first, second), (0x1_0002, 0x2_0001));
    // Numbers of a life go round without a 0.
    let mut continued = followed();
    for _ in 0..0x1_0000 {
        continued.breaks(1);
    }
    assert_eq!(continued.discontinuities()[1], 1);
}

#[test]
fn cuts_that_are_skipped_break_all_totals() {
    let mut continued = followed();
    continued.filled((2, 0), ALONE, 0, true);
    continued.skips();
    assert!(continued.is_settled());
    continued.took((0, 9), false, false, ALONE);
    assert_eq!(continued.totals(), [10; 4]);
    assert_eq!(continued.discontinuities(), [2, 1, 1, 1]);
    continued.filled((5, 0), ALONE, 0, true);
    continued.window(5, &[9, 11, 11, 11]);
    continued.has_all_before(0);
    assert_eq!(
        continued.totals(),
        [10; 4],
        "what they held before is unknown"
    );
    assert_eq!(continued.discontinuities(), [2, 2, 2, 2]);
}
