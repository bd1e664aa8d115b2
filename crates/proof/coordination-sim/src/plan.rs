//! Plan of one run, drawn before it starts: operations of clients, faults and their times.

use crate::places::{Places, SWITCHES};
use crate::scenario::Scenario;
use stateplane_world::{NodePort, Random};
use std::fmt;

/// An operation that a client begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at: u64,
    pub(crate) client: usize,
    /// Decides what it asks.
    pub(crate) draw: u64,
}

/// A misfortune, or its end. Switches by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfortune {
    /// A switch dies until then, unless a group would be lost.
    Dies {
        switch: usize,
        until: u64,
    },
    Returns {
        switch: usize,
    },
    /// All switches of a group, which `draw` gives, die until then.
    GroupDies {
        draw: u64,
        until: u64,
    },
    /// An operator founds the groups anew whose switches are all dead.
    Refounds,
    /// Routing sees who lives.
    Reroutes,
    Cut {
        from: NodePort,
        to: NodePort,
        until: u64,
    },
    Stalls {
        switch: usize,
        until: u64,
    },
    ClientDies {
        client: usize,
    },
    /// A client stands still until then, and goes on as if nothing had happened.
    ClientStalls {
        client: usize,
        until: u64,
    },
    /// A client ends its watches, and goes on with them at `until`.
    WatchesPause {
        client: usize,
        until: u64,
    },
    WatchesGoOn {
        client: usize,
    },
    ControllerRestarts,
    /// The authority changes a group's chain as `draw` says.
    Changes {
        draw: u64,
    },
}

impl fmt::Display for Misfortune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Dies { switch, until } => write!(f, "switch {} dies until {until}", switch + 1),
            Self::Returns { switch } => write!(f, "switch {} returns", switch + 1),
            Self::GroupDies { draw, until } => {
                write!(f, "all switches of a group die until {until}, by {draw:x}")
            }
            Self::Refounds => f.write_str("lost groups are founded anew"),
            Self::Reroutes => f.write_str("routes change"),
            Self::Cut { from, to, until } => write!(
                f,
                "nothing passes from {:?} to {:?} until {until}",
                Places::party(from.node),
                Places::party(to.node)
            ),
            Self::Stalls { switch, until } => {
                write!(f, "switch {} stands still until {until}", switch + 1)
            }
            Self::ClientDies { client } => write!(f, "client {} dies", client + 1),
            Self::ClientStalls { client, until } => {
                write!(f, "client {} stands still until {until}", client + 1)
            }
            Self::WatchesPause { client, until } => {
                write!(f, "client {} watches nothing until {until}", client + 1)
            }
            Self::WatchesGoOn { client } => write!(f, "client {} watches again", client + 1),
            Self::ControllerRestarts => f.write_str("the controller restarts"),
            Self::Changes { draw } => write!(f, "a chain changes, by {draw:x}"),
        }
    }
}

/// Happenings that belong together, with their times.
pub(crate) type Fault = Vec<(u64, Misfortune)>;

/// Events planned for a run, in no order.
pub(crate) struct Plan {
    pub(crate) operations: Vec<Planned>,
    pub(crate) faults: Vec<Fault>,
}

/// Time in which groups are founded, before the first fault.
pub(crate) const FOUNDING: u64 = 120_000;

impl Plan {
    pub(crate) fn draw(scenario: &Scenario, places: &Places, random: &mut Random) -> Plan {
        let end = scenario.traffic;
        let mut operations = Vec::new();
        for _ in 0..scenario.operations {
            operations.push(Planned {
                at: random.between(FOUNDING / 2, end.max(FOUNDING)),
                client: random.place(scenario.clients.into()),
                draw: random.next(),
            });
        }
        // Of each client some that tell that groups serve again.
        for client in 0..scenario.clients.into() {
            for part in 0..12 {
                let at = end + scenario.settle * part / 12 + random.between(0, 10_000);
                let draw = random.next();
                operations.push(Planned { at, client, draw });
            }
        }
        let mut plan = Plan {
            operations,
            faults: Vec::new(),
        };
        plan.faults(scenario, places, random);
        plan
    }

    fn faults(&mut self, scenario: &Scenario, places: &Places, random: &mut Random) {
        let end = scenario.traffic.max(FOUNDING);
        let begin = |random: &mut Random| random.between(FOUNDING, end);
        for _ in 0..scenario.deaths {
            let mut at = begin(random);
            if scenario.recovers {
                // Time is left in which chains become whole.
                at = FOUNDING + (at - FOUNDING) / 8;
            }
            let (least, most) = scenario.outage;
            let until = at + random.between(least, most);
            let switch = random.place(SWITCHES);
            let mut death = vec![(at, Misfortune::Dies { switch, until })];
            if scenario.pairs > 0 && random.permille(scenario.pairs) {
                let switch = (switch + 1 + random.place(SWITCHES - 1)) % SWITCHES;
                death.push((at, Misfortune::Dies { switch, until }));
            }
            self.faults.push(death);
        }
        for _ in 0..scenario.refoundings {
            let (at, draw) = (begin(random), random.next());
            let (least, most) = scenario.outage;
            let until = at + random.between(least, most);
            self.faults
                .push(vec![(at, Misfortune::GroupDies { draw, until })]);
        }
        let ways = places.ways();
        for _ in 0..scenario.cuts {
            let at = begin(random);
            let until = at + random.between(1, scenario.cut);
            let (from, to) = ways[random.place(ways.len())];
            let mut cut = vec![(at, Misfortune::Cut { from, to, until })];
            if random.permille(300) {
                let (from, to) = (to, from);
                cut.push((at, Misfortune::Cut { from, to, until }));
            }
            self.faults.push(cut);
        }
        let between: Vec<_> = ways
            .iter()
            .filter(|(one, other)| one.node < SWITCHES && other.node < SWITCHES)
            .collect();
        for _ in 0..scenario.lasting_cuts {
            let at = random.between(FOUNDING, FOUNDING + 100_000);
            let (from, to) = *between[random.place(between.len())];
            let mut cut = vec![(
                at,
                Misfortune::Cut {
                    from,
                    to,
                    until: end,
                },
            )];
            if random.permille(500) {
                let (from, to) = (to, from);
                cut.push((
                    at,
                    Misfortune::Cut {
                        from,
                        to,
                        until: end,
                    },
                ));
            }
            self.faults.push(cut);
        }
        let to_controller: Vec<_> = ways
            .iter()
            .filter(|(one, other)| {
                [one, other]
                    .iter()
                    .any(|end| end.node == Places::CONTROLLER)
            })
            .collect();
        for _ in 0..scenario.controller_cuts {
            let at = begin(random);
            let until = at + random.between(1, scenario.cut);
            let (from, to) = *to_controller[random.place(to_controller.len())];
            self.faults
                .push(vec![(at, Misfortune::Cut { from, to, until })]);
        }
        for _ in 0..scenario.stalls {
            let at = begin(random);
            let until = at + random.between(1, scenario.stall);
            let switch = random.place(SWITCHES);
            self.faults
                .push(vec![(at, Misfortune::Stalls { switch, until })]);
        }
        for _ in 0..scenario.client_deaths {
            let client = random.place(scenario.clients.into());
            self.faults
                .push(vec![(begin(random), Misfortune::ClientDies { client })]);
        }
        for _ in 0..scenario.controller_restarts {
            self.faults
                .push(vec![(begin(random), Misfortune::ControllerRestarts)]);
        }
        for _ in 0..scenario.freezes {
            let client = random.place(scenario.clients.into());
            let at = begin(random);
            let until = at + random.between(1, scenario.freeze);
            self.faults
                .push(vec![(at, Misfortune::ClientStalls { client, until })]);
        }
        for _ in 0..scenario.pauses {
            let client = random.place(scenario.watchers.max(1).into());
            let at = begin(random);
            let until = at + random.between(1, scenario.pause);
            self.faults
                .push(vec![(at, Misfortune::WatchesPause { client, until })]);
        }
        for _ in 0..scenario.changes {
            let draw = random.next();
            self.faults
                .push(vec![(begin(random), Misfortune::Changes { draw })]);
        }
    }
}
