//! Expectations of a demonstration.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that must hold, and whether it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// Name of the run.
    pub run: String,
    /// The expectation.
    pub what: String,
    /// The finding.
    pub found: String,
    /// True if it held.
    pub met: bool,
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.met { "ok  " } else { "FAIL" };
        write!(f, "{mark}  {}: {} ({})", self.run, self.what, self.found)
    }
}
