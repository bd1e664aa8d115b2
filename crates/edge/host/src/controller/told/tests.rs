use super::super::view::{
    ChainView, MemberView, MulticastMemberView, MulticastReceiverView, MulticastSwitchView,
    ServerView,
};
use super::*;
use crate::log_lines::lines;

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

/// A store of three servers, of which `alive` are, with two chains of `members`.
fn store(alive: &[u8], members: &[u8], settled: bool) -> ControllerView {
    let servers = [1, 2, 3].map(|host| ServerView {
        address: address(host),
        incarnation: 1,
        alive: alive.contains(&host),
        drained: false,
    });
    let chains = [0, 1].map(|chain| ChainView {
        chain,
        epoch: 1,
        members: members
            .iter()
            .map(|host| MemberView {
                address: address(*host),
                alive: alive.contains(host),
                follows: true,
            })
            .collect(),
        joining: None,
        lacking_for_ms: None,
    });
    ControllerView {
        leads: true,
        settled,
        replicas: 3,
        servers: servers.into(),
        chains: chains.into(),
        ..ControllerView::default()
    }
}

#[test]
fn a_dead_server_is_two_lines_and_its_return_three() {
    let mut told = Told::default();
    let said = lines(|| told.store(&store(&[1, 2, 3], &[1, 2, 3], true)));
    assert_eq!(said.len(), 5, "{said:?}");
    let same = lines(|| told.store(&store(&[1, 2, 3], &[1, 2, 3], true)));
    assert_eq!(same, [""; 0]);
    let said = lines(|| told.store(&store(&[1, 3], &[1, 3], false)));
    assert_eq!(
        said,
        [
            "WARN store server is lost: no heartbeat for the detection time address=10.0.0.2",
            "WARN chains are shorter left=[10.0.0.2] members=2 replicas=3 count=2",
        ]
    );
    let said = lines(|| told.store(&store(&[1, 2, 3], &[1, 2, 3], true)));
    assert_eq!(
        said,
        [
            "INFO store server is back address=10.0.0.2",
            "INFO chains have other members, or more left=[] came=[10.0.0.2] members=3 replicas=3 count=2",
            "INFO every one of the chains is as those alive allow",
        ]
    );
}

#[test]
fn chains_without_a_member_that_lives_are_an_error_once() {
    let mut told = Told::default();
    lines(|| told.store(&store(&[1, 2, 3], &[1, 2], true)));
    let said = lines(|| told.store(&store(&[3], &[1, 2], false)));
    assert_eq!(
        said[2..],
        [
            "ERROR chains are down: none of their members lives, and members that begin anew are empty lost=[0, 1]"
        ]
    );
    let same = lines(|| told.store(&store(&[3], &[1, 2], false)));
    assert_eq!(same, [""; 0]);
    let said = lines(|| told.store(&store(&[2, 3], &[1, 2], false)));
    assert_eq!(
        said[1..],
        ["INFO chains that were down have a member that lives back=[0, 1]"]
    );
}

/// One group of multicast, of three switches, of which `alive` are.
fn multicast(alive: &[u8], leader: Option<u8>, receivers: &[u8]) -> MulticastView {
    let switches = [1, 2, 3].map(|host| MulticastSwitchView {
        number: host.into(),
        address: address(host),
        incarnation: Some(1),
        alive: alive.contains(&host),
        drained: false,
    });
    let member = |host: u8| MulticastMemberView {
        number: host - 1,
        address: address(host),
        alive: alive.contains(&host),
        promised: false,
    };
    let receiver = |host: &u8| MulticastReceiverView {
        number: 0,
        address: address(*host),
        behind: None,
    };
    let group = MulticastGroupView {
        group: 0,
        epoch: 1,
        leader: leader.map(address),
        established: leader.is_some(),
        members: [1, 2, 3].map(member).into(),
        learner: None,
        list: 1,
        receivers: receivers.iter().map(receiver).collect(),
        log: None,
    };
    MulticastView {
        leads: true,
        settled: leader.is_some(),
        replicas: 3,
        switches: switches.into(),
        groups: vec![group],
        ..MulticastView::default()
    }
}

#[test]
fn a_dead_leader_and_its_successor_are_told() {
    let mut told = Told::default();
    let said = lines(|| told.multicast(&multicast(&[1, 2, 3], Some(1), &[7, 8])));
    assert!(
        said.contains(&"INFO the group takes messages group=0 epoch=1 leader=10.0.0.1".to_owned()),
        "{said:?}"
    );
    let said = lines(|| told.multicast(&multicast(&[2, 3], None, &[7, 8])));
    assert_eq!(
        said,
        [
            "WARN multicast switch is lost: no heartbeat for the detection time address=10.0.0.1",
            "WARN the group takes no messages until it has another leader group=0 epoch=1 before=10.0.0.1",
        ]
    );
    let said = lines(|| told.multicast(&multicast(&[2, 3], Some(2), &[8])));
    assert_eq!(
        said,
        [
            "INFO every one of the groups of multicast is as those alive allow",
            "INFO the group takes messages group=0 epoch=1 leader=10.0.0.2",
            "INFO the group has other receivers: those left asked for it, or were silent \
             group=0 left=[10.0.0.7] came=[] count=1",
        ]
    );
}
