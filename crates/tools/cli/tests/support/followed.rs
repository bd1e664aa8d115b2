//! A switch between two hosts, and the servers of its store with their controller, in namespaces.

use super::cluster::SERVERS;
use super::namespaces::Namespaces;
use super::{Running, STATEPLANE, repository};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Two hosts, a switch between them, and a node with all servers and the controller.
pub fn network() -> Namespaces {
    let net = Namespaces::new(&["h1", "h2", "sw", "store"]);
    net.link(("h1", "eth0"), ("sw", "eth0"));
    net.link(("h2", "eth0"), ("sw", "eth1"));
    net.link(("sw", "eth2"), ("store", "eth0"));
    let mac = |name: &str, device: &str, mac: &str| {
        net.ip(name, &["link", "set", device, "address", mac]);
    };
    mac("h1", "eth0", "02:00:00:00:01:01");
    mac("h2", "eth0", "02:00:00:00:02:01");
    mac("sw", "eth2", "02:00:00:00:0a:01");
    mac("store", "eth0", "02:00:00:00:0b:01");
    for (name, device, address) in [
        ("h1", "eth0", "10.1.0.1/24"),
        ("h2", "eth0", "10.2.0.1/24"),
        ("sw", "eth2", "10.10.0.1/24"),
        ("store", "eth0", "10.10.0.11/24"),
        ("store", "eth0", "10.10.0.12/24"),
        ("store", "eth0", "10.10.0.13/24"),
        ("store", "eth0", "10.10.0.20/24"),
    ] {
        net.ip(name, &["address", "add", address, "dev", device]);
    }
    net.ip("sw", &["link", "set", "eth2", "mtu", "1700"]);
    net.ip("store", &["link", "set", "eth0", "mtu", "1700"]);
    net.ip("h1", &["route", "add", "10.2.0.0/16", "via", "10.1.0.2"]);
    let neighbour = [
        "neighbour",
        "add",
        "10.1.0.2",
        "lladdr",
        "02:00:00:00:01:02",
        "dev",
        "eth0",
    ];
    net.ip("h1", &neighbour);
    net
}

/// The file of that switch, whose chains the controller at 10.10.0.20 makes; `more` goes before its
/// tables.
pub fn switch_file(more: &str) -> String {
    let servers = SERVERS
        .map(|host| format!("{{ address = \"10.10.0.1{host}\", mac = \"02:00:00:00:0b:01\" }}"));
    format!(
        r#"
        {more}
        [[entries]]
        table = "router.routes"
        keys = ["10.1.0.0/16"]
        action = "via"
        params = {{ address = "10.1.0.1" }}
        [[entries]]
        table = "router.routes"
        keys = ["10.2.0.0/16"]
        action = "via"
        params = {{ address = "10.2.0.1" }}
        [neighbours]
        table = "router.neighbours"
        action = "forward"
        list = [
          {{ address = "10.1.0.1", port = 0, mac = "02:00:00:00:01:01", source_mac = "02:00:00:00:01:02" }},
          {{ address = "10.2.0.1", port = 1, mac = "02:00:00:00:02:01", source_mac = "02:00:00:00:02:02" }},
        ]
        [replication]
        switch = 1
        address = "10.10.0.1"
        mac = "02:00:00:00:0a:01"
        port = 2
        [chains]
        controllers = ["10.10.0.20:4795"]
        switch = 1
        port = 2
        mtu = 1700
        servers = [{}]
        "#,
        servers.join(", "),
    )
}

/// Starts the built command in a namespace, and waits until it is ready.
pub fn start(net: &Namespaces, name: &str, arguments: &[&str]) -> Running {
    start_with(net, name, arguments, Stdio::null())
}

/// Like [`start`], with its errors to `errors`.
pub fn start_with(net: &Namespaces, name: &str, arguments: &[&str], errors: Stdio) -> Running {
    let mut command = net.command(name, STATEPLANE);
    command
        .args(arguments)
        .current_dir(repository())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors);
    let mut running = Running::start(&mut command);
    let output = running.child().stdout.take().unwrap();
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "ready", "{command:?}");
    running
}
