//! The walk of a switch over its arrays, in bounded-inconsistency mode
//! (`p4/lib/snapshot.p4`).

/// `SNAPSHOT_PORT` of the library.
pub const SNAPSHOT_PORT: u16 = 508;
/// `ETHERTYPE_GENERATED` of the library.
const TYPE_GENERATED: [u8; 2] = [0x88, 0xb5];
/// Bytes of `snapshot_walk_t` behind the switch's number, and of an array's value.
const REST: usize = 10;
const VALUE: usize = 4;

/// The packet generator's frame for the walk of `switch` over the elements of `arrays` arrays.
pub fn walk_frame(switch: u32, arrays: usize) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend(TYPE_GENERATED);
    frame.extend(switch.to_be_bytes());
    frame.resize(frame.len() + REST + VALUE * arrays, 0);
    frame
}
