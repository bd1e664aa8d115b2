//! Rules of a protocol that a simulation turns off.

/// Defines the enumeration `Rule`: each of its variants is a rule of a protocol that can be turned
/// off, to show that a checker misses it. Each has a name on the command line and perhaps the macro
/// that turns it off when the switch's program is compiled.
///
/// ```
/// stateplane_world::rules! {
///     /// A rule of this example.
///     Rule;
///     /// No number is used twice.
///     Once = "once", Some("EXAMPLE_FAULT_ONCE");
///     /// The controller stores before it sends.
///     Stored = "stored", None;
/// }
/// assert_eq!(Rule::from_name("once"), Some(Rule::Once));
/// assert_eq!(Rule::Once.macro_name(), Some("EXAMPLE_FAULT_ONCE"));
/// assert_eq!((Rule::Stored.to_string(), Rule::ALL.len()), ("stored".to_owned(), 2));
/// ```
#[macro_export]
macro_rules! rules {
    (
        $(#[$rule_attribute:meta])* $rule:ident;
        $($(#[$attribute:meta])* $variant:ident = $name:literal, $macro:expr;)*
    ) => {
        $(#[$rule_attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $rule {
            $($(#[$attribute])* $variant,)*
        }

        impl $rule {
            /// All of them.
            pub const ALL: &[$rule] = &[$($rule::$variant),*];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $($rule::$variant => $name,)*
                }
            }

            /// The macro that turns it off when the switch's program is compiled; `None` if the
            /// switch does not keep the rule.
            pub const fn macro_name(self) -> ::core::option::Option<&'static str> {
                match self {
                    $($rule::$variant => $macro,)*
                }
            }

            /// The rule of that name.
            pub fn from_name(name: &str) -> ::core::option::Option<Self> {
                Self::ALL.iter().copied().find(|rule| rule.name() == name)
            }
        }

        impl ::core::fmt::Display for $rule {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
