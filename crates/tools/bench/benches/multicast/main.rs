//! Leaders of multicast without sockets: messages per second and core that the leader of a group of
//! three orders, with the program of `apps/multicast` as it ships. STARTs come in; PROPs, PAYLOADs and
//! DELIVERs go out; ACKs of two followers, which are switches too, and RECEIVEDs of receivers come back,
//! so that the window is freed as fast as messages come; held copies come back after their time. Beside it
//! (`relay`) the same frames through a program that sends each one on: what this machine does with so
//! many frames.
//!
//! Receivers in the load `one group` answer in turn, one RECEIVED for each message, the least that frees
//! the window as fast as messages come; in `each DELIVER answered` all of them answer each. `half to two
//! groups` has a leader, followers and receivers for each group; the first leader's work counts. Rows in ns
//! are the leader's time for one message, by the packets that cause it, and a follower's for it all.
//!
//! A number among the arguments is the length of the frame of a START; without one they are 150 and
//! 1,500.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod groups;
mod memory;
mod node;

use stateplane_bench::Report;
use std::process::ExitCode;

/// Lengths of frames, in bytes: those of the evaluation's shortest and longest messages.
const LENGTHS: [usize; 2] = [150, 1500];

fn main() -> ExitCode {
    let lengths: Vec<usize> = std::env::args().filter_map(|it| it.parse().ok()).collect();
    let lengths = if lengths.is_empty() {
        &LENGTHS[..]
    } else {
        &lengths
    };
    let mut report = Report::new("multicast", "messages/s");
    for length in lengths {
        memory::run(&mut report, *length);
    }
    match report.finish() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("multicast: {error}");
            ExitCode::FAILURE
        }
    }
}
