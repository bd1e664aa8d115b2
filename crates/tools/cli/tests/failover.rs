//! The product's promise with real TCP: connections whose switch is killed go on, and a
//! lab leaves nothing behind, however it ends. Needs root, `ip`, `ethtool`, `setpriv` and
//! `iperf3`; passes with a message where these are missing.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{Running, errors, in_memory, missing, stateplane};

/// Long-lived connections: so many that by chance alone neither switch carries less than
/// its share.
const CONNECTIONS: u64 = 120;

/// Two labs at once would disturb each other's times.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static LAB: Mutex<()> = Mutex::new(());
    if let Some(reason) = missing(&["ip", "ethtool", "setpriv", "iperf3"]) {
        eprintln!("not tested: {reason}");
        return None;
    }
    // A failed test has told its reason, and must not hide those of the others.
    Some(LAB.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Names in `folder` that belong to labs of process `owner`.
fn names(folder: &str, owner: u32) -> Vec<String> {
    let prefix = format!("sp{owner}n");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(&prefix))
        .collect()
}

/// Ids of the processes that run in `namespaces`.
fn processes(namespaces: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for namespace in namespaces {
        let listed = Command::new("ip")
            .args(["netns", "pids", namespace])
            .output()
            .expect("`ip` runs");
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        found.extend(text.split_whitespace().map(str::to_owned));
    }
    found
}

fn nothing_left(owner: u32, processes: &[String]) {
    assert_eq!(names("/run/netns", owner), [""; 0]);
    assert_eq!(names("/run/stateplane-lab", owner), [""; 0]);
    for pid in processes {
        // A process that has ended but whose end nobody has asked for has no command line.
        let line = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        assert!(
            !["stateplane", "iperf3"]
                .iter()
                .any(|name| line.contains(name)),
            "process {pid} is left: {line}"
        );
    }
}

/// The protected run of the demonstration, with `words` besides.
fn demonstration(words: &[&str], output: &Path, logs: &Path) -> Running {
    Running::start(
        stateplane(&["lab", "demo", "--runs", "protected"])
            .args(words)
            .args(["--connections", &CONNECTIONS.to_string()])
            .args(["--rate-mbps", "5"])
            .arg("--output")
            .arg(output)
            .arg("--logs")
            .arg(logs),
    )
}

#[test]
fn connections_survive_their_switch() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("demo");
    let logs = folder.path().join("logs");
    let times = ["--seconds", "22", "--kill-at", "7", "--restart-at", "13"];
    let mut demo = demonstration(&times, &output, &logs);
    let owner = demo.child().id();
    let ended = demo.finish(Duration::from_secs(120));
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &errors(&ended);
    assert!(ended.status.success(), "{said}");

    let text = fs::read_to_string(output.join("result.json")).expect(&said);
    let result: serde_json::Value = serde_json::from_str(&text).expect(&said);
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(1), "{said}");
    let run = &result["runs"][0];
    let number = |name: &str| {
        run[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {run}"))
    };
    assert_eq!(run["name"], "protected");
    assert!(run["killed_switch"].is_string(), "{said}");
    assert_eq!(run["killed_switch"], run["iperf_switch"], "{said}");
    assert_eq!(number("long_lived"), CONNECTIONS, "{said}");
    assert!(number("opened") > CONNECTIONS, "{said}");
    assert!(number("exchanges") > CONNECTIONS, "{said}");
    assert_eq!(number("broken"), 0, "{said}");
    assert_eq!(number("wrong_bytes"), 0, "{said}");
    assert!(number("longest_stall_ms") <= 3000, "{said}");
    assert!(number("longest_opening_ms") <= 3000, "{said}");
    assert_eq!(run["iperf_completed"], true, "{said}");
    assert!(output.join("result.html").exists());
    for switch in ["s1", "s2"] {
        let told = format!("protected: {switch}: engine native; ports ");
        let mut lines = said.lines().filter_map(|line| line.strip_prefix(&told));
        assert!(lines.any(|modes| modes.contains("AF_")), "{said}");
    }
    nothing_left(owner, &[]);
}

/// Output of `stateplane lab run`.
struct Judged {
    reports: serde_json::Value,
    /// Everything that it said.
    all: String,
    owner: u32,
}

/// Runs `scenarios` with `words` besides, and logs in `folder`. The checkers object to nothing.
fn judged(scenarios: &[&str], words: &[&str], folder: &Path, patience: Duration) -> Judged {
    let mut run = Running::start(
        stateplane(&[&["lab", "run", "--json"], scenarios].concat())
            .args(words)
            .args(["--phase-ms", "1500"])
            .arg("--logs")
            .arg(folder),
    );
    let owner = run.child().id();
    let ended = run.finish(patience);
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let all = said.clone() + &errors(&ended);
    assert!(ended.status.success(), "{all}");
    let reports: serde_json::Value = serde_json::from_str(&said).expect(&all);
    assert_eq!(
        reports.as_array().map(Vec::len),
        Some(scenarios.len()),
        "{all}"
    );
    for report in reports.as_array().into_iter().flatten() {
        assert_eq!(report["wrong"].as_array().map(Vec::len), Some(0), "{all}");
    }
    Judged {
        reports,
        all,
        owner,
    }
}

/// Each fault of a report, and that all flows came over it.
fn happened(report: &serde_json::Value) -> Vec<&str> {
    let moves = report["moves"].as_array().map(Vec::as_slice);
    let moves = moves.unwrap_or_default();
    for moved in moves {
        assert_eq!(moved["flows"], 12, "{report}");
        assert_eq!(moved["silent"], 0, "{report}");
    }
    let told = moves.iter().filter_map(|moved| moved["what"].as_str());
    told.collect()
}

/// Hosts judge by what they see of the NAT which endpoint belongs to which.
#[test]
fn the_nat_s_mappings_stay_what_they_are() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let words = ["--faults", "kill"];
    let run = judged(&["nat"], &words, folder.path(), Duration::from_secs(60));
    let received = run.reports[0]["received"].as_u64();
    assert!(received > Some(100), "{}", run.all);
    nothing_left(run.owner, &[]);
}

/// Hosts of applications check their traffic while flows move and their switch is killed.
#[test]
fn applications_survive_their_switch() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let scenarios = ["firewall", "key-value", "heavy-hitter", "count-min"];
    let words = ["--faults", "reroute,kill"];
    let patience = Duration::from_secs(120);
    let Judged {
        reports,
        all,
        owner,
    } = judged(&scenarios, &words, folder.path(), patience);
    for report in reports.as_array().into_iter().flatten() {
        assert!(report["received"].as_u64() > Some(100), "{all}");
        let faults = ["rerouted", "rerouted back", "killed"];
        assert_eq!(happened(report), faults, "{all}");
    }
    let sessions = &reports[0]["sessions"];
    assert_eq!(sessions["broken"], 0, "{all}");
    assert_eq!(sessions["wrong_bytes"], 0, "{all}");
    assert!(sessions["exchanges"].as_u64() > Some(100), "{all}");
    // By hand, and as `stateplane protect` makes it of a plain program.
    for report in [&reports[2], &reports[3]] {
        let tenants = report["sketch"]["tenants"].as_array();
        for tenant in tenants.into_iter().flatten() {
            assert_eq!(tenant["heavy"].as_array().map(Vec::len), Some(6), "{all}");
        }
        assert_eq!(tenants.map(Vec::len), Some(2), "{all}");
    }
    let history = folder.path().join("run-firewall/history.txt");
    assert!(history.exists(), "{all}");
    nothing_left(owner, &[]);
}

/// Hosts check what was read and written while servers of the store stand still and lose their power.
#[test]
fn an_application_survives_its_store() {
    let Some(_alone) = alone() else { return };
    // Servers write through what they keep: a disk that others load would be too slow for the traffic.
    let folder = in_memory();
    let words = ["--faults", "server-stand-still,power-cut"];
    let patience = Duration::from_secs(120);
    let run = judged(&["key-value"], &words, folder.path(), patience);
    let stood = ["st0", "st0", "st1", "st1", "st2", "st2"];
    let stood = stood.map(|server| format!("{server} stood still"));
    let happened = happened(&run.reports[0]);
    assert_eq!(happened[..6], stood, "{}", run.all);
    assert_eq!(happened[6..], ["lost power"; 2], "{}", run.all);
    for server in ["st0", "st1", "st2"] {
        let folder = folder.path().join("run-key-value/disks").join(server);
        let kept = fs::read_dir(&folder).expect("a disk").count();
        assert!(kept > 0, "{server} kept nothing");
    }
    nothing_left(run.owner, &[]);
}

#[test]
fn sealed_connections_survive_their_switch() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (output, logs) = (folder.path().join("demo"), folder.path().join("logs"));
    let times = ["--seconds", "17", "--kill-at", "6", "--restart-at", "10"];
    let demo = demonstration(&[&["--keys"], &times[..]].concat(), &output, &logs);
    let ended = demo.finish(Duration::from_secs(120));
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &errors(&ended);
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("no connection breaks (0 of"), "{said}");
    // A process that was told of its file of keys takes sealed messages alone.
    for process in ["s1", "s2", "st0", "st1", "st2"] {
        let keys = logs
            .join("nat-protected")
            .join(format!("{process}.keys.toml"));
        let mode = fs::metadata(&keys).expect(process).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{process}");
    }
}

#[test]
fn an_ordinary_user_has_the_lab_in_a_user_namespace() {
    let Some(_alone) = alone() else { return };
    const NOBODY: [&str; 5] = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let may = Command::new("setpriv")
        .args(NOBODY)
        .args(["unshare", "--user", "--map-root-user", "--net", "true"])
        .status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("not tested: the kernel gives users no user namespaces");
        return;
    }
    // The repository may lie in a folder that only root can enter.
    let folder = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let copied = Command::new("cp")
        .arg("--recursive")
        .args([support::STATEPLANE, "lab", "p4", "apps"])
        .arg(folder.path())
        .current_dir(support::repository())
        .status()
        .unwrap();
    assert!(copied.success());
    let given = Command::new("chown")
        .args(["--recursive", "65534:65534"])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(given.success());
    let output = Command::new("setpriv")
        .args(NOBODY)
        .arg(folder.path().join("stateplane"))
        .args(["lab", "demo", "--runs", "protected", "--seconds", "17"])
        .args(["--kill-at", "6", "--restart-at", "10", "--rate-mbps", "5"])
        .args(["--connections", &CONNECTIONS.to_string()])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("no connection breaks (0 of"), "{said}");
}

/// Starts a lab by `arguments`, waits until all its namespaces are there and processes
/// run in them, then sends `signal`: it must end soon and leave nothing.
fn interrupted(arguments: &[&str], signal: &str) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let mut lab = Running::start(stateplane(arguments).arg("--logs").arg(folder.path()));
    let owner = lab.child().id();
    let deadline = Instant::now() + Duration::from_secs(60);
    // Stores and switches: five processes.
    while processes(&names("/run/netns", owner)).len() < 5 {
        assert!(Instant::now() < deadline, "the lab does not come up");
        if lab.ended().is_some() {
            let output = lab.finish(Duration::ZERO);
            panic!("the lab ended: {}", errors(&output));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(5));
    let children = processes(&names("/run/netns", owner));
    assert!(children.len() >= 5, "{children:?}");
    lab.signal(signal);
    let output = lab.finish(Duration::from_secs(20));
    nothing_left(owner, &children);
    output
}

#[test]
fn an_interrupted_demonstration_leaves_nothing_behind() {
    let Some(_alone) = alone() else { return };
    let output = interrupted(&["lab", "demo", "--runs", "protected"], "INT");
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("error[LAB130]: interrupted"), "{said}");
}

#[test]
fn a_lab_that_is_stopped_leaves_nothing_behind() {
    let Some(_alone) = alone() else { return };
    let output = interrupted(
        &["lab", "up", "lab/nat.toml", "--variant", "protected"],
        "TERM",
    );
    assert!(output.status.success(), "{}", errors(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("nat is up"), "{said}");
}
