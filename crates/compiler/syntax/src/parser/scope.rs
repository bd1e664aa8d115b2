//! Names that denote types at a place of the program.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// The scopes around a place, outermost first. The value says whether the name is a type's.
pub(super) struct Scopes(Vec<FxHashMap<Arc<str>, bool>>);

impl Scopes {
    pub(super) fn new() -> Self {
        Self(vec![FxHashMap::default()])
    }

    pub(super) fn push(&mut self) {
        self.0.push(FxHashMap::default());
    }

    pub(super) fn pop(&mut self) {
        if self.0.len() > 1 {
            self.0.pop();
        }
    }

    /// The number of scopes, to be given to [`Scopes::truncate`].
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Leaves scopes until only `len` are left.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len.max(1));
    }

    pub(super) fn declare_type(&mut self, name: &Arc<str>) {
        self.declare(name, true);
    }

    pub(super) fn declare_value(&mut self, name: &Arc<str>) {
        self.declare(name, false);
    }

    fn declare(&mut self, name: &Arc<str>, is_type: bool) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(Arc::clone(name), is_type);
        }
    }

    /// True if the name, looked up from the innermost scope, is a type's.
    pub(super) fn is_type(&self, name: &str) -> bool {
        self.0
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .copied()
            .unwrap_or(false)
    }

    /// True if the name, looked up in the outermost scope, is a type's.
    pub(super) fn is_global_type(&self, name: &str) -> bool {
        self.0[0].get(name).copied().unwrap_or(false)
    }
}
