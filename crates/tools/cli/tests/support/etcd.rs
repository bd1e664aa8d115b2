//! A real etcd for a test.

use super::Running;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time for it to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// An etcd of one member, or one that the environment names.
pub struct Etcd {
    running: Option<Running>,
    folder: tempfile::TempDir,
    /// Address for clients.
    pub endpoint: String,
    peer: String,
}

impl Etcd {
    /// Starts `etcd`, or takes the endpoint in `STATEPLANE_ETCD`. `None`, with the reason
    /// printed, if there is neither.
    pub fn start() -> Option<Etcd> {
        let folder = tempfile::tempdir().unwrap();
        if let Ok(endpoint) = std::env::var("STATEPLANE_ETCD") {
            let (running, peer) = (None, String::new());
            return Some(Etcd {
                running,
                folder,
                endpoint,
                peer,
            });
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join("etcd").exists()) {
            println!("skipped: no `etcd` (Debian: etcd-server), and STATEPLANE_ETCD names none");
            return None;
        }
        // Both are open until both numbers are known: they differ.
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let urls = ports.map(|port| format!("http://{}", port.local_addr().unwrap()));
        let [endpoint, peer] = urls;
        let mut etcd = Etcd {
            running: None,
            folder,
            endpoint,
            peer,
        };
        etcd.run();
        Some(etcd)
    }

    /// True if the test started it, and may stop it.
    pub fn is_own(&self) -> bool {
        !self.peer.is_empty()
    }

    /// Starts it with the data that it had, and waits until it answers.
    pub fn run(&mut self) {
        let data = Path::new(self.folder.path()).join("data");
        let mut command = Command::new("etcd");
        command
            .args(["--name", "test", "--data-dir", data.to_str().unwrap()])
            .args(["--listen-client-urls", &self.endpoint])
            .args(["--advertise-client-urls", &self.endpoint])
            .args(["--listen-peer-urls", &self.peer])
            .args(["--initial-advertise-peer-urls", &self.peer])
            .args(["--initial-cluster", &format!("test={}", self.peer)])
            // Debian's for architectures that etcd does not test on.
            .env(
                "ETCD_UNSUPPORTED_ARCH",
                std::env::consts::ARCH.replace("aarch64", "arm64"),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut running = Running::start(&mut command);
        let begin = Instant::now();
        let address = self.endpoint.trim_start_matches("http://").to_owned();
        while TcpStream::connect(&address).is_err() {
            assert!(running.ended().is_none(), "etcd does not start");
            assert!(begin.elapsed() < PATIENCE, "etcd does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.running = Some(running);
    }

    /// Ends all leases at once, by etcd's gateway for JSON.
    pub fn end_leases(&self) {
        let leases = self.post("/v3/lease/leases", "{}");
        for lease in leases["leases"].as_array().unwrap() {
            let question = serde_json::json!({ "ID": lease["ID"] });
            self.post("/v3/lease/revoke", &question.to_string());
        }
    }

    /// Keys that begin with `folder`, which ends with `/`.
    pub fn count(&self, folder: &str) -> u64 {
        let base64 = |text: &[u8]| {
            const DIGITS: &[u8; 64] =
                b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let three = text.chunks(3).flat_map(|three| {
                let number = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
                let bits = number(0) << 16 | number(1) << 8 | number(2);
                (0..4).map(move |at| {
                    let digit = bits >> (18 - 6 * at) & 63;
                    if at <= three.len() {
                        char::from(DIGITS[digit as usize])
                    } else {
                        '='
                    }
                })
            });
            three.collect::<String>()
        };
        let end = folder.trim_end_matches('/').to_owned() + "0";
        let question = serde_json::json!({
            "key": base64(folder.as_bytes()),
            "range_end": base64(end.as_bytes()),
            "count_only": true,
        });
        let answer = self.post("/v3/kv/range", &question.to_string());
        let count = answer["count"].as_str().unwrap_or("0");
        count.parse().unwrap()
    }

    fn post(&self, path: &str, body: &str) -> serde_json::Value {
        let address = self.endpoint.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.0\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.running = None;
    }
}
