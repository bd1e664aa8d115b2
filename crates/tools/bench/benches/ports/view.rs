//! Programs in view of the control plane beside the same ones as they are: throughput and round trips.
//!
//! Frames go from `a` by the switch in `r` to `b`, and answers straight back. The engine is in `s`, and has
//! the sender's core: in use it is on another machine.

use super::flood::set_destination;
use super::forwarder::{Running, forward, ready, until_input_ends};
use super::network::{B, Network};
use serde::{Deserialize, Serialize};
use stateplane_bench::switch::{compile, compile_text};
use stateplane_bench::view::{InView, SOURCES, Sources, in_view};
use stateplane_bench::{Report, frame};
use stateplane_eval::approsync::engine_file;
use stateplane_host::ports::{Access, Port, PortSpec};
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

/// Pairs of a program in view and as it is, one after the other.
const PAIRS: usize = 10;

/// Standard errors on each side of the mean in an interval of 95 %: Student's distribution with one degree of
/// freedom less than there are pairs.
const QUANTILE: f64 = 2.262;

/// Seconds of a flood, and frames that it repeats.
const FLOOD_S: f64 = 2.0;
const FRAMES: usize = 16_384;

/// Round trips that are measured, behind some that are not.
const TRIPS: usize = 4_000;
const FIRST: usize = 200;

/// Addresses: of the switch for its engine, of the engine, of the host that answers.
const SWITCH: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 1);
const ENGINE: Ipv4Addr = Ipv4Addr::new(10, 10, 0, 11);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 7000);

/// Time for connections and views.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measurement of a client.
#[derive(Serialize, Deserialize)]
struct Trips {
    median_ns: f64,
}

/// Outcome of a turn.
struct Turn {
    frames_per_s: f64,
    round_trip_ns: f64,
}

/// Measures all programs.
pub fn measure(network: &Network, reports: &mut [Report; 2]) {
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
    for (name, path) in PROGRAMS {
        let mut turns = [Vec::new(), Vec::new()];
        for pair in 0..PAIRS {
            // The order changes from pair to pair.
            for side in [pair % 2, 1 - pair % 2] {
                match turn(network, path, side == 1) {
                    Ok(turn) => turns[side].push(turn),
                    Err(reason) => {
                        println!("ports: {name} in view skipped: {reason}");
                        return;
                    }
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

fn median(turns: &[Turn], of: fn(&Turn) -> f64) -> f64 {
    let mut values: Vec<f64> = turns.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Starts the switch, and the engine if its program is in view, and measures.
fn turn(network: &Network, path: &str, seen: bool) -> Result<Turn, String> {
    let mut children = Vec::new();
    let how = if seen { "view" } else { "plain" };
    children.push(ready(network.role("r", &["view-switch", path, how]))?);
    if seen {
        children.push(ready(network.role_beside(
            "s",
            "a",
            &["view-engine", path],
        ))?);
    }
    let running = Running::Switch(children);
    let server = ready(network.role("b", &["view-server"]))?;
    let client = network.role("a", &["view-client"]);
    let output = client
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let trips: Trips = serde_json::from_slice(&output.stdout).map_err(|_| error)?;
    drop(Running::Switch(vec![server]));
    network.drop_frames(true);
    let before = network.received("b0");
    let flood = network.role("a", &["view-flood", path]);
    let flood = flood
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    std::thread::sleep(Duration::from_millis(200));
    let received = network.received("b0") - before;
    network.drop_frames(false);
    drop(running);
    if !flood.status.success() {
        return Err(String::from_utf8_lossy(&flood.stderr).trim().to_owned());
    }
    Ok(Turn {
        frames_per_s: received as f64 / FLOOD_S,
        round_trip_ns: trips.median_ns,
    })
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

/// The role of the host that answers each byte of one connection.
pub fn run_view_server() {
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

/// The role of the host that asks: prints the median of the times for one byte and back.
pub fn run_view_client() {
    let mut server =
        TcpStream::connect_timeout(&SERVER.into(), PATIENCE).expect("the server accepts");
    server.set_nodelay(true).expect("a socket's option");
    server.set_read_timeout(Some(PATIENCE)).expect("another");
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
    trips.sort_by(f64::total_cmp);
    let trips = Trips {
        median_ns: trips[trips.len() / 2],
    };
    println!("{}", serde_json::to_string(&trips).expect("it is data"));
}

/// The role of the sender: floods frames of many sources for [`FLOOD_S`].
pub fn run_view_flood(path: &str) {
    const TCP_FLAGS: usize = 47;
    const SYN: u8 = 2;
    let spec = PortSpec::Interface {
        name: "a0".to_owned(),
        access: Access::Packet,
    };
    let mut port = Port::open(&spec).expect("the interface opens");
    let mut sources = Sources::new(SOURCES);
    let mut frames: Vec<Vec<u8>> = (0..FRAMES)
        .map(|at| {
            let source = Ipv4Addr::from_bits(0x0a00_0000 | sources.draw());
            let source = SocketAddrV4::new(source, 20_000);
            if !path.contains("firewall") {
                return frame::udp(source, SERVER, 60);
            }
            // One packet of eight opens a connection.
            let mut frame = frame::tcp(source, SERVER, 60);
            if at % 8 == 0 {
                frame[TCP_FLAGS] = SYN;
            }
            frame
        })
        .collect();
    for frame in &mut frames {
        set_destination(frame, B);
    }
    let end = Instant::now() + Duration::from_secs_f64(FLOOD_S);
    for batch in frames.chunks(32).cycle() {
        if Instant::now() >= end {
            break;
        }
        port.send(batch, 0);
    }
}
