//! Captures of DNS and FTP through programs of `apps`: their registers say what a count of the
//! messages, made here without them, says. Without the captures the tests pass with a message.

use crate::support::{SEED, capture, datagrams};
use crate::{frame, program, words};
use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_native::Native;
use stateplane_runtime::{Engine, Entry, KeyMatch};
use stateplane_sketch::{Hash, coefficient};
use stateplane_switch::{Switch, SwitchConfig};
use std::collections::{BTreeMap, BTreeSet};

mod messages;

use messages::{Dns, Record, control, dns};

/// The IPv4 packets of a capture; `None` where it is absent.
fn captured(name: &str) -> Option<Vec<Vec<u8>>> {
    let mut packets = datagrams(&capture(name)?, usize::MAX);
    packets.retain(|ip| ip[0] >> 4 == 4);
    Some(packets)
}

/// Buckets of the programs are 2 to this, so that no two of a capture are one.
const BITS: u32 = 20;

/// A switch that has met the packets, one each µs. `set` is what the control plane does before.
fn met(path: &str, packets: &[Vec<u8>], set: impl Fn(&mut Native)) -> Switch<Native> {
    let bits = BITS.to_string();
    let macros = [
        "TTL_CHANGE_BITS",
        "MALICIOUS_DOMAIN_BITS",
        "DNS_TUNNEL_BITS",
    ];
    let program = program(path, &macros.map(|name| (name, &bits[..])));
    let mut engine = Native::new(program, Default::default()).expect("it runs");
    set(&mut engine);
    let config = SwitchConfig {
        ports: vec![0],
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(engine, config).expect("a switch");
    for (at, ip) in packets.iter().enumerate() {
        switch.handle_frame(at as u64, 0, &frame(ip.clone()));
    }
    switch
}

/// The messages of DNS among packets.
fn messages(packets: &[Vec<u8>]) -> Vec<Dns> {
    packets.iter().filter_map(|ip| dns(ip)).collect()
}

/// Elements of a register that are not 0.
fn held(switch: &Switch<Native>, register: &str) -> BTreeMap<usize, u64> {
    let values = words(switch.engine().state(), register);
    let values = values.into_iter().enumerate();
    values.filter(|(_, value)| *value != 0).collect()
}

/// The value of a function of up to four words.
fn hash<const N: usize>(function: u32, of: [u32; N]) -> u64 {
    let mut words = [0; 4];
    words[..N].copy_from_slice(&of);
    Hash::new(SEED, function).of(words)
}

fn bucket(value: u64) -> usize {
    (value >> (64 - BITS)) as usize
}

/// The hash of a name, whose labels are separated by dots.
fn name_hash(name: &str) -> [u32; 2] {
    let factor = coefficient(SEED, 513) | 1;
    let mut value = coefficient(SEED, 512);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        for octet in core::iter::once(label.len() as u8).chain(label.bytes()) {
            value = (value ^ u64::from(octet)).wrapping_mul(factor);
            value ^= value >> 32;
        }
    }
    [(value >> 32) as u32, value as u32]
}

#[test]
fn ttl_changes_are_those_of_a_capture() {
    let Some(packets) = captured("dns-responses.pcap") else {
        return;
    };
    let program = "apps/dns-ttl-change/dns_ttl_change.p4";
    let switch = met(program, &packets, |_| ());
    let mut last: BTreeMap<(String, u16), (u32, u64)> = BTreeMap::new();
    for message in messages(&packets).iter().filter(|it| it.is_response) {
        let Some(first) = message.answers.first() else {
            continue;
        };
        assert_eq!(first.owner, message.name, "an answer about another name");
        let key = (message.name.clone(), message.kind);
        let (ttl, changes) = last.entry(key).or_insert((first.ttl, 0));
        if *ttl != first.ttl {
            (*ttl, *changes) = (first.ttl, *changes + 1);
        }
    }
    let changed = last.values().filter(|(_, changes)| *changes > 0).count();
    assert_eq!(changed, 15, "names that change their TTL");
    let (mut changes, mut ttls) = (BTreeMap::new(), BTreeMap::new());
    for ((name, kind), (ttl, count)) in &last {
        let [high, low] = name_hash(name);
        let words = [high, low, u32::from(*kind)];
        let place = bucket(hash(0, words));
        let before = changes.insert(place, (hash(1, words) >> 16 | 1) << 16 | count);
        assert_eq!(before, None, "two names have one bucket");
        if *ttl != 0 {
            ttls.insert(place, u64::from(*ttl));
        }
    }
    assert_eq!(held(&switch, "changes"), changes);
    assert_eq!(held(&switch, "ttls"), ttls);
}

/// The records that the program parses: the first eight, up to one whose name is written out or whose
/// data is longer than 255 bytes.
fn parsed(message: &Dns) -> impl Iterator<Item = &Record> {
    let records = message.answers.iter().take(8);
    records.take_while(|record| record.is_pointer && record.data.len() < 256)
}

/// The addresses that the program keeps of a response: the first four.
fn kept(message: &Dns) -> Vec<Ipv4Addr> {
    parsed(message)
        .filter_map(Record::address)
        .take(4)
        .collect()
}

/// True if the program keeps all addresses.
fn keeps_all(message: &Dns) -> bool {
    let all = message.answers.iter().filter_map(Record::address);
    parsed(message).count() == message.answers.len() && all.count() <= 4
}

#[test]
fn partners_are_those_of_a_capture() {
    let Some(packets) = captured("dns-responses.pcap") else {
        return;
    };
    let program = "apps/dns-malicious-domain/dns_malicious_domain.p4";
    let switch = met(program, &packets, |_| ());
    let mut of_names: BTreeMap<String, BTreeSet<Ipv4Addr>> = BTreeMap::new();
    let mut of_addresses: BTreeMap<Ipv4Addr, BTreeSet<String>> = BTreeMap::new();
    for message in messages(&packets).iter().filter(|it| it.is_response) {
        for address in kept(message) {
            let names = of_addresses.entry(address).or_default();
            names.insert(message.name.clone());
            let addresses = of_names.entry(message.name.clone()).or_default();
            addresses.insert(address);
        }
    }
    assert!(of_names.len() > 50 && of_names.values().any(|it| it.len() > 4));
    let domains = of_names.iter().map(|(name, addresses)| {
        let words = name_hash(name);
        let tag = u64::from(words[0] & 0xff) << 32 | u64::from(words[1]);
        let place = bucket(hash(2, words));
        (place, tag << 24 | addresses.len() as u64)
    });
    let domains: BTreeMap<usize, u64> = domains.collect();
    assert_eq!(domains.len(), of_names.len(), "two names have one bucket");
    assert_eq!(held(&switch, "domains"), domains);
    let addresses = of_addresses.iter().map(|(address, names)| {
        let place = bucket(hash(3, [address.to_bits()]));
        let held = u64::from(address.to_bits()) << 32 | names.len() as u64;
        (place, held)
    });
    let addresses: BTreeMap<usize, u64> = addresses.collect();
    assert_eq!(addresses.len(), of_addresses.len());
    assert_eq!(held(&switch, "addresses"), addresses);
}

/// Adds an entry to a table.
fn entry(engine: &mut Native, table: &str, keys: Vec<KeyMatch>, action: &str) {
    let priority = match keys[0] {
        KeyMatch::Exact(_) => 0,
        _ => 1,
    };
    let table = engine.state_mut().table_mut(table).expect("a table");
    let entry = Entry {
        keys,
        priority,
        action: action.to_owned(),
        data: Vec::new(),
    };
    table.insert(&entry).expect("an entry");
}

#[test]
fn a_tunnel_is_blocked_and_other_clients_have_what_they_did_not_use() {
    let program = "apps/dns-tunnel/dns_tunnel.p4";
    let null = |engine: &mut Native| {
        let keys = vec![KeyMatch::Exact(BigUint::from(10_u32))];
        let (table, action) = ("DnsIngress.unusable_types", "DnsIngress.unusable");
        entry(engine, table, keys, action);
    };
    let clients = |counts: &BTreeMap<Ipv4Addr, u64>| {
        let clients = counts.iter().map(|(client, count)| {
            let place = bucket(hash(1, [client.to_bits()]));
            (place, u64::from(client.to_bits()) << 32 | count)
        });
        clients.collect::<BTreeMap<usize, u64>>()
    };
    if let Some(packets) = captured("dns-tunnel.pcap") {
        let switch = met(program, &packets, null);
        // iodine: an answer of type NULL to each query. The 101st is beyond the threshold.
        let mut counts = BTreeMap::new();
        let mut dropped = 0;
        let all = messages(&packets);
        assert_eq!(all.len(), packets.len(), "other traffic");
        for message in &all {
            let count = counts.entry(message.client).or_insert(0_u64);
            if *count > 100 {
                dropped += 1;
            } else if message.is_response {
                assert_eq!((message.kind, message.answers.len()), (10, 1));
                *count += 1;
            }
        }
        assert!(dropped > 100);
        let blocked = clients(&counts);
        let blocked = blocked.into_iter();
        let blocked: BTreeMap<usize, u64> =
            blocked.map(|(at, held)| (at, held | 1 << 16)).collect();
        assert_eq!(held(&switch, "clients"), blocked);
        let events = switch.engine().state().counter("tunnel_events");
        assert_eq!(events.expect("a counter").counts()[4].packets, dropped);
    }
    if let Some(packets) = captured("dns-responses.pcap") {
        let switch = met(program, &packets, null);
        let (mut counts, mut orphans) = (BTreeMap::new(), BTreeSet::new());
        for packet in &packets {
            let address = |at: usize| {
                Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3])
            };
            match dns(packet).filter(|message| message.is_response) {
                Some(message) if keeps_all(&message) => {
                    let pairs = kept(&message).into_iter();
                    let pairs = pairs.map(|address| (message.client, address));
                    // Each is kept, though an earlier one is new.
                    let new = pairs.filter(|pair| orphans.insert(*pair)).count();
                    *counts.entry(message.client).or_insert(0_u64) += u64::from(new > 0);
                }
                Some(_) => (),
                None => {
                    let (client, used) = (address(12), address(16));
                    if orphans.remove(&(client, used)) {
                        let count = counts.entry(client).or_insert(0);
                        *count = count.saturating_sub(1);
                    }
                }
            }
        }
        assert!(counts.values().any(|count| *count > 20), "{counts:?}");
        assert!(counts.values().all(|count| *count <= 100), "{counts:?}");
        assert_eq!(held(&switch, "clients"), clients(&counts));
        let pairs = orphans.iter().map(|(client, address)| {
            let pair = [client.to_bits(), address.to_bits()];
            let place = bucket(hash(0, pair));
            (place, u64::from(pair[0]) << 32 | u64::from(pair[1]))
        });
        let pairs: BTreeMap<usize, u64> = pairs.collect();
        assert_eq!(pairs.len(), orphans.len(), "two pairs have one place");
        assert_eq!(held(&switch, "orphans"), pairs);
    }
}

#[test]
fn responses_without_queries_are_those_of_a_capture() {
    for name in ["dns-responses.pcap", "dns-tunnel.pcap"] {
        let Some(packets) = captured(name) else {
            continue;
        };
        // Whole, and without the first packets, as for a switch that starts in between.
        for packets in [&packets[..], &packets[41..]] {
            let program = "apps/dns-amplification/dns_amplification.p4";
            let switch = met(program, packets, |_| ());
            let (mut queries, mut dropped) = (BTreeSet::new(), BTreeMap::new());
            for message in messages(packets) {
                let key = (message.client, message.server, message.port, message.id);
                if !message.is_response {
                    queries.insert(key);
                } else if !queries.contains(&key) {
                    let low = message.client.to_bits() as usize & 0xffff;
                    *dropped.entry(low).or_insert(0_u64) += 1;
                }
            }
            assert!(queries.len() > 100, "{name}");
            assert_eq!(held(&switch, "dropped"), dropped, "{name}");
        }
    }
}

#[test]
fn data_connections_are_those_that_a_capture_announces() {
    let Some(packets) = captured("ftp-sessions.pcap") else {
        return;
    };
    let guard = |engine: &mut Native| {
        let server = || KeyMatch::Mask {
            value: BigUint::from(0x0aa7_1965_u32),
            mask: BigUint::from(u32::MAX),
        };
        let table = "FtpIngress.servers";
        let (to, from) = ("server_is_destination", "server_is_source");
        let action = format!("FtpIngress.{to}");
        entry(engine, table, vec![KeyMatch::Any, server()], &action);
        let action = format!("FtpIngress.{from}");
        entry(engine, table, vec![server(), KeyMatch::Any], &action);
    };
    let switch = met("apps/ftp-monitor/ftp_monitor.p4", &packets, guard);
    let mut channels = BTreeMap::new();
    let (mut announced, mut ports) = (0, BTreeSet::new());
    for message in packets.iter().filter_map(|ip| control(ip)) {
        // 227 Entering Passive Mode (205,167,25,101,251,88).
        let Some(rest) = message.text.strip_prefix("227 ") else {
            continue;
        };
        let numbers = rest.split(['(', ')']).nth(1).expect("parentheses");
        let numbers: Vec<u8> = numbers
            .split(',')
            .map(|it| it.parse().expect("a number"))
            .collect();
        // The capture's addresses are others than those that the server knew.
        assert_eq!(numbers[..4], [205, 167, 25, 101]);
        let port = u32::from(u16::from_be_bytes([numbers[4], numbers[5]]));
        let key = [
            message.source.to_bits(),
            message.destination.to_bits(),
            port,
        ];
        let place = (hash(0, key) >> 48) as usize;
        channels.insert(place, hash(1, key) >> 2 << 2 | 1);
        ports.insert(port);
        announced += 1;
    }
    assert_eq!(announced, 689);
    assert!(ports.len() > 600, "{} ports", ports.len());
    assert_eq!(held(&switch, "channels"), channels);
    assert_eq!(held(&switch, "refused"), BTreeMap::new());
    let events = switch.engine().state().counter("ftp_events");
    let events = events.expect("a counter").counts();
    assert_eq!(events[0].packets, announced);
    assert_eq!(events[3].packets, 0, "control connections pass");
}
