//! Compiles the interface's definition.

use std::error::Error;

/// The definitions.
const FILES: [&str; 2] = [
    "stateplane/sync/v1/view.proto",
    "stateplane/sync/v1/flows.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    tonic_prost_build::configure()
        .bytes(".stateplane.sync.v1")
        .compile_fds(descriptors)?;
    Ok(())
}
