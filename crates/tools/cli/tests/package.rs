//! Contents of packages: files, man pages, completions, units of systemd with the rights that they
//! give. `make package-test` tries whole packages in a fresh Debian.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;
#[path = "package/unit.rs"]
mod unit;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::namespaces::Namespaces;
use support::{Running, STATEPLANE, errors, missing, repository, stateplane};
use unit::Unit;

const KINDS: [&str; 4] = ["switch", "store", "controller", "engine"];

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", errors(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Path of a tool, if there is one.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found.find(|path| path.exists())
}

/// Names of the subcommands that help shows.
fn commands(of: &[&str]) -> Vec<String> {
    let help = text(&stateplane(&[of, &["--help"]].concat()).output().unwrap());
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_command_has_a_man_page_and_the_completions_know_it() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let made = stateplane(&["manual", &pages.display().to_string()]).output();
    text(&made.unwrap());
    let completions: BTreeMap<&str, String> = ["bash", "zsh", "fish"]
        .map(|shell| {
            (
                shell,
                text(&stateplane(&["completions", shell]).output().unwrap()),
            )
        })
        .into();
    let all = commands(&[]);
    assert!(
        all.len() > 20 && !all.contains(&"manual".to_owned()),
        "{all:?}"
    );
    for command in &all {
        let page = fs::read_to_string(pages.join(format!("stateplane-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("page of {command}: {error}"));
        assert!(page.contains(".SH DESCRIPTION"), "{command}: {page}");
        for (shell, script) in &completions {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
    for command in commands(&["ctl", "store"]) {
        assert!(
            pages
                .join(format!("stateplane-ctl-store-{command}.1"))
                .exists(),
            "{command}"
        );
    }
    let run = fs::read_to_string(pages.join("stateplane-run.1")).unwrap();
    assert!(
        run.contains("take\\-over") && run.contains("AF_XDP"),
        "{run}"
    );
    let first = fs::read_to_string(pages.join("stateplane.1")).unwrap();
    assert!(first.contains("Exit codes"), "{first}");
    for (shell, checks) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let Some(shell_path) = tool(shell) else {
            continue;
        };
        let script = folder.path().join(shell);
        fs::write(&script, &completions[shell]).unwrap();
        text(
            &Command::new(shell_path)
                .arg(checks)
                .arg(&script)
                .output()
                .unwrap(),
        );
    }
    if let Some(groff) = tool("groff") {
        let mut command = Command::new(groff);
        command
            .args(["-man", "-Tutf8", "-ww"])
            .arg(pages.join("stateplane-run.1"));
        let output = command.output().unwrap();
        assert!(errors(&output).is_empty(), "{}", errors(&output));
    }
}

#[test]
fn an_installed_command_is_whole_without_the_repository() {
    if tool("objcopy").is_none() {
        eprintln!("not tried: `objcopy` is not installed");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    // What an operator has written stays.
    let written = "OPTIONS=--workers 2\n";
    fs::create_dir_all(at("etc/stateplane")).unwrap();
    fs::write(at("etc/stateplane/switch.env"), written).unwrap();
    let mut install = Command::new(repository().join("packaging/install.sh"));
    install.args([STATEPLANE, "/usr"]).arg(root.path());
    text(&install.output().unwrap());
    let size = |path: &str| fs::metadata(at(path)).unwrap().len();
    assert!(size("usr/bin/stateplane") < fs::metadata(STATEPLANE).unwrap().len());
    assert!(size("usr/lib/debug/usr/bin/stateplane.debug") > 1 << 20);
    for path in [
        "usr/share/man/man1/stateplane-run.1.gz",
        "usr/share/bash-completion/completions/stateplane",
        "usr/share/zsh/vendor-completions/_stateplane",
        "usr/share/fish/vendor_completions.d/stateplane.fish",
        "usr/lib/sysusers.d/stateplane.conf",
        "usr/share/doc/stateplane/README.md",
        "usr/share/doc/stateplane/copyright",
        "usr/share/doc/stateplane/changelog.gz",
        "usr/share/stateplane/lab/nat/switch.toml",
        "usr/share/stateplane/apps/nat/nat.p4",
        "usr/share/stateplane/examples/cable.p4",
    ] {
        assert!(size(path) > 0, "{path}");
    }
    for kind in KINDS {
        assert!(
            size(&format!(
                "usr/lib/systemd/system/stateplane-{kind}@.service"
            )) > 0
        );
        assert!(size(&format!("etc/stateplane/{kind}.env")) > 0);
    }
    let kept = fs::read_to_string(at("etc/stateplane/switch.env")).unwrap();
    assert_eq!(kept, written);

    // The lab finds its networks where they were installed, from any folder.
    let mut list = Command::new(at("usr/bin/stateplane"));
    list.args(["lab", "up", "lab/nat.toml", "--variant", "nothing"]);
    let output = list.current_dir(root.path().join("etc")).output().unwrap();
    let said = errors(&output);
    if missing(&["ip", "ethtool"]).is_none() {
        assert!(said.contains("no variant `nothing`"), "{said}");
    }
}

#[test]
fn units_start_what_the_command_takes_and_have_users_of_their_own() {
    let users = fs::read_to_string(repository().join("packaging/sysusers.conf")).unwrap();
    for kind in KINDS {
        let unit = Unit::read(kind);
        let user = format!("stateplane-{kind}");
        assert_eq!(unit.value("Service", "User"), user);
        assert!(users.contains(&format!("\nu {user} ")), "{users}");
        for (key, wanted) in [("NoNewPrivileges", "yes"), ("ProtectSystem", "strict")] {
            assert_eq!(unit.value("Service", key), wanted, "{kind}: {key}");
        }
        let rights = unit.value("Service", "CapabilityBoundingSet");
        match kind {
            "switch" => assert_eq!(rights, unit.value("Service", "AmbientCapabilities")),
            _ => assert_eq!(rights, "", "{kind}"),
        }
        // The command line takes every option; it stops at `--help` before it reads a file.
        let values = BTreeMap::from([
            ("PROGRAM".to_owned(), "/etc/stateplane/p.p4".to_owned()),
            ("PORTS".to_owned(), "--port 0=eth0".to_owned()),
        ]);
        let mut words = unit.start(
            if kind == "engine" {
                "views"
            } else {
                "10.0.0.1"
            },
            &values,
        );
        assert_eq!(words.remove(0), "/usr/bin/stateplane");
        words.push("--help".to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = stateplane(&words).output().unwrap();
        assert!(output.status.success(), "{kind}: {}", errors(&output));
    }
}

#[test]
fn systemd_accepts_the_units() {
    let Some(analyze) = tool("systemd-analyze") else {
        eprintln!("not tried: `systemd-analyze` is not installed; other tests parse the units");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(&analyze);
    command.args(["verify", "--man=no"]);
    for kind in KINDS {
        // The command of a unit has to exist.
        let name = format!("stateplane-{kind}@.service");
        let text = fs::read_to_string(repository().join("packaging/systemd").join(&name)).unwrap();
        let path = folder.path().join(&name);
        fs::write(&path, text.replace("/usr/bin/stateplane", STATEPLANE)).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert!(
        !errors(&output).contains("stateplane"),
        "{}",
        errors(&output)
    );
}

/// A command of a unit as systemd starts it: as the user `nobody`, with the unit's capabilities
/// less `without`.
fn as_unit(namespaces: &Namespaces, node: &str, unit: &Unit, without: &str) -> Command {
    let rights = unit
        .value("Service", "CapabilityBoundingSet")
        .to_lowercase();
    let rights: Vec<&str> = rights
        .split_whitespace()
        .filter_map(|right| right.strip_prefix("cap_"))
        .filter(|right| *right != without)
        .collect();
    let added = rights.iter().map(|right| format!(",+{right}"));
    let set = format!("-all{}", added.collect::<String>());
    let mut command = namespaces.command(node, "setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args([format!("--inh-caps={set}"), format!("--ambient-caps={set}")])
        .args([format!("--bounding-set={set}"), "--no-new-privs".to_owned()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts the switch of `folder` with the rights of its unit; tells whether it says `ready`.
fn switch_starts(namespaces: &Namespaces, folder: &Path, without: &str) -> (bool, String) {
    let unit = Unit::read("switch");
    let mut values = unit::environment(&folder.join("switch-1.env"));
    values.insert("OPTIONS".to_owned(), "--patience 2".to_owned());
    let mut command = as_unit(namespaces, "switch", &unit, without);
    for word in unit.start("1", &values) {
        let word = word
            .replace("/usr/bin/stateplane", STATEPLANE)
            .replace("/etc/stateplane", &folder.display().to_string())
            .replace("/run/stateplane-switch", &folder.display().to_string());
        command.arg(word);
    }
    let mut running = Running::start(&mut command);
    let mut line = String::new();
    let out = running.child().stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    if line == "ready\n" {
        running.signal("TERM");
    }
    let said = errors(&running.finish(Duration::from_secs(20)));
    (line == "ready\n", said)
}

#[test]
fn services_of_init_run_with_the_rights_of_their_units_and_no_others() {
    if let Some(missing) = missing(&["ip", "setpriv"]) {
        eprintln!("not tried: {missing}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    text(
        &stateplane(&["init", "--example", &path("")])
            .output()
            .unwrap(),
    );
    let (program, deployment) = (path("limiter.p4"), path("deployment.toml"));
    let arguments = [
        "init",
        &program,
        "--deployment",
        &deployment,
        "-o",
        &path(""),
    ];
    let printed = text(&stateplane(&arguments).output().unwrap());
    for unit in ["stateplane-store@10.10.0.13", "stateplane-switch@2"] {
        assert!(
            printed.contains(&format!("systemctl enable --now {unit}\n")),
            "{printed}"
        );
    }
    // Another user reads what init wrote, and has a folder for the switch's socket.
    let open = "chmod -R a+rX \"$1\" && mkdir \"$1/1\" && chmod 777 \"$1/1\"";
    let opened = Command::new("sh")
        .args(["-c", open, "sh", &path("")])
        .status();
    assert!(opened.unwrap().success());
    // One server is the whole chain, at the far end of the switch's cable.
    let config = fs::read_to_string(path("store.toml")).unwrap();
    let chain = "chain = [\"10.10.0.11\", \"10.10.0.12\", \"10.10.0.13\"]";
    assert!(config.contains(chain), "{config}");
    fs::write(
        path("store.toml"),
        config.replace(chain, "chain = [\"10.10.0.11\"]"),
    )
    .unwrap();

    let namespaces = Namespaces::new(&["left", "switch", "right", "store"]);
    namespaces.link(("left", "eth0"), ("switch", "eth0"));
    namespaces.link(("right", "eth0"), ("switch", "eth1"));
    namespaces.link(("store", "eth0"), ("switch", "eth2"));
    for (node, interface) in [("store", "eth0"), ("switch", "eth2")] {
        namespaces.ip(node, &["link", "set", interface, "mtu", "1700"]);
    }
    namespaces.ip(
        "store",
        &["link", "set", "eth0", "address", "02:00:00:00:c0:01"],
    );
    namespaces.ip(
        "switch",
        &["link", "set", "eth2", "address", "02:00:00:00:a1:02"],
    );
    namespaces.ip("store", &["address", "add", "10.10.0.11/24", "dev", "eth0"]);
    let mac = ["lladdr", "02:00:00:00:a1:02", "dev", "eth0"];
    namespaces.ip(
        "store",
        &[&["neighbour", "add", "10.10.0.1"][..], &mac].concat(),
    );

    let unit = Unit::read("store");
    let mut values = unit::environment(&repository().join("packaging/etc/store.env"));
    let options = values.get_mut("OPTIONS").unwrap();
    *options = options.replace("state", &path("1/state"));
    let mut command = as_unit(&namespaces, "store", &unit, "");
    for word in unit.start("10.10.0.11", &values) {
        let word = word.replace("/usr/bin/stateplane", STATEPLANE);
        command.arg(word.replace("/etc/stateplane", &folder.path().display().to_string()));
    }
    let mut store = Running::start(&mut command);
    let mut line = String::new();
    let out = store.child().stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    if line != "ready\n" {
        panic!("{}", errors(&store.finish(Duration::from_secs(10))));
    }
    assert!(
        folder.path().join("1/state").exists(),
        "the store keeps its state"
    );

    let (ready, said) = switch_starts(&namespaces, folder.path(), "");
    assert!(ready, "{said}");
    for right in ["net_raw", "net_admin"] {
        // Ports that a switch left behind down are no reason to start without the rights.
        for port in ["eth0", "eth1"] {
            namespaces.ip("switch", &["link", "set", port, "down"]);
        }
        let (ready, said) = switch_starts(&namespaces, folder.path(), right);
        assert!(!ready, "without {right} it starts as well: {said}");
    }
}

#[test]
fn the_version_tells_commit_and_features() {
    let short = text(&stateplane(&["-V"]).output().unwrap());
    assert!(
        short.starts_with("stateplane ") && short.lines().count() == 1,
        "{short}"
    );
    let long = text(&stateplane(&["--version"]).output().unwrap());
    for told in [
        "\ncommit: ",
        "\ntarget: ",
        "\nfeatures:",
        "AF_XDP",
        "P4Runtime",
    ] {
        assert!(long.contains(told), "{long}");
    }
}

#[test]
fn the_changelog_has_the_release_and_the_known_headings() {
    let log = fs::read_to_string(repository().join("CHANGELOG.md")).unwrap();
    assert!(log.contains("## [Unreleased]"), "{log}");
    let release = env!("CARGO_PKG_VERSION");
    assert!(log.contains(release), "{release} is not told");
    let known = [
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
    ];
    let headings = log.lines().filter_map(|line| line.strip_prefix("### "));
    for heading in headings {
        assert!(known.contains(&heading), "{heading}");
    }
}
