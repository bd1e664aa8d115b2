//! Network namespaces for one test.

use super::STATEPLANE;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

/// The `PATH` with the built command in front.
pub fn search_path() -> OsString {
    let folder = Path::new(STATEPLANE).parent().expect("the binary's folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let all = std::iter::once(folder.to_path_buf()).chain(folders);
    std::env::join_paths(all).expect("a PATH")
}

/// `bash` with a script, not started, which finds the built command. Labs of the machine are none of
/// the script's, and nothing that it starts outlives it.
pub fn apart(script: &str) -> Command {
    let apart = "mount -t tmpfs tmpfs /run && mkdir /run/netns && exec bash -c \"$1\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "--pid", "--fork"])
        .args([
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            apart,
            "sh",
            script,
        ])
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Namespaces that end with the test. Their names carry the test's process id.
pub struct Namespaces(Vec<String>);

impl Namespaces {
    /// Makes a namespace for each of `names`, with its loopback up and without IPv6,
    /// which would send packets of its own.
    pub fn new(names: &[&str]) -> Namespaces {
        let mut made = Namespaces(Vec::new());
        for name in names {
            let full = made.full(name);
            ip(&["netns", "add", &full]);
            made.0.push(full.clone());
            ip(&["-n", &full, "link", "set", "lo", "up"]);
            let quiet = "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; \
                         do if [ -e $f ]; then echo 1 > $f; fi; done";
            let done = made.command(name, "sh").args(["-c", quiet]).status();
            assert!(done.is_ok_and(|status| status.success()), "IPv6 of {name}");
        }
        made
    }

    /// The name that `ip` knows namespace `name` by.
    pub fn full(&self, name: &str) -> String {
        format!("spt{}-{name}", std::process::id())
    }

    /// `program`, to be run in namespace `name`. The process started is the program
    /// itself: `ip netns exec` becomes it.
    pub fn command(&self, name: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.full(name), program]);
        command
    }

    /// Runs `ip` in namespace `name`.
    pub fn ip(&self, name: &str, arguments: &[&str]) -> String {
        let full = self.full(name);
        ip(&[&["-n", full.as_str()], arguments].concat())
    }

    /// A cable between two namespaces: (namespace, interface) and (namespace, interface).
    pub fn link(&self, a: (&str, &str), b: (&str, &str)) {
        let there = self.full(b.0);
        let peer = ["type", "veth", "peer", "name", b.1, "netns", &there];
        self.ip(a.0, &[&["link", "add", a.1][..], &peer].concat());
        self.ip(a.0, &["link", "set", a.1, "up"]);
        self.ip(b.0, &["link", "set", b.1, "up"]);
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .expect("`ip` runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "ip {}: {error}",
        arguments.join(" ")
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
