//! `stateplane tables`, `registers` and `ctl` at a switch that runs.

#![allow(clippy::disallowed_methods)]

mod support;

use serde_json::{Value, json};
use std::path::Path;
use support::stateplane;
use support::switch::Served;

struct Switch {
    served: Served,
    _folder: tempfile::TempDir,
}

impl Switch {
    fn start() -> Switch {
        let folder = tempfile::tempdir().unwrap();
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../edge/rpc/tests/programs/control.p4");
        Switch {
            served: Served::alone(&program, "interp", folder.path(), &[]),
            _folder: folder,
        }
    }

    /// Exit code, standard output and standard error of a command.
    fn say(&self, words: &str) -> (i32, String, String) {
        let words: Vec<&str> = words.split(' ').collect();
        let connect = ["--connect", self.served.address.as_str()];
        let output = stateplane(&[&words[..], &connect].concat())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap();
        (code, text(output.stdout), text(output.stderr))
    }

    fn good(&self, words: &str) -> String {
        let (code, said, wrong) = self.say(words);
        assert_eq!(code, 0, "{words}: {wrong}");
        said
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.good(&format!("{words} --json"))).unwrap()
    }

    fn wrong(&self, words: &str, expected: &str) {
        let (code, _, said) = self.say(words);
        assert_eq!(code, 2, "{words}: {said}");
        assert!(said.contains(expected), "{words}: {said}");
    }
}

#[test]
fn tables_are_shown_and_changed_by_name() {
    let switch = Switch::start();
    let tables = switch.json("tables");
    let names: Vec<&str> = tables
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["table"].as_str().unwrap())
        .collect();
    assert!(
        names.iter().any(|name| name.ends_with("routes")),
        "{names:?}"
    );
    switch.good("tables insert routes dst=10.1.2.3/8 send port=3");
    switch.good("tables insert l2 dst=00:00:00:00:00:0a send port=0x4 --idle-timeout 60");
    switch
        .good("tables insert acl src=10.0.0.0&&&255.0.0.0 protocol=6..17 ttl=64 drop --priority 7");
    let routes = switch.json("tables show routes");
    assert_eq!(
        routes[0],
        json!({
            "matches": { "hdr.ipv4.dst": "10.0.0.0/8" },
            "action": "send",
            "parameters": { "port": "3" },
            "packets": 0,
            "bytes": 0,
        })
    );
    assert_eq!(routes[1]["default"], true);
    let acl = switch.good("tables show acl");
    let line =
        "hdr.ipv4.src=10.0.0.0&&&255.0.0.0 hdr.ipv4.protocol=6..17 hdr.ipv4.ttl=64  ->  drop";
    assert!(acl.contains(line) && acl.contains("priority 7"), "{acl}");
    let l2 = switch.json("tables show l2");
    assert_eq!(l2[0]["matches"]["hdr.ethernet.dst"], "00:00:00:00:00:0a");
    assert_eq!(l2[0]["idle_timeout_ns"], 60_000_000_000u64);
    switch.good("tables modify l2 dst=00:00:00:00:00:0a send port=5");
    assert_eq!(switch.json("tables show l2")[0]["parameters"]["port"], "5");
    switch.good("tables delete l2 dst=00:00:00:00:00:0a");
    switch.good("tables default l2 send port=1");
    assert_eq!(switch.json("tables show l2")[0]["parameters"]["port"], "1");
    switch.good("tables default l2");
    assert_ne!(switch.json("tables show l2")[0]["action"], "send");
    switch.wrong("tables show none", "there is no table `none`; there are: ");
    switch.wrong(
        "tables insert routes dst=10.0.0.0/8 send port=3",
        "AlreadyExists",
    );
    switch.wrong(
        "tables insert routes to=10.0.0.0/8 send port=3",
        "match field `to`",
    );
    switch.wrong(
        "tables insert routes dst=10.0.0.0/33 send port=3",
        "0 to 32",
    );
    switch.wrong("tables insert routes dst=10.0.0.0/9 send", "port=VALUE");
    switch.wrong(
        "tables insert routes dst=10.0.0.0/9 send port=512",
        "9 bits",
    );
    switch.wrong("tables delete routes dst=11.0.0.0/8", "NotFound");
}

#[test]
fn registers_are_read_and_written_by_index_and_range() {
    let switch = Switch::start();
    switch.good("registers write totals 3 0xff");
    switch.good("registers write totals 5..8 12");
    let nonzero = switch.json("registers read totals --nonzero");
    let expected = json!([
        { "index": 3, "value": "255" },
        { "index": 5, "value": "12" },
        { "index": 6, "value": "12" },
        { "index": 7, "value": "12" },
    ]);
    assert_eq!(nonzero, expected);
    assert_eq!(
        switch
            .json("registers read totals")
            .as_array()
            .unwrap()
            .len(),
        16
    );
    switch.good("registers write pairs 1 mac=00:00:00:00:00:05 known=true");
    assert_eq!(
        switch.good("registers read pairs 1"),
        "1  mac=00:00:00:00:00:05 known=true\n"
    );
    switch.good("registers write totals all 7");
    assert_eq!(switch.good("registers read totals 15"), "15  7\n");
    let listed = switch.good("registers");
    assert!(
        listed.contains("totals") && listed.contains("16"),
        "{listed}"
    );
    switch.wrong("registers read totals 16", "0 to 15");
    switch.wrong("registers write totals 0 x", "is no value");
    switch.wrong("registers write pairs 0 known=true", "mac=VALUE");
}

#[test]
fn ports_counters_and_programs_are_shown_and_replaced() {
    let switch = Switch::start();
    let ports = switch.json("ctl ports");
    assert_eq!(ports[0]["port"], 0);
    assert_eq!(ports[0]["name"], "pcap:in.pcap,out.pcap");
    assert_eq!(ports[1]["name"], "controller");
    assert!(switch.good("ctl ports").starts_with("port  name"));
    assert!(switch.good("ctl counters").contains("per_port"));
    let counts = switch.json("ctl counters per_port 2..4");
    assert_eq!(counts[1], json!({ "index": 3, "packets": 0, "bytes": 0 }));
    assert!(switch.good("ctl pipeline").contains("routes"));
    switch.good("registers write totals 3 9");
    let program = "crates/edge/rpc/tests/programs/control.p4";
    switch.good(&format!("ctl program {program} --keep"));
    assert_eq!(switch.good("registers read totals 3"), "3  9\n");
    switch.good(&format!("ctl program {program}"));
    assert_eq!(switch.good("registers read totals 3"), "3  0\n");
    assert!(
        switch
            .good("ctl pipeline --source")
            .contains("#include <v1model.p4>")
    );
    switch.wrong("ctl program Makefile", "error[");
    switch.wrong("ctl program missing.p4", "cannot be read");
    let gone = stateplane(&["ctl", "ports", "--connect", "127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(gone.status.code(), Some(4));
}
