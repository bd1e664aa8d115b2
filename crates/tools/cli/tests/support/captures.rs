//! Captures of Ethernet frames (pcap, little-endian, µs).

/// A capture without frames.
pub fn empty() -> Vec<u8> {
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1];
    header.map(u32::to_le_bytes).concat()
}

/// Adds a frame, or as much of it as is given, that came `at` so many µs.
pub fn add(capture: &mut Vec<u8>, at: u32, length: usize, frame: &[u8]) {
    let length = length as u32;
    for word in [at / 1_000_000, at % 1_000_000, length, length] {
        capture.extend(word.to_le_bytes());
    }
    capture.extend_from_slice(frame);
}

/// A capture of frames, each with its time in µs.
pub fn of<F: AsRef<[u8]>>(frames: impl Iterator<Item = (u32, F)>) -> Vec<u8> {
    let mut capture = empty();
    for (at, frame) in frames {
        let frame = frame.as_ref();
        add(&mut capture, at, frame.len(), frame);
    }
    capture
}
