//! A client and a chain of three switches in a ring of namespaces, a ring of three more whose ports seal
//! their messages, a third one whose switches only forward, and a namespace that echoes:
//!
//! ```text
//! c ── s1 ── s2 ── s3 ── c ── k1 ── k2 ── k3 ── c ── r1 ── r2 ── r3 ── c ── e
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Number of switches, head first.
pub const SWITCHES: usize = 3;

/// Address of the client, on its link to the first switch.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 1);

/// Address to which datagrams go that the ring of relays brings back.
pub const RELAY: Ipv4Addr = Ipv4Addr::new(10, 40, 1, 1);

/// Address of the echo.
pub const ECHO: Ipv4Addr = Ipv4Addr::new(10, 30, 9, 2);

/// A chain of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Messages pass as they are.
    Plain,
    /// The switches' ports and the client seal messages.
    Sealed,
}

impl Chain {
    /// First letter of its switches' nodes.
    pub const fn node(self) -> &'static str {
        match self {
            Chain::Plain => "s",
            Chain::Sealed => "k",
        }
    }

    /// The chain of that letter.
    pub fn of_node(node: &str) -> Chain {
        match node {
            "s" => Chain::Plain,
            "k" => Chain::Sealed,
            _ => panic!("no such chain: {node}"),
        }
    }

    /// UDP port of its client.
    pub const fn client_port(self) -> u16 {
        40_000 + self as u16
    }

    /// Address of a switch, from 1.
    pub const fn switch(self, number: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 40, 10 * self as u8, number as u8)
    }

    /// Ethernet address of a switch's port 0, towards the head's side, or 1.
    pub fn switch_mac(self, number: usize, port: usize) -> String {
        let letter = match self {
            Chain::Plain => 'a',
            Chain::Sealed => 'c',
        };
        format!("02:00:00:00:{letter}{number}:0{port}")
    }

    /// The client's interfaces: towards the first switch, towards the last.
    pub const fn client_interfaces(self) -> [usize; 2] {
        match self {
            Chain::Plain => [0, 1],
            Chain::Sealed => [5, 6],
        }
    }
}

/// Ethernet address of a relay's port.
pub fn relay_mac(number: usize, port: usize) -> String {
    format!("02:00:00:00:d{number}:0{port}")
}

/// Ethernet address of a client's interface: 3 towards the first relay, 4 towards the last, 2 towards
/// the echo; [`Chain::client_interfaces`] towards chains.
pub fn client_mac(interface: usize) -> String {
    format!("02:00:00:00:b0:0{interface}")
}

/// Nodes: the client, the switches, those that seal, the relays, the echo.
const NODES: [&str; 11] = [
    "c", "s1", "s2", "s3", "k1", "k2", "k3", "r1", "r2", "r3", "e",
];

/// Namespaces `spc<pid>-c` and so on, removed when dropped.
pub struct Network {
    prefix: String,
}

/// Obstacle to making the network, if any.
pub fn missing() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in ["ip", "ethtool"] {
        let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
        if !folders.any(|folder| folder.join(tool).is_file()) {
            return Some(format!("`{tool}` is not installed"));
        }
    }
    let root = std::fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.contains("\nUid:\t0\t0"));
    (!root).then(|| "it makes network namespaces and needs root".to_owned())
}

impl Network {
    /// Makes the namespaces and the links between them.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn up() -> Network {
        let network = Network {
            prefix: format!("spc{}", std::process::id()),
        };
        for node in NODES {
            must(Command::new("ip").args(["netns", "add", &network.namespace(node)]));
        }
        let port = |chain: Chain, number: usize, port: usize| {
            let node = format!("{}{number}", chain.node());
            (node, format!("p{port}"), chain.switch_mac(number, port))
        };
        let relay = |number: usize, port: usize| {
            let interface = format!("p{port}");
            (format!("r{number}"), interface, relay_mac(number, port))
        };
        let client = |interface: usize| {
            let name = format!("c{interface}");
            ("c".to_owned(), name, client_mac(interface))
        };
        let echo = ("e".to_owned(), "e0".to_owned(), client_mac(9));
        for chain in [Chain::Plain, Chain::Sealed] {
            let [first, last] = chain.client_interfaces();
            for (near, far) in [
                (client(first), port(chain, 1, 0)),
                (port(chain, 1, 1), port(chain, 2, 0)),
                (port(chain, 2, 1), port(chain, 3, 0)),
                (port(chain, 3, 1), client(last)),
            ] {
                network.link(&near, &far);
            }
        }
        for (near, far) in [
            (client(3), relay(1, 0)),
            (relay(1, 1), relay(2, 0)),
            (relay(2, 1), relay(3, 0)),
            (relay(3, 1), client(4)),
            (client(2), echo),
        ] {
            network.link(&near, &far);
        }
        for node in NODES {
            network.within(
                node,
                "ip link set lo up; \
                 for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 >$f; done; \
                 for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$f; done",
            );
        }
        let mut script = format!("ip address add {CLIENT}/32 dev c0; ");
        for chain in [Chain::Plain, Chain::Sealed] {
            let [first, last] = chain.client_interfaces();
            for number in 1..=SWITCHES {
                // A request goes to the head by one side, to the last switch by the other.
                let (interface, mac) = if number == SWITCHES {
                    (last, chain.switch_mac(SWITCHES, 1))
                } else {
                    (first, chain.switch_mac(1, 0))
                };
                let address = chain.switch(number);
                script += &format!(
                    "ip route add {address}/32 dev c{interface} src {CLIENT}; \
                     ip neighbour add {address} lladdr {mac} dev c{interface}; "
                );
            }
        }
        let mac = relay_mac(1, 0);
        script += &format!(
            "ip route add {RELAY}/32 dev c3 src {CLIENT}; \
             ip neighbour add {RELAY} lladdr {mac} dev c3"
        );
        network.within("c", &script);
        network.within("c", "ip address add 10.30.9.1/24 dev c2");
        network.within("e", &format!("ip address add {ECHO}/24 dev e0"));
        network
    }

    fn link(&self, near: &(String, String, String), far: &(String, String, String)) {
        let namespaces = [self.namespace(&near.0), self.namespace(&far.0)];
        must(Command::new("ip").args([
            "link",
            "add",
            &near.1,
            "netns",
            &namespaces[0],
            "address",
            &near.2,
            "type",
            "veth",
            "peer",
            "name",
            &far.1,
            "netns",
            &namespaces[1],
            "address",
            &far.2,
        ]));
        for (node, interface) in [(&near.0, &near.1), (&far.0, &far.1)] {
            let script = format!(
                "ethtool -K {interface} rx off tx off sg off tso off gso off gro off >/dev/null; \
                 ip link set {interface} up"
            );
            self.within(node, &script);
        }
    }

    fn namespace(&self, node: &str) -> String {
        format!("{}-{node}", self.prefix)
    }

    /// Runs a shell's `script` in a node.
    fn within(&self, node: &str, script: &str) {
        let namespace = self.namespace(node);
        must(Command::new("ip").args(["netns", "exec", &namespace, "sh", "-c", script]));
    }

    /// Starts this program in `node`, in another role, and waits until it says `ready`.
    ///
    /// # Errors
    ///
    /// Its answer instead.
    pub fn role(&self, node: &str, arguments: &[&str]) -> Result<Role, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.namespace(node)])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        let mut role = Role {
            child,
            input,
            output,
        };
        if role.line() == "ready" {
            return Ok(role);
        }
        drop(role.input.take());
        let mut reason = String::new();
        if let Some(mut error) = role.child.stderr.take() {
            let _ = error.read_to_string(&mut reason);
        }
        Err(reason.trim().to_owned())
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

/// This program in another role; the end of its input ends it.
pub struct Role {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Role {
    /// Processor time that the process has spent, in µs, with that of the kernel on its behalf.
    pub fn processor_us(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        // Behind the name, which ends with the last parenthesis: user's and system's time are the
        // twelfth and thirteenth words, in ticks of 10 ms.
        let words = stat.rsplit(')').next().unwrap_or_default();
        let ticks = words.split_whitespace().skip(11).take(2);
        ticks
            .filter_map(|word| word.parse::<f64>().ok())
            .sum::<f64>()
            * 10_000.0
    }

    /// Tells it `request`, a line, and gives the line that it answers.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn ask(&mut self, request: &str) -> String {
        let input = self.input.as_mut().expect("the role has an input");
        writeln!(input, "{request}").expect("the role runs");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        if let Some(output) = &mut self.output {
            let _ = output.read_line(&mut line);
        }
        line.trim().to_owned()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Runs `command` to its end.
///
/// # Panics
///
/// If it fails.
fn must(command: &mut Command) {
    let output = command.output().expect("the command starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
}
