//! The commands that turn a topology into namespaces.

use crate::error::LabError;
use crate::topology::{End, Kind, Node, Topology};
use std::fmt::Write;

const BRIDGE: &str = "bridge0";

/// Lines for `ip -batch`: every namespace and every veth pair.
///
/// Interface indices are given out from the link's number: the kernel delays the
/// news of a lost carrier by up to a second where both ends of a pair have the same
/// index (`linkwatch_urgent_event`), and routes would follow as late.
pub(crate) fn create(topology: &Topology, namespace: impl Fn(&str) -> String) -> String {
    let mut batch = String::new();
    for node in &topology.nodes {
        let _ = writeln!(batch, "netns add {}", namespace(&node.name));
    }
    for (link, number) in topology.links.iter().zip(1u32..) {
        let [a, b] = &link.ends;
        let _ = writeln!(
            batch,
            "link add {} index {} netns {} mtu {} address {} type veth \
             peer name {} index {} netns {} mtu {} address {}",
            a.interface,
            1000 + 2 * number,
            namespace(&a.node),
            link.mtu,
            a.mac,
            b.interface,
            1001 + 2 * number,
            namespace(&b.node),
            link.mtu,
            b.mac,
        );
    }
    batch
}

/// A shell script that sets a node up from inside its namespace. It ends by printing
/// the offloads of each interface after a line `interface NAME`.
pub(crate) fn script(topology: &Topology, node: &Node, lowered: &[&str]) -> String {
    let interfaces: Vec<&str> = topology
        .ends_of(&node.name)
        .map(|(_, end)| end.interface.as_str())
        .collect();
    let list = interfaces.join(" ");
    let mut script = String::from("set -e\n");
    let mut set = |file: &str, value: u32| {
        let _ = writeln!(
            script,
            "for f in /proc/sys/net/{file}; do [ ! -e \"$f\" ] || echo {value} >\"$f\"; done"
        );
    };
    set("ipv6/conf/*/disable_ipv6", 1);
    // Replies may come by another path than the one the request took.
    set("ipv4/conf/*/rp_filter", 0);
    set("ipv4/conf/*/send_redirects", 0);
    if node.kind == Kind::Host {
        // A veth hands on the hash that the sending socket drew, and routers split
        // flows by it. It must not change when a segment is sent again: a router
        // beyond a wire would not see that either.
        set("core/txrehash", 0);
    }
    if node.kind == Kind::Router {
        set("ipv4/ip_forward", 1);
        set("ipv4/fib_multipath_hash_policy", 1);
        set("ipv4/conf/*/ignore_routes_with_linkdown", 1);
    }
    if node.kind == Kind::Bridge {
        // A machine that filters packets has its bridges hand each frame to IP's hooks, which costs as
        // much as bridging does.
        set("bridge/bridge-nf-call-*", 0);
    }
    let _ = writeln!(
        script,
        "for i in {list}; do ethtool -K $i rx off tx off sg off tso off gso off gro off >/dev/null; done"
    );
    let _ = writeln!(script, "ip -batch - <<'END'\nlink set lo up");
    if node.kind == Kind::Bridge {
        let mtu = topology.ends_of(&node.name).map(|(link, _)| link.mtu).min();
        let _ = writeln!(
            script,
            "link add {BRIDGE} mtu {} type bridge mcast_snooping 0 stp_state 0",
            mtu.unwrap_or(1500)
        );
        for interface in &interfaces {
            let _ = writeln!(script, "link set {interface} master {BRIDGE}");
        }
        let _ = writeln!(script, "link set {BRIDGE} up");
    }
    for (_, end) in topology.ends_of(&node.name) {
        if let (Some(address), true) = (end.address, is_kernels(node, end)) {
            let _ = writeln!(script, "address add {address} dev {}", end.interface);
        }
        if !lowered.contains(&end.interface.as_str()) {
            let _ = writeln!(script, "link set {} up", end.interface);
        }
    }
    if lowered.is_empty() {
        script.push_str(&reachability(topology, node));
    }
    let _ = writeln!(
        script,
        "END\nfor i in {list}; do echo interface $i; ethtool -k $i; done"
    );
    script
}

/// True if the kernel has the address of `end`, an interface of `node`.
fn is_kernels(node: &Node, end: &End) -> bool {
    end.kernel || !matches!(node.kind, Kind::Switch | Kind::Bridge)
}

/// Lines for `ip -batch` in the node's namespace: permanent neighbours and static
/// routes, which the kernel forgets when an interface is taken down.
pub(crate) fn reachability(topology: &Topology, node: &Node) -> String {
    let mut batch = String::new();
    for (_, end) in topology.ends_of(&node.name) {
        if end.address.is_none() || !is_kernels(node, end) {
            continue;
        }
        for other in topology.neighbours(end) {
            if let Some(prefix) = other.address {
                let _ = writeln!(
                    batch,
                    "neighbour replace {} lladdr {} dev {} nud permanent",
                    prefix.address, other.mac, end.interface
                );
            }
        }
    }
    for route in &node.routes {
        let _ = write!(batch, "route replace {}", route.to.network());
        if let Some(metric) = route.metric {
            let _ = write!(batch, " metric {metric}");
        }
        match route.via.as_slice() {
            [gateway] => {
                let _ = write!(batch, " via {gateway}");
            }
            gateways => {
                for gateway in gateways {
                    let _ = write!(batch, " nexthop via {gateway}");
                }
            }
        }
        batch.push('\n');
    }
    batch
}

/// Refuses an offload that stayed on in what [`script`] printed.
pub(crate) fn check_offloads(node: &str, printed: &str) -> Result<(), LabError> {
    const OFF: [&str; 6] = [
        "rx-checksumming",
        "tx-checksumming",
        "scatter-gather",
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "generic-receive-offload",
    ];
    let mut interface = "";
    for line in printed.lines() {
        if let Some(name) = line.strip_prefix("interface ") {
            interface = name;
        }
        if let Some((feature, state)) = line.split_once(": ")
            && OFF.contains(&feature)
            && !state.starts_with("off")
        {
            return Err(LabError::Offload {
                node: node.to_owned(),
                interface: interface.to_owned(),
                feature: feature.to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offload_that_stays_on_is_named() {
        let printed = "interface eth0\nFeatures for eth0:\nrx-checksumming: off\n\
                       interface eth1\nscatter-gather: on\n\ttx-scatter-gather: on\n";
        let error = check_offloads("s1", printed).unwrap_err();
        assert_eq!(error.code(), "LAB007");
        assert!(error.to_string().contains("interface eth1"), "{error}");
        assert!(check_offloads("s1", "interface e\nscatter-gather: off [fixed]").is_ok());
    }
}
