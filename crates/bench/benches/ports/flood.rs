//! Frames at a steady rate, and the greatest rate that arrives.

use super::forwarder::Job;
use super::network::{B, Network, R0};
use serde::{Deserialize, Serialize};
use stateplane_bench::frame;
use stateplane_host::ports::{Access, Port, PortSpec};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

const FLOWS: u16 = 64;
const FRAME: usize = 60;
const BATCH: usize = 32;
/// Share of the frames that may be lost.
const LOSS: f64 = 0.001;
const TRIAL_S: f64 = 1.0;
/// Steps of a search: the rate is found within 1/128 of the sender's own.
const TRIALS: u32 = 7;

/// What was sent.
#[derive(Serialize, Deserialize)]
pub struct Flood {
    pub sent: u64,
    pub seconds: f64,
}

/// The role of the sender: interface, the Ethernet address it sends to, frames per second
/// (0: all it can) and seconds.
pub fn run(arguments: &[&str]) {
    let [interface, to, rate, seconds] = arguments[..] else {
        panic!("flood takes an interface, an address, a rate and seconds");
    };
    let rate: f64 = rate.parse().expect("a rate");
    let seconds: f64 = seconds.parse().expect("seconds");
    let spec = PortSpec::Interface {
        name: interface.to_owned(),
        access: Access::Packet,
    };
    let mut port = Port::open(&spec).expect("the interface opens");
    let server = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 7000);
    let frames: Vec<Vec<u8>> = (0..FLOWS)
        .map(|flow| SocketAddrV4::new(Ipv4Addr::new(10, 1, 1, 1), 20_000 + flow))
        .map(|client| {
            let mut frame = frame::udp(client, server, FRAME);
            for (byte, digits) in frame.iter_mut().zip(to.split(':')) {
                *byte = u8::from_str_radix(digits, 16).expect("an address");
            }
            frame
        })
        .collect();
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(seconds);
    let mut offered = 0;
    let mut batches = frames.chunks(BATCH).cycle();
    while Instant::now() < end {
        if rate > 0.0 {
            let due = start + Duration::from_secs_f64(offered as f64 / rate);
            while Instant::now() < due {
                std::hint::spin_loop();
            }
        }
        let batch = batches.next().expect("there are frames");
        port.send(batch, 0);
        offered += batch.len();
    }
    let flood = Flood {
        sent: port.counters().sent,
        seconds: start.elapsed().as_secs_f64(),
    };
    println!("{}", serde_json::to_string(&flood).expect("it is data"));
}

impl Flood {
    /// Sends from `a`.
    pub fn send(network: &Network, interface: &str, to: &str, rate: u64, seconds: f64) -> Flood {
        let (rate, seconds) = (rate.to_string(), seconds.to_string());
        let child = network.role("a", &["flood", interface, to, &rate, &seconds]);
        let output = child.wait_with_output().expect("the sender ends");
        let error = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("the sender: {error}"))
    }

    /// The greatest rate at which less than 0.1 % of the frames is lost.
    pub fn search(network: &Network, job: Job, limit: f64) -> f64 {
        let to = match job {
            Job::Bridge => B,
            Job::Route | Job::Nat => R0,
        };
        // Mappings are made before anything is measured.
        Flood::send(network, "a0", to, 2_000, 0.3);
        let (mut good, mut bad) = (0.0, limit);
        let mut reached = 0.0;
        for _ in 0..TRIALS {
            let rate = (good + bad) / 2.0;
            let before = network.received("b0");
            let flood = Flood::send(network, "a0", to, rate as u64, TRIAL_S);
            std::thread::sleep(Duration::from_millis(200));
            let received = network.received("b0") - before;
            let lost = 1.0 - received as f64 / flood.sent as f64;
            let offered = flood.sent as f64 / flood.seconds;
            if lost < LOSS {
                good = rate;
                reached = offered.max(reached);
                // The path slows the sender itself: more cannot be offered.
                if offered < rate * 0.97 {
                    break;
                }
            } else {
                bad = rate;
            }
        }
        reached
    }
}
