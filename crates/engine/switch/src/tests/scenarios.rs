//! Scenarios: one path through the switch for each test.

use super::engine::{Event, FOREVER, FakeEngine, at, egress_op, ingress_op};
use super::{assert_balanced, config, frame, generator, limited, switch, switch_with, transmitted};
use crate::{DropReason, Generator, Limits, MAX_FRAME, Switch, SwitchConfig};
use stateplane_runtime::InstanceType;

fn ports(frames: &[crate::Transmit]) -> Vec<u16> {
    frames.iter().map(|transmit| transmit.port).collect()
}

#[test]
fn a_frame_is_forwarded_and_counted() {
    let mut switch = switch();
    switch.handle_frame(5, 0, &frame(&[(at::TARGET, 1)]));
    let sent = transmitted(&mut switch);
    assert_eq!(ports(&sent), [1]);
    assert_eq!(sent[0].frame.len(), 64);
    let (rx, tx) = (
        switch.port_counters(0).unwrap(),
        switch.port_counters(1).unwrap(),
    );
    assert_eq!((rx.rx_packets, rx.rx_bytes, rx.tx_packets), (1, 64, 0));
    assert_eq!((tx.tx_packets, tx.tx_bytes, tx.rx_packets), (1, 64, 0));
    assert_eq!(switch.poll_timeout(), None);
    assert_balanced(&switch);
}

#[test]
fn bad_frames_do_not_reach_the_engine() {
    let mut switch = switch();
    switch.set_link_up(3, false).unwrap();
    for length in [0, 1, 13] {
        switch.handle_frame(0, 0, &vec![0; length]);
    }
    switch.handle_frame(0, 0, &vec![0; MAX_FRAME + 1]);
    switch.handle_frame(0, 9, &frame(&[]));
    switch.handle_frame(0, u16::MAX, &frame(&[]));
    switch.handle_frame(0, 3, &frame(&[]));
    assert!(switch.engine().events.is_empty());
    let dropped = |reason| switch.counters().dropped(reason);
    assert_eq!(dropped(DropReason::Runt), 3);
    assert_eq!(dropped(DropReason::Oversize), 1);
    assert_eq!(dropped(DropReason::UnknownPort), 2);
    assert_eq!(dropped(DropReason::PortDown), 1);
    assert_eq!(switch.port_counters(0).unwrap().rx_packets, 0);
    assert_balanced(&switch);
}

#[test]
fn the_shortest_and_the_longest_frame_pass() {
    let mut switch = switch();
    switch.handle_frame(0, 0, &[0; 14]);
    switch.handle_frame(0, 0, &vec![0; MAX_FRAME]);
    let lengths: Vec<_> = transmitted(&mut switch)
        .iter()
        .map(|sent| sent.frame.len())
        .collect();
    assert_eq!(lengths, [14, MAX_FRAME]);
}

#[test]
fn drops_are_counted_by_reason() {
    let cases = [
        (
            frame(&[(at::INGRESS, ingress_op::DROP)]),
            DropReason::Ingress,
        ),
        (
            frame(&[(at::INGRESS, ingress_op::BEYOND)]),
            DropReason::UnknownPort,
        ),
        (frame(&[(at::EGRESS, egress_op::DROP)]), DropReason::Egress),
        (
            frame(&[(at::EGRESS, egress_op::EMPTY)]),
            DropReason::EgressRunt,
        ),
        (frame(&[(at::GROW, 9)]), DropReason::EgressOversize),
        (frame(&[(at::TARGET, 5)]), DropReason::UnknownPort),
        (
            frame(&[(at::INGRESS, ingress_op::MULTICAST), (at::TARGET, 9)]),
            DropReason::UnknownMulticastGroup,
        ),
    ];
    for (frame, reason) in cases {
        let mut switch = switch();
        switch.handle_frame(0, 0, &frame);
        assert!(transmitted(&mut switch).is_empty());
        assert_eq!(switch.counters().dropped(reason), 1, "{reason}");
        assert_eq!(
            switch
                .counters()
                .drops()
                .map(|(_, count)| count)
                .sum::<u64>(),
            1,
            "{reason}"
        );
        assert_balanced(&switch);
    }
}

#[test]
fn a_port_that_went_down_sends_nothing() {
    let mut switch = switch();
    switch.set_link_up(1, false).unwrap();
    switch.handle_frame(0, 0, &frame(&[(at::TARGET, 1)]));
    assert!(transmitted(&mut switch).is_empty());
    assert_eq!(switch.counters().dropped(DropReason::PortDown), 1);
    switch.set_link_up(1, true).unwrap();
    switch.handle_frame(1, 0, &frame(&[(at::TARGET, 1)]));
    assert_eq!(transmitted(&mut switch).len(), 1);
}

#[test]
fn multicast_copies_carry_their_replica_number() {
    let mut switch = switch();
    let to_group = |group| frame(&[(at::INGRESS, ingress_op::MULTICAST), (at::TARGET, group)]);
    switch.handle_frame(0, 0, &to_group(1));
    assert_eq!(ports(&transmitted(&mut switch)), [1, 2]);
    let runs = switch.engine().egress_runs();
    assert_eq!(runs.iter().map(|run| run.rid).collect::<Vec<_>>(), [10, 20]);
    assert!(
        runs.iter()
            .all(|run| run.instance == InstanceType::Replication)
    );
    switch.handle_frame(0, 0, &to_group(2));
    assert!(transmitted(&mut switch).is_empty());
    assert_eq!(
        (switch.counters().replicas, switch.counters().replicated),
        (2, 2)
    );
    assert_balanced(&switch);
}

#[test]
fn an_ingress_clone_is_parsed_anew_with_its_metadata() {
    let mut switch = switch();
    switch.handle_frame(0, 0, &frame(&[(at::TARGET, 1), (at::INGRESS_CLONE, 1)]));
    assert_eq!(ports(&transmitted(&mut switch)), [2, 1]);
    let parse = Event::Parse {
        instance: InstanceType::IngressClone,
        preserved: vec![7],
    };
    assert!(switch.engine().events.contains(&parse));
    assert_eq!(
        switch.engine().egress_runs()[0].instance,
        InstanceType::IngressClone
    );
    assert_balanced(&switch);
}

#[test]
fn an_ingress_clone_is_made_even_if_the_packet_is_dropped() {
    let mut switch = switch();
    switch.handle_frame(
        0,
        0,
        &frame(&[(at::INGRESS, ingress_op::DROP), (at::INGRESS_CLONE, 1)]),
    );
    assert_eq!(ports(&transmitted(&mut switch)), [2]);
    assert_balanced(&switch);
}

#[test]
fn an_unknown_session_loses_the_clone_only() {
    let mut switch = switch();
    let orders = [
        (at::TARGET, 1),
        (at::INGRESS_CLONE, 99),
        (at::EGRESS_CLONE, 98),
        (at::CLONES, 1),
    ];
    switch.handle_frame(0, 0, &frame(&orders));
    assert_eq!(ports(&transmitted(&mut switch)), [1]);
    assert_eq!(
        switch.counters().dropped(DropReason::UnknownMirrorSession),
        2
    );
    assert_balanced(&switch);
}

#[test]
fn a_held_clone_enters_egress_when_its_time_has_come() {
    let mut switch = switch();
    switch.handle_frame(1000, 0, &frame(&[(at::EGRESS_CLONE, 2), (at::CLONES, 1)]));
    assert_eq!(ports(&transmitted(&mut switch)), [0]);
    assert_eq!(switch.occupancy().held, 1);
    assert_eq!(switch.poll_timeout(), Some(1100));
    switch.handle_timeout(1099);
    assert!(transmitted(&mut switch).is_empty());
    switch.handle_timeout(1100);
    assert_eq!(ports(&transmitted(&mut switch)), [2]);
    let run = *switch.engine().egress_runs().last().unwrap();
    assert_eq!((run.instance, run.now), (InstanceType::EgressClone, 1100));
    assert_eq!(switch.poll_timeout(), None);
    assert_balanced(&switch);
}

/// A copy is due of which no byte was counted.
fn miscounted() -> crate::Switch<FakeEngine> {
    let mut switch = switch();
    switch.handle_frame(1000, 0, &frame(&[(at::EGRESS_CLONE, 2), (at::CLONES, 1)]));
    transmitted(&mut switch);
    switch.forget_held_bytes();
    switch.handle_timeout(1100);
    switch
}

#[test]
#[should_panic(expected = "SI013")]
fn a_held_copy_that_was_not_counted_panics() {
    miscounted();
}

#[test]
fn in_production_a_held_copy_that_was_not_counted_is_dropped() {
    stateplane_invariant::in_production(|| {
        let mut switch = miscounted();
        assert!(transmitted(&mut switch).is_empty());
        assert_eq!(switch.counters().dropped(DropReason::BrokenInvariant), 1);
        assert_eq!(switch.poll_broken().unwrap().invariant.code(), "SI013");
        assert_eq!(switch.poll_broken(), None);
        assert_balanced(&switch);
    });
}

#[test]
fn clones_of_clones_go_on_until_the_program_ends_them() {
    let mut switch = switch();
    let orders = [
        (at::EGRESS_CLONE, 2),
        (at::CLONES, 3),
        (at::EGRESS, egress_op::DROP_CLONES),
    ];
    switch.handle_frame(0, 0, &frame(&orders));
    let mut times = vec![];
    while let Some(time) = switch.poll_timeout() {
        times.push(time);
        switch.handle_timeout(time);
    }
    assert_eq!(times, [100, 200, 300]);
    assert_eq!(ports(&transmitted(&mut switch)), [0]);
    assert_eq!(switch.counters().dropped(DropReason::Egress), 3);
    assert_balanced(&switch);
}

#[test]
fn held_copies_of_one_time_keep_their_order() {
    let mut switch = switch();
    for mark in 0..50 {
        switch.handle_frame(
            0,
            0,
            &frame(&[(at::EGRESS_CLONE, 2), (at::CLONES, 1), (40, mark)]),
        );
    }
    transmitted(&mut switch);
    switch.handle_timeout(100);
    let marks: Vec<u8> = transmitted(&mut switch)
        .iter()
        .map(|sent| sent.frame[40])
        .collect();
    assert_eq!(marks, (0..50).collect::<Vec<u8>>());
}

#[test]
fn more_held_copies_than_the_queue_has_room_for_all_come_out() {
    let mut switch = limited(Limits {
        queue: 2,
        ..Limits::default()
    });
    for _ in 0..20 {
        switch.handle_frame(0, 0, &frame(&[(at::EGRESS_CLONE, 2), (at::CLONES, 1)]));
    }
    transmitted(&mut switch);
    switch.handle_timeout(100);
    assert_eq!(transmitted(&mut switch).len(), 20);
    assert_eq!(switch.counters().dropped(DropReason::QueueFull), 0);
}

#[test]
fn a_session_cuts_its_copies_and_not_the_original() {
    let mut switch = switch();
    switch.handle_frame(0, 0, &frame(&[(at::EGRESS_CLONE, 3), (at::CLONES, 1)]));
    assert_eq!(transmitted(&mut switch)[0].frame.len(), 64);
    switch.handle_timeout(50);
    let copy = transmitted(&mut switch).remove(0);
    assert_eq!((copy.port, copy.frame.len()), (3, 20));
}

#[test]
fn holding_is_bounded_in_packets_and_in_bytes() {
    let by_packets = Limits {
        held: 3,
        ..Limits::default()
    };
    let by_bytes = Limits {
        held_bytes: 64 * 3 + 63,
        ..Limits::default()
    };
    for limits in [by_packets, by_bytes] {
        let mut switch = limited(limits);
        for _ in 0..5 {
            switch.handle_frame(0, 0, &frame(&[(at::EGRESS_CLONE, 2), (at::CLONES, 1)]));
        }
        assert_eq!(switch.occupancy().held, 3);
        assert_eq!(switch.counters().dropped(DropReason::HeldFull), 2);
        transmitted(&mut switch);
        switch.handle_timeout(100);
        assert_eq!(transmitted(&mut switch).len(), 3);
        switch.handle_frame(100, 0, &frame(&[(at::EGRESS_CLONE, 2), (at::CLONES, 1)]));
        assert_eq!(
            switch.occupancy().held,
            1,
            "room that is free is used again"
        );
        assert_balanced(&switch);
    }
}

#[test]
fn recirculation_comes_back_from_its_egress_port() {
    let mut switch = switch();
    switch.handle_frame(0, 0, &frame(&[(at::TARGET, 1), (at::RECIRCULATIONS, 2)]));
    assert_eq!(ports(&transmitted(&mut switch)), [1]);
    let ingress: Vec<_> = switch
        .engine()
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Ingress { port, instance, .. } => Some((*port, *instance)),
            _ => None,
        })
        .collect();
    let again = (1, InstanceType::Recirculated);
    assert_eq!(ingress, [(0, InstanceType::Normal), again, again]);
    assert_eq!(switch.counters().recirculated, 2);
    assert_balanced(&switch);
}

#[test]
fn a_port_that_does_not_exist_can_recirculate() {
    let mut switch = switch();
    switch.handle_frame(0, 0, &frame(&[(at::TARGET, 200), (at::RECIRCULATIONS, 1)]));
    assert_eq!(switch.counters().recirculated, 1);
    assert_eq!(switch.counters().dropped(DropReason::UnknownPort), 1);
    assert_balanced(&switch);
}

#[test]
fn endless_recirculation_is_bounded_by_call_and_stamped_anew() {
    let mut switch = limited(Limits {
        work: 100,
        ..Limits::default()
    });
    switch.handle_frame(
        10,
        0,
        &frame(&[(at::TARGET, 1), (at::RECIRCULATIONS, FOREVER)]),
    );
    assert_eq!(switch.engine().events.len(), 101);
    assert_eq!(switch.poll_timeout(), Some(10), "the rest is due at once");
    switch.handle_timeout(20);
    assert_eq!(switch.engine().events.len(), 201);
    assert!(matches!(
        switch.engine().events[199],
        Event::Ingress { now: 20, .. } | Event::Egress(super::engine::EgressRun { now: 20, .. })
    ));
    switch.handle_frame(30, 0, &frame(&[(at::TARGET, 3)]));
    assert_eq!(ports(&transmitted(&mut switch)), [3], "others still pass");
    assert_balanced(&switch);
}

#[test]
fn endless_clones_without_hold_do_not_keep_others_waiting() {
    let mut switch = limited(Limits {
        work: 10,
        ..Limits::default()
    });
    let orders = [
        (at::EGRESS_CLONE, 1),
        (at::CLONES, FOREVER),
        (at::TARGET, 1),
        (at::EGRESS, egress_op::DROP_CLONES),
    ];
    for _ in 0..20 {
        switch.handle_frame(0, 0, &frame(&orders));
    }
    switch.handle_frame(0, 0, &frame(&[(at::TARGET, 3), (at::RECIRCULATIONS, 3)]));
    let mut calls = 0;
    while !transmitted(&mut switch).iter().any(|sent| sent.port == 3) {
        calls += 1;
        assert!(calls < 100, "the recirculating packet starves");
        switch.handle_timeout(0);
    }
    assert_balanced(&switch);
}

#[test]
fn recirculation_and_resubmission_are_bounded_in_number() {
    let limits = Limits {
        recirculation: 1,
        resubmission: 1,
        work: 1,
        ..Limits::default()
    };
    let mut switch = limited(limits);
    for _ in 0..10 {
        switch.handle_frame(0, 0, &frame(&[(at::RESUBMITS, 200)]));
    }
    assert!(switch.counters().dropped(DropReason::ResubmissionFull) > 0);
    assert_balanced(&switch);

    let mut switch = limited(limits);
    for _ in 0..20 {
        switch.handle_frame(0, 0, &frame(&[(at::RECIRCULATIONS, FOREVER)]));
    }
    for _ in 0..100 {
        switch.handle_timeout(0);
    }
    assert!(switch.counters().dropped(DropReason::RecirculationFull) > 0);
    assert_balanced(&switch);
}

#[test]
fn a_resubmitted_frame_keeps_its_port_and_comes_to_an_end() {
    let mut switch = switch();
    switch.handle_frame(0, 2, &frame(&[(at::TARGET, 1), (at::RESUBMITS, 3)]));
    assert_eq!(ports(&transmitted(&mut switch)), [1]);
    let again = Event::Ingress {
        port: 2,
        instance: InstanceType::Resubmitted,
        now: 0,
    };
    assert_eq!(switch.engine().events[1], again);
    assert_eq!(switch.counters().resubmitted, 3);

    switch.handle_frame(0, 2, &frame(&[(at::RESUBMITS, FOREVER)]));
    assert_eq!(switch.counters().dropped(DropReason::ResubmitLimit), 1);
    assert_eq!(switch.counters().resubmitted, 3 + 16);
    assert_balanced(&switch);
}

#[test]
fn a_full_queue_drops_at_its_tail_and_leaves_other_ports_alone() {
    let mut switch = limited(Limits {
        queue: 2,
        work: 1,
        ..Limits::default()
    });
    for port in [1, 2] {
        switch
            .set_multicast_group(7, vec![crate::Replica { port, rid: 0 }; 5])
            .unwrap();
        switch.handle_frame(
            0,
            0,
            &frame(&[(at::INGRESS, ingress_op::MULTICAST), (at::TARGET, 7)]),
        );
    }
    // One packet leaves the queue of port 1 after the first frame, one after the
    // second.
    assert_eq!(switch.counters().dropped(DropReason::QueueFull), 6);
    while switch.occupancy().queued > 0 {
        switch.handle_timeout(0);
    }
    assert_eq!(ports(&transmitted(&mut switch)), [1, 1, 2, 2]);
    let depths: Vec<_> = switch
        .engine()
        .egress_runs()
        .iter()
        .map(|run| run.depth)
        .collect();
    assert_eq!(depths, [0, 1, 0, 1]);
    assert_balanced(&switch);
}

#[test]
fn frames_that_nobody_fetches_are_bounded_for_each_port() {
    let mut switch = limited(Limits {
        transmit: 2,
        ..Limits::default()
    });
    for _ in 0..5 {
        switch.handle_frame(0, 0, &frame(&[(at::TARGET, 1)]));
    }
    switch.handle_frame(0, 0, &frame(&[(at::TARGET, 2)]));
    assert_eq!(switch.counters().dropped(DropReason::TransmitFull), 3);
    assert_eq!(ports(&transmitted(&mut switch)), [1, 1, 2]);
    switch.handle_frame(0, 0, &frame(&[(at::TARGET, 1)]));
    assert_eq!(ports(&transmitted(&mut switch)), [1]);
    assert_balanced(&switch);
}

#[test]
fn a_generator_keeps_its_rhythm_and_skips_what_was_missed() {
    let mut switch = switch_with(SwitchConfig {
        generators: vec![generator(400, 1000)],
        ..config()
    });
    assert_eq!(
        switch.poll_timeout(),
        Some(0),
        "the first call is due at once"
    );
    switch.handle_timeout(500);
    assert_eq!(transmitted(&mut switch).len(), 1);
    let first = Event::Ingress {
        port: 400,
        instance: InstanceType::Normal,
        now: 500,
    };
    assert_eq!(switch.engine().events[0], first);
    assert_eq!(switch.poll_timeout(), Some(1500));
    switch.handle_timeout(1499);
    assert!(transmitted(&mut switch).is_empty());
    switch.handle_timeout(4600);
    assert_eq!(transmitted(&mut switch).len(), 1);
    assert_eq!(switch.counters().generator_skipped, 3);
    assert_eq!(switch.poll_timeout(), Some(5500));
    assert_balanced(&switch);
}

/// A switch with a generator of `batch` frames each ms, and where their places stand.
fn with_batch(batch: u32, spread: bool) -> (Switch<FakeEngine>, usize) {
    let mut template = frame(&[(at::TARGET, 1)]);
    let index = template.len();
    template.extend([0xff; 4]);
    let batch = Generator {
        batch,
        index_at: Some(index),
        spread,
        frame: template,
        ..generator(400, 1000)
    };
    let switch = switch_with(SwitchConfig {
        generators: vec![batch],
        ..config()
    });
    (switch, index)
}

#[test]
fn a_generator_injects_batches_whose_frames_bear_their_places() {
    let (mut switch, index) = with_batch(3, false);
    for (now, due) in [(0, 1000), (1000, 2000)] {
        switch.handle_timeout(now);
        let sent = transmitted(&mut switch);
        let places: Vec<&[u8]> = sent.iter().map(|sent| &sent.frame[index..]).collect();
        assert_eq!(places, [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2]]);
        assert_eq!(switch.poll_timeout(), Some(due));
    }
    assert_eq!(switch.counters().generator_skipped, 0);
    assert_eq!(switch.counters().generated, 6);
    assert_balanced(&switch);
}

#[test]
fn a_batch_may_be_spread_over_its_period() {
    let (mut switch, index) = with_batch(4, true);
    // The third comes late, and two parts are skipped; the places go on.
    for (now, place, due) in [
        (0, 0, 250),
        (250, 1, 500),
        (1_010, 2, 1_250),
        (1_250, 3, 1_500),
        (1_500, 0, 1_750),
    ] {
        switch.handle_timeout(now);
        let sent = transmitted(&mut switch);
        let places: Vec<&[u8]> = sent.iter().map(|sent| &sent.frame[index..]).collect();
        assert_eq!(places, [[0, 0, 0, place]]);
        assert_eq!(switch.poll_timeout(), Some(due));
    }
    assert_eq!(switch.counters().generator_skipped, 2);
    assert_eq!(switch.counters().generated, 5);
    assert_balanced(&switch);
}

#[test]
fn a_frame_of_the_host_comes_by_a_port_that_no_link_faces() {
    let mut switch = switch();
    switch.handle_frame(10, 300, &frame(&[]));
    assert!(switch.engine().events.is_empty(), "no such port");
    switch.handle_made(20, 300, &frame(&[]));
    assert!(matches!(
        switch.engine().events.first(),
        Some(Event::Ingress { now: 20, .. })
    ));
    assert_eq!(switch.counters().generated, 1);
    assert_balanced(&switch);
}

#[test]
fn time_does_not_step_back_and_the_engine_sees_48_bits() {
    let mut switch = switch();
    let late = (1 << 48) + 7;
    switch.handle_frame(late, 0, &frame(&[]));
    switch.handle_frame(3, 0, &frame(&[]));
    for event in &switch.engine().events {
        if let Event::Ingress { now, .. } = event {
            assert_eq!(*now, 7);
        }
    }
}

#[test]
fn buffers_are_used_again() {
    let mut switch = switch();
    switch.handle_frame(0, 0, &frame(&[]));
    let sent = switch.poll_transmit().unwrap();
    let address = sent.frame.as_ptr();
    switch.recycle(sent.frame);
    switch.handle_frame(0, 0, &frame(&[]));
    assert_eq!(switch.poll_transmit().unwrap().frame.as_ptr(), address);
}
