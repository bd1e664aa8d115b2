//! Metrics of a switch.

use super::{Families, Labels, sealed};
use crate::ports::HostPortCounters;
use crate::switch::{
    ControlReport, GreetingReport, HeadReport, PacketReport, PortReport, ProgramReport,
    SwitchReport, TermReport, WorkerReport,
};
use stateplane_runtime::Count;

/// Program, engine and ports of a switch, for its metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchInfo {
    /// The program's file.
    pub program: String,
    /// The engine.
    pub engine: &'static str,
}

/// Picks a count of a port.
type OfPort = fn(&PortReport) -> u64;

/// Picks what happened to frames between the wire and the switch.
type OfHost = fn(&HostPortCounters) -> u64;

const HOST_DROPS: [(&str, OfHost); 12] = [
    ("rx_overrun", |host| host.rx_overrun),
    ("rx_too_long", |host| host.rx_too_long),
    ("rx_super_frame", |host| host.rx_super_frame),
    ("rx_bad_checksum", |host| host.rx_bad_checksum),
    ("rx_other_host", |host| host.rx_other_host),
    ("rx_failed", |host| host.rx_failed),
    ("rx_handover_full", |host| host.rx_handover_full),
    ("tx_too_long", |host| host.tx_too_long),
    ("tx_down", |host| host.tx_down),
    ("tx_full", |host| host.tx_full),
    ("tx_refused", |host| host.tx_refused),
    ("tx_handover_full", |host| host.tx_handover_full),
];

/// A switch's metrics as OpenMetrics text.
pub fn switch_metrics(info: &SwitchInfo, report: &SwitchReport, program: &ProgramReport) -> String {
    let mut families = Families::default();
    let labels = vec![
        ("program", info.program.clone()),
        ("engine", info.engine.to_owned()),
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
    ];
    families.gauge(
        "stateplane_switch_info",
        "Program, engine and version of the switch; always 1",
        vec![(labels, 1)],
    );
    ports(&mut families, &report.ports);
    packets(&mut families, &report.packets);
    let drops = report.drops.iter();
    families.counter(
        "stateplane_dropped_packets",
        "Number of packets dropped by the switch, by reason",
        drops
            .map(|(reason, count)| (vec![("reason", (*reason).to_owned())], *count))
            .collect(),
    );
    if let Some(seals) = &report.seals {
        sealed(&mut families, seals);
    }
    if let Some(greeting) = &report.greeting {
        greeted(&mut families, greeting);
    }
    if let Some(terms) = &report.terms {
        in_terms(&mut families, terms);
    }
    if let Some(control) = &report.control {
        controlled(&mut families, control);
    }
    if !report.workers.is_empty() {
        worked(&mut families, &report.workers);
    }
    objects(&mut families, program);
    families.text()
}

/// Picks a count of a worker.
type OfWorker = fn(&WorkerReport) -> u64;

fn worked(families: &mut Families, workers: &[WorkerReport]) {
    let counters: [(_, _, OfWorker); 3] = [
        (
            "stateplane_worker_packets",
            "Number of frames that each forwarding thread took through the program",
            |worker| worker.received,
        ),
        (
            "stateplane_worker_lock_waits",
            "Number of locks of atomic blocks and of direct meters that another forwarding thread \
             held when this one came to them",
            |worker| worker.lock_waits,
        ),
        (
            "stateplane_worker_handed_over",
            "Number of frames that each forwarding thread took from a port and gave to the thread \
             that they fell to",
            |worker| worker.handed_over,
        ),
    ];
    for (name, help, of) in counters {
        let samples = workers.iter().enumerate();
        let samples = samples.map(|(number, worker)| {
            let labels = vec![("worker", number.to_string())];
            (labels, of(worker))
        });
        families.counter(name, help, samples.collect());
    }
}

/// Picks a number of a head.
type OfHead = fn(&HeadReport) -> u64;

fn greeted(families: &mut Families, greeting: &GreetingReport) {
    families.gauge(
        "stateplane_store_admitted",
        "1 once a store has fitted the switch, which lets its data ports be up",
        vec![(Vec::new(), u64::from(greeting.admitted))],
    );
    let gauges: [(_, _, OfHead); 3] = [
        (
            "stateplane_store_fits",
            "1 if the head of a chain answers and its settings are those of the switch",
            |head| u64::from(head.fits),
        ),
        (
            "stateplane_store_differences",
            "Number of settings that the head of a chain has otherwise than the switch",
            |head| head.differences.len() as u64,
        ),
        (
            "stateplane_store_silent_ms",
            "Time in ms for which the head of a chain has not answered; 0 if it answers",
            |head| head.silent_ms.unwrap_or(0),
        ),
    ];
    for (name, help, of) in gauges {
        let samples = greeting.heads.iter().map(|head| {
            let labels = vec![
                ("address", head.address.to_string()),
                ("port", head.port.to_string()),
            ];
            (labels, of(head))
        });
        families.gauge(name, help, samples.collect());
    }
}

fn in_terms(families: &mut Families, terms: &TermReport) {
    families.gauge(
        "stateplane_terms_held",
        "Shards for which the switch has a term with the head of the chain: leases of their flows count",
        vec![(Vec::new(), terms.held)],
    );
    families.counter(
        "stateplane_term_lapses",
        "Times that the term for a shard had ended before it went on: its flows asked again for their leases",
        vec![(Vec::new(), terms.lapses)],
    );
    let silent = terms.heads.iter().map(|head| {
        let labels = vec![("address", head.address.to_string())];
        (labels, head.silent_ms)
    });
    families.gauge(
        "stateplane_term_silent_ms",
        "Time in ms since the head of a chain last answered a heartbeat, or since the first one",
        silent.collect(),
    );
}

fn port_labels(port: &PortReport) -> Labels {
    vec![
        ("port", port.port.to_string()),
        ("interface", port.interface.clone()),
    ]
}

fn ports(families: &mut Families, ports: &[PortReport]) {
    let samples = |of: OfPort| ports.iter().map(move |port| (port_labels(port), of(port)));
    families.gauge(
        "stateplane_port_up",
        "1 if frames pass the port: its link is up and no watch is stale",
        samples(|port| u64::from(port.up)).collect(),
    );
    let modes = ports.iter().map(|port| {
        let mut labels = port_labels(port);
        labels.push(("mode", port.mode.to_string()));
        (labels, 1)
    });
    families.gauge(
        "stateplane_port_mode",
        "Kernel interface of the port; always 1",
        modes.collect(),
    );
    let counters: [(_, _, OfPort); 4] = [
        (
            "stateplane_port_received_packets",
            "Number of frames passed to the program",
            |port| port.rx_packets,
        ),
        (
            "stateplane_port_received_bytes",
            "Number of bytes passed to the program",
            |port| port.rx_bytes,
        ),
        (
            "stateplane_port_sent_packets",
            "Number of frames that the switch sent",
            |port| port.tx_packets,
        ),
        (
            "stateplane_port_sent_bytes",
            "Number of bytes that the switch sent",
            |port| port.tx_bytes,
        ),
    ];
    for (name, help, of) in counters {
        families.counter(name, help, samples(of).collect());
    }
    let lost = ports.iter().flat_map(|port| {
        HOST_DROPS.iter().map(move |(reason, of)| {
            let mut labels = port_labels(port);
            labels.push(("reason", (*reason).to_owned()));
            (labels, of(&port.host))
        })
    });
    families.counter(
        "stateplane_port_lost_packets",
        "Number of frames lost between the wire and the switch, by reason",
        lost.collect(),
    );
}

fn packets(families: &mut Families, packets: &PacketReport) {
    let counters = [
        ("received", packets.received),
        ("transmitted", packets.transmitted),
        ("generated", packets.generated),
        ("ingress_clone", packets.ingress_clones),
        ("egress_clone", packets.egress_clones),
        ("replica", packets.replicas),
        ("recirculated", packets.recirculated),
        ("resubmitted", packets.resubmitted),
    ];
    let by = |label, counts: &[(&str, u64)]| {
        let samples = counts.iter();
        samples
            .map(|(value, count)| (vec![(label, (*value).to_owned())], *count))
            .collect()
    };
    families.counter(
        "stateplane_packets",
        "Number of packets of the switch, by event",
        by("event", &counters),
    );
    let waiting = [
        ("queued", packets.queued),
        ("held", packets.held),
        ("returning", packets.returning),
    ];
    families.gauge(
        "stateplane_waiting_packets",
        "Number of packets in egress queues, held by mirror sessions, and on the path back to ingress",
        by("place", &waiting),
    );
}

fn controlled(families: &mut Families, control: &ControlReport) {
    families.gauge(
        "stateplane_p4runtime_connections",
        "Open connections of controllers",
        vec![(Vec::new(), control.open)],
    );
    families.counter(
        "stateplane_p4runtime_accepted_connections",
        "Number of connections of controllers that were accepted",
        vec![(Vec::new(), control.accepted)],
    );
    let closed = [
        ("idle", control.closed_idle),
        ("late", control.closed_late),
        ("refused", control.refused),
    ];
    families.counter(
        "stateplane_p4runtime_closed_connections",
        "Number of connections that the switch closed, by reason: idle, to make room; late in \
         their handshake; refused for lack of room",
        closed
            .map(|(reason, count)| (vec![("reason", reason.to_owned())], count))
            .to_vec(),
    );
    families.counter(
        "stateplane_p4runtime_dropped_messages",
        "Number of messages dropped because a controller did not read them in time",
        vec![(Vec::new(), control.messages_dropped)],
    );
}

fn objects(families: &mut Families, program: &ProgramReport) {
    let tables = &program.tables;
    let labels = |name: &str| vec![("table", name.to_owned())];
    let entries = tables
        .iter()
        .map(|table| (labels(&table.name), table.entries));
    families.gauge(
        "stateplane_table_entries",
        "Number of entries of a table",
        entries.collect(),
    );
    let sizes = tables.iter().map(|table| (labels(&table.name), table.size));
    families.gauge(
        "stateplane_table_size",
        "Maximum number of entries of a table",
        sizes.collect(),
    );
    let hits = |of: fn(Count) -> u64| {
        let counted = tables.iter();
        counted
            .filter_map(|table| Some((labels(&table.name), of(table.hits?))))
            .collect()
    };
    families.counter(
        "stateplane_table_hit_packets",
        "Number of packets that hit an entry of a table with a direct counter",
        hits(|count| count.packets),
    );
    families.counter(
        "stateplane_table_hit_bytes",
        "Number of bytes of packets that hit an entry of a table with a direct counter",
        hits(|count| count.bytes),
    );
    let counts = |of: fn(Count) -> u64| {
        let counters = program.counters.iter();
        let elements = counters.flat_map(|counter| {
            counter.counts.iter().map(move |(index, count)| {
                let labels = vec![
                    ("counter", counter.name.clone()),
                    ("index", index.to_string()),
                ];
                (labels, of(*count))
            })
        });
        elements.collect()
    };
    families.counter(
        "stateplane_counter_packets",
        "Number of packets counted by the program",
        counts(|count| count.packets),
    );
    families.counter(
        "stateplane_counter_bytes",
        "Number of bytes counted by the program",
        counts(|count| count.bytes),
    );
    let events = &program.events;
    let events = [
        ("parser_error", events.parser_errors),
        ("checksum_error", events.checksum_errors),
        ("failed_assertion", events.failed_assertions),
        ("digest_dropped", events.digests_dropped),
    ];
    let events = events.map(|(event, count)| (vec![("event", event.to_owned())], count));
    families.counter(
        "stateplane_program_events",
        "Number of other events in the program, by kind",
        events.into(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::PortMode;
    use crate::switch::{CounterReport, SealReport, TableReport, TermHeadReport};
    use std::collections::BTreeMap;

    #[test]
    fn names_labels_and_values_are_as_documented() {
        let host = HostPortCounters {
            rx_overrun: 5,
            ..HostPortCounters::default()
        };
        let report = SwitchReport {
            ports: vec![PortReport {
                port: 3,
                interface: "eth\"0".to_owned(),
                mode: PortMode::Capture,
                up: true,
                rx_packets: 7,
                rx_bytes: 448,
                tx_packets: 6,
                tx_bytes: 384,
                host,
            }],
            packets: PacketReport {
                held: 2,
                ..PacketReport::default()
            },
            drops: BTreeMap::from([("ingress", 1)]),
            port_state_failed: 0,
            seals: Some(SealReport {
                wrong_address: 6,
                ..SealReport::default()
            }),
            greeting: Some(GreetingReport {
                admitted: true,
                heads: vec![HeadReport {
                    address: [10, 0, 0, 11].into(),
                    port: 2,
                    fits: false,
                    differences: vec!["shards".to_owned()],
                    silent_ms: Some(1500),
                }],
            }),
            terms: Some(TermReport {
                held: 4,
                lapses: 5,
                heads: vec![TermHeadReport {
                    address: [10, 0, 0, 11].into(),
                    silent_ms: 40,
                }],
            }),
            control: Some(ControlReport {
                open: 3,
                closed_late: 8,
                ..ControlReport::default()
            }),
            workers: vec![WorkerReport {
                received: 9,
                lock_waits: 3,
                handed_over: 5,
                processor: None,
            }],
        };
        let count = Count {
            packets: 4,
            bytes: 256,
        };
        let program = ProgramReport {
            tables: vec![TableReport {
                name: "c.t".to_owned(),
                entries: 10,
                size: 1024,
                hits: Some(count),
            }],
            counters: vec![CounterReport {
                name: "c.n".to_owned(),
                counts: vec![(14, count)],
            }],
            ..ProgramReport::default()
        };
        let info = SwitchInfo {
            program: "nat.p4".to_owned(),
            engine: "native",
        };
        let text = switch_metrics(&info, &report, &program);
        for line in [
            "# TYPE stateplane_port_up gauge",
            "# TYPE stateplane_dropped_packets counter",
            "stateplane_store_admitted{} 1",
            r#"stateplane_store_fits{address="10.0.0.11",port="2"} 0"#,
            r#"stateplane_store_differences{address="10.0.0.11",port="2"} 1"#,
            r#"stateplane_store_silent_ms{address="10.0.0.11",port="2"} 1500"#,
            r#"stateplane_port_up{port="3",interface="eth\"0"} 1"#,
            r#"stateplane_port_received_packets_total{port="3",interface="eth\"0"} 7"#,
            r#"stateplane_port_lost_packets_total{port="3",interface="eth\"0",reason="rx_overrun"} 5"#,
            r#"stateplane_dropped_packets_total{reason="ingress"} 1"#,
            r#"stateplane_waiting_packets{place="held"} 2"#,
            r#"stateplane_sealed_messages_total{event="wrong_address"} 6"#,
            r#"stateplane_sealed_messages_total{event="forged"} 0"#,
            "stateplane_p4runtime_connections{} 3",
            r#"stateplane_p4runtime_closed_connections_total{reason="late"} 8"#,
            r#"stateplane_p4runtime_closed_connections_total{reason="idle"} 0"#,
            r#"stateplane_worker_packets_total{worker="0"} 9"#,
            r#"stateplane_worker_lock_waits_total{worker="0"} 3"#,
            r#"stateplane_worker_handed_over_total{worker="0"} 5"#,
            r#"stateplane_table_entries{table="c.t"} 10"#,
            r#"stateplane_table_hit_bytes_total{table="c.t"} 256"#,
            r#"stateplane_counter_packets_total{counter="c.n",index="14"} 4"#,
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(
            text.contains(r#"program="nat.p4",engine="native""#),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
    }
}
