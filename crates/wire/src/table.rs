//! The table of a header's fields, from which all that is said of a field comes.
//!
//! A header's module calls [`header!`] once for each run of fields that always stand in
//! this order. The table has one line a field, in the order of the wire:
//!
//! ```text
//! header! {
//!     layout pub LAYOUT = "barrier", then "names of the members, 4 bytes each";
//!     length pub HEADER_LENGTH = 12;
//!     /// Meaning of a barrier.
//!     #[derive(Debug, Clone, Copy, PartialEq, Eq)]
//!     pub struct Repr<'a> {
//!         /// Names of the members, 4 bytes each.
//!         members: &'a [u8],
//!     }
//!     offsets field;
//!     view Packet;
//!     may_not_fit Barrier;
//!     fields {
//!         VERSION   4 (version: u8)       => "version of the format, 2";
//!         PRIORITY  4  priority: u8       => "0 goes first";
//!         COUNT     8 (count: usize)      => "number of members";
//!         SHARD    16  shard: u16         => "shard that the members keep";
//!         DEADLINE 64  deadline: u64      => "µs after which the barrier falls";
//!     }
//! }
//! ```
//!
//! A line is: name of the field (in capitals; P4 and docs have it in small letters), width
//! in bits, name and type in Rust, meaning. A field in brackets follows from others (a
//! version, a length, a checksum, a number of what the rest says): code computes it. The
//! type is any [`Value`]; an integer may be wider than its field.
//!
//! The result, for the example:
//!
//! * `LAYOUT`, a [`Layout`](crate::layout::Layout): names, places, widths and meanings, for
//!   docs and tests. It is a line of [`LAYOUTS`](crate::LAYOUTS) too, so that
//!   `tests/docs.rs` writes its table, and `crates/engine/stf/tests/wire_layout.rs` compares it
//!   with the P4 header of the same fields.
//! * `HEADER_LENGTH`, in bytes. The table does not compile if its widths add up to another.
//! * `field::SHARD` and so on: offsets in bytes (line `offsets`).
//! * `Packet::shard()` and so on for all fields (line `view`). The module declares
//!   `struct Packet<'a>` with a member `header: &'a [u8; HEADER_LENGTH]`, which
//!   [`split`](crate::error::split) gives or refuses: so no accessor can fail.
//! * `Repr` with a member for each field that is not in brackets, and those of the
//!   declaration, which describe what follows the header.
//! * `Repr::from_header(&header, members)` and `repr.header_bytes(version, count)`, private to
//!   the module: the fields, and what cannot be had from them, in the order of the table.
//!   With a line `may_not_fit`, which names the header in errors, `header_bytes` gives an error
//!   for a value that its field has no room for. Without it, each type has the width of its
//!   field, or the table does not compile.
//!
//! By hand remain: `Packet::new_checked`, which refuses what the module does not speak, and
//! parsing and emitting of what follows the header.

/// Declares a header; the module's page has an example.
macro_rules! header {
    (
        layout $vis:vis $layout:ident = $title:literal $(, then $then:literal)?;
        length $length_vis:vis $length:ident = $bytes:literal;
        $(#[$attribute:meta])*
        $repr_vis:vis struct $repr:ident $(<$life:lifetime>)? { $($parts:tt)* }
        $(offsets $offsets:ident;)?
        $(view $view:ident;)?
        $(may_not_fit $header:ident;)?
        fields $rows:tt
    ) => {
        #[doc = concat!("Length in bytes of the fixed part: ", $title, ".")]
        $length_vis const $length: usize = $bytes;
        $crate::table::header!(@layout $vis $layout $length $title [$($then)?] $rows);
        $($crate::table::header!(@offsets $offsets $layout $rows);)?
        $($crate::table::header!(@view $view $layout $rows);)?
        $crate::table::header!(
            @repr [$(#[$attribute])*] $repr_vis $repr [$(<$life>)?] $layout $length { $($parts)* } $rows
        );
        $crate::table::header!(@emit [$($header)?] $repr [$(<$life>)?] $layout $length $rows);
    };

    (@layout $vis:vis $layout:ident $length:ident $title:literal [$($then:literal)?] {
        $($at:ident $bits:literal $(($_made:ident: $made_type:ty))?
            $($_name:ident: $type:ty)? => $meaning:literal;)*
    }) => {
        #[doc = concat!("Fields: ", $title, ".")]
        $vis const $layout: $crate::layout::Layout = $crate::layout::Layout::new(
            $title,
            concat!($($then)?),
            $length,
            &const {
                $crate::layout::in_sequence([$($crate::layout::Field {
                    name: stringify!($at),
                    at: 0,
                    bits: $bits,
                    meaning: $meaning,
                }),*])
            },
        );

        const _: () = {
            $($crate::value::assert_place::<$($made_type)? $($type)?>(
                $layout.bit(stringify!($at)),
                $bits,
            );)*
        };
    };

    (@offsets $offsets:ident $layout:ident {
        $($at:ident $bits:literal $(($_made:ident: $_made_type:ty))?
            $($_name:ident: $_type:ty)? => $meaning:literal;)*
    }) => {
        /// Offset of each field, in bytes.
        pub mod $offsets {
            $(
                #[doc = concat!(stringify!($bits), " bits: ", $meaning, ".")]
                pub const $at: usize = super::$layout.bit(stringify!($at)) / 8;
            )*
        }
    };

    (@view $view:ident $layout:ident {
        $($at:ident $bits:literal $(($made:ident: $made_type:ty))?
            $($name:ident: $type:ty)? => $meaning:literal;)*
    }) => {
        impl $view<'_> {
            $(
                #[doc = concat!("Field `", stringify!($at), "`: ", $meaning, ".")]
                #[inline]
                pub fn $($made)? $($name)? (&self) -> $($made_type)? $($type)? {
                    const AT: usize = $layout.bit(stringify!($at));
                    $crate::value::Value::read(self.header, AT, $bits)
                }
            )*
        }
    };

    (@repr [$(#[$attribute:meta])*] $vis:vis $repr:ident [$($life:tt)*] $layout:ident
        $length:ident
        {$($(#[$part_attribute:meta])* $part:ident: $part_type:ty,)*}
        {
            $($at:ident $bits:literal $(($_made:ident: $_made_type:ty))?
                $($name:ident: $type:ty)? => $meaning:literal;)*
        }
    ) => {
        $(#[$attribute])*
        $vis struct $repr $($life)* {
            $($(
                #[doc = concat!("Field `", stringify!($at), "`: ", $meaning, ".")]
                pub $name: $type,
            )?)*
            $($(#[$part_attribute])* pub $part: $part_type,)*
        }

        impl $($life)* $repr $($life)* {
            /// Takes the fields from the header, and the rest from the arguments.
            #[inline]
            #[allow(clippy::too_many_arguments)] // One for each part behind the header.
            fn from_header(header: &[u8; $length] $(, $part: $part_type)*) -> Self {
                $repr {
                    $($(
                        $name: {
                            const AT: usize = $layout.bit(stringify!($at));
                            $crate::value::Value::read(header, AT, $bits)
                        },
                    )?)*
                    $($part,)*
                }
            }
        }
    };

    (@emit [] $repr:ident [$($life:tt)*] $layout:ident $length:ident {
        $($at:ident $bits:literal $(($made:ident: $made_type:ty))?
            $($name:ident: $type:ty)? => $meaning:literal;)*
    }) => {
        $($(const _: () = assert!(<$type as $crate::value::Value>::BITS == $bits);)?)*
        $($(const _: () = assert!(<$made_type as $crate::value::Value>::BITS == $bits);)?)*

        impl $($life)* $repr $($life)* {
            /// Gives the header's bytes, of the fields and the arguments.
            fn header_bytes(&self $($(, $made: $made_type)?)*) -> [u8; $length] {
                let mut header = [0; $length];
                $({
                    const AT: usize = $layout.bit(stringify!($at));
                    let value = $($made)? $(self.$name)?;
                    $crate::value::Value::write(value, &mut header, AT, $bits);
                })*
                header
            }
        }
    };

    (@emit [$header:ident] $repr:ident [$($life:tt)*] $layout:ident $length:ident {
        $($at:ident $bits:literal $(($made:ident: $made_type:ty))?
            $($name:ident: $type:ty)? => $meaning:literal;)*
    }) => {
        impl $($life)* $repr $($life)* {
            /// Gives the header's bytes, of the fields and the arguments; refuses a value
            /// that does not fit its field.
            #[allow(clippy::too_many_arguments)] // One for each field in brackets.
            fn header_bytes(
                &self $($(, $made: $made_type)?)*
            ) -> Result<[u8; $length], $crate::Error> {
                let mut header = [0; $length];
                $({
                    const AT: usize = $layout.bit(stringify!($at));
                    let value = $($made)? $(self.$name)?;
                    if !$crate::value::Value::fits(value, $bits) {
                        return Err($crate::Error::Unrepresentable {
                            header: $crate::Header::$header,
                            field: stringify!($($made)? $($name)?),
                        });
                    }
                    $crate::value::Value::write(value, &mut header, AT, $bits);
                })*
                Ok(header)
            }
        }
    };
}

pub(crate) use header;

#[cfg(test)]
mod tests;
