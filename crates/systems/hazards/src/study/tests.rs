use super::*;
use crate::{Flow, Record, Rest};

fn chicago(packets: u64) -> Traffic {
    // The row chi-15 of the public histograms, of CAIDA's monitor in Chicago.
    let sizes = [40, 64, 96, 128, 200, 256, 512, 576, 1024, 1400, 1499, 1500];
    let shares = [
        0.093, 0.271, 0.301, 0.333, 0.362, 0.374, 0.416, 0.425, 0.458, 0.519, 0.765, 1.0,
    ];
    let points = sizes.map(f64::from).into_iter().zip(shares).collect();
    Traffic::Drawn {
        sizes: Sizes::new(points).unwrap(),
        popularity: None,
        packets,
    }
}

fn study(depth: u32) -> Study {
    Study::new(Depths::one(depth).unwrap()).unwrap()
}

fn capture(lengths: &[u32]) -> Traffic {
    let flow = |port: u16| Flow {
        source: [10, 0, 0, (port % 3) as u8].into(),
        rest: Some(Rest {
            destination: [192, 0, 2, 1].into(),
            protocol: 17,
            ports: (port, 53),
        }),
    };
    let record = |(at, &bytes): (usize, &u32)| Record {
        at_ns: 1000 * at as u64,
        bytes,
        flow: Some(flow(at as u16 % 5)),
    };
    Traffic::recorded(lengths.iter().enumerate().map(record).collect()).unwrap()
}

#[test]
fn back_to_back_without_lock_hazards_have_a_closed_form() {
    let mut random = Random::new(1);
    let lengths: Vec<u32> = (0..5000).map(|_| random.between(1, 1500) as u32).collect();
    let traffic = capture(&lengths);
    for depth in 1..=40 {
        let outcome = study(depth).run(&traffic).unwrap();
        let chunks: Vec<u32> = lengths.iter().map(|bytes| bytes.div_ceil(80)).collect();
        // The first packet has none in front of it.
        let short = chunks[1..].iter().filter(|chunks| **chunks < depth).count();
        let cycles = chunks.iter().map(|chunks| u64::from(*chunks)).sum::<u64>();
        assert_eq!(outcome.hazards, short as u64, "depth {depth}");
        assert_eq!(outcome.cycles, cycles, "depth {depth}");
        assert_eq!(outcome.throughput(), 1.0);
    }
}

#[test]
fn drawn_traffic_meets_the_closed_form_of_its_distribution() {
    let traffic = chicago(200_000);
    let Traffic::Drawn { sizes, .. } = &traffic else {
        unreachable!("drawn")
    };
    for depth in [2, 10, 19] {
        let outcome = study(depth).run(&traffic).unwrap();
        let expected = sizes.share(f64::from((depth - 1) * 80));
        let measured = outcome.hazards_per_packet();
        assert!(
            (measured - expected).abs() < 0.01,
            "{depth}: {measured} {expected}"
        );
    }
}

#[test]
fn least_sizes_are_a_hazard_each_cycle() {
    let worst = Study {
        scale: Scale::new(0.0, None).unwrap(),
        ..study(2)
    };
    let outcome = worst.run(&chicago(1000)).unwrap();
    assert_eq!((outcome.cycles, outcome.hazards), (1000, 999));
}

#[test]
fn a_global_lock_takes_throughput_beyond_the_mean_of_chunks() {
    let locked = |depth| Study {
        lock: Some(Key::Global),
        ..study(depth)
    };
    let throughput = |depth| {
        let outcome = locked(depth).run(&chicago(200_000)).unwrap();
        assert_eq!(outcome.hazards, 0);
        outcome.throughput()
    };
    assert!(throughput(10) > 0.999);
    assert!(throughput(15) < 0.85);
}

#[test]
fn locks_of_flows_wait_less_than_one_for_all() {
    let traffic = capture(&[60; 2000]);
    let locked = |lock, values, queues| Study {
        state: Key::FiveTuple,
        lock: Some(lock),
        lock_values: values,
        queues: Queues {
            count: queues,
            capacity: None,
        },
        ..study(5)
    };
    let run = |study: Study| {
        let outcome = study.run(&traffic).unwrap();
        assert_eq!(outcome.hazards, 0);
        outcome.throughput()
    };
    assert!(run(locked(Key::Global, None, 1)) < 0.25);
    // Five flows in turn, and an action of five cycles: none meets its own.
    assert_eq!(run(locked(Key::FiveTuple, None, 1)), 1.0);
    assert!(run(locked(Key::FiveTuple, Some(1), 4)) < 0.25);
}

#[test]
fn a_coarser_lock_than_the_state_has_no_hazards_and_a_finer_one_has() {
    let traffic = capture(&[60; 2000]);
    let run = |state, lock| {
        let study = Study {
            state,
            lock: Some(lock),
            ..study(5)
        };
        study.run(&traffic).unwrap().hazards
    };
    assert_eq!(run(Key::FiveTuple, Key::Source), 0);
    assert!(run(Key::Global, Key::FiveTuple) > 0);
}

#[test]
fn utilisation_is_the_share_of_cycles_that_read() {
    let mut random = Random::new(2);
    let lengths: Vec<u32> = (0..5000).map(|_| random.between(40, 1500) as u32).collect();
    for traffic in [chicago(200_000), capture(&lengths)] {
        let busy = study(1).run(&traffic).unwrap().cycles as f64;
        for utilisation in [0.9, 0.5, 0.1] {
            let study = Study {
                utilisation,
                ..study(1)
            };
            let cycles = study.run(&traffic).unwrap().cycles as f64;
            let measured = busy / cycles;
            assert!((measured / utilisation - 1.0).abs() < 0.02, "{measured}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_runs_and_others_do_not() {
    let mixed = |seed| {
        let study = Study {
            depths: "1:0.9,30:0.1".parse().unwrap(),
            utilisation: 0.8,
            lock: Some(Key::Global),
            seed,
            ..study(1)
        };
        study.run(&chicago(10_000)).unwrap()
    };
    assert_eq!(mixed(1), mixed(1));
    assert_ne!(mixed(1), mixed(2));
}

#[test]
fn settings_out_of_range_are_refused() {
    let traffic = capture(&[60; 3]);
    let code = |study: Study| study.run(&traffic).unwrap_err().code();
    let base = || study(2);
    assert_eq!(code(Study { chunk: 0, ..base() }), "HZ001");
    for utilisation in [0.0, -1.0, 1.5, f64::NAN] {
        let study = Study {
            utilisation,
            ..base()
        };
        assert_eq!(code(study), "HZ001");
    }
    let values = Study {
        lock_values: Some(4),
        ..base()
    };
    assert_eq!(code(values), "HZ001");
    assert_eq!(base().run(&chicago(0)).unwrap_err(), HazardError::Empty);
}
