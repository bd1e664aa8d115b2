//! Controllers whose decisions, and engines of sync whose facts, lie in a real etcd.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use stateplane_etcd::{EtcdBackend, EtcdSyncStore};
use stateplane_host::controller::{Backend, Decided, EtcdFile, Kept, Record, Stored};
use stateplane_host::remote::{RemoteCalls, remote};
use stateplane_host::sync::{
    Ask, Fact, Outcomes, Progress, SharedStore, SyncEtcdFile, Told, Window,
};
use stateplane_sync::election::{Answer, Holder, Request};
use stateplane_wire::control::{ChainConfig, Member};
use stateplane_wire::sync::Outcome;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use support::cluster::Cluster;
use support::etcd::Etcd;

fn file(etcd: &Etcd, prefix: &str) -> EtcdFile {
    EtcdFile {
        endpoints: vec![etcd.endpoint.clone()],
        prefix: format!("/{prefix}-{}", std::process::id()),
        lease_s: 2,
        tls_roots: None,
        tls_certificate: None,
        tls_key: None,
    }
}

fn backend(file: &EtcdFile, name: &str) -> EtcdBackend {
    EtcdBackend::new(file, name, |_| {}).unwrap()
}

fn lead(backend: &mut EtcdBackend) -> Kept {
    backend.lead(&AtomicBool::new(false)).unwrap().unwrap()
}

fn config(chain: u16, epoch: u32) -> Decided {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4793);
    Decided::Chain(ChainConfig {
        chain,
        epoch,
        members: vec![Member {
            server: epoch,
            incarnation: 1,
            requests: address,
            links: address,
        }],
        joining: None,
    })
}

fn store(backend: &mut EtcdBackend, configs: &[(u16, u32)]) -> Stored {
    let records = configs
        .iter()
        .map(|(chain, epoch)| Record::Config(config(*chain, *epoch)));
    backend.store(&records.collect::<Vec<_>>()).unwrap()
}

#[test]
fn one_of_two_leads_and_the_other_goes_on_from_what_it_decided() {
    let Some(etcd) = Etcd::start() else { return };
    let file = file(&etcd, "two");
    let mut first = backend(&file, "first");
    assert_eq!(lead(&mut first), Kept::default());
    assert_eq!(store(&mut first, &[(1, 1), (2, 1)]), Stored::Kept);
    assert_eq!(store(&mut first, &[(1, 2)]), Stored::Kept);
    let drained = |drained| Record::Drained { server: 9, drained };
    assert_eq!(first.store(&[drained(true)]).unwrap(), Stored::Kept);
    let (sender, led) = mpsc::channel();
    let other = file.clone();
    let waiting = std::thread::spawn(move || {
        let mut second = backend(&other, "second");
        let kept = lead(&mut second);
        sender.send(()).unwrap();
        (second, kept)
    });
    assert!(led.recv_timeout(Duration::from_millis(500)).is_err());
    assert!(first.leads());
    // It gives its lease back: the other does not wait for its end.
    let begin = Instant::now();
    drop(first);
    led.recv_timeout(Duration::from_secs(20)).unwrap();
    println!("the other led after {:?}", begin.elapsed());
    let (mut second, kept) = waiting.join().unwrap();
    assert_eq!(kept.configs[&1], config(1, 2));
    assert_eq!(kept.configs[&2], config(2, 1));
    assert_eq!(Vec::from_iter(kept.drained), [9]);
    assert_eq!(second.store(&[drained(false)]).unwrap(), Stored::Kept);
    assert_eq!(store(&mut second, &[(2, 2)]), Stored::Kept);
    assert_eq!(lead(&mut second).drained.len(), 0);
}

#[test]
fn who_does_not_know_the_last_configuration_makes_none() {
    let Some(etcd) = Etcd::start() else { return };
    if !etcd.is_own() {
        println!("skipped: the leases of STATEPLANE_ETCD are others'");
        return;
    }
    let file = file(&etcd, "stale");
    let mut first = backend(&file, "first");
    lead(&mut first);
    assert_eq!(store(&mut first, &[(1, 1)]), Stored::Kept);
    // Its lease ends, as while it stands still, and another leads.
    etcd.end_leases();
    let mut second = backend(&file, "second");
    let kept = lead(&mut second);
    assert_eq!(kept.configs[&1], config(1, 1));
    assert_eq!(store(&mut first, &[(1, 2), (7, 1)]), Stored::LeadAnew);
    assert_eq!(store(&mut second, &[(1, 2)]), Stored::Kept);
    assert_eq!(store(&mut first, &[(1, 2)]), Stored::LeadAnew);
    drop(second);
    // It leads again, but only by what was decided meanwhile.
    let kept = lead(&mut first);
    assert_eq!(kept.configs.len(), 1);
    assert_eq!(kept.configs[&1], config(1, 2));
    assert_eq!(store(&mut first, &[(1, 3)]), Stored::Kept);
}

#[test]
fn without_etcd_nobody_leads_and_nothing_is_kept() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    if !etcd.is_own() {
        println!("skipped: the etcd of STATEPLANE_ETCD is not to be stopped");
        return;
    }
    let told = Arc::new(AtomicU64::new(0));
    let count = told.clone();
    let file = file(&etcd, "gone");
    let backend = EtcdBackend::new(&file, "only", move |error| {
        assert_eq!(error.code(), "H425");
        count.fetch_add(1, Ordering::Relaxed);
    });
    let backend = &mut backend.unwrap();
    lead(backend);
    assert_eq!(store(backend, &[(1, 1)]), Stored::Kept);
    etcd.kill();
    assert_eq!(store(backend, &[(1, 2)]), Stored::LeadAnew);
    assert!(told.load(Ordering::Relaxed) > 0);
    let begin = Instant::now();
    while backend.leads() {
        assert!(begin.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
    etcd.run();
    assert_eq!(lead(backend).configs[&1], config(1, 1));
    assert_eq!(store(backend, &[(1, 2)]), Stored::Kept);
}

#[test]
fn the_next_controller_takes_over_when_the_leader_is_killed_under_load() {
    let Some(etcd) = Etcd::start() else { return };
    let file = file(&etcd, "cluster");
    let more = format!(
        "[controller.etcd]\nendpoints = [{:?}]\nprefix = {:?}\nlease_s = 2",
        file.endpoints[0], file.prefix
    );
    let mut cluster = Cluster::start(85, 2, &more);
    cluster.settle();
    for host in [1, 2, 3] {
        let leads = |cluster: &mut Cluster| {
            let servers = cluster.told(&["servers"]);
            let line = servers.lines().find(|line| line.starts_with("controller "));
            let leader = line.and_then(|line| line.split(' ').nth(1)).unwrap();
            *leader.parse::<Ipv4Addr>().unwrap().octets().last().unwrap()
        };
        let leader = leads(&mut cluster);
        // The chains change when nobody leads, and the next one has to see to it.
        let took = cluster.survive(|cluster| {
            drop(cluster.controllers.remove(&leader));
            drop(cluster.stores.remove(&host));
        });
        println!("controller {leader} and server {host} killed: writes resumed after {took:?}");
        assert_ne!(leads(&mut cluster), leader);
        cluster.start_store(host);
        cluster.start_controller(leader);
        cluster.settle();
    }
    cluster.verify();
}

/// A store of an engine of sync, and what it tells.
struct Shared {
    store: EtcdSyncStore,
    calls: RemoteCalls<Outcomes>,
    queue: Outcomes,
    nonce: u64,
}

impl Shared {
    fn new(etcd: &Etcd, prefix: &str, nonce: u64) -> Shared {
        let file = SyncEtcdFile {
            endpoints: vec![etcd.endpoint.clone()],
            prefix: format!("/{prefix}-{}", std::process::id()),
            detection_ms: 4_000,
            announce: None,
            tls_roots: None,
            tls_certificate: None,
            tls_key: None,
        };
        let (outcomes, calls) = remote().unwrap();
        Shared {
            store: EtcdSyncStore::new(&file, outcomes, |_| {}).unwrap(),
            calls,
            queue: Outcomes::default(),
            nonce,
        }
    }

    fn next(&mut self) -> Told {
        let begin = Instant::now();
        loop {
            while let Some(call) = self.calls.poll() {
                call(&mut self.queue);
            }
            if let Some(told) = self.queue.pop() {
                return told;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "no answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn elect(&mut self, request: Request) -> Answer {
        self.store.ask(Ask::Elect(request));
        match self.next() {
            Told::Elected(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// Answer to a look, once etcd answers: it has just been started.
    fn look(&mut self) -> Answer {
        loop {
            match self.elect(Request::Look) {
                Answer::Failed => std::thread::sleep(Duration::from_millis(20)),
                seen => return seen,
            }
        }
    }

    fn holder(&self, term: u64) -> Holder {
        Holder {
            term,
            nonce: self.nonce,
            left: false,
            address: "10.0.0.1:9560".to_owned(),
        }
    }

    /// Takes the place of whoever leads; gives the facts.
    fn lead(&mut self, term: u64) -> Vec<Fact> {
        let Answer::Seen { revision, .. } = self.look() else {
            panic!("no look");
        };
        let holder = self.holder(term);
        let taken = self.elect(Request::Take { revision, holder });
        assert_eq!(taken, Answer::Done);
        self.store.ask(Ask::Load { term });
        match self.next() {
            Told::Loaded { term: of, facts } if of == term => facts.expect("facts"),
            other => panic!("{other:?}"),
        }
    }

    fn keeps(&mut self, term: u64, facts: Vec<Fact>) -> bool {
        self.store.ask(Ask::Store { term, facts });
        match self.next() {
            Told::Stored { term: of, kept } if of == term => kept,
            other => panic!("{other:?}"),
        }
    }
}

fn window(number: u64, oldest: u64, bytes: usize) -> Fact {
    Fact::Window {
        group: "a/b".to_owned(),
        window: Window {
            number,
            incarnation: 7,
            epoch: number as u32,
            values: Arc::new((0..bytes).map(|at| (at as u64 * number) as u8).collect()),
        },
        oldest,
    }
}

fn windows(facts: &[Fact]) -> Vec<&Window> {
    let windows = facts.iter().filter_map(|fact| match fact {
        Fact::Window { group, window, .. } if group == "a/b" => Some(window),
        _ => None,
    });
    windows.collect()
}

#[test]
fn an_engine_of_sync_finds_all_that_the_last_kept_and_the_last_keeps_nothing_more() {
    let Some(etcd) = Etcd::start() else { return };
    let (mut first, mut second) = (Shared::new(&etcd, "sync", 1), Shared::new(&etcd, "sync", 2));
    assert_eq!(first.lead(5), []);
    let epochs = |last| Fact::Epochs {
        group: "a/b".to_owned(),
        epochs: vec![(3, 9), (7, last)],
    };
    let write = |number: u64, progress| Fact::Write {
        number,
        id: [number as u8; 16],
        progress,
    };
    // 2^18 values are two pieces, and one more is three.
    let long = 8 * ((1 << 18) + 1);
    let mut facts = vec![window(1, 1, long), window(2, 1, 8), epochs(2)];
    facts.extend((0..300).map(|number| write(number, Progress::Begun)));
    assert!(first.keeps(5, facts));
    let ended = write(299, Progress::Ended(Outcome::Done));
    assert!(first.keeps(5, vec![ended.clone(), window(3, 2, 16), epochs(3)]));
    let renewed = first.elect(Request::Renew {
        holder: first.holder(5),
    });
    assert_eq!(renewed, Answer::Done);

    // The second sees the first, and takes its place.
    let Answer::Seen {
        revision,
        holder,
        term,
    } = second.look()
    else {
        panic!("no look");
    };
    assert_eq!((holder, term), (Some(first.holder(5)), 5));
    let stale = Request::Take {
        revision: revision - 1,
        holder: second.holder(6),
    };
    assert_eq!(second.elect(stale), Answer::Refused);
    let facts = second.lead(6);
    let found = windows(&facts);
    let expected = [window(2, 0, 8), window(3, 0, 16)];
    assert_eq!(found, windows(&expected), "the first is forgotten");
    assert!(facts.contains(&epochs(3)) && facts.contains(&ended));
    assert_eq!(facts.len(), 2 + 1 + 300);
    assert!(!first.keeps(5, vec![window(4, 4, 8)]));
    let lost = first.elect(Request::Renew {
        holder: first.holder(5),
    });
    assert_eq!(lost, Answer::Refused);
    let late = first.elect(Request::Leave {
        holder: first.holder(5),
    });
    assert_eq!(late, Answer::Refused);

    // A window of more pieces than the one before it, then one that is forgotten with them.
    assert!(second.keeps(6, vec![window(4, 4, long), epochs(4)]));
    let left = second.elect(Request::Leave {
        holder: second.holder(6),
    });
    assert_eq!(left, Answer::Done);
    let facts = first.lead(7);
    assert_eq!(windows(&facts), windows(&[window(4, 0, long)]));
    assert!(first.keeps(7, vec![window(5, 5, 8)]));
    assert_eq!(
        etcd.count(&format!("/sync-{}/pieces/", std::process::id())),
        1
    );
    assert_eq!(windows(&second.lead(8)), windows(&[window(5, 0, 8)]));
}

#[test]
fn what_an_engine_of_sync_keeps_waits_for_etcd_and_is_kept_once() {
    let Some(mut etcd) = Etcd::start() else {
        return;
    };
    if !etcd.is_own() {
        println!("skipped: the etcd of STATEPLANE_ETCD is not to be stopped");
        return;
    }
    let mut only = Shared::new(&etcd, "sync-gone", 1);
    only.lead(1);
    assert!(only.keeps(1, vec![window(1, 1, 8)]));
    etcd.kill();
    only.store.ask(Ask::Store {
        term: 1,
        facts: vec![window(2, 1, 8)],
    });
    let holder = only.holder(1);
    assert_eq!(only.elect(Request::Renew { holder }), Answer::Failed);
    etcd.run();
    let Told::Stored { term: 1, kept } = only.next() else {
        panic!("another outcome");
    };
    assert!(kept);
    assert_eq!(windows(&only.lead(2)).len(), 2);
}
