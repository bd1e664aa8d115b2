use super::*;

#[test]
fn programs_mean_what_the_specification_says() {
    let mut total = Judged::default();
    for seed in 0..20 {
        match check(seed, 12, 2000) {
            Ok(judged) => total += judged,
            Err(mismatch) => panic!("seed {seed}: {mismatch}"),
        }
    }
    // Packets of which nothing is known would show little.
    assert!(total.open * 4 < total.packets, "{total}");
}
