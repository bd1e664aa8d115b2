//! Compiles the interface's definition.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["stateplane/sync/v1/view.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .bytes(".stateplane.sync.v1")
        .compile_fds(descriptors)?;
    Ok(())
}
