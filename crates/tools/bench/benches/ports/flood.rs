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
/// Frames that a port is given at a time.
pub const BATCH: usize = 32;
/// Share of the frames that may be lost.
const LOSS: f64 = 0.001;
const TRIAL_S: f64 = 1.0;
/// Trials in which a forwarder may not pass anything yet.
const PATIENCE: usize = 10;
/// Steps of a search: the rate is found within 1/128 of the sender's own.
const TRIALS: u32 = 7;

/// Writes the Ethernet address `to` into a frame.
pub fn set_destination(frame: &mut [u8], to: &str) {
    for (byte, digits) in frame.iter_mut().zip(to.split(':')) {
        *byte = u8::from_str_radix(digits, 16).expect("an address");
    }
}

/// A frame of each flow, for the Ethernet address `to`.
pub fn frames(to: &str) -> Vec<Vec<u8>> {
    let server = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 18), 7000);
    (0..FLOWS)
        .map(|flow| SocketAddrV4::new(Ipv4Addr::new(10, 1, 1, 1), 20_000 + flow))
        .map(|client| {
            let mut frame = frame::udp(client, server, FRAME);
            set_destination(&mut frame, to);
            frame
        })
        .collect()
}

/// A port that floods by `interface`.
pub fn sending_port(interface: &str) -> Port {
    let spec = PortSpec::Interface {
        name: interface.to_owned(),
        access: Access::Packet,
    };
    Port::open(&spec).expect("the interface opens")
}

/// Frames that were sent.
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
    let mut port = sending_port(interface);
    let frames = frames(to);
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

/// Throughput of a forwarder under the offered load, in frames per second.
#[derive(Clone, Copy)]
pub struct Passed {
    /// The greatest rate at which less than 0.1 % of the frames is lost.
    pub lossless: f64,
    /// Throughput when the sender sends as fast as it can.
    pub flooded: f64,
}

/// Outcome of frames at one rate.
struct Trial {
    /// Frames per second that were sent.
    offered: f64,
    /// Frames per second that arrived.
    arrived: f64,
    lost: f64,
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

    fn trial(network: &Network, to: &str, rate: u64) -> Trial {
        let before = network.received("b0");
        let flood = Flood::send(network, "a0", to, rate, TRIAL_S);
        std::thread::sleep(Duration::from_millis(200));
        let received = network.received("b0") - before;
        Trial {
            offered: flood.sent as f64 / flood.seconds,
            arrived: received as f64 / flood.seconds,
            lost: 1.0 - received as f64 / flood.sent as f64,
        }
    }

    /// Searches for what a forwarder passes. `None` if nothing passes for some seconds.
    ///
    /// A rate at which frames are lost is tried once more: now and then the system runs
    /// something else for so long that any ring fills up.
    pub fn search(network: &Network, job: Job, limit: f64) -> Option<Passed> {
        let to = match job {
            Job::Bridge => B,
            Job::Route | Job::Nat | Job::ReplicatedNat => R0,
        };
        // Mappings are made before anything is measured.
        let mut greetings = 0;
        while Flood::trial(network, to, 2_000).lost > 0.5 {
            greetings += 1;
            if greetings == PATIENCE {
                return None;
            }
        }
        let all = Flood::trial(network, to, 0);
        let flooded = all.arrived;
        if all.lost < LOSS {
            let lossless = all.offered;
            return Some(Passed { lossless, flooded });
        }
        let (mut good, mut bad) = (0.0, limit);
        let mut lossless: f64 = 0.0;
        for _ in 0..TRIALS {
            let rate = (good + bad) / 2.0;
            let again = |trial: Trial| {
                if trial.lost < LOSS {
                    trial
                } else {
                    Flood::trial(network, to, rate as u64)
                }
            };
            let trial = again(Flood::trial(network, to, rate as u64));
            if trial.lost < LOSS {
                good = rate;
                lossless = trial.offered.max(lossless);
                // The path slows the sender itself: more cannot be offered.
                if trial.offered < rate * 0.97 {
                    break;
                }
            } else {
                bad = rate;
            }
        }
        Some(Passed { lossless, flooded })
    }
}
