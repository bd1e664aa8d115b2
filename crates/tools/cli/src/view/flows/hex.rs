//! Keys and states in hexadecimal digits.

pub use stateplane_host::store::view::hexadecimal as text;
use stateplane_host::store::view::{parse_bytes, parse_key};

/// Digits of a key.
const KEY: usize = 32;

/// Longest state in digits: lengths have 16 bits on the wire.
const LONGEST: usize = 2 * 65_535;

/// Bytes of a key or a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// Reads a key.
pub fn key(text: &str) -> Result<Bytes, String> {
    let key = parse_key(text).map(|key| Bytes(key.0.to_vec()));
    key.ok_or_else(|| format!("a key has {KEY} hexadecimal digits"))
}

/// Reads a state.
pub fn state(text: &str) -> Result<Bytes, String> {
    let bytes = parse_bytes(text).filter(|_| (2..=LONGEST).contains(&text.len()));
    let bytes = bytes.ok_or("a state has two hexadecimal digits for each byte")?;
    Ok(Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_states_are_read_as_they_are_printed() {
        let digits = "0a".repeat(16);
        assert_eq!(key(&digits), Ok(Bytes(vec![10; 16])));
        for wrong in [
            "",
            "0a",
            &"0g".repeat(16),
            &"0a".repeat(17),
            &"é".repeat(16),
        ] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
        let read = state("00fF7e").expect("a state");
        assert_eq!(text(&read.0), "00ff7e");
        for wrong in ["", "0", "0x01", "+1", &"00".repeat(65_536)] {
            assert!(state(wrong).is_err(), "{wrong}");
        }
    }
}
