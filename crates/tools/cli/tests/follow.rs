//! A switch whose chains a controller makes: no number is given twice to the packets
//! that pass while the servers under it are killed. Needs root and `ip`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use support::followed::{network, start, switch_file};
use support::{Running, STATEPLANE, missing};

/// Sends a packet with room for a number every 5 ms for ever, of `FLOWS` flows in turn.
const SEND: &str = "
import socket, time
def bound(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(('10.1.0.1', port))
    return s
flows = [bound(4000 + number) for number in range(FLOWS)]
while True:
    for s in flows:
        s.sendto(bytes(16), ('10.2.0.1', 5000))
        time.sleep(0.005)
";

/// Prints the number in each packet, with its flow.
const RECEIVE: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('10.2.0.1', 5000))
print('ready', flush=True)
while True:
    data, sender = s.recvfrom(2048)
    print(int.from_bytes(data[:8], 'big') << 16 | sender[1], flush=True)
";

const DEPLOYMENT: &str = r#"
operator_port = 4796
[controller]
addresses = ["10.10.0.20"]
log = "LOG"
heartbeat_ms = 50
detection_ms = 300
[replication]
shards = 4
term_ms = 100
[[replication.class]]
id = 1
state_length = 8
first_lease = "zero"
"#;

/// The next number that arrives, within 20 s.
fn next(lines: &std::sync::mpsc::Receiver<u64>) -> u64 {
    let patience = Duration::from_secs(20);
    lines.recv_timeout(patience).expect("no packet passes")
}

#[test]
fn a_switch_follows_the_chains_of_a_controller() {
    follows(1, 1);
}

/// The heads of chains reach the worker of each flow.
#[test]
fn a_switch_with_several_workers_follows_the_chains_of_a_controller() {
    follows(3, 8);
}

fn follows(workers: usize, flows: usize) {
    // Names of namespaces are those of the process.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(reason) = missing(&["ip", "python3"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let net = network();
    let deployment = folder.path().join("deployment.toml");
    let log = folder.path().join("log");
    let text = DEPLOYMENT.replace("LOG", log.to_str().unwrap());
    std::fs::write(&deployment, text).unwrap();
    let config = folder.path().join("switch.toml");
    std::fs::write(&config, switch_file("")).unwrap();

    let start = |name: &str, arguments: &[&str]| start(&net, name, arguments);
    let path = deployment.to_str().unwrap();
    let _controller = start("store", &["controller", "--config", path]);
    let store = |host: u8| {
        let own = format!("10.10.0.1{host}");
        start("store", &["store", "--config", path, "--listen", &own])
    };
    let mut stores = [1, 2, 3].map(|host| Some(store(host)));
    let _switch = start(
        "sw",
        &[
            "run",
            "apps/counter/counter.p4",
            "--workers",
            &workers.to_string(),
            "--config",
            config.to_str().unwrap(),
            "--port",
            "0=packet:eth0",
            "--port",
            "1=packet:eth1",
            "--port",
            "2=packet:eth2",
        ],
    );
    let python = |name: &str, script: &str| {
        let mut command = net.command(name, "python3");
        command
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    };
    let mut receiver = Running::start(&mut python("h2", RECEIVE));
    let output = receiver.child().stdout.take().unwrap();
    let (sender, numbers) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        for number in lines.filter_map(|line| line.parse::<u64>().ok()) {
            if sender.send(number).is_err() {
                return;
            }
        }
    });
    let send = SEND.replace("FLOWS", &flows.to_string());
    let _sender = Running::start(python("h1", &send).stdout(Stdio::null()));

    let mut seen = BTreeSet::new();
    let mut count = |most: usize| {
        // Until each flow has had its part: one that waits for ever is not made up for by others.
        let mut left = vec![most.div_ceil(flows); flows];
        let end = Instant::now() + Duration::from_secs(20);
        while left.iter().any(|left| *left > 0) {
            let number = next(&numbers);
            assert!(seen.insert(number), "{number} was given twice");
            let flow = (number & 0xffff) as usize - 4000;
            left[flow] = left[flow].saturating_sub(1);
            assert!(Instant::now() < end, "packets missing of flows: {left:?}");
        }
    };
    count(100);
    for host in 1..=3u8 {
        let at = usize::from(host - 1);
        let begin = Instant::now();
        drop(stores[at].take());
        count(200);
        println!(
            "server {host} killed: 200 packets more after {:?}",
            begin.elapsed()
        );
        stores[at] = Some(store(host));
        let waited = net
            .command("store", STATEPLANE)
            .args(["ctl", "store", "--config", path, "wait", "60"])
            .output()
            .unwrap();
        assert!(
            waited.status.success(),
            "{}",
            String::from_utf8_lossy(&waited.stderr)
        );
        count(50);
    }
}
