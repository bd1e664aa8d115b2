//! Engines and switches of programs as they are and in view of the control plane.

use stateplane_host::switch::SwitchFile;
use stateplane_native::{Compiled, Native, Options};
use stateplane_switch::{Switch, SwitchConfig};
use stateplane_sync_setup::CONTROL_PORT;
use std::path::Path;

use super::link::SWITCH;

/// The program compiled.
///
/// # Panics
///
/// If it is refused.
pub fn compiled(text: &str) -> Compiled {
    let program = stateplane_bench::switch::compile_text(text);
    Compiled::new(program).expect("the program loads")
}

/// A switch of the program with ports to hosts and to the engine.
///
/// # Panics
///
/// If the program does not include the library.
pub fn switch(engine: Native) -> Switch<Native> {
    let mut switch = plain_switch(engine);
    let text = format!("[sync]\nswitch = 1\naddress = \"{SWITCH}\"\n");
    let file = SwitchFile::parse(Path::new("switch.toml"), &text).expect("a switch's file");
    file.apply(&mut switch, &mut || 0x1a2b_3c4d)
        .expect("it suits the program");
    switch
}

/// A switch of a program that has no view.
pub fn plain_switch(engine: Native) -> Switch<Native> {
    let config = SwitchConfig {
        ports: vec![0, 1, CONTROL_PORT],
        ..SwitchConfig::default()
    };
    Switch::new(engine, config).expect("a switch")
}

/// An engine of the program.
pub fn engine(compiled: &Compiled) -> Native {
    compiled.engine(Options::default()).expect("an engine")
}
