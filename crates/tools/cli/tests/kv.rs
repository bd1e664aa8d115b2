//! `stateplane kv` against a switch and a controller on the loopback: the chain in memory by which
//! the clients' library is tested.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[allow(dead_code, reason = "the library's tests need other parts")]
#[path = "../../../systems/coordination/client/tests/chain/mod.rs"]
mod chain;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use chain::{GROUPS, Service};
use stateplane_host::sealing::{Guard, open_datagram, send_datagram};
use stateplane_wire::coordination::{Address, PORT};
use stateplane_wire::coordination_control::{
    self as control, END_OF_GROUPS, END_OF_SESSIONS, Message, Opened, Session,
};

/// TTL of the sessions, in ms.
const TTL_MS: u32 = 500;

/// A switch and a controller, each in a thread.
struct Running {
    controller: String,
    service: Arc<Mutex<Service>>,
    seal: Arc<Seal>,
    switch: Ipv4Addr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// Each test has a switch of its own, as all have the same port.
static NEXT: AtomicU8 = AtomicU8::new(1);

impl Running {
    fn start() -> Running {
        Running::start_sealed(None)
    }

    /// With the file of keys that this gives for the switch's address, both threads take and send
    /// sealed messages alone.
    fn start_sealed(keys: Option<&dyn Fn(Ipv4Addr) -> PathBuf>) -> Running {
        let pid = std::process::id().to_be_bytes();
        let own = NEXT.fetch_add(1, Ordering::Relaxed);
        let switch = Ipv4Addr::new(127, 100 + pid[2] % 100, pid[3], own);
        let mut service = Service::new();
        service.switch = Some(switch);
        let service = Arc::new(Mutex::new(service));
        let stop = Arc::new(AtomicBool::new(false));
        let chains = open(SocketAddrV4::new(switch, PORT));
        let controls = open(SocketAddrV4::new(switch, 0));
        let controller = controls.local_addr().expect("an address").to_string();
        let (kept, stops) = (Arc::clone(&service), Arc::clone(&stop));
        let seal = Seal {
            guard: keys.map(|keys| Mutex::new(Guard::read(&keys(switch)).expect("keys"))),
            taken: Mutex::new(Vec::new()),
        };
        let seal = Arc::new(seal);
        let sealed = Arc::clone(&seal);
        let serving = std::thread::spawn(move || {
            serve(&chains, &stops, &sealed, |bytes| {
                let mut service = kept.lock().expect("the service");
                let mut sent = Vec::from_iter(service.handle(bytes));
                sent.extend(service.entries.drain(..));
                sent
            });
        });
        let stops = Arc::clone(&stop);
        let sealed = Arc::clone(&seal);
        let mut opened = Controller {
            switch,
            ..Controller::default()
        };
        let controlling = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !stops.load(Ordering::Relaxed) {
                let Ok((length, from)) = controls.recv_from(&mut buffer) else {
                    continue;
                };
                let Some(asked) = sealed.open(&controls, from, &buffer[..length]) else {
                    continue;
                };
                let asked = Message::parse(&asked).expect("a message");
                sealed.send(&controls, from, &opened.answer(asked).to_vec());
            }
        });
        let threads = vec![serving, controlling];
        Running {
            controller,
            service,
            seal,
            switch,
            stop,
            threads,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stateplane"));
        command
            .args(["kv", "--controller", &self.controller])
            .args(arguments);
        command
    }

    fn kv(&self, arguments: &[&str]) -> (i32, String) {
        let output: Output = self.command(arguments).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // What a test that fails shows.
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        (output.status.code().expect("an exit code"), text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic there is seen by what it did not answer.
            _ = thread.join();
        }
    }
}

fn open(address: SocketAddrV4) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("a loopback address that is free");
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .expect("a timeout");
    socket
}

fn serve(
    socket: &UdpSocket,
    stop: &AtomicBool,
    seal: &Seal,
    handle: impl Fn(&[u8]) -> Vec<(SocketAddrV4, Vec<u8>)>,
) {
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let Some(message) = seal.open(socket, from, &buffer[..length]) else {
            continue;
        };
        for (to, message) in handle(&message) {
            seal.send(socket, to.into(), &message);
        }
    }
}

/// Keys of switch and controller, if they take sealed messages alone, and all that came.
struct Seal {
    guard: Option<Mutex<Guard>>,
    taken: Mutex<Vec<Vec<u8>>>,
}

impl Seal {
    fn open(&self, socket: &UdpSocket, from: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        self.taken.lock().expect("a list").push(bytes.to_vec());
        let SocketAddr::V4(from) = from else {
            return None;
        };
        let mut guard = self.guard.as_ref().map(|guard| guard.lock().expect("keys"));
        let now = stateplane_host::clock::boot_time_us();
        let opened = open_datagram(guard.as_deref_mut(), now, socket, from, bytes);
        opened.map(|opened| opened.message.to_vec())
    }

    fn send(&self, socket: &UdpSocket, to: SocketAddr, message: &[u8]) {
        let (SocketAddr::V4(to), guard) = (to, &self.guard) else {
            return;
        };
        let mut guard = guard.as_ref().map(|guard| guard.lock().expect("keys"));
        // A client that has gone refuses it.
        _ = send_datagram(guard.as_deref_mut(), socket, to, message);
    }

    /// Messages opened, forged, cut, and refused for another reason or answered.
    fn counters(&self) -> [u64; 4] {
        let guard = self.guard.as_ref().expect("keys").lock().expect("keys");
        let seen = guard.counters();
        let late = seen.unproven + seen.replayed + seen.too_old;
        let foreign =
            seen.not_sealed + seen.unknown_sender + seen.unknown_key + seen.unknown_receiver;
        let answers = seen.answers_taken + seen.answers_stale;
        [
            seen.opened,
            seen.forged,
            seen.truncated,
            late + foreign + answers,
        ]
    }
}

/// Lanes are given one range behind the other.
struct Controller {
    switch: Ipv4Addr,
    next_lane: u16,
    sessions: BTreeMap<u32, Session>,
    opened: BTreeMap<u64, Opened>,
}

impl Default for Controller {
    fn default() -> Controller {
        Controller {
            switch: Ipv4Addr::LOCALHOST,
            next_lane: 0,
            sessions: BTreeMap::new(),
            opened: BTreeMap::new(),
        }
    }
}

impl Controller {
    fn answer(&mut self, asked: Message) -> Message {
        match asked {
            Message::Learn(_) => Message::Chains {
                controller: 1,
                version: 1,
                groups: GROUPS,
                slots: chain::SLOTS,
                next: END_OF_GROUPS,
                chains: (0..GROUPS).map(|group| self.row(group)).collect(),
            },
            Message::Open { nonce, lanes } => {
                let session = self.opened.len() as u32 + 1;
                let first_lane = self.next_lane;
                let opened = *self.opened.entry(nonce).or_insert_with(|| Opened {
                    nonce,
                    session,
                    first_lane,
                    count: lanes,
                    lane_incarnation: 0,
                    groups: GROUPS,
                    lanes: 1024,
                    slots: chain::SLOTS,
                    ttl_ms: TTL_MS,
                });
                if opened.session == session {
                    self.next_lane += lanes;
                    let row = Session {
                        session,
                        first_lane,
                        count: lanes,
                        lane_incarnation: 0,
                        age_ms: 0,
                    };
                    self.sessions.insert(session, row);
                }
                Message::Opened(opened)
            }
            Message::Close(lanes) => {
                self.sessions.remove(&lanes.session);
                Message::Ended {
                    session: lanes.session,
                }
            }
            Message::List { .. } => Message::Sessions {
                controller: 1,
                sessions: self.sessions.len() as u16,
                free_lanes: 100,
                ttl_ms: TTL_MS,
                next: END_OF_SESSIONS,
                rows: self.sessions.values().copied().collect(),
            },
            other => panic!("{other:?} is no request"),
        }
    }

    fn row(&self, group: u16) -> control::Chain {
        control::Chain {
            group,
            generation: 0,
            epoch: 1,
            flags: 0,
            members: 1,
            chain_1: Address(self.switch),
            chain_2: Address::NONE,
            chain_3: Address::NONE,
            chain_4: Address::NONE,
        }
    }
}

#[test]
fn records_are_written_read_compared_and_deleted() {
    let running = Running::start();
    assert_eq!(running.kv(&["get", "lamp"]).0, 1);
    assert_eq!(running.kv(&["put", "lamp", "on"]).0, 0);
    assert_eq!(running.kv(&["get", "lamp"]), (0, "on\n".to_owned()));
    assert_eq!(
        running.kv(&["get", "--chain", "lamp"]),
        (0, "on\n".to_owned())
    );
    assert_eq!(
        running.kv(&["get", "--stale", "lamp"]),
        (0, "on\n".to_owned())
    );
    assert_eq!(running.kv(&["put", "--absent", "lamp", "off"]).0, 5);
    assert_eq!(running.kv(&["cas", "lamp", "off", "on"]).0, 5);
    assert_eq!(running.kv(&["cas", "lamp", "on", "off"]).0, 0);
    let (code, text) = running.kv(&["--json", "get", "lamp"]);
    assert_eq!(code, 0);
    assert!(
        text.contains(r#""value":"off""#) && text.contains(r#""number":"#),
        "{text}"
    );
    let (code, text) = running.kv(&["put", "--json", "--present", "light", "x"]);
    assert_eq!(code, 5);
    assert!(text.contains(r#""outcome":"mismatch""#), "{text}");
    assert_eq!(running.kv(&["del", "lamp"]).0, 0);
    assert_eq!(running.kv(&["del", "lamp"]).0, 1);
    assert_eq!(running.kv(&["put", "", "x"]).0, 2);
}

#[test]
fn a_list_has_short_and_long_names_of_all_groups() {
    let running = Running::start();
    for name in ["a/1", "a/a-name-longer-than-a-key", "a/3", "b"] {
        assert_eq!(running.kv(&["put", name, &name.to_uppercase()]).0, 0);
    }
    let (code, text) = running.kv(&["list", "a/"]);
    let listed = "a/1\tA/1\na/3\tA/3\na/a-name-longer-than-a-key\tA/A-NAME-LONGER-THAN-A-KEY\n";
    assert_eq!((code, text.as_str()), (0, listed));
    assert!(
        running
            .kv(&["--json", "list"])
            .1
            .contains(r#""one_moment":false"#)
    );
}

#[test]
fn an_unknown_outcome_has_a_code_of_its_own() {
    let running = Running::start();
    running.service.lock().expect("the service").lose_replies = u32::MAX;
    assert_eq!(running.kv(&["--timeout", "0.2", "put", "lamp", "on"]).0, 7);
    // A read changed nothing.
    assert_eq!(running.kv(&["--timeout", "0.2", "get", "lamp"]).0, 4);
}

/// Rule 19: commands one after the other do not use up the lanes; what may still come to be executed
/// keeps its own.
#[test]
fn a_command_that_was_answered_gives_its_lane_back() {
    let running = Running::start();
    let sessions = || running.kv(&["session", "--list"]).1.lines().count();
    let none = sessions();
    for value in ["on", "off"] {
        assert_eq!(running.kv(&["put", "lamp", value]).0, 0);
    }
    assert_eq!(running.kv(&["put", "--absent", "lamp", "on"]).0, 5);
    let since = Instant::now();
    while sessions() != none {
        assert!(since.elapsed() < Duration::from_secs(5), "sessions stay");
    }
    running.service.lock().expect("the service").lose_replies = u32::MAX;
    assert_eq!(running.kv(&["--timeout", "0.2", "put", "lamp", "on"]).0, 7);
    assert_eq!(sessions(), none + 1);
}

#[test]
fn a_command_runs_under_a_lock_with_its_token() {
    let running = Running::start();
    let script = "test -n \"$STATEPLANE_TOKEN\" && echo $STATEPLANE_LOCK && exit 33";
    let (code, text) = running.kv(&["lock", "backup", "--", "sh", "-c", script]);
    assert_eq!((code, text.as_str()), (33, "backup\n"));
    let mut holder = holder(&running);
    assert_eq!(running.kv(&["lock", "--try", "backup", "--", "true"]).0, 6);
    assert_eq!(
        running
            .kv(&["lock", "--wait", "0.2", "backup", "--", "true"])
            .0,
        6
    );
    drop(holder.stdin.take());
    holder.wait().expect("it ends");
    assert_eq!(running.kv(&["lock", "--try", "backup", "--", "true"]).0, 0);
}

/// A process that holds the lock `backup` until its standard input is closed.
fn holder(running: &Running) -> Child {
    let holder = running
        .command(&["lock", "backup", "--", "cat"])
        .stdin(Stdio::piped())
        .spawn();
    let holder = holder.expect("it runs");
    let since = Instant::now();
    while running.kv(&["get", "backup"]).0 != 0 {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "nobody holds the lock"
        );
    }
    holder
}

/// Rule 19: the reaper ends the session of a holder that died, and the next gets the lock.
#[test]
fn a_reaper_frees_the_lock_of_a_dead_holder() {
    let running = Running::start();
    let mut holder = holder(&running);
    holder.kill().expect("killed");
    holder.wait().expect("dead");
    assert_eq!(running.kv(&["lock", "--try", "backup", "--", "true"]).0, 6);
    let (code, text) = running.kv(&["reap", "--once"]);
    assert_eq!(code, 0);
    assert!(text.contains("ended session 1\n"), "{text}");
    assert_eq!(running.kv(&["lock", "--try", "backup", "--", "true"]).0, 0);
}

/// Lets the process end as by Ctrl-C; its exit code, and what it wrote to standard error.
fn interrupted(child: Child) -> (Option<i32>, String) {
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("it runs").success());
    let output = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

/// Rule 23.
#[test]
fn a_watch_tells_each_change_until_it_is_stopped() {
    let running = Running::start();
    let name = "a/name-longer-than-a-key";
    for value in ["red", "green"] {
        assert_eq!(running.kv(&["put", name, value]).0, 0);
    }
    assert_eq!(running.kv(&["put", "--absent", name, "blue"]).0, 5);
    assert_eq!(running.kv(&["del", name]).0, 0);
    let mut arguments = vec!["watch", name, "--from", "1", "--count", "3"];
    let told = (0, "1\tput\tred\n3\tput\tgreen\n5\tdeleted\n".to_owned());
    let (code, text) = running.kv(&arguments);
    assert_eq!(code, 0);
    // A long name is read before it is written, which takes no number; refusals do.
    let kinds = |text: &str| {
        text.lines()
            .filter_map(|line| line.split_once('\t').map(|(_, rest)| rest.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&text), kinds(&told.1));
    arguments.push("--json");
    let (code, text) = running.kv(&arguments);
    assert_eq!(code, 0);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains(r#""event":"put""#) && lines[0].contains(r#""value":"red""#));
    assert!(lines[2].contains(r#""event":"deleted""#) && lines[2].contains(name));
    // One that goes on while others write.
    let mut watching = running.command(&["watch", "lamp"]);
    watching
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut watching = watching.spawn().expect("it runs");
    let mut lines = BufReader::new(watching.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    assert!(next().ends_with("\tdeleted"));
    for value in ["on", "off"] {
        assert_eq!(running.kv(&["put", "lamp", value]).0, 0);
        assert!(next().ends_with(&format!("\tput\t{value}")));
    }
    assert_eq!(interrupted(watching), (Some(0), String::new()));
    assert_eq!(running.kv(&["watch", "--group", "4"]).0, 2);
}

/// Rule 19.
#[test]
fn a_session_is_kept_alive_while_a_command_runs() {
    let running = Running::start();
    let script = "echo $STATEPLANE_SESSION; sleep 1; exit 33";
    let (code, text) = running.kv(&["session", "--", "sh", "-c", script]);
    assert_eq!(code, 33);
    assert_eq!(
        text, "session 1 connected\n1\nsession 1 closed\n",
        "longer than its TTL of half a second"
    );
    let mut session = running.command(&["session", "--json"]);
    session
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut session = session.spawn().expect("it runs");
    let mut lines = BufReader::new(session.stdout.take().expect("a pipe")).lines();
    let line = lines.next().expect("a line").expect("text");
    assert!(line.contains(r#""state":"connected""#), "{line}");
    let (code, text) = running.kv(&["session", "--list"]);
    assert_eq!(code, 0);
    assert!(text.lines().any(|line| line.starts_with("2\t")), "{text}");
    assert_eq!(interrupted(session), (Some(0), String::new()));
}

/// A file of keys of the process `id`, with one peer.
fn keys(folder: &Path, id: u32, peer: u32, address: Ipv4Addr, secret: &str) -> PathBuf {
    let path = folder.join(format!("{id}-{}.toml", &secret[..2]));
    // A key of equal bytes is refused.
    let key: String = (0..16).map(|byte| format!("{secret}{byte:02x}")).collect();
    let text = format!(
        "id = {id}\n[[peer]]\nid = {peer}\naddress = \"{address}\"\nkeys = [{{ id = 1, hex = \"{key}\" }}]"
    );
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed to others");
    path
}

/// Messages between clients, switch and controller under `--keys`: without the key, repeated, cut
/// or altered they are counted and change nothing.
#[test]
fn sealed_messages_alone_are_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let pid = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, 201 + pid[2] % 50, pid[3], 1);
    let running = Running::start_sealed(Some(&|_| keys(folder.path(), 1, 100, own, "a1")));
    let mine = keys(folder.path(), 100, 1, running.switch, "a1");
    let other = keys(folder.path(), 100, 1, running.switch, "b2");
    let address = own.to_string();
    let kv = |keys: Option<&Path>, timeout: &str, arguments: &[&str]| {
        let mut all = vec!["--timeout", timeout, "--address", &address];
        let keys = keys.map(|keys| keys.to_str().expect("a path"));
        all.extend(keys.iter().flat_map(|keys| ["--keys", keys]));
        all.extend(arguments);
        running.kv(&all)
    };
    assert_eq!(kv(Some(&mine), "3", &["put", "lamp", "on"]).0, 0);
    assert_eq!(
        kv(Some(&mine), "3", &["get", "lamp"]),
        (0, "on\n".to_owned())
    );
    let told = kv(
        Some(&mine),
        "3",
        &["watch", "lamp", "--from", "1", "--count", "1"],
    );
    assert_eq!(told, (0, "1\tput\ton\n".to_owned()));
    let executed = running.service.lock().expect("the service").executed.len();
    // Who has no key, and who has another.
    for keys in [None, Some(other.as_path())] {
        assert_eq!(kv(keys, "0.5", &["put", "lamp", "off"]).0, 4);
    }
    let before = running.seal.counters();
    assert!(before[0] > 0 && before[1] > 0, "{before:?}");
    // All that came, again, cut, and altered.
    let recorded = running.seal.taken.lock().expect("a list").clone();
    let attacker = UdpSocket::bind((own, 0)).expect("a socket");
    for datagram in &recorded {
        let mut altered = datagram.clone();
        let middle = altered.len() / 2;
        altered[middle] ^= 1;
        for message in [datagram.as_slice(), &datagram[..middle], &altered] {
            attacker
                .send_to(message, (running.switch, PORT))
                .expect("sent");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let sent = 3 * recorded.len();
    let since = Instant::now();
    while running.seal.taken.lock().expect("a list").len() < recorded.len() + sent {
        assert!(since.elapsed() < Duration::from_secs(20), "they are taken");
        std::thread::sleep(Duration::from_millis(10));
    }
    let after = running.seal.counters();
    assert_eq!(after[0], before[0]);
    for kind in 1..4 {
        assert!(after[kind] > before[kind], "{before:?} {after:?}");
    }
    // The last one is listed before it is counted.
    let refused = |counters: [u64; 4]| counters[1..].iter().sum::<u64>();
    let counted = refused(after) - refused(before);
    assert!(counted + 1 >= sent as u64, "{counted} of {sent}");
    let now = running.service.lock().expect("the service").executed.len();
    assert_eq!(now, executed);
    assert_eq!(
        kv(Some(&mine), "3", &["get", "lamp"]),
        (0, "on\n".to_owned())
    );
}
