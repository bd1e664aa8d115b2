//! Two networks that take turns, so that what slows the machine for longer than a slice slows both: the processes
//! of the one whose turn it is not are stopped.

use super::flood::{BATCH, frames, sending_port};
use super::forwarder::{Job, Running, ready, start_switch};
use super::network::{Network, R0};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use stateplane_bench::stay_on;
use stateplane_host::ports::Port;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout};
use std::time::{Duration, Instant};

/// Slices of each network in a pair of measurements.
pub const SLICES: usize = 100;

/// Seconds of a slice's flood.
const FLOOD_S: f64 = 0.02;

/// Time for an engine to hear of its switch again, and for frames to leave a switch before it is stopped.
const SETTLE: Duration = Duration::from_millis(5);

/// Processes that run only while it is their turn.
pub struct InTurn {
    /// The last of them does what it is told.
    children: Vec<Child>,
    answers: BufReader<ChildStdout>,
}

impl InTurn {
    /// Stops `children`, which are ready, until it is their turn.
    pub fn new(mut children: Vec<Child>) -> Result<InTurn, String> {
        let client = children.last_mut().ok_or("no process")?;
        let answers = client.stdout.take().ok_or("the client has no output")?;
        let processes = InTurn {
            children,
            answers: BufReader::new(answers),
        };
        processes.signal(Signal::SIGSTOP)?;
        Ok(processes)
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        for child in &self.children {
            let id = Pid::from_raw(child.id().cast_signed());
            kill(id, signal).map_err(|error| format!("{signal}: {error}"))?;
        }
        Ok(())
    }

    /// Gives the processes their turn: the answer of the last one to `command`.
    pub fn ask(&mut self, command: &str) -> Result<String, String> {
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
}

impl Drop for InTurn {
    fn drop(&mut self) {
        // A stopped process does not see the end of its input.
        let _ = self.signal(Signal::SIGCONT);
        drop(Running::Switch(std::mem::take(&mut self.children)));
    }
}

/// Which of two has its turn first, and which then: another one in each slice.
pub fn order(slice: usize) -> [usize; 2] {
    [slice % 2, 1 - slice % 2]
}

/// Frames per second that pass each of two networks while it floods.
pub fn flood_in_turns(
    networks: [&Network; 2],
    sides: &mut [InTurn; 2],
) -> Result<[f64; 2], String> {
    let before = networks.map(|network| {
        network.drop_frames(true);
        network.received("b0")
    });
    for slice in 0..SLICES {
        for side in order(slice) {
            if sides[side].ask("flood")?.trim() != "flooded" {
                return Err("the sender ended".to_owned());
            }
        }
    }
    let after = networks.map(|network| {
        let received = network.received("b0");
        network.drop_frames(false);
        received
    });
    Ok([0, 1].map(|side| (after[side] - before[side]) as f64 / (FLOOD_S * SLICES as f64)))
}

/// A switch that routes on so many workers, with a sender on so many processors.
pub fn routing(
    network: &Network,
    access: &str,
    workers: usize,
    senders: usize,
) -> Result<InTurn, String> {
    let mut children = start_switch(network, Job::Route, access, workers)?;
    children.push(ready(network.role("a", &["sender", &senders.to_string()]))?);
    InTurn::new(children)
}

/// The role of the sender: for each line of its input it floods for a slice, from `processors` processors at
/// once, each with flows of its own. A veth pair puts frames of one processor into one queue, where the queues
/// of a network card have the flows that their hash gives them.
pub fn run_sender(processors: &str) {
    let processors: usize = processors.parse().expect("a number of processors");
    let mut own: Vec<Vec<Vec<u8>>> = vec![Vec::new(); processors];
    for (flow, frame) in frames(R0).into_iter().enumerate() {
        own[flow % processors].push(frame);
    }
    let mut ports: Vec<Port> = own.iter().map(|_| sending_port("a0")).collect();
    println!("ready");
    for line in std::io::stdin().lines() {
        line.expect("a command");
        std::thread::scope(|scope| {
            for (processor, (port, frames)) in ports.iter_mut().zip(&own).enumerate() {
                scope.spawn(move || {
                    stay_on(processor);
                    flood(port, frames);
                });
            }
        });
        println!("flooded");
    }
}

/// Sends frames for a slice.
pub fn flood(port: &mut Port, frames: &[Vec<u8>]) {
    let end = Instant::now() + Duration::from_secs_f64(FLOOD_S);
    for batch in frames.chunks(BATCH).cycle() {
        if Instant::now() >= end {
            break;
        }
        port.send(batch, 0);
    }
}
