//! Keys and states in hexadecimal digits.

use std::fmt::Write as _;

/// Digits of a key.
const KEY: usize = 32;

/// Longest state in digits: lengths have 16 bits on the wire.
const LONGEST: usize = 2 * 65_535;

/// Bytes of a key or a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

/// The bytes of an even number of digits.
fn bytes(text: &str) -> Option<Bytes> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |of: u8| char::from(of).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    let bytes = pairs.iter().map(byte).collect::<Option<_>>()?;
    rest.is_empty().then_some(Bytes(bytes))
}

/// Reads a key.
pub fn key(text: &str) -> Result<Bytes, String> {
    let key = bytes(text).filter(|_| text.len() == KEY);
    key.ok_or_else(|| format!("a key has {KEY} hexadecimal digits"))
}

/// Reads a state.
pub fn state(text: &str) -> Result<Bytes, String> {
    let state = bytes(text).filter(|_| (2..=LONGEST).contains(&text.len()));
    state.ok_or_else(|| "a state has two hexadecimal digits for each byte".to_owned())
}

/// The digits of bytes.
pub fn text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // A string takes whatever is written to it.
        let _ = write!(text, "{byte:02x}");
        text
    })
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
