//! A sketch of any family.

use crate::error::SketchError;
use crate::interval::Interval;
use crate::key::Key;
use crate::reading::Reading;
use crate::shape::{Family, Shape};
use crate::{count_min, elastic, flow_radar, hash_pipe, sketch_learn, univmon};

/// A sketch: its shape, and a reading of each of its register groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    pub(crate) shape: Shape,
    pub(crate) parts: Vec<Reading>,
    /// Votes against the buckets of ElasticSketch's heavy part, which no answer needs.
    pub(crate) against: Vec<u32>,
}

impl Sketch {
    /// The sketch that was read. Of ElasticSketch the light part must have been read fresh after
    /// the heavy part came: its mark is not the older one.
    ///
    /// # Errors
    ///
    /// [`SketchError::Shape`] if a size is out of its range, [`SketchError::Locations`] if the
    /// readings are of other sizes.
    pub fn new(shape: Shape, parts: Vec<Reading>) -> Result<Sketch, SketchError> {
        shape.check()?;
        let expected = shape.locations();
        let found: Vec<usize> = parts.iter().map(|part| part.values.len()).collect();
        if expected != found {
            return Err(SketchError::Locations { expected, found });
        }
        let against = match shape.family {
            Family::Elastic => vec![0; shape.columns()],
            _ => Vec::new(),
        };
        Ok(Sketch {
            shape,
            parts,
            against,
        })
    }

    /// One that has counted nothing.
    ///
    /// # Errors
    ///
    /// [`SketchError::Shape`] if a size is out of its range.
    pub fn empty(shape: Shape) -> Result<Sketch, SketchError> {
        shape.check()?;
        let locations = shape.locations();
        let parts = locations
            .iter()
            .map(|count| Reading::window(vec![0; *count], 0));
        Sketch::new(shape, parts.collect())
    }

    /// Its shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Readings of its register groups.
    pub fn parts(&self) -> &[Reading] {
        &self.parts
    }

    /// Counts a packet, as the programs do.
    pub fn update(&mut self, key: Key) {
        match self.shape.family {
            Family::CountMin => count_min::update(self, key),
            Family::HashPipe => hash_pipe::update(self, key),
            Family::Elastic => elastic::update(self, key),
            Family::FlowRadar => flow_radar::update(self, key),
            Family::UnivMon => univmon::update(self, key),
            Family::SketchLearn => sketch_learn::update(self, key),
        }
    }

    /// The count of a flow. FlowRadar's answers are those of [`Sketch::decode`], which serves for
    /// many.
    pub fn query(&self, key: Key) -> Interval {
        match self.shape.family {
            Family::CountMin => count_min::query(self, key),
            Family::HashPipe => hash_pipe::query(self, key),
            Family::Elastic => elastic::query(self, key),
            Family::FlowRadar => flow_radar::query(self, key),
            Family::UnivMon => univmon::query(self, key),
            Family::SketchLearn => sketch_learn::query(self, key),
        }
    }

    /// Flows that the sketch names itself, each once, in order; none of Count-Min, which names
    /// none.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = match self.shape.family {
            Family::CountMin => Vec::new(),
            Family::HashPipe => hash_pipe::keys(self),
            Family::Elastic => elastic::keys(self),
            Family::FlowRadar => self.decode().map_or(Vec::new(), |decoded| decoded.keys()),
            Family::UnivMon => univmon::keys(self),
            Family::SketchLearn => sketch_learn::keys(self),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Adds the counts of another place.
    ///
    /// # Errors
    ///
    /// [`SketchError::Unlike`] if family, seed, functions or sizes differ,
    /// [`SketchError::NotLinear`] if sums of such sketches mean nothing.
    pub fn merge(&mut self, other: &Sketch) -> Result<(), SketchError> {
        let (one, two) = (self.shape, other.shape);
        let fields = [
            ("family", one.family.to_string(), two.family.to_string()),
            ("seed", one.seed.to_string(), two.seed.to_string()),
            (
                "function",
                one.function.to_string(),
                two.function.to_string(),
            ),
            ("rows", one.rows.to_string(), two.rows.to_string()),
            (
                "column_bits",
                one.column_bits.to_string(),
                two.column_bits.to_string(),
            ),
            (
                "part_bits",
                one.part_bits.to_string(),
                two.part_bits.to_string(),
            ),
        ];
        if let Some((field, one, other)) = fields.into_iter().find(|(_, one, two)| one != two) {
            return Err(SketchError::Unlike { field, one, other });
        }
        match one.family {
            Family::CountMin | Family::SketchLearn => self.parts[0].add(&other.parts[0]),
            Family::UnivMon => {
                self.parts[0].add(&other.parts[0]);
                univmon::join(&mut self.parts[1], &other.parts[1]);
            }
            _ => return Err(SketchError::NotLinear(one.family)),
        }
        Ok(())
    }

    /// Adds to a value of the first part as a 32-bit register does.
    pub(crate) fn add(&mut self, location: usize, count: u64) {
        let value = &mut self.parts[0].values[location];
        *value = value.wrapping_add(count) & u64::from(u32::MAX);
    }
}
