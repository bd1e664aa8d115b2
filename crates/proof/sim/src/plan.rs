//! Plan of one run, drawn before it starts: the hosts' packets, the faults and their times.

use crate::places::Places;
use crate::scenario::{Cluster, Disks, Scenario};
use stateplane_disk::Failure;
use stateplane_world::Random;
use std::fmt;

/// A node of the cluster: a store server by place, or the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Store(usize),
    Controller,
}

/// A misfortune, or its end. Switches and replicas by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfortune {
    Die {
        switch: usize,
    },
    Return {
        switch: usize,
    },
    /// Routing sees whether the switch is dead or has its data ports down.
    Look {
        switch: usize,
    },
    /// Partition of switch and store until this time.
    Cut {
        switch: usize,
        until: u64,
    },
    /// Nothing passes from a switch to a store server, or back, until this time.
    Sever {
        switch: usize,
        store: usize,
        back: bool,
        until: u64,
    },
    StallSwitch {
        switch: usize,
        until: u64,
    },
    StallReplica {
        replica: usize,
        until: u64,
    },
    /// A store server dies until then, unless it is the last to keep a shard.
    StoreDies {
        store: usize,
        until: u64,
    },
    StoreReturns {
        store: usize,
    },
    /// All store servers lose power at once until then, about.
    PowerCut {
        until: u64,
    },
    /// The disk of a store server fails each such call after so many; without a failure, it
    /// writes short.
    DiskFails {
        store: usize,
        failure: Option<Failure>,
        calls: u64,
    },
    DiskMends {
        store: usize,
    },
    /// A store server stands still until then.
    StorePauses {
        store: usize,
        until: u64,
    },
    /// One-way partition of two nodes until this time.
    CutNodes {
        from: Node,
        to: Node,
        until: u64,
    },
    /// Nothing passes between a switch with its agent and other servers than `store`, or the
    /// controller, nor between `store` and other switches, until this time.
    Secede {
        switch: usize,
        store: usize,
        until: u64,
    },
    ControllerRestarts,
    /// A store server is to lose its shards, or gets some again.
    Drain {
        store: usize,
        drained: bool,
    },
    /// Flows choose their path again, each with this chance in thousandths.
    Reroute {
        chance: u32,
    },
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Store(store) => write!(f, "store server {}", store + 1),
            Node::Controller => f.write_str("the controller"),
        }
    }
}

/// Messages name switches and servers by number, from 1.
impl fmt::Display for Misfortune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Die { switch } => write!(f, "switch {} dies", switch + 1),
            Self::Return { switch } => write!(f, "switch {} returns", switch + 1),
            Self::Look { switch } => write!(f, "routing looks at switch {}", switch + 1),
            Self::Cut { switch, until } => {
                write!(
                    f,
                    "switch {} is cut from the store until {until}",
                    switch + 1
                )
            }
            Self::Sever {
                switch,
                store,
                back,
                until,
            } => {
                let (switch, store) = (switch + 1, store + 1);
                if back {
                    write!(
                        f,
                        "nothing passes from store server {store} to switch {switch} until {until}"
                    )
                } else {
                    write!(
                        f,
                        "nothing passes from switch {switch} to store server {store} until {until}"
                    )
                }
            }
            Self::StallSwitch { switch, until } => {
                write!(f, "switch {} stands still until {until}", switch + 1)
            }
            Self::StallReplica {
                replica: store,
                until,
            }
            | Self::StorePauses { store, until } => {
                write!(f, "store server {} stands still until {until}", store + 1)
            }
            Self::StoreDies { store, until } => {
                write!(f, "store server {} dies until {until}", store + 1)
            }
            Self::StoreReturns { store } => write!(f, "store server {} returns", store + 1),
            Self::PowerCut { until } => {
                write!(f, "all store servers lose power until about {until}")
            }
            Self::DiskFails {
                store,
                failure,
                calls,
            } => {
                let what = match failure {
                    None => "writes short",
                    Some(Failure::Write) => "fails to write",
                    Some(Failure::Full) => "is full",
                    Some(Failure::Sync) => "fails to write through",
                };
                let store = store + 1;
                write!(
                    f,
                    "the disk of store server {store} {what} after {calls} calls"
                )
            }
            Self::DiskMends { store } => {
                write!(f, "the disk of store server {} is sound again", store + 1)
            }
            Self::CutNodes { from, to, until } => {
                write!(f, "nothing passes from {from} to {to} until {until}")
            }
            Self::Secede {
                switch,
                store,
                until,
            } => {
                let (switch, store) = (switch + 1, store + 1);
                write!(
                    f,
                    "switch {switch} and store server {store} reach each other alone until {until}"
                )
            }
            Self::ControllerRestarts => f.write_str("the controller restarts"),
            Self::Drain { store, drained } => {
                let verb = if drained {
                    "is drained"
                } else {
                    "may keep shards again"
                };
                write!(f, "store server {} {verb}", store + 1)
            }
            Self::Reroute { chance } => {
                write!(f, "{chance} in a thousand flows choose their path again")
            }
        }
    }
}

/// A fault: happenings that belong together, with their times, such as a failure and its end.
pub(crate) type Fault = Vec<(u64, Misfortune)>;

/// Events planned for a run, in no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Packets that hosts inside send: when, and of which connection.
    pub(crate) packets: Vec<(u64, usize)>,
    pub(crate) faults: Vec<Fault>,
}

impl Plan {
    /// Draws `bursts` bursts of packets of `connections` connections, and the faults of the world.
    pub(crate) fn draw(
        scenario: &Scenario,
        places: Places,
        bursts: u64,
        connections: usize,
        random: &mut Random,
    ) -> Plan {
        let mut packets = Vec::new();
        for _ in 0..bursts {
            let mut at = random.between(0, scenario.traffic);
            let connection = random.place(connections);
            for _ in 0..random.between(1, scenario.burst_length) {
                packets.push((at, connection));
                at += random.between(0, scenario.burst_gap);
            }
        }
        Plan {
            packets,
            faults: faults(scenario, places, random),
        }
    }
}

/// Faults of a run.
fn faults(scenario: &Scenario, places: Places, random: &mut Random) -> Vec<Fault> {
    let mut plan = Vec::new();
    let end = scenario.traffic;
    // One death in each part of the run, so that never all switches are dead.
    for number in 0..scenario.deaths {
        let part = end / scenario.deaths;
        let (least, most) = scenario.outage;
        let outage = random.between(least, most.min(part * 3 / 4).max(least));
        let latest = (part * (number + 1)).saturating_sub(outage);
        let at = random.between(
            part * number + part / 8,
            latest.max(part * number + part / 8),
        );
        let switch = random.place(places.switches);
        let mut death = vec![(at, Misfortune::Die { switch })];
        if outage > 20_000 {
            let noticed = at + random.between(1_000, 20_000);
            death.push((noticed, Misfortune::Look { switch }));
        }
        death.push((at + outage, Misfortune::Return { switch }));
        plan.push(death);
    }
    for _ in 0..scenario.cuts {
        let at = random.between(0, end);
        let until = at + random.between(1, scenario.cut);
        let switch = random.place(places.switches);
        plan.push(vec![(at, Misfortune::Cut { switch, until })]);
    }
    for _ in 0..scenario.severings {
        let at = random.between(0, end);
        let until = at + random.between(1, scenario.cut);
        let switch = random.place(places.switches);
        let store = random.place(places.stores);
        let back = random.permille(500);
        let sever = Misfortune::Sever {
            switch,
            store,
            back,
            until,
        };
        plan.push(vec![(at, sever)]);
    }
    for _ in 0..scenario.stalls {
        let at = random.between(0, end);
        let until = at + random.between(1, scenario.stall);
        let replicas = match scenario.cluster {
            None => places.stores,
            Some(_) => 0,
        };
        let place = random.place(places.switches + replicas);
        plan.push(vec![(
            at,
            match place.checked_sub(places.switches) {
                None => Misfortune::StallSwitch {
                    switch: place,
                    until,
                },
                // All flows wait for a replica, so it stalls for a shorter time.
                Some(replica) => Misfortune::StallReplica {
                    replica,
                    until: at + (until - at) / 4,
                },
            },
        )]);
    }
    for _ in 0..scenario.reroutes {
        let at = random.between(0, end);
        let chance = random.between(20, 600) as u32;
        plan.push(vec![(at, Misfortune::Reroute { chance })]);
    }
    if let Some(cluster) = &scenario.cluster {
        misfortunes_of_stores(cluster, end, random, &mut plan);
        splits(cluster, places, end, random, &mut plan);
    }
    if let Some(disks) = &scenario.disks {
        let replicas = scenario.replicas.into();
        misfortunes_of_disks(disks, replicas, end, random, &mut plan);
    }
    plan
}

/// Faults of the disks of the first `replicas` servers.
fn misfortunes_of_disks(
    disks: &Disks,
    replicas: usize,
    end: u64,
    random: &mut Random,
    plan: &mut Vec<Fault>,
) {
    let (least, most) = disks.outage;
    for number in 0..disks.power_cuts + disks.deaths {
        let begin = random.between(0, end);
        let until = begin + random.between(least, most);
        plan.push(vec![(
            begin,
            if number < disks.power_cuts {
                Misfortune::PowerCut { until }
            } else {
                Misfortune::StoreDies {
                    store: random.place(replicas),
                    until,
                }
            },
        )]);
    }
    for _ in 0..disks.failures {
        let begin = random.between(0, end);
        let until = begin + random.between(least, most);
        let failures = [Failure::Write, Failure::Full, Failure::Sync];
        let failure = failures.get(random.place(failures.len() + 1)).copied();
        // What fills one disk, or fails below it, often befalls all.
        let place = random.place(2 * replicas);
        let stores = if place < replicas {
            place..place + 1
        } else {
            0..replicas
        };
        let befallen = stores.flat_map(|store| {
            let calls = random.between(0, 8);
            let fails = Misfortune::DiskFails {
                store,
                failure,
                calls,
            };
            [(begin, fails), (until, Misfortune::DiskMends { store })]
        });
        plan.push(befallen.collect());
    }
}

/// Times at which each server is drained and taken back, in turn.
fn drains(cluster: &Cluster, end: u64) -> impl Iterator<Item = (usize, u64, u64)> {
    let part = end / (2 * u64::from(cluster.stores) + 2);
    (0..usize::from(cluster.stores)).map(move |store| {
        let begin = FOUNDING + part * (2 * store as u64 + 1);
        (store, begin, begin + part)
    })
}

/// Greatest time from when the controller is not heard any more until it hears nothing more.
const LATER: u64 = 60_000;

/// Greatest time from when a server is drained until others have what it has.
const JOIN: u64 = 30_000;

/// A switch and a server part from all others. What the server hears of the controller ends before
/// what that hears of it, and in half of the cases, or while others take its shards, it goes on to
/// speak with the other servers.
fn splits(cluster: &Cluster, places: Places, end: u64, random: &mut Random, plan: &mut Vec<Fault>) {
    for number in 0..cluster.splits {
        let mut begin = random.between(FOUNDING, end.max(FOUNDING));
        let mut store = random.place(places.stores);
        let drained = drains(cluster, end).nth(number as usize % places.stores);
        if let Some((drained, at, _)) = drained.filter(|_| cluster.drains) {
            begin = at + random.between(0, JOIN);
            store = drained;
        }
        let (least, most) = cluster.split;
        let until = begin + random.between(least, most);
        let switch = random.place(places.switches);
        let secede = Misfortune::Secede {
            switch,
            store,
            until,
        };
        let mut split = vec![(begin, secede)];
        let own = Node::Store(store);
        let cut = |from, to| Misfortune::CutNodes { from, to, until };
        split.push((begin, cut(Node::Controller, own)));
        let later = begin + random.between(0, LATER);
        split.push((later, cut(own, Node::Controller)));
        if !cluster.drains && random.permille(500) {
            let others = (0..places.stores).filter(|other| *other != store);
            for other in others.map(Node::Store) {
                split.push((begin, cut(own, other)));
                split.push((begin, cut(other, own)));
            }
        }
        plan.push(split);
    }
}

/// Time in which the first chains are made, before the first fault of a server.
const FOUNDING: u64 = 60_000;

fn misfortunes_of_stores(cluster: &Cluster, end: u64, random: &mut Random, plan: &mut Vec<Fault>) {
    let stores = usize::from(cluster.stores);
    let at = |random: &mut Random| random.between(FOUNDING, end.max(FOUNDING));
    for _ in 0..cluster.deaths {
        let (least, most) = cluster.outage;
        let begin = at(random);
        let until = begin + random.between(least, most);
        let store = random.place(stores);
        plan.push(vec![(begin, Misfortune::StoreDies { store, until })]);
    }
    for _ in 0..cluster.pauses {
        let begin = at(random);
        let until = begin + random.between(1, cluster.pause);
        let store = random.place(stores);
        plan.push(vec![(begin, Misfortune::StorePauses { store, until })]);
    }
    for _ in 0..cluster.cuts {
        let begin = at(random);
        let until = begin + random.between(1, cluster.cut);
        let mut node = || match random.place(stores + 1) {
            store if store < stores => Node::Store(store),
            _ => Node::Controller,
        };
        let (from, to) = (node(), node());
        let mut cut = vec![(begin, Misfortune::CutNodes { from, to, until })];
        // Half of the cuts are of both ways.
        if random.permille(500) {
            let (from, to) = (to, from);
            cut.push((begin, Misfortune::CutNodes { from, to, until }));
        }
        plan.push(cut);
    }
    for _ in 0..cluster.controller_restarts {
        plan.push(vec![(at(random), Misfortune::ControllerRestarts)]);
    }
    if cluster.drains {
        for (store, begin, end) in drains(cluster, end) {
            let drain = |(at, drained)| (at, Misfortune::Drain { store, drained });
            plan.push([(begin, true), (end, false)].map(drain).into());
        }
    }
}
