//! Settings of a controller.

/// Settings of a controller. Times are in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Parts of the key space, each with a chain of its own; from 1 to 32768, a
    /// power of two.
    pub shards: u16,
    /// Members of a whole chain: one more than the failures that it outlives.
    pub replicas: u8,
    /// Servers that must be there before the first chains are made.
    pub founders: u16,
    /// Points of each server on the ring of placement; more spread shards more
    /// evenly.
    pub virtual_nodes: u16,
    /// Silence after which a server is taken for dead.
    pub detection: u64,
    /// Time after which the shards of a dead server get another one.
    pub replace_after: u64,
    /// Time for which a server that a neighbour did not hear is kept out of their
    /// chain.
    pub retry_after: u64,
    /// Time until a message that had no effect is sent again.
    pub resend: u64,
    /// Replicas that join at once, over all chains.
    pub joins: u16,
}

impl Settings {
    /// `shards` shards on chains of `replicas` servers, with the usual times:
    /// detection after 200 ms, another server after 10 s.
    pub fn new(shards: u16, replicas: u8) -> Settings {
        Settings {
            shards,
            replicas,
            founders: replicas.into(),
            virtual_nodes: 64,
            detection: 200_000,
            replace_after: 10_000_000,
            retry_after: 1_000_000,
            resend: 10_000,
            joins: 8,
        }
    }

    /// Checks that a controller can run with these.
    ///
    /// # Errors
    ///
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), SettingsError> {
        if !self.shards.is_power_of_two() {
            return Err(SettingsError::Shards(self.shards));
        }
        for (name, value) in [
            ("replicas", u64::from(self.replicas)),
            ("founders", self.founders.into()),
            ("virtual_nodes", self.virtual_nodes.into()),
            ("detection", self.detection),
            ("resend", self.resend),
            ("joins", self.joins.into()),
        ] {
            if value == 0 {
                return Err(SettingsError::Zero(name));
            }
        }
        Ok(())
    }
}

/// Why a controller cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A number of shards that is not a power of two.
    #[error("{0} shards: the number must be a power of two, from 1 to 32768")]
    Shards(u16),
    /// A 0 where nothing would ever happen.
    #[error("{0} is 0: give it a value of at least 1")]
    Zero(&'static str),
}

impl SettingsError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            SettingsError::Shards(_) => "K001",
            SettingsError::Zero(_) => "K002",
        }
    }
}
