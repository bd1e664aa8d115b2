//! Forwarder in node `r`: the switch with a program, or Linux.

use super::network::{Network, repository};
use stateplane_bench::chain::store_of;
use stateplane_bench::switch::compile;
use stateplane_host::deployment::Deployment;
use stateplane_host::ports::{Access, PortSpec};
use stateplane_host::store::StoreServer;
use stateplane_host::switch::{Beside, RunOptions, SwitchFile, run_switch as run, run_workers};
use stateplane_native::{Compiled, Native, Options};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

/// Treatment of each frame.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Forward by the other port: `docs/examples/cable.p4`, or a bridge.
    Bridge,
    /// Route: `bench/p4/forward.p4`, or IP forwarding.
    Route,
    /// Its source address is translated: `apps/nat/unprotected.p4`, or nftables.
    Nat,
    /// The same under leases of a store: `apps/nat/nat.p4`.
    ReplicatedNat,
}

impl Job {
    /// All of them.
    pub const ALL: [Job; 4] = [Job::Bridge, Job::Route, Job::Nat, Job::ReplicatedNat];

    /// Its name among arguments.
    pub fn name(self) -> &'static str {
        match self {
            Job::Bridge => "bridge",
            Job::Route => "route",
            Job::Nat => "nat",
            Job::ReplicatedNat => "replicated-nat",
        }
    }

    /// Its name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Job::Bridge => "bridging",
            Job::Route => "routing",
            Job::Nat => "NAT",
            Job::ReplicatedNat => "NAT with replication",
        }
    }

    /// Part of Linux that does the same.
    pub fn peer(self) -> &'static str {
        match self {
            Job::Bridge => "bridge",
            Job::Route => "ip_forward",
            Job::Nat | Job::ReplicatedNat => "nftables",
        }
    }

    fn named(name: &str) -> Job {
        let mut jobs = Job::ALL.into_iter();
        jobs.find(|job| job.name() == name).expect("a job")
    }

    /// Command that starts forwarding by Linux.
    fn begin(self) -> String {
        let route = "set -e; ip address add 10.1.1.2/16 dev r0; ip address add 198.51.100.1/24 dev r1; \
             ip neighbour replace 10.1.1.1 lladdr 02:00:00:00:b1:01 dev r0; \
             ip neighbour replace 198.51.100.18 lladdr 02:00:00:00:b2:01 dev r1; \
             ip link set r0 up; ip link set r1 up; echo 1 >/proc/sys/net/ipv4/ip_forward";
        let bridge = "set -e; ip link add br0 type bridge; ip link set r0 master br0; \
             ip link set r1 master br0; ip link set r0 up; ip link set r1 up; \
             ip link set br0 up";
        let translate = "nft add table ip nat; \
             nft 'add chain ip nat post { type nat hook postrouting priority 100; }'; \
             nft add rule ip nat post oifname r1 snat to 198.51.100.1";
        match self {
            Job::Bridge => bridge.to_owned(),
            Job::Route => route.to_owned(),
            Job::Nat | Job::ReplicatedNat => format!("{route}; {translate}"),
        }
    }

    /// Command that stops it.
    fn end(self) -> &'static str {
        match self {
            Job::Bridge => "ip link delete br0",
            Job::Route | Job::Nat | Job::ReplicatedNat => {
                "nft flush ruleset; echo 0 >/proc/sys/net/ipv4/ip_forward; \
                 ip address flush dev r0; ip address flush dev r1; ip neighbour flush all"
            }
        }
    }

    fn program(self) -> &'static str {
        match self {
            Job::Bridge => "docs/examples/cable.p4",
            Job::Route => "bench/p4/forward.p4",
            Job::Nat => "apps/nat/unprotected.p4",
            Job::ReplicatedNat => "apps/nat/nat.p4",
        }
    }

    fn configuration(self) -> String {
        match self {
            Job::Bridge => String::new(),
            Job::Route => ROUTES.to_owned(),
            Job::Nat => nat_configuration(&["lab/nat/switch-unprotected.toml"]),
            Job::ReplicatedNat => {
                nat_configuration(&["apps/nat/switch.toml", "lab/nat/switch.toml"])
            }
        }
    }

    /// The interfaces that are its ports.
    fn interfaces(self) -> &'static [&'static str] {
        match self {
            Job::ReplicatedNat => &["r0", "r1", "r2"],
            Job::Bridge | Job::Route | Job::Nat => &["r0", "r1"],
        }
    }
}

/// The two hosts, each behind its port.
const ROUTES: &str = r#"
[[entries]]
table = "routes"
keys = ["10.1.0.0/16"]
action = "route"
params = [0]
[[entries]]
table = "routes"
keys = ["198.51.100.0/24"]
action = "route"
params = [1]
[[entries]]
table = "next_hops"
keys = [0]
action = "send"
params = [0, "02:00:00:00:a1:00", "02:00:00:00:b1:01"]
[[entries]]
table = "next_hops"
keys = [1]
action = "send"
params = [1, "02:00:00:00:a1:01", "02:00:00:00:b2:01"]
"#;

/// The demo's configuration, with client and server as neighbours.
fn nat_configuration(files: &[&str]) -> String {
    let texts = files
        .iter()
        .map(|file| std::fs::read_to_string(repository().join(file)));
    let texts: std::io::Result<String> = texts.collect();
    let mut text = texts.expect("the NAT's configuration");
    for (name, value) in [
        ("${id}", "1"),
        ("${other}", "2"),
        ("${first_port}", "1024"),
        ("${last_port}", "32767"),
        ("${other_half}", "1"),
    ] {
        text = text.replace(name, value);
    }
    text = text.replace("10.0.0.0/16", "10.1.0.0/16");
    text = text.replace(
        "{ address = \"10.2.1.1\", port",
        "{ address = \"198.51.100.18\", port",
    );
    text.replace(
        "params = { address = \"10.2.1.1\" }",
        "params = { address = \"198.51.100.18\" }",
    )
}

/// Implementation that does a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In the switch; its ports by AF_XDP (`xdp`) or AF_PACKET (`packet`).
    Switch(&'static str),
    /// The same, on so many workers.
    Workers(&'static str, usize),
    /// In Linux.
    Kernel,
}

/// A forwarder at work, until it is dropped.
pub enum Running<'a> {
    Switch(Vec<Child>),
    Kernel(&'a Network, Job),
}

impl Side {
    /// Starts it in node `r`, or says why it cannot.
    pub fn start(self, network: &Network, job: Job) -> Result<Running<'_>, String> {
        match self {
            Side::Kernel => {
                network.attempt(&network.namespace("r"), &job.begin())?;
                Ok(Running::Kernel(network, job))
            }
            Side::Switch(access) => start_switch(network, job, access, 1).map(Running::Switch),
            Side::Workers(access, workers) => {
                start_switch(network, job, access, workers).map(Running::Switch)
            }
        }
    }
}

/// Starts the processes of a switch on `workers` threads, whose ports have this access.
pub fn start_switch(
    network: &Network,
    job: Job,
    access: &str,
    workers: usize,
) -> Result<Vec<Child>, String> {
    let mut children = Vec::new();
    if job == Job::ReplicatedNat {
        children.push(ready(network.role("s", &["store"]))?);
    }
    let arguments = ["switch", job.name(), access, &workers.to_string()];
    children.push(ready(network.role("r", &arguments))?);
    Ok(children)
}

/// Waits until a process says that it is ready, or why it is not.
pub fn ready(mut child: Child) -> Result<Child, String> {
    let mut line = String::new();
    if let Some(output) = &mut child.stdout {
        let _ = BufReader::new(output).read_line(&mut line);
    }
    if line.trim() == "ready" {
        return Ok(child);
    }
    let mut reason = String::new();
    if let Some(mut error) = child.stderr.take() {
        let _ = error.read_to_string(&mut reason);
    }
    let _ = child.wait();
    Err(reason.trim().to_owned())
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        match self {
            Running::Switch(children) => {
                // The end of its input tells it to stop.
                for child in children.iter_mut().rev() {
                    drop(child.stdin.take());
                    let _ = child.wait();
                }
            }
            Running::Kernel(network, job) => {
                network.within(&network.namespace("r"), job.end());
            }
        }
    }
}

/// The role of the switch on `workers` threads: runs until its input ends.
pub fn run_switch(job: &str, access: &str, workers: &str) {
    let workers: usize = workers.parse().expect("a number of workers");
    let job = Job::named(job);
    let access = match access {
        "xdp" => Access::Xdp,
        _ => Access::Packet,
    };
    let text = job.configuration();
    let file = SwitchFile::parse(Path::new("switch.toml"), &text).expect("a configuration");
    let program = compile(job.program());
    let compiled = if workers > 1 {
        Compiled::guarded(program)
    } else {
        Compiled::new(program)
    };
    let compiled = compiled.expect("the program loads");
    let engine: Native = compiled.engine(Options::default()).expect("and runs");
    let ports = job.interfaces().iter().zip(0..).map(|(name, number)| {
        let name = (*name).to_owned();
        (number, PortSpec::Interface { name, access })
    });
    let ports: Vec<_> = ports.collect();
    forward(engine, workers, &file, &ports);
}

/// Runs a switch on `workers` threads until its input ends, and says when it is ready.
pub fn forward(
    engine: Native,
    workers: usize,
    file: &SwitchFile,
    ports: &[(stateplane_switch::Port, PortSpec)],
) {
    let stop = AtomicBool::new(false);
    until_input_ends(&stop, || {
        let options = RunOptions {
            stop: &stop,
            ready: &mut |_| println!("ready"),
            status: None,
            notify: &mut |_, _, _| {},
            patience: None,
            sealing: None,
            flows: None,
        };
        let ran = match workers {
            1 => run(engine, file, ports, options),
            _ => run_workers(engine, workers, file, ports, options, Beside::default()),
        };
        if let Err(error) = ran {
            eprintln!("{error}");
            std::process::exit(1);
        }
    });
}

/// The role of the store, a single server: runs until its input ends.
pub fn run_store() {
    let deployment = Deployment::parse("store.toml".as_ref(), &store_of("nat"));
    let mut deployment = deployment.expect("a configuration");
    let replication = deployment.replication_mut().expect("a store's section");
    replication.chain.truncate(1);
    let stop = AtomicBool::new(false);
    until_input_ends(&stop, || {
        let server = StoreServer::bind(&deployment, None).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(1);
        });
        println!("ready");
        if let Err(error) = server.run(&stop, &mut |_| {}) {
            eprintln!("{error}");
            std::process::exit(1);
        }
    });
}

/// Does `work`, which ends when `stop` is set.
pub fn until_input_ends(stop: &AtomicBool, work: impl FnOnce()) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Ordering::Relaxed);
        });
        work();
    });
}
