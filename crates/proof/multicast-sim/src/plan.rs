//! Plan of one run, drawn before it starts: messages of senders, faults and their times.

use crate::places::{Places, SWITCHES};
use crate::scenario::Scenario;
use stateplane_world::Random;
use std::fmt;

/// A message that a sender is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: u64,
    pub(crate) sender: usize,
    /// Map of the groups that it addresses.
    pub(crate) to: u32,
    /// Bytes of its payload.
    pub(crate) length: u16,
    /// Gives the operation, if there is a store.
    pub(crate) draw: u64,
}

/// A misfortune. Nodes are named by number, switches, senders and receivers by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfortune {
    Deposes {
        draw: u64,
    },
    /// A leader that `draw` gives is cut off from the authority and some others until then, and
    /// deposed.
    HidesAndDeposes {
        draw: u64,
        until: u64,
    },
    Exchanges {
        draw: u64,
    },
    /// The switch, or a leader that `draw` gives, dies until then, if majorities remain.
    Dies {
        draw: u64,
        leader: bool,
        until: u64,
    },
    Returns {
        switch: usize,
    },
    Cut {
        from: usize,
        to: usize,
        until: u64,
    },
    Stalls {
        switch: usize,
        until: u64,
    },
    SenderDies {
        sender: usize,
    },
    ReceiverDies {
        receiver: usize,
    },
    Evicts {
        draw: u64,
    },
    Enlists {
        receiver: usize,
    },
    /// A receiver's program fetches a message each `slow` µs; 0: all at once.
    Fetches {
        receiver: usize,
        slow: u64,
    },
    AuthorityRestarts,
}

impl fmt::Display for Misfortune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Deposes { draw } => write!(f, "a leader is deposed, by {draw:x}"),
            Self::HidesAndDeposes { draw, until } => {
                write!(
                    f,
                    "a leader is cut off until {until} and deposed, by {draw:x}"
                )
            }
            Self::Exchanges { draw } => write!(f, "a member is exchanged, by {draw:x}"),
            Self::Dies {
                draw,
                leader,
                until,
            } => {
                let who = if leader { "leader" } else { "switch" };
                write!(f, "a {who} dies until {until}, by {draw:x}")
            }
            Self::Returns { switch } => write!(f, "switch {} returns", switch + 1),
            Self::Cut { from, to, until } => {
                write!(
                    f,
                    "nothing passes from node {from} to node {to} until {until}"
                )
            }
            Self::Stalls { switch, until } => {
                write!(f, "switch {} stands still until {until}", switch + 1)
            }
            Self::SenderDies { sender } => write!(f, "sender {sender} dies"),
            Self::ReceiverDies { receiver } => write!(f, "receiver {receiver} dies"),
            Self::Evicts { draw } => write!(f, "a receiver is taken off its list, by {draw:x}"),
            Self::Enlists { receiver } => write!(f, "receiver {receiver} joins"),
            Self::Fetches { receiver, slow } => {
                write!(f, "receiver {receiver} fetches a message each {slow} µs")
            }
            Self::AuthorityRestarts => f.write_str("the authority restarts"),
        }
    }
}

/// Happenings that belong together, with their times.
pub(crate) type Fault = Vec<(u64, Misfortune)>;

/// Events planned for a run, in no order.
pub(crate) struct Plan {
    pub(crate) messages: Vec<Planned>,
    pub(crate) faults: Vec<Fault>,
}

/// Time in which groups begin, before the first fault.
const FOUNDING: u64 = 12_000;

impl Plan {
    pub(crate) fn draw(scenario: &Scenario, places: &Places, random: &mut Random) -> Plan {
        let groups = u32::from(scenario.groups);
        let end = scenario.traffic.max(FOUNDING + 1);
        let mut messages = Vec::new();
        for _ in 0..scenario.messages {
            let mut to = 1 << random.place(groups as usize);
            if random.permille(scenario.several) {
                to |= random.between(1, (1 << groups) - 1) as u32;
            }
            messages.push(Planned {
                at: random.between(FOUNDING / 2, end),
                sender: random.place(places.senders),
                to,
                length: random.between(0, scenario.longest.into()) as u16,
                draw: match scenario.keys {
                    0 => 0,
                    _ => random.next(),
                },
            });
        }
        let mut plan = Plan {
            messages,
            faults: Vec::new(),
        };
        plan.faults(scenario, places, random);
        plan
    }

    /// `count` faults, each at a time of its own.
    fn add(
        &mut self,
        count: u64,
        end: u64,
        random: &mut Random,
        mut fault: impl FnMut(&mut Random, u64) -> Fault,
    ) {
        for _ in 0..count {
            let at = random.between(FOUNDING, end);
            let fault = fault(random, at);
            self.faults.push(fault);
        }
    }

    fn faults(&mut self, scenario: &Scenario, places: &Places, random: &mut Random) {
        let end = scenario.traffic.max(FOUNDING + 1);
        let nodes = SWITCHES + 1 + places.receivers + places.senders;
        self.add(scenario.depositions, end, random, |random, at| {
            vec![(
                at,
                Misfortune::Deposes {
                    draw: random.next(),
                },
            )]
        });
        self.add(scenario.hidden_depositions, end, random, |random, at| {
            let until = at + random.between(1, scenario.cut);
            let draw = random.next();
            vec![(at, Misfortune::HidesAndDeposes { draw, until })]
        });
        self.add(scenario.exchanges, end, random, |random, at| {
            vec![(
                at,
                Misfortune::Exchanges {
                    draw: random.next(),
                },
            )]
        });
        self.add(scenario.deaths, end, random, |random, at| {
            let until = at + random.between(scenario.outage.0, scenario.outage.1);
            let leader = random.permille(scenario.leaders_die);
            let draw = random.next();
            vec![(
                at,
                Misfortune::Dies {
                    draw,
                    leader,
                    until,
                },
            )]
        });
        self.add(scenario.cuts, end, random, |random, at| {
            let until = at + random.between(1, scenario.cut);
            let from = random.place(SWITCHES);
            let to = random.place(nodes);
            let (from, to) = if random.permille(500) {
                (from, to)
            } else {
                (to, from)
            };
            vec![(at, Misfortune::Cut { from, to, until })]
        });
        self.add(scenario.stalls, end, random, |random, at| {
            let until = at + random.between(1, scenario.stall);
            let switch = random.place(SWITCHES);
            vec![(at, Misfortune::Stalls { switch, until })]
        });
        self.add(scenario.sender_deaths, end, random, |random, at| {
            let sender = random.place(places.senders);
            vec![(at, Misfortune::SenderDies { sender })]
        });
        self.add(scenario.receiver_deaths, end, random, |random, at| {
            let receiver = random.place(places.receivers);
            vec![(at, Misfortune::ReceiverDies { receiver })]
        });
        self.add(scenario.evictions, end, random, |random, at| {
            vec![(
                at,
                Misfortune::Evicts {
                    draw: random.next(),
                },
            )]
        });
        self.add(scenario.joins, end, random, |random, at| {
            let receiver = random.place(places.receivers);
            vec![(at, Misfortune::Enlists { receiver })]
        });
        self.add(scenario.slow, end, random, |random, at| {
            let receiver = random.place(places.receivers);
            let slow = random.between(1, scenario.slow_us);
            let until = at + 4 * random.between(1, scenario.slow_us);
            let fetches = |slow| Misfortune::Fetches { receiver, slow };
            vec![(at, fetches(slow)), (until, fetches(0))]
        });
        self.add(scenario.restarts, end, random, |_, at| {
            vec![(at, Misfortune::AuthorityRestarts)]
        });
    }
}
