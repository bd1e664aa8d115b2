//! Compiles the protocol's definition.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["gnmi/gnmi.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .bytes(".gnmi.TypedValue")
        .compile_fds(descriptors)?;
    Ok(())
}
