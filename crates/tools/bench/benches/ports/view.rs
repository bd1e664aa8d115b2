//! Programs in view of the control plane beside the same ones as they are: throughput and round trips.
//!
//! Frames go from `a` by the switch in `r` to `b`, and answers straight back. The engine is in `s`, and has
//! the sender's core: in use it is on another machine.

use super::flood::{sending_port, set_destination};
use super::forwarder::{forward, ready, until_input_ends};
use super::network::{B, Network};
use super::turns::{InTurn, SLICES, flood, flood_in_turns, order};
use stateplane_bench::switch::{compile, compile_text};
use stateplane_bench::view::{InView, SOURCES, Sources, in_view};
use stateplane_bench::{Interval, PAIRS, Report, frame};
use stateplane_eval::approsync::engine_file;
use stateplane_host::ports::{Access, PortSpec};
use stateplane_host::switch::SwitchFile;
use stateplane_host::sync::{GroupFile, SyncServer};
use stateplane_native::{Compiled, Options};
use stateplane_sync_setup::CONTROL_PORT;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Names of programs, and the programs.
const PROGRAMS: [(&str, &str); 3] = [
    ("packet counter", "bench/p4/packet_counter.p4"),
    ("heavy hitters", "bench/p4/sketch.p4"),
    ("firewall", "bench/p4/firewall.p4"),
];

/// Frames that a flood repeats.
const FRAMES: usize = 16_384;

/// Round trips of a slice, behind some that are not measured.
const TRIPS: usize = 40;
const FIRST: usize = 10;

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
            let ratios = std::array::from_fn(|pair| of(&seen[pair]) / of(&plain[pair]));
            println!(
                "ports: {name} in view, {what} against the plain program's: {}",
                Interval::of(ratios)
            );
        }
    }
}

fn median<T>(measured: &[T], of: fn(&T) -> f64) -> f64 {
    let mut values: Vec<f64> = measured.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures the program as it is and in view, each in a network of its own.
fn measure_pair(networks: [&Network; 2], path: &str) -> Result<[Turn; 2], String> {
    let mut sides = [
        start(networks[0], path, false)?,
        start(networks[1], path, true)?,
    ];
    let mut trips = [Vec::new(), Vec::new()];
    for slice in 0..SLICES {
        for side in order(slice) {
            trips[side].extend(slice_of_trips(&mut sides[side])?);
        }
    }
    let frames_per_s = flood_in_turns(networks, &mut sides)?;
    Ok([0, 1].map(|side| Turn {
        frames_per_s: frames_per_s[side],
        round_trip_ns: median(&trips[side], |trip| *trip),
    }))
}

/// Starts a switch, its engine if its program is in view, the host that answers, and the client.
fn start(network: &Network, path: &str, seen: bool) -> Result<InTurn, String> {
    let how = if seen { "view" } else { "plain" };
    let mut children = vec![ready(network.role("r", &["view-switch", path, how]))?];
    if seen {
        let engine = network.role_beside("s", "a", &["view-engine", path]);
        children.push(ready(engine)?);
    }
    children.push(ready(network.role("b", &["view-server"]))?);
    children.push(ready(network.role("a", &["view-client", path]))?);
    InTurn::new(children)
}

/// Times of a slice's round trips in ns.
fn slice_of_trips(side: &mut InTurn) -> Result<Vec<f64>, String> {
    let answer = side.ask("trips")?;
    serde_json::from_str(&answer).map_err(|_| "the client ended".to_owned())
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
                flood(port.get_or_insert_with(|| sending_port("a0")), &frames);
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
