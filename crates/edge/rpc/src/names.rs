//! Texts for numbers of types that are translated to strings (specification, "User-defined
//! types"): each text stands for one number, and each number for at most one text, as long as
//! something that was written uses the text.

use crate::refusal::Refusal;
use num_bigint::BigUint;
use num_traits::ToPrimitive;
use stateplane_runtime::Port;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tonic::Code;

/// Texts of one type.
const MAX_NAMES: usize = 65_536;

/// Decimal digits of the longest number that is one as a text.
const MAX_DIGITS: usize = 38;

/// The texts of a type; clones are the same ones.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<Book>>);

#[derive(Clone, Debug, Default)]
struct Book {
    numbers: BTreeMap<String, Known>,
    texts: BTreeMap<BigUint, String>,
    /// Texts that nothing uses.
    unused: BTreeSet<String>,
    /// The least number that may be free.
    next: u64,
    ports: BTreeMap<String, Port>,
}

#[derive(Clone, Debug)]
struct Known {
    number: BigUint,
    /// Times that it occurs in what was written.
    uses: u64,
}

impl Names {
    /// Texts of which those that are names of ports stand for these.
    pub(crate) fn new(ports: &BTreeMap<Port, String>) -> Names {
        let ports = ports.iter().map(|(port, name)| (name.clone(), *port));
        Names(Arc::new(Mutex::new(Book {
            next: 1,
            ports: ports.collect(),
            ..Book::default()
        })))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over all that `other` knows.
    pub(crate) fn learn(&self, other: &Names) {
        let known = other.book().clone();
        *self.book() = known;
    }

    /// The number of a text: what it has been so far, or else the number that it is in
    /// decimal digits, the port of that name, or the next one that has no text.
    ///
    /// # Errors
    ///
    /// `INVALID_ARGUMENT` if it is no text, or a number that another text stands for;
    /// `RESOURCE_EXHAUSTED` if there are too many.
    pub(crate) fn number(&self, bytes: &[u8]) -> Result<BigUint, Refusal> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Refusal::invalid("a value of a type translated to a string is UTF-8"))?;
        let mut book = self.book();
        if let Some(known) = book.numbers.get(text) {
            return Ok(known.number.clone());
        }
        if book.numbers.len() >= MAX_NAMES {
            return Err(Refusal::new(
                Code::ResourceExhausted,
                format!("{MAX_NAMES} texts stand for numbers already"),
            ));
        }
        let port = book.ports.get(text).copied().map(BigUint::from);
        let number = match decimal(text).or(port) {
            Some(number) => number,
            None => {
                while book.texts.contains_key(&BigUint::from(book.next)) {
                    book.next += 1;
                }
                BigUint::from(book.next)
            }
        };
        if let Some(other) = book.texts.get(&number) {
            return Err(Refusal::invalid(format!(
                "`{text}` is the number {number}, for which `{other}` stands"
            )));
        }
        let known = Known {
            number: number.clone(),
            uses: 0,
        };
        book.numbers.insert(text.to_owned(), known);
        book.texts.insert(number.clone(), text.to_owned());
        book.unused.insert(text.to_owned());
        Ok(number)
    }

    /// Counts one more use of a text.
    pub(crate) fn hold(&self, text: &str) {
        let mut book = self.book();
        if let Some(known) = book.numbers.get_mut(text) {
            known.uses += 1;
            book.unused.remove(text);
        }
    }

    /// Counts one use less of a text.
    pub(crate) fn release(&self, text: &str) {
        let mut book = self.book();
        if let Some(known) = book.numbers.get_mut(text) {
            known.uses = known.uses.saturating_sub(1);
            if known.uses == 0 {
                book.unused.insert(text.to_owned());
            }
        }
    }

    /// Counts no uses any more: what is still used is written anew.
    pub(crate) fn release_all(&self) {
        let mut book = self.book();
        book.numbers.values_mut().for_each(|known| known.uses = 0);
        book.unused = book.numbers.keys().cloned().collect();
    }

    /// Forgets the texts that nothing uses: their numbers are free again.
    pub(crate) fn forget_unused(&self) {
        let mut book = self.book();
        for text in std::mem::take(&mut book.unused) {
            if let Some(Known { number, .. }) = book.numbers.remove(&text) {
                book.texts.remove(&number);
                let free = number.to_u64().filter(|number| *number > 0);
                book.next = free.map_or(book.next, |free| book.next.min(free));
            }
        }
    }

    /// The text of a number; its decimal digits if it has none.
    pub(crate) fn text(&self, number: &BigUint) -> String {
        let book = self.book();
        book.texts
            .get(number)
            .cloned()
            .unwrap_or_else(|| number.to_string())
    }
}

/// The number that a text is; none if it is another text.
fn decimal(text: &str) -> Option<BigUint> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    if digits && canonical && !text.is_empty() && text.len() <= MAX_DIGITS {
        text.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_a_number_of_its_own() {
        let names = Names::new(&BTreeMap::from([(7, "eth0".to_owned())]));
        let number = |text: &str| names.number(text.as_bytes()).map_err(|it| it.code);
        assert_eq!(number("17"), Ok(17u32.into()));
        assert_eq!(number("eth0"), Ok(7u32.into()));
        assert_eq!(number("1"), Ok(1u32.into()));
        assert_eq!(number("red"), Ok(2u32.into()));
        assert_eq!(number("017"), Ok(3u32.into()), "no number, but a text");
        assert_eq!(number("red"), Ok(2u32.into()), "again");
        assert_eq!(number("2"), Err(Code::InvalidArgument), "that is red");
        assert!(names.number(&[0xff]).is_err());
        let text = |number: u32| names.text(&number.into());
        assert_eq!(
            [text(7), text(2), text(17), text(99)],
            ["eth0", "red", "17", "99"]
        );
        let later = Names::default();
        later.learn(&names);
        assert_eq!(later.number(b"red").unwrap(), 2u32.into());
        assert_eq!(later.number(b"blue").unwrap(), 4u32.into());
    }

    #[test]
    fn a_number_is_free_after_the_last_use_of_its_text() {
        let names = Names::new(&BTreeMap::new());
        let number = |text: &str| names.number(text.as_bytes()).unwrap();
        assert_eq!(number("red"), 1u32.into());
        names.hold("red");
        names.hold("red");
        assert_eq!(number("blue"), 2u32.into());
        names.forget_unused();
        assert_eq!(number("green"), 2u32.into(), "nothing used blue");
        names.hold("green");
        names.release("red");
        names.forget_unused();
        assert_eq!(names.text(&1u32.into()), "red", "it is used once more");
        names.release("red");
        names.forget_unused();
        assert_eq!(names.text(&1u32.into()), "1");
        assert_eq!(number("1"), 1u32.into());
        assert_eq!(number("next"), 3u32.into());
    }

    #[test]
    fn texts_are_bounded() {
        let names = Names::default();
        for number in 0..MAX_NAMES {
            names.number(number.to_string().as_bytes()).unwrap();
        }
        let code = names.number(b"more").unwrap_err().code;
        assert_eq!(code, Code::ResourceExhausted);
    }
}
