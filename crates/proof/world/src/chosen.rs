//! Part of a plan that is kept while a run is made smaller.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Numbers of packets or of faults, as `0-3,17` or `none`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Numbers(pub BTreeSet<usize>);

/// Why a text is no list of numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is neither a number nor a range such as 3-7: write 0-3,17, or none")]
pub struct NotNumbers(String);

/// Greatest number that is read.
const GREATEST: usize = 1 << 24;

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.0.iter().copied().peekable();
        if numbers.peek().is_none() {
            return f.write_str("none");
        }
        let mut comma = "";
        while let Some(first) = numbers.next() {
            let mut last = first;
            while let Some(next) = numbers.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last {
                _ if last == first => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for Numbers {
    type Err = NotNumbers;

    fn from_str(text: &str) -> Result<Self, NotNumbers> {
        let mut numbers = BTreeSet::new();
        if text == "none" {
            return Ok(Self(numbers));
        }
        for part in text.split(',') {
            let wrong = || NotNumbers(part.to_owned());
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.parse().map_err(|_| wrong())?;
            let last: usize = last.parse().map_err(|_| wrong())?;
            if first > last || last > GREATEST {
                return Err(wrong());
            }
            numbers.extend(first..=last);
        }
        Ok(Self(numbers))
    }
}

/// The packets and the faults of a plan that are to happen; without numbers all are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Chosen {
    /// Numbers of the hosts' packets that are kept, in the order in which they were drawn.
    pub packets: Option<Numbers>,
    /// Numbers of the faults that are kept.
    pub faults: Option<Numbers>,
}

impl Chosen {
    /// True if packet `number` is sent.
    pub fn has_packet(&self, number: usize) -> bool {
        has(self.packets.as_ref(), number)
    }

    /// True if fault `number` happens.
    pub fn has_fault(&self, number: usize) -> bool {
        has(self.faults.as_ref(), number)
    }

    /// True if nothing is left out.
    pub fn is_all(&self) -> bool {
        self.packets.is_none() && self.faults.is_none()
    }
}

fn has(numbers: Option<&Numbers>, number: usize) -> bool {
    numbers.is_none_or(|numbers| numbers.0.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for text in ["none", "7", "0-3,17", "1,3,5-6"] {
            let numbers: Numbers = text.parse().unwrap();
            assert_eq!(numbers.to_string(), text);
        }
        let merged: Numbers = "3,1-2,2".parse().unwrap();
        assert_eq!(merged.to_string(), "1-3");
    }

    #[test]
    fn what_is_no_list_of_numbers_is_refused() {
        for text in ["", "a", "3-", "5-3", "1,,2", "-1", "0-99999999999"] {
            assert!(text.parse::<Numbers>().is_err(), "{text}");
        }
    }
}
