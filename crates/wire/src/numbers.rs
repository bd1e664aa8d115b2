//! Numbers of a field that have names: enumerations and flags.

/// An enumeration whose values stand in a field of 8 bits.
macro_rules! numbers {
    (
        $(#[$attribute:meta])*
        $name:ident {
            $($(#[$variant_attribute:meta])* $variant:ident = $value:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$variant_attribute])* $variant = $value,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The one of number `value`, if there is one.
            pub fn from_u8(value: u8) -> Option<$name> {
                $name::ALL.iter().copied().find(|one| *one as u8 == value)
            }
        }
    };
}

/// The bits of a field of flags, and the list of them by name.
macro_rules! flags {
    ($($(#[$attribute:meta])* $name:ident = $bit:expr,)*) => {
        $($(#[$attribute])* pub const $name: u8 = $bit;)*

        /// All of them: names and bits.
        pub const ALL: &[(&str, u8)] = &[$((stringify!($name), $name)),*];
    };
}

pub(crate) use {flags, numbers};

/// Name of a variant in capitals, as P4 and docs have it: `WriteRequest` is `WRITE_REQUEST`.
pub fn in_capitals(variant: &impl core::fmt::Debug) -> String {
    let mut capitals = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_ascii_uppercase() && !capitals.is_empty() {
            capitals.push('_');
        }
        capitals.push(letter.to_ascii_uppercase());
    }
    capitals
}
