//! Parts of the mutants that are run apart.

use std::str::FromStr;

/// One of some parts of about equal size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Number of the part, from 1.
    number: usize,
    /// Of how many.
    of: usize,
}

impl Part {
    /// Elements of `all` that are in the part.
    pub fn of<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        let end = |parts| all.len() * parts / self.of;
        &all[end(self.number - 1)..end(self.number)]
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((number, of)) if 0 < number && number <= of => Ok(Part { number, of }),
            _ => Err("write it as 1/4, the first of four parts".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_together_are_all_and_none_twice() {
        let all: Vec<u32> = (0..11).collect();
        let parts: Vec<Part> = ["1/4", "2/4", "3/4", "4/4"]
            .map(|p| p.parse().unwrap())
            .into();
        let together: Vec<u32> = parts
            .iter()
            .flat_map(|part| part.of(&all))
            .copied()
            .collect();
        assert_eq!(together, all);
        assert!(parts.iter().all(|part| part.of(&all).len() >= 2));
    }

    #[test]
    fn a_part_has_a_number_within_their_count() {
        for text in ["0/4", "5/4", "1", "1/0", "a/b", "1/2/3"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
