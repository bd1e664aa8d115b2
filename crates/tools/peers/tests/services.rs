//! Each service that is installed: values and locks are there, and are counted.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use stateplane_peers::{Asked, Contest, Etcd, Load, Redis, ZooKeeper};

const LOAD: Load = Load {
    value: 32,
    keys: 50,
    writes_ppm: 200_000,
    in_flight: 4,
    duration_ms: 200,
};

/// Three clients for three hot items.
const CONTEST: Contest = Contest {
    clients: 3,
    hot: 3,
    cold: 1000,
    duration_ms: 300,
    together: false,
};

macro_rules! answers {
    ($service:expr) => {{
        let mut service = match $service {
            Ok(service) => service,
            Err(reason) => {
                println!("not tested: {reason}");
                return;
            }
        };
        service
            .fill(LOAD.keys, LOAD.value)
            .expect("it takes values");
        let answers = service.load(&LOAD, 1);
        assert_eq!(answers.failed, 0);
        assert!(answers.answered > 0);
        // Values of another length are not what was asked for.
        let other = Load {
            value: 33,
            writes_ppm: 0,
            ..LOAD
        };
        let answers = service.load(&other, 1);
        assert_eq!(answers.answered, 0);
        assert!(answers.failed > 0);
        assert!(service.round(Asked::Write).items > 0);
        assert!(service.latencies().within(0.5) > 0.0);
        service
    }};
}

macro_rules! locks {
    ($service:expr, $contest:expr) => {{
        let told = $service.transactions(&$contest, 1);
        assert_eq!(told.failed, 0);
        assert!(told.done > 0);
        told
    }};
}

#[test]
fn etcd_in_memory() {
    let mut service = answers!(Etcd::start(4, false, LOAD.value));
    locks!(service, CONTEST);
    let one_item = Contest { hot: 1, ..CONTEST };
    assert!(locks!(service, one_item).refused > 0, "one has the lock");
    locks!(
        service,
        Contest {
            together: true,
            ..CONTEST
        }
    );
}

#[test]
fn zookeeper_in_memory() {
    let mut service = answers!(ZooKeeper::start(4, false, LOAD.value));
    locks!(service, CONTEST);
    let one_item = Contest { hot: 1, ..CONTEST };
    assert!(locks!(service, one_item).refused > 0, "one has the lock");
}

#[test]
fn redis_with_replicas() {
    answers!(Redis::start(4, LOAD.value));
}
