//! Numbers that are plotted over time.

use crate::number::{short, time};

/// A number that is plotted over time, one for each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plot {
    /// E.
    Bound,
    /// T.
    Unsent,
    /// t.
    Threshold,
    /// k.
    Far,
    /// Age.
    Age,
    /// Locations in the ring.
    Ring,
    /// Updates that were lost.
    Lost,
    /// Updates that were sent.
    Sent,
}

impl Plot {
    /// All, in the order of the picture, four in a row.
    pub const ALL: [Plot; 8] = [
        Plot::Bound,
        Plot::Unsent,
        Plot::Threshold,
        Plot::Far,
        Plot::Age,
        Plot::Ring,
        Plot::Lost,
        Plot::Sent,
    ];

    /// Its name, as the protocol's page has it.
    pub fn name(self) -> &'static str {
        match self {
            Plot::Bound => "E",
            Plot::Unsent => "T",
            Plot::Threshold => "t",
            Plot::Far => "k",
            Plot::Age => "age",
            Plot::Ring => "ring",
            Plot::Lost => "lost",
            Plot::Sent => "sent",
        }
    }

    /// Meaning of the number.
    pub fn meaning(self) -> &'static str {
        match self {
            Plot::Bound => "no location of the view is farther from its register",
            Plot::Unsent => "no register is farther from what was last sent of it",
            Plot::Threshold => "a change that is not larger is not sent; the budget moves it",
            Plot::Far => "locations that may be off by more than t",
            Plot::Age => "the view is of a moment that is not longer ago",
            Plot::Ring => "locations that wait in the switch to be sent",
            Plot::Lost => "updates a second that were lost, and sent again",
            Plot::Sent => "updates a second that the switch sent",
        }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        match self {
            Plot::Age => time(value),
            Plot::Lost | Plot::Sent => format!("{}/s", short(value)),
            _ => short(value),
        }
    }

    /// The plot that is so many places behind this one, around the end.
    #[must_use]
    pub fn behind(self, places: usize) -> Plot {
        let all = Plot::ALL;
        all[(self as usize + places) % all.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_numbers() {
        for (at, plot) in Plot::ALL.into_iter().enumerate() {
            assert_eq!(plot as usize, at);
        }
        assert_eq!(Plot::Sent.behind(1), Plot::Bound);
        assert_eq!(Plot::Threshold.behind(4), Plot::Lost);
    }
}
