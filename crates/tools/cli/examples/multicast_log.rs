//! Keeps all lines of a group, also those from before it began, which it takes from a peer:
//!
//! ```text
//! multicast_log CONTROLLER GROUP COUNT           begins with nothing; prints COUNT lines, then it ends
//! multicast_log CONTROLLER GROUP COUNT PEER      begins with what the program at PEER has
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_receiver::{MulticastReceiver, MulticastReceiverConfig, Received};
use stateplane_host::multicast_state::{State, States};
use stateplane_multicast::FinalTime;

const SECOND: u64 = 1_000_000;

/// TCP port at which programs give their states.
const PORT: u16 = 4802;

/// The place that has all messages up to a time.
fn end_of(time: u64) -> FinalTime {
    let group = u8::MAX;
    FinalTime { time, group }
}

/// The state that a peer gives. Signs of life are given within `step` meanwhile.
fn wait(
    joined: &Receiver<State>,
    receiver: &mut MulticastReceiver,
) -> Result<State, Box<dyn Error>> {
    loop {
        match joined.try_recv() {
            Ok(state) => return Ok(state),
            Err(TryRecvError::Empty) => receiver.step(boot_time_us() + SECOND / 100)?,
            Err(TryRecvError::Disconnected) => return Err("no peer gives its state".into()),
        }
    }
}

/// Takes what came, and says how many lines there are.
fn take(log: &mut State, receiver: &mut MulticastReceiver) -> Result<usize, Box<dyn Error>> {
    while let Some(received) = receiver.poll() {
        match received {
            Received::Message { at, payload, .. } => {
                log.bytes.extend(payload);
                log.bytes.push(b'\n');
                log.place = at;
            }
            Received::TakenOff => return Err("the receiver was taken off the list".into()),
        }
    }
    // A peer may begin here too, though no message has just this place.
    if let Some(time) = receiver.passed() {
        log.place = log.place.max(end_of(time));
    }
    Ok(log.bytes.iter().filter(|byte| **byte == b'\n').count())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (controller, group, count, peer) = match words.as_slice() {
        [controller, group, count] => (controller, group, count, None),
        [controller, group, count, peer] => (controller, group, count, Some(peer)),
        _ => return Err("usage: multicast_log CONTROLLER GROUP COUNT [PEER]".into()),
    };
    let port = stateplane_wire::control::PORT;
    let count: usize = count.parse()?;
    let config = MulticastReceiverConfig {
        controllers: vec![SocketAddrV4::new(controller.parse()?, port)],
        address: None,
        group: group.parse()?,
        queue: 1024,
    };
    let mut receiver = MulticastReceiver::connect(config, None, boot_time_us() + 10 * SECOND)?;

    // There is no state before a peer's is there.
    let log: Arc<Mutex<Option<State>>> = Arc::default();
    let lock =
        || -> MutexGuard<'_, Option<State>> { log.lock().unwrap_or_else(PoisonError::into_inner) };
    let given = Arc::clone(&log);
    let own = SocketAddrV4::new(receiver.address(), PORT);
    let mut states = States::open(own, None, move || {
        let log = given.lock().unwrap_or_else(PoisonError::into_inner);
        log.clone()
    })?;
    let begin = match peer {
        Some(peer) => {
            let peers = vec![SocketAddrV4::new(peer.parse()?, PORT)];
            let joined = states.join(peers, receiver.after(), Some)?;
            wait(&joined, &mut receiver)?
        }
        None => State {
            place: end_of(receiver.after()),
            bytes: Vec::new(),
        },
    };
    receiver.begin_behind(begin.place);
    *lock() = Some(begin);
    eprintln!("ready");
    loop {
        if let Some(log) = lock().as_mut()
            && take(log, &mut receiver)? >= count
        {
            io::stdout().write_all(&log.bytes)?;
            break;
        }
        receiver.step(boot_time_us() + SECOND / 10)?;
    }
    drop(states);
    receiver.leave(boot_time_us() + SECOND);
    Ok(())
}
