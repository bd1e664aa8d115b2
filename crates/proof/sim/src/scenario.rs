//! Scenarios: link quality, faults and traffic of a run.

use serde::{Deserialize, Serialize};
use stateplane_world::{LinkQuality, MAX_DRIFT_PPM};

/// The knobs of a world. Times are in µs, chances in thousandths; each run draws
/// the details from its seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name on the command line; of one that was changed, that of the one it was made of.
    #[serde(skip)]
    pub name: &'static str,
    /// Number of switches, at least 1; hosts choose among as many paths.
    pub switches: u8,
    /// Number of replicas of a chain, at least 1.
    pub replicas: u8,
    /// Time for which hosts send, in µs.
    pub traffic: u64,
    /// Time without faults after that, in µs.
    pub settle: u64,
    /// Connections, or counted flows.
    pub flows: u64,
    /// Bursts of packets, each of one flow.
    pub bursts: u64,
    /// Maximum number of packets in a burst.
    pub burst_length: u64,
    /// Greatest gap between packets of a burst.
    pub burst_gap: u64,
    /// Links between switches and store.
    pub protocol_link: LinkQuality,
    /// Links between replicas.
    pub chain_link: LinkQuality,
    /// Links between switches and hosts.
    pub host_link: LinkQuality,
    /// Chance that a flow's packets alternate between the switches, one by one.
    pub alternate: u32,
    /// Number of deaths of switches; a switch comes back, and the others do not die meanwhile.
    pub deaths: u64,
    /// Least and greatest time for which it is dead.
    pub outage: (u64, u64),
    /// Number of partitions of a switch from the store.
    pub cuts: u64,
    /// Greatest time for which it is cut off.
    pub cut: u64,
    /// Number of times that nothing passes one way between a switch and one store server.
    pub severings: u64,
    /// True if the first switch answers neither recalls nor questions whether a lease is idle.
    pub deaf: bool,
    /// Number of stalls of a switch or a replica.
    pub stalls: u64,
    /// Greatest time for which it stalls.
    pub stall: u64,
    /// Number of times that some flows change their path.
    pub reroutes: u64,
    /// Greatest time that a switch takes for one frame; drawn for each switch.
    pub service: u64,
    /// Greatest deviation of a clock's rate, in parts per million.
    pub drift: u32,
    /// Clock deviation that the store is configured for (rule 1), in parts per million.
    pub drift_bound: u32,
    /// For how long a head promises a switch to outwait none of its leases (rule 1).
    pub term: u32,
    /// For how long a server backs a head, and a new head outwaits nobody (rules 1b and 1c).
    pub backing: u32,
    /// True if the store recalls leases that block requests (rule 19).
    pub recall: bool,
    /// Idle timeout of NAT mappings.
    pub idle: u64,
    /// Buckets of the switches' flow tables, of four slots each.
    pub buckets: u32,
    /// True if switches repeat requests sooner, and notice a silent store sooner, than a
    /// switch's file without times has it.
    pub brisk: bool,
    /// At most so many writes before sequence numbers wrap.
    pub before_wrap: u64,
    /// Chance in thousandths that a message between switch and store has a bit flipped.
    pub damage: u32,
    /// Store servers under a controller, and their faults. Times are in µs.
    pub cluster: Option<Cluster>,
    /// Disks of the servers, and their faults; without, they keep nothing.
    pub disks: Option<Disks>,
}

/// Disks of the servers. Times are in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disks {
    /// Greatest time that it takes to write through to the disk.
    pub sync: u64,
    /// Bytes on the disk after which a snapshot takes their place.
    pub snapshot_after: u64,
    /// Number of times that all servers lose power at once.
    pub power_cuts: u64,
    /// Number of deaths of one server alone.
    pub deaths: u64,
    /// Least and greatest time for which a server is dead.
    pub outage: (u64, u64),
    /// True if the disk of a server that dies alone, while others keep all that it keeps, rots: it
    /// has lied, or loses or changes what was synced.
    pub rot: bool,
    /// How often the disk of one server, or of all, fails writes for as long as an outage
    /// takes.
    pub failures: u64,
}

/// Store servers under a controller, and what befalls them. Times are in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Number of servers, at least 1.
    pub stores: u8,
    /// Number of deaths of a server; it comes back empty.
    pub deaths: u64,
    /// Least and greatest time for which it is dead.
    pub outage: (u64, u64),
    /// Number of times that a server stops for a while and continues as if nothing had happened.
    pub pauses: u64,
    /// Greatest time for which it stops.
    pub pause: u64,
    /// Number of one-way partitions from a server, or the controller, to another.
    pub cuts: u64,
    /// Greatest time for which nothing passes.
    pub cut: u64,
    /// Number of restarts of the controller, with what it has stored.
    pub controller_restarts: u64,
    /// True if servers are drained and taken back, one after another.
    pub drains: bool,
    /// Number of times that a switch and a server are on one side, and all else on the other; if
    /// servers are drained, each time as one is.
    pub splits: u64,
    /// Least and greatest time for which they are.
    pub split: (u64, u64),
}

impl Cluster {
    /// Three servers and every misfortune.
    pub const fn failing() -> Self {
        Self {
            stores: 3,
            deaths: 8,
            outage: (5_000, 300_000),
            pauses: 4,
            pause: 120_000,
            cuts: 5,
            cut: 120_000,
            controller_restarts: 2,
            drains: false,
            splits: 0,
            split: (100_000, 300_000),
        }
    }

    /// `stores` servers without faults but one death.
    pub const fn calm(stores: u8) -> Self {
        Self {
            stores,
            deaths: 1,
            outage: (400_000, 500_000),
            pauses: 0,
            cuts: 0,
            controller_restarts: 0,
            ..Self::failing()
        }
    }
}

const GOOD_LINK: LinkQuality = LinkQuality {
    loss: 0,
    duplicate: 0,
    delay: 20,
    jitter: 20,
    straggle: 0,
    straggle_delay: 0,
};

const EVEN_LINK: LinkQuality = LinkQuality {
    jitter: 0,
    ..GOOD_LINK
};

impl Scenario {
    /// Every misfortune at once.
    pub const fn mixed() -> Self {
        Self {
            name: "mixed",
            switches: 2,
            replicas: 3,
            traffic: 2_000_000,
            settle: 1_000_000,
            flows: 28,
            bursts: 500,
            burst_length: 4,
            burst_gap: 600,
            protocol_link: LinkQuality {
                loss: 30,
                duplicate: 40,
                delay: 30,
                jitter: 400,
                straggle: 20,
                straggle_delay: 300_000,
            },
            chain_link: LinkQuality {
                loss: 20,
                duplicate: 30,
                delay: 20,
                jitter: 200,
                straggle: 5,
                straggle_delay: 50_000,
            },
            host_link: LinkQuality {
                loss: 10,
                duplicate: 0,
                delay: 10,
                jitter: 100,
                straggle: 5,
                straggle_delay: 20_000,
            },
            alternate: 150,
            deaths: 2,
            outage: (100_000, 500_000),
            cuts: 3,
            cut: 150_000,
            severings: 4,
            deaf: false,
            stalls: 4,
            stall: 60_000,
            reroutes: 12,
            service: 40,
            drift: MAX_DRIFT_PPM,
            drift_bound: MAX_DRIFT_PPM,
            term: 50_000,
            backing: 150_000,
            recall: true,
            idle: 400_000,
            buckets: 4,
            brisk: false,
            before_wrap: 4,
            damage: 0,
            cluster: None,
            disks: None,
        }
    }

    /// No faults but the death of a switch.
    pub const fn calm() -> Self {
        Self {
            name: "calm",
            protocol_link: GOOD_LINK,
            chain_link: GOOD_LINK,
            host_link: GOOD_LINK,
            alternate: 0,
            deaths: 1,
            cuts: 0,
            severings: 0,
            stalls: 0,
            reroutes: 0,
            service: 0,
            ..Self::mixed()
        }
    }

    /// Few flows with dense traffic over links that duplicate and exchange.
    pub const fn echoes() -> Self {
        Self {
            name: "echoes",
            flows: 8,
            burst_length: 12,
            burst_gap: 100,
            protocol_link: LinkQuality {
                loss: 20,
                duplicate: 400,
                delay: 30,
                jitter: 3_000,
                straggle: 200,
                straggle_delay: 150_000,
            },
            ..Self::mixed()
        }
    }

    /// Few flows that change their path often, and switches that stall.
    pub const fn tug_of_war() -> Self {
        Self {
            name: "tug-of-war",
            // Requests that wait long for their answer make the search for an order wide.
            brisk: true,
            flows: 6,
            alternate: 500,
            stalls: 30,
            stall: 400_000,
            reroutes: 60,
            ..Self::mixed()
        }
    }

    /// Switches that die often and come back at once, with their flows.
    pub const fn restarts() -> Self {
        Self {
            name: "restarts",
            flows: 6,
            deaths: 20,
            outage: (1_000, 30_000),
            protocol_link: LinkQuality {
                straggle: 200,
                ..Self::mixed().protocol_link
            },
            ..Self::mixed()
        }
    }

    /// Every misfortune, of the store servers and their controller too.
    pub const fn failing_stores() -> Self {
        Self {
            name: "failing-stores",
            cluster: Some(Cluster::failing()),
            settle: 2_000_000,
            ..Self::mixed()
        }
    }

    /// The same with links between replicas that lose a third of what passes.
    pub const fn lossy_chains() -> Self {
        Self {
            name: "lossy-chains",
            chain_link: LinkQuality {
                loss: 300,
                ..Self::mixed().chain_link
            },
            ..Self::failing_stores()
        }
    }

    /// Links between switches and store that flip bits, and no other faults but the death of a
    /// switch.
    pub const fn damaged() -> Self {
        Self {
            name: "damaged",
            damage: 30,
            ..Self::calm()
        }
    }

    /// Six store servers that die, come back, and are given up and taken back, so
    /// that shards move.
    pub const fn moving_shards() -> Self {
        Self {
            name: "moving-shards",
            cluster: Some(Cluster {
                stores: 6,
                drains: true,
                ..Cluster::failing()
            }),
            settle: 2_000_000,
            ..Self::mixed()
        }
    }

    /// Good links, dense traffic, and one store server that dies.
    pub const fn store_failover() -> Self {
        Self {
            name: "store-failover",
            cluster: Some(Cluster::calm(3)),
            bursts: 4_000,
            burst_length: 1,
            deaths: 0,
            ..Self::calm()
        }
    }

    /// Good links without jitter, and flows that change their path while both switches live.
    pub const fn handover() -> Self {
        Self {
            name: "handover",
            flows: 8,
            bursts: 2_000,
            burst_length: 1,
            deaths: 0,
            reroutes: 40,
            protocol_link: EVEN_LINK,
            chain_link: EVEN_LINK,
            host_link: EVEN_LINK,
            ..Self::calm()
        }
    }

    /// Many inside endpoints that speak seldom, so that their mappings end and are made
    /// anew, while switches and store servers fail: some thousand ports are taken
    /// in a run.
    pub const fn port_churn() -> Self {
        Self {
            name: "port-churn",
            flows: 300,
            traffic: 4_000_000,
            settle: 2_000_000,
            bursts: 16_000,
            burst_length: 1,
            term: 15_000,
            backing: 70_000,
            idle: 40_000,
            buckets: 128,
            cluster: Some(Cluster::failing()),
            ..Self::mixed()
        }
    }

    /// Every misfortune, and a fixed chain with disks that loses its power, whole or one
    /// server at a time.
    pub const fn power_cuts() -> Self {
        Self {
            name: "power-cuts",
            disks: Some(Disks {
                sync: 400,
                snapshot_after: 12_000,
                power_cuts: 4,
                deaths: 4,
                outage: (1_000, 100_000),
                rot: false,
                failures: 0,
            }),
            ..Self::mixed()
        }
    }

    /// Four store servers under a controller, with disks, that lose their power, whole or
    /// one at a time, while chains change.
    pub const fn cluster_power_cuts() -> Self {
        Self {
            name: "cluster-power-cuts",
            cluster: Some(Cluster {
                stores: 4,
                deaths: 0,
                pauses: 2,
                cuts: 2,
                ..Cluster::failing()
            }),
            settle: 2_000_000,
            ..Self::power_cuts()
        }
    }

    /// Four store servers under a controller, whose disks rot, one at a time.
    pub const fn rotten_disks() -> Self {
        Self {
            name: "rotten-disks",
            cluster: Some(Cluster {
                stores: 4,
                deaths: 0,
                pauses: 0,
                cuts: 0,
                ..Cluster::failing()
            }),
            disks: Some(Disks {
                sync: 400,
                snapshot_after: 12_000,
                power_cuts: 0,
                deaths: 12,
                outage: (500, 20_000),
                rot: true,
                failures: 0,
            }),
            settle: 2_000_000,
            ..Self::mixed()
        }
    }

    /// A fixed chain whose disks fail with EIO or ENOSPC, or write short, of one server at a
    /// time or of all, and whose power is cut too.
    pub const fn failing_disks() -> Self {
        Self {
            name: "failing-disks",
            disks: Some(Disks {
                sync: 400,
                snapshot_after: 12_000,
                power_cuts: 2,
                deaths: 2,
                outage: (1_000, 60_000),
                rot: false,
                failures: 8,
            }),
            ..Self::mixed()
        }
    }

    /// The same of four store servers under a controller.
    pub const fn cluster_failing_disks() -> Self {
        Self {
            name: "cluster-failing-disks",
            disks: Self::failing_disks().disks,
            ..Self::cluster_power_cuts()
        }
    }

    /// All scenarios that have a name.
    pub const ALL: [Self; 17] = [
        Self::mixed(),
        Self::calm(),
        Self::echoes(),
        Self::tug_of_war(),
        Self::restarts(),
        Self::failing_stores(),
        Self::lossy_chains(),
        Self::damaged(),
        Self::moving_shards(),
        Self::store_failover(),
        Self::handover(),
        Self::port_churn(),
        Self::power_cuts(),
        Self::cluster_power_cuts(),
        Self::rotten_disks(),
        Self::failing_disks(),
        Self::cluster_failing_disks(),
    ];

    /// The scenario of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name == name)
    }
}
