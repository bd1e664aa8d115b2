//! Checkers judge the NAT's translations, as its hosts report them.

use stateplane_apps::{Asked, INSIDE_PORT, OUTSIDE_PORT, Random, Segment, app};
use stateplane_history::replication::{
    Direction, Event, EventKind, Flow, History, Released, StateEvent, Violation, judge,
};
use std::net::SocketAddrV4;

const FLOWS: usize = 4;

/// The frame in which a NAT lets `asked` out, with `public` in front of each connection.
fn translated(asked: &Asked, public: impl Fn(SocketAddrV4) -> u16) -> (u16, Vec<u8>) {
    let mut segment = Segment::read_datagram(&asked.datagram).expect("a datagram");
    let port = match asked.direction {
        Direction::Outbound => {
            let port = public(segment.source);
            segment.source = SocketAddrV4::new([203, 0, 113, 1].into(), port);
            OUTSIDE_PORT
        }
        Direction::Inbound => {
            let number = segment.destination.port() - 2000;
            let address = [10, 0, 0, (number % 7) as u8 + 1].into();
            segment.destination = SocketAddrV4::new(address, 4000 + number);
            INSIDE_PORT
        }
    };
    let frame = [&[2; 12][..], &[8, 0], &segment.to_datagram()].concat();
    (port, frame)
}

/// Objections if the public port of the packet of a number is `port` of its own.
fn judged(port: impl Fn(u64, u16) -> u16) -> Vec<Violation> {
    let mut hosts = app("nat").expect("an application").hosts();
    let mut random = Random::new(3);
    let mut history = History::default();
    let mut inbound = 0;
    let mut owed = [false; FLOWS];
    for number in 0..60 {
        let flow = number as usize % FLOWS;
        let reply = owed[flow].then(|| hosts.reply(flow, number, &mut random));
        let asked = reply
            .flatten()
            .unwrap_or_else(|| hosts.send(flow, number, &mut random));
        inbound += u64::from(asked.direction == Direction::Inbound);
        let object = Flow::new(&format!("{:?}", asked.key));
        let public = |inside: SocketAddrV4| port(number, inside.port() - 2000);
        let (left_by, frame) = translated(&asked, public);
        hosts.observe(&asked, left_by, &frame).expect("it is taken");
        let of = hosts.translated(&asked, &frame).expect("a translation");
        owed[flow] = asked.direction == Direction::Outbound
            && hosts.arrived(flow, &asked, &frame, &mut random);
        let kinds = [
            EventKind::Call {
                node: 0,
                object: object.clone(),
                operation: number,
                request: None,
            },
            EventKind::Of(StateEvent::Translated {
                switch: 0,
                direction: of.direction,
                inside: of.inside,
                public: of.public,
                remote: of.remote,
            }),
            EventKind::Return {
                node: 0,
                object,
                operation: number,
                response: Released::default(),
            },
        ];
        let events = kinds.map(|kind| Event { at: number, kind });
        history.events.extend(events);
    }
    assert!(inbound > 10, "{inbound} answers");
    judge(&history)
}

#[test]
fn a_mapping_that_stays_is_accepted() {
    assert_eq!(judged(|_, port| port), []);
}

#[test]
fn a_wrong_port_is_objected_to() {
    let found = judged(|number, port| port + u16::from(number > 40) * FLOWS as u16);
    let found: Vec<_> = found.iter().map(|of| of.checker).collect();
    assert!(
        !found.is_empty() && found.iter().all(|of| *of == "nat"),
        "{found:?}"
    );
}
