//! Reads the parts of a message, one behind the other.

use crate::error::split;
use crate::{Error, Header};

/// The bytes of a message of one kind that are left.
pub(crate) struct Reader<'a> {
    name: Header,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(name: Header, bytes: &'a [u8]) -> Reader<'a> {
        Reader { name, rest: bytes }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Error> {
        let (taken, rest) = split(self.name, self.rest)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes `length` bytes of padding, at least `least`.
    pub(crate) fn room(&mut self, length: u16, least: u16) -> Result<(), Error> {
        if length < least {
            return Err(Error::Unknown {
                header: self.name,
                field: "room",
                found: length.into(),
            });
        }
        let needed = length.into();
        let Some((padding, rest)) = self.rest.split_at_checked(needed) else {
            return Err(Error::Truncated {
                header: self.name,
                needed,
                found: self.rest.len(),
            });
        };
        self.rest = rest;
        zeros(self.name, padding)
    }

    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::TrailingBytes {
            header: self.name,
            extra: self.rest.len(),
        })
    }
}

/// Refuses padding of a message that is not 0.
pub(crate) fn zeros(name: Header, padding: &[u8]) -> Result<(), Error> {
    match padding.iter().find(|byte| **byte != 0) {
        Some(found) => Err(Error::Unknown {
            header: name,
            field: "padding",
            found: (*found).into(),
        }),
        None => Ok(()),
    }
}
