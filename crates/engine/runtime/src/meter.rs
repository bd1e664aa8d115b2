//! Meters: two rates, three colours (RFC 2698, colour-blind).

use crate::counter::{Count, checked_size};
use crate::error::{Kind, StateError};
use crate::shared::Shared;
use stateplane_ir::Program;

/// A colour as v1model numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Color {
    /// Within the committed rate; also of a meter without configuration.
    #[default]
    Green = 0,
    /// Above the committed rate.
    Yellow = 1,
    /// Above the peak rate.
    Red = 2,
}

/// Rates and bursts, in bytes or in packets as the meter was declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed rate per second.
    pub committed_rate: u64,
    /// Committed burst.
    pub committed_burst: u64,
    /// Peak rate per second, at least the committed rate.
    pub peak_rate: u64,
    /// Peak burst.
    pub peak_burst: u64,
}

/// Tokens are kept in millionths, so that rates per second and times in
/// microseconds meet without rounding.
const MILLION: u128 = 1_000_000;

/// One element of a meter. It has lines of the cache to itself: engines at other elements do not
/// wait for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct MeterCell {
    config: Option<MeterConfig>,
    /// Time of the last packet in µs.
    last: u64,
    committed: u128,
    peak: u128,
    /// Packets by the color that they got.
    counts: [Count; 3],
}

impl MeterCell {
    /// The present configuration.
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    /// Configures the element and fills both buckets at `now`, in µs; `None` turns
    /// it off.
    pub(crate) fn configure(&mut self, config: Option<MeterConfig>, now: u64) {
        *self = MeterCell {
            config,
            last: now,
            committed: config.map_or(0, |config| u128::from(config.committed_burst) * MILLION),
            peak: config.map_or(0, |config| u128::from(config.peak_burst) * MILLION),
            counts: self.counts,
        };
    }

    /// Counts of each color: green, yellow, red.
    pub fn counts(&self) -> [Count; 3] {
        self.counts
    }

    pub(crate) fn set_counts(&mut self, counts: [Count; 3]) {
        self.counts = counts;
    }

    /// Meters a packet of `bytes` bytes, which counts as `amount` bytes or packets, at
    /// `now`, in µs. A time before the last one adds no tokens.
    pub fn execute(&mut self, amount: u64, bytes: u64, now: u64) -> Color {
        let color = self.mark(amount, now);
        self.counts[color as usize].add(bytes);
        color
    }

    fn mark(&mut self, amount: u64, now: u64) -> Color {
        let Some(config) = self.config else {
            return Color::Green;
        };
        let elapsed = u128::from(now.saturating_sub(self.last));
        self.last = self.last.max(now);
        let fill = |tokens: u128, rate: u64, burst: u64| {
            (tokens + u128::from(rate) * elapsed).min(u128::from(burst) * MILLION)
        };
        self.committed = fill(
            self.committed,
            config.committed_rate,
            config.committed_burst,
        );
        self.peak = fill(self.peak, config.peak_rate, config.peak_burst);
        let needed = u128::from(amount) * MILLION;
        if self.peak < needed {
            return Color::Red;
        }
        self.peak -= needed;
        if self.committed < needed {
            return Color::Yellow;
        }
        self.committed -= needed;
        Color::Green
    }
}

pub(crate) fn check_config(name: &str, config: &MeterConfig) -> Result<(), StateError> {
    let why = if config.peak_rate < config.committed_rate {
        "the peak rate is below the committed rate; raise it"
    } else if config.peak_burst == 0 || config.committed_burst == 0 {
        "a burst is 0, which lets nothing through; set it to one packet at least"
    } else {
        return Ok(());
    };
    Err(StateError::MeterConfig {
        name: name.to_owned(),
        why,
    })
}

/// An indirect meter array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    name: String,
    bytes: bool,
    table: Option<String>,
    cells: Shared<MeterCell>,
}

impl Meter {
    pub(crate) fn new(program: &Program, def: &stateplane_ir::Meter) -> Result<Meter, StateError> {
        let size = checked_size(Kind::Meter, &def.name, def.size)?;
        Ok(Meter {
            name: def.name.clone(),
            table: def
                .table
                .map(|table| program.tables[table.index()].name.clone()),
            bytes: def.bytes,
            cells: Shared::new(vec![MeterCell::default(); size]),
        })
    }

    /// Meter with the same elements, for another engine.
    pub(crate) fn share(&self) -> Meter {
        Meter {
            name: self.name.clone(),
            table: self.table.clone(),
            cells: self.cells.share(),
            ..*self
        }
    }

    /// Full control-plane name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Full name of the table to whose entries it belongs, if it is a direct one.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// True if rates and bursts are in bytes rather than in packets.
    pub fn measures_bytes(&self) -> bool {
        self.bytes
    }

    /// Number of elements; 0 of a direct meter.
    pub fn size(&self) -> u64 {
        self.cells.len() as u64
    }

    /// Units that a packet of `bytes` bytes counts.
    pub fn amount(&self, bytes: u64) -> u64 {
        if self.bytes { bytes } else { 1 }
    }

    /// Meters a packet of `bytes` bytes at `now`, in µs; green past the end.
    pub fn execute(&mut self, index: u64, bytes: u64, now: u64) -> Color {
        let amount = self.amount(bytes);
        usize::try_from(index)
            .ok()
            .and_then(|index| self.cells.get_mut(index))
            .map_or(Color::Green, |cell| cell.execute(amount, bytes, now))
    }

    fn out_of_range(&self, index: u64) -> StateError {
        StateError::Index {
            kind: Kind::Meter,
            name: self.name.clone(),
            index,
            size: self.size(),
        }
    }

    fn cell(&self, index: u64) -> Result<&MeterCell, StateError> {
        let at = usize::try_from(index).ok();
        at.and_then(|at| self.cells.get(at))
            .ok_or_else(|| self.out_of_range(index))
    }

    fn cell_mut(&mut self, index: u64) -> Result<&mut MeterCell, StateError> {
        let past = self.out_of_range(index);
        let at = usize::try_from(index).ok();
        at.and_then(|at| self.cells.get_mut(at)).ok_or(past)
    }

    /// Configuration of an element.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end.
    pub fn read(&self, index: u64) -> Result<Option<MeterConfig>, StateError> {
        Ok(self.cell(index)?.config())
    }

    /// Counts of each color at an element: green, yellow, red.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end.
    pub fn counts(&self, index: u64) -> Result<[Count; 3], StateError> {
        Ok(self.cell(index)?.counts())
    }

    /// Sets what got each color from an element.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end.
    pub fn set_counts(&mut self, index: u64, counts: [Count; 3]) -> Result<(), StateError> {
        self.cell_mut(index)?.set_counts(counts);
        Ok(())
    }

    /// Configures an element, with full buckets at `now` in µs; `None` makes it
    /// always green.
    ///
    /// # Errors
    ///
    /// [`StateError::Index`] past the end, [`StateError::MeterConfig`] for a peak rate
    /// below the committed one or a burst of 0.
    pub fn write(
        &mut self,
        index: u64,
        config: Option<MeterConfig>,
        now: u64,
    ) -> Result<(), StateError> {
        if let Some(config) = &config {
            check_config(&self.name, config)?;
        }
        self.cell_mut(index)?.configure(config, now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Color::{Green, Red, Yellow};

    fn meter() -> Meter {
        let mut b = stateplane_ir::builder::Builder::new();
        let nothing = b.structure("nothing", &[]);
        b.pipeline(nothing, nothing);
        let def = stateplane_ir::Meter {
            name: "m".to_owned(),
            bytes: true,
            size: 2,
            table: None,
        };
        let mut meter = Meter::new(&b.finish().unwrap(), &def).unwrap();
        let config = MeterConfig {
            committed_rate: 1_000_000,
            committed_burst: 1000,
            peak_rate: 2_000_000,
            peak_burst: 1500,
        };
        meter.write(0, Some(config), 50).unwrap();
        meter
    }

    /// RFC 2698 §3: red leaves both buckets, yellow takes from the peak one alone.
    #[test]
    fn colours_of_rfc_2698() {
        let mut meter = meter();
        assert_eq!(meter.execute(0, 600, 50), Green);
        // Committed 400 left, peak 900.
        assert_eq!(meter.execute(0, 600, 50), Yellow);
        // Peak 300 left.
        assert_eq!(meter.execute(0, 400, 50), Red);
        assert_eq!(meter.execute(0, 300, 50), Green);
        assert_eq!(meter.execute(0, 1, 50), Red);
        // One byte per µs committed, two peak.
        assert_eq!(meter.execute(0, 150, 125), Green);
        assert_eq!(meter.execute(0, 150, 200), Yellow);
        assert_eq!(meter.execute(0, 1, 200), Red);
        let counts = meter.counts(0).unwrap();
        let count = |packets, bytes| Count { packets, bytes };
        assert_eq!(counts, [count(3, 1050), count(2, 750), count(3, 402)]);
        meter.write(0, None, 300).unwrap();
        assert_eq!(meter.counts(0).unwrap(), counts, "they stay");
        meter.set_counts(0, [Count::default(); 3]).unwrap();
        assert_eq!(meter.counts(0).unwrap(), [Count::default(); 3]);
    }

    #[test]
    fn buckets_do_not_overflow() {
        let mut meter = meter();
        assert_eq!(meter.execute(0, 1500, u64::MAX), Yellow);
        assert_eq!(meter.execute(0, 1000, u64::MAX), Red);
    }

    #[test]
    fn time_does_not_run_back() {
        let mut meter = meter();
        assert_eq!(meter.execute(0, 1000, 1000), Green);
        assert_eq!(meter.execute(0, 500, 10), Yellow);
        assert_eq!(meter.execute(0, 1, 1000), Red);
    }

    #[test]
    fn without_configuration_all_is_green() {
        let mut meter = meter();
        assert_eq!(meter.execute(1, 1 << 40, 0), Green);
        assert_eq!(meter.execute(7, 1, 0), Green);
        assert_eq!(meter.read(7).unwrap_err().code(), "TG017");
    }

    #[test]
    fn contradictions_are_refused() {
        let mut meter = meter();
        let config = MeterConfig {
            committed_rate: 2,
            committed_burst: 1,
            peak_rate: 1,
            peak_burst: 1,
        };
        assert_eq!(meter.write(0, Some(config), 0).unwrap_err().code(), "TG020");
    }
}
