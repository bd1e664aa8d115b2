//! List of the scenarios.

use serde::Serialize;
use stateplane_apps::heavy_hitter::CLASS;

/// The annotation in `lab/apps/count-min/count_min.p4` has it.
const PROTECTED_CLASS: u8 = 71;

/// A side of the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Side of the host `in1`.
    Inside,
    /// Side of the host `out1`.
    Outside,
}

impl Side {
    /// The node with a host's TCP on this side.
    pub const fn node(self) -> &'static str {
        match self {
            Self::Inside => "in1",
            Self::Outside => "out1",
        }
    }

    /// The other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Inside => Self::Outside,
            Self::Outside => Self::Inside,
        }
    }
}

/// Real TCP connections of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sessions {
    /// Side that opens the connections; servers are on the other side.
    pub from: Side,
    /// The address and port to which they are opened.
    pub to: ([u8; 4], u16),
    /// Ports at which the servers listen.
    pub ports: &'static [u16],
}

/// Sketches that switches keep in bounded-inconsistency mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sketches {
    /// First byte of their keys in the store.
    pub class: u8,
    /// Elements of a row.
    pub slots: usize,
    /// Value of the variant that says how many packets are heavy.
    pub limit: &'static str,
    /// Value of the variant that says what ε is, in µs.
    pub bound: &'static str,
}

/// An application under traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scenario {
    /// Its name, and of its variant in `lab/apps.toml`.
    pub name: &'static str,
    /// Description of the traffic, for `lab list`.
    pub about: &'static str,
    /// The application whose hosts speak, and whose checker judges the answers.
    pub hosts: Option<&'static str>,
    /// TCP connections, where the application lets them through.
    pub sessions: Option<Sessions>,
    /// Sketches that are read from the store in the end.
    pub sketches: Option<Sketches>,
}

const TO_OUT1: Sessions = Sessions {
    from: Side::Inside,
    to: ([198, 51, 101, 2], 7000),
    ports: &[7000],
};

/// All scenarios.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "count-min",
        about: "the traffic of heavy-hitter, through what `protect` makes of a plain program",
        hosts: Some("heavy-hitter"),
        sessions: None,
        sketches: Some(Sketches {
            class: PROTECTED_CLASS,
            slots: 64,
            limit: "limit",
            bound: "bound_us",
        }),
    },
    Scenario {
        name: "counter",
        about: "packets that carry their number away, and TCP whose every segment writes",
        hosts: Some("counter"),
        sessions: Some(TO_OUT1),
        sketches: None,
    },
    Scenario {
        name: "firewall",
        about: "connections from inside with strays from outside, and TCP",
        hosts: Some("firewall"),
        sessions: Some(TO_OUT1),
        sketches: None,
    },
    Scenario {
        name: "heavy-hitter",
        about: "flows of two tenants, of which some are heavy, counted in sketches",
        hosts: Some("heavy-hitter"),
        sessions: None,
        sketches: Some(Sketches {
            class: CLASS,
            slots: 64,
            limit: "limit",
            bound: "bound_us",
        }),
    },
    Scenario {
        name: "key-value",
        about: "reads, updates and deletions from both sides",
        hosts: Some("key-value"),
        sessions: None,
        sketches: None,
    },
    Scenario {
        name: "load-balancer",
        about: "connections to a service of eight servers, and TCP to one of four",
        hosts: Some("load-balancer"),
        sessions: Some(Sessions {
            from: Side::Outside,
            to: ([192, 0, 2, 4], 7000),
            ports: &[7001, 7002, 7003, 7004],
        }),
        sketches: None,
    },
    Scenario {
        name: "nat",
        about: "UDP and TCP from inside behind one public address, and answers from outside",
        hosts: Some("nat"),
        sessions: Some(TO_OUT1),
        sketches: None,
    },
    Scenario {
        name: "object-routing",
        about: "reads and writes of objects, and what servers say they hold",
        hosts: Some("object-routing"),
        sessions: None,
        sketches: None,
    },
    Scenario {
        name: "sequencer",
        about: "packets to groups, from several senders each",
        hosts: Some("sequencer"),
        sessions: None,
        sketches: None,
    },
    Scenario {
        name: "serving-gateway",
        about: "sessions signalled, moved and deleted under GTP-U in both directions",
        hosts: Some("serving-gateway"),
        sessions: None,
        sketches: None,
    },
    Scenario {
        name: "super-spreader",
        about: "sources with few and with many destinations",
        hosts: Some("super-spreader"),
        sessions: None,
        sketches: None,
    },
    Scenario {
        name: "syn-defence",
        about: "SYNs, cookies shown and data, from sources known and unknown",
        hosts: Some("syn-defence"),
        sessions: None,
        sketches: None,
    },
];

/// Their names.
pub(super) fn names() -> Vec<&'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name).collect()
}
