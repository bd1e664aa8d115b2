//! One packet through a program, step by step: parser states, extracts, tables with the
//! entry hit, registers, what the switch does, and the frames that leave.
//!
//! [`Recorder`] observes the reference interpreter and keeps a [`Step`] for each event;
//! [`send`] takes a frame through a switch around it, [`run_script`] an STF script's
//! packets. [`render`] makes text of the steps, [`to_json`] one object of each.

mod datum;
mod recorder;
mod render;
mod step;

use stateplane_interp::Interp;
use stateplane_runtime::DROP_PORT;
use stateplane_stf::{Command, Script, StfError};
use stateplane_switch::{Port, Switch, SwitchConfig, SwitchError};

pub use recorder::{MAX_STEPS, Recorder};
pub use render::{render, to_json};
pub use step::Step;

/// Calls of the switch for one frame at most; each does thousands of passes.
const PATIENCE: u32 = 100;

/// A switch around `engine` with all ports from 0 to 510, whose time begins at
/// [`stateplane_stf::START_US`].
///
/// # Errors
///
/// None that a switch with nothing configured knows of.
pub fn switch(engine: Interp<Recorder>) -> Result<Switch<Interp<Recorder>>, SwitchError> {
    let config = SwitchConfig {
        ports: (0..DROP_PORT).collect(),
        ..SwitchConfig::default()
    };
    Switch::new(engine, config)
}

/// Takes a frame that arrives by `port` through the switch, and all that becomes of it at
/// once; copies that are held for a time stay held.
pub fn send(switch: &mut Switch<Interp<Recorder>>, port: Port, frame: &[u8]) {
    let now = stateplane_stf::START_US;
    switch.handle_frame(now, port, frame);
    for _ in 0..PATIENCE {
        while switch.poll_transmit().is_some() {}
        if switch.poll_timeout().is_none_or(|due| due > now) {
            break;
        }
        switch.handle_timeout(now);
    }
}

/// A switch that is configured as the script says: its entries, default actions, registers,
/// mirror sessions and multicast groups. With `packets`, its packets arrive too, and time
/// passes as it says; what it expects is not looked at.
///
/// # Errors
///
/// The first line whose command is refused.
pub fn run_script(
    script: &Script,
    packets: bool,
    engine: Interp<Recorder>,
) -> Result<Switch<Interp<Recorder>>, StfError> {
    let wanted = |command: &Command| match command {
        Command::Packet { .. }
        | Command::Generator { .. }
        | Command::Advance(_)
        | Command::Wait
        // Frames that nobody expects are an error at the end of a script.
        | Command::Ignore(_) => packets,
        Command::Expect { .. }
        | Command::ExpectNone(_)
        | Command::ExpectDigest { .. }
        | Command::ExpectLog(_)
        | Command::CheckCounter { .. }
        | Command::CheckDropped { .. }
        | Command::CounterRead { .. }
        | Command::MeterRead { .. }
        | Command::MirroringGet(_)
        | Command::RegisterRead { .. } => false,
        _ => true,
    };
    let mut lines: Vec<_> = script.lines.clone();
    lines.retain(|line| wanted(&line.command));
    if packets {
        let number = lines.last().map_or(0, |line| line.number);
        lines.push(stateplane_stf::Line {
            number,
            command: Command::Ignore(None),
        });
    }
    let script = Script {
        lines,
        ..script.clone()
    };
    stateplane_stf::run(&script, engine)
}
