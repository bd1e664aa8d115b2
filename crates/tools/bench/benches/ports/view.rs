//! Programs in view of the control plane beside the same ones as they are: throughput and round trips.
//!
//! Frames go from `a` by the switch in `r` to `b`, and answers straight back. The engine is in `s`, and has
//! the sender's core: in use it is on another machine.

use super::flood::set_destination;
use super::forwarder::{Running, forward, ready, until_input_ends};
use super::network::{B, Network};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stateplane_bench::switch::{compile, compile_text};
use stateplane_bench::view::{InView, SOURCES, Sources, in_view};
use stateplane_bench::{Report, frame};
use stateplane_eval::approsync::engine_file;
use stateplane_host::ports::{Access, Port, PortSpec};
use stateplane_host::switch::SwitchFile;
use stateplane_host::sync::{GroupFile, SyncServer};
use stateplane_native::{Compiled, Options};
use stateplane_sync_setup::CONTROL_PORT;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Names of programs, and the programs.
const PROGRAMS: [(&str, &str); 3] = [
    ("packet counter", "bench/p4/packet_counter.p4"),
    ("heavy hitters", "bench/p4/sketch.p4"),
    ("firewall", "bench/p4/firewall.p4"),
];

/// Pairs of a program in view and as it is, one after the other.
const PAIRS: usize = 10;

/// Standard errors on each side of the mean in an interval of 95 %: Student's distribution with one degree of
/// freedom less than there are pairs.
const QUANTILE: f64 = 2.262;

/// Slices of a pair. The two programs take turns, so that what slows the machine for longer than a slice slows
/// both: the one whose turn it is not is stopped, as are its hosts.
const SLICES: usize = 100;

/// Seconds of a slice's flood, and frames that it repeats.
const FLOOD_S: f64 = 0.02;
const FRAMES: usize = 16_384;

/// Round trips of a slice, behind some that are not measured.
const TRIPS: usize = 40;
const FIRST: usize = 10;

/// Time for an engine to hear of its switch again, and for frames to leave a switch before it is stopped.
const SETTLE: Duration = Duration::from_millis(5);

/// Addresses: of the switch for its engine, of the engine, of the host that answers.
const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 1);
const ENGINE: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 11);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 7000);

/// Time for connections and views.
const PATIENCE: Duration = Duration::from_secs(10);

/// Outcome of all slices of a program in a pair.
struct Turn {
    frames_per_s: f64,
    round_trip_ns: f64,
}

/// Measures all programs.
pub fn measure(networks: [&Network; 2], reports: &mut [Report; 2]) {
    for network in networks {
        // Programs change no address: frames are for the receiver as they are sent. It answers by the link
        // that has no switch.
        network.within(
            &network.namespace("a"),
            &format!("ip neighbour replace 10.1.1.2 lladdr {B} dev a0"),
        );
        network.within(
            &network.namespace("b"),
            "ip route add 10.1.1.1/32 dev b1; \
             ip neighbour replace 10.1.1.1 lladdr 02:00:00:00:c1:01 dev b1",
        );
    }
    for (name, path) in PROGRAMS {
        let mut turns = [Vec::new(), Vec::new()];
        for pair in 0..PAIRS {
            // The networks change sides from pair to pair.
            let own = [networks[pair % 2], networks[1 - pair % 2]];
            match measure_pair(own, path) {
                Ok([plain, seen]) => {
                    turns[0].push(plain);
                    turns[1].push(seen);
                }
                Err(reason) => {
                    println!("ports: {name} in view skipped: {reason}");
                    return;
                }
            }
        }
        let [plain, seen] = &turns;
        let rate = |turn: &Turn| turn.frames_per_s;
        let trip = |turn: &Turn| turn.round_trip_ns;
        reports[0].add(
            &format!("{name} in view through AF_XDP, flooded"),
            median(seen, rate),
            "plain",
            median(plain, rate),
        );
        reports[1].measure(
            &format!("{name} in view through AF_XDP, round trip"),
            "ns",
            median(seen, trip),
            "plain",
            median(plain, trip),
        );
        for (what, of) in [
            ("throughput", rate as fn(&Turn) -> f64),
            ("round trip", trip),
        ] {
            let (mean, half) = interval(plain, seen, of);
            println!(
                "ports: {name} in view: {mean:.3} of the plain program's {what}, {:.3} to {:.3} with 95 % \
                 ({PAIRS} pairs)",
                mean - half,
                mean + half
            );
        }
    }
}

/// Mean of the ratios of pairs, and half of its interval.
fn interval(plain: &[Turn], seen: &[Turn], of: fn(&Turn) -> f64) -> (f64, f64) {
    let ratios: Vec<f64> = seen.iter().zip(plain).map(|(s, p)| of(s) / of(p)).collect();
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let squares = ratios.iter().map(|ratio| (ratio - mean).powi(2));
    let deviation = (squares.sum::<f64>() / (count - 1.0)).sqrt();
    (mean, QUANTILE * deviation / count.sqrt())
}

fn median<T>(measured: &[T], of: fn(&T) -> f64) -> f64 {
    let mut values: Vec<f64> = measured.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures the program as it is and in view, each in a network of its own.
fn measure_pair(networks: [&Network; 2], path: &str) -> Result<[Turn; 2], String> {
    let mut sides = [
        Side::start(networks[0], path, false)?,
        Side::start(networks[1], path, true)?,
    ];
    // The order changes from slice to slice.
    let order = |slice: usize| [slice % 2, 1 - slice % 2];
    let mut trips = [Vec::new(), Vec::new()];
    for slice in 0..SLICES {
        for side in order(slice) {
            trips[side].extend(sides[side].trips()?);
        }
    }
    let before = networks.map(|network| {
        network.drop_frames(true);
        network.received("b0")
    });
    for slice in 0..SLICES {
        for side in order(slice) {
            sides[side].flood()?;
        }
    }
    let after = networks.map(|network| {
        let received = network.received("b0");
        network.drop_frames(false);
        received
    });
    Ok([0, 1].map(|side| Turn {
        frames_per_s: (after[side] - before[side]) as f64 / (FLOOD_S * SLICES as f64),
        round_trip_ns: median(&trips[side], |trip| *trip),
    }))
}

/// A network whose processes run only while it is their turn.
struct Side {
    /// The switch, the engine if its program is in view, the host that answers, and last the client.
    children: Vec<Child>,
    answers: BufReader<ChildStdout>,
}

impl Side {
    /// Starts the processes, and stops them when they are ready.
    fn start(network: &Network, path: &str, seen: bool) -> Result<Side, String> {
        let how = if seen { "view" } else { "plain" };
        let mut children = vec![ready(network.role("r", &["view-switch", path, how]))?];
        if seen {
            let engine = network.role_beside("s", "a", &["view-engine", path]);
            children.push(ready(engine)?);
        }
        children.push(ready(network.role("b", &["view-server"]))?);
        let mut client = ready(network.role("a", &["view-client", path]))?;
        let answers = client.stdout.take().ok_or("the client has no output")?;
        children.push(client);
        let side = Side {
            children,
            answers: BufReader::new(answers),
        };
        side.signal(Signal::SIGSTOP)?;
        Ok(side)
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        for child in &self.children {
            let id = Pid::from_raw(child.id().cast_signed());
            kill(id, signal).map_err(|error| format!("{signal}: {error}"))?;
        }
        Ok(())
    }

    /// The client's answer to `command`.
    fn ask(&mut self, command: &str) -> Result<String, String> {
        self.signal(Signal::SIGCONT)?;
        std::thread::sleep(SETTLE);
        let mut answer = String::new();
        let client = self.children.last_mut();
        let input = client.and_then(|client| client.stdin.as_mut());
        let asked = writeln!(input.ok_or("the client has no input")?, "{command}");
        let heard = asked.and_then(|()| self.answers.read_line(&mut answer));
        heard.map_err(|error| format!("the client: {error}"))?;
        std::thread::sleep(SETTLE);
        self.signal(Signal::SIGSTOP)?;
        Ok(answer)
    }

    /// Times of a slice's round trips in ns.
    fn trips(&mut self) -> Result<Vec<f64>, String> {
        let answer = self.ask("trips")?;
        serde_json::from_str(&answer).map_err(|_| "the client ended".to_owned())
    }

    /// Floods for a slice.
    fn flood(&mut self) -> Result<(), String> {
        match self.ask("flood")?.trim() {
            "flooded" => Ok(()),
            _ => Err("the sender ended".to_owned()),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // A stopped process does not see the end of its input.
        let _ = self.signal(Signal::SIGCONT);
        drop(Running::Switch(std::mem::take(&mut self.children)));
    }
}

/// The role of the switch.
pub fn run_view_switch(path: &str, how: &str) {
    let seen = how == "view";
    let (program, text) = if seen {
        let text = format!("[sync]\nswitch = 1\naddress = \"{SWITCH}\"\n");
        (compile_text(&in_view(path, &[]).text), text)
    } else {
        (compile(path), String::new())
    };
    let file = SwitchFile::parse(Path::new("switch.toml"), &text).expect("a configuration");
    let compiled = Compiled::new(program).expect("the program loads");
    let engine = compiled.engine(Options::default()).expect("and runs");
    let port = |name: &str, access| PortSpec::Interface {
        name: name.to_owned(),
        access,
    };
    let mut ports = vec![(0, port("r0", Access::Xdp)), (1, port("r1", Access::Xdp))];
    if seen {
        ports.push((CONTROL_PORT, port("r2", Access::Xdp)));
    }
    forward(engine, 1, &file, &ports);
}

/// The role of the engine: it is ready when all views are complete.
pub fn run_view_engine(path: &str) {
    let InView { plan, .. } = in_view(path, &[]);
    let data = tempfile::tempdir().expect("a folder");
    let switch = (SWITCH, stateplane_wire::sync::PORT);
    let file = engine_file(&plan, switch, ENGINE, data.path());
    let server = SyncServer::bind(&file).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(1);
    });
    let views = server.views();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            let complete =
                |group: &GroupFile| matches!(views.look(&group.name, |_, _| ()), Ok(Some(())));
            while !file.groups.iter().all(complete) {
                if start.elapsed() > PATIENCE {
                    eprintln!("no complete view in {PATIENCE:?}");
                    std::process::exit(1);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            println!("ready");
        });
        until_input_ends(&stop, || {
            if let Err(error) = server.run(&stop) {
                eprintln!("{error}");
                std::process::exit(1);
            }
        });
    });
}

/// The role of the host that answers each byte of one connection, which ends with its input at the latest.
pub fn run_view_server() {
    std::thread::spawn(|| {
        until_input_ends(&AtomicBool::new(false), || {});
        std::process::exit(0);
    });
    let listener = TcpListener::bind(SERVER).expect("the address is its own");
    println!("ready");
    let (mut client, _) = listener.accept().expect("a client");
    client.set_nodelay(true).expect("a socket's option");
    let mut byte = [0];
    while matches!(client.read(&mut byte), Ok(1)) {
        if client.write_all(&byte).is_err() {
            break;
        }
    }
}

/// The role of the host that asks and sends, as its input tells: `trips` has it print the times of round
/// trips in ns, `flood` send frames of many sources.
pub fn run_view_client(path: &str) {
    let mut server =
        TcpStream::connect_timeout(&SERVER.into(), PATIENCE).expect("the server accepts");
    server.set_nodelay(true).expect("a socket's option");
    server.set_read_timeout(Some(PATIENCE)).expect("another");
    // An open port takes part in each round trip.
    let mut port = None;
    let frames = flood_frames(path);
    println!("ready");
    for line in std::io::stdin().lines() {
        match line.expect("a command").as_str() {
            "trips" => {
                let trips = serde_json::to_string(&trips(&mut server));
                println!("{}", trips.expect("it is data"));
            }
            _ => {
                flood(port.get_or_insert_with(sender), &frames);
                println!("flooded");
            }
        }
    }
}

/// Times for one byte and back, in ns.
fn trips(server: &mut TcpStream) -> Vec<f64> {
    let mut trips = Vec::new();
    let mut byte = [7];
    for trip in 0..FIRST + TRIPS {
        let start = Instant::now();
        server.write_all(&byte).expect("the byte is sent");
        server.read_exact(&mut byte).expect("an answer");
        if trip >= FIRST {
            trips.push(start.elapsed().as_nanos() as f64);
        }
    }
    trips
}

/// Frames of many sources, as they suit the program.
fn flood_frames(path: &str) -> Vec<Vec<u8>> {
    const TCP_FLAGS: usize = 47;
    const SYN: u8 = 2;
    let mut sources = Sources::new(SOURCES);
    let frames = (0..FRAMES).map(|at| {
        let source = Ipv4Addr::from_bits(0x0a00_0000 | sources.draw());
        let source = SocketAddrV4::new(source, 20_000);
        let mut frame = if path.contains("firewall") {
            // One packet of eight opens a connection.
            let mut frame = frame::tcp(source, SERVER, 60);
            if at % 8 == 0 {
                frame[TCP_FLAGS] = SYN;
            }
            frame
        } else {
            frame::udp(source, SERVER, 60)
        };
        set_destination(&mut frame, B);
        frame
    });
    frames.collect()
}

/// The port that floods.
fn sender() -> Port {
    let spec = PortSpec::Interface {
        name: "a0".to_owned(),
        access: Access::Packet,
    };
    Port::open(&spec).expect("the interface opens")
}

/// Sends frames for [`FLOOD_S`].
fn flood(port: &mut Port, frames: &[Vec<u8>]) {
    let end = Instant::now() + Duration::from_secs_f64(FLOOD_S);
    for batch in frames.chunks(32).cycle() {
        if Instant::now() >= end {
            break;
        }
        port.send(batch, 0);
    }
}
