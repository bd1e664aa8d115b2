//! Configurations that are refused, and their codes.

use super::{config, generator, switch, switch_with};
use crate::{Generator, Limits, MirrorSession, Replica, Switch, SwitchConfig, SwitchError};

fn refused(config: SwitchConfig) -> SwitchError {
    let engine = super::engine::FakeEngine::new(super::watches::state());
    Switch::new(engine, config)
        .err()
        .expect("the configuration is refused")
}

#[test]
fn ports_are_in_range_and_given_once() {
    let error = refused(SwitchConfig {
        ports: vec![1, 511],
        ..SwitchConfig::default()
    });
    assert_eq!(
        (error.code(), error),
        ("SW001", SwitchError::PortOutOfRange(511))
    );
    let error = refused(SwitchConfig {
        ports: vec![1, 2, 1],
        ..SwitchConfig::default()
    });
    assert_eq!(
        (error.code(), error),
        ("SW002", SwitchError::DuplicatePort(1))
    );
    let error = switch().set_link_up(8, true).unwrap_err();
    assert_eq!(error.code(), "SW003");
    assert!(error.to_string().contains("0, 1, 2, 3"), "{error}");
}

#[test]
fn sessions_are_checked() {
    let mut switch = switch();
    let good = MirrorSession {
        egress_port: Some(1),
        multicast_group: None,
        truncate: None,
        hold_us: 0,
    };
    let mut code = |session| {
        switch
            .set_mirror_session(9, session)
            .map_err(|error| error.code())
    };
    assert_eq!(
        code(MirrorSession {
            egress_port: Some(511),
            ..good
        }),
        Err("SW001")
    );
    assert_eq!(
        code(MirrorSession {
            truncate: Some(13),
            ..good
        }),
        Err("SW004")
    );
    assert_eq!(
        code(MirrorSession {
            hold_us: crate::MAX_HOLD_US + 1,
            ..good
        }),
        Err("SW005")
    );
    assert_eq!(code(good), Ok(()));
    assert_eq!(switch.mirror_session(9), Some(good));
    assert_eq!(switch.remove_mirror_session(9), Ok(good));
    assert_eq!(switch.remove_mirror_session(9).unwrap_err().code(), "SW008");
}

#[test]
fn groups_are_checked() {
    let mut switch = switch();
    let replica = |port| vec![Replica { port, rid: 1 }];
    assert_eq!(
        switch
            .set_multicast_group(0, replica(1))
            .unwrap_err()
            .code(),
        "SW007"
    );
    assert_eq!(
        switch
            .set_multicast_group(3, replica(512))
            .unwrap_err()
            .code(),
        "SW001"
    );
    assert_eq!(switch.set_multicast_group(3, replica(2)), Ok(()));
    assert_eq!(switch.multicast_group(3), Some(&replica(2)[..]));
    assert_eq!(switch.remove_multicast_group(3), Ok(replica(2)));
    assert_eq!(
        switch.remove_multicast_group(3).unwrap_err().code(),
        "SW009"
    );
}

#[test]
fn limits_hold_for_new_things_and_not_for_replacements() {
    let limits = Limits {
        mirror_sessions: 4,
        multicast_groups: 2,
        replicas: 2,
        generators: 1,
        ..Limits::default()
    };
    let mut switch = switch_with(SwitchConfig { limits, ..config() });
    let session = MirrorSession {
        egress_port: Some(1),
        multicast_group: None,
        truncate: None,
        hold_us: 0,
    };
    assert_eq!(
        switch.set_mirror_session(100, session).unwrap_err().code(),
        "SW006"
    );
    assert_eq!(switch.set_mirror_session(1, session), Ok(()));
    assert_eq!(
        switch.set_multicast_group(100, vec![]).unwrap_err().code(),
        "SW006"
    );
    let three = vec![Replica { port: 1, rid: 1 }; 3];
    assert_eq!(
        switch.set_multicast_group(1, three).unwrap_err().code(),
        "SW006"
    );
    assert_eq!(switch.add_generator(generator(0, 1)), Ok(()));
    assert_eq!(
        switch.add_generator(generator(0, 1)).unwrap_err().code(),
        "SW006"
    );
}

#[test]
fn generators_are_checked() {
    let mut switch = switch();
    let mut code = |generator| {
        switch
            .add_generator(generator)
            .map_err(|error| error.code())
    };
    assert_eq!(code(generator(511, 1)), Err("SW001"));
    assert_eq!(code(generator(0, 0)), Err("SW005"));
    assert_eq!(
        code(Generator {
            frame: vec![0; 13],
            ..generator(0, 1)
        }),
        Err("SW010")
    );
    assert_eq!(
        code(Generator {
            frame: vec![0; 65_536],
            ..generator(0, 1)
        }),
        Err("SW010")
    );
    for batch in [0, 65_537] {
        let generator = Generator {
            batch,
            ..generator(0, 1)
        };
        assert_eq!(code(generator), Err("SW012"));
    }
    for (at, answer) in [(36, Ok(())), (37, Err("SW013")), (usize::MAX, Err("SW013"))] {
        let generator = Generator {
            frame: vec![0; 40],
            index_at: Some(at),
            ..generator(0, 1)
        };
        assert_eq!(code(generator), answer);
    }
}
