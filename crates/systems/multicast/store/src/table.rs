//! The encoding: one table of variants and their fields, from which the enum, its bytes and
//! the list of fields come.
//!
//! Numbers are big-endian. Bytes, lists and what may be missing say first how many they are. Each
//! value has one encoding, and each encoding is of one value.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_multicast::FinalTime;

/// Why bytes are no message of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Fewer bytes than the fields need.
    #[error("the message ends within {0}")]
    Truncated(&'static str),
    /// Bytes behind the last field.
    #[error("{0} bytes follow the last field")]
    Trailing(usize),
    /// A version that is not spoken.
    #[error("version {0} is not spoken here")]
    Version(u8),
    /// A number without a meaning.
    #[error("{what} {found} has no meaning")]
    Unknown {
        /// The thing that it is a number of.
        what: &'static str,
        /// The number.
        found: u8,
    },
    /// Too many or too few bytes or entries.
    #[error("{what} of length {found}")]
    Length {
        /// The thing that has the length.
        what: &'static str,
        /// The length.
        found: usize,
    },
}

/// A variant of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// The number that announces it.
    pub number: u8,
    /// Names and types of its fields, in their order.
    pub fields: &'static [(&'static str, &'static str)],
}

/// Something that has an encoding.
pub(crate) trait Field: Sized {
    /// Its name in tables and errors.
    const TYPE: &'static str;

    fn put(&self, out: &mut Vec<u8>);

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed>;
}

pub(crate) fn take_bytes<'a>(
    what: &'static str,
    bytes: &mut &'a [u8],
    count: usize,
) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = bytes
        .split_at_checked(count)
        .ok_or(Malformed::Truncated(what))?;
    *bytes = rest;
    Ok(taken)
}

macro_rules! numbers {
    ($($type:ident),*) => {
        $(
            impl Field for $type {
                const TYPE: &'static str = stringify!($type);

                fn put(&self, out: &mut Vec<u8>) {
                    out.extend(self.to_be_bytes());
                }

                fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                    let short = Malformed::Truncated(Self::TYPE);
                    let (taken, rest) = bytes.split_first_chunk().ok_or(short)?;
                    *bytes = rest;
                    Ok($type::from_be_bytes(*taken))
                }
            }
        )*
    };
}

numbers!(u8, u16, u32, u64);

impl Field for bool {
    const TYPE: &'static str = "bool";

    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        match u8::take(bytes)? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(Malformed::Unknown {
                what: Self::TYPE,
                found,
            }),
        }
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: &'static str = T::TYPE;

    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(of) = self {
            of.put(out);
        }
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        bool::take(bytes)?.then(|| T::take(bytes)).transpose()
    }
}

impl Field for FinalTime {
    const TYPE: &'static str = "place";

    fn put(&self, out: &mut Vec<u8>) {
        self.time.put(out);
        self.group.put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let time = u64::take(bytes)?;
        let group = u8::take(bytes)?;
        Ok(FinalTime { time, group })
    }
}

impl Field for SocketAddrV4 {
    const TYPE: &'static str = "address";

    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.ip().octets());
        self.port().put(out);
    }

    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let address = Ipv4Addr::from_bits(u32::take(bytes)?);
        Ok(SocketAddrV4::new(address, u16::take(bytes)?))
    }
}

macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident as $what:literal {
            $(
                $(#[$variant_doc:meta])*
                $variant:ident = $number:literal {
                    $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
                }
            )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant { $($(#[$field_doc])* $field: $type,)* },)*
        }

        impl $name {
            /// The variants, with their numbers and fields.
            pub const TABLE: &'static [$crate::table::Row] = &[$($crate::table::Row {
                name: stringify!($variant),
                number: $number,
                fields: &[$((
                    stringify!($field),
                    <$type as $crate::table::Field>::TYPE,
                ),)*],
            },)*];
        }

        impl $crate::table::Field for $name {
            const TYPE: &'static str = $what;

            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant { $($field,)* } => {
                        out.push($number);
                        $($crate::table::Field::put($field, out);)*
                    })*
                }
            }

            fn take(bytes: &mut &[u8]) -> Result<Self, $crate::table::Malformed> {
                match u8::take(bytes)? {
                    $($number => Ok($name::$variant {
                        $($field: $crate::table::Field::take(bytes)?,)*
                    }),)*
                    found => Err($crate::table::Malformed::Unknown { what: $what, found }),
                }
            }
        }
    };
}

pub(crate) use table;
