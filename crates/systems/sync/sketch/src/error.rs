//! Errors.

use crate::shape::Family;

/// Why a sketch is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SketchError {
    /// A size is out of its range.
    #[error("{field} of a sketch must be {must}")]
    Shape {
        /// The size.
        field: &'static str,
        /// Its permitted range.
        must: &'static str,
    },
    /// Readings that are not of this shape.
    #[error("a sketch of this shape has {expected:?} locations, not {found:?}")]
    Locations {
        /// Locations of each group that the shape has.
        expected: Vec<usize>,
        /// Locations of each group that was read.
        found: Vec<usize>,
    },
    /// Two sketches whose counters do not mean the same.
    #[error("the sketches differ in {field}: {one} and {other}")]
    Unlike {
        /// The difference.
        field: &'static str,
        /// Its value in the first.
        one: String,
        /// Its value in the second.
        other: String,
    },
    /// Sketches of this family cannot be added.
    #[error("sketches of family {0} cannot be added: add their answers")]
    NotLinear(Family),
    /// Bytes that are no sketch.
    #[error("no serialised sketch: {0}")]
    Malformed(&'static str),
    /// Bytes of another version.
    #[error("a serialised sketch of version {found}, not {expected}")]
    Version {
        /// The version of the bytes.
        found: u16,
        /// The version that is read.
        expected: u16,
    },
}

impl SketchError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            SketchError::Shape { .. } => "SKETCH001",
            SketchError::Locations { .. } => "SKETCH002",
            SketchError::Unlike { .. } => "SKETCH003",
            SketchError::NotLinear(_) => "SKETCH004",
            SketchError::Malformed(_) => "SKETCH005",
            SketchError::Version { .. } => "SKETCH006",
        }
    }
}
