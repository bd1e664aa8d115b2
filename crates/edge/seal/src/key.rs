//! Keys, as people write them.

use core::fmt;

/// Number of a key between two peers; both call it the same.
pub type KeyId = u16;

/// A secret of 256 bits that two peers share.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Key::LENGTH]);

/// Why a text is not a key. It never tells the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Another number of digits.
    #[error(
        "a key has 64 hexadecimal digits, this one has {digits}: make one with `openssl rand -hex 32`"
    )]
    Length {
        /// Number of characters.
        digits: usize,
    },
    /// A character that is no hexadecimal digit.
    #[error(
        "character {at} of the key is not a hexadecimal digit: make one with `openssl rand -hex 32`"
    )]
    Digit {
        /// Position of the character, from 1.
        at: usize,
    },
    /// One byte repeated, which a random draw does not give.
    #[error("the key is one byte over and over: make one with `openssl rand -hex 32`")]
    Constant,
}

impl Key {
    /// Bytes of a key.
    pub const LENGTH: usize = 32;

    /// The key of these bytes.
    pub fn new(bytes: [u8; Key::LENGTH]) -> Key {
        Key(bytes)
    }

    /// Reads 64 hexadecimal digits; white space around them does not count.
    ///
    /// # Errors
    ///
    /// [`KeyError`].
    pub fn from_hex(text: &str) -> Result<Key, KeyError> {
        let text = text.trim();
        let digits = text.chars().count();
        if let Some(at) = text.chars().position(|digit| !digit.is_ascii_hexdigit()) {
            return Err(KeyError::Digit { at: at + 1 });
        }
        if digits != 2 * Key::LENGTH {
            return Err(KeyError::Length { digits });
        }
        let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
        let mut bytes = [0; Key::LENGTH];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return Err(KeyError::Constant);
        }
        Ok(Key(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; Key::LENGTH] {
        &self.0
    }
}

/// Keys are not for logs.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_a_key() {
        let text = format!(" 00ff{}\n", "1A".repeat(30));
        let key = Key::from_hex(&text).unwrap();
        assert_eq!(key.bytes()[..3], [0x00, 0xff, 0x1a]);
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_told() {
        let short = "5eed".repeat(3);
        let error = Key::from_hex(&short).unwrap_err();
        assert_eq!(error, KeyError::Length { digits: 12 });
        assert!(!error.to_string().contains("5eed"));
        let odd = format!("{}g{}", "5".repeat(9), "5".repeat(54));
        assert_eq!(Key::from_hex(&odd), Err(KeyError::Digit { at: 10 }));
        assert_eq!(
            Key::from_hex(&"ä".repeat(64)),
            Err(KeyError::Digit { at: 1 })
        );
        assert_eq!(Key::from_hex(&"00".repeat(32)), Err(KeyError::Constant));
        assert_eq!(Key::from_hex(""), Err(KeyError::Length { digits: 0 }));
    }

    #[test]
    fn a_key_does_not_show_itself() {
        assert_eq!(format!("{:?}", Key::new([7; 32])), "Key(…)");
    }
}
