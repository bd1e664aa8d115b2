use super::*;
use crate::{Chain, Hold, Probe, Replication, Server};
use stateplane_interp::Interp;
use stateplane_runtime::Engine as _;
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_wire::term::{Changes, Heartbeat, Message, Reply, Row, row_flag};
use stateplane_wire::{ipv4, udp};

fn term(since: u64, deadline: u64) -> Term {
    Term { since, deadline }
}

/// Of what a term permits an element permits nearly all, and nothing else.
#[test]
fn an_element_permits_no_more_than_the_term() {
    let hour = 3_600_000_000;
    for since in [
        0,
        1,
        255,
        256,
        1_000_000,
        77 * hour + 12_345,
        (1 << 48) - 6 * hour,
    ] {
        for length in [
            1,
            300,
            1023,
            1024,
            100_000,
            99_804,
            hour,
            4 * hour,
            5 * hour,
        ] {
            let of = term(since, since + length);
            let read = term_of(element(of));
            if length >= 2048 {
                assert!(read.deadline <= of.deadline, "{of:?} {read:?}");
                assert!(of.deadline - read.deadline < 1024, "{of:?} {read:?}");
                assert!(read.since >= of.since, "{of:?} {read:?}");
                let held = length < 4 * hour;
                assert!(!held || read.since - of.since < 256, "{of:?} {read:?}");
                assert!(read.deadline - read.since <= (1 << 26) * 256);
            }
            for asked in [since, since + 1, since + length / 2] {
                for now in [asked, since + length - 1, since + length] {
                    assert!(!read.permits(now, asked) || of.permits(now, asked));
                }
            }
        }
    }
    assert_eq!(element(Term::default()), 0);
    assert_eq!(element(term(2_000_000, 1_000_000)), 0);
}

#[test]
fn an_element_is_as_the_library_says() {
    // One in the packet tests: from 0 to 2^32 µs.
    assert_eq!(element(term(0, 1 << 32)), 0x0001_0000_0100_0000);
    assert_eq!(term_of(0x0001_0000_0100_0000), term(0, 1 << 32));
    let ports = stateplane_library::text("lib/replication/ports.p4").expect("the library's file");
    let declared = format!("HEARTBEAT_PORT = {HEARTBEAT_PORT};");
    assert!(ports.contains(&declared), "{declared}");
    let terms = stateplane_library::text("lib/replication/term.p4").expect("the library's file");
    for register in [TERM, BEAT] {
        assert!(terms.contains(&format!(" {register};")), "{register}");
    }
}

/// A switch around the counter, whose shards have one head.
fn switch() -> Switch<Interp> {
    let program = stateplane_compile::shipped("apps/counter/counter.p4").program();
    let engine = Interp::new(program.expect("it compiles"), Default::default());
    let config = SwitchConfig {
        ports: vec![0, 1, 2],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine.expect("it loads"), config).expect("a switch");
    assert!(Heartbeats::of(0, switch.engine().state(), 0).is_none());
    replication()
        .apply(&mut switch, 99, false)
        .expect("it is set up");
    switch
}

fn replication() -> Replication {
    let chain = Chain {
        head: Server {
            address: HEAD,
            mac: [2, 0, 0, 0, 0xc0, 0],
        },
        epoch: 3,
        mtu: 1700,
    };
    Replication {
        switch: 7,
        address: Ipv4Addr::new(10, 10, 0, 1),
        mac: [2, 0, 0, 0, 0xa1, 2],
        port: 2,
        chains: vec![chain; 4],
        hold: Hold::default(),
        probe: Probe::default(),
    }
}

const HEAD: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 11);

/// What the head answers if it covers shard 3.
fn reply(heartbeat: &Heartbeat) -> Vec<u8> {
    let reply = Reply {
        switch_id: heartbeat.switch_id,
        incarnation: heartbeat.incarnation,
        number: heartbeat.number,
        send_time: heartbeat.send_time,
        promise: 100_000,
        withheld: Vec::new(),
        changes: Changes {
            stream: 5,
            after: 0,
            version: 1,
            rows: vec![Row {
                shard: 3,
                epoch: 3,
                flags: row_flag::HOLDS,
            }],
        },
    };
    reply.to_vec().expect("it fits")
}

#[test]
fn heartbeats_pass_the_program_and_terms_come_to_its_register() {
    let mut switch = switch();
    let mut heartbeats = Heartbeats::of(1_000, switch.engine().state(), 0).expect("a head");
    let frame = heartbeats.poll_frame(1_000).expect("the first");
    assert_eq!(heartbeats.poll_frame(1_000), None, "there is one head");
    switch.handle_made(1_000, HEARTBEAT_PORT, &frame);
    let sent = switch.poll_transmit().expect("it leaves");
    assert_eq!(sent.port, 2);
    let packet = ethernet::Packet::new_checked(&sent.frame[..]).expect("a frame");
    let datagram = ipv4::Packet::new_checked(packet.payload()).expect("a packet");
    assert!(datagram.verify_checksum());
    assert_eq!(datagram.destination(), HEAD);
    let segment = udp::Packet::new_checked(datagram.payload()).expect("a datagram");
    let Ok(Message::Heartbeat(heartbeat)) = Message::parse(segment.payload()) else {
        panic!("no heartbeat");
    };
    assert_eq!((heartbeat.switch_id, heartbeat.incarnation), (7, 99));

    assert!(heartbeats.handle_reply(1_500, HEAD, &reply(&heartbeat)));
    let write = |heartbeats: &mut Heartbeats, switch: &mut Switch<Interp>| {
        while let Some(write) = heartbeats.poll_write() {
            write.apply(switch.engine_mut().state_mut());
        }
        let state = switch.engine().state();
        let word = |name: &str, index| state.register(name).expect("it").word(index);
        let terms = [0, 3].map(|shard| term_of(word(TERM, shard).expect("a shard") as u64));
        (terms, word(BEAT, 0))
    };
    let ([other, held], beat) = write(&mut heartbeats, &mut switch);
    assert_eq!(other, Term::default());
    assert!((1_500..1_756).contains(&held.since), "{held:?}");
    assert!(held.deadline <= heartbeats.term(3).deadline, "{held:?}");
    assert!(held.permits(90_000, 1_800));
    assert_eq!(beat, Some(1_500), "the probed shard has the same head");

    // What was granted before another program came counts no more.
    end_terms(switch.engine_mut().state_mut()).expect("it is replicated");
    let ([_, ended], _) = write(&mut heartbeats, &mut switch);
    assert_eq!(ended, Term::default());
    heartbeats.program_changed(2_000);
    let ([_, anew], _) = write(&mut heartbeats, &mut switch);
    assert!(!anew.permits(90_000, 1_900) && anew.permits(90_000, 2_300));
}

#[test]
fn a_switch_that_the_store_reaches_in_another_way_begins_anew() {
    let mut switch = switch();
    let of = |switch: &Switch<Interp>| {
        Heartbeats::of(1_000, switch.engine().state(), 0).expect("a head")
    };
    let known = of(&switch);
    assert!(known.is_same_switch(&of(&switch)));
    let mut by_another_port = of(&switch);
    by_another_port.port = 1;
    assert!(!known.is_same_switch(&by_another_port));
    let moved = Replication {
        address: Ipv4Addr::new(10, 10, 0, 2),
        ..replication()
    };
    let state = switch.engine_mut().state_mut();
    moved.identify(state, 99).expect("it is replicated");
    assert!(!known.is_same_switch(&of(&switch)));
}

#[test]
fn terms_that_are_held_keep_ports_up() {
    let mut switch = switch();
    let state = switch.engine_mut().state_mut();
    hold_terms(state, 0);
    let word = |name: &str| state.register(name).expect("it").word(0).expect("a word") as u64;
    assert!(term_of(word(TERM)).permits(7_000_000_000, 1));
    assert_eq!(word(BEAT), HELD);
}
