//! Typed handles: indices into the tables of a [`Program`](crate::Program).

macro_rules! entity {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Position in the table of its kind.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

entity! {
    /// A struct, header or header union: [`Program::structs`](crate::Program::structs).
    StructId = "struct";
    /// A header stack type: [`Program::stacks`](crate::Program::stacks).
    StackId = "stack";
    /// An enum without underlying type: [`Program::enums`](crate::Program::enums).
    EnumId = "enum";
    /// A variable: [`Program::vars`](crate::Program::vars).
    VarId = "v";
    /// A parser instance: [`Program::parsers`](crate::Program::parsers).
    ParserId = "parser";
    /// A state within its parser: [`Parser::states`](crate::Parser::states).
    StateId = "state";
    /// A control instance: [`Program::controls`](crate::Program::controls).
    ControlId = "control";
    /// An action of one control instance: [`Program::actions`](crate::Program::actions).
    ActionId = "action";
    /// A function, specialised: [`Program::functions`](crate::Program::functions).
    FunctionId = "fn";
    /// A table of one control instance: [`Program::tables`](crate::Program::tables).
    TableId = "table";
    /// A register array: [`Program::registers`](crate::Program::registers).
    RegisterId = "register";
    /// An indirect or direct counter: [`Program::counters`](crate::Program::counters).
    CounterId = "counter";
    /// An indirect or direct meter: [`Program::meters`](crate::Program::meters).
    MeterId = "meter";
    /// A parser value set: [`Program::value_sets`](crate::Program::value_sets).
    ValueSetId = "valueset";
    /// An action profile: [`Program::action_profiles`](crate::Program::action_profiles).
    ActionProfileId = "profile";
}
