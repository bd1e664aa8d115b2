//! Names and what they stand for.

use super::lexer::Token;
use super::{Parser, Result};
use std::collections::BTreeMap;

/// A name, and its position where the text gives one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) position: Option<u32>,
}

/// Positions of the entities of one kind by their names.
#[derive(Debug, Default)]
pub(super) struct Kind(BTreeMap<Name, u32>);

impl Kind {
    /// The position of a name.
    pub(super) fn get(&self, name: &Name) -> Option<u32> {
        self.0.get(name).copied()
    }
}

/// All names that a text declares.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    pub(super) structs: Kind,
    /// Members of each struct.
    pub(super) fields: Vec<Kind>,
    pub(super) enums: Kind,
    pub(super) vars: Kind,
    pub(super) parsers: Kind,
    pub(super) controls: Kind,
    pub(super) actions: Kind,
    pub(super) functions: Kind,
    pub(super) tables: Kind,
    pub(super) registers: Kind,
    pub(super) counters: Kind,
    pub(super) meters: Kind,
    pub(super) value_sets: Kind,
    pub(super) action_profiles: Kind,
}

impl Parser<'_> {
    /// The identifier or string that comes next.
    pub(super) fn segment(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(word) => {
                self.at += 1;
                Ok(word.clone())
            }
            Token::Text(text) => {
                self.at += 1;
                Ok(text.clone())
            }
            _ => self.expected("a name"),
        }
    }

    /// `#` and a position, if they come next.
    pub(super) fn position(&mut self) -> Result<Option<u32>> {
        if self.take("#") {
            self.small().map(Some)
        } else {
            Ok(None)
        }
    }

    /// A member's name.
    pub(super) fn member_name(&mut self) -> Result<Name> {
        let text = self.segment()?;
        let position = self.position()?;
        Ok(Name { text, position })
    }

    /// An identifier and those after it, joined by dots; or a string.
    pub(super) fn path(&mut self) -> Result<String> {
        let quoted = matches!(self.peek(), Token::Text(_));
        let mut text = self.segment()?;
        while !quoted
            && self.is(".")
            && let Token::Word(word) = self.look(1)
        {
            self.at += 2;
            text.push('.');
            text.push_str(word);
        }
        Ok(text)
    }

    /// A name that no member follows.
    pub(super) fn name(&mut self) -> Result<Name> {
        let text = self.path()?;
        let position = self.position()?;
        Ok(Name { text, position })
    }

    /// Enters the next name into a kind, and gives it.
    pub(super) fn declare(&mut self, kind: &mut Kind) -> Result<String> {
        let at = self.at;
        let name = self.name()?;
        self.enter(at, kind, name)
    }

    /// Enters a name that stands at a token.
    pub(super) fn enter(&self, at: usize, kind: &mut Kind, name: Name) -> Result<String> {
        let index = kind.0.len() as u32;
        if name.position.is_some_and(|position| position != index) {
            return self.error_at(at, format!("its position is {index}"));
        }
        let text = name.text.clone();
        if kind.0.insert(name, index).is_some() {
            return self.error_at(at, format!("`{text}` is there already; add `#{index}`"));
        }
        Ok(text)
    }

    /// The position of what the next name stands for.
    pub(super) fn resolve(&mut self, what: &str, kind: &Kind) -> Result<u32> {
        let at = self.at;
        let name = self.name()?;
        match kind.get(&name) {
            Some(index) => Ok(index),
            None => self.error_at(at, format!("there is no {what} `{}`", name.text)),
        }
    }
}
