use core::net::Ipv4Addr;

use stateplane_wire::replication::Key;

use super::testing::{self, SWITCH, member};
use super::*;
use crate::config::{ClassConfig, NatPool};

/// Number of the only chain under a controller.
const CHAIN: u16 = 1;

/// A server of a fixed chain of two, number 1 the head and 2 the tail.
fn fixed(server: u32, incarnation: u32) -> Setup {
    testing::fixed(2, server as u8 - 1, incarnation)
}

fn managed(identity: Member) -> Setup {
    testing::managed(identity, 1_000_000)
}

fn configuration(epoch: u32, members: &[Member]) -> ChainConfig {
    ChainConfig {
        chain: CHAIN,
        epoch,
        members: members.to_vec(),
        joining: None,
    }
}

/// A server with its disk.
struct Node {
    setup: Setup,
    server: Server,
    records: Vec<Vec<u8>>,
}

impl Node {
    fn new(setup: Setup) -> Node {
        let server = testing::started(&setup);
        let records = server.saved_state().unwrap().collect();
        Node {
            setup,
            server,
            records,
        }
    }

    fn save(&mut self) {
        testing::save(&mut self.server, &mut self.records);
    }

    fn configure(&mut self, config: &ChainConfig) {
        testing::configure(&mut self.server, config);
        self.save();
    }

    /// Asks for a lease of another flow than before.
    fn ask(&mut self, shard: u16, flow: u8) {
        let place = self.server.replica(shard).map(|replica| replica.place());
        let epoch = place.map_or(1, |place| place.epoch);
        testing::ask(&mut self.server, shard, flow, epoch);
        self.save();
    }

    /// Updates that this server sends to other servers.
    fn updates(&mut self) -> Vec<Arc<Vec<u8>>> {
        let sent = core::iter::from_fn(|| self.server.poll_transmit(1));
        sent.filter(|datagram| matches!(datagram.to, Recipient::Neighbour(_)))
            .map(|datagram| datagram.bytes)
            .collect()
    }

    fn hear(&mut self, from: Member, updates: &[Arc<Vec<u8>>]) {
        for update in updates {
            self.server.handle_link(1, from.links, update);
        }
        self.save();
    }

    /// Makes the server lose power and restart.
    fn restart(&mut self, records: &[Vec<u8>]) {
        self.server = testing::recovered(self.setup.clone(), records).unwrap();
        self.records = records.to_vec();
    }

    fn applied(&self, chain: u16) -> u64 {
        self.server.replica(chain).unwrap().applied()
    }
}

fn refusals(server: &mut Server) -> Vec<Option<RefusalCode>> {
    let sent = core::iter::from_fn(|| server.poll_transmit(1));
    let answers = sent.filter(|datagram| datagram.to == Recipient::Switch(SWITCH));
    answers
        .map(|datagram| RefusalCode::from_u8(Packet::new_checked(&datagram.bytes).unwrap().code()))
        .collect()
}

#[test]
fn a_configuration_with_a_former_start_of_it_gives_a_server_no_place() {
    let mut node = Node::new(managed(member(1, 9)));
    // Sent to the start before this one, and late.
    node.configure(&configuration(3, &[member(1, 8)]));
    assert!(node.server.replica(CHAIN).is_none());
    node.ask(CHAIN, 1);
    let refused = Some(RefusalCode::WrongServer);
    assert_eq!(refusals(&mut node.server), [refused]);
    // Its own start is given one, and loses it to a configuration that names another.
    node.configure(&configuration(4, &[member(1, 9), member(2, 5)]));
    assert!(node.server.replica(CHAIN).is_some());
    node.configure(&configuration(5, &[member(1, 8), member(2, 5)]));
    assert!(node.server.replica(CHAIN).is_none());
    assert_eq!(node.server.server_counters().chains_left, 1);
}

#[test]
fn of_two_configurations_the_newer_one_counts_whichever_comes_last() {
    let mut node = Node::new(managed(member(1, 9)));
    node.configure(&configuration(4, &[member(2, 5)]));
    node.configure(&configuration(3, &[member(1, 9)]));
    assert!(node.server.replica(CHAIN).is_none());
    node.configure(&configuration(6, &[member(1, 9)]));
    node.configure(&configuration(5, &[member(2, 5)]));
    assert_eq!(node.server.replica(CHAIN).unwrap().place().epoch, 6);
    assert_eq!(node.server.server_counters().configuration_old, 2);
}

/// Entries number 1 to `count` as the head of that incarnation decides them, one in each
/// message.
fn decided(incarnation: u32, flows: &[u8]) -> Vec<Arc<Vec<u8>>> {
    let mut head = Node::new(fixed(1, incarnation));
    let one = |flow: &u8| {
        head.ask(0, *flow);
        head.updates().pop().unwrap()
    };
    flows.iter().map(one).collect()
}

#[test]
fn after_a_restart_a_server_listens_to_the_predecessor_that_it_had() {
    let (known, other) = (decided(7, &[1, 2, 3]), decided(8, &[11, 12, 13]));
    for heard in 1..3 {
        let mut tail = Node::new(fixed(2, 5));
        tail.hear(member(1, 7), &known[..heard]);
        let snapshot: Vec<_> = tail.server.saved_state().unwrap().collect();
        for records in [tail.records.clone(), snapshot] {
            tail.restart(&records);
            assert_eq!(tail.applied(0), heard as u64);
            // The head lost its disk, began anew, and has come to the next number.
            tail.hear(member(1, 8), &other[heard..=heard]);
            assert_eq!(tail.applied(0), heard as u64);
            assert_eq!(tail.server.counters().chain_wrong_incarnation, 1);
            tail.hear(member(1, 7), &known[heard..=heard]);
            assert_eq!(tail.applied(0), heard as u64 + 1);
        }
    }
}

#[test]
fn in_another_place_a_server_that_comes_back_listens_to_the_predecessor_there() {
    let members = [member(1, 7), member(3, 4), member(2, 5)];
    let mut nodes = members.map(|member| Node::new(managed(member)));
    let whole = configuration(1, &members);
    for node in &mut nodes {
        node.configure(&whole);
    }
    let [first, second, tail] = &mut nodes;
    first.ask(CHAIN, 1);
    let updates = first.updates();
    second.hear(members[0], &updates);
    let updates = second.updates();
    tail.hear(members[1], &updates);
    assert_eq!(tail.applied(CHAIN), 1);
    // The one between is cut out; then the tail loses power before it hears the head.
    let shorter = configuration(2, &[members[0], members[2]]);
    first.configure(&shorter);
    tail.configure(&shorter);
    let records = tail.records.clone();
    tail.restart(&records);
    first.updates();
    first.ask(CHAIN, 2);
    let updates = first.updates();
    tail.hear(members[0], &updates);
    assert_eq!(tail.applied(CHAIN), 2);
    assert_eq!(tail.server.counters().chain_wrong_incarnation, 0);
}

#[test]
fn who_has_no_place_in_a_chain_is_not_listened_to() {
    let mut tail = Node::new(fixed(2, 5));
    let updates = decided(7, &[1]);
    tail.hear(member(3, 7), &updates);
    assert_eq!(tail.applied(0), 0);
    assert_eq!(tail.server.server_counters().unknown_neighbour, 1);
    tail.hear(member(1, 7), &updates);
    assert_eq!(tail.applied(0), 1);
}

/// A server in a chain with two others, whose messages are authentic.
fn silenced() -> Node {
    let mut setup = managed(member(1, 9));
    if let Setup::Managed { template, .. } = &mut setup {
        template.authentic = true;
    }
    let mut node = Node::new(setup);
    node.configure(&configuration(4, &[member(1, 9), member(2, 5)]));
    node.ask(CHAIN, 1);
    let replica = &mut node.server.chains.get_mut(&CHAIN).unwrap().replica;
    replica.base = replica.applied() + 1;
    node.ask(CHAIN, 2);
    node
}

/// The status of the chain in the next heartbeat.
fn told(server: &mut Server) -> ChainStatus {
    let beats = testing::heartbeats(server, 1 << 40);
    let last = beats.last().unwrap();
    *last.statuses.iter().find(|it| it.chain == CHAIN).unwrap()
}

#[test]
fn a_silenced_replica_leaves_its_disk_alone_and_says_that_its_state_is_lost() {
    stateplane_invariant::in_production(|| {
        let mut node = silenced();
        let on_disk = node.records.len();
        let silenced: Vec<u16> = node.server.silenced().map(|(chain, _)| chain).collect();
        assert_eq!(silenced, [CHAIN]);
        assert_eq!(node.server.broken().total(), 1);
        assert_eq!(node.server.poll_broken().unwrap().invariant.code(), "SI003");
        assert_eq!(node.server.poll_broken(), None);
        assert!(node.server.saved_state().is_none());
        let status = told(&mut node.server);
        assert!(status.lost && status.epoch == 4);
        // Neither requests nor the configuration that cuts it out change what it keeps.
        node.ask(CHAIN, 3);
        node.configure(&configuration(5, &[member(2, 5)]));
        assert_eq!(node.records.len(), on_disk);
        assert_eq!(node.server.replica(CHAIN).unwrap().place().epoch, 4);
        let status = told(&mut node.server);
        assert!(status.lost && status.epoch == 5);
        assert!(node.updates().is_empty());
        // From its disk it comes back as it was before.
        let records = node.records.clone();
        node.restart(&records);
        assert_eq!(node.applied(CHAIN), 1);
        assert_eq!(node.server.silenced().count(), 0);
    });
}

#[test]
fn other_chains_of_the_server_go_on() {
    stateplane_invariant::in_production(|| {
        let mut node = silenced();
        let own = ChainConfig {
            chain: 0,
            ..configuration(1, &[member(1, 9)])
        };
        node.configure(&own);
        node.ask(0, 1);
        assert_eq!(refusals(&mut node.server).len(), 1);
        assert_eq!(node.applied(0), 1);
    });
}

/// The same number for two configurations of a chain, which breaks SI006.
fn conflict(authentic: bool) -> Node {
    let mut setup = managed(member(1, 9));
    if let Setup::Managed { template, .. } = &mut setup {
        template.authentic = authentic;
    }
    let mut node = Node::new(setup);
    node.configure(&configuration(4, &[member(1, 9)]));
    node.configure(&configuration(4, &[member(1, 9)]));
    node.configure(&configuration(4, &[member(1, 9), member(2, 5)]));
    assert_eq!(node.server.replica(CHAIN).unwrap().place().length, 1);
    assert_eq!(node.server.server_counters().configuration_old, 2);
    node
}

#[test]
#[should_panic(expected = "SI006")]
fn two_configurations_of_one_number_panic() {
    conflict(true);
}

#[test]
fn of_two_configurations_of_one_number_the_first_stays() {
    stateplane_invariant::in_production(|| {
        let node = conflict(true);
        assert_eq!(node.server.broken().total(), 1);
        assert_eq!(node.server.silenced().count(), 0);
    });
    assert_eq!(conflict(false).server.broken().total(), 0);
}

/// Two records that one entry makes are both told, also if one of them is the last that an answer has
/// room for.
#[test]
fn observers_are_told_of_both_records_of_a_mapping() {
    let pool = NatPool {
        addresses: vec![Ipv4Addr::new(203, 0, 113, 1)],
        first_port: 1024,
        last_port: 65_535,
    };
    let single = testing::template(1, 0).classes[0].clone();
    let single = ClassConfig { class: 3, ..single };
    let config = Config::new(1, 0).with_nat(pool, 1, 2).with_class(single);
    let mut server = Server::fixed(config, 7, vec![member(1, 7).links]).unwrap();
    let answer = |server: &mut Server, stream, after| {
        let question = observe::Observe {
            parts: 1,
            incarnation: 7,
            switch_id: 9,
            number: 1,
            chain: 0,
            scan_shard: 0,
            scan: 0,
            stream,
            after,
        };
        while server.poll_transmit(1).is_some() {}
        server.handle_request(1, SWITCH, &question.to_vec());
        let datagram = server.poll_transmit(1).unwrap();
        let Ok(observe::Message::Answer(answer)) = observe::Message::parse(&datagram.bytes) else {
            panic!("an answer")
        };
        let keys: Vec<Key> = answer.records().map(|record| record.unwrap().key).collect();
        (answer.stream, answer.upto, answer.flags, keys)
    };
    let (stream, mut upto, ..) = answer(&mut server, 0, 0);
    for flow in 0..100u8 {
        // One record first, so that a pair lies across the end of some answer.
        let class = if flow == 0 { 3 } else { 1 };
        let mut key = [0; 16];
        key[..8].copy_from_slice(&[class, 17, 10, 0, 0, 1, 9, flow]);
        let request = Repr {
            chain_epoch: 1,
            switch_id: 1,
            incarnation: 1,
            claim: 1 + u32::from(flow),
            request: 1,
            shared: class == 1,
            ..Repr::new(MessageType::LeaseRequest, Key(key))
        };
        server.handle_request(1, SWITCH, &request.to_vec().unwrap());
    }
    let mut told = BTreeSet::new();
    for _ in 0..10 {
        let (same, now, flags, keys) = answer(&mut server, stream, upto);
        assert_eq!(same, stream);
        upto = now;
        told.extend(keys);
        if flags & observe::answer_flag::LATEST != 0 {
            break;
        }
    }
    let records = server.replica(0).unwrap().records();
    let all: BTreeSet<Key> = records.map(|(_, key, _)| *key).collect();
    assert_eq!(all.len(), 1 + 2 * 99);
    assert_eq!(told, all);
}
