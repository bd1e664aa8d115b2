//! What translates: the switch with the NAT of `p4/apps/nat/unprotected.p4`, or Linux.

use super::network::{Network, repository};
use stateplane_bench::switch::compile;
use stateplane_host::ports::{Access, PortSpec};
use stateplane_host::switch::{RunOptions, SwitchFile, run_switch as run};
use stateplane_native::{Native, Options};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the NAT runs.
#[derive(Clone, Copy)]
pub enum Translator {
    /// In the switch; its ports by AF_XDP (`xdp`) or AF_PACKET (`packet`).
    Switch(&'static str),
    /// In Linux: nftables and connection tracking.
    Kernel,
}

/// A translator at work.
pub enum Running<'a> {
    Switch(Child),
    Kernel(&'a Network),
}

impl Translator {
    /// Starts it in node `r`.
    pub fn start(self, network: &Network) -> Result<Running<'_>, String> {
        let namespace = network.namespace("r");
        match self {
            Translator::Kernel => {
                network.within(
                    &namespace,
                    "ip address add 10.1.1.2/16 dev r0; ip address add 198.51.100.1/24 dev r1; \
                     ip route add 10.0.0.0/16 dev r0; \
                     ip neighbour add 10.1.1.1 lladdr 02:00:00:00:b1:01 dev r0; \
                     ip neighbour add 198.51.100.18 lladdr 02:00:00:00:b2:01 dev r1; \
                     ip link set r0 up; ip link set r1 up; \
                     echo 1 >/proc/sys/net/ipv4/ip_forward; \
                     nft add table ip nat; \
                     nft 'add chain ip nat post { type nat hook postrouting priority 100; }'; \
                     nft add rule ip nat post oifname r1 snat to 198.51.100.1",
                );
                Ok(Running::Kernel(network))
            }
            Translator::Switch(access) => {
                let mut child = network.role("r", &["switch", access]);
                let mut line = String::new();
                if let Some(output) = &mut child.stdout {
                    let _ = BufReader::new(output).read_line(&mut line);
                }
                if line.trim() == "ready" {
                    return Ok(Running::Switch(child));
                }
                let mut reason = String::new();
                if let Some(mut error) = child.stderr.take() {
                    let _ = error.read_to_string(&mut reason);
                }
                let _ = child.wait();
                Err(reason)
            }
        }
    }
}

impl Running<'_> {
    /// Stops it.
    pub fn stop(self) {
        match self {
            Running::Switch(mut child) => {
                // The end of its input tells it to stop.
                drop(child.stdin.take());
                let _ = child.wait();
            }
            Running::Kernel(network) => {
                network.within(
                    &network.namespace("r"),
                    "nft delete table ip nat; echo 0 >/proc/sys/net/ipv4/ip_forward; \
                     ip address flush dev r0; ip address flush dev r1; ip neighbour flush all",
                );
            }
        }
    }
}

/// The role of the switch: runs until its input ends.
pub fn run_switch(access: &str) {
    let access = match access {
        "xdp" => Access::Xdp,
        _ => Access::Packet,
    };
    let text = std::fs::read_to_string(repository().join("lab/nat/switch-unprotected.toml"))
        .expect("the NAT's configuration");
    let mut text = text;
    for (name, value) in [
        ("${id}", "1"),
        ("${other}", "2"),
        ("${first_port}", "1024"),
        ("${last_port}", "65535"),
        ("${other_half}", "0"),
    ] {
        text = text.replace(name, value);
    }
    // Client and server are neighbours here.
    text = text.replace("10.0.0.0/16", "10.1.0.0/16");
    text = text.replace(
        "{ address = \"10.2.1.1\", port",
        "{ address = \"198.51.100.18\", port",
    );
    text = text.replace(
        "params = { address = \"10.2.1.1\" }",
        "params = { address = \"198.51.100.18\" }",
    );
    let file = SwitchFile::parse(Path::new("switch.toml"), &text).expect("a configuration");
    let program = compile("p4/apps/nat/unprotected.p4");
    let engine = Native::new(program, Options::default()).expect("the program loads");
    let stop = AtomicBool::new(false);
    let ports = [(0, "r0"), (1, "r1")].map(|(number, name)| {
        let name = name.to_owned();
        (number, PortSpec::Interface { name, access })
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Ordering::Relaxed);
        });
        let options = RunOptions {
            stop: &stop,
            ready: &mut |_| println!("ready"),
            status: None,
            notify: &mut |_, _, _| {},
            patience: None,
        };
        if let Err(error) = run(engine, &file, &ports, options) {
            eprintln!("{error}");
            std::process::exit(1);
        }
    });
}
