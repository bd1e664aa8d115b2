//! Parser value sets: members that the control plane gives to a `select`.

use crate::error::StateError;
use crate::table::{KeyInfo, KeyMatch};

/// A member and its bounds in the words of all keys.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    keys: Vec<KeyMatch>,
    low: Box<[u128]>,
    high: Box<[u128]>,
}

/// A parser value set and its members, none at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet {
    name: String,
    keys: Vec<KeyInfo>,
    size: u64,
    members: Vec<Member>,
}

impl ValueSet {
    pub(crate) fn new(def: &stateplane_ir::ValueSet) -> ValueSet {
        let mut offset = 0;
        let keys = def.fields.iter().map(|field| {
            let info = KeyInfo::new(field.name.clone(), field.width, field.match_kind, offset);
            offset = info.end();
            info
        });
        ValueSet {
            name: def.name.clone(),
            keys: keys.collect(),
            size: def.size,
            members: Vec::new(),
        }
    }

    /// Full control-plane name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields of a member, in order; the only one of a scalar set has no name.
    pub fn keys(&self) -> &[KeyInfo] {
        &self.keys
    }

    /// Greatest number of members.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Members in the order of their insertion, one match for each key.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &[KeyMatch]> {
        self.members.iter().map(|member| member.keys.as_slice())
    }

    /// True if the words of all keys, in order, fit a member. Allocates nothing.
    pub fn contains(&self, words: &[u128]) -> bool {
        self.members.iter().any(|member| {
            self.keys
                .iter()
                .all(|key| key.matches(words, &member.low, &member.high))
        })
    }

    /// Adds a member.
    ///
    /// # Errors
    ///
    /// A [`StateError`] that says what is wrong with its keys;
    /// [`StateError::DuplicateMember`] or [`StateError::FullSet`].
    pub fn insert(&mut self, keys: &[KeyMatch]) -> Result<(), StateError> {
        let member = self.member(keys)?;
        if self.position(&member).is_some() {
            return Err(StateError::DuplicateMember {
                set: self.name.clone(),
                member: describe(&member.keys),
            });
        }
        if self.members.len() as u64 >= self.size {
            return Err(StateError::FullSet {
                set: self.name.clone(),
                size: self.size,
            });
        }
        self.members.push(member);
        Ok(())
    }

    /// Deletes a member.
    ///
    /// # Errors
    ///
    /// A [`StateError`] that says what is wrong with its keys, or
    /// [`StateError::NoMember`].
    pub fn delete(&mut self, keys: &[KeyMatch]) -> Result<(), StateError> {
        let member = self.member(keys)?;
        let Some(position) = self.position(&member) else {
            return Err(StateError::NoMember {
                set: self.name.clone(),
                member: describe(&member.keys),
            });
        };
        self.members.remove(position);
        Ok(())
    }

    /// Replaces all members.
    ///
    /// # Errors
    ///
    /// As [`ValueSet::insert`]; the members are then those from before.
    pub fn set(&mut self, members: &[Vec<KeyMatch>]) -> Result<(), StateError> {
        let before = std::mem::take(&mut self.members);
        for keys in members {
            if let Err(error) = self.insert(keys) {
                self.members = before;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Deletes all members.
    pub fn clear(&mut self) {
        self.members.clear();
    }

    fn position(&self, wanted: &Member) -> Option<usize> {
        self.members
            .iter()
            .position(|member| member.keys == wanted.keys)
    }

    fn member(&self, given: &[KeyMatch]) -> Result<Member, StateError> {
        let owner = format!("value set `{}`", self.name);
        if given.len() != self.keys.len() {
            return Err(StateError::KeyCount {
                owner,
                names: self.keys.iter().map(|key| key.name.clone()).collect(),
                expected: self.keys.len(),
                given: given.len(),
            });
        }
        let (mut keys, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        for (info, given) in self.keys.iter().zip(given) {
            let normal = info.normalise(&owner, given)?;
            info.bounds(&owner, &normal, &mut low, &mut high)?;
            keys.push(normal);
        }
        Ok(Member {
            keys,
            low: low.into_boxed_slice(),
            high: high.into_boxed_slice(),
        })
    }
}

fn describe(keys: &[KeyMatch]) -> String {
    let keys: Vec<String> = keys.iter().map(KeyMatch::to_string).collect();
    format!("({})", keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigUint;
    use stateplane_ir::{MatchKind, ValueSetField};

    fn set(fields: &[(&str, u32, MatchKind)], size: u64) -> ValueSet {
        ValueSet::new(&stateplane_ir::ValueSet {
            name: "p.set".to_owned(),
            fields: fields
                .iter()
                .map(|&(name, width, match_kind)| ValueSetField {
                    name: name.to_owned(),
                    width,
                    match_kind,
                })
                .collect(),
            size,
            annotations: Vec::new(),
        })
    }

    fn exact(value: u32) -> KeyMatch {
        KeyMatch::Exact(BigUint::from(value))
    }

    #[test]
    fn all_keys_fit_one_and_the_same_member() {
        let mut set = set(
            &[("a", 16, MatchKind::Exact), ("b", 130, MatchKind::Ternary)],
            4,
        );
        assert!(!set.contains(&[1, 0x12, 0]), "empty at first");
        let masked = |value: u32| KeyMatch::Mask {
            value: BigUint::from(value),
            mask: BigUint::from(0xf0u32),
        };
        set.insert(&[exact(1), masked(0x10)]).unwrap();
        set.insert(&[exact(2), masked(0x20)]).unwrap();
        assert!(set.contains(&[1, 0x12, 0]));
        assert!(set.contains(&[2, 0x2f, 1]));
        assert!(!set.contains(&[1, 0x22, 0]), "of two members");
        set.delete(&[exact(1), masked(0x10)]).unwrap();
        assert!(!set.contains(&[1, 0x12, 0]));
        assert_eq!(set.members().len(), 1);
        set.clear();
        assert!(!set.contains(&[2, 0x2f, 1]));
    }

    #[test]
    fn wrong_members_are_refused_and_change_nothing() {
        let mut set = set(&[("", 8, MatchKind::Exact)], 2);
        set.insert(&[exact(1)]).unwrap();
        let error = set.insert(&[exact(1)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "value set `p.set` has the member (0x1) already"
        );
        assert_eq!(set.insert(&[]).unwrap_err().code(), "TG005");
        let error = set.insert(&[KeyMatch::Any]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the key of value set `p.set` is exact; give one value, not any value"
        );
        assert_eq!(set.insert(&[exact(256)]).unwrap_err().code(), "TG007");
        assert_eq!(set.delete(&[exact(9)]).unwrap_err().code(), "TG025");
        let error = set.set(&[vec![exact(5)], vec![exact(5)]]).unwrap_err();
        assert_eq!(error.code(), "TG024");
        assert!(set.contains(&[1]) && !set.contains(&[5]));
        set.insert(&[exact(2)]).unwrap();
        assert_eq!(set.insert(&[exact(3)]).unwrap_err().code(), "TG026");
        set.set(&[vec![exact(7)]]).unwrap();
        assert!(set.contains(&[7]) && !set.contains(&[1]));
    }
}
