//! Compiles the protocol definitions.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    println!("cargo:rerun-if-changed=../../compiler/p4info/proto");
    let descriptors = protox::compile(
        ["p4/v1/p4runtime.proto", "stateplane/v1/switch.proto"],
        ["proto", "../../compiler/p4info/proto"],
    )?;
    tonic_prost_build::configure()
        .extern_path(".p4.config.v1", "::stateplane_p4info::proto")
        .compile_fds(descriptors)?;
    Ok(())
}
