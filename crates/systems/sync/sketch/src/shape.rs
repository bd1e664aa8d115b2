//! Families and sizes of sketches.

use crate::error::SketchError;
use crate::hash::Hash;
use core::fmt;

/// Family of sketches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Count-Min (Cormode, Muthukrishnan 2005).
    CountMin,
    /// HashPipe (Sivaraman et al., SOSR 2017).
    HashPipe,
    /// ElasticSketch (Yang et al., SIGCOMM 2018).
    Elastic,
    /// FlowRadar (Li et al., NSDI 2016).
    FlowRadar,
    /// UnivMon (Liu et al., SIGCOMM 2016).
    UnivMon,
    /// SketchLearn (Huang et al., SIGCOMM 2018).
    SketchLearn,
}

impl Family {
    /// All, with their names and their numbers in serialised sketches.
    pub const ALL: [(Family, &'static str, u8); 6] = [
        (Family::CountMin, "count-min", 1),
        (Family::HashPipe, "hashpipe", 2),
        (Family::Elastic, "elastic-sketch", 3),
        (Family::FlowRadar, "flow-radar", 4),
        (Family::UnivMon, "univmon", 5),
        (Family::SketchLearn, "sketch-learn", 6),
    ];

    /// The family of a name.
    pub fn named(name: &str) -> Option<Family> {
        let mut all = Family::ALL.iter();
        all.find(|(_, known, _)| *known == name).map(|row| row.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let mut all = Family::ALL.iter();
        all.find(|row| row.0 == self).map_or("", |row| row.1)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Family, hash functions and sizes of a sketch: what two must have in common to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The family.
    pub family: Family,
    /// Seed of the hash functions, SKETCH_SEED of the program.
    pub seed: u64,
    /// Number of the sketch's first hash function.
    pub function: u32,
    /// Rows of Count-Min, stages of HashPipe, sub-tables of FlowRadar, levels of UnivMon, bits of
    /// SketchLearn's keys; 1 of ElasticSketch.
    pub rows: u32,
    /// Columns of each are 2 to this.
    pub column_bits: u32,
    /// Of the second part, 2 to this: counters of ElasticSketch's light part, words of 64 bits of
    /// FlowRadar's Bloom filter, keys of each of UnivMon's levels; 0 of others.
    pub part_bits: u32,
}

/// Values of a FlowRadar cell: two words of XORs, one of numbers.
pub(crate) const CELL: usize = 3;

impl Shape {
    /// Count-Min with `rows` rows of 2 to `column_bits` columns.
    pub fn count_min(seed: u64, function: u32, rows: u32, column_bits: u32) -> Shape {
        Shape {
            family: Family::CountMin,
            seed,
            function,
            rows,
            column_bits,
            part_bits: 0,
        }
    }

    /// Another family with its first function 0.
    pub fn of(family: Family, seed: u64, rows: u32, column_bits: u32, part_bits: u32) -> Shape {
        Shape {
            family,
            seed,
            function: 0,
            rows,
            column_bits,
            part_bits,
        }
    }

    /// Checks the sizes.
    ///
    /// # Errors
    ///
    /// [`SketchError::Shape`] if one is out of its range.
    pub fn check(&self) -> Result<(), SketchError> {
        let wrong = |field, must| Err(SketchError::Shape { field, must });
        let most_rows = match self.family {
            Family::Elastic => 1,
            Family::CountMin | Family::HashPipe | Family::FlowRadar => 16,
            Family::UnivMon | Family::SketchLearn => 32,
        };
        if self.rows == 0 || self.rows > most_rows {
            return wrong(
                "rows",
                "1 to 16; 1 of elastic-sketch; to 32 of univmon and sketch-learn",
            );
        }
        if !(1..=24).contains(&self.column_bits) {
            return wrong("column_bits", "1 to 24");
        }
        let has_parts = matches!(
            self.family,
            Family::Elastic | Family::FlowRadar | Family::UnivMon
        );
        if has_parts != (self.part_bits > 0) || self.part_bits > 24 {
            return wrong(
                "part_bits",
                "1 to 24 of families with a second part, else 0",
            );
        }
        if self.function > 1 << 16 {
            return wrong("function", "0 to 65536");
        }
        Ok(())
    }

    /// Columns of a row.
    pub fn columns(&self) -> usize {
        1 << self.column_bits
    }

    /// Locations of each register group that the sketch is read from.
    pub fn locations(&self) -> Vec<usize> {
        let (rows, columns) = (self.rows as usize, self.columns());
        let part = 1_usize << self.part_bits;
        match self.family {
            Family::CountMin | Family::HashPipe => vec![rows * columns + 1],
            Family::Elastic => vec![columns, part],
            Family::FlowRadar => vec![rows * columns * CELL + part],
            Family::UnivMon => vec![rows * columns * 2, rows * part],
            Family::SketchLearn => vec![(rows + 1) * columns],
        }
    }

    pub(crate) fn hash(&self, number: u32) -> Hash {
        Hash::new(self.seed, self.function + number)
    }
}
