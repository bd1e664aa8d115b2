//! Controllers whose decisions lie in a real etcd.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use stateplane_etcd::EtcdBackend;
use stateplane_host::controller::{Backend, Decided, EtcdFile, Kept, Record, Stored};
use stateplane_wire::control::{ChainConfig, Member};
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
