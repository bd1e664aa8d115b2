use core::net::Ipv4Addr;

use foldhash::fast::FixedState;

use super::*;
use crate::config::{IdleTimeouts, NatPool};
use crate::pair::Ended;
use crate::service::{ServerLoads, Service, ServiceAt, ServiceId, ServiceServer};
use crate::shard::Records;

const OUTBOUND: u8 = 1;
const SERVED: u8 = 3;
const COUNTED: u8 = 4;
const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 80);

fn key(class: u8) -> Key {
    Key([class, 6, 10, 0, 0, 9, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8])
}

fn config() -> Config {
    let pool = NatPool {
        addresses: vec![Ipv4Addr::new(203, 0, 113, 1)],
        first_port: 1000,
        last_port: 1001,
    };
    let class = |class, first_lease| ClassConfig {
        class,
        state_length: 8,
        first_lease,
        shared_only: false,
        idle: IdleTimeouts::never(),
        quota: None,
    };
    let service_at = ServiceAt {
        address: 2,
        port: 6,
    };
    let mut config = Config::new(1, 0)
        .with_nat(pool, OUTBOUND, 2)
        .with_class(class(SERVED, FirstLease::Server { service_at }))
        .with_class(class(COUNTED, FirstLease::Zero));
    config.services.push(Service {
        id: ServiceId {
            protocol: 6,
            endpoint: SERVICE,
        },
        servers: vec![ServiceServer {
            endpoint: SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 2), 0x1f90),
            weight: 1,
            most: None,
        }],
    });
    config
}

fn class_of(config: &Config, number: u8) -> &ClassConfig {
    let mut classes = config.classes.iter();
    classes.find(|class| class.class == number).unwrap()
}

fn shard(config: &Config) -> Shard {
    let mut shard = Shard {
        epoch: 1,
        records: Records::with_hasher(FixedState::with_seed(1)),
        pools: None,
        remote_ports: None,
        ended: Ended::default(),
        loads: ServerLoads::default(),
    };
    for creator in config.classes.iter().filter_map(creator_of) {
        creator.prepare(config, 0, &mut shard);
    }
    shard
}

/// The head's choice for a flow of class `number`, and what a replica makes of it.
fn made_of(number: u8) -> (Creation, Made) {
    let config = config();
    let mut shard = shard(&config);
    let class = class_of(&config, number);
    let setting = Setting {
        config: &config,
        number: 0,
        shard: &shard,
        unhealthy: &BTreeSet::new(),
    };
    let creator = creator_of(class).unwrap();
    let creation = creator.choose(&setting, class, &key(number)).unwrap();
    let creator = creator_for(class, &creation).unwrap();
    let made = creator.create(&mut shard, class, &key(number), creation.payload);
    (creation, made.unwrap())
}

#[test]
fn choices_have_the_kinds_and_bytes_of_the_layout_page() {
    let (creation, made) = made_of(OUTBOUND);
    assert_eq!(creation.kind, 4);
    assert_eq!(creation.payload, [0x03, 0xe8, 203, 0, 113, 1]);
    assert_eq!(made.state[..], [203, 0, 113, 1, 0x03, 0xe8]);
    let inbound = [2, 6, 203, 0, 113, 1, 0x03, 0xe8, 0, 0, 0, 0, 0, 0, 0, 0];
    let (other, state) = made.other.unwrap();
    assert_eq!((other.0, &state[..]), (inbound, &[10, 0, 0, 9, 0, 80][..]));

    let (creation, made) = made_of(SERVED);
    assert_eq!(creation.kind, 16);
    assert_eq!(creation.payload, [0x1f, 0x90, 10, 0, 1, 2]);
    assert_eq!(made.state[..], [10, 0, 1, 2, 0x1f, 0x90, 0, 0]);

    let (creation, made) = made_of(COUNTED);
    assert_eq!((creation.kind, creation.payload), (0, [0; 6]));
    assert_eq!(made.state[..], [0; 8]);
}

#[test]
fn a_choice_of_another_creator_is_not_carried_out() {
    let config = config();
    let (mapping, _) = made_of(OUTBOUND);
    for number in [2, SERVED, COUNTED] {
        assert!(creator_for(class_of(&config, number), &mapping).is_none());
    }
    let twice = |shard: &mut Shard| {
        let class = class_of(&config, OUTBOUND);
        let creator = creator_for(class, &mapping).unwrap();
        creator.create(shard, class, &key(OUTBOUND), mapping.payload)
    };
    let mut shard = shard(&config);
    assert!(twice(&mut shard).is_some());
    assert!(twice(&mut shard).is_none(), "the port is taken");
}

/// Folders of earlier versions are known by these numbers.
#[test]
fn configurations_keep_their_fingerprints() {
    let config = config();
    let of = |number| {
        let class = class_of(&config, number);
        creator_of(class).map(|creator| creator.fingerprint(class))
    };
    assert_eq!(of(OUTBOUND), Some([1, 2, 0]));
    assert_eq!(of(2), None);
    assert_eq!(of(SERVED), Some([3, 2, 6]));
    assert_eq!(of(COUNTED), Some([0, 0, 0]));
}
