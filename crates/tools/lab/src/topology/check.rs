//! Requirements on a topology beyond its syntax.

use super::{Kind, LEAST_STORE_MTU, STEERED_METRIC, Topology};
use crate::error::LabError;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

struct Check<'a>(&'a Topology);

/// Refuses the first contradiction.
pub(super) fn check(topology: &Topology) -> Result<(), LabError> {
    let check = Check(topology);
    check.name("the topology's name", &topology.name, 12)?;
    check.nodes()?;
    check.links()?;
    check.segments()?;
    check.routes()?;
    check.processes()?;
    check.protected_programs()?;
    check.traffic()
}

impl Check<'_> {
    fn refuse<T>(&self, place: &str, problem: String, help: &str) -> Result<T, LabError> {
        Err(LabError::Topology {
            path: self.0.path.clone(),
            place: place.to_owned(),
            problem,
            help: help.to_owned(),
        })
    }

    fn name(&self, place: &str, name: &str, longest: usize) -> Result<(), LabError> {
        let fits = (1..=longest).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if fits {
            return Ok(());
        }
        self.refuse(
            place,
            format!("`{name}` is no name"),
            &format!("use 1 to {longest} of a-z, 0-9 and _"),
        )
    }

    fn known(&self, place: &str, node: &str) -> Result<(), LabError> {
        if self.0.node(node).is_some() {
            return Ok(());
        }
        let known: Vec<_> = self.0.nodes.iter().map(|n| n.name.as_str()).collect();
        self.refuse(
            place,
            format!("there is no node `{node}`"),
            &format!(
                "declare it in a [[node]] or use one of {}",
                known.join(", ")
            ),
        )
    }

    fn nodes(&self) -> Result<(), LabError> {
        let mut seen = BTreeSet::new();
        for node in &self.0.nodes {
            let place = format!("node {}", node.name);
            self.name(&place, &node.name, 12)?;
            if !seen.insert(&node.name) {
                return self.refuse(
                    &place,
                    "it is declared twice".to_owned(),
                    "remove or rename one of them",
                );
            }
        }
        if self.0.nodes.len() > 250 {
            return self.refuse(
                "nodes",
                format!("there are {}", self.0.nodes.len()),
                "use at most 250",
            );
        }
        Ok(())
    }

    fn links(&self) -> Result<(), LabError> {
        let mut interfaces = BTreeSet::new();
        let mut macs = BTreeSet::new();
        for (link, end) in self.0.ends() {
            let place = format!("link end {}.{}", end.node, end.interface);
            self.known(&place, &end.node)?;
            self.name(&place, &end.interface, 15)?;
            if ["lo", "all", "default", "bridge0"].contains(&end.interface.as_str()) {
                return self.refuse(
                    &place,
                    "the interface's name is taken".to_owned(),
                    "choose another, such as eth0",
                );
            }
            if !(576..=65_535).contains(&link.mtu) {
                return self.refuse(
                    &place,
                    format!("an MTU of {} bytes is out of range", link.mtu),
                    "use 576 to 65535",
                );
            }
            if !interfaces.insert((&end.node, &end.interface)) {
                return self.refuse(
                    &place,
                    "two links end there".to_owned(),
                    "name the interfaces differently",
                );
            }
            if !end.mac.is_station() || !macs.insert(end.mac) {
                return self.refuse(
                    &place,
                    format!("{} is a group address or used twice", end.mac),
                    "give each end its own address, such as 02:00:00:00:00:01, or none",
                );
            }
            if end.address.is_some()
                && self
                    .0
                    .node(&end.node)
                    .is_some_and(|n| n.kind == Kind::Bridge)
            {
                return self.refuse(
                    &place,
                    "a bridge's interface has no address".to_owned(),
                    "remove the address",
                );
            }
        }
        Ok(())
    }

    fn segments(&self) -> Result<(), LabError> {
        let mut addresses: BTreeSet<Ipv4Addr> = BTreeSet::new();
        for segment in self.0.segments() {
            let mut first = None;
            for end in &segment {
                let place = format!("link end {}.{}", end.node, end.interface);
                let Some(prefix) = end.address else { continue };
                if !addresses.insert(prefix.address) {
                    return self.refuse(
                        &place,
                        format!("the address {} is used twice", prefix.address),
                        "give each end its own",
                    );
                }
                let network = *first.get_or_insert(prefix.network());
                if network != prefix.network() {
                    return self.refuse(
                        &place,
                        format!("{prefix} is not in {network}, the network of its segment"),
                        "give all ends of a segment addresses of one network",
                    );
                }
            }
            let to_store = segment.iter().any(|end| {
                self.0
                    .node(&end.node)
                    .is_some_and(|node| node.kind == Kind::Store)
            });
            if !to_store {
                continue;
            }
            for (link, end) in self.0.ends() {
                let member = segment
                    .iter()
                    .any(|other| other.node == end.node && other.interface == end.interface);
                if member && link.mtu < LEAST_STORE_MTU {
                    return self.refuse(
                        &format!("link end {}.{}", end.node, end.interface),
                        format!(
                            "an MTU of {} bytes is too small for a segment with a store",
                            link.mtu
                        ),
                        &format!("use at least {LEAST_STORE_MTU}, requests carry whole frames"),
                    );
                }
            }
        }
        Ok(())
    }

    fn routes(&self) -> Result<(), LabError> {
        for node in &self.0.nodes {
            let place = format!("node {}", node.name);
            let routed = !matches!(node.kind, Kind::Switch | Kind::Bridge);
            if !routed && !node.routes.is_empty() {
                return self.refuse(
                    &place,
                    format!("a {} has no kernel routes", node.kind),
                    "remove them",
                );
            }
            for route in &node.routes {
                if route.via.is_empty() {
                    return self.refuse(
                        &place,
                        format!("the route to {} has no next hop", route.to),
                        "add one to `via`",
                    );
                }
                if route.metric.is_some_and(|metric| metric <= STEERED_METRIC) {
                    return self.refuse(
                        &place,
                        format!("the metric of the route to {} is too small", route.to),
                        "use 2 or more: the lab itself puts routes before others",
                    );
                }
                for gateway in &route.via {
                    let connected = self
                        .0
                        .ends_of(&node.name)
                        .filter_map(|(_, end)| end.address)
                        .any(|prefix| prefix.contains(*gateway) && prefix.address != *gateway);
                    if !connected {
                        return self.refuse(
                            &place,
                            format!("no link leads to the next hop {gateway} of {}", route.to),
                            "use an address in the network of one of its links",
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn variants(&self, place: &str, only: &[String]) -> Result<(), LabError> {
        match only.iter().find(|v| !self.0.variants.contains_key(*v)) {
            None => Ok(()),
            Some(variant) => self.refuse(
                place,
                format!("there is no variant `{variant}`"),
                "declare it as [variant.NAME]",
            ),
        }
    }

    fn processes(&self) -> Result<(), LabError> {
        let mut seen = BTreeSet::new();
        for process in &self.0.processes {
            let place = format!("process {}", process.name);
            self.name(&place, &process.name, 24)?;
            self.known(&place, &process.node)?;
            self.variants(&place, &process.only)?;
            if !seen.insert(&process.name) {
                return self.refuse(
                    &place,
                    "it is declared twice".to_owned(),
                    "remove or rename one of them",
                );
            }
            if process.command.is_empty() {
                return self.refuse(
                    &place,
                    "its command is empty".to_owned(),
                    "give a program and its arguments",
                );
            }
            for interface in &process.raises {
                let there = self
                    .0
                    .ends_of(&process.node)
                    .any(|(_, end)| end.interface == *interface);
                if !there {
                    return self.refuse(
                        &place,
                        format!("{} has no interface `{interface}` to raise", process.node),
                        "name an interface of a link that ends there",
                    );
                }
            }
        }
        Ok(())
    }

    fn protected_programs(&self) -> Result<(), LabError> {
        for (name, values) in &self.0.variants {
            let made = ["protects", "synchronises"];
            let made = made.into_iter().find(|how| values.contains_key(*how));
            if let Some(how) = made.filter(|_| !values.contains_key("program")) {
                return self.refuse(
                    &format!("variant {name}"),
                    format!("it `{how}` a program, and no `program` says where the result goes"),
                    "add `program = \"${run}/protected.p4\"`, and run that",
                );
            }
        }
        Ok(())
    }

    fn traffic(&self) -> Result<(), LabError> {
        let Some(traffic) = &self.0.traffic else {
            return Ok(());
        };
        let place = "traffic";
        let talkers = traffic
            .clients
            .iter()
            .chain(&traffic.servers)
            .chain([&traffic.iperf_client, &traffic.iperf_server]);
        for node in talkers {
            self.known(place, node)?;
            if self.0.ends_of(node).all(|(_, end)| end.address.is_none()) {
                return self.refuse(
                    place,
                    format!("{node} has no address to talk from"),
                    "give one of its link ends an address",
                );
            }
        }
        for node in traffic.switches.iter().chain([&traffic.chooser]) {
            self.known(place, node)?;
        }
        for client in &traffic.clients {
            let linked = self.0.ends_of(client).any(|(_, end)| {
                self.0
                    .neighbours(end)
                    .iter()
                    .any(|other| other.node == traffic.chooser)
            });
            if !linked {
                return self.refuse(
                    place,
                    format!("the client {client} is not linked to {}", traffic.chooser),
                    "make `chooser` the first router of every client",
                );
            }
        }
        for (list, least, what) in [
            (&traffic.clients, 1, "clients"),
            (&traffic.servers, 2, "servers"),
            (&traffic.switches, 2, "switches"),
        ] {
            let distinct: BTreeSet<_> = list.iter().collect();
            if list.len() < least || distinct.len() != list.len() {
                return self.refuse(
                    place,
                    format!(
                        "`{what}` has {} names, {} of them different",
                        list.len(),
                        distinct.len()
                    ),
                    &format!("name at least {least}, each once"),
                );
            }
        }
        for switch in &traffic.switches {
            let reached = self.0.node(&traffic.chooser).is_some_and(|chooser| {
                chooser
                    .routes
                    .iter()
                    .flat_map(|route| &route.via)
                    .any(|hop| {
                        self.0
                            .ends_of(switch)
                            .any(|(_, end)| end.address.is_some_and(|p| p.address == *hop))
                    })
            });
            if !reached {
                return self.refuse(
                    place,
                    format!(
                        "no route of {} has {switch} as its next hop",
                        traffic.chooser
                    ),
                    "add its address to the `via` of a route",
                );
            }
        }
        Ok(())
    }
}
