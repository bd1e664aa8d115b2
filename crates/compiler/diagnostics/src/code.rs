//! The codes by which a diagnostic is known and looked up.

use std::fmt;

/// A stable identity of one kind of diagnostic, such as `E0203`.
///
/// A crate that reports declares its codes with [`codes!`](crate::codes), so that each is a
/// constant with a meaning and all of them can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code {
    id: &'static str,
    meaning: &'static str,
}

impl Code {
    /// A code with its one-line meaning. `id` is a letter, `E` or `W`, and four digits.
    #[must_use]
    pub const fn new(id: &'static str, meaning: &'static str) -> Self {
        Self { id, meaning }
    }

    /// The code as shown to users, such as `E0203`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        self.id
    }

    /// One line that says what every diagnostic of this code has in common.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        self.meaning
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// Declares the codes of one crate as documented constants, and `ALL`, the list of them in
/// order of declaration.
///
/// ```
/// stateplane_diagnostics::codes! {
///     UNKNOWN_NAME = "E0301": "a name is used that nothing in scope declares";
/// }
/// assert_eq!(UNKNOWN_NAME.id(), "E0301");
/// assert_eq!(ALL.len(), 1);
/// ```
#[macro_export]
macro_rules! codes {
    ($($name:ident = $id:literal : $meaning:literal;)+) => {
        $(
            #[doc = concat!("`", $id, "`: ", $meaning, ".")]
            pub const $name: $crate::Code = $crate::Code::new($id, $meaning);
        )+
        /// Every code declared here, in order of declaration.
        pub const ALL: &[$crate::Code] = &[$($name),+];
    };
}

/// The first code identity that occurs twice in the given registries, if any.
#[must_use]
pub fn duplicate_code(registries: &[&[Code]]) -> Option<&'static str> {
    let mut ids: Vec<_> = registries
        .iter()
        .flat_map(|r| r.iter())
        .map(|c| c.id)
        .collect();
    ids.sort_unstable();
    ids.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_found_across_registries() {
        const A: &[Code] = &[Code::new("E0001", "a"), Code::new("E0002", "b")];
        const B: &[Code] = &[Code::new("E0002", "c")];
        assert_eq!(duplicate_code(&[A]), None);
        assert_eq!(duplicate_code(&[A, B]), Some("E0002"));
    }
}
