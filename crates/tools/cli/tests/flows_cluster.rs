//! An engine follows the flows of a store under a controller, with sealed messages, while one server after
//! another is killed under load.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use support::cluster::{Client, Cluster, SERVERS, SHARDS, With};
use support::errors;

/// The sequence number of each shard's flow, of which everything is there that was acknowledged before.
fn numbers(cluster: &mut Cluster, rpc: &str) -> BTreeMap<u64, u64> {
    let flows = cluster.client.flows.iter();
    let before: Vec<u64> = flows.map(|(_, flow)| flow.acknowledged.into()).collect();
    let words = ["view", "--json", "--engine", rpc, "--timeout", "30"];
    let output = cluster.run(&[&words[..], &["flows", "counts", "--fresh"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["told"]["chains"], u64::from(SHARDS), "{said}");
    let flows = said["flows"].as_array().expect("flows");
    let number = |flow: &Value, of: &str| flow[of].as_u64().expect("a number");
    let read: BTreeMap<u64, u64> = flows
        .iter()
        .map(|flow| (number(flow, "shard"), number(flow, "sequence")))
        .collect();
    for (shard, before) in (0..).zip(before) {
        assert!(
            read[&shard] >= before,
            "shard {shard}: {said}, {before} was told"
        );
        let flow = &flows[shard as usize];
        let key = Client::key(shard as u16).to_string();
        assert_eq!(flow["key"].as_str(), Some(key.as_str()));
        // Each write has its own number as its state.
        let state = format!("{:016x}", read[&shard]);
        assert!(
            read[&shard] == 1 || flow["state"] == state.as_str(),
            "{flow}"
        );
    }
    read
}

#[test]
fn an_engine_follows_all_chains_whichever_server_dies() {
    let with = With {
        keys: true,
        ..With::default()
    };
    let mut cluster = Cluster::start_with(103, 1, "", with);
    let (mut engine, rpc) = cluster.start_engine();
    cluster.settle();
    let mut last = numbers(&mut cluster, &rpc);
    for host in SERVERS {
        cluster.survive(|cluster| drop(cluster.stores.remove(&host)));
        for starts in [true, false] {
            let read = numbers(&mut cluster, &rpc);
            for (shard, number) in &read {
                assert!(
                    *number > last[shard],
                    "shard {shard}: {read:?} after {last:?}"
                );
            }
            last = read;
            if starts {
                cluster.start_store(host);
                cluster.settle();
            }
        }
    }
    assert!(engine.ended().is_none(), "the engine has ended");
    cluster.verify();
}
