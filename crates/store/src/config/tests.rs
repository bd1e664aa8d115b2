use super::*;

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
    assert_eq!(code(|c| c.lease_period = 0), "S015");
    assert_eq!(code(|c| c.limits.link_window = 0), "S015");
}

#[test]
fn timeouts_fall_back_to_the_default() {
    let idle = IdleTimeouts::nat();
    assert_eq!(idle.of(6), Some(7_440_000_000));
    assert_eq!(idle.of(17), Some(300_000_000));
    assert_eq!(IdleTimeouts::never().of(6), None);
}
