//! Another program while packets are under way.

use super::engine::{FakeEngine, at};
use super::{assert_balanced, frame, switch, transmitted, watches};
use crate::DropReason;

#[test]
fn packets_that_wait_leave_and_copies_that_are_held_are_counted() {
    let mut switch = switch();
    // To port 1, and a copy that session 2 holds.
    let copied = frame(&[(at::TARGET, 1), (at::INGRESS_CLONE, 2)]);
    switch.handle_frame(1000, 0, &copied);
    assert_eq!(switch.occupancy().held, 1);
    drop(switch.replace_engine(FakeEngine::new(watches::state())));
    assert_eq!(
        transmitted(&mut switch).len(),
        1,
        "what was sent stays sent"
    );
    assert_eq!(switch.occupancy().total(), 0);
    assert_eq!(switch.counters().dropped(DropReason::ProgramReplaced), 1);
    assert_balanced(&switch);
    switch.handle_frame(2000, 0, &frame(&[(at::TARGET, 3)]));
    let sent = transmitted(&mut switch);
    assert_eq!(sent.len(), 1, "the new program forwards");
    assert_eq!(sent[0].port, 3);
    assert_balanced(&switch);
}
