//! A tail and a replica that joins behind it, message by message.

use stateplane_wire::chain::{self, Kind};

use super::*;

/// The tail, alone in its chain, and who joins.
struct Join {
    tail: Replica,
    joiner: Replica,
}

const TAIL: Place = Place {
    epoch: 2,
    length: 1,
    position: 0,
    feeds: true,
};

const JOINER: Place = Place {
    epoch: 2,
    length: 1,
    position: 1,
    feeds: false,
};

/// Parts and updates of one item each, in a chain of its own.
fn alone(incarnation: u32) -> Replica {
    let mut config = config(1, 0);
    config.limits.batch = 1;
    config.limits.join_backlog = 10;
    Replica::new(config, incarnation).unwrap()
}

/// Asks for a lease of a flow, which is one entry.
fn ask(replica: &mut Replica, flow: u8) {
    let mut key = [0; 16];
    (key[0], key[15]) = (CLASS_COUNTER, flow);
    let request = Repr {
        chain_epoch: replica.place().epoch,
        switch_id: 1,
        incarnation: 9,
        claim: 1,
        request: 1,
        ..Repr::new(MessageType::LeaseRequest, Key(key))
    };
    replica.handle_request(1, switch(1), &request.to_vec().unwrap());
}

/// How many answers to switches `replica` sends, and what it sends to its neighbour.
fn poll(replica: &mut Replica) -> (usize, Vec<Vec<u8>>) {
    let (mut answers, mut messages) = (0, Vec::new());
    while let Some(transmit) = replica.poll_transmit(1) {
        match transmit.to {
            Destination::Switch(_) => answers += 1,
            Destination::Replica(_) => messages.push(transmit.bytes.to_vec()),
        }
    }
    (answers, messages)
}

fn sent(replica: &mut Replica) -> Vec<Vec<u8>> {
    poll(replica).1
}

fn answers(replica: &mut Replica) -> usize {
    poll(replica).0
}

fn kind(bytes: &[u8]) -> Kind {
    chain::Packet::new_checked(bytes).unwrap().kind()
}

/// The acknowledgements of parts among what `joiner` sends.
fn part_acknowledgements(joiner: &mut Replica) -> Vec<Vec<u8>> {
    let sent = sent(joiner).into_iter();
    sent.filter(|bytes| kind(bytes) == Kind::SnapshotAck)
        .collect()
}

/// A copy of `bytes` of which `change` makes another message.
fn changed(bytes: &[u8], change: impl Fn(&mut chain::Repr<'_>)) -> Vec<u8> {
    let packet = chain::Packet::new_checked(bytes).unwrap();
    let mut repr = chain::Repr {
        kind: packet.kind(),
        replica: packet.replica(),
        chain: packet.chain(),
        chain_epoch: packet.chain_epoch(),
        incarnation: packet.incarnation(),
        number: packet.number(),
        base: packet.base(),
        body: packet.body(),
    };
    change(&mut repr);
    repr.to_vec().unwrap()
}

impl Join {
    /// The tail has `flows` entries when the other begins to join.
    fn new(flows: u8) -> Join {
        let (mut tail, mut joiner) = (alone(7), alone(8));
        for flow in 0..flows {
            ask(&mut tail, flow);
        }
        answers(&mut tail);
        tail.reconfigure(1, TAIL);
        joiner.reconfigure(1, JOINER);
        Join { tail, joiner }
    }

    fn joiner_hears(&mut self, messages: &[Vec<u8>]) {
        for bytes in messages {
            self.joiner.handle_chain(1, 0, bytes);
        }
    }

    fn tail_hears(&mut self, messages: &[Vec<u8>]) {
        for bytes in messages {
            self.tail.handle_chain(1, 1, bytes);
        }
    }

    /// Carries everything until nobody has more to say.
    fn settle(&mut self) {
        loop {
            let down = sent(&mut self.tail);
            self.joiner_hears(&down);
            let up = sent(&mut self.joiner);
            self.tail_hears(&up);
            if down.is_empty() && up.is_empty() {
                break;
            }
        }
    }

    fn agree(&self) -> bool {
        self.tail.digest() == self.joiner.digest() && self.joiner.audit() == Ok(())
    }
}

#[test]
fn entries_follow_when_all_parts_are_acknowledged() {
    let mut join = Join::new(3);
    let parts = sent(&mut join.tail);
    assert!(parts.len() > 3);
    ask(&mut join.tail, 50);
    assert!(sent(&mut join.tail).is_empty());
    join.tail.handle_timeout(300_000);
    assert!(
        sent(&mut join.tail)
            .iter()
            .all(|it| kind(it) == Kind::Snapshot)
    );
    join.joiner_hears(&parts);
    let acknowledgements = part_acknowledgements(&mut join.joiner);
    join.tail_hears(&acknowledgements[..acknowledgements.len() - 1]);
    assert!(sent(&mut join.tail).is_empty());
    join.tail_hears(&acknowledgements);
    assert_eq!(sent(&mut join.tail).len(), 1);
}

#[test]
fn the_backlog_of_a_join_is_bounded_until_answers_wait() {
    let mut join = Join::new(1);
    let mut held = Vec::new();
    for flow in 0..35 {
        ask(&mut join.tail, 100 + flow);
        let (answers, parts) = poll(&mut join.tail);
        assert_eq!(answers, 1);
        held.extend(parts);
        assert!(join.tail.log.len() <= 11, "{}", join.tail.log.len());
    }
    assert_eq!(join.tail.counters().snapshots_restarted, 3);
    join.joiner_hears(&held);
    join.settle();
    assert!(join.tail.has_joined() && join.agree());
    // From here on what was not answered is kept, however much.
    for flow in 0..35 {
        ask(&mut join.tail, 200 + flow);
    }
    assert_eq!(join.tail.counters().snapshots_restarted, 3);
    let (early, updates) = poll(&mut join.tail);
    assert_eq!((early, updates.len()), (0, 35));
    join.joiner_hears(&updates);
    let acknowledgements = sent(&mut join.joiner);
    join.tail_hears(&acknowledgements);
    assert_eq!(answers(&mut join.tail), 35);
    assert!(join.agree());
}

#[test]
fn an_acknowledgement_of_another_snapshot_or_start_counts_for_nothing() {
    let mut join = Join::new(3);
    let parts = sent(&mut join.tail);
    join.joiner_hears(&parts);
    let acknowledgements = part_acknowledgements(&mut join.joiner);
    let last = acknowledgements.last().unwrap();
    let wrong = [
        changed(last, |it| it.base += 1),
        changed(last, |it| it.base -= 1),
        changed(last, |it| it.incarnation += 1),
    ];
    for (count, bytes) in (1..).zip(&wrong) {
        join.tail_hears(core::slice::from_ref(bytes));
        assert_eq!(join.tail.counters().chain_bad_ack, count);
        assert!(!join.tail.feed.as_ref().unwrap().follows());
    }
    join.tail_hears(core::slice::from_ref(last));
    assert!(join.tail.feed.as_ref().unwrap().follows());
}

/// Two snapshots of a tail, of which the second has more.
fn two_snapshots() -> (Join, Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut join = Join::new(3);
    let former = sent(&mut join.tail);
    for flow in 0..11 {
        ask(&mut join.tail, 100 + flow);
    }
    assert_eq!(join.tail.counters().snapshots_restarted, 1);
    let newer = sent(&mut join.tail);
    assert!(newer.len() > former.len());
    (join, former, newer)
}

#[test]
fn parts_of_a_former_snapshot_are_not_taken() {
    let (mut join, former, newer) = two_snapshots();
    join.joiner_hears(&former[..2]);
    join.joiner_hears(&newer[..2]);
    let before = join.joiner.counters().chain_not_begun;
    join.joiner_hears(&former[2..]);
    let after = join.joiner.counters().chain_not_begun;
    assert_eq!(after - before, former.len() as u64 - 2);
    join.joiner_hears(&newer[2..]);
    assert_eq!(join.joiner.counters().snapshots_installed, 1);
    assert!(join.agree());
}

/// Before its first part came, a newer snapshot has nothing to put in the place of what is
/// there.
#[test]
fn only_the_first_part_of_a_newer_snapshot_begins_anew() {
    let (mut join, former, newer) = two_snapshots();
    join.joiner_hears(&former[..3]);
    let had = join.joiner.records().count();
    assert!(had > 0);
    join.joiner_hears(&newer[1..]);
    assert_eq!(join.joiner.records().count(), had);
    join.joiner_hears(&newer);
    assert!(join.agree());
}

#[test]
fn parts_of_two_starts_of_the_tail_make_no_snapshot() {
    let mut join = Join::new(3);
    let parts = sent(&mut join.tail);
    let others: Vec<Vec<u8>> = parts
        .iter()
        .map(|bytes| changed(bytes, |it| it.incarnation += 1))
        .collect();
    join.joiner_hears(&parts[..2]);
    join.joiner_hears(&others[2..]);
    let counters = *join.joiner.counters();
    assert_eq!(counters.chain_wrong_incarnation, others.len() as u64 - 2);
    assert_eq!(counters.snapshots_installed, 0);
    join.joiner_hears(&parts[2..]);
    assert!(join.agree());
}

#[test]
fn an_update_before_the_snapshot_is_there_is_not_applied() {
    let mut join = Join::new(0);
    let mut head = alone(7);
    let place = Place {
        length: 2,
        feeds: false,
        ..TAIL
    };
    head.reconfigure(1, place);
    head.comparing = None;
    ask(&mut head, 1);
    let updates: Vec<_> = sent(&mut head)
        .into_iter()
        .filter(|bytes| kind(bytes) == Kind::Update)
        .collect();
    assert_eq!(updates.len(), 1);
    join.joiner_hears(&updates);
    let counters = *join.joiner.counters();
    assert_eq!((counters.applied, counters.chain_not_begun), (0, 1));
    join.settle();
    join.joiner_hears(&updates);
    assert_eq!(join.joiner.counters().applied, 1);
}

#[test]
fn who_joins_again_forgets_what_it_had() {
    let mut join = Join::new(3);
    let mut former = alone(8);
    for flow in [1, 2, 70] {
        ask(&mut former, flow);
    }
    answers(&mut former);
    former.reconfigure(1, JOINER);
    assert_eq!((former.records().count(), former.record_count), (0, 0));
    join.joiner = former;
    join.settle();
    assert_eq!(join.joiner.counters().chain_inconsistent, 0);
    assert_eq!(join.joiner.record_count, 3);
    assert!(join.tail.has_joined() && join.agree());
}

#[test]
fn who_joined_knows_what_was_answered_and_answers_the_rest() {
    let mut join = Join::new(3);
    let parts = sent(&mut join.tail);
    for flow in 0..5 {
        ask(&mut join.tail, 100 + flow);
    }
    assert_eq!(answers(&mut join.tail), 5);
    join.joiner_hears(&parts);
    let acknowledgements = sent(&mut join.joiner);
    join.tail_hears(&acknowledgements);
    let updates = sent(&mut join.tail);
    assert_eq!(updates.len(), 5);
    for (had, update) in (4..).zip(&updates) {
        assert!(!join.tail.has_joined());
        join.joiner_hears(core::slice::from_ref(update));
        // The tail has answered more than it has.
        let base = if had < 8 { 3 } else { 8 };
        assert_eq!((join.joiner.applied, join.joiner.base), (had, base));
        let acknowledgements = sent(&mut join.joiner);
        join.tail_hears(&acknowledgements);
    }
    assert!(join.tail.has_joined());
    for flow in 0..2 {
        ask(&mut join.tail, 110 + flow);
        let updates = sent(&mut join.tail);
        join.joiner_hears(&updates);
    }
    // The base of these says that what came before was answered.
    assert_eq!((join.joiner.applied, join.joiner.base), (10, 8));
    assert_eq!(join.joiner.log.len(), 2);
    let place = Place {
        epoch: 3,
        length: 1,
        position: 0,
        feeds: false,
    };
    join.joiner.reconfigure(1, place);
    assert_eq!(answers(&mut join.joiner), 2);
}
