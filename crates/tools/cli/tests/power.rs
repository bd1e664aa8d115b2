//! Store servers that keep their state on a disk, killed all at once under load: what they
//! acknowledged is there when they start again.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use stateplane_host::clock::boot_time_us;
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};
use support::cluster::{Cluster, SERVERS, With};

/// Kills in one run.
const ROUNDS: u32 = 5;

const FLOWS: u8 = 16;

/// Three servers at `127.0.93.1` onwards.
struct Chain<'a> {
    folder: &'a Path,
    ports: [u16; 2],
    servers: Vec<Child>,
}

fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 93, host)
}

impl<'a> Chain<'a> {
    fn new(folder: &'a Path) -> Chain<'a> {
        let sockets = [0, 1].map(|_| UdpSocket::bind((address(1), 0)).unwrap());
        let ports = sockets.map(|socket| socket.local_addr().unwrap().port());
        let [requests, links] = ports;
        let text = format!(
            r#"
            listen = "127.0.93.1"
            [replication]
            request_port = {requests}
            chain_port = {links}
            chain = ["127.0.93.1", "127.0.93.2", "127.0.93.3"]
            term_ms = 100
            snapshot_after_mb = 1
            [[replication.class]]
            id = 3
            state_length = 4
            first_lease = "zero"
            "#
        );
        fs::write(folder.join("store.toml"), text).unwrap();
        Chain {
            folder,
            ports,
            servers: Vec::new(),
        }
    }

    fn spawn(&self, host: u8) -> Child {
        Command::new(env!("CARGO_BIN_EXE_stateplane"))
            .arg("store")
            .arg("--config")
            .arg(self.folder.join("store.toml"))
            .args(["--listen", &address(host).to_string()])
            .arg("--data")
            .arg(self.folder.join(host.to_string()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The log that server `host` writes to.
    fn log(&self, host: u8) -> PathBuf {
        let folder = self.folder.join(host.to_string());
        let names = fs::read_dir(&folder).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let logs = names.filter_map(|name| name.strip_prefix("log-")?.parse::<u64>().ok());
        folder.join(format!("log-{}", logs.max().unwrap()))
    }

    fn start(&mut self) {
        let servers = (1..=3).map(|host| {
            let mut server = self.spawn(host);
            let mut line = String::new();
            let mut said = BufReader::new(server.stdout.take().unwrap());
            said.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            server
        });
        self.servers = servers.collect();
    }

    /// All at once, with SIGKILL.
    fn kill(&mut self) {
        for server in &mut self.servers {
            server.kill().unwrap();
        }
        for mut server in self.servers.drain(..) {
            server.wait().unwrap();
        }
    }
}

impl Drop for Chain<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A switch with one lease for each flow.
struct Switch {
    socket: UdpSocket,
    head: SocketAddrV4,
    epochs: [u32; FLOWS as usize],
    sent: [u32; FLOWS as usize],
    acknowledged: [u32; FLOWS as usize],
}

impl Switch {
    fn new(head: SocketAddrV4) -> Switch {
        let socket = UdpSocket::bind((address(101), 0)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        Switch {
            socket,
            head,
            epochs: [0; FLOWS as usize],
            sent: [0; FLOWS as usize],
            acknowledged: [0; FLOWS as usize],
        }
    }

    fn request(flow: u8, kind: MessageType) -> Repr<'static> {
        let mut key = [0; 16];
        key[..2].copy_from_slice(&[3, flow]);
        Repr {
            chain_epoch: 1,
            switch_id: 1,
            incarnation: 1,
            claim: u32::from(flow) + 1,
            request: 1,
            send_time: boot_time_us(),
            ..Repr::new(kind, Key(key))
        }
    }

    /// The lease of `flow`, and what the store holds for it; asks until there is one.
    fn lease(&mut self, flow: u8) {
        let at = usize::from(flow);
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            let request = Switch::request(flow, MessageType::LeaseRequest);
            let _ = self.socket.send_to(&request.to_vec().unwrap(), self.head);
            let mut buffer = [0; 2048];
            while let Ok((length, _)) = self.socket.recv_from(&mut buffer) {
                let reply = Packet::new_checked(&buffer[..length]).unwrap();
                let kind = reply.message_type();
                if kind != MessageType::LeaseReply || reply.key().0[1] != flow {
                    continue;
                }
                let (held, state) = (reply.sequence(), reply.state());
                assert!(
                    held >= self.acknowledged[at],
                    "flow {flow}: {held} is there, {} was acknowledged",
                    self.acknowledged[at]
                );
                assert!(held <= self.sent[at].max(1), "flow {flow}: {held}");
                if held > 1 {
                    assert_eq!(state, held.to_be_bytes());
                }
                self.epochs[at] = reply.lease_epoch();
                self.sent[at] = held;
                self.acknowledged[at] = held;
                return;
            }
        }
        panic!("no lease for flow {flow}");
    }

    /// Writes to all flows until `until`, and notes what is acknowledged.
    fn write(&mut self, until: Instant) {
        let mut buffer = [0; 2048];
        while Instant::now() < until {
            for flow in 0..FLOWS {
                let at = usize::from(flow);
                self.sent[at] += 1;
                let state = self.sent[at].to_be_bytes();
                let write = Repr {
                    lease_epoch: self.epochs[at],
                    sequence: self.sent[at],
                    state: &state,
                    ..Switch::request(flow, MessageType::WriteRequest)
                };
                let _ = self.socket.send_to(&write.to_vec().unwrap(), self.head);
            }
            for _ in 0..FLOWS {
                let Ok((length, _)) = self.socket.recv_from(&mut buffer) else {
                    break;
                };
                self.heard(&buffer[..length]);
            }
        }
    }

    fn heard(&mut self, bytes: &[u8]) {
        let reply = Packet::new_checked(bytes).unwrap();
        if reply.message_type() == MessageType::WriteReply {
            let acknowledged = &mut self.acknowledged[usize::from(reply.key().0[1])];
            *acknowledged = reply.sequence().max(*acknowledged);
        }
    }

    /// Reads the answers that came before the servers died.
    fn drain(&mut self) {
        let mut buffer = [0; 2048];
        while let Ok((length, _)) = self.socket.recv_from(&mut buffer) {
            self.heard(&buffer[..length]);
        }
    }
}

#[test]
fn what_was_acknowledged_outlives_all_servers() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = Chain::new(folder.path());
    chain.start();
    let mut switch = Switch::new(SocketAddrV4::new(address(1), chain.ports[0]));
    for round in 0..ROUNDS {
        for flow in 0..FLOWS {
            switch.lease(flow);
        }
        let before: u32 = switch.acknowledged.iter().sum();
        let end = Instant::now() + Duration::from_secs(20);
        let mut written = 0;
        // A loaded machine may need longer for some writes.
        while written < 200 && Instant::now() < end {
            switch.write(Instant::now() + Duration::from_millis(150 + u64::from(round) * 40));
            written = switch.acknowledged.iter().sum::<u32>() - before;
        }
        assert!(written >= 200, "{written} writes acknowledged");
        chain.kill();
        switch.drain();
        chain.start();
    }
    for flow in 0..FLOWS {
        switch.lease(flow);
    }
}

/// Standard error of a server that ends by itself.
fn last_words(server: Child) -> String {
    let mut server = server;
    let end = Instant::now() + Duration::from_secs(60);
    while server.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            server.kill().unwrap();
            panic!("it goes on");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = server.wait_with_output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One bit of the last record, which was answered, changes while all servers are dead.
#[test]
fn a_damaged_last_record_is_refused_or_mended() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = Chain::new(folder.path());
    chain.start();
    let mut switch = Switch::new(SocketAddrV4::new(address(1), chain.ports[0]));
    for flow in 0..FLOWS {
        switch.lease(flow);
    }
    switch.write(Instant::now() + Duration::from_millis(300));
    switch.drain();
    chain.kill();
    let damage = |log: &Path| {
        let whole = fs::read(log).unwrap();
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(log, damaged).unwrap();
        whole
    };
    // The head knows by itself that the record was written through.
    let log = chain.log(1);
    let whole = damage(&log);
    let said = last_words(chain.spawn(1));
    assert!(said.contains("H413") && said.contains("restore"), "{said}");
    // After a power cut it may not; its successor knows.
    let marks = log.with_file_name(format!(
        "{}.synced",
        log.file_name().unwrap().to_str().unwrap()
    ));
    fs::write(marks, "").unwrap();
    chain.start();
    let head = chain.servers.remove(0);
    let said = last_words(head);
    assert!(said.contains("H123") && said.contains("restore"), "{said}");
    chain.kill();
    // The head restored, and the tail damaged, to whom the one before it gives it again.
    fs::write(&log, whole).unwrap();
    let log = chain.log(3);
    damage(&log);
    let marks = log.with_file_name(format!(
        "{}.synced",
        log.file_name().unwrap().to_str().unwrap()
    ));
    fs::write(marks, "").unwrap();
    chain.start();
    for flow in 0..FLOWS {
        switch.lease(flow);
    }
    let before: u32 = switch.acknowledged.iter().sum();
    let end = Instant::now() + Duration::from_secs(20);
    while switch.acknowledged.iter().sum::<u32>() < before + 50 {
        assert!(Instant::now() < end, "it stands still");
        switch.write(Instant::now() + Duration::from_millis(100));
    }
}

#[test]
fn what_a_cluster_acknowledged_outlives_all_of_it() {
    let with = With {
        keys: true,
        disks: true,
    };
    let mut cluster = Cluster::start_with(86, 1, "", with);
    for round in 0..3 {
        cluster.settle();
        cluster.client.run(Duration::from_millis(300));
        let controller = 100;
        for host in SERVERS {
            cluster.signal(host, "KILL");
        }
        if round > 0 {
            cluster.controllers.clear();
        }
        cluster.stores.clear();
        cluster.client.run(Duration::from_millis(50));
        let killed = Instant::now();
        // In another order each time.
        for at in 0..SERVERS.len() {
            cluster.start_store(SERVERS[(at + round) % SERVERS.len()]);
        }
        if round > 0 {
            cluster.start_controller(controller);
        }
        let took = cluster.client.resume(killed, &BTreeMap::new());
        println!("all servers killed: writes resumed after {took:?}");
        cluster.client.ask_anew();
    }
    cluster.verify();
}
