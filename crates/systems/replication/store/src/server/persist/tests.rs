use core::net::SocketAddrV4;

use proptest::prelude::*;
use stateplane_wire::term::{self, is_term};
use stateplane_wire::{chain, observe};

use super::*;
use crate::replica::Replica;
use crate::server::testing::{
    self, SWITCH, configure, heartbeats, member, recovered, save, sent, started,
};
use crate::server::{LostEntries, Recipient};

fn fixed(chain_length: u8) -> Setup {
    fixed_at(chain_length, 0)
}

fn fixed_at(chain_length: u8, position: u8) -> Setup {
    testing::fixed(chain_length, position, 7)
}

fn managed() -> Setup {
    testing::managed(member(1, 7), 1_000)
}

fn replica(server: &Server) -> &Replica {
    server.replica(0).unwrap()
}

/// Asks for a lease in the only chain of `server`.
fn ask(server: &mut Server, flow: u8, epoch: u32) {
    let (shard, _) = server.replicas().next().unwrap();
    testing::ask(server, shard, flow, epoch);
}

/// A server that granted `flows` leases, and its records.
fn granted(chain_length: u8, flows: u8) -> (Server, Vec<Vec<u8>>) {
    let mut server = started(&fixed(chain_length));
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    for flow in 0..flows {
        ask(&mut server, flow, 1);
        save(&mut server, &mut records);
    }
    (server, records)
}

#[test]
fn nothing_is_sent_before_it_is_saved() {
    let mut server = started(&fixed(1));
    ask(&mut server, 1, 1);
    assert_eq!(server.poll_transmit(1), None);
    assert!(server.saved_state().is_none(), "a record waits");
    assert!(server.poll_record().is_some());
    assert_eq!(server.poll_transmit(1), None);
    server.handle_saved();
    assert!(server.poll_transmit(1).is_some());
}

#[test]
fn a_head_comes_back_with_what_its_successor_may_lack() {
    let (server, records) = granted(3, 5);
    let mut back = recovered(fixed(3), &records).unwrap();
    assert_eq!(replica(&back).digest(), replica(&server).digest());
    assert_eq!((replica(&back).applied(), replica(&back).base()), (5, 0));
    assert!(back.poll_transmit(9).is_some(), "it sends them again");
    // And again from a snapshot, which keeps them.
    let snapshot: Vec<_> = server.saved_state().unwrap().collect();
    let back = recovered(fixed(3), &snapshot).unwrap();
    assert_eq!(replica(&back).digest(), replica(&server).digest());
    assert_eq!((replica(&back).applied(), replica(&back).base()), (5, 0));
}

/// The answer of a server to an observer of chain 0.
fn observed(server: &mut Server) -> Vec<Vec<u8>> {
    let question = observe::Observe {
        parts: 4,
        incarnation: 7,
        switch_id: 9,
        number: 1,
        chain: 0,
        scan_shard: 0,
        scan: 0,
        stream: 0,
        after: 0,
    };
    server.handle_request(9, SWITCH, &question.to_vec());
    let datagrams = core::iter::from_fn(|| server.poll_transmit(9));
    let to_observer = datagrams.filter(|it| it.to == Recipient::Switch(SWITCH));
    let bytes = to_observer.map(|datagram| datagram.bytes.to_vec());
    bytes.filter(|bytes| observe::is_observe(bytes)).collect()
}

fn tells(server: &mut Server) -> usize {
    let answers = observed(server);
    let records = answers.iter().map(|bytes| {
        let Ok(observe::Message::Answer(answer)) = observe::Message::parse(bytes) else {
            panic!("an answer")
        };
        answer.records().count()
    });
    records.sum()
}

#[test]
fn observers_hear_of_an_entry_when_it_is_saved() {
    let (mut server, _) = granted(1, 3);
    assert_eq!(tells(&mut server), 3);
    ask(&mut server, 3, 1);
    assert!(observed(&mut server).is_empty(), "a record waits");
    save(&mut server, &mut Vec::new());
    // In the answer that waited, and in another one.
    assert_eq!(tells(&mut server), 4 + 4);
}

/// Its disk may have lost entries that it had answered.
#[test]
fn a_tail_tells_observers_nothing_before_its_neighbours_have_told_it() {
    let mut tail = started(&fixed_at(2, 1));
    let records: Vec<_> = tail.saved_state().unwrap().collect();
    assert_eq!(observed(&mut tail).len(), 1);
    assert_eq!(tail.counters().observed_elsewhere, 0);
    let mut back = recovered(fixed_at(2, 1), &records).unwrap();
    assert_eq!(observed(&mut back).len(), 1);
    assert_eq!(back.counters().observed_elsewhere, 1);
    // Nor does a replica that is not the tail.
    let mut head = started(&fixed_at(2, 0));
    assert_eq!(observed(&mut head).len(), 1);
    assert_eq!(head.counters().observed_elsewhere, 1);
}

#[test]
fn a_state_is_copied_one_shard_at_a_time_while_heartbeats_are_answered() {
    let mut setup = fixed(1);
    if let Setup::Fixed { config, .. } = &mut setup {
        *config = config.clone().with_shards(4);
    }
    let mut server = started(&setup);
    for shard in 0..4 {
        testing::ask(&mut server, shard, 1, 1);
    }
    save(&mut server, &mut Vec::new());
    assert_eq!(sent(&mut server, 9).len(), 4);
    let whole: Vec<_> = server.saved_state().unwrap().collect();
    let mut copy = server.copy_state().unwrap();
    let mut parts = 0;
    let heartbeat = term::Heartbeat {
        switch_id: 3,
        incarnation: 5,
        number: 1,
        send_time: 1,
        stream: 0,
        version: 0,
    };
    while copy.copy(&server) {
        parts += 1;
        server.handle_request(9, SWITCH, &heartbeat.to_vec().unwrap());
        let replies = sent(&mut server, 9);
        assert_eq!(replies.len(), 1);
        assert!(is_term(&replies[0].1));
    }
    assert_eq!(parts, 4);
    assert_eq!(copy.whole(&server).collect::<Vec<_>>(), whole);
    let back = recovered(setup, &whole).unwrap();
    assert_eq!(replica(&back).digest(), replica(&server).digest());
}

#[test]
fn a_tail_keeps_nothing_for_others() {
    let (server, records) = granted(1, 5);
    let kept = |server: &Server| {
        let saved = server.saved_state().unwrap();
        saved.filter(|record| record[0] == kind::KEPT).count()
    };
    assert_eq!(kept(&server), 0);
    let back = recovered(fixed(1), &records).unwrap();
    assert_eq!(replica(&back).digest(), replica(&server).digest());
    assert_eq!((replica(&back).applied(), kept(&back)), (5, 0));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (_, records) = granted(1, 3);
    let refused = |records: &[Vec<u8>]| recovered(fixed(1), records).unwrap_err();
    assert_eq!(refused(&[]), RecoveryError::Incomplete);
    assert_eq!(refused(&records[..1]), RecoveryError::Incomplete);
    assert_eq!(refused(&records[1..]), RecoveryError::Malformed);
    let mut twice = records.clone();
    twice.insert(1, records[0].clone());
    assert_eq!(refused(&twice), RecoveryError::Malformed);
    let mut newer = records.clone();
    newer[0][3] = 9;
    assert_eq!(refused(&newer), RecoveryError::Version { version: 9 });
    for other in [fixed(2), managed()] {
        let other = recovered(other, &records).unwrap_err();
        assert_eq!(other, RecoveryError::OtherConfiguration);
        assert_eq!(other.code(), "S020");
    }
    let mut cut = records.clone();
    cut.remove(2);
    assert_eq!(refused(&cut), RecoveryError::Malformed);
}

fn alone(epoch: u32) -> ChainConfig {
    ChainConfig {
        chain: 1,
        epoch,
        members: vec![member(1, 7)],
        joining: None,
    }
}

#[test]
fn a_place_in_a_chain_outlives_the_power() {
    let mut server = started(&managed());
    let mut records: Vec<_> = server.saved_state().unwrap().collect();
    configure(&mut server, &alone(3));
    assert_eq!(heartbeats(&mut server, 1), [], "it is not saved");
    save(&mut server, &mut records);
    let before = heartbeats(&mut server, 2_000);
    // Heartbeats of the next start have higher numbers than those of this one, at any number.
    for setup in [managed(), managed()] {
        let mut back = recovered(setup, &records).unwrap();
        let place = back.replica(1).unwrap().place();
        assert_eq!((place.epoch, place.position, place.length), (3, 0, 1));
        let after = heartbeats(&mut back, 10);
        assert_eq!(after[0].from, member(1, 7));
        assert!(after[0].number > before[before.len() - 1].number + 1000);
        assert_eq!(after[0].statuses[0].epoch, 3);
        configure(&mut back, &alone(2));
        assert_eq!(back.server_counters().configuration_old, 1);
        records = back.saved_state().unwrap().collect();
    }
    // So does it that the place was lost.
    let gone = ChainConfig {
        members: vec![member(2, 1)],
        ..alone(4)
    };
    configure(&mut server, &gone);
    save(&mut server, &mut records);
    for _ in 0..2 {
        let mut back = recovered(managed(), &records).unwrap();
        configure(&mut back, &alone(3));
        assert!(back.replica(1).is_none());
        records = back.saved_state().unwrap().collect();
    }
}

/// A tail with a replica that joins, and the joining one; `granted` flows, then parts of
/// the snapshot pass from one to the other, `parts` datagrams each way.
fn joining(flows: u8, parts: usize) -> ([Server; 2], [Vec<Vec<u8>>; 2]) {
    let setups = [1, 2].map(|number| testing::managed(member(number, 7), 1_000_000));
    let mut servers = setups.map(|setup| started(&setup));
    let mut records = [0, 1].map(|at| servers[at].saved_state().unwrap().collect::<Vec<_>>());
    configure(&mut servers[0], &alone(1));
    for flow in 0..flows {
        ask(&mut servers[0], flow, 1);
    }
    save(&mut servers[0], &mut records[0]);
    sent(&mut servers[0], 1);
    let config = ChainConfig {
        joining: Some(member(2, 7)),
        ..alone(2)
    };
    for (server, records) in servers.iter_mut().zip(&mut records) {
        configure(server, &config);
        save(server, records);
    }
    for turn in 0..2 * parts {
        let (from, to) = (turn % 2, 1 - turn % 2);
        let datagrams = sent(&mut servers[from], 2);
        for (recipient, bytes) in datagrams {
            if matches!(recipient, Recipient::Neighbour(_)) {
                let from = member(from as u32 + 1, 7).links;
                servers[to].handle_link(2, from, &bytes);
            }
        }
        save(&mut servers[to], &mut records[to]);
    }
    (servers, records)
}

fn setup_of(server: u32) -> Setup {
    testing::managed(member(server, 99), 1_000_000)
}

#[test]
fn a_replica_that_had_joined_comes_back_with_its_state() {
    let (servers, [_, mut records]) = joining(20, 8);
    let digest = servers[0].replica(1).unwrap().digest();
    assert_eq!(servers[1].replica(1).unwrap().digest(), digest);
    let snapshot: Vec<_> = servers[1].saved_state().unwrap().collect();
    for records in [&mut records, &mut snapshot.clone()] {
        let back = recovered(setup_of(2), records).unwrap();
        let joined = back.replica(1).unwrap();
        assert_eq!((joined.digest(), joined.applied()), (digest, 20));
        assert_eq!((joined.place().position, joined.place().length), (1, 1));
    }
}

/// The tail has not heard yet that the other has all parts of the snapshot, and sends them again.
#[test]
fn a_replica_that_comes_back_with_its_state_takes_no_part_of_it_again() {
    for from_snapshot in [false, true] {
        let ([mut tail, mut joiner], [tail_records, mut records]) = joining(20, 0);
        let mut parts = sent(&mut tail, 2);
        parts.retain(|(to, bytes)| matches!(to, Recipient::Neighbour(_)) && !is_term(bytes));
        for (_, bytes) in &parts {
            joiner.handle_link(2, member(1, 7).links, bytes);
        }
        save(&mut joiner, &mut records);
        let digest = tail.replica(1).unwrap().digest();
        assert_eq!(joiner.replica(1).unwrap().digest(), digest);
        if from_snapshot {
            records = joiner.saved_state().unwrap().collect();
        }
        let mut back = recovered(setup_of(2), &records).unwrap();
        let mut records = [tail_records, records];
        settle([&mut tail, &mut back], &mut records, 20_000);
        assert_eq!(back.replica(1).unwrap().digest(), digest);
        assert_eq!(back.counters().chain_duplicate, parts.len() as u64);
        // The entries since follow, as behind any snapshot.
        ask(&mut tail, 77, 2);
        settle([&mut tail, &mut back], &mut records, 40_000);
        let joined = back.replica(1).unwrap();
        let digest = tail.replica(1).unwrap().digest();
        assert_eq!((joined.digest(), joined.applied()), (digest, 21));
        assert!(tail.replica(1).unwrap().has_joined());
    }
}

#[test]
fn a_replica_that_was_given_only_a_part_has_left() {
    let (mut servers, [_, mut records]) = joining(20, 0);
    let back = recovered(setup_of(2), &records).unwrap();
    assert!(back.replica(1).is_none());
    // A snapshot between two parts has the first, the records behind it the others.
    let state = record(kind::STATE, 1, &[&[0; 4], &20u64.to_be_bytes()]);
    let mut donor = Vec::new();
    donor.extend(
        servers[0]
            .replica(1)
            .unwrap()
            .saved_state()
            .map(|mut state| {
                while state.copy(servers[0].replica(1).unwrap()) {}
                state
            })
            .unwrap()
            .skip(1),
    );
    records.push(state);
    assert!(
        recovered(setup_of(2), &records)
            .unwrap()
            .replica(1)
            .is_none()
    );
    records.extend(donor);
    let back = recovered(setup_of(2), &records).unwrap();
    let digest = servers[0].replica(1).unwrap().digest();
    assert_eq!(back.replica(1).unwrap().digest(), digest);
    // It knows of no older configuration any more either.
    let mut left = recovered(setup_of(2), &records[..2]).unwrap();
    configure(&mut left, &alone(2));
    assert!(left.replica(1).is_none());
    save(&mut servers[1], &mut Vec::new());
}

#[test]
fn a_tail_that_comes_back_answers_nothing_that_who_joins_may_lack() {
    let (servers, [records, _]) = joining(5, 8);
    assert!(servers[0].replica(1).unwrap().has_joined());
    let mut back = recovered(setup_of(1), &records).unwrap();
    let tail = back.replica(1).unwrap();
    assert!(!tail.has_joined(), "it knows nothing of the other");
    assert!(tail.suspects_successor(10), "the controller is to decide");
    ask(&mut back, 77, 2);
    save(&mut back, &mut Vec::new());
    let answers = |server: &mut Server| {
        let sent = sent(server, 10).into_iter();
        let replies = sent.filter(|(to, _)| matches!(to, Recipient::Switch(_)));
        replies.count()
    };
    assert_eq!(answers(&mut back), 0);
    // The controller lets the other go.
    configure(&mut back, &alone(3));
    save(&mut back, &mut Vec::new());
    assert_eq!(answers(&mut back), 1);
}

/// The other has joined, and the tail that comes back did not hear of it before: it claims no
/// entry for the other that it never sent.
#[test]
fn a_tail_that_comes_back_says_nothing_of_what_a_new_member_has() {
    let ([mut tail, mut joiner], [mut records, mut others]) = joining(5, 8);
    ask(&mut tail, 77, 2);
    save(&mut tail, &mut records);
    let mut back = recovered(setup_of(1), &records).unwrap();
    let members = ChainConfig {
        members: vec![member(1, 7), member(2, 7)],
        ..alone(3)
    };
    for (server, records) in [(&mut back, &mut records), (&mut joiner, &mut others)] {
        configure(server, &members);
        save(server, records);
    }
    assert_eq!(joiner.replica(1).unwrap().applied(), 5);
    settle([&mut back, &mut joiner], &mut [records, others], 4_000_000);
    assert_eq!(joiner.server_counters().chains_lost, 0);
    assert_eq!(joiner.replica(1).unwrap().applied(), 6);
}

/// Lets messages pass between two servers, and saves, until none is left; gives those to others.
fn settle(servers: [&mut Server; 2], records: &mut [Vec<Vec<u8>>; 2], now: u64) -> Vec<Recipient> {
    let mut others = Vec::new();
    for turn in 0..12 {
        let (from, to) = (turn % 2, 1 - turn % 2);
        save(servers[from], &mut records[from]);
        for (recipient, bytes) in sent(servers[from], now) {
            let link = |at: usize| member_at(servers[at]);
            match recipient {
                Recipient::Neighbour(address) if address == link(to) => {
                    let from = link(from);
                    servers[to].handle_link(now, from, &bytes);
                }
                other => others.push(other),
            }
        }
        save(servers[to], &mut records[to]);
    }
    others
}

/// The chain port of a server of these tests.
fn member_at(server: &Server) -> SocketAddrV4 {
    let at = match &server.management {
        Management::Fixed => u32::from(server.template.position) + 1,
        Management::Controller(reporting) => reporting.identity.server,
    };
    member(at, 1).links
}

/// A chain of two that granted `flows` leases, with their setups and records.
fn pair(is_managed: bool, flows: u8) -> ([Setup; 2], [Server; 2], [Vec<Vec<u8>>; 2]) {
    let setups = [0, 1].map(|at: u8| {
        if is_managed {
            setup_of(u32::from(at) + 1)
        } else {
            fixed_at(2, at)
        }
    });
    let mut servers = setups.clone().map(|setup| started(&setup));
    let mut records = [0, 1].map(|at| servers[at].saved_state().unwrap().collect::<Vec<_>>());
    if is_managed {
        for server in &mut servers {
            configure(server, &both(1));
        }
    }
    for flow in 0..flows {
        ask(&mut servers[0], flow, 1);
        let [head, tail] = &mut servers;
        let sent = settle([head, tail], &mut records, 2);
        assert!(sent.contains(&Recipient::Switch(SWITCH)), "it is answered");
    }
    (setups, servers, records)
}

/// Two members of chain 1.
fn both(epoch: u32) -> ChainConfig {
    ChainConfig {
        members: vec![member(1, 99), member(2, 99)],
        ..alone(epoch)
    }
}

/// The records without the last `lost` entries.
fn without_last(records: &[Vec<u8>], lost: usize) -> Vec<Vec<u8>> {
    let is_entry = |record: &&Vec<u8>| record[0] == kind::ENTRY;
    let entries = records.iter().filter(is_entry).count();
    let mut left = entries - lost;
    let kept = records.iter().filter(|record| {
        let counts = is_entry(record);
        let keeps = !counts || left > 0;
        left -= usize::from(counts && keeps);
        keeps
    });
    kept.cloned().collect()
}

#[test]
fn a_head_that_comes_back_decides_nothing_before_it_has_compared() {
    let (setups, [_, mut tail], mut records) = pair(false, 5);
    let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
    ask(&mut head, 7, 1);
    assert_eq!(replica(&head).applied(), 5);
    assert_eq!(replica(&head).counters().not_compared, 1);
    settle([&mut head, &mut tail], &mut records, 3_000_000);
    assert_eq!((head.lost_entries(), replica(&head).lacks()), (None, None));
    ask(&mut head, 7, 1);
    assert_eq!(replica(&head).applied(), 6);
    let others = settle([&mut head, &mut tail], &mut records, 3_000_001);
    assert!(others.contains(&Recipient::Switch(SWITCH)));
}

/// It kept what its successor may lack, and does not know what of that was answered. Grants of
/// before would be taken for new ones.
#[test]
fn a_head_that_comes_back_and_is_left_alone_answers_nothing_of_before() {
    let (setups, _, records) = pair(true, 5);
    let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
    assert_eq!(head.replica(1).unwrap().applied(), 5);
    assert!(head.replica(1).unwrap().unacknowledged() > 0);
    let left = ChainConfig {
        members: vec![member(1, 99)],
        ..both(2)
    };
    configure(&mut head, &left);
    save(&mut head, &mut Vec::new());
    assert_eq!(head.replica(1).unwrap().place().length, 1);
    let sent = sent(&mut head, 2);
    let answered = sent.iter().any(|(to, _)| *to == Recipient::Switch(SWITCH));
    assert!(!answered);
}

#[test]
fn a_head_whose_disk_lost_an_entry_says_so_and_stands_still() {
    for lost in [1, 4] {
        let (setups, [_, mut tail], mut records) = pair(false, 5);
        records[0] = without_last(&records[0], lost);
        let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
        ask(&mut head, 7, 1);
        settle([&mut head, &mut tail], &mut records, 3_000_000);
        let applied = 5 - lost as u64;
        assert_eq!(head.lost_entries(), Some(LostEntries { applied, known: 5 }));
        ask(&mut head, 7, 1);
        assert_eq!(
            replica(&head).applied(),
            applied,
            "no number is given again"
        );
        save(&mut head, &mut Vec::new());
        for now in [9_000_000, 18_000_000] {
            assert_eq!(sent(&mut head, now), []);
        }
    }
}

/// An entry that came before its turn is of a head that has lost it since.
#[test]
fn a_number_that_a_head_gives_again_means_the_newer_entry() {
    let (setups, [mut head, mut tail], mut records) = pair(false, 3);
    // Two more entries, of which the first is lost on its way, and both on the disk.
    ask(&mut head, 5, 1);
    save(&mut head, &mut Vec::new());
    let lost = sent(&mut head, 2);
    ask(&mut head, 6, 1);
    save(&mut head, &mut Vec::new());
    let early = sent(&mut head, 2);
    assert!(!lost.is_empty() && !early.is_empty());
    for (_, bytes) in early {
        tail.handle_link(2, member(1, 1).links, &bytes);
    }
    assert_eq!(replica(&tail).counters().chain_early, 1);
    let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
    settle([&mut head, &mut tail], &mut records, 3_000_000);
    for flow in [7, 8] {
        ask(&mut head, flow, 1);
        settle([&mut head, &mut tail], &mut records, 3_000_001);
    }
    assert_eq!(replica(&tail).applied(), 5);
    assert_eq!(replica(&tail).digest(), replica(&head).digest());
}

#[test]
fn an_answer_to_an_earlier_start_tells_a_head_nothing() {
    let (setups, [_, mut tail], mut records) = pair(false, 5);
    let mut former = recovered(setups[0].clone(), &records[0]).unwrap();
    let mut asked = sent(&mut former, 3_000_000);
    asked.extend(sent(&mut former, 3_000_001));
    let head_link = member(1, 1).links;
    for (_, bytes) in asked {
        tail.handle_link(3_000_000, head_link, &bytes);
    }
    save(&mut tail, &mut records[1]);
    let answers = sent(&mut tail, 3_000_000);
    let is_answer = |(_, bytes): &(Recipient, Vec<u8>)| {
        chain::Packet::new_checked(bytes).unwrap().kind() == chain::Kind::Compared
    };
    assert!(answers.iter().any(is_answer));
    records[0].push(record(kind::START, 0, &[]));
    let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
    for (_, bytes) in answers {
        head.handle_link(3_000_001, member(2, 1).links, &bytes);
    }
    ask(&mut head, 7, 1);
    assert_eq!(replica(&head).applied(), 5);
}

#[test]
fn a_replica_that_compares_itself_tells_its_predecessor_nothing() {
    let (setups, _, records) = pair(false, 3);
    let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
    // Of three: the one in the middle has not heard from the tail.
    let middle = fixed_at(3, 1);
    let saved = started(&middle).saved_state().unwrap();
    let mut middle = recovered(middle, &saved.collect::<Vec<_>>()).unwrap();
    let mut asked = sent(&mut head, 3_000_000);
    asked.extend(sent(&mut head, 3_000_001));
    assert!(asked.iter().any(|(_, bytes)| {
        chain::Packet::new_checked(bytes).unwrap().kind() == chain::Kind::Compare
    }));
    for (_, bytes) in asked {
        middle.handle_link(3_000_000, member(1, 1).links, &bytes);
    }
    save(&mut middle, &mut Vec::new());
    let said = sent(&mut middle, 3_000_000).into_iter();
    let said = said.filter(|(to, _)| *to == Recipient::Neighbour(member(1, 1).links));
    let kinds = said.map(|(_, bytes)| chain::Packet::new_checked(&bytes).unwrap().kind());
    assert!(!kinds.collect::<Vec<_>>().contains(&chain::Kind::Compared));
}

#[test]
fn a_successor_that_says_it_is_ahead_tells_of_a_loss() {
    let (setups, _, records) = pair(false, 5);
    let lost = LostEntries {
        applied: 4,
        known: 5,
    };
    let records = without_last(&records[0], 1);
    for (base, found) in [(4, None), (5, Some(lost))] {
        let mut head = recovered(setups[0].clone(), &records).unwrap();
        let answer = chain::Repr {
            kind: chain::Kind::Compared,
            replica: 1,
            chain: 0,
            chain_epoch: 1,
            incarnation: 7,
            number: 1,
            base,
            body: &[],
        };
        head.handle_link(3_000_001, member(2, 1).links, &answer.to_vec().unwrap());
        assert_eq!(head.lost_entries(), found);
        ask(&mut head, 7, 1);
        let applied = if found.is_some() { 4 } else { 5 };
        assert_eq!(replica(&head).applied(), applied);
    }
}

#[test]
fn an_acknowledgement_of_more_than_it_has_tells_of_a_loss() {
    let (setups, [_, mut tail], mut records) = pair(false, 5);
    let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
    settle([&mut head, &mut tail], &mut records, 3_000_000);
    let ack = chain::Repr {
        kind: chain::Kind::Ack,
        replica: 1,
        chain: 0,
        chain_epoch: 1,
        incarnation: 7,
        number: 6,
        base: 5,
        body: &[],
    };
    head.handle_link(3_000_001, member(2, 1).links, &ack.to_vec().unwrap());
    let lost = LostEntries {
        applied: 5,
        known: 6,
    };
    assert_eq!(head.lost_entries(), Some(lost));
}

#[test]
fn a_tail_that_lacks_what_all_had_is_lost() {
    let (setups, [mut head, _], mut records) = pair(false, 5);
    records[1] = without_last(&records[1], 2);
    let mut tail = recovered(setups[1].clone(), &records[1]).unwrap();
    ask(&mut head, 7, 1);
    settle([&mut head, &mut tail], &mut records, 3_000_000);
    let lost = tail.lost_entries().unwrap();
    assert!(lost.known > lost.applied, "{lost:?}");
}

/// Under a controller it leaves the chain, says so in each heartbeat and after another start
/// too, and takes its place in a newer configuration.
#[test]
fn an_update_that_says_that_all_have_more_tells_of_a_loss() {
    let (setups, _, records) = pair(false, 5);
    for (incarnation, base, known) in [(7, 5, None), (7, 6, Some(6)), (8, 6, None)] {
        let mut tail = recovered(setups[1].clone(), &records[1]).unwrap();
        let update = chain::Repr {
            kind: chain::Kind::Update,
            replica: 0,
            chain: 0,
            chain_epoch: 1,
            incarnation,
            number: 7,
            base,
            body: &[],
        };
        tail.handle_link(3_000_000, member(1, 1).links, &update.to_vec().unwrap());
        assert_eq!(tail.lost_entries().map(|lost| lost.known), known);
    }
}

/// A tail asks for missing entries even if nothing more is decided.
#[test]
fn a_tail_asks_what_it_should_have() {
    let (setups, [mut head, _], mut records) = pair(false, 5);
    assert!(replica(&head).base() > 3);
    records[1] = without_last(&records[1], 2);
    let mut tail = recovered(setups[1].clone(), &records[1]).unwrap();
    settle([&mut tail, &mut head], &mut records.clone(), 3_000_000);
    assert_eq!(tail.lost_entries().map(|lost| lost.applied), Some(3));
}

#[test]
fn a_managed_server_leaves_the_chain_of_which_its_disk_lost_entries() {
    let (setups, [_, mut tail], mut records) = pair(true, 5);
    records[0] = without_last(&records[0], 1);
    let mut head = recovered(setups[0].clone(), &records[0]).unwrap();
    settle([&mut head, &mut tail], &mut records, 3_000_000);
    assert!(head.replica(1).is_none());
    assert_eq!(head.server_counters().chains_lost, 1);
    let snapshot: Vec<_> = head.saved_state().unwrap().collect();
    let again = recovered(setups[0].clone(), &records[0]).unwrap();
    let from_snapshot = recovered(setups[0].clone(), &snapshot).unwrap();
    for (start, mut head) in [head, again, from_snapshot].into_iter().enumerate() {
        for turn in 4..6 {
            let beats = heartbeats(&mut head, turn * 2_000_000);
            let status = beats[0].statuses.iter().find(|status| status.chain == 1);
            let status = status.unwrap_or_else(|| panic!("start {start}: {beats:?}"));
            assert_eq!((status.epoch, status.lost), (1, true), "start {start}");
        }
        // The configuration that it left is of no use any more.
        configure(&mut head, &both(1));
        assert!(head.replica(1).is_none());
        let joins = ChainConfig {
            members: vec![member(2, 99)],
            joining: Some(member(1, 99)),
            ..alone(2)
        };
        configure(&mut head, &joins);
        save(&mut head, &mut Vec::new());
        let beats = heartbeats(&mut head, 20_000_000);
        assert_eq!(
            (beats[0].statuses[0].epoch, beats[0].statuses[0].lost),
            (2, false)
        );
        let gone = ChainConfig {
            members: vec![member(2, 99)],
            ..alone(3)
        };
        configure(&mut head, &gone);
        save(&mut head, &mut Vec::new());
        let beats = heartbeats(&mut head, 30_000_000);
        let status = beats[0].statuses[0];
        assert_eq!((status.epoch, status.lost), (3, false));
    }
}

/// The disk lost that it joined: it has no state, and a configuration says that it has.
#[test]
fn a_member_that_knows_nothing_of_its_chain_has_lost_it() {
    let mut server = started(&setup_of(1));
    let records: Vec<_> = server.saved_state().unwrap().collect();
    configure(&mut server, &both(2));
    assert!(
        server.replica(1).is_some(),
        "it never had a disk that lost anything"
    );
    for (epoch, lost) in [(1, false), (2, true)] {
        let mut back = recovered(setup_of(1), &records).unwrap();
        configure(&mut back, &both(epoch));
        save(&mut back, &mut Vec::new());
        assert_eq!(back.replica(1).is_none(), lost);
        let beats = heartbeats(&mut back, 4_000_000);
        let status = beats[0].statuses[0];
        assert_eq!((status.epoch, status.lost), (epoch, lost));
    }
}

proptest! {
    /// Restoring arbitrary records does not panic.
    #[test]
    fn no_record_makes_it_panic(
        is_managed in any::<bool>(),
        at in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
        noise in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let (setup, mut records) = if is_managed {
            (setup_of(2), joining(4, 3).1[1].clone())
        } else {
            (fixed(2), granted(2, 4).1)
        };
        let record = at.index(records.len());
        let place = place.index(records[record].len());
        records[record][place] = value;
        records.insert(at.index(records.len()), noise);
        if let Ok(mut server) = recovered(setup.clone(), &records) {
            sent(&mut server, 10);
        }
        records.remove(at.index(records.len() - 1));
        let _ = recovered(setup, &records);
    }
}
