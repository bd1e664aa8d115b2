//! A controller and three store servers as processes: one after another is killed under
//! load, stopped and let go on, cut off and restarted. Nothing that was acknowledged is
//! lost, nothing is applied twice.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::process::Command;
use std::time::Duration;
use support::cluster::{Client, Cluster, DETECTION, SERVERS, percentile};
use support::namespaces::Namespaces;
use support::{kills, missing};

#[test]
fn any_server_may_be_killed() {
    let mut cluster = Cluster::start(81, 1, "");
    cluster.settle();
    let mut times = Vec::new();
    // More in `make soak`.
    for round in 0..kills(3) {
        let host = SERVERS[round % SERVERS.len()];
        let took = cluster.survive(|cluster| drop(cluster.stores.remove(&host)));
        times.push(took);
        cluster.start_store(host);
        cluster.settle();
    }
    cluster.verify();
    println!(
        "{} servers killed, detection after {DETECTION:?}: writes resumed after {:?} (median), {:?} (95th percentile), {:?} (longest)",
        times.len(),
        percentile(&mut times, 0.5),
        percentile(&mut times, 0.95),
        percentile(&mut times, 1.0),
    );
}

#[test]
fn a_server_that_stands_still_is_cut_out_and_comes_back() {
    let mut cluster = Cluster::start(82, 1, "");
    cluster.settle();
    for host in SERVERS {
        let took = cluster.survive(|cluster| cluster.signal(host, "STOP"));
        println!("server {host} stopped: writes resumed after {took:?}");
        cluster.signal(host, "CONT");
        cluster.settle();
    }
    // No server waits for a stopped controller, and a restarted one continues.
    let before: u64 = cluster.client.flows.values().map(|flow| flow.answers).sum();
    cluster.controllers.clear();
    cluster.client.run(Duration::from_millis(500));
    let after: u64 = cluster.client.flows.values().map(|flow| flow.answers).sum();
    assert!(after > before);
    cluster.start_controller(100);
    cluster.settle();
    let took = cluster.survive(|cluster| drop(cluster.stores.remove(&1)));
    println!("server 1 killed under a controller that was restarted: {took:?}");
    cluster.start_store(1);
    cluster.verify();
}

#[test]
fn a_rolling_restart_loses_nothing() {
    let mut cluster = Cluster::start(83, 1, "");
    cluster.settle();
    for host in SERVERS {
        let name = cluster.address(host).to_string();
        assert!(cluster.told(&["can-stop", &name]).starts_with("yes"));
        cluster.told(&["drain", &name, "--wait", "60"]);
        assert!(
            cluster
                .told(&["can-stop", &name])
                .starts_with("yes: no chain has")
        );
        cluster.signal(host, "TERM");
        let ended = cluster.stores.remove(&host).unwrap();
        assert!(ended.finish(Duration::from_secs(10)).status.success());
        cluster.start_store(host);
        cluster.told(&["undrain", &name, "--wait", "60"]);
    }
    for change in ["drain", "undrain"] {
        let stranger = cluster.ctl(&[change, "10.99.99.99"]);
        assert!(!stranger.status.success());
        let said = String::from_utf8_lossy(&stranger.stderr);
        assert!(said.contains("knows no server 10.99.99.99"), "{said}");
    }
    let servers = cluster.told(&["servers"]);
    assert!(
        servers.contains("every chain has all its replicas"),
        "{servers}"
    );
    let chains = cluster.told(&["chains"]);
    assert_eq!(chains.lines().count(), 5, "{chains}");
    let key: String = Client::key(2)
        .0
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let flow = cluster.told(&["flow", &key]);
    assert!(
        flow.contains("exclusive lease of switch 1 (incarnation 7"),
        "{flow}"
    );
    // Two servers that are gone leave one, which must not stop.
    for host in [1, 2] {
        let took = cluster.survive(|cluster| drop(cluster.stores.remove(&host)));
        println!("server {host} killed: {took:?}");
    }
    cluster.told(&["wait", "60", "--degraded"]);
    let late = cluster.ctl(&["wait", "0"]);
    assert_eq!(late.status.code(), Some(1), "chains lack replicas");
    let last = cluster.address(3).to_string();
    let servers = cluster.told(&["servers"]);
    for line in [
        "leads; chains lack replicas".to_owned(),
        "4 of 4 chains: 1 of 3 replicas".to_owned(),
        format!("if {last} dies too, 4 chains have no copy and serve nobody"),
    ] {
        assert!(servers.contains(&line), "{line}\n{servers}");
    }
    let refused = cluster.ctl(&["can-stop", &last]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused
            .stdout
            .starts_with(b"no: it has the only whole replica")
    );
    for host in [1, 2] {
        cluster.start_store(host);
    }
    cluster.verify();
}

#[test]
fn no_partition_leaves_two_chains_serving_one_shard() {
    const INSIDE: &str = "STATEPLANE_INSIDE_NAMESPACE";
    if std::env::var_os(INSIDE).is_some() {
        return partitions();
    }
    if let Some(reason) = missing(&["ip", "nft"]) {
        println!("skipped: {reason}");
        return;
    }
    let namespaces = Namespaces::new(&["partition"]);
    let own = std::env::current_exe().unwrap();
    let inside = namespaces
        .command("partition", own.to_str().unwrap())
        .args([
            "--exact",
            "no_partition_leaves_two_chains_serving_one_shard",
            "--nocapture",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inside.stdout);
    println!("{said}{}", String::from_utf8_lossy(&inside.stderr));
    assert!(inside.status.success() && said.contains("partitions survived"));
}

/// In a namespace of its own: packets between some addresses are dropped.
fn partitions() {
    let nft = |script: &str| {
        let done = Command::new("nft").arg(script).status().unwrap();
        assert!(done.success(), "{script}");
    };
    nft("add table ip cut; add chain ip cut drops { type filter hook input priority 0; }");
    let mut cluster = Cluster::start(84, 1, "");
    cluster.settle();
    // A server that comes back becomes the tail: in the third case server 2 follows 1.
    let cases: [(&str, &[(u8, u8)]); 4] = [
        (
            "server 1 from the others and the controller, not from switches",
            &[(1, 2), (2, 1), (1, 3), (3, 1), (1, 100), (100, 1)],
        ),
        ("server 2 from the controller", &[(2, 100), (100, 2)]),
        ("server 2 from hearing server 1", &[(1, 2)]),
        ("server 1 from being heard by the controller", &[(1, 100)]),
    ];
    for (name, cut) in cases {
        let took = cluster.survive(|cluster| {
            for (from, to) in cut {
                let (from, to) = (cluster.address(*from), cluster.address(*to));
                nft(&format!(
                    "add rule ip cut drops ip saddr {from} ip daddr {to} drop"
                ));
            }
        });
        println!("{name}: writes resumed after {took:?}");
        cluster.client.run(Duration::from_millis(300));
        nft("flush chain ip cut drops");
        cluster.settle();
    }
    cluster.verify();
    println!("partitions survived");
}
