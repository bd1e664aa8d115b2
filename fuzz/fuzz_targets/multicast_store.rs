#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| stateplane_fuzz::run("multicast_store", input));
