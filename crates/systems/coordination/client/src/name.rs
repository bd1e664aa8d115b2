//! Names of records, and their keys.

use sha2::{Digest, Sha256};
use stateplane_wire::coordination::{Key, MAX_VALUE};

use stateplane_wire::replication::KEY_LENGTH as KEY_BYTES;

use crate::{Place, Record, group_of};

/// Longest name, in bytes.
pub const MAX_NAME: usize = 256;

/// First byte of the key of a name that is longer than a key.
const HASHED: u8 = 0xff;

/// First byte of the keys that recipes make: sessions, permits, redo records.
const OF_RECIPES: u8 = 0xfe;

/// A name that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has no byte.
    #[error("a name has at least one byte")]
    Empty,
    /// It has more than [`MAX_NAME`] bytes.
    #[error("a name of {0} bytes is longer than 256")]
    TooLong(usize),
    /// It ends with a zero byte, so that its key would be that of a shorter name.
    #[error("a name does not end with a zero byte")]
    EndsWithZero,
    /// It begins with 0xFE or 0xFF, as the service's own keys do; no UTF-8 text does.
    #[error("a name does not begin with the byte {0:#04x}")]
    Reserved(u8),
}

/// The name of a record.
///
/// A name of up to 16 bytes is the key, with zeros behind it. That is unambiguous, as no name ends
/// with a zero byte, is empty, or begins with 0xFE or 0xFF. The key of a longer name is 0xFF and
/// the first 15 bytes of its SHA-256; the name stands before the value, behind one byte that is
/// its length less one, and the agent compares it
/// ([`Reason::Clash`](crate::Reason::Clash)). Name and value have room in a value together. A
/// lock has no room for a name: two long names whose 120 bits of hash are equal are one lock.
///
/// Records of one group are put there by a tag: the part of a name between its first `{` and the
/// next `}`, if it is not empty, takes the name's place in the choice of the group.
///
/// ```
/// use stateplane_coordination::Name;
///
/// let short = Name::new(b"lamp")?;
/// assert_eq!(short.key().0, *b"lamp\0\0\0\0\0\0\0\0\0\0\0\0");
/// let long = Name::new(b"buildings/7/floors/3/lamp")?;
/// assert_eq!(long.key().0[0], 0xff);
/// let (lock, value) = (Name::new(b"{lamp}.lock")?, Name::new(b"{lamp}.state")?);
/// assert_eq!(lock.group(64), value.group(64));
/// # Ok::<(), stateplane_coordination::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Vec<u8>);

impl Name {
    /// The name of these bytes.
    ///
    /// # Errors
    ///
    /// [`NameError`].
    pub fn new(name: &[u8]) -> Result<Name, NameError> {
        match (name.first(), name.last()) {
            (None, _) => Err(NameError::Empty),
            _ if name.len() > MAX_NAME => Err(NameError::TooLong(name.len())),
            (Some(first), _) if *first >= OF_RECIPES => Err(NameError::Reserved(*first)),
            (_, Some(0)) => Err(NameError::EndsWithZero),
            _ => Ok(Name(name.to_vec())),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key.
    pub fn key(&self) -> Key {
        key_of(HASHED, &self.0)
    }

    /// The group, of `groups`.
    pub fn group(&self, groups: u16) -> u16 {
        group_of(&key_of(HASHED, self.tag().unwrap_or(&self.0)), groups)
    }

    fn tag(&self) -> Option<&[u8]> {
        let from = self.0.iter().position(|byte| *byte == b'{')? + 1;
        let length = self.0[from..].iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &self.0[from..from + length])
    }

    /// The place of a value of this name, in a service of `groups` groups.
    pub fn place(&self, groups: u16) -> Place {
        Place {
            key: self.key(),
            group: Some(self.group(groups)),
            prefix: self.prefix(),
        }
    }

    /// The place of a lock of this name, in a service of `groups` groups.
    pub fn lock_place(&self, groups: u16) -> Place {
        Place::within(self.group(groups), self.key())
    }

    /// Most bytes that a value of this name has.
    pub fn room(&self) -> usize {
        MAX_VALUE.saturating_sub(self.prefix().len())
    }

    fn prefix(&self) -> Vec<u8> {
        if self.0.len() <= KEY_BYTES {
            return Vec::new();
        }
        let mut prefix = vec![(self.0.len() - 1) as u8];
        prefix.extend_from_slice(&self.0);
        prefix
    }

    /// The name whose key this is; `None` if it is longer than a key, or none.
    pub fn of_key(key: Key) -> Option<Name> {
        let length = key.0.iter().rposition(|byte| *byte != 0)? + 1;
        Name::new(&key.0[..length]).ok()
    }

    /// The name and the value of a record as a scan shows it; `None` if the record is one that a
    /// recipe made, is a lock of a name longer than 16 bytes, or is damaged.
    pub fn of_record(record: &Record) -> Option<(Name, &[u8])> {
        let key = &record.key.0;
        if key[0] != HASHED {
            return Some((Name::of_key(record.key)?, &record.value));
        }
        let (length, rest) = record.value.split_first()?;
        let (name, value) = rest.split_at_checked(usize::from(*length) + 1)?;
        let name = Name::new(name).ok()?;
        (name.key() == record.key && record.lock().is_none()).then_some((name, value))
    }
}

/// `bytes` as a key, or, if they are longer, `first` and the first bytes of their SHA-256.
fn key_of(first: u8, bytes: &[u8]) -> Key {
    let mut key = [0; KEY_BYTES];
    if bytes.len() <= KEY_BYTES {
        key[..bytes.len()].copy_from_slice(bytes);
    } else {
        key[0] = first;
        key[1..].copy_from_slice(&Sha256::digest(bytes)[..KEY_BYTES - 1]);
    }
    Key(key)
}

/// The key of a record that a recipe keeps for what `parts` name: 0xFE, the recipe's letter, and
/// the first bytes of SHA-256 over the parts, each behind its length.
pub(crate) fn key_of_recipe(recipe: u8, parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut key = [0; KEY_BYTES];
    (key[0], key[1]) = (OF_RECIPES, recipe);
    key[2..].copy_from_slice(&hash.finalize()[..KEY_BYTES - 2]);
    Key(key)
}
