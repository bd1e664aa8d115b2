//! The fields of headers as data: for the tables in `docs`, and for tests that compare a
//! header with its declaration in P4.

use core::fmt::Write as _;

/// One field of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name in capitals; P4 and docs have it in small letters.
    pub name: &'static str,
    /// First bit, counted from the header's begin.
    pub at: usize,
    /// Width in bits.
    pub bits: usize,
    /// Meaning in words.
    pub meaning: &'static str,
}

/// The fields of one header, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Name of the header.
    pub title: &'static str,
    /// Description of the bytes behind the fields; empty if there are none.
    pub then: &'static str,
    /// Each field, in the order of the wire.
    pub fields: &'static [Field],
}

/// Puts each field right behind the one before it.
pub(crate) const fn in_sequence<const N: usize>(mut fields: [Field; N]) -> [Field; N] {
    let (mut index, mut at) = (0, 0);
    while index < N {
        fields[index].at = at;
        at += fields[index].bits;
        index += 1;
    }
    fields
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    a.len() == b.len() && index == a.len()
}

impl Layout {
    /// Describes a header of `bytes` bytes. A table whose widths add up to another length
    /// does not compile.
    pub(crate) const fn new(
        title: &'static str,
        then: &'static str,
        bytes: usize,
        fields: &'static [Field],
    ) -> Layout {
        let layout = Layout {
            title,
            then,
            fields,
        };
        assert!(layout.bits() == bytes * 8, "the widths add up to `length`");
        layout
    }

    /// First bit of the field `name`, in capitals. A name without a field does not compile,
    /// where the result is a constant.
    pub(crate) const fn bit(&self, name: &str) -> usize {
        let mut index = 0;
        while !same(self.fields[index].name, name) {
            index += 1;
        }
        self.fields[index].at
    }

    /// Width in bits of all fields.
    pub const fn bits(&self) -> usize {
        match self.fields {
            [.., last] => last.at + last.bits,
            [] => 0,
        }
    }

    /// The table as Markdown, one line a field. A field that is part of a byte has its
    /// first bit behind a point and its width in bits.
    pub fn markdown(&self) -> String {
        let mut text = "| offset | bytes | field | meaning |\n|---|---|---|---|\n".to_owned();
        for field in self.fields {
            let Field { at, bits, .. } = *field;
            let whole = at.is_multiple_of(8) && bits.is_multiple_of(8);
            let (offset, width) = if whole {
                ((at / 8).to_string(), (bits / 8).to_string())
            } else {
                (format!("{}.{}", at / 8, at % 8), format!("{bits} bits"))
            };
            let name = field.name.to_lowercase();
            let meaning = field.meaning;
            let _ = writeln!(text, "| {offset} | {width} | {name} | {meaning} |");
        }
        text
    }
}
