#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| stateplane_fuzz::run("gnmi", input));
