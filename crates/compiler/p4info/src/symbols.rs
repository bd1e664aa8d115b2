//! Ids and aliases of objects, as the reference compiler gives them.

use crate::error::GenerateError;
use std::collections::{BTreeMap, BTreeSet};

/// Kind of an object. The values are the high byte of its id (P4Runtime specification, "ID
/// Allocation for P4Info Objects").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An action.
    Action = 0x01,
    /// A table.
    Table = 0x02,
    /// A parser's value set.
    ValueSet = 0x03,
    /// A header of packets to or from the controller.
    ControllerHeader = 0x04,
    /// An action profile or selector.
    ActionProfile = 0x11,
    /// An indirect counter.
    Counter = 0x12,
    /// A table's counter.
    DirectCounter = 0x13,
    /// An indirect meter.
    Meter = 0x14,
    /// A table's meter.
    DirectMeter = 0x15,
    /// A register array.
    Register = 0x16,
    /// A message to the controller.
    Digest = 0x17,
}

impl Kind {
    /// Noun for the kind in a message.
    #[must_use]
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Action => "action",
            Kind::Table => "table",
            Kind::ValueSet => "value set",
            Kind::ControllerHeader => "controller header",
            Kind::ActionProfile => "action profile",
            Kind::Counter => "counter",
            Kind::DirectCounter => "direct counter",
            Kind::Meter => "meter",
            Kind::DirectMeter => "direct meter",
            Kind::Register => "register",
            Kind::Digest => "digest",
        }
    }

    fn prefix(self) -> u32 {
        (self as u32) << 24
    }
}

/// Bits of an id below the kind.
const LOW: u32 = 0x00ff_ffff;

/// Objects with their ids: first all are added, then [`Symbols::assign`] gives ids to
/// those that have none of their own.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    objects: BTreeMap<(Kind, String), Option<u32>>,
    taken: BTreeSet<u32>,
    /// Number of names that end in these components.
    suffixes: BTreeMap<String, u32>,
}

impl Symbols {
    /// Adds an object, with its `@id` if it has one. Adding it again changes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the id belongs to another kind or object.
    pub fn add(&mut self, kind: Kind, name: &str, id: Option<u32>) -> Result<(), GenerateError> {
        let key = (kind, name.to_owned());
        if self.objects.contains_key(&key) {
            return Ok(());
        }
        let id = match id {
            None => None,
            Some(id) => {
                let high = id & !LOW;
                if high != 0 && high != kind.prefix() {
                    return Err(GenerateError::WrongPrefix {
                        name: name.to_owned(),
                        kind: kind.noun(),
                        id,
                        prefix: kind as u32,
                    });
                }
                let id = id | kind.prefix();
                if !self.taken.insert(id) {
                    return Err(GenerateError::DuplicateId {
                        name: name.to_owned(),
                        id,
                    });
                }
                Some(id)
            }
        };
        let known = self.objects.keys().any(|(_, other)| other == name);
        self.objects.insert(key, id);
        if !known {
            for suffix in suffixes(name) {
                *self.suffixes.entry(suffix.to_owned()).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Gives ids to the objects that have none: kinds in order of their numbers, names
    /// in order of their bytes; each gets the hash of its name, or the next free number.
    ///
    /// # Errors
    ///
    /// Returns an error if a kind has more objects than ids.
    pub fn assign(&mut self) -> Result<(), GenerateError> {
        for ((kind, name), id) in &mut self.objects {
            if id.is_some() {
                continue;
            }
            let first = one_at_a_time(name.as_bytes());
            let free = (0..=LOW)
                .map(|step| kind.prefix() | (first.wrapping_add(step) & LOW))
                .find(|candidate| !self.taken.contains(candidate));
            let Some(free) = free else {
                return Err(GenerateError::NoIdLeft { name: name.clone() });
            };
            self.taken.insert(free);
            *id = Some(free);
        }
        Ok(())
    }

    /// The id of an object; 0 if it was not added or has none yet.
    #[must_use]
    pub fn id(&self, kind: Kind, name: &str) -> u32 {
        let found = self.objects.get(&(kind, name.to_owned()));
        found.copied().flatten().unwrap_or(0)
    }

    /// The shortest suffix of the name's components that no other name has; the name if
    /// there is none.
    #[must_use]
    pub fn alias<'n>(&self, name: &'n str) -> &'n str {
        suffixes(name)
            .find(|suffix| self.suffixes.get(*suffix).is_none_or(|count| *count < 2))
            .unwrap_or(name)
    }
}

/// The name's suffixes that begin with a component, shortest first.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    let inner = name.rmatch_indices('.').map(|(dot, _)| &name[dot + 1..]);
    inner.chain(std::iter::once(name))
}

/// Bob Jenkins's one-at-a-time hash.
fn one_at_a_time(key: &[u8]) -> u32 {
    let mut hash = 0u32;
    for byte in key {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hashes_of_names() {
        let mut symbols = Symbols::default();
        symbols.add(Kind::Action, "NoAction", None).unwrap();
        symbols.add(Kind::Table, "IngressI.indirect", None).unwrap();
        symbols.assign().unwrap();
        // Values that the reference compiler gives.
        assert_eq!(symbols.id(Kind::Action, "NoAction"), 21_257_015);
        assert_eq!(symbols.id(Kind::Table, "IngressI.indirect"), 46_872_340);
        assert_eq!(symbols.id(Kind::Table, "other"), 0);
    }

    #[test]
    fn a_taken_hash_moves_on() {
        let mut symbols = Symbols::default();
        symbols
            .add(Kind::Action, "mine", Some(21_257_015 & LOW))
            .unwrap();
        symbols.add(Kind::Action, "NoAction", None).unwrap();
        symbols.assign().unwrap();
        assert_eq!(symbols.id(Kind::Action, "mine"), 21_257_015);
        assert_eq!(symbols.id(Kind::Action, "NoAction"), 21_257_016);
    }

    #[test]
    fn wrong_ids_are_refused() {
        let mut symbols = Symbols::default();
        symbols.add(Kind::Action, "a", Some(1)).unwrap();
        assert!(matches!(
            symbols.add(Kind::Action, "b", Some(0x0100_0001)),
            Err(GenerateError::DuplicateId { .. })
        ));
        assert!(matches!(
            symbols.add(Kind::Table, "t", Some(0x0100_0002)),
            Err(GenerateError::WrongPrefix { .. })
        ));
    }

    #[test]
    fn aliases_are_the_shortest_unique_suffixes() {
        let mut symbols = Symbols::default();
        for name in ["d.a.c", "e.b.c", "x.y", "c"] {
            symbols.add(Kind::Action, name, None).unwrap();
        }
        // The same name as another kind of object does not count again.
        symbols.add(Kind::Table, "x.y", None).unwrap();
        assert_eq!(symbols.alias("d.a.c"), "a.c");
        assert_eq!(symbols.alias("e.b.c"), "b.c");
        assert_eq!(symbols.alias("x.y"), "y");
        assert_eq!(symbols.alias("c"), "c");
    }
}
