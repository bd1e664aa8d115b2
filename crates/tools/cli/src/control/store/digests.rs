//! `stateplane ctl store digests`: whether the replicas of each chain have one state.

use crate::control::SwitchArguments;
use crate::control::ask::Deployment;
use crate::control::{columns, row};
use crate::exit::{CommandError, Failure};
use serde_json::{Value, json};
use stateplane_host::controller::view::ChainView;
use stateplane_host::store::view::DigestView;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Attempts to find an entry that all replicas of a chain pass after they were asked.
const ATTEMPTS: usize = 5;

/// Entries ahead of the head's for which a busy chain takes about this long.
const AHEAD: Duration = Duration::from_millis(300);

/// Result of comparing a chain's replicas.
enum Outcome {
    /// All have this state.
    Same(DigestView),
    /// The replicas differ after one entry.
    Different(Vec<(Ipv4Addr, DigestView)>),
    /// No entry was found at which all could be compared.
    Unknown(String),
}

/// Compares them.
pub fn compare(switch: &SwitchArguments, deployment: &Deployment) -> Result<(), CommandError> {
    let (_, view) = deployment.leader()?;
    let mut rows = vec![row(&[&"shard", &"replicas", &"entry", &"digest"])];
    let mut values = Vec::new();
    let mut same = true;
    for chain in &view.chains {
        let members: Vec<Ipv4Addr> = chain.members.iter().map(|it| it.address).collect();
        let (entry, digest, outcome) = match compare_chain(deployment, chain, &members) {
            Outcome::Same(it) => (it.applied.to_string(), it.digest, "same"),
            Outcome::Different(all) => {
                same = false;
                let entry = all.first().map_or(0, |(_, digest)| digest.applied);
                let all = all
                    .iter()
                    .map(|(server, it)| format!("{server}: {}", it.digest));
                let text = format!("DIFFERENT: {}", all.collect::<Vec<_>>().join(", "));
                (entry.to_string(), text, "different")
            }
            Outcome::Unknown(why) => {
                same = false;
                ("?".to_owned(), why, "unknown")
            }
        };
        rows.push(row(&[&chain.chain, &members.len(), &entry, &digest]));
        values.push(json!({
            "shard": chain.chain, "members": members, "outcome": outcome, "entry": entry,
            "digest": digest,
        }));
    }
    switch.print(&Value::from(values), &columns(&rows));
    if same {
        Ok(())
    } else {
        Err(CommandError::explained(Failure::Expectation))
    }
}

fn compare_chain(deployment: &Deployment, chain: &ChainView, members: &[Ipv4Addr]) -> Outcome {
    let mut reason = String::new();
    for _ in 0..ATTEMPTS {
        let Some(at) = entry_ahead(deployment, chain.chain, members) else {
            return Outcome::Unknown("the head does not answer".to_owned());
        };
        let asked: Vec<Result<DigestView, String>> = std::thread::scope(|scope| {
            let ask = |server: &Ipv4Addr| {
                let server = *server;
                scope.spawn(move || deployment.digest(server, chain.chain, at))
            };
            let threads: Vec<_> = members.iter().map(ask).collect();
            let failed = |_| Err("a thread failed".to_owned());
            threads
                .into_iter()
                .map(|it| it.join().unwrap_or_else(failed))
                .collect()
        });
        let mut digests = Vec::new();
        for (server, digest) in members.iter().zip(asked) {
            match digest {
                Ok(digest) => digests.push((*server, digest)),
                Err(error) => reason = format!("{server}: {error}"),
            }
        }
        let Some((_, first)) = digests.first().cloned() else {
            continue;
        };
        if digests.len() < members.len() {
            continue;
        }
        if digests
            .iter()
            .any(|(_, digest)| digest.applied != first.applied)
        {
            reason = "replicas were asked at different entries: ask again".to_owned();
            continue;
        }
        return if digests
            .iter()
            .all(|(_, digest)| digest.digest == first.digest)
        {
            Outcome::Same(first)
        } else {
            Outcome::Different(digests)
        };
    }
    Outcome::Unknown(reason)
}

/// An entry that no replica has yet if the chain is busy, and the last one if it is not.
fn entry_ahead(deployment: &Deployment, chain: u16, members: &[Ipv4Addr]) -> Option<u64> {
    let head = *members.first()?;
    let applied = || {
        let store = deployment.store(head).ok()?;
        let replica = store.replicas.into_iter().find(|it| it.chain == chain)?;
        Some(replica.applied)
    };
    let (before, begin) = (applied()?, Instant::now());
    std::thread::sleep(Duration::from_millis(50));
    let (after, elapsed) = (applied()?, begin.elapsed());
    let rate = after.saturating_sub(before) as f64 / elapsed.as_secs_f64();
    Some(after + (rate * AHEAD.as_secs_f64()) as u64)
}
