//! Frames in hexadecimal, and patterns of them.

use crate::Cause;
use std::fmt;

/// Pattern of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Half bytes; `None` does not count.
    digits: Vec<Option<u8>>,
    /// True if the frame ends with the pattern.
    exact: bool,
}

impl Pattern {
    /// Reads a pattern: digits and `*`, with `$` at the end of an exact one.
    ///
    /// # Errors
    ///
    /// [`Cause::Digit`] or [`Cause::HalfByte`].
    pub fn parse(text: &str) -> Result<Pattern, Cause> {
        let text = text.trim_end();
        let (text, exact) = match text.strip_suffix('$') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let digits = digits(text, |character| character == '*')?;
        Ok(Pattern { digits, exact })
    }

    /// Marks under the digits of `frame` that do not fit, or `None` if all do.
    pub fn mismatch(&self, frame: &[u8]) -> Option<String> {
        let actual = half_bytes(frame);
        let mut marks = String::new();
        let mut differs = false;
        for at in 0..self.digits.len().max(actual.len()) {
            let fits = match (self.digits.get(at), actual.get(at)) {
                (Some(None), Some(_)) => true,
                (Some(Some(wanted)), Some(digit)) => wanted == digit,
                (None, Some(_)) => !self.exact,
                (_, None) => false,
            };
            differs |= !fits;
            marks.push(if fits { ' ' } else { '^' });
        }
        differs.then(|| marks.trim_end().to_owned())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for digit in &self.digits {
            match digit {
                Some(digit) => write!(f, "{digit:x}")?,
                None => f.write_str("*")?,
            }
        }
        f.write_str(if self.exact { "$" } else { "" })
    }
}

/// Bytes of a frame in hexadecimal.
pub(crate) fn parse_frame(text: &str) -> Result<Vec<u8>, Cause> {
    let digits = digits(text, |_| false)?;
    let digits: Vec<u8> = digits.into_iter().flatten().collect();
    Ok(digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect())
}

/// A frame in hexadecimal.
pub(crate) fn show(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn half_bytes(frame: &[u8]) -> Vec<u8> {
    frame
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .collect()
}

fn digits(text: &str, is_wild: impl Fn(char) -> bool) -> Result<Vec<Option<u8>>, Cause> {
    let mut digits = Vec::new();
    for character in text.chars().filter(|character| !character.is_whitespace()) {
        digits.push(match character.to_digit(16) {
            Some(digit) => Some(digit as u8),
            None if is_wild(character) => None,
            None => return Err(Cause::Digit(character)),
        });
    }
    if digits.len() % 2 == 1 {
        return Err(Cause::HalfByte(digits.len()));
    }
    Ok(digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mismatch(pattern: &str, frame: &[u8]) -> Option<String> {
        Pattern::parse(pattern).unwrap().mismatch(frame)
    }

    #[test]
    fn digits_count_and_stars_do_not() {
        assert_eq!(mismatch("01 2*", &[0x01, 0x2f]), None);
        assert_eq!(mismatch("01 2*", &[0x01, 0x3f]).unwrap(), "  ^");
        assert_eq!(mismatch("AB", &[0xab]), None);
    }

    #[test]
    fn only_an_exact_pattern_ends_the_frame() {
        assert_eq!(mismatch("01", &[1, 2]), None);
        assert_eq!(mismatch("01 $", &[1, 2]).unwrap(), "  ^^");
        assert_eq!(mismatch("01$", &[1]), None);
        assert_eq!(mismatch("$", &[]), None);
    }

    #[test]
    fn a_frame_that_is_too_short_differs_even_under_stars() {
        assert_eq!(mismatch("01 **", &[1]).unwrap(), "  ^^");
    }

    #[test]
    fn wrong_text_is_refused() {
        assert_eq!(Pattern::parse("0g"), Err(Cause::Digit('g')));
        assert_eq!(Pattern::parse("012"), Err(Cause::HalfByte(3)));
        assert_eq!(Pattern::parse("0$1"), Err(Cause::Digit('$')));
        assert_eq!(parse_frame("0*"), Err(Cause::Digit('*')));
    }

    proptest! {
        #[test]
        fn a_frame_fits_itself(frame in prop::collection::vec(any::<u8>(), 0..50)) {
            let text = show(&frame);
            prop_assert_eq!(parse_frame(&text).unwrap(), frame.clone());
            let pattern = Pattern::parse(&format!("{text}$")).unwrap();
            prop_assert_eq!(pattern.to_string(), format!("{text}$"));
            prop_assert_eq!(pattern.mismatch(&frame), None);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", frame in prop::collection::vec(any::<u8>(), 0..50)) {
            if let Ok(pattern) = Pattern::parse(&text) {
                let _ = pattern.mismatch(&frame);
            }
        }
    }
}
