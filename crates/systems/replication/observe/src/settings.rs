//! Settings of an observer.

use core::net::SocketAddrV4;
use std::collections::BTreeSet;

/// Most servers of a store.
pub const MOST_STORES: usize = 64;

/// Least µs between two questions to a chain.
const LEAST_POLL_US: u64 = 1_000;

/// Settings of an observer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Request ports of the store's servers, 1 to [`MOST_STORES`].
    pub stores: Vec<SocketAddrV4>,
    /// Number under which it asks and takes leases. No switch may have it.
    pub switch: u32,
    /// Which start of the observer: drawn at each start, never 0.
    pub incarnation: u32,
    /// Flow classes that are followed; all if empty.
    pub classes: BTreeSet<u8>,
    /// Flow classes each of whose changes is told by
    /// [`Observer::poll_changed`](crate::Observer::poll_changed).
    pub told_classes: BTreeSet<u8>,
    /// µs between two questions to a chain, at least 1,000.
    pub poll_us: u64,
    /// µs before a datagram is repeated, more than a round trip.
    pub retry_us: u64,
    /// Flows that are followed at most, at least 1.
    pub most_flows: usize,
    /// Rules that are turned off, for tests.
    pub faults: Faults,
}

/// Rules turned off, so that a test can show that a checker misses them. All are `false` in service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// A tail that answered once is asked on, without a probe of its chain.
    pub unproven: bool,
    /// The view counts as of the answer, not as of the probe before the question.
    pub as_of_answer: bool,
    /// An answer counts of which some datagrams were lost.
    pub first_part: bool,
    /// Parts of two answers to a question that came twice are one answer.
    pub mixed_parts: bool,
    /// A change that was refused after a repeat counts as not applied, and begins anew.
    pub write_again: bool,
}

/// Settings that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// No server, or too many.
    #[error("there are 1 to {MOST_STORES} servers")]
    Stores,
    /// A start without a number.
    #[error("the number of a start is not 0")]
    Incarnation,
    /// Questions too often.
    #[error("at least {LEAST_POLL_US} µs lie between two questions")]
    Poll,
    /// Repeats at once.
    #[error("at least 1 µs lies before a repeat")]
    Retry,
    /// No flow.
    #[error("at least one flow is followed")]
    Flows,
}

impl SettingsError {
    /// Name of the setting, as configuration files have it.
    pub fn field(self) -> &'static str {
        match self {
            SettingsError::Stores => "`stores`",
            SettingsError::Incarnation => "incarnation",
            SettingsError::Poll => "`poll_us`",
            SettingsError::Retry => "`retry_us`",
            SettingsError::Flows => "`most_flows`",
        }
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if !(1..=MOST_STORES).contains(&self.stores.len()) {
            return Err(SettingsError::Stores);
        }
        if self.incarnation == 0 {
            return Err(SettingsError::Incarnation);
        }
        if self.poll_us < LEAST_POLL_US {
            return Err(SettingsError::Poll);
        }
        if self.retry_us == 0 {
            return Err(SettingsError::Retry);
        }
        if self.most_flows == 0 {
            return Err(SettingsError::Flows);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_has_its_bounds() {
        let good = Settings {
            stores: vec!["10.0.0.1:4793".parse().unwrap()],
            switch: 9,
            incarnation: 1,
            classes: BTreeSet::new(),
            told_classes: BTreeSet::new(),
            poll_us: 1_000,
            retry_us: 1,
            most_flows: 1,
            faults: Faults::default(),
        };
        assert_eq!(good.check(), Ok(()));
        let refused = |change: fn(&mut Settings)| {
            let mut settings = good.clone();
            change(&mut settings);
            settings.check().unwrap_err()
        };
        assert_eq!(refused(|it| it.stores.clear()), SettingsError::Stores);
        let many = refused(|it| it.stores = vec![it.stores[0]; MOST_STORES + 1]);
        assert_eq!(many.field(), "`stores`");
        assert_eq!(refused(|it| it.incarnation = 0), SettingsError::Incarnation);
        assert_eq!(refused(|it| it.poll_us = 999), SettingsError::Poll);
        assert_eq!(refused(|it| it.retry_us = 0), SettingsError::Retry);
        assert_eq!(refused(|it| it.most_flows = 0), SettingsError::Flows);
    }
}
