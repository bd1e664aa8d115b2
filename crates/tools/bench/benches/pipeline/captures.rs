//! Frames of real captures, if the folder with them is there: `STATEPLANE_TRACES`, or
//! `shared/traces` beside the project.

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Both directions of many connections of all kinds, cut off after 96 bytes.
pub const MIXED: &str = "mixed-two-way-snap96.pcap";
/// Thousands of sources that open one connection each.
pub const FLOOD: &str = "syn-flood.pcap";

fn folder() -> PathBuf {
    match std::env::var_os("STATEPLANE_TRACES") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces"),
    }
}

/// Frames of a capture; `None`, after a message, if it is not there.
pub fn frames(name: &str) -> Option<Vec<Vec<u8>>> {
    let path = folder().join(name);
    let Ok(file) = File::open(&path) else {
        println!("no {}: nothing is measured with it", path.display());
        return None;
    };
    let mut reader = PcapReader::new(BufReader::new(file)).expect("a capture");
    assert_eq!(reader.header().datalink, DataLink::ETHERNET, "{name}");
    let mut frames = Vec::new();
    // Raw: frames are longer than what was kept of them.
    while let Some(packet) = reader.next_raw_packet() {
        frames.push(packet.expect("a packet").data.into_owned());
    }
    Some(frames)
}
