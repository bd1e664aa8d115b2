//! Controllers and store servers as processes on the loopback network, and a switch that loads them
//! and records the answers.

use super::{Running, errors, stateplane};
use stateplane_chains::Rows;
use stateplane_host::clock::boot_time_us;
use stateplane_host::sealing::{Guard, open_datagram, send_datagram};
use stateplane_wire::control::Row;
use stateplane_wire::replication::{Key, MessageType, Packet, RefusalCode, Repr};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Shards, each with one flow.
pub const SHARDS: u16 = 4;

/// Last numbers of the servers' addresses.
pub const SERVERS: [u8; 3] = [1, 2, 3];

/// Last number of the first controller's address.
const CONTROLLER: u8 = 100;

/// Last number of the address of the switch.
const SWITCH: u8 = 200;

/// Last number of the address of an engine that follows the flows, and its number among switches.
const ENGINE: u8 = 9;

/// Silence after which a server is taken for dead.
pub const DETECTION: Duration = Duration::from_millis(300);

/// Time by which writes may resume later than the detection time: long, since the machine may be
/// busy with other tests.
const PATIENCE: Duration = Duration::from_secs(15);

/// Maximum time for a chain to be complete again.
const SETTLING: Duration = Duration::from_secs(60);

/// Starts `stateplane` with `arguments` and waits until it is ready.
pub fn start(arguments: &[&str]) -> Running {
    let mut running = Running::start(&mut stateplane(arguments));
    let output = running.child().stdout.take().unwrap();
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    if line.trim() != "ready" {
        let said = running.finish(PATIENCE);
        panic!("{arguments:?}: {line}{}", errors(&said));
    }
    running
}

/// The client's knowledge of one shard's flow.
#[derive(Default)]
pub struct Flow {
    claim: u32,
    request: u32,
    epoch: u32,
    sequence: u32,
    /// Number of the last write that was acknowledged.
    pub acknowledged: u32,
    asked: Option<Instant>,
    answered: Option<Instant>,
    /// Writes that were acknowledged.
    pub answers: u64,
}

/// A switch that counts one flow in each shard, as fast as it is answered.
pub struct Client {
    socket: UdpSocket,
    guard: Option<Guard>,
    controllers: Vec<SocketAddrV4>,
    rows: Rows,
    heads: BTreeMap<u16, Row>,
    asked: Instant,
    /// Its flows, by shard.
    pub flows: BTreeMap<u16, Flow>,
}

impl Client {
    fn new(address: Ipv4Addr, controllers: Vec<SocketAddrV4>, guard: Option<Guard>) -> Client {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        let wait = Duration::from_millis(2);
        socket.set_read_timeout(Some(wait)).unwrap();
        Client {
            socket,
            guard,
            controllers,
            rows: Rows::new(1),
            heads: BTreeMap::new(),
            asked: Instant::now() - Duration::from_secs(1),
            flows: (0..SHARDS).map(|shard| (shard, Flow::default())).collect(),
        }
    }

    /// The key of the flow in `shard`.
    pub fn key(shard: u16) -> Key {
        let mut key = [0; 16];
        (key[0], key[15]) = (1, shard as u8);
        Key(key)
    }

    fn ask(&mut self) {
        self.asked = Instant::now();
        let question = self.rows.ask();
        for controller in &self.controllers {
            // One that is dead takes nothing.
            let _ = send_datagram(self.guard.as_mut(), &self.socket, *controller, &question);
        }
    }

    /// Sends what each flow waits for, at first or again.
    fn send(&mut self) {
        for (shard, flow) in &mut self.flows {
            let patience = Duration::from_millis(20);
            let waits = flow.asked.is_some_and(|asked| asked.elapsed() < patience);
            let Some(row) = self.heads.get(shard).filter(|_| !waits) else {
                continue;
            };
            flow.asked = Some(Instant::now());
            flow.request += 1;
            let state = u64::from(flow.sequence).to_be_bytes();
            let (message_type, state): (_, &[u8]) = match flow.epoch {
                0 => (MessageType::LeaseRequest, &[]),
                _ => (MessageType::WriteRequest, &state),
            };
            let request = Repr {
                chain_epoch: row.epoch,
                shard: *shard,
                switch_id: 1,
                incarnation: 7,
                claim: flow.claim,
                request: flow.request,
                lease_epoch: flow.epoch,
                sequence: flow.sequence,
                state,
                ..Repr::new(message_type, Client::key(*shard))
            };
            let bytes = request.to_vec().unwrap();
            let _ = send_datagram(self.guard.as_mut(), &self.socket, row.head, &bytes);
        }
    }

    fn receive(&mut self) {
        let mut buffer = [0; 2048];
        let Ok((length, SocketAddr::V4(from))) = self.socket.recv_from(&mut buffer) else {
            return;
        };
        let (now, bytes) = (boot_time_us(), &buffer[..length]);
        let opened = open_datagram(self.guard.as_mut(), now, &self.socket, from, bytes);
        let Some(bytes) = opened.map(|received| received.message) else {
            return;
        };
        if self.controllers.contains(&from) {
            let news = self.rows.handle_message(bytes);
            let any = !news.is_empty();
            for row in news {
                self.heads.insert(row.shard, row);
                self.flows.get_mut(&row.shard).unwrap().asked = None;
            }
            if any {
                self.ask();
            }
            return;
        }
        let reply = Repr::parse(&Packet::new_checked(bytes).unwrap());
        let flow = self.flows.get_mut(&reply.shard).unwrap();
        if reply.claim != flow.claim {
            return;
        }
        match reply.message_type {
            MessageType::LeaseReply if flow.epoch == 0 => {
                let kept = u64::from_be_bytes(reply.state.try_into().unwrap());
                assert!(reply.sequence >= flow.acknowledged, "lost: {reply:?}");
                assert!(
                    kept == u64::from(reply.sequence) || reply.sequence == 1,
                    "the state is of another write: {reply:?}"
                );
                flow.epoch = reply.lease_epoch;
                flow.sequence = reply.sequence.max(flow.sequence) + 1;
            }
            MessageType::WriteReply if reply.lease_epoch == flow.epoch => {
                assert!(reply.sequence <= flow.sequence, "never written: {reply:?}");
                if reply.sequence != flow.sequence {
                    return;
                }
                flow.acknowledged = flow.sequence;
                flow.sequence += 1;
                flow.answered = Some(Instant::now());
                flow.answers += 1;
            }
            MessageType::Refusal if reply.code == RefusalCode::Fenced as u8 => {
                flow.claim += 1;
                flow.epoch = 0;
            }
            _ => return,
        }
        flow.asked = None;
    }

    /// Goes on for `time`.
    pub fn run(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step();
        }
    }

    /// Lets every flow that is not answered ask for a lease anew, so that what the store
    /// kept is compared with what it acknowledged.
    pub fn ask_anew(&mut self) {
        for flow in self.flows.values_mut() {
            flow.claim += 1;
            (flow.epoch, flow.asked) = (0, None);
        }
        self.resume(Instant::now(), &BTreeMap::new());
    }

    fn step(&mut self) {
        if self.asked.elapsed() > Duration::from_millis(50) {
            self.ask();
        }
        self.send();
        self.receive();
    }

    /// Runs until every flow was answered after `since`, and its chain changed if `before`
    /// has it, and gives how long that took.
    pub fn resume(&mut self, since: Instant, before: &BTreeMap<u16, Row>) -> Duration {
        let resumed = |client: &Client| {
            client.flows.iter().all(|(shard, flow)| {
                let head = client.heads.get(shard);
                let changed = head.is_some_and(|row| Some(row) != before.get(shard));
                changed && flow.answered.is_some_and(|answered| answered > since)
            })
        };
        while !resumed(self) {
            let waited = since.elapsed();
            assert!(waited < DETECTION + PATIENCE, "not after {waited:?}");
            self.step();
        }
        since.elapsed()
    }
}

/// Parts of a deployment besides servers and controllers.
#[derive(Clone, Copy, Default)]
pub struct With {
    /// Its messages are sealed.
    pub keys: bool,
    /// Servers keep their state on a disk.
    pub disks: bool,
}

/// Writes a file of keys for every process of a network, the switch of the tests included.
fn write_keys(folder: &Path, network: u8, controllers: &[u8]) {
    // The switch is known by its number, 1; the others by any.
    let stores = SERVERS.iter().map(|host| (10 + host, *host));
    let ends: Vec<(u8, u8)> = stores
        .chain(controllers.iter().map(|host| (*host, *host)))
        .chain([(1, SWITCH), (ENGINE, ENGINE)])
        .collect();
    for (id, host) in &ends {
        let mut text = format!("id = {id}\n");
        for (peer, other) in ends.iter().filter(|(peer, _)| peer != id) {
            let key = format!("{:02x}{:02x}", id.min(peer), id.max(peer)).repeat(16);
            text += &format!(
                "[[peer]]\nid = {peer}\naddress = \"127.0.{network}.{other}\"\nkeys = [{{ id = 1, hex = \"{key}\" }}]\n"
            );
        }
        let path = keys_of(folder, *host);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    }
}

fn keys_of(folder: &Path, host: u8) -> PathBuf {
    folder.join(format!("{host}.keys.toml"))
}

/// A deployment that runs.
pub struct Cluster {
    network: u8,
    request_port: u16,
    with: With,
    folder: TempDir,
    path: PathBuf,
    /// Controllers by the last number of their address.
    pub controllers: BTreeMap<u8, Running>,
    /// Store servers by the last number of their address.
    pub stores: BTreeMap<u8, Running>,
    /// The load.
    pub client: Client,
}

impl Cluster {
    /// Starts `controllers` controllers and three servers at addresses 127.0.`network`.*,
    /// and loads them. `more` is added to the section of the controller.
    pub fn start(network: u8, controllers: u8, more: &str) -> Cluster {
        Cluster::start_with(network, controllers, more, With::default())
    }

    /// Starts a cluster with keys or disks, see [`Cluster::start`].
    pub fn start_with(network: u8, controllers: u8, more: &str, with: With) -> Cluster {
        let address = |host: u8| Ipv4Addr::new(127, 0, network, host);
        let udp = || {
            let socket = UdpSocket::bind((address(1), 0)).unwrap();
            socket.local_addr().unwrap().port()
        };
        let operators = TcpListener::bind((address(1), 0)).unwrap();
        let operator_port = operators.local_addr().unwrap().port();
        drop(operators);
        let numbers: Vec<u8> = (CONTROLLER..CONTROLLER + controllers).collect();
        let addresses: Vec<String> = numbers.iter().map(|it| address(*it).to_string()).collect();
        let (request_port, chain_port, port) = (udp(), udp(), udp());
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let text = format!(
            r#"
            operator_port = {operator_port}
            [replication]
            shards = {SHARDS}
            term_ms = 100
            request_port = {request_port}
            chain_port = {chain_port}
            [[replication.class]]
            id = 1
            state_length = 8
            first_lease = "zero"
            [controller]
            addresses = {addresses:?}
            port = {port}
            log = {log:?}
            heartbeat_ms = 40
            detection_ms = {}
            {more}
            "#,
            DETECTION.as_millis(),
        );
        let path = folder.path().join("deployment.toml");
        std::fs::write(&path, text).unwrap();
        let sockets = numbers
            .iter()
            .map(|it| SocketAddrV4::new(address(*it), port));
        let guard = with.keys.then(|| {
            write_keys(folder.path(), network, &numbers);
            Guard::read(&keys_of(folder.path(), SWITCH)).unwrap()
        });
        let mut cluster = Cluster {
            network,
            request_port,
            with,
            folder,
            path,
            controllers: BTreeMap::new(),
            stores: BTreeMap::new(),
            client: Client::new(address(SWITCH), sockets.collect(), guard),
        };
        for number in numbers {
            cluster.start_controller(number);
        }
        for host in SERVERS {
            cluster.start_store(host);
        }
        cluster.client.resume(Instant::now(), &BTreeMap::new());
        cluster
    }

    /// The address that ends with `host`.
    pub fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 0, self.network, host)
    }

    /// A folder for what the test writes.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Starts the controller at the address that ends with `number`.
    pub fn start_controller(&mut self, number: u8) {
        let own = self.address(number).to_string();
        let path = self.path.display().to_string();
        let keys = keys_of(self.folder(), number).display().to_string();
        let mut arguments = vec!["controller", "--config", &path, "--listen", &own];
        if self.with.keys {
            arguments.extend(["--keys", &keys]);
        }
        self.controllers.insert(number, start(&arguments));
    }

    /// Starts the server at the address that ends with `host`.
    pub fn start_store(&mut self, host: u8) {
        let own = self.address(host).to_string();
        let path = self.path.display().to_string();
        let keys = keys_of(self.folder(), host).display().to_string();
        let data = self.folder().join(host.to_string()).display().to_string();
        let mut arguments = vec!["store", "--config", &path, "--listen", &own];
        if self.with.keys {
            arguments.extend(["--keys", &keys]);
        }
        if self.with.disks {
            arguments.extend(["--data", &data]);
        }
        self.stores.insert(host, start(&arguments));
    }

    /// Starts an engine that follows the flows of all servers, by the name `counts`; gives it, and the
    /// address at which it serves clients.
    pub fn start_engine(&self) -> (Running, String) {
        let own = self.address(ENGINE);
        let listener = TcpListener::bind((own, 0)).unwrap();
        let rpc = listener.local_addr().unwrap().to_string();
        drop(listener);
        let stores = SERVERS.map(|host| format!("{}:{}", self.address(host), self.request_port));
        let data = self.folder().join("engine");
        let text = format!(
            "listen = \"{own}\"\ndata = {data:?}\nrpc = \"{rpc}\"\n[[flows]]\nname = \"counts\"\n\
             stores = {stores:?}\nswitch = {ENGINE}\n"
        );
        let path = self.folder().join("engine.toml");
        std::fs::write(&path, text).unwrap();
        let path = path.display().to_string();
        let keys = keys_of(self.folder(), ENGINE).display().to_string();
        let mut arguments = vec!["engine", &path];
        if self.with.keys {
            arguments.extend(["--keys", &keys]);
        }
        (start(&arguments), rpc)
    }

    /// Runs `stateplane` with `arguments` while the load goes on.
    pub fn run(&mut self, arguments: &[&str]) -> Output {
        let mut running = Running::start(&mut stateplane(arguments));
        while running.ended().is_none() {
            self.client.step();
        }
        running.finish(PATIENCE)
    }

    /// Sends a signal to a server.
    pub fn signal(&mut self, host: u8, name: &str) {
        self.stores.get_mut(&host).unwrap().signal(name);
    }

    /// Does `harm`, and gives how long it took until every flow was answered by a chain
    /// of another configuration than before.
    pub fn survive(&mut self, harm: impl FnOnce(&mut Cluster)) -> Duration {
        let before = self.client.heads.clone();
        let begin = Instant::now();
        harm(self);
        self.client.resume(begin, &before)
    }

    /// `stateplane ctl store` with `arguments`, while the load goes on.
    pub fn ctl(&mut self, arguments: &[&str]) -> Output {
        let path = self.path.display().to_string();
        let begin = ["ctl", "store", "--config", &path];
        self.run(&[&begin, arguments].concat())
    }

    /// Runs [`Cluster::ctl`], which must succeed, and returns its output. Gives what it wrote.
    pub fn told(&mut self, arguments: &[&str]) -> String {
        let output = self.ctl(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = errors(&output);
        assert!(output.status.success(), "{arguments:?}: {text}{said}");
        text
    }

    /// Waits until every chain has all its members.
    pub fn settle(&mut self) {
        self.told(&["wait", &SETTLING.as_secs().to_string()]);
    }

    /// Checks that nothing that was acknowledged is lost, and that all replicas have one
    /// state.
    pub fn verify(&mut self) {
        self.client.ask_anew();
        self.settle();
        self.told(&["digests"]);
        for (shard, flow) in &self.client.flows {
            assert!(flow.answers > 20, "shard {shard}: {} writes", flow.answers);
        }
    }
}

/// The time that `share` (from 0 to 1) of `times` do not exceed.
pub fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    let rank = (share * times.len() as f64).ceil() as usize;
    times[rank.clamp(1, times.len()) - 1]
}
