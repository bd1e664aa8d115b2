use super::*;
use crate::quota::Quota;
use core::net::Ipv4Addr;

fn nat() -> Config {
    Config::new(3, 0).with_shards(4).with_nat(
        NatPool {
            addresses: vec![Ipv4Addr::new(203, 0, 113, 1)],
            first_port: 1024,
            last_port: 65_535,
        },
        1,
        2,
    )
}

fn code(change: impl FnOnce(&mut Config)) -> &'static str {
    let mut config = nat();
    change(&mut config);
    config.check().map_or_else(|error| error.code(), |()| "")
}

fn pool(change: impl FnOnce(&mut NatPool)) -> &'static str {
    code(|config| change(config.nat.as_mut().unwrap()))
}

#[test]
fn the_plain_nat_is_accepted() {
    assert_eq!(nat().check(), Ok(()));
}

#[test]
fn each_contradiction_has_its_code() {
    assert_eq!(code(|c| c.chain_length = 0), "S001");
    assert_eq!(code(|c| c.position = 3), "S002");
    assert_eq!(code(|c| c.shards = 0), "S003");
    assert_eq!(code(|c| c.shards = 3), "S003");
    assert_eq!(code(|c| c.served.clear()), "S004");
    assert_eq!(
        code(|c| {
            c.served.insert(4);
        }),
        "S005"
    );
    assert_eq!(code(|c| c.classes[1].class = 1), "S006");
    assert_eq!(code(|c| c.classes[0].state_length = 4), "S007");
    assert_eq!(code(|c| c.classes[1].state_length = 4), "S007");
    assert_eq!(code(|c| c.classes[1].shared_only = false), "S008");
    assert_eq!(
        code(|c| c.classes[1].first_lease = FirstLease::Zero),
        "S009"
    );
    assert_eq!(code(|c| c.classes.truncate(1)), "S009");
    assert_eq!(code(|c| c.nat = None), "S010");
    assert_eq!(pool(|p| p.addresses.clear()), "S011");
    assert_eq!(pool(|p| p.last_port = 1023), "S011");
    assert_eq!(pool(|p| (p.first_port, p.last_port) = (0, 0)), "S011");
    assert_eq!(pool(|p| p.first_port = 0), "S012");
    assert_eq!(pool(|p| p.addresses.push(p.addresses[0])), "S013");
    assert_eq!(pool(|p| p.last_port = 49_151), "S014");
    assert_eq!(code(|c| c.term = 9_999), "S032");
    assert_eq!(code(|c| c.term = 10_000), "");
    assert_eq!(code(|c| c.backing = c.term), "S031");
    assert_eq!(code(|c| c.limits.link_window = 0), "S015");
    let quota = Quota {
        records: 1,
        first: 16,
        length: 1,
    };
    assert_eq!(code(|c| c.classes[0].quota = Some(quota)), "S017");
    assert_eq!(code(|c| c.clock_ppm = MOST_CLOCK_PPM + 1), "S016");
}

#[test]
fn each_contradiction_of_a_dependent_nat_has_its_code() {
    let code = |change: &dyn Fn(&mut Config)| {
        let pool = nat().nat.unwrap();
        let mut config = Config::new(3, 0).with_dependent_nat(pool, 1, 2);
        change(&mut config);
        config.check().map_or_else(|error| error.code(), |()| "")
    };
    assert_eq!(code(&|_| ()), "");
    assert_eq!(code(&|c| c.classes[0].state_length = 6), "S028");
    assert_eq!(code(&|c| c.classes[1].state_length = 6), "S028");
    assert_eq!(code(&|c| c.classes[0].shared_only = true), "S029");
    assert_eq!(code(&|c| c.classes[1].shared_only = true), "S029");
    assert_eq!(code(&|c| c.classes.truncate(1)), "S009");
    assert_eq!(
        code(&|c| c.classes[1].first_lease = FirstLease::Zero),
        "S009"
    );
    assert_eq!(code(&|c| c.nat = None), "S010");
    let mix = |c: &mut Config| {
        let other = c.clone().with_nat(nat().nat.unwrap(), 3, 4);
        *c = other;
    };
    assert_eq!(code(&mix), "S030");
}

/// What one clock counts, however slow, is never longer than what another counts, however fast.
#[test]
fn a_promise_outlasts_its_deadline_within_the_bound_of_clocks() {
    let mut config = Config::new(1, 0);
    assert_eq!(config.lengthened(100_000), 100_000);
    for clock_ppm in [0, 900, 1_000, 5_000, MOST_CLOCK_PPM] {
        config.clock_ppm = clock_ppm;
        for time in [200_000, 100_000, 20_000, 1, u32::MAX] {
            let off = f64::from(clock_ppm) / 1e6;
            let deadline = (f64::from(time) * 511.0 / 512.0 + 1.0) / (1.0 - off);
            let until = config.lengthened(time) as f64 / (1.0 + off);
            assert!(until >= deadline, "{clock_ppm} {time}");
        }
    }
}

/// The last promise on a backing, at a head with a slow clock and a switch with a slower one, ends
/// before a new head with a fast one outwaits anybody.
#[test]
fn a_backing_outlasts_the_promises_on_it_within_the_bound_of_clocks() {
    let mut config = Config::new(1, 0);
    for clock_ppm in [0, 900, 1_000, 5_000, MOST_CLOCK_PPM] {
        config.clock_ppm = clock_ppm;
        for (term, backing) in [(100_000, 400_000), (20_000, 80_000), (1_000, 3_000)] {
            (config.term, config.backing) = (term, backing);
            let off = f64::from(clock_ppm) / 1e6;
            let promise = f64::from(term) * 511.0 / 512.0 + 1.0;
            let last = (config.backed_time() as f64 + promise) / (1.0 - off);
            let outwaits = config.lengthened(backing) as f64 / (1.0 + off);
            assert!(outwaits >= last, "{clock_ppm} {term} {backing}");
        }
    }
}

#[test]
fn timeouts_fall_back_to_the_default() {
    let idle = IdleTimeouts::nat();
    assert_eq!(idle.of(6, &[]), Some(7_440_000_000));
    assert_eq!(idle.of(17, &[]), Some(300_000_000));
    assert_eq!(IdleTimeouts::never().of(6, &[]), None);
}

#[test]
fn what_the_state_says_counts_before_the_protocol() {
    let idle = IdleTimeouts {
        in_state: vec![
            StateTimeout {
                protocol: Some(6),
                byte: 1,
                values: BTreeSet::from([3, 4]),
                timeout: 5,
            },
            StateTimeout {
                protocol: None,
                byte: 1,
                values: BTreeSet::from([4]),
                timeout: 6,
            },
        ],
        ..IdleTimeouts::nat()
    };
    assert_eq!(idle.of(6, &[0, 3]), Some(5));
    assert_eq!(idle.of(6, &[0, 4]), Some(5));
    assert_eq!(idle.of(17, &[0, 4]), Some(6));
    assert_eq!(idle.of(17, &[0, 3]), Some(300_000_000));
    assert_eq!(idle.of(6, &[3, 0]), Some(7_440_000_000));
    assert_eq!(idle.of(6, &[3]), Some(7_440_000_000));
}
