//! Three sealed stores and switches that ask them.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use stateplane_host::clock::boot_time_us;
use stateplane_host::deployment::Deployment;
use stateplane_host::remote::{Remote, remote};
use stateplane_host::sealing::Guard;
use stateplane_host::store::{StoreError, StoreReport, StoreServer};
use stateplane_seal::Opened;
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};

/// Numbers of the ends; each one's address is `127.0.<net>.<host>`.
const ENDS: [(u32, u8); 5] = [(1, 101), (2, 102), (11, 1), (12, 2), (13, 3)];

/// Keys at the ends of the network.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    Old,
    OldAndIdleNew,
    OldAndNew,
    New,
}

fn path(folder: &Path, end: u32) -> PathBuf {
    folder.join(format!("{end}.toml"))
}

/// Writes the file of every end; the file `net` in the folder tells the net.
pub fn write_keys(folder: &Path, keys: Keys) {
    let net: u8 = fs::read_to_string(folder.join("net"))
        .unwrap()
        .parse()
        .unwrap();
    for (id, _) in ENDS {
        let mut text = format!("id = {id}\n");
        for (peer, host) in ENDS.into_iter().filter(|(peer, _)| *peer != id) {
            let (low, high) = (id.min(peer), id.max(peer));
            let key = |number: u32, idle: bool| {
                let digits = format!("{number:02x}{low:02x}{high:02x}");
                format!(
                    "{{ id = {number}, hex = \"{}0000\", accept_only = {idle} }}",
                    digits.repeat(10)
                )
            };
            let keys = match keys {
                Keys::Old => vec![key(1, false)],
                Keys::OldAndIdleNew => vec![key(1, false), key(2, true)],
                Keys::OldAndNew => vec![key(1, false), key(2, false)],
                Keys::New => vec![key(2, false)],
            };
            text += &format!(
                "[[peer]]\nid = {peer}\naddress = \"127.0.{net}.{host}\"\nkeys = [{}]\n",
                keys.join(", ")
            );
        }
        let new = folder.join("new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, Permissions::from_mode(0o600)).unwrap();
        fs::rename(&new, path(folder, id)).unwrap();
    }
}

type Running = JoinHandle<Result<StoreReport, StoreError>>;

pub struct Network {
    pub folder: tempfile::TempDir,
    pub net: u8,
    request_port: u16,
    pub chain_port: u16,
    stop: Arc<AtomicBool>,
    servers: Vec<Running>,
    remotes: Vec<Remote<StoreServer>>,
}

impl Network {
    /// A chain of three at `127.0.<net>.1` onwards. Each test has a `net` of its own.
    pub fn start(net: u8) -> Network {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("net"), net.to_string()).unwrap();
        write_keys(folder.path(), Keys::Old);
        let free = || UdpSocket::bind((Ipv4Addr::new(127, 0, net, 1), 0)).unwrap();
        let (one, two) = (free(), free());
        let port = |socket: UdpSocket| socket.local_addr().unwrap().port();
        let (request_port, chain_port) = (port(one), port(two));
        let stop = Arc::new(AtomicBool::new(false));
        let mut remotes = Vec::new();
        let servers = (1..=3).map(|host| {
            let text = format!(
                r#"
                listen = "127.0.{net}.{host}"
                [replication]
                request_port = {request_port}
                chain_port = {chain_port}
                chain = ["127.0.{net}.1", "127.0.{net}.2", "127.0.{net}.3"]
                [[replication.class]]
                id = 3
                state_length = 4
                first_lease = "zero"
                "#
            );
            let file = Deployment::parse("test.toml".as_ref(), &text).unwrap();
            let guard = Guard::read(&path(folder.path(), 10 + host)).unwrap();
            let mut server = StoreServer::bind(&file, Some(guard)).unwrap();
            let (remote, calls) = remote().unwrap();
            server.set_remote(calls);
            remotes.push(remote);
            let seen = Arc::clone(&stop);
            std::thread::spawn(move || server.run(&seen, &mut |error| panic!("{error}")))
        });
        Network {
            servers: servers.collect(),
            remotes,
            folder,
            net,
            request_port,
            chain_port,
            stop,
        }
    }

    /// Digests of the state of each server.
    pub fn digests(&self) -> Vec<String> {
        let digest = |remote: &Remote<StoreServer>| {
            let asked = remote.call(|server| server.digest(0, true));
            asked.flatten().expect("a replica").digest
        };
        self.remotes.iter().map(digest).collect()
    }

    pub fn request_address(&self) -> SocketAddr {
        SocketAddrV4::new(Ipv4Addr::new(127, 0, self.net, 1), self.request_port).into()
    }

    /// A socket at one of the network's addresses.
    pub fn socket(&self, host: u8) -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, self.net, host), 0)).unwrap();
        let patience = Some(Duration::from_millis(300));
        socket.set_read_timeout(patience).unwrap();
        socket
    }

    pub fn stop(&mut self) -> Vec<StoreReport> {
        self.stop.store(true, Ordering::Relaxed);
        let servers = self.servers.drain(..);
        servers.map(|it| it.join().unwrap().unwrap()).collect()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A switch: asks the head, hears the tail.
pub struct Switch {
    pub socket: UdpSocket,
    number: u32,
    incarnation: u32,
    guard: Guard,
    head: SocketAddr,
    epoch: u32,
    /// Questions sent.
    pub asked: u32,
    /// The last one, sealed.
    pub sent: Vec<u8>,
}

impl Switch {
    pub fn new(network: &Network, number: u8) -> Switch {
        let folder = network.folder.path();
        Switch {
            socket: network.socket(100 + number),
            number: number.into(),
            incarnation: boot_time_us() as u32 | 1,
            guard: Guard::read(&path(folder, number.into())).unwrap(),
            head: network.request_address(),
            epoch: 0,
            asked: 0,
            sent: Vec::new(),
        }
    }

    /// Counters of sealed messages at the switch.
    pub fn seals(&self) -> &stateplane_seal::Counters {
        self.guard.counters()
    }

    /// A request for the flow `flow`; the state of a write is its sequence.
    pub fn message(&self, kind: MessageType, flow: u8, sequence: u32) -> Vec<u8> {
        let mut key = [0; 16];
        key[..2].copy_from_slice(&[3, flow]);
        let state = sequence.to_be_bytes();
        let message = Repr {
            chain_epoch: 1,
            switch_id: self.number,
            incarnation: self.incarnation,
            claim: 1,
            request: 1,
            send_time: boot_time_us(),
            ..Repr::new(kind, Key(key))
        };
        let message = match kind {
            MessageType::WriteRequest => Repr {
                lease_epoch: self.epoch,
                sequence,
                state: &state,
                ..message
            },
            _ => message,
        };
        message.to_vec().unwrap()
    }

    pub fn send(&mut self, message: &[u8]) {
        let SocketAddr::V4(head) = self.head else {
            panic!("IPv4");
        };
        let mut bytes = message.to_vec();
        bytes.extend(self.guard.seal(*head.ip(), message).unwrap());
        self.socket.send_to(&bytes, self.head).unwrap();
        self.sent = bytes;
    }

    /// Asks until there is a reply.
    pub fn ask(&mut self, message: &[u8]) -> Vec<u8> {
        for _ in 0..40 {
            self.asked += 1;
            self.guard.look(boot_time_us()).unwrap();
            self.send(message);
            if let Some(reply) = self.receive() {
                return reply;
            }
        }
        panic!("no reply");
    }

    /// The next message that opens, if one comes.
    fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        loop {
            let (length, SocketAddr::V4(from)) = self.socket.recv_from(&mut buffer).ok()? else {
                continue;
            };
            let opened = self
                .guard
                .open(boot_time_us(), *from.ip(), &buffer[..length]);
            match opened {
                Opened::Message { length, .. } => return Some(buffer[..length].to_vec()),
                Opened::Heard { answer } | Opened::Refused { answer, .. } => {
                    if let Some(answer) = answer {
                        self.socket.send_to(&answer.0, from).unwrap();
                    }
                }
            }
        }
    }

    pub fn lease(&mut self, flow: u8) {
        let reply = self.ask(&self.message(MessageType::LeaseRequest, flow, 0));
        let reply = Packet::new_checked(&reply).unwrap();
        assert_eq!(reply.message_type(), MessageType::LeaseReply);
        self.epoch = reply.lease_epoch();
    }

    /// Writes, and gives the sequence that the store holds then.
    pub fn write(&mut self, flow: u8, sequence: u32) -> u32 {
        let reply = self.ask(&self.message(MessageType::WriteRequest, flow, sequence));
        let reply = Packet::new_checked(&reply).unwrap();
        assert_eq!(reply.message_type(), MessageType::WriteReply);
        reply.sequence()
    }
}
