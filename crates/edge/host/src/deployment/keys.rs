//! Keys of a section, as its type declares them, and what the TOML reader says of an unknown one.

use core::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Names of a section's keys.
pub(super) type Keys = &'static [&'static str];

/// A section of the file.
pub(super) struct Section {
    pub name: &'static str,
    /// Gives the keys that it has.
    pub keys: fn() -> Keys,
}

impl Section {
    /// The section called `name`, which `T` reads.
    pub(super) const fn of<T: for<'de> Deserialize<'de>>(name: &'static str) -> Section {
        Section {
            name,
            keys: of::<T>,
        }
    }
}

/// The keys that `T` reads: its fields, by their names in TOML. None if it is no struct.
pub(super) fn of<T: for<'de> Deserialize<'de>>() -> Keys {
    let mut keys: Keys = &[];
    // It always ends with an error, since there are no values.
    let _ = T::deserialize(Asked(&mut keys));
    keys
}

/// Notes which fields a type asks for, and gives it none.
struct Asked<'k>(&'k mut Keys);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(NoValue)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: Keys,
        _: V,
    ) -> Result<V::Value, NoValue> {
        *self.0 = fields;
        Err(NoValue)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// There is no value to read.
#[derive(Debug)]
struct NoValue;

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no value")
    }
}

impl core::error::Error for NoValue {}

impl de::Error for NoValue {
    fn custom<T: fmt::Display>(_: T) -> NoValue {
        NoValue
    }
}

/// A key that a table does not have, and those that it has.
pub(super) struct Unknown<'m> {
    pub key: &'m str,
    pub known: Vec<&'m str>,
}

impl<'m> Unknown<'m> {
    /// The unknown field that `message` names, if it is serde's message of one
    /// (`serde::de::Error::unknown_field`).
    pub(super) fn of_message(message: &'m str) -> Option<Unknown<'m>> {
        let quoted = message.strip_prefix("unknown field ")?;
        let mut names = quoted.split('`').skip(1).step_by(2);
        Some(Unknown {
            key: names.next()?,
            known: names.collect(),
        })
    }
}
