//! Direct counter and meter of a table's default entry.

use super::Table;
use crate::counter::Count;
use crate::error::StateError;
use crate::meter::{MeterConfig, check_config};

impl Table {
    /// Packets that hit no entry, if the table has a direct counter.
    pub fn default_count(&self) -> Count {
        self.default_count
    }

    /// Sets the direct counter of the default entry.
    ///
    /// # Errors
    ///
    /// [`StateError::Unsupported`] if the table has no direct counter.
    pub fn set_default_count(&mut self, count: Count) -> Result<(), StateError> {
        self.check_counted()?;
        self.default_count = count;
        Ok(())
    }

    /// The configuration of the default entry's direct meter, if it has one.
    pub fn default_meter(&self) -> Option<MeterConfig> {
        self.default_meter.config()
    }

    /// Counts of each color at the default entry's direct meter: green, yellow, red.
    pub fn default_meter_counts(&self) -> [Count; 3] {
        self.default_meter.counts()
    }

    /// Configures the direct meter of the default entry, with full buckets at `now` in µs.
    ///
    /// # Errors
    ///
    /// [`StateError::MeterConfig`], or [`StateError::Unsupported`] if the table has no direct
    /// meter.
    pub fn set_default_meter(
        &mut self,
        config: Option<MeterConfig>,
        now: u64,
    ) -> Result<(), StateError> {
        self.check_metered()?;
        if let Some(config) = &config {
            check_config(&self.name, config)?;
        }
        self.default_meter.configure(config, now);
        Ok(())
    }

    /// Sets what got each color from the default entry's direct meter.
    ///
    /// # Errors
    ///
    /// [`StateError::Unsupported`] if the table has no direct meter.
    pub fn set_default_meter_counts(&mut self, counts: [Count; 3]) -> Result<(), StateError> {
        self.check_metered()?;
        self.default_meter.set_counts(counts);
        Ok(())
    }

    /// Puts counter and meter of the default entry back to what a new entry has.
    pub fn reset_default_resources(&mut self) {
        self.default_count = Count::default();
        self.default_meter.reset();
    }

    /// Takes over counter and meter of the default entry of `old`, as far as the table has
    /// them, with full buckets at `now` in µs.
    pub(crate) fn adopt_default_resources(&mut self, old: &Table, now: u64) {
        // A table without a counter or a meter drops its former values.
        let _ = self.set_default_count(old.default_count);
        if let Some(config) = old.default_meter() {
            let _ = self.set_default_meter(Some(config), now);
        }
    }
}
