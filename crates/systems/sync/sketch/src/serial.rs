//! Sketches as bytes. Integers are big-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | `SPSK` |
//! | 2 | version, 1 |
//! | 1 | family: 1 count-min, 2 hashpipe, 3 elastic-sketch, 4 flow-radar, 5 univmon, 6 sketch-learn |
//! | 1 | parts |
//! | 8 | seed |
//! | 4 | number of the first hash function |
//! | 4 | rows |
//! | 1, 1 | column bits, part bits |
//! | 2 | 0 |
//!
//! and of each part: 4 bytes number of values, 4 epoch, 8 each of bound (2⁶⁴ - 1: unbounded),
//! `all_but`, `within`, age and generation, and 8 for each value.

use crate::error::SketchError;
use crate::reading::Reading;
use crate::shape::{Family, Shape};
use crate::sketch::Sketch;

const MAGIC: [u8; 4] = *b"SPSK";
const VERSION: u16 = 1;

/// Takes fields from bytes.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], SketchError> {
        let found = self.0.split_first_chunk::<N>();
        let (bytes, rest) = found.ok_or(SketchError::Malformed("it ends too early"))?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn byte(&mut self) -> Result<u8, SketchError> {
        self.bytes().map(u8::from_be_bytes)
    }

    fn word(&mut self) -> Result<u32, SketchError> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> Result<u64, SketchError> {
        self.bytes().map(u64::from_be_bytes)
    }
}

impl Sketch {
    /// The sketch as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let shape = &self.shape;
        let number = Family::ALL.iter().find(|row| row.0 == shape.family);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_be_bytes());
        bytes.push(number.map_or(0, |row| row.2));
        bytes.push(self.parts.len() as u8);
        bytes.extend(shape.seed.to_be_bytes());
        bytes.extend(shape.function.to_be_bytes());
        bytes.extend(shape.rows.to_be_bytes());
        bytes.extend([shape.column_bits as u8, shape.part_bits as u8, 0, 0]);
        for part in &self.parts {
            bytes.extend((part.values.len() as u32).to_be_bytes());
            bytes.extend(part.epoch.to_be_bytes());
            let promise = [
                part.bound.unwrap_or(u64::MAX),
                part.all_but,
                part.within,
                part.age_us,
                part.generation,
            ];
            let numbers = promise.iter().chain(&part.values);
            bytes.extend(numbers.flat_map(|number| number.to_be_bytes()));
        }
        bytes
    }

    /// The sketch of these bytes.
    ///
    /// # Errors
    ///
    /// [`SketchError`] if they are none, of another version, or of sizes that do not fit.
    pub fn from_bytes(bytes: &[u8]) -> Result<Sketch, SketchError> {
        let mut fields = Fields(bytes);
        if fields.bytes()? != MAGIC {
            return Err(SketchError::Malformed("it does not begin with SPSK"));
        }
        let found = fields.bytes().map(u16::from_be_bytes)?;
        if found != VERSION {
            return Err(SketchError::Version {
                found,
                expected: VERSION,
            });
        }
        let number = fields.byte()?;
        let family = Family::ALL.iter().find(|row| row.2 == number);
        let family = family.ok_or(SketchError::Malformed("no such family"))?.0;
        let parts = fields.byte()?;
        let shape = Shape {
            family,
            seed: fields.long()?,
            function: fields.word()?,
            rows: fields.word()?,
            column_bits: fields.byte()?.into(),
            part_bits: fields.byte()?.into(),
        };
        if fields.bytes()? != [0_u8; 2] {
            return Err(SketchError::Malformed("reserved bytes are not 0"));
        }
        shape.check()?;
        let expected = shape.locations();
        if usize::from(parts) != expected.len() {
            return Err(SketchError::Malformed("another number of parts"));
        }
        let parts: Result<Vec<Reading>, _> = expected
            .into_iter()
            .map(|count| reading(&mut fields, count))
            .collect();
        let parts = parts?;
        if fields.0.is_empty() {
            Sketch::new(shape, parts)
        } else {
            Err(SketchError::Malformed("it goes on behind its end"))
        }
    }
}

fn reading(fields: &mut Fields<'_>, expected: usize) -> Result<Reading, SketchError> {
    if fields.word()? as usize != expected {
        return Err(SketchError::Malformed("a part of another size"));
    }
    if fields.0.len() < expected * 8 {
        return Err(SketchError::Malformed("it ends too early"));
    }
    let epoch = fields.word()?;
    let bound = Some(fields.long()?).filter(|bound| *bound != u64::MAX);
    Ok(Reading {
        bound,
        all_but: fields.long()?,
        within: fields.long()?,
        age_us: fields.long()?,
        generation: fields.long()?,
        epoch,
        values: (0..expected)
            .map(|_| fields.long())
            .collect::<Result<_, _>>()?,
    })
}
