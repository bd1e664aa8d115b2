use super::*;
use crate::replication::application::Machine;
use crate::replication::event::{Endpoint, Flow, Occupant, Protocol, Replication};
use proptest::prelude::*;

/// Each packet gets a number.
struct Tickets;

const TICKETS: Application = Application::new("tickets", &Tickets);

impl Machine for Tickets {
    fn steps(&self, state: u128, _: u64) -> Vec<(Option<u64>, u128)> {
        vec![(Some(state as u64 + 1), state + 1)]
    }
}

fn code(text: &str) -> String {
    Document::read(text, &[TICKETS]).unwrap_err().to_string()
}

#[test]
fn errors_have_lines_and_codes() {
    let cases = [
        ("later input switch=1", "line 1: HI001"),
        ("\n5 inputs switch=1", "line 2: HI002"),
        ("5", "line 1: HI002"),
        ("5 died switch", "line 1: HI003"),
        ("# x\n\n5 died", "line 3: HI004: the field `switch`"),
        ("5 died switch=1 switch=2", "line 1: HI005"),
        ("5 died switch=1 flow=a", "line 1: HI005: the field `flow`"),
        ("5 died switch=-1", "line 1: HI006: `-1`"),
        ("5 freed replica=0 public=1.2.3.4:5", "line 1: HI006"),
        (
            "5 output switch=1 flow=a packet=1 sequence=3",
            "HI004: the field `held`",
        ),
        (
            "5 output switch=1 flow=a packet=1 sequence=3 held=1,,2",
            "HI006",
        ),
        ("5 died switch=1\n4 died switch=1", "line 2: HI007"),
        ("expect success", "line 1: HI008"),
        ("expect accepted\nexpect accepted", "line 2: HI008"),
        (
            "pool address=1.2.3.4 protocol=tcp first=9 last=8",
            "line 1: HI009",
        ),
        ("application telephone", "line 1: HI010"),
        ("application tickets\napplication tickets", "line 2: HI010"),
    ];
    for (text, start) in cases {
        let message = code(text);
        assert!(message.contains(start), "{text:?} gives {message:?}");
    }
}

fn flow() -> impl Strategy<Value = Flow> {
    "[a-z0-9:>./-]{1,12}".prop_map(|name| Flow::new(&name))
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (any::<u32>(), any::<u16>(), any::<bool>()).prop_map(|(address, port, tcp)| Endpoint {
        address: Ipv4Addr::from(address),
        port,
        protocol: if tcp { Protocol::Tcp } else { Protocol::Udp },
    })
}

fn remote() -> impl Strategy<Value = Option<Endpoint>> {
    proptest::option::of(endpoint())
}

fn occupant() -> impl Strategy<Value = Occupant> {
    (any::<u32>(), any::<u32>()).prop_map(|(switch, incarnation)| Occupant {
        switch,
        incarnation,
    })
}

fn durability() -> impl Strategy<Value = Durability> {
    let held = proptest::collection::vec(any::<Option<u32>>(), 1..4);
    (any::<u32>(), held).prop_map(|(sequence, held)| Durability { sequence, held })
}

fn kind() -> impl Strategy<Value = EventKind> {
    let output = (
        any::<u32>(),
        flow(),
        any::<u64>(),
        any::<Option<u64>>(),
        proptest::option::of(durability()),
    );
    prop_oneof![
        1 => (any::<u32>(), flow(), any::<u64>(), any::<Option<u64>>()).prop_map(
            |(node, object, operation, request)| EventKind::Call {
                node,
                object,
                operation,
                request
            }
        ),
        1 => output.prop_map(|(node, object, operation, value, durability)| EventKind::Return {
            node,
            object,
            operation,
            response: Released { value, durability },
        }),
        1 => any::<u32>().prop_map(|node| EventKind::Died { node }),
        10 => state_event().prop_map(EventKind::Of),
    ]
}

fn state_event() -> impl Strategy<Value = StateEvent> {
    prop_oneof![
        (occupant(), flow(), any::<u32>(), any::<bool>()).prop_map(|(to, flow, epoch, shared)| {
            StateEvent::Granted {
                to,
                flow,
                epoch,
                shared,
            }
        }),
        (
            occupant(),
            flow(),
            any::<u32>(),
            any::<bool>(),
            any::<u64>()
        )
            .prop_map(|(by, flow, epoch, shared, until)| StateEvent::Accepted {
                by,
                flow,
                epoch,
                shared,
                until
            }),
        (occupant(), flow(), any::<u32>()).prop_map(|(by, flow, epoch)| StateEvent::Used {
            by,
            flow,
            epoch
        }),
        (occupant(), flow()).prop_map(|(by, flow)| StateEvent::Ended { by, flow }),
        (
            any::<u32>(),
            any::<bool>(),
            endpoint(),
            endpoint(),
            remote()
        )
            .prop_map(
                |(switch, out, inside, public, remote)| StateEvent::Translated {
                    switch,
                    direction: if out {
                        Direction::Outbound
                    } else {
                        Direction::Inbound
                    },
                    inside,
                    public,
                    remote
                }
            ),
        (any::<u8>(), endpoint(), endpoint(), remote()).prop_map(
            |(replica, inside, public, remote)| StateEvent::Taken {
                replica,
                inside,
                public,
                remote
            }
        ),
        (any::<u8>(), endpoint(), remote()).prop_map(|(replica, public, remote)| {
            StateEvent::Freed {
                replica,
                public,
                remote,
            }
        }),
        (any::<u8>(), endpoint(), endpoint(), remote()).prop_map(
            |(replica, inside, public, remote)| StateEvent::Mapped {
                replica,
                inside,
                public,
                remote
            }
        ),
        (any::<u8>(), endpoint(), any::<u64>()).prop_map(|(replica, of, free)| {
            StateEvent::Remaining {
                replica,
                address: of.address,
                protocol: of.protocol,
                free,
            }
        }),
        (any::<u32>(), flow(), any::<u32>(), any::<u32>()).prop_map(
            |(switch, flow, sequence, acknowledged)| StateEvent::Kept {
                switch,
                flow,
                sequence,
                acknowledged
            }
        ),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        kinds in proptest::collection::vec(kind(), 0..20),
        pool in proptest::option::of((endpoint(), any::<u16>())),
        application in proptest::option::of(Just(TICKETS)),
        rejected in proptest::option::of(proptest::sample::select(checkers::all().iter().map(|of| of.name()).collect::<Vec<_>>())),
    ) {
        let events = kinds.into_iter().zip(3..).map(|(kind, at)| Event { at, kind });
        let document = Document {
            expectation: Some(match rejected {
                None => Expectation::Accepted,
                Some(by) => Expectation::Rejected { by, because: "so it is: yes".into() },
            }),
            history: History {
                system: Replication { application, pools: pool.into_iter().map(|(of, last)| PoolRange {
                    address: of.address,
                    protocol: of.protocol,
                    first: of.port.min(last),
                    last: of.port.max(last),
                }).collect() },
                events: events.collect(),
            },
        };
        prop_assert_eq!(Document::read(&document.to_string(), &[TICKETS]), Ok(document));
    }

    #[test]
    fn any_text_is_survived_by_parser_and_checkers(text in "(([0-9]{1,2} )?[a-z]{0,9}( [a-z]{1,6}=[a-z0-9:,./-]{0,9}){0,4}\n){0,6}|.{0,80}") {
        if let Ok(document) = Document::read(&text, &[TICKETS]) {
            checkers::judge(&document.history);
        }
    }

    #[test]
    fn any_events_are_survived_by_the_checkers(kinds in proptest::collection::vec(kind(), 0..40)) {
        let events = kinds.into_iter().zip(0..).map(|(kind, at)| Event { at, kind });
        let history = History { events: events.collect(), ..History::default() };
        for violation in checkers::judge(&history) {
            prop_assert!(violation.event < history.events.len());
            violation.relevant(&history, 5);
        }
    }
}
