//! The page of metrics: each as its process writes it, and the events that it counts.

use super::keys::cell;
use super::source::{Sources, docs, root};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Ident, Item, LitStr, Token};

use stateplane_host::controller::view::{
    ChainView, GroupView, MemberView, MulticastGroupView, MulticastReceiverView, ServerView,
};
use stateplane_host::controller::{
    ControllerReport, ControllerView, CoordinationView, MulticastView,
};
use stateplane_host::metrics::{
    SwitchInfo, controller_metrics, store_metrics, switch_metrics, sync_metrics,
};
use stateplane_host::ports::{HostPortCounters, PortMode};
use stateplane_host::sealing;
use stateplane_host::store::view::{PoolView, ReplicaView, ServiceServerView, StoreView};
use stateplane_host::store::{DiskReport, StoreReport};
use stateplane_host::switch::{
    ControlReport, CounterReport, GreetingReport, HeadReport, PortReport, ProgramReport,
    SealReport, SwitchReport, TableReport, TermHeadReport, TermReport, WorkerReport,
};
use stateplane_host::sync::{FlowsReport, GroupReport, SyncReport};
use stateplane_runtime::Count;
use stateplane_switch::DropReason;

/// Structs whose fields are events of a metric: metric, file, struct.
const EVENTS: [(&str, &str, &str); 5] = [
    (
        "stateplane_store_events",
        "crates/edge/host/src/store/server.rs",
        "StoreReport",
    ),
    (
        "stateplane_controller_events",
        "crates/edge/host/src/controller/server.rs",
        "ControllerReport",
    ),
    (
        "stateplane_coordination_events",
        "crates/systems/coordination/groups/src/controller.rs",
        "ControllerCounters",
    ),
    (
        "stateplane_sealed_messages",
        "crates/edge/host/src/switch/report.rs",
        "SealReport",
    ),
    (
        "stateplane_port_lost_packets",
        "crates/edge/host/src/ports/port.rs",
        "HostPortCounters",
    ),
];

/// Files of the P4 library that name the indices of a counter.
const INDICES: [&str; 6] = [
    "p4/lib/replication/events.p4",
    "p4/lib/coordination/events.p4",
    "p4/lib/multicast/events.p4",
    "p4/lib/sync/events.p4",
    "p4/lib/snapshot.p4",
    "apps/firewall/firewall.p4",
];

/// One metric.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    labels: Vec<String>,
    /// Values of the label that tells the kinds of one metric apart.
    values: BTreeSet<String>,
}

/// The page.
pub fn page(sources: &Sources) -> String {
    let mut text = super::HEAD.to_owned()
        + "# Metrics\n\nOpenMetrics text at `/metrics` (`--metrics ADDRESS`, and `operator_port` of \
           servers and controllers).\nCounters begin at 0 when the process starts.\n";
    for (title, metrics) in [
        ("Switch", switch()),
        ("Store server", store()),
        ("Controller", controller()),
        ("Engine of sync", engine()),
    ] {
        let families = families(&metrics);
        text += &format!(
            "\n## {title}\n\n| metric | kind | labels | unit | meaning |\n|---|---|---|---|---|\n"
        );
        for (name, family) in &families {
            let (whole, kind) = match family.kind.as_str() {
                "counter" => (format!("{name}_total"), "counter"),
                kind => (name.clone(), kind),
            };
            let labels = family.labels.iter().map(|label| format!("`{label}`"));
            let labels = labels.collect::<Vec<_>>().join(", ");
            let help = cell(family.help.trim_end_matches('.'));
            text += &format!(
                "| `{whole}` | {kind} | {labels} | {} | {help} |\n",
                unit(name)
            );
        }
        for (name, family) in &families {
            if let Some(events) = events(sources, name, family) {
                text += &format!("\n### Values of `{name}`\n\n| value | meaning |\n|---|---|\n");
                for (event, meaning) in events {
                    text += &format!("| `{event}` | {} |\n", cell(&meaning));
                }
            }
        }
    }
    text + &indices()
}

fn unit(name: &str) -> &'static str {
    let units = [
        ("_seconds", "s"),
        ("_microseconds", "µs"),
        ("_bytes", "bytes"),
        ("_packets", "packets"),
        ("_messages", "messages"),
        ("_datagrams", "datagrams"),
        ("_connections", "connections"),
    ];
    // `_microseconds` does not end in `_seconds`.
    units
        .iter()
        .find(|(end, _)| name.ends_with(end))
        .map_or("", |(_, unit)| unit)
}

/// Metrics of OpenMetrics text, in its order of names.
fn families(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for line in text.lines() {
        if let Some(said) = line.strip_prefix("# HELP ") {
            let (name, help) = said.split_once(' ').expect("a name and its help");
            families.entry(name.to_owned()).or_default().help = help.to_owned();
        } else if let Some(said) = line.strip_prefix("# TYPE ") {
            let (name, kind) = said.split_once(' ').expect("a name and its kind");
            families.entry(name.to_owned()).or_default().kind = kind.to_owned();
        } else if let Some((name, rest)) = line.split_once('{') {
            let name = name.strip_suffix("_total").unwrap_or(name);
            let family = families
                .get_mut(name)
                .unwrap_or_else(|| panic!("{name} has no help"));
            let (labels, _) = rest.rsplit_once('}').expect("labels end");
            let pairs = labels
                .split("\",")
                .filter_map(|pair| pair.split_once("=\""));
            let pairs: Vec<(&str, &str)> = pairs.collect();
            family.labels = pairs.iter().map(|(label, _)| (*label).to_owned()).collect();
            if let Some((_, value)) = pairs.last() {
                family.values.insert(value.trim_end_matches('"').to_owned());
            }
        }
    }
    families.retain(|_, family| !family.kind.is_empty());
    for (name, family) in &families {
        let labelled = !family.values.is_empty() || family.labels.is_empty();
        assert!(
            labelled && !family.help.is_empty(),
            "{name} has no sample or no help"
        );
    }
    families
}

/// The events that a metric counts, with their meanings; `None` if its labels have no fixed values.
fn events(sources: &Sources, name: &str, family: &Family) -> Option<Vec<(String, String)>> {
    if name == "stateplane_dropped_packets" {
        let meanings = drop_reasons();
        let reasons = DropReason::ALL.iter().map(|reason| {
            let name = reason.name().to_owned();
            let meaning = meanings[&name].clone();
            (name, meaning)
        });
        return Some(reasons.collect());
    }
    let (_, file, shape) = EVENTS.iter().find(|(of, ..)| *of == name)?;
    let mut meanings = BTreeMap::new();
    collect(sources, file, shape, &mut meanings);
    meanings.insert(
        "broken_invariants".to_owned(),
        "Broken invariants, whichever; one that broke has an event `broken_NAME` besides \
         (`stateplane explain SI001` and following)."
            .to_owned(),
    );
    let told = family.values.iter().map(|event| {
        let meaning = meanings.get(event);
        let meaning = meaning.unwrap_or_else(|| panic!("{name}: no meaning of {event}"));
        (event.clone(), meaning.clone())
    });
    Some(told.collect())
}

/// Notes the meanings of the counts in a struct and in the structs that it is made of.
fn collect(sources: &Sources, file: &str, name: &str, meanings: &mut BTreeMap<String, String>) {
    for field in &sources.named(file, name).fields {
        let ty = field.ty.as_ref().expect("a count has a type");
        let inner = super::source::arguments(ty)
            .pop()
            .unwrap_or_else(|| ty.clone());
        match sources.shape(file, &inner) {
            Some((inner, shape)) if !shape.is_enum => {
                collect(sources, &shape.file.clone(), &inner, meanings);
            }
            _ => {
                let at = meanings.entry(field.name.clone()).or_default();
                if !at.contains(&field.docs) {
                    *at = format!("{at} {}", field.docs).trim().to_owned();
                }
            }
        }
    }
}

/// One line of `drop_reasons!`.
struct Reason {
    attributes: Vec<Attribute>,
    name: LitStr,
}

impl Parse for Reason {
    fn parse(input: ParseStream) -> syn::Result<Reason> {
        let attributes = input.call(Attribute::parse_outer)?;
        let _: Ident = input.parse()?;
        let _: Token![=] = input.parse()?;
        Ok(Reason {
            attributes,
            name: input.parse()?,
        })
    }
}

/// Meanings of the reasons for which the switch drops packets.
fn drop_reasons() -> BTreeMap<String, String> {
    let path = root().join("crates/engine/switch/src/counters.rs");
    let file = syn::parse_file(&std::fs::read_to_string(path).expect("a file")).expect("Rust");
    let called = file.items.into_iter().find_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("drop_reasons") => Some(item.mac),
        _ => None,
    });
    let parser = syn::punctuated::Punctuated::<Reason, Token![,]>::parse_terminated;
    let reasons = called
        .expect("a list of reasons")
        .parse_body_with(parser)
        .expect("reasons");
    let named = reasons
        .into_iter()
        .map(|reason| (reason.name.value(), docs(&reason.attributes)));
    named.collect()
}

/// The events of the library's counters, which `stateplane_counter_packets` has by index.
fn indices() -> String {
    let mut text = "\n## Counters of the P4 library\n\n`stateplane_counter_packets_total` has the \
                    program's own counters. Indices of those of the library:\n"
        .to_owned();
    for path in INDICES {
        let program = std::fs::read_to_string(root().join(path)).expect("a P4 file");
        let (_, list) = program
            .split_once("// Indices of `")
            .expect("a list of indices");
        let (counter, list) = list.split_once('`').expect("the counter's name");
        let events = list.lines().skip(1).map_while(|line| {
            let said = line.strip_prefix("const bit<32> ")?;
            let (name, index) = said.trim_end_matches(';').split_once(" = ")?;
            Some((name.to_ascii_lowercase(), index.to_owned()))
        });
        // The last one is the counter's size.
        let mut events: Vec<_> = events.collect();
        events.pop();
        assert!(!events.is_empty(), "{path}: no indices");
        text += &format!("\n### `{counter}` ([{path}](../../{path}))\n\n");
        for (name, index) in events {
            text += &format!("* {index}: `{name}`\n");
        }
    }
    text
}

const ANY: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn switch() -> String {
    let report = SwitchReport {
        ports: vec![PortReport {
            port: 0,
            interface: "eth0".to_owned(),
            mode: PortMode::Packet,
            up: true,
            rx_packets: 0,
            rx_bytes: 0,
            tx_packets: 0,
            tx_bytes: 0,
            host: HostPortCounters::default(),
        }],
        drops: DropReason::ALL
            .iter()
            .map(|reason| (reason.name(), 0))
            .collect(),
        seals: Some(SealReport::default()),
        greeting: Some(GreetingReport {
            admitted: true,
            heads: vec![HeadReport {
                address: ANY,
                port: 0,
                fits: true,
                differences: Vec::new(),
                silent_ms: None,
            }],
        }),
        terms: Some(TermReport {
            heads: vec![TermHeadReport {
                address: ANY,
                silent_ms: 0,
            }],
            ..TermReport::default()
        }),
        control: Some(ControlReport::default()),
        workers: vec![WorkerReport::default()],
        ..SwitchReport::default()
    };
    let program = ProgramReport {
        tables: vec![TableReport {
            name: "t".to_owned(),
            entries: 0,
            size: 0,
            hits: Some(Count::default()),
        }],
        counters: vec![CounterReport {
            name: "c".to_owned(),
            counts: vec![(0, Count::default())],
        }],
        ..ProgramReport::default()
    };
    let info = SwitchInfo {
        program: "nat.p4".to_owned(),
        engine: "native",
    };
    switch_metrics(&info, &report, &program)
}

fn store() -> String {
    let endpoint = SocketAddrV4::new(ANY, 1);
    let replica = ReplicaView {
        chain: 0,
        epoch: 1,
        position: 0,
        length: 1,
        applied: 0,
        base: 0,
        records: 0,
        parked: 0,
        pools: vec![PoolView {
            address: ANY,
            protocol: 6,
            size: 0,
            free: 0,
        }],
        servers: vec![ServiceServerView {
            service: endpoint,
            protocol: 6,
            server: endpoint,
            weight: 1,
            flows: 0,
            healthy: true,
        }],
        silenced: None,
    };
    let view = StoreView {
        address: ANY,
        incarnation: 1,
        replicas: vec![replica],
    };
    let report = StoreReport {
        seals: Some(sealing::SealReport::default()),
        disk: Some(DiskReport::default()),
        ..StoreReport::default()
    };
    store_metrics(&report, &view)
}

fn controller() -> String {
    let report = ControllerReport {
        coordination: Some(stateplane_groups::ControllerCounters::default()),
        multicast: Some(stateplane_multicast_groups::ControllerCounters::default()),
        seals: Some(sealing::SealReport::default()),
        ..ControllerReport::default()
    };
    let member = MemberView {
        address: ANY,
        alive: true,
        follows: true,
    };
    let view = ControllerView {
        servers: vec![ServerView {
            address: ANY,
            incarnation: 1,
            alive: true,
            drained: false,
        }],
        chains: vec![ChainView {
            chain: 0,
            epoch: 1,
            members: vec![member.clone()],
            joining: None,
            lacking_for_ms: None,
        }],
        ..ControllerView::default()
    };
    let groups = CoordinationView {
        groups: vec![GroupView {
            group: 1,
            generation: 1,
            epoch: 1,
            members: vec![member],
            joining: None,
            newest: None,
            lacking_for_ms: None,
        }],
        ..CoordinationView::default()
    };
    let receiver = MulticastReceiverView {
        number: 0,
        address: Ipv4Addr::LOCALHOST,
        behind: Some(0),
    };
    let multicast = MulticastView {
        groups: vec![MulticastGroupView {
            group: 1,
            epoch: 1,
            leader: None,
            established: false,
            members: Vec::new(),
            learner: None,
            list: 0,
            receivers: vec![receiver],
            log: None,
        }],
        ..MulticastView::default()
    };
    controller_metrics(&report, &view, &groups, &multicast)
}

fn engine() -> String {
    let group = GroupReport {
        name: "g".to_owned(),
        complete: true,
        bound: Some(0),
        age_us: Some(0),
        values: vec![(0, 0)],
        ..GroupReport::default()
    };
    let flows = FlowsReport {
        name: "f".to_owned(),
        complete: true,
        age_us: Some(0),
        ..FlowsReport::default()
    };
    sync_metrics(&SyncReport {
        groups: vec![group],
        flows: vec![flows],
        ..SyncReport::default()
    })
}
