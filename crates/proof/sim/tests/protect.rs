//! Programs that `stateplane-protect` made fault-tolerant: they pass the packet tests of the
//! originals, and in the world of every misfortune give what the originals give, in some
//! order of each flow's packets.
//!
//! Public programs are run too where `STATEPLANE_PUBLIC_PROGRAMS` names a folder with
//! checkouts of them; the annotations that they get are here.

#![allow(clippy::disallowed_methods)]

use stateplane_compile::Source;
use stateplane_sim::{Options, Own, ProgramKind, Rule, Scenario, Simulator};
use stateplane_stf::parse_with;
use stateplane_syntax::{FileLoader, LoadError};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of the file system; texts are put into one of them.
#[derive(Default)]
struct Files {
    edited: PathBuf,
    /// Each text, and what it is put in front of.
    annotations: &'static [(&'static str, &'static str)],
}

impl FileLoader for Files {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        let mut text = fs::read_to_string(path).map_err(|_| LoadError::NotFound)?;
        if Path::new(path) == self.edited {
            for (annotation, place) in self.annotations {
                assert!(text.contains(place), "{path} has no `{place}`");
                text = text.replacen(place, &format!("{annotation} {place}"), 1);
            }
        }
        Ok(text.into())
    }
}

fn own(files: Files, program: &Path, script: &Path) -> Own {
    let text = fs::read_to_string(script).expect("a packet test");
    let name = script.to_string_lossy();
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let included = |path: &str| stateplane_library::included_script(&name, path, read);
    let script = parse_with(&name, &text, &included).expect("a packet test that can be read");
    let source = Source::new(files, &program.to_string_lossy());
    Own::new(
        source.loader(),
        source.main_file(),
        source.options(),
        &script,
    )
    .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

/// Runs the packet test, and seeds of the scenarios.
fn survives(own: impl Fn() -> Own, seeds: u64) {
    let failures = own().packet_test().expect("programs that can be loaded");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for scenario in [Scenario::calm(), Scenario::mixed(), Scenario::restarts()] {
        let options =
            Options::new(ProgramKind::from_name("counter").expect("a program")).scenario(scenario);
        let simulator = Simulator::own(own(), options).expect("a program that can be loaded");
        let mut outputs = 0;
        let mut deaths = 0;
        for seed in 0..seeds {
            let report = simulator.run(seed).expect("a world");
            assert!(report.is_good(), "{report}");
            outputs += report.coverage.outputs;
            deaths += report.coverage.deaths;
        }
        assert!(
            outputs > 0 && deaths > 0,
            "nothing came out, or nothing died"
        );
    }
}

fn program(name: &str) -> Own {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compiler/protect/tests/programs");
    let script = folder.join(format!("{name}.stf"));
    own(
        Files::default(),
        &folder.join(format!("{name}.p4")),
        &script,
    )
}

#[test]
fn port_knocking_survives() {
    survives(|| program("port_knocking"), 8);
}

#[test]
fn a_counter_of_flows_survives() {
    survives(|| program("flow_counter"), 3);
}

#[test]
fn a_quota_survives() {
    survives(|| program("quota"), 3);
}

#[test]
fn connections_survive() {
    survives(|| program("connections"), 3);
}

#[test]
fn a_sticky_balancer_survives() {
    survives(|| program("sticky"), 3);
}

#[test]
fn snapshots_of_a_sketch_survive() {
    survives(|| program("count_min"), 3);
}

#[test]
fn snapshots_of_a_filter_survive() {
    survives(|| program("bloom"), 3);
}

/// The checkers can object: without a rule, `least` of the seeds or more give worlds to which one
/// of them objects, in these words; with it, the same worlds are good.
fn good_only_with(
    name: &str,
    rule: Rule,
    scenario: Scenario,
    seeds: u64,
    least: usize,
    objection: &str,
) {
    let options =
        Options::new(ProgramKind::from_name("counter").expect("a program")).scenario(scenario);
    let simulator = |options| Simulator::own(program(name), options).expect("a program");
    let broken = simulator(options.clone().without(rule));
    let objects = |seed: &u64| {
        let report = broken.run(*seed).expect("a world");
        report.anomalies.iter().any(|what| what.contains(objection))
    };
    let objections = (0..seeds).filter(objects).count();
    println!("{objections} of {seeds} seeds of {name} miss {rule}");
    assert!(
        objections >= least,
        "{rule} is missed in {objections} of {seeds} seeds of {name}"
    );
    let whole = simulator(options);
    for seed in 0..seeds {
        let report = whole.run(seed).expect("a world");
        assert!(report.is_good(), "{report}");
    }
}

// Without a rule of the walk, what the store has is not what the arrays were, or is older than
// the bound.

#[test]
fn without_synchronised_copies_a_snapshot_is_what_never_was() {
    good_only_with(
        "count_min",
        Rule::SnapshotSynchronise,
        Scenario::calm(),
        12,
        2,
        "never were",
    );
}

#[test]
fn without_the_bound_what_is_lost_exceeds_it() {
    let often_cut = Scenario {
        cuts: 20,
        cut: 800_000,
        deaths: 8,
        outage: (5_000, 20_000),
        ..Scenario::mixed()
    };
    let rule = Rule::SnapshotBound;
    good_only_with("count_min", rule, often_cut, 40, 2, "is lost");
}

// Without a rule of the protocol, what comes out is no longer what the original gives.

const DISORDER: &str = "no order of its packets";

#[test]
fn without_install_once_no_order_explains_the_outputs() {
    good_only_with(
        "flow_counter",
        Rule::InstallOnce,
        Scenario::echoes(),
        4,
        2,
        DISORDER,
    );
}

#[test]
fn without_the_sequence_check_no_order_explains_the_outputs() {
    good_only_with(
        "flow_counter",
        Rule::SequenceCheck,
        Scenario::echoes(),
        4,
        2,
        DISORDER,
    );
}

/// A public program: its file below the folder, what is put into it, and its packet test.
struct Public {
    file: &'static str,
    annotations: &'static [(&'static str, &'static str)],
    script: &'static str,
    /// Number of seeds for each scenario.
    seeds: u64,
}

const CONNECTION: &str = "@replicated(key = {hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort, \
     hdr.tcp.dstPort, hdr.ipv4.protocol}, reverse = {hdr.ipv4.dstAddr, hdr.ipv4.srcAddr, \
     hdr.tcp.dstPort, hdr.tcp.srcPort, hdr.ipv4.protocol})";
const FLOW: &str = "@replicated(key = {hdr.ipv4.srcAddr, hdr.ipv4.dstAddr, hdr.tcp.srcPort, \
     hdr.tcp.dstPort, hdr.ipv4.protocol})";
/// A threshold that the packets of the test reach.
const FEW: &str = "\n#undef PACKET_THRESHOLD\n#define PACKET_THRESHOLD 2\n";

/// A Bloom filter of counters of which snapshots are kept.
const SKETCH: &str = "@replicated(mode = \"bounded\", bound = 3000, snapshot_period = 1000)";

const PUBLIC: [Public; 6] = [
    Public {
        file: "tutorials/exercises/firewall/solution/firewall.p4",
        annotations: &[
            (
                CONNECTION,
                "register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_1;",
            ),
            (
                "@replicated",
                "register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_2;",
            ),
        ],
        script: "firewall.stf",
        seeds: 3,
    },
    Public {
        file: "p4-learning/examples/stateful_firewall/stateful_firewall.p4",
        annotations: &[(CONNECTION, "register<bit<BLOOM")],
        script: "stateful_firewall.stf",
        seeds: 3,
    },
    Public {
        file: "p4-learning/examples/heavy_hitter/heavy_hitter.p4",
        annotations: &[(FEW, "register<bit<BLOOM"), (FLOW, "register<bit<BLOOM")],
        script: "heavy_hitter.stf",
        seeds: 3,
    },
    Public {
        file: "p4-learning/examples/heavy_hitter/heavy_hitter.p4",
        annotations: &[(FEW, "register<bit<BLOOM"), (SKETCH, "register<bit<BLOOM")],
        script: "heavy_hitter.stf",
        // Thousands of records for each snapshot take their time.
        seeds: 1,
    },
    Public {
        file: "p4-learning/exercises/06-Heavy_Hitter_Detector/solution/heavy_hitter.p4",
        annotations: &[(FEW, "register<bit<BLOOM"), (FLOW, "register<bit<BLOOM")],
        script: "heavy_hitter.stf",
        seeds: 3,
    },
    Public {
        file: "NETPROC_P4Knocking/implementation_2/app/switch.p4",
        annotations: &[(
            "@replicated(key = {hdr.ipv4.srcAddr})",
            "register<pk_stage_t>(BIT16_INDEX)",
        )],
        script: "p4knocking.stf",
        seeds: 3,
    },
];

#[test]
fn public_programs_survive() {
    let Some(folder) = std::env::var_os("STATEPLANE_PUBLIC_PROGRAMS") else {
        eprintln!("skipped: STATEPLANE_PUBLIC_PROGRAMS names no folder with checkouts");
        return;
    };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compiler/protect/tests/public");
    for public in &PUBLIC {
        let main = Path::new(&folder).join(public.file);
        let script = scripts.join(public.script);
        let make = || {
            let files = Files {
                edited: main.clone(),
                annotations: public.annotations,
            };
            own(files, &main, &script)
        };
        survives(make, public.seeds);
        eprintln!("{}: survives", public.file);
    }
}
