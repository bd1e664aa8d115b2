//! Mistakes of a user: each message contains its position and how to mend it, and the exit code its
//! kind.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;
use support::{Running, captures, errors, missing, repository, stateplane};

const INPUT: i32 = 2;
const PROGRAM: i32 = 3;
const SYSTEM: i32 = 4;

/// A folder with files of one test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        fs::write(&path, text).expect("a file is written");
        path.to_string_lossy().into_owned()
    }
}

/// Runs the command, which must refuse with exit code `code` and say all of `parts`; it
/// must not panic, nor be ready for anything.
fn refuses(arguments: &[&str], code: i32, parts: &[&str]) -> String {
    let output = Running::start(&mut stateplane(arguments)).finish(Duration::from_secs(30));
    let said = errors(&output);
    let context = format!("stateplane {}\n{said}", arguments.join(" "));
    assert_eq!(output.status.code(), Some(code), "{context}");
    for part in parts {
        assert!(said.contains(part), "no {part:?} in: {context}");
    }
    assert!(!said.contains("panicked"), "{context}");
    assert!(output.stdout.is_empty(), "{context}");
    said
}

#[test]
fn a_program_with_an_error_is_shown_with_its_place() {
    let folder = Folder::new();
    let cable = fs::read_to_string(repository().join("docs/examples/cable.p4")).unwrap();
    let wrong = "            packets.read(coun, (bit<32>)standard_metadata.ingress_port);";
    let right = wrong.replace("coun,", "count,");
    assert!(cable.contains(&right));
    let line = cable.lines().position(|line| line == right).unwrap() + 1;
    let path = folder.file("cable.p4", &cable.replace(&right, wrong));
    let place = format!("{path}:{line}:26");
    let said = refuses(
        &["compile", &path],
        PROGRAM,
        &[
            "error[E",
            "coun",
            &place,
            wrong.trim(),
            "did you mean `count`?",
        ],
    );
    let mut lines = said.lines().skip_while(|line| !line.contains(wrong));
    let source = lines.next().unwrap();
    let caret = lines.next().unwrap();
    assert_eq!(source.find("coun,"), caret.find('^'), "{said}");
    assert_eq!(
        said,
        refuses(&["run", &path, "--port", "0=lo"], PROGRAM, &[])
    );
}

#[test]
fn errors_of_programs_are_data_too() {
    let folder = Folder::new();
    let path = folder.file("empty.p4", "#include <v1model.p4>\n");
    let said = refuses(&["compile", &path, "--diagnostics-json"], PROGRAM, &[]);
    for line in said.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect(line);
        assert_eq!(value["severity"], "error", "{line}");
    }
    assert!(!said.is_empty());
}

#[test]
fn warnings_can_be_silenced_and_made_errors() {
    let folder = Folder::new();
    let cable = fs::read_to_string(repository().join("docs/examples/cable.p4")).unwrap();
    let (front, back) = cable.rsplit_once("control ").unwrap();
    let doubtful =
        format!("{front}bit<8> f() {{\n    return 1;\n    return 2;\n}}\n\ncontrol {back}");
    let path = folder.file("cable.p4", &doubtful);
    let output = stateplane(&["compile", &path]).output().unwrap();
    assert!(output.status.success() && errors(&output).contains("warning[W1110]"));
    refuses(
        &["compile", "--deny-warnings", &path],
        PROGRAM,
        &["error[W1110]", "--deny-warnings"],
    );
    let silenced = ["check", "--deny-warnings", "-A", "w1110", &path];
    let output = stateplane(&silenced).output().unwrap();
    assert!(output.status.success() && errors(&output).is_empty());
}

#[test]
fn a_missing_program_is_named() {
    let parts = ["error[E", "no file `nothere.p4`"];
    refuses(&["run", "nothere.p4", "--port", "0=lo"], PROGRAM, &parts);
    refuses(&["compile", "nothere.p4"], PROGRAM, &parts);
}

#[test]
fn a_missing_interface_is_named_beside_those_that_exist() {
    let cable = "docs/examples/cable.p4";
    refuses(
        &["run", cable, "--port", "0=nothere0"],
        SYSTEM,
        &["error[H201]", "`nothere0`", "there are: ", "lo"],
    );
}

#[test]
fn an_interface_of_the_host_is_not_taken_by_surprise() {
    let cable = "docs/examples/cable.p4";
    let parts = [
        "error[H208]",
        "`lo`",
        "127.0.0.1",
        "packet:lo",
        "--take-over",
    ];
    for port in ["0=lo", "0=xdp:lo"] {
        refuses(&["run", cable, "--port", port], INPUT, &parts);
    }
}

#[test]
fn a_port_is_a_number_and_an_interface() {
    let cable = "docs/examples/cable.p4";
    for (port, parts) in [
        ("eth0", ["NUMBER=INTERFACE", "0=eth0"]),
        ("511=eth0", ["511", "0 to 510"]),
        ("x=eth0", ["\"x\"", "0 to 510"]),
        ("1=", ["port 1", "no interface"]),
    ] {
        let parts = [&["--port", port][..], &parts].concat();
        refuses(&["run", cable, "--port", port], INPUT, &parts);
    }
    refuses(&["run", cable], INPUT, &["--port"]);
    refuses(
        &[
            "run",
            cable,
            "--port",
            "0=packet:lo",
            "--port",
            "1=packet:lo",
        ],
        INPUT,
        &["error[H202]", "`lo`"],
    );
}

#[test]
fn the_system_refuses_files_that_cannot_be_written_and_addresses_in_use() {
    let folder = Folder::new();
    let path = |name: &str| repository().join(name).to_string_lossy().into_owned();
    let cable = &path("docs/examples/cable.p4");
    let limiter = &path("docs/examples/first-program/limiter.p4");
    let counter = &path("crates/compiler/synchronise/tests/programs/counter.p4");
    let nowhere = folder.0.path().join("no/folder/file.txt");
    let nowhere = &nowhere.to_string_lossy();
    let said = "cannot be written: No such file or directory";
    for (command, program, option) in [
        ("protect", limiter, "--output"),
        ("sync", counter, "--output"),
        ("compile", cable, "--p4info"),
    ] {
        let arguments = [command, program, option, nowhere.as_ref()];
        refuses(&arguments, SYSTEM, &[nowhere.as_ref(), said]);
    }
    let capture = format!("0=pcap:,{nowhere}");
    refuses(&["run", cable, "--port", &capture], SYSTEM, &["H209", said]);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let port = format!("0=pcap:,{}", folder.0.path().join("out.pcap").display());
    for option in ["--p4runtime", "--metrics"] {
        let arguments = ["run", cable, "--port", &port, option, &address];
        refuses(&arguments, SYSTEM, &["in use"]);
    }
}

#[test]
fn a_deployment_that_does_not_fit_the_program_is_refused() {
    let folder = Folder::new();
    let program = repository().join("docs/examples/first-program/limiter.p4");
    let good = repository().join("docs/examples/first-program/deployment.toml");
    let good = fs::read_to_string(good).expect("the example");
    let other_class = "[[replication.class]]\nid = 64\nstate_length = 8\nfirst_lease = \"zero\"\n";
    let without_switches = good.split("[[replication.switch]]").next().expect("a part");
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    for (text, parts) in [
        (
            without_switches.to_owned(),
            ["error[H131]", "replication.switch"],
        ),
        (
            replaced("\"10.10.0.11\"\nmac", "\"10.10.0.99\"\nmac"),
            ["error[H132]", "10.10.0.11"],
        ),
        (
            replaced("number = 2", "number = 1"),
            ["error[H133]", "number = 1"],
        ),
        (
            replaced("10.10.0.2\"", "10.10.0.1\""),
            ["error[H133]", "address = 10.10.0.1"],
        ),
        (
            replaced("a2:02", "a1:02"),
            ["error[H133]", "mac = 02:00:00:00:a1:02"],
        ),
        (
            replaced("mtu = 1700", "port = 3"),
            ["error[H134]", "port 3"],
        ),
        (
            replaced("mtu = 1700", "links = [0, 7]"),
            ["error[H134]", "port 7"],
        ),
        (
            good.clone() + other_class,
            ["error[H135]", "state_length = 4"],
        ),
        (
            replaced("02:00:00:00:a1:02", "02:00:00:00:a1"),
            ["error[TG019]", "switch-1.toml"],
        ),
        (
            replaced("number = 1", "number = 0"),
            ["error[H237]", "switch-0.toml"],
        ),
        (replaced("shards = 4", "shards = 3"), ["error[S", "shards"]),
        (
            replaced("10.10.0.12\", \"10.10.0.13", "10.10.0.11\", \"10.10.0.13"),
            ["error[H106]", "10.10.0.11"],
        ),
        (
            replaced("number = 1", "nmber = 1"),
            ["error[H124]", "did you mean `number`?"],
        ),
    ] {
        let deployment = folder.file("deployment.toml", &text);
        let output = folder.0.path().join("made");
        let (program, output) = (program.to_string_lossy(), output.to_string_lossy());
        let arguments = [
            "init",
            &program,
            "--deployment",
            &deployment,
            "--output",
            &output,
        ];
        refuses(&arguments, INPUT, &parts);
    }
}

#[test]
fn a_mistake_in_a_switchs_configuration_is_told_with_its_line() {
    let folder = Folder::new();
    let entry = |table: &str, action: &str, params: &str| {
        format!(
            "# Routes.\n\n[[entries]]\ntable = \"{table}\"\nkeys = [\"10.0.0.0/16\"]\n\
             action = \"{action}\"\nparams = {params}\n"
        )
    };
    let good = "{ address = \"10.1.1.1\" }";
    for (name, text, parts) in [
        (
            "table.toml",
            entry("router.rotes", "via", good),
            [
                "error[TG001]",
                "table.toml:3: ",
                "`router.rotes`",
                "did you mean `NatIngress.router.routes`?",
            ],
        ),
        (
            "action.toml",
            entry("router.routes", "vai", good),
            ["error[TG003]", "action.toml:3: ", "`vai`", "via"],
        ),
        (
            "parameter.toml",
            entry("router.routes", "via", "{ adress = 1 }"),
            ["error[H224]", "parameter.toml:3: ", "`adress`", "`address`"],
        ),
        (
            "key.toml",
            "[[registers]]\nname = \"replication_incarnation\"\nvalues = 1\n".to_owned(),
            ["error[H222]", "key.toml", "line 3", "`value`"],
        ),
        (
            "part.toml",
            "[[entires]]\ntable = \"router.routes\"\n".to_owned(),
            ["error[H222]", "part.toml", "line 1", "`entries`"],
        ),
        (
            "syntax.toml",
            "[[entries]]\ntable = \n".to_owned(),
            ["error[H222]", "syntax.toml", "line 2", "^"],
        ),
    ] {
        let path = folder.file(name, &text);
        let nat = "apps/nat/nat.p4";
        let arguments = ["run", nat, "--port", "0=packet:lo", "--config", &path];
        refuses(&arguments, INPUT, &parts);
    }
    let arguments = ["run", "docs/examples/cable.p4", "--port", "0=lo"];
    refuses(
        &[&arguments[..], &["--config", "nothere.toml"]].concat(),
        INPUT,
        &["error[H221]", "nothere.toml", "--config"],
    );
}

/// The text of a program of `apps`, with `wrong` in place of `right`.
fn spoiled(app: &str, right: &str, wrong: &str) -> String {
    let text = fs::read_to_string(repository().join("apps").join(app)).unwrap();
    assert!(text.contains(right), "{app} has no {right:?}");
    text.replace(right, wrong)
}

#[test]
fn programs_that_can_never_work_are_refused_when_they_are_loaded() {
    let folder = Folder::new();
    let app = |name: &str| repository().join("apps").join(name);
    let counter = "counter/counter.p4";
    let gateway = "serving-gateway/serving_gateway.p4";
    let flow = "            meta.flow.known = true;\n";
    let key = "meta.flow.key = CLASS_COUNTER ++ hdr.ipv4.protocol";
    for (name, text, code, parts) in [
        (
            "no_flow.p4",
            spoiled(counter, flow, ""),
            "H234",
            ["`known`", "ReplicationIngressBefore"],
        ),
        (
            "no_key.p4",
            spoiled(
                counter,
                key,
                "bit<128> unused = CLASS_COUNTER ++ hdr.ipv4.protocol",
            ),
            "H234",
            ["`key`", "ReplicationIngressBefore"],
        ),
        (
            "one_port.p4",
            spoiled(gateway, "SIGNALLING_PORT = 4802", "SIGNALLING_PORT = 2152"),
            "H235",
            ["UDP port 2152", "`signal`"],
        ),
        (
            "librarys_port.p4",
            spoiled(gateway, "SIGNALLING_PORT = 4802", "SIGNALLING_PORT = 4793"),
            "H235",
            ["UDP port 4793", "the replication library"],
        ),
    ] {
        let path = folder.file(name, &text);
        let include = app("").to_string_lossy().into_owned();
        let arguments = ["run", &path, "-I", &include, "--port", "0=lo"];
        let parts = [&[code][..], &parts].concat();
        refuses(&arguments, PROGRAM, &parts);
    }
}

/// A store's file with these parts, on an address of the loopback that no other test
/// uses.
fn store_file(listen: &str, chain: &str, rest: &str) -> String {
    format!("listen = \"{listen}\"\n[replication]\nchain = [{chain}]\n{rest}")
}

const NAT_CLASSES: &str = "[[replication.class]]\nid = 2\nstate_length = 6\n\
    first_lease = \"nat-outbound\"\ninbound_class = 3\nshared_only = true\n\
    [[replication.class]]\nid = 3\nstate_length = 6\nfirst_lease = \"none\"\nshared_only = true\n";

#[test]
fn a_second_store_on_an_address_is_refused() {
    let folder = Folder::new();
    let path = folder.file(
        "store.toml",
        &store_file(
            "127.83.11.1",
            "\"127.83.11.1\"",
            "[[replication.class]]\nid = 1\nstate_length = 8\nfirst_lease = \"zero\"\n",
        ),
    );
    let mut first = Running::start(&mut stateplane(&["store", "--config", &path]));
    let mut ready = String::new();
    let output = first.child().stdout.take().unwrap();
    BufReader::new(output).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    refuses(
        &["store", "--config", &path],
        SYSTEM,
        &[
            "error[H109]",
            "127.83.11.1:4793 (UDP) is in use",
            "request_port",
        ],
    );
    first.signal("INT");
    let output = first.finish(Duration::from_secs(10));
    assert!(output.status.success(), "{}", errors(&output));
    let said = errors(&output);
    let last = said.lines().last().expect("a report behind the log");
    let report: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert!(report.is_object(), "{report}");
}

#[test]
fn a_stores_contradictions_are_told() {
    let folder = Folder::new();
    let own = "127.83.11.2";
    let pool = |text: &str| {
        let nat = format!("{NAT_CLASSES}[replication.nat]\n{text}\n");
        store_file(own, &format!("\"{own}\""), &nat)
    };
    let public = "addresses = [\"203.0.113.1\"]";
    for (name, text, code, parts) in [
        (
            "elsewhere.toml",
            store_file("203.0.113.77", "\"203.0.113.77\"", ""),
            SYSTEM,
            ["error[H110]", "203.0.113.77:4793 (UDP)", "`listen`"],
        ),
        (
            "ports.toml",
            pool(&format!("{public}\nfirst_port = 2000\nlast_port = 1999")),
            INPUT,
            ["size 0", "2000 to 1999", "not above the last"],
        ),
        (
            "addresses.toml",
            pool("addresses = []"),
            INPUT,
            ["size 0", "0 public addresses", "name an address"],
        ),
        (
            "no_pool.toml",
            store_file(own, &format!("\"{own}\""), NAT_CLASSES),
            INPUT,
            ["class 2", "no pool", "public addresses"],
        ),
        (
            "syntax.toml",
            "listen = \"127.0.0.1\"\nchain = [\n".to_owned(),
            INPUT,
            ["error[H102]", "syntax.toml", "line 2"],
        ),
        (
            "key.toml",
            store_file(own, &format!("\"{own}\""), "shard = 4\n"),
            INPUT,
            ["error[H124]", "key.toml:4:1", "`shards`"],
        ),
        (
            "absent.toml",
            store_file(own, "\"127.83.11.3\"", ""),
            INPUT,
            ["error[H103]", "127.83.11.2", "position"],
        ),
        (
            "place.toml",
            store_file(
                own,
                &format!("\"127.83.11.3\", \"{own}\""),
                "position = 0\n",
            ),
            INPUT,
            ["error[H104]", "position 0", "127.83.11.3"],
        ),
        (
            "beyond.toml",
            store_file(own, &format!("\"{own}\""), "position = 7\n"),
            INPUT,
            ["position 7", "chain of 1", "from 0"],
        ),
    ] {
        let path = folder.file(name, &text);
        refuses(&["store", "--config", &path], code, &parts);
    }
    refuses(
        &["store", "--config", "nothere.toml"],
        INPUT,
        &["error[H101]", "nothere.toml", "--config"],
    );
    refuses(&["store"], INPUT, &["--config"]);
}

#[test]
fn the_lab_says_what_it_needs() {
    if let Some(reason) = missing(&["setpriv"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    // The built command may lie in a folder that only root can enter.
    let folder = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let command = folder.path().join("stateplane");
    fs::copy(support::STATEPLANE, &command).unwrap();
    // As where the kernel gives users no namespaces.
    let refusing = folder.path().join("unshare");
    fs::write(&refusing, "#!/bin/sh\nexit 1\n").unwrap();
    let open = || std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&refusing, open()).unwrap();
    fs::set_permissions(folder.path(), open()).unwrap();
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&command)
        .args(["lab", "demo"])
        .env("PATH", path)
        .current_dir("/")
        .output()
        .unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(SYSTEM), "{said}");
    assert!(said.contains("error[LAB001]"), "{said}");
    assert!(
        said.contains("needs root") && said.contains("sudo"),
        "{said}"
    );
}

#[test]
fn a_missing_topology_is_named() {
    if let Some(reason) = missing(&["ip", "ethtool", "setpriv", "iperf3"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    for arguments in [
        &["lab", "demo", "--topology", "nothere.toml"][..],
        &["lab", "up", "nothere.toml"],
    ] {
        refuses(arguments, INPUT, &["error[LAB003]", "nothere.toml"]);
    }
}

#[test]
fn long_faults_need_packets_that_checkers_can_order() {
    if let Some(reason) = missing(&["ip", "ethtool"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    let words = ["lab", "run", "nat", "--faults", "long-stand-still"];
    refuses(&words, INPUT, &["error[LAB013]", "--interval-ms 200"]);
}

#[test]
fn a_damaged_capture_is_an_error_with_its_record() {
    let folder = Folder::new();
    let path = folder.0.path().join("cut.pcap");
    let mut bytes = captures::empty();
    captures::add(&mut bytes, 0, 60, &[0; 60]);
    // The second record's header says 60 bytes, of which ten are there.
    captures::add(&mut bytes, 0, 60, &[0; 10]);
    fs::write(&path, &bytes).unwrap();
    let port = format!("0=pcap:{},", path.display());
    let arguments = ["run", "docs/examples/cable.p4", "--port", &port];
    let output = Running::start(&mut stateplane(&arguments)).finish(Duration::from_secs(30));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(INPUT), "{said}");
    assert!(said.contains("record 2, at byte 100"), "{said}");
}
