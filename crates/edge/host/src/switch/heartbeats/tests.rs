use super::super::placing::Placing;
use super::super::workers::{Controlled, Workers};
use super::*;
use stateplane_interp::Interp;
use stateplane_setup::{Chain, Hold, Replication, Server, TERM, Term, term_of};
use stateplane_switch::SwitchConfig;
use stateplane_wire::term::{Changes, Heartbeat, Message, Reply, Row, row_flag};
use std::time::{Duration, Instant};

const HEAD: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 11);
const SHARD: u16 = 3;
/// Of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

fn switch() -> Switch<Interp> {
    let program = stateplane_compile::shipped("apps/counter/counter.p4").program();
    let engine = Interp::new(program.expect("it compiles"), Default::default());
    let config = SwitchConfig {
        ports: vec![0, 1, 2],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine.expect("it loads"), config).expect("a switch");
    let chain = Chain {
        head: Server {
            address: HEAD,
            mac: [2, 0, 0, 0, 0xc0, 0],
        },
        epoch: 3,
        mtu: 1700,
    };
    let replication = Replication {
        switch: 7,
        address: Ipv4Addr::new(10, 10, 0, 1),
        mac: [2, 0, 0, 0, 0xa1, 2],
        port: 2,
        chains: vec![chain; 4],
        hold: Hold::default(),
        probe: Probe::default(),
    };
    replication
        .apply(&mut switch, 99, false)
        .expect("it is set up");
    switch
}

/// What the head answers to a heartbeat that left the switch in `frame`.
fn answer(frame: &[u8]) -> Vec<u8> {
    let Ok(Message::Heartbeat(heartbeat)) = Message::parse(&frame[HEADERS..]) else {
        panic!("no heartbeat");
    };
    let Heartbeat {
        switch_id,
        incarnation,
        number,
        send_time,
        ..
    } = heartbeat;
    let reply = Reply {
        switch_id,
        incarnation,
        number,
        send_time,
        promise: 10_000_000,
        withheld: Vec::new(),
        changes: Changes {
            stream: 5,
            after: 0,
            version: 1,
            rows: vec![Row {
                shard: SHARD,
                epoch: 3,
                flags: row_flag::HOLDS,
            }],
        },
    };
    reply.to_vec().expect("it fits")
}

/// The term that the program has.
fn term(switch: &mut Forwarding<Interp>) -> Term {
    let word = switch.on_first(|switch| {
        let register = switch.engine().state().register(TERM).expect("it");
        register.word(SHARD.into())
    });
    term_of(word.flatten().expect("a shard") as u64)
}

#[test]
fn terms_follow_the_answers_and_end_with_the_program() {
    let mut forwarding = Forwarding::Alone(Box::new(switch()));
    let mut beats = Beats::new();
    assert!(beats.look(&mut forwarding), "there are heads");
    assert!(!beats.look(&mut forwarding), "and nothing changed");
    assert_eq!(beats.filter().map(|filter| filter.port), Some(2));
    assert!(beats.serve(&mut forwarding).is_some());
    let sent = forwarding.poll_transmit().expect("a heartbeat");
    assert_eq!(sent.port, 2);
    assert_eq!(term(&mut forwarding), Term::default());

    let answer = answer(&sent.frame);
    beats.hear(boot_time_us(), HEAD, &answer);
    beats.serve(&mut forwarding);
    let now = boot_time_us();
    let held = term(&mut forwarding);
    assert!(held.permits(now + 1_000, now + 1_000), "{held:?} at {now}");
    let report = beats.report(now).expect("it is replicated");
    assert_eq!((report.held, report.lapses), (1, 0));
    assert_eq!(report.heads[0].address, HEAD);

    // What was granted before the program changed counts no more, whoever comes first.
    if let Some(switch) = forwarding.alone() {
        end(switch);
    }
    assert_eq!(term(&mut forwarding), Term::default());
    beats.program_changed();
    beats.serve(&mut forwarding);
    let anew = term(&mut forwarding);
    assert!(!anew.permits(now + 1_000, now), "{anew:?}");
    let later = boot_time_us() + 1_000;
    assert!(anew.permits(later, later), "{anew:?}");
}

#[test]
fn no_heartbeat_is_sent_before_all_workers_have_what_was_written() {
    let mut first = switch();
    let second = first.fellow(1);
    let controlled = Controlled::default();
    let workers = Workers::start(first, vec![second], Placing::default(), controlled);
    let mut forwarding = Forwarding::Workers(Box::new(workers.expect("threads")));
    let mut beats = Beats::new();
    assert!(beats.look(&mut forwarding));
    let heartbeats = beats.heartbeats.as_mut().expect("they were found");
    heartbeats.program_changed(boot_time_us());
    // Nothing is sent yet: the workers have something to take.
    let mut due = beats.serve(&mut forwarding);
    let begun = Instant::now();
    while !beats.passing.is_over() {
        assert!(due.is_some_and(|due| due <= boot_time_us() + PASSING));
        assert!(begun.elapsed() < Duration::from_secs(10), "they take it");
        due = beats.serve(&mut forwarding);
    }
    // From here on heartbeats are due, and after them the time of the next.
    let due = beats.serve(&mut forwarding).expect("there is a head");
    assert!(due > boot_time_us() + PASSING);
}
