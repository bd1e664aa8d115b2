//! Contents of the variables of a symbolic run.

use std::collections::BTreeMap;
use std::ops::Bound;

use stateplane_ir::{Place, Projection, VarId};

use super::value::Value;

/// A variable and a path of members; a path ends before a stack's element or a slice.
pub(super) type Address = (VarId, Vec<u32>);

/// The members on the way to a place, and whether they lead to all of it and nothing else.
pub(super) fn path_of(place: &Place) -> (Address, bool) {
    let mut path = Vec::new();
    for step in &place.path {
        match step {
            Projection::Field(field) => path.push(*field),
            _ => return ((place.var, path), false),
        }
    }
    ((place.var, path), true)
}

/// Values by place. What a branch changes can be taken back.
#[derive(Default)]
pub(super) struct Store {
    values: BTreeMap<Address, Value>,
    /// For each branch under way, innermost last, what stood at the places that it changed.
    logs: Vec<BTreeMap<Address, Option<Value>>>,
}

impl Store {
    /// The value at exactly this place.
    pub fn exact(&self, at: &Address) -> Option<&Value> {
        self.values.get(at)
    }

    /// The values of places within it.
    pub fn within<'s>(
        &'s self,
        at: &Address,
    ) -> impl Iterator<Item = (&'s Address, &'s Value)> + use<'s> {
        let (var, path) = at.clone();
        let range = (Bound::Excluded(at.clone()), Bound::Unbounded);
        self.values
            .range(range)
            .take_while(move |((other, longer), _)| *other == var && longer.starts_with(&path))
    }

    /// Sets one place and forgets what is known of its parts.
    pub fn set(&mut self, at: Address, value: Value) {
        let parts: Vec<Address> = self.within(&at).map(|(part, _)| part.clone()).collect();
        for part in parts {
            self.put(part, None);
        }
        self.put(at, Some(value));
    }

    fn put(&mut self, at: Address, value: Option<Value>) {
        let before = match value {
            Some(value) => self.values.insert(at.clone(), value),
            None => self.values.remove(&at),
        };
        if let Some(log) = self.logs.last_mut() {
            log.entry(at).or_insert(before);
        }
    }

    /// Begins a branch.
    pub fn branch(&mut self) {
        self.logs.push(BTreeMap::new());
    }

    /// Takes a branch back, and gives what it had changed: the values at these places, none where
    /// it forgot one.
    pub fn take_back(&mut self) -> BTreeMap<Address, Option<Value>> {
        let log = self.logs.pop().unwrap_or_default();
        let mut changed = BTreeMap::new();
        for (at, before) in log {
            let after = match before {
                Some(value) => self.values.insert(at.clone(), value),
                None => self.values.remove(&at),
            };
            changed.insert(at, after);
        }
        changed
    }

    /// Puts what a branch had changed in place.
    pub fn apply(&mut self, changed: BTreeMap<Address, Option<Value>>) {
        for (at, value) in changed {
            self.put(at, value);
        }
    }
}
