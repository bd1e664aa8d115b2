//! Surveys of a chain of two members, each of them a service in memory.

#[allow(dead_code, reason = "each test needs another part")]
mod chain;

use std::net::{Ipv4Addr, SocketAddrV4};

use chain::Service;
use stateplane_coordination::{Agent, Chain, Operation, Owner, Place, Settings, Survey, Surveyed};
use stateplane_wire::coordination::{Key, PORT};

const GROUP: u16 = 1;

fn members() -> [Ipv4Addr; 2] {
    [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 1, 0, 2)]
}

/// Two members to which the same operations were made.
fn pair() -> [Service; 2] {
    members().map(|address| {
        let mut service = Service::new();
        service.switch = Some(address);
        let mut agent = service.agent(2);
        let at = |number| Place::within(GROUP, Key([number; 16]));
        for number in 1..30 {
            let put = Operation::put(at(number), &[number; 20]);
            agent.submit(0, put).expect("room");
            service.exchange(&mut agent);
        }
        let owner = Owner {
            session: 7,
            handle: 1,
        };
        let lock = Operation::acquire(at(99), owner, false);
        agent.submit(0, lock).expect("room");
        service.exchange(&mut agent);
        service
    })
}

/// Surveys both, and does `between` after each event.
fn survey(pair: &mut [Service; 2], mut between: impl FnMut(&mut [Service; 2])) -> Surveyed {
    let client = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 40_000);
    let mut agent = Agent::new(Settings::new(client, chain::GROUPS), 1);
    agent.learn(
        0,
        Chain {
            members: members().to_vec(),
            ..chain::chain(GROUP)
        },
    );
    let mut survey = Survey::new(GROUP, &members());
    while !survey.is_done() {
        survey.ask(0, &mut agent);
        while let Some((to, bytes)) = agent.poll_transmit() {
            let at = members().iter().position(|member| member == to.ip());
            let service = &mut pair[at.expect("a member")];
            if let Some((_, reply)) = service.handle(&bytes) {
                agent.handle_datagram(0, SocketAddrV4::new(*to.ip(), PORT), &reply);
            }
        }
        while let Some(event) = agent.poll_event() {
            if survey.handle_event(&event) {
                between(pair);
            }
        }
    }
    assert_eq!(survey.failed(), None);
    survey.result()
}

#[test]
fn equal_members_have_one_digest_and_their_records_are_counted() {
    let mut pair = pair();
    let surveyed = survey(&mut pair, |_| {});
    assert_eq!(
        (surveyed.values, surveyed.locks, surveyed.empty),
        (29, 1, 0)
    );
    assert_eq!(surveyed.owned.get(&7), Some(&(0, 1)));
    assert_eq!((surveyed.different.len(), surveyed.undecided), (0, 0));
    assert_eq!(survey(&mut pair, |_| {}).digest, surveyed.digest);
}

#[test]
fn a_record_that_no_entry_explains_is_a_difference() {
    let mut pair = pair();
    let key = Key([5; 16]);
    let record = pair[1].records.get_mut(&(GROUP, key)).expect("a record");
    record.value = b"rotten".to_vec();
    let surveyed = survey(&mut pair, |_| {});
    let keys: Vec<Key> = surveyed.different.iter().map(|it| it.key).collect();
    assert_eq!(keys, [key]);
}

#[test]
fn a_record_that_one_member_lacks_is_a_difference() {
    let mut pair = pair();
    pair[1].records.remove(&(GROUP, Key([5; 16])));
    let surveyed = survey(&mut pair, |_| {});
    assert_eq!(surveyed.different.len(), 1);
    assert_eq!(surveyed.different[0].seen[1].record, None);
}

#[test]
fn what_is_written_meanwhile_is_no_difference() {
    let mut pair = pair();
    let mut agents = pair.each_mut().map(|service| service.agent(1));
    let mut left = 200_u8;
    let surveyed = survey(&mut pair, |pair| {
        if left == 0 {
            return;
        }
        left -= 1;
        // The first member has each entry two events later than the second.
        let member = usize::from(left % 4 / 2);
        let number = left / 4 % 29 + 1;
        let put = Operation::put(Place::within(GROUP, Key([number; 16])), &[left / 4; 20]);
        agents[member].submit(0, put).expect("room");
        pair[member].exchange(&mut agents[member]);
    });
    assert_eq!(surveyed.different, []);
    assert_eq!(surveyed.undecided, 0);
}
