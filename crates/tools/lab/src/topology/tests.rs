use super::*;
use proptest::prelude::*;

const GOOD: &str = r#"
name = "small"

[variant.a]
program = "x.p4"

[[node]]
name = "h1"
kind = "host"
routes = [{ to = "default", via = ["10.0.0.1"] }]

[[node]]
name = "r"
kind = "router"
routes = [{ to = "198.51.100.0/24", via = ["10.1.1.2", "10.1.2.2"] }]

[[node]]
name = "s1"
kind = "switch"

[[node]]
name = "s2"
kind = "switch"

[[node]]
name = "f"
kind = "bridge"

[[node]]
name = "st"
kind = "store"

[[link]]
a = { node = "h1", interface = "eth0", address = "10.0.0.2/24" }
b = { node = "r", interface = "h1", address = "10.0.0.1/24" }

[[link]]
a = { node = "r", interface = "s1", address = "10.1.1.1/30" }
b = { node = "s1", interface = "eth0", address = "10.1.1.2/30", mac = "02:aa:00:00:00:01" }

[[link]]
a = { node = "r", interface = "s2", address = "10.1.2.1/30" }
b = { node = "s2", interface = "eth0", address = "10.1.2.2/30" }

[[link]]
mtu = 1700
a = { node = "s1", interface = "eth1", address = "10.10.0.1/24" }
b = { node = "f", interface = "s1" }

[[link]]
mtu = 1700
a = { node = "s2", interface = "eth1", address = "10.10.0.2/24" }
b = { node = "f", interface = "s2" }

[[link]]
mtu = 1700
a = { node = "st", interface = "eth0", address = "10.10.0.11/24" }
b = { node = "f", interface = "st" }

[[process]]
name = "s1"
node = "s1"
command = ["${stateplane}", "run", "${program}"]
ready = "ready"
raises = ["eth0"]
only = ["a"]

[traffic]
iperf_client = "h1"
iperf_server = "h1"
clients = ["h1"]
servers = ["h1", "st"]
chooser = "r"
switches = ["s1", "s2"]
"#;

fn parse(text: &str) -> Result<Topology, LabError> {
    Topology::parse("small.toml", text)
}

#[test]
fn a_good_file_is_read() {
    let topology = parse(GOOD).unwrap();
    assert_eq!(topology.nodes.len(), 6);
    assert_eq!(topology.links[0].mtu, 1500);
    assert_eq!(
        topology.links[0].ends[1].mac.to_string(),
        "02:00:00:00:01:02"
    );
    assert_eq!(
        topology.links[1].ends[1].mac.to_string(),
        "02:aa:00:00:00:01"
    );
    assert_eq!(topology.processes[0].raises, ["eth0"]);
    assert_eq!(topology.variants["a"]["program"], "x.p4");
}

#[test]
fn neighbours_reach_over_bridges_and_not_over_routers() {
    let topology = parse(GOOD).unwrap();
    let (_, store) = topology.ends_of("st").next().unwrap();
    let mut names: Vec<_> = topology
        .neighbours(store)
        .iter()
        .map(|end| end.node.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["s1", "s2"]);
    let (_, host) = topology.ends_of("h1").next().unwrap();
    assert_eq!(topology.neighbours(host).len(), 1);
}

#[test]
fn the_files_beside_the_crate_are_good() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab");
    for name in ["nat.toml", "forward.toml"] {
        let topology = Topology::load(directory.join(name)).unwrap();
        assert!(topology.traffic.is_some(), "{name}");
    }
}

#[test]
fn only_store_servers_get_disks_each_its_own() {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab");
    let mut topology = Topology::load(lab.join("apps.toml")).unwrap();
    // In the order of the chain in `lab/apps/store.toml`.
    assert_eq!(topology.store_servers(), ["st0", "st1", "st2"]);
    let before = topology.clone();
    topology.give_disks();
    for (process, before) in topology.processes.iter().zip(&before.processes) {
        let more = &process.command[before.command.len()..];
        match process.name.as_str() {
            name @ ("st0" | "st1" | "st2") => {
                assert_eq!(more, ["--data", &format!("${{run}}/disks/{name}")]);
            }
            _ => assert!(more.is_empty(), "{more:?}"),
        }
    }
}

#[test]
fn a_syntax_error_has_its_line_and_column() {
    let error = parse("name = \"x\"\n[[node]\n").unwrap_err();
    assert_eq!(error.code(), "LAB004");
    assert!(error.to_string().contains("line 2, column"), "{error}");
    let error = parse("name = \"x\"\n[[node]]\nname = \"a\"\nkind = \"hub\"\n").unwrap_err();
    assert_eq!(error.code(), "LAB004");
    assert!(error.to_string().contains("line 4"), "{error}");
    let error = parse("name = \"x\"\nnodes = 1\n").unwrap_err();
    assert!(
        error.to_string().contains("unknown field `nodes`"),
        "{error}"
    );
}

#[test]
fn contradictions_are_refused_with_their_place() {
    let cases = [
        ("name = \"small\"", "name = \"Small one\"", "is no name"),
        (
            "program = \"x.p4\"",
            "protects = \"x.p4\"",
            "says where the result goes",
        ),
        (
            "name = \"s2\"\nkind",
            "name = \"s1\"\nkind",
            "declared twice",
        ),
        (
            "node = \"st\", interface",
            "node = \"xx\", interface",
            "no node `xx`",
        ),
        (
            "interface = \"eth1\", address = \"10.10.0.1/24\"",
            "interface = \"eth0\"",
            "two links end there",
        ),
        ("interface = \"h1\",", "interface = \"lo\",", "is taken"),
        (
            "\"02:aa:00:00:00:01\"",
            "\"02:00:00:00:01:01\"",
            "used twice",
        ),
        (
            "\"02:aa:00:00:00:01\"",
            "\"03:00:00:00:00:01\"",
            "group address",
        ),
        ("10.10.0.2/24", "10.10.0.1/24", "is used twice"),
        ("10.10.0.2/24", "10.11.0.2/24", "is not in"),
        (
            "mtu = 1700\na = { node = \"st\"",
            "mtu = 1600\na = { node = \"st\"",
            "too small",
        ),
        (
            "mtu = 1700\na = { node = \"s2\"",
            "mtu = 1600\na = { node = \"s2\"",
            "too small",
        ),
        (
            "mtu = 1700\na = { node = \"s2\"",
            "mtu = 70000\na = { node = \"s2\"",
            "out of range",
        ),
        (
            "via = [\"10.0.0.1\"]",
            "via = [\"10.9.0.1\"]",
            "no link leads to",
        ),
        ("via = [\"10.0.0.1\"]", "via = []", "no next hop"),
        (
            "interface = \"st\" }",
            "interface = \"st\", address = \"10.10.0.9/24\" }",
            "a bridge's",
        ),
        (
            "kind = \"switch\"\n\n[[node]]\nname = \"f\"",
            "kind = \"switch\"\nroutes = [{ to = \"default\", via = [\"10.1.2.1\"] }]\n[[node]]\nname = \"f\"",
            "no kernel routes",
        ),
        (
            "raises = [\"eth0\"]",
            "raises = [\"eth9\"]",
            "no interface `eth9`",
        ),
        ("only = [\"a\"]", "only = [\"b\"]", "no variant `b`"),
        (
            "command = [\"${stateplane}\", \"run\", \"${program}\"]",
            "command = []",
            "is empty",
        ),
        (
            "clients = [\"h1\"]",
            "clients = [\"f\"]",
            "no address to talk from",
        ),
        ("clients = [\"h1\"]", "clients = []", "`clients` has 0"),
        (
            "clients = [\"h1\"]",
            "clients = [\"st\"]",
            "is not linked to",
        ),
        (
            "switches = [\"s1\", \"s2\"]",
            "switches = [\"s1\", \"s1\"]",
            "1 of them different",
        ),
        (
            "switches = [\"s1\", \"s2\"]",
            "switches = [\"s1\", \"st\"]",
            "as its next hop",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(GOOD.contains(from), "{from}");
        let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.code(), "LAB005", "{to}: {error}");
        assert!(error.to_string().contains(expected), "{to}: {error}");
    }
}

#[test]
fn addresses_are_refused_where_they_stand() {
    let error = parse(&GOOD.replacen("10.0.0.2/24", "10.0.0.2/33", 1)).unwrap_err();
    assert_eq!(error.code(), "LAB004");
    assert!(error.to_string().contains("prefix length"), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let error = Topology::load("no/such.toml").unwrap_err();
    assert_eq!(error.code(), "LAB003");
    assert!(error.to_string().contains("no/such.toml"));
}

proptest! {
    #[test]
    fn any_damage_is_refused_or_read(at in 0..GOOD.len(), length in 0usize..40, with in ".{0,8}") {
        let end = (at + length).min(GOOD.len());
        if GOOD.is_char_boundary(at) && GOOD.is_char_boundary(end) {
            let mut text = GOOD.to_owned();
            text.replace_range(at..end, &with);
            let _ = parse(&text);
        }
    }
}
