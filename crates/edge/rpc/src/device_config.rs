//! The program in a device config: text, alone or in the message in which controllers for BMv2
//! pack it.

use prost::Message;
use std::borrow::Cow;

/// Config of a device as `p4.tmp.P4DeviceConfig` has it.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    /// True if the device is to be assigned anew.
    #[prost(bool, tag = "1")]
    reassign: bool,
    /// Values for the device, which no switch here needs.
    #[prost(bytes = "vec", optional, tag = "2")]
    extras: Option<Vec<u8>>,
    /// The program.
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// Tags with which the message begins; none of them begins a text.
const TAGS: [u8; 3] = [0x08, 0x12, 0x1a];

/// The program of a device config.
pub(crate) fn program(config: &[u8]) -> Cow<'_, [u8]> {
    let begins = config.first().is_some_and(|first| TAGS.contains(first));
    match Packed::decode(config) {
        Ok(packed) if begins => Cow::Owned(packed.device_data),
        _ => Cow::Borrowed(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_program_is_unpacked_and_a_text_is_not() {
        let text = b"// a program\n".to_vec();
        let packed = |extras: Option<&[u8]>, reassign| {
            let config = Packed {
                reassign,
                extras: extras.map(<[u8]>::to_vec),
                device_data: text.clone(),
            };
            config.encode_to_vec()
        };
        // A map `kv` with one pair of texts.
        let extras = b"\x0a\x06\x0a\x01k\x12\x01v".as_slice();
        for extras in [None, Some(extras)] {
            for reassign in [false, true] {
                assert_eq!(*program(&packed(extras, reassign)), *text);
            }
        }
        for whole in [&text[..], b"", b"\x08", b"\x1a\x7fshort"] {
            assert_eq!(*program(whole), *whole);
        }
        assert_eq!(*program(b"\x08\x01"), *b"", "the program that runs");
    }
}
