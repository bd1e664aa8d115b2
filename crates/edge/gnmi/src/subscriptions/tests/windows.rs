//! Windows.

use super::*;

fn told_window(number: u64) -> Vec<String> {
    let path = format!("!windows/window[number={number}]/state");
    [
        format!("{path}/incarnation=1"),
        format!("{path}/epoch={number}"),
        format!("{path}/values-packed=24 bytes"),
    ]
    .to_vec()
}

#[test]
fn windows_are_atomic_each_once_and_in_order() {
    let mut bench = Bench::new(list(Mode::Stream, &[sampled(WINDOWS, 5)]));
    bench.kept = vec![window(3, &[1; 3]), window(4, &[2; 3])];
    let first = [told_window(3), told_window(4)].concat();
    assert_eq!(bench.pass(20_000), with_sync(first));
    assert!(bench.pass(60_000).is_empty());
    bench.kept = vec![window(4, &[2; 3]), window(5, &[3; 3]), window(6, &[4; 3])];
    let dropped = vec!["-windows/window[number=3]/state".to_owned()];
    let next = [dropped, told_window(5), told_window(6)].concat();
    assert_eq!(bench.pass(80_000), next);
    // A gap is no order: the call ends.
    bench.kept = vec![window(9, &[5; 3])];
    let refused = bench.try_pass(100_000).expect_err("7 and 8 are not kept");
    assert_eq!(
        (refused.status, refused.code),
        (tonic::Code::OutOfRange, "SYNC025")
    );
}

#[test]
fn one_window_may_be_awaited_and_once_tells_those_that_are_kept() {
    let path = format!("{WINDOWS}/window[number=5]/state/epoch");
    let mut bench = Bench::new(list(Mode::Stream, &[of(&path, SubscriptionMode::OnChange)]));
    bench.kept = vec![window(4, &[2; 3])];
    assert_eq!(bench.pass(20_000), ["sync"]);
    bench.kept.push(window(5, &[2; 3]));
    bench.kept.push(window(6, &[2; 3]));
    assert_eq!(
        bench.pass(40_000),
        ["!windows/window[number=5]/state/epoch=5"]
    );
    bench.kept.remove(0);
    bench.kept.remove(0);
    assert_eq!(bench.pass(60_000), ["-windows/window[number=5]/state"]);
    assert!(bench.pass(80_000).is_empty());

    let mut bench = Bench::new(list(
        Mode::Once,
        &[of(WINDOWS, SubscriptionMode::TargetDefined)],
    ));
    bench.kept = vec![window(3, &[1; 3]), window(4, &[2; 3])];
    let both = [told_window(3), told_window(4)].concat();
    assert_eq!(bench.pass(20_000), with_sync(both));
    assert!(bench.subscriptions.is_finished());
}
