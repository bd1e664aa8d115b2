//! Three namespaces in a row: `a` sends, `r` forwards, `b` receives; beside `r` a fourth,
//! `s`, where the store is.

use super::forwarder::Job;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Ethernet addresses that the switch's configuration names.
const A: &str = "02:00:00:00:b1:01";
pub const R0: &str = "02:00:00:00:a1:00";
const R1: &str = "02:00:00:00:a1:01";
pub const B: &str = "02:00:00:00:b2:01";
const R2: &str = "02:00:00:00:a1:02";
const S: &str = "02:00:00:00:c0:00";
/// Ethernet address without a host.
const STRANGER: &str = "02:00:00:00:dd:01";

/// The sender's core, and that of the forwarder and the receiver: if Linux places the three
/// processes on two cores, the placement decides their speed.
const SENDER: &str = "0";
const OTHERS: &str = "1";

/// All nodes.
const NODES: [&str; 4] = ["a", "r", "b", "s"];

/// Placement of the processes on processors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The sender has a core for itself.
    Apart,
    /// All share all.
    Shared,
}

impl Placement {
    /// The processors of a node's processes, as `taskset` takes them.
    fn processors(self, node: &str) -> String {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        match (self, node) {
            (Placement::Shared, _) => format!("0-{}", all - 1),
            (Placement::Apart, "a") => SENDER.to_owned(),
            (Placement::Apart, _) => OTHERS.to_owned(),
        }
    }
}

/// Namespaces `spb<pid><mark>-a`, `-r`, `-b`, `-s`, removed when dropped.
pub struct Network {
    prefix: String,
    placement: Placement,
}

/// Command that tells `b` its neighbours.
fn neighbours_of_b() -> String {
    format!(
        "ip neighbour replace 198.51.100.1 lladdr {R1} dev b0; \
         ip neighbour replace 192.0.2.1 lladdr {A} dev b0"
    )
}

/// Obstacle to making the network, if any.
pub fn missing() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |tool: &str| {
        std::env::split_paths(&path)
            .chain(["/usr/sbin".into(), "/sbin".into()])
            .any(|folder| folder.join(tool).is_file())
    };
    for tool in ["ip", "ethtool", "nft", "iperf3", "taskset"] {
        if !found(tool) {
            return Some(format!("`{tool}` is not installed"));
        }
    }
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        return Some("it needs two cores".to_owned());
    }
    let root = std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.contains("\nUid:\t0\t0"));
    (!root).then(|| "it makes network namespaces and needs root".to_owned())
}

impl Network {
    /// Makes the namespaces and the links between them, whose ends have `queues` queues. Networks that are up
    /// at the same time differ in `mark`.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn up(mark: &str, placement: Placement, queues: usize) -> Network {
        let network = Network {
            prefix: format!("spb{}{mark}", std::process::id()),
            placement,
        };
        let queues = queues.to_string();
        let queues = ["numtxqueues", &queues, "numrxqueues", &queues];
        let [a, r, b, s] = NODES.map(|node| network.namespace(node));
        for namespace in [&a, &r, &b, &s] {
            must(Command::new("ip").args(["netns", "add", namespace]));
        }
        for (left, near, near_mac, far, far_mac, right) in [
            (&a, "a0", A, "r0", R0, &r),
            (&r, "r1", R1, "b0", B, &b),
            // For the sender alone: nothing behind it.
            (&a, "a1", "02:00:00:00:c1:01", "b1", R0, &b),
            (&r, "r2", R2, "s0", S, &s),
        ] {
            must(
                Command::new("ip")
                    .args(["link", "add", near, "netns", left, "address", near_mac])
                    .args(queues)
                    .args(["type", "veth", "peer", "name", far])
                    .args(["netns", right, "address", far_mac])
                    .args(queues),
            );
            for (namespace, interface) in [(left, near), (right, far)] {
                network.within(
                    namespace,
                    &format!(
                        "ethtool -K {interface} rx off tx off sg off tso off gso off gro off >/dev/null; ip link set {interface} up"
                    ),
                );
            }
        }
        for namespace in [&a, &r, &b, &s] {
            network.within(
                namespace,
                "ip link set lo up; for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$f; done; for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done",
            );
        }
        network.within(
            &a,
            &format!("ip address add 10.1.1.1/16 dev a0; ip neighbour add 10.1.1.2 lladdr {R0} dev a0; ip route add default via 10.1.1.2; ip address add 192.0.2.1/24 dev a0; ip neighbour add 192.0.2.2 lladdr {B} dev a0"),
        );
        network.within(
            &b,
            &format!("ip address add 198.51.100.18/24 dev b0; ip route add default via 198.51.100.1; ip address add 192.0.2.2/24 dev b0; {}", neighbours_of_b()),
        );
        // Requests carry a packet and its headers.
        network.within(&r, "ip link set r2 mtu 1700");
        network.within(
            &s,
            &format!("ip link set s0 mtu 1700; ip address add 10.10.0.11/24 dev s0; ip neighbour add 10.10.0.1 lladdr {R2} dev s0"),
        );
        network
    }

    pub fn namespace(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    /// Runs a shell's `script` in `namespace`, and gives what it prints.
    pub fn within(&self, namespace: &str, script: &str) -> String {
        must(Command::new("ip").args(["netns", "exec", namespace, "sh", "-c", script]))
    }

    /// Runs a shell's `script` in `namespace`, or says why it fails.
    pub fn attempt(&self, namespace: &str, script: &str) -> Result<(), String> {
        let output = Command::new("ip")
            .args(["netns", "exec", namespace, "sh", "-c", script])
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    /// Starts this program in `node`, in another role.
    pub fn role(&self, node: &str, arguments: &[&str]) -> Child {
        self.role_beside(node, node, arguments)
    }

    /// The same, on the processors of the node `beside`.
    pub fn role_beside(&self, node: &str, beside: &str, arguments: &[&str]) -> Child {
        let program = std::env::current_exe().expect("this program has a path");
        Command::new("ip")
            .args(["netns", "exec", &self.namespace(node)])
            .args(["taskset", "--cpu-list", &self.placement.processors(beside)])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("this program starts")
    }

    /// Frames that came to `interface` of the receiver.
    pub fn received(&self, interface: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/rx_packets");
        let text = self.within(&self.namespace("b"), &format!("cat {path}"));
        text.trim().parse().expect("a number of packets")
    }

    /// Makes the receiver drop all frames for it on arrival, so that their treatment is not part of
    /// the measurement; or accept them again.
    pub fn drop_frames(&self, drop: bool) {
        let address = if drop { STRANGER } else { B };
        // Linux forgets the neighbours of an interface whose address changes.
        self.within(
            &self.namespace("b"),
            &format!("ip link set b0 address {address}; {}", neighbours_of_b()),
        );
    }

    /// Frames per second that the sender reaches when nothing is behind it.
    pub fn sender_limit(&self) -> f64 {
        let flood = super::Flood::send(self, "a1", STRANGER, 0, 2.0);
        let seconds = flood.seconds;
        flood.sent as f64 / seconds
    }

    /// Gigabits per second of so many TCP streams from `a` to `b`.
    pub fn tcp_gbps(&self, job: Job, streams: u32) -> f64 {
        // On a bridge both hosts are in one network.
        let server_address = match job {
            Job::Bridge => "192.0.2.2",
            Job::Route | Job::Nat | Job::ReplicatedNat => "198.51.100.18",
        };
        let mut server = Command::new("ip")
            .args(["netns", "exec", &self.namespace("b")])
            .args(["taskset", "--cpu-list", &self.placement.processors("b")])
            .args(["iperf3", "--server", "--one-off"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("iperf3 starts");
        std::thread::sleep(Duration::from_millis(300));
        let output = Command::new("ip")
            .args(["netns", "exec", &self.namespace("a")])
            .args(["taskset", "--cpu-list", &self.placement.processors("a")])
            .args([
                "iperf3",
                "--parallel",
                &streams.to_string(),
                "--client",
                server_address,
                "--time",
                "3",
                "--connect-timeout",
                "3000",
                "--json",
            ])
            .output()
            .expect("iperf3 runs");
        // A client that failed never ends the server's one session.
        let _ = server.kill();
        let _ = server.wait();
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        result["end"]["sum_received"]["bits_per_second"]
            .as_f64()
            .map_or(0.0, |bits| bits / 1e9)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for node in NODES {
            let _ = Command::new("ip")
                .args(["netns", "delete", &self.namespace(node)])
                .status();
        }
    }
}

/// Runs `command` to its end, and gives what it prints.
///
/// # Panics
///
/// If it fails.
fn must(command: &mut Command) -> String {
    let output = command.output().expect("the command starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The repository's folder.
pub fn repository() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}
