use super::*;
use stateplane_random::Random;

const ONE: Queues = Queues {
    count: 1,
    capacity: None,
};

fn packet(arrival: u64, depth: u32, lock: u32) -> Packet {
    Packet {
        arrival,
        bytes: 100,
        depth,
        state: 0,
        lock,
        queue: 0,
    }
}

fn fates(packets: &[Packet], queues: Queues) -> (Vec<Fate>, Outcome) {
    let mut fates = Vec::new();
    let told = |number, fate| fates.push((number, fate));
    let outcome = simulate_with(packets.iter().copied(), queues, told).unwrap();
    fates.sort_unstable_by_key(|(number, _)| *number);
    assert!(fates.iter().zip(0..).all(|((number, _), at)| *number == at));
    (fates.into_iter().map(|(_, fate)| fate).collect(), outcome)
}

/// A set-up in which locks, states, queues and bounds all matter.
fn set_up(seed: u64) -> (Vec<Packet>, Queues) {
    let mut random = Random::new(seed);
    let queues = Queues {
        count: random.between(1, 5) as u32,
        capacity: random.permille(500).then(|| random.between(1, 4) as u32),
    };
    let most_depth = random.between(1, 20);
    let most_gap = random.between(0, 8);
    let locks = random.between(1, 6);
    let states = random.between(1, 6);
    let unlocked = random.between(0, 1000) as u32;
    let mut arrival = 0;
    let packets = (0..random.between(1, 60)).map(|_| {
        arrival += random.between(0, most_gap);
        Packet {
            arrival,
            bytes: random.between(1, 1500) as u32,
            depth: random.between(1, most_depth) as u32,
            state: random.between(0, states - 1) as u32,
            lock: if random.permille(unlocked) {
                UNLOCKED
            } else {
                random.between(0, locks - 1) as u32
            },
            queue: random.between(0, u64::from(queues.count) - 1) as u32,
        }
    });
    (packets.collect(), queues)
}

#[test]
fn every_packet_fares_as_in_the_model_that_visits_every_cycle() {
    let (mut hazards, mut dropped, mut waited) = (0, 0, 0);
    for seed in 0..10_000 {
        let (packets, queues) = set_up(seed);
        let (fates, outcome) = fates(&packets, queues);
        assert_eq!(fates, reference::fates(&packets, queues), "set-up {seed}");
        let started = |hazards: bool| {
            let with = move |fate: &&Fate| matches!(fate, Fate::Started { hazard, .. } if *hazard || !hazards);
            fates.iter().filter(with).count() as u64
        };
        assert_eq!(outcome.hazards, started(true), "set-up {seed}");
        assert_eq!(outcome.packets - outcome.dropped, started(false));
        let last = packets.last().map_or(0, |packet| packet.arrival);
        let in_time = fates
            .iter()
            .zip(&packets)
            .filter(|(fate, _)| matches!(fate, Fate::Started { at, .. } if *at <= last));
        let in_time: u64 = in_time.map(|(_, packet)| u64::from(packet.bytes)).sum();
        assert_eq!(outcome.bytes_in_time, in_time, "set-up {seed}");
        hazards += outcome.hazards;
        dropped += outcome.dropped;
        waited += outcome.waited;
    }
    assert!(hazards > 10_000 && dropped > 10_000 && waited > 100_000);
}

#[test]
fn the_second_packet_within_the_depth_is_a_hazard() {
    let started = |at, hazard| Fate::Started { at, hazard };
    let two = |gap: u64| [packet(5, 3, UNLOCKED), packet(5 + gap, 3, UNLOCKED)];
    assert_eq!(fates(&two(2), ONE).0, [started(5, false), started(7, true)]);
    assert_eq!(
        fates(&two(3), ONE).0,
        [started(5, false), started(8, false)]
    );
}

#[test]
fn a_lock_makes_the_second_packet_wait_for_the_end_of_the_first() {
    let (fates, outcome) = fates(&[packet(5, 3, 0), packet(6, 3, 0)], ONE);
    let at = |at| Fate::Started { at, hazard: false };
    assert_eq!(fates, [at(5), at(8)]);
    assert_eq!((outcome.waited, outcome.hazards), (2, 0));
    assert_eq!(outcome.latency.most(), 5);
    assert_eq!(outcome.throughput(), 0.5);
}

#[test]
fn another_queue_passes_one_whose_lock_is_held() {
    let mut other = packet(2, 4, 1);
    other.queue = 1;
    let packets = [packet(0, 4, 0), packet(1, 4, 0), other];
    let queues = Queues { count: 2, ..ONE };
    // All have one state, which the locks do not guard.
    let at = |at| Fate::Started { at, hazard: at > 0 };
    assert_eq!(fates(&packets, queues).0, [at(0), at(4), at(2)]);
}

#[test]
fn a_full_queue_drops() {
    let packets = [0, 1, 2, 3].map(|arrival| packet(arrival, 10, 0));
    let bounded = Queues {
        count: 1,
        capacity: Some(2),
    };
    let (fates, outcome) = fates(&packets, bounded);
    assert_eq!(fates[3], Fate::Dropped);
    assert_eq!((outcome.dropped, outcome.most_in_queue), (1, 2));
    assert_eq!(outcome.drops(), 0.25);
}

#[test]
fn what_cannot_run_is_refused() {
    let refused = |packets: &[Packet], queues| {
        let outcome = simulate(packets.iter().copied(), queues);
        outcome.unwrap_err().code()
    };
    assert_eq!(refused(&[], Queues { count: 0, ..ONE }), "HZ001");
    let no_room = Queues {
        capacity: Some(0),
        ..ONE
    };
    assert_eq!(refused(&[], no_room), "HZ001");
    assert_eq!(refused(&[packet(0, 0, 0)], ONE), "HZ001");
    let mut elsewhere = packet(0, 1, 0);
    elsewhere.queue = 1;
    assert_eq!(refused(&[elsewhere], ONE), "HZ001");
    assert_eq!(refused(&[packet(5, 1, 0), packet(4, 1, 0)], ONE), "HZ004");
}
