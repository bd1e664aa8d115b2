//! `stateplane top`: a switch in its process, an engine that runs, pages, and refusals.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::namespaces::Namespaces;
use support::{Running, STATEPLANE, captures, errors, missing, repository, stateplane};

/// Time for a view to become complete, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Drawn traffic under a budget that does not suffice, and losses.
const PRESSED: [&str; 8] = [
    "--generate",
    "--flows",
    "3000",
    "--seed",
    "5",
    "--budget",
    "5",
    "--loss=2",
];

/// Standard output of the command.
fn printed(arguments: &[&[&str]]) -> String {
    let arguments = [&["top"][..], &arguments.concat()].concat();
    let output = stateplane(&arguments).output().expect("it runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        errors(&output)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Looks at groups whose bound is true, and flows that are in their intervals: how many.
fn true_ones(looks: &[Value]) -> (usize, usize) {
    let (mut bounds, mut rows) = (0, 0);
    for group in looks.iter().flat_map(|look| list(&look["groups"])) {
        let bound = group["told"]["bound"].as_u64();
        if let (Some(bound), Some(off)) = (bound, group["off"].as_u64()) {
            assert!(off <= bound, "{group}");
            bounds += 1;
        }
        for row in list(&group["rows"]) {
            if let (Some(count), Some(high)) = (row["count"].as_u64(), row["high"].as_u64()) {
                assert!(count <= high, "{row}");
                rows += 1;
            }
        }
    }
    (bounds, rows)
}

#[test]
fn one_picture_shows_heavy_hitters_that_are_true() {
    let once = ["--once", "--after", "1s"];
    let text = printed(&[&once, &PRESSED]);
    let looks = objects(&printed(&[&once, &PRESSED, &["--json"]]));
    let [look] = looks.as_slice() else {
        panic!("{} looks", looks.len());
    };
    let (bounds, rows) = true_ones(&looks);
    assert!(bounds >= 1 && rows >= 10, "{bounds} bounds, {rows} rows");
    let flows = &look["groups"][0];
    let threshold = flows["threshold"].as_u64().expect("a threshold");
    let rows = list(&flows["rows"]);
    let certain = rows.iter().filter(|row| row["heavy"] == "certainly");
    let counts: Vec<u64> = certain.filter_map(|row| row["count"].as_u64()).collect();
    let right = counts.iter().filter(|count| **count > threshold).count();
    // A low end misses with a probability of an eighth.
    assert!(
        counts.len() >= 5 && right * 4 >= counts.len() * 3,
        "{counts:?}"
    );
    // Equal seeds draw equal pictures.
    assert!(text.contains("heavy hitters: flows above"), "{text}");
    for row in &rows[..3] {
        let name = row["name"].as_str().expect("a name");
        assert!(text.contains(name), "{name}:\n{text}");
    }
    assert_eq!(text.lines().count(), 24);
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn lines_are_objects_and_no_bound_is_short() {
    let text = printed(&[&PRESSED, &["--json", "--count", "6", "--interval", "200ms"]]);
    let looks = objects(&text);
    assert_eq!(looks.len(), 6);
    let times: Vec<u64> = looks.iter().filter_map(|it| it["at_us"].as_u64()).collect();
    let passed = times.windows(2).map(|two| two[1] - two[0]);
    assert!(passed.clone().all(|us| us >= 200_000), "{times:?}");
    let (bounds, rows) = true_ones(&looks);
    assert!(bounds >= 6 && rows >= 60, "{bounds} bounds, {rows} rows");
    let last = &looks[5]["groups"][0];
    assert!(last["lost"].as_u64() > Some(0), "{last}");
    assert!(last["told"]["age_us"].is_u64(), "{last}");
}

fn asked(address: &str, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the page's server");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: top\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn a_page_and_its_data_are_served_until_it_is_stopped() {
    let mut command = stateplane(&[&["top", "--web", "--interval", "50ms"][..], &PRESSED].concat());
    let mut running = Running::start(&mut command);
    let said = running.child().stdout.take().expect("its output");
    let mut url = String::new();
    BufReader::new(said).read_line(&mut url).expect("a line");
    let address = url.trim().strip_prefix("http://").expect("a URL");
    let address = address.trim_end_matches('/').to_owned();
    let page = asked(&address, "GET", "/");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("<svg"),
        "{page}"
    );
    let deadline = Instant::now() + PATIENCE;
    let data = loop {
        let answer = asked(&address, "GET", "/data.json");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        let data: Value = serde_json::from_str(body).expect("JSON");
        if !list(&data["now"]["groups"][0]["rows"]).is_empty() {
            break data;
        }
        assert!(Instant::now() < deadline, "{data}");
        std::thread::sleep(Duration::from_millis(50));
    };
    true_ones(std::slice::from_ref(&data["now"]));
    let history = list(&data["histories"][0]["values"]["E"]);
    assert_eq!(history.len(), list(&data["histories"][0]["at_us"]).len());
    assert!(history.iter().any(Value::is_number), "{data}");
    assert!(asked(&address, "GET", "/etc/passwd").starts_with("HTTP/1.1 404"));
    assert!(asked(&address, "DELETE", "/data.json").starts_with("HTTP/1.1 405"));
    running.signal("TERM");
    let output = running.finish(PATIENCE);
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn a_picture_is_written_as_svg() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("top.svg");
    let name = path.to_str().expect("a path");
    let said = printed(&[
        &["--svg", name, "--size", "100x40", "--after", "600ms"],
        &PRESSED,
    ]);
    assert_eq!(said, "");
    let svg = fs::read_to_string(&path).expect("it is written");
    assert!(svg.starts_with("<svg ") && svg.contains("#39c5cf"), "{svg}");
}

/// Runs the command, which must refuse with an exit code and say all of `parts`.
fn refuses(arguments: &[&str], code: i32, parts: &[&str]) {
    let arguments = [&["top"][..], arguments].concat();
    let output = Running::start(&mut stateplane(&arguments)).finish(PATIENCE);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "no {part:?}: {arguments:?}: {said}");
    }
    assert!(
        output.stdout.is_empty() && !said.contains("panicked"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_shown_is_refused_with_a_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("it is written");
        path.to_str().expect("a path").to_owned()
    };
    refuses(
        &["--trace", "/no/such.pcap", "--once"],
        2,
        &["error[H207]", "/no/such.pcap"],
    );
    let other = file("other", b"no capture, but long enough to have a header");
    refuses(&["--trace", &other, "--once"], 2, &["error[H207]"]);
    // A header, and a record of which most is missing.
    let mut bytes = captures::empty();
    let empty = file("empty.pcap", &bytes);
    let no_packet = ["error[H207]", "no IPv4 packet"];
    refuses(&["--trace", &empty, "--once"], 2, &no_packet);
    captures::add(&mut bytes, 1_000_000, 60, &[0; 20]);
    let cut = file("cut.pcap", &bytes);
    refuses(
        &["--trace", &cut, "--once"],
        2,
        &["error[H207]", "record 1"],
    );
    let nobody = ["--engine", "127.0.0.1:1", "--once"];
    refuses(&nobody, 4, &["error: no engine answers at 127.0.0.1:1"]);
    for wrong in [
        "--engine 127.0.0.1:1 --rate 7",
        "--engine 127.0.0.1:1 --group flows --family hashpipes",
        "--group flows",
        "--interval 500",
        "--size 10x10",
        "--web nowhere",
        "--rate 0",
    ] {
        refuses(&wrong.split(' ').collect::<Vec<_>>(), 2, &["error: "]);
    }
    let rows = "--engine 127.0.0.1:1 --group flows --rows 99";
    let rows: Vec<&str> = rows.split(' ').collect();
    refuses(&rows, 2, &["error[SKETCH001]"]);
}

/// An engine whose file has these lines, and the address at which it serves clients.
fn engine(
    folder: &Path,
    text: &str,
    start: impl Fn() -> std::process::Command,
) -> (Running, String) {
    let path = folder.join("engine.toml");
    let data = folder.join("data");
    let head = format!("data = \"{}\"\nrpc = \"127.0.0.1:0\"\n", data.display());
    fs::write(&path, head + text).expect("it is written");
    let mut command = start();
    command
        .arg("engine")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    let said = running.child().stderr.take().expect("its log");
    let mut lines = BufReader::new(said).lines().map_while(Result::ok);
    let address = lines.find_map(|line| Some(line.strip_prefix("views: ")?.to_owned()));
    // Its log is read on, so that it does not wait for a reader.
    std::thread::spawn(move || lines.for_each(drop));
    (running, address.expect("an address"))
}

#[test]
fn an_engine_without_a_switch_promises_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "listen = \"127.0.0.1\"\n[[group]]\nname = \"packets\"\nswitch = \"127.0.0.2\"\n\
                group = 0\nlocations = 64\n";
    let start = || std::process::Command::new(STATEPLANE);
    let (_engine, address) = engine(folder.path(), text, start);
    let once = ["--engine", &address, "--once", "--after", "0s"];
    let text = printed(&[&once]);
    let parts = ["registers", &address, "[packets]", "view is not complete"];
    for part in parts {
        assert!(text.contains(part), "no {part:?}:\n{text}");
    }
    let unknown = [&once[..], &["--group", "flows"]].concat();
    refuses(&unknown, 2, &["error[SYNC020]", "flows"]);
}

/// Count-Min with 256 columns, and 16 of partners.
const MACROS: [&str; 4] = [
    "-D",
    "COUNT_MIN_COLUMN_BITS=8",
    "-D",
    "COUNT_MIN_PARTNER_BITS=4",
];

/// A host, a switch and an engine's machine, in namespaces.
fn network() -> Namespaces {
    let all = Namespaces::new(&["switch", "host", "engine"]);
    all.link(("switch", "p0"), ("host", "eth0"));
    all.link(("switch", "p500"), ("engine", "eth0"));
    all.ip("engine", &["address", "add", "10.0.9.9/24", "dev", "eth0"]);
    all.ip("host", &["address", "add", "10.0.8.8/24", "dev", "eth0"]);
    let mac = ["lladdr", "02:00:00:00:00:01", "dev", "eth0"];
    all.ip("host", &[&["neigh", "add", "10.0.8.1"], &mac[..]].concat());
    all.ip("host", &["route", "add", "10.1.0.0/24", "via", "10.0.8.1"]);
    all
}

/// `stateplane run` of Count-Min with a view, once it is ready.
fn switch(network: &Namespaces, folder: &Path) -> Running {
    let [program, config] = ["synced.p4", "switch.toml"].map(|name| folder.join(name));
    let [program, config] = [&program, &config].map(|path| path.to_str().expect("a path"));
    let mut sync = stateplane(&["sync", "apps/count-min/count_min.p4", "-o", program]);
    let output = sync.args(MACROS).output().expect("it runs");
    assert!(output.status.success(), "{}", errors(&output));
    let text = "[sync]\nswitch = 1\naddress = \"10.0.9.1\"\n\
                groups = [{ group = 0, coarsest = 0 }]\n";
    fs::write(config, text).expect("it is written");
    let mut command = network.command("switch", STATEPLANE);
    command
        .args(["run", program, "--config", config])
        .args(["--port", "0=packet:p0", "--port", "500=packet:p500"])
        .args(MACROS)
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut running = Running::start(&mut command);
    let said = running.child().stdout.take().expect("its output");
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    running
}

#[test]
fn an_engine_of_a_switch_shows_locations_and_heavy_hitters() {
    if let Some(why) = missing(&["ip", "bash"]) {
        eprintln!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let network = network();
    let _switch = switch(&network, folder.path());
    let group = |(number, name, locations)| {
        format!(
            "[[group]]\nname = \"{name}\"\nswitch = \"10.0.9.1\"\ngroup = {number}\n\
             locations = {locations}\n"
        )
    };
    let groups = [
        (0, "flows", 769),
        (1, "destinations", 49),
        (2, "sources", 49),
    ];
    let text = format!("listen = \"10.0.9.9\"\n{}", groups.map(group).concat());
    let start = || network.command("engine", STATEPLANE);
    let (_engine, address) = engine(folder.path(), &text, start);
    let send = "exec 3>/dev/udp/10.1.0.3/9; for i in $(seq 30); do printf x >&3; done";
    let sent = network.command("host", "bash").args(["-c", send]).status();
    assert!(sent.expect("bash").success());

    let top = |more: &[&str]| -> Value {
        let mut command = network.command("engine", STATEPLANE);
        command.args([
            "top", "--engine", &address, "--once", "--after", "0s", "--json",
        ]);
        let output = command.args(more).output().expect("it runs");
        assert!(output.status.success(), "{}", errors(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    // All packets are counted in the last location.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let look = top(&[]);
        let mut rows = list(&look["groups"][0]["rows"]).iter();
        let total = rows.find(|it| it["name"] == "location 768");
        if total.is_some_and(|it| it["low"] == 30 && it["high"] == 30) {
            assert_eq!(list(&look["groups"]).len(), 3);
            break;
        }
        assert!(Instant::now() < deadline, "{look}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // The flow's port is one of those that Linux gives.
    let flows = (32_768..61_000).map(|port| format!("10.0.8.8:{port}>10.1.0.3:9/17\n"));
    let path = folder.path().join("flows");
    fs::write(&path, flows.collect::<String>()).expect("it is written");
    let path = path.to_str().expect("a path");
    let sketch = [
        "--group",
        "flows",
        "--column-bits",
        "8",
        "--flows-from",
        path,
    ];
    let look = top(&[&sketch[..], &["--threshold", "20"]].concat());
    assert_eq!(look["packets"], 30);
    let rows = list(&look["groups"][0]["rows"]);
    assert_eq!(rows.len(), 1, "{look}");
    assert_eq!(rows[0]["estimate"], 30);
    assert_eq!(rows[0]["heavy"], "certainly");
}
