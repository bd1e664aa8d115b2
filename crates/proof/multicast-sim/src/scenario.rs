//! Scenarios of runs: traffic, links, faults.

use serde::{Deserialize, Serialize};
use stateplane_world::{LinkQuality, SettingError, changed, differences};

/// Scenario of a run. Times are in µs, chances in thousandths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name on the command line; of one that was changed, that of the one it was made of.
    #[serde(skip)]
    pub name: &'static str,
    /// Workers of each switch, 1 to 8, each of which takes some frames.
    pub workers: u8,
    /// Groups, 1 to 4.
    pub groups: u8,
    /// Members of a group, 2 to 5.
    pub members: u8,
    /// Receivers with which a group begins, 1 to 4.
    pub receivers: u8,
    /// Further receivers of each group, which may join, at most 4.
    pub spares: u8,
    /// Senders.
    pub senders: u8,
    /// Lanes of each sender.
    pub lanes: u8,
    /// Messages that senders are given while there are faults.
    pub messages: u64,
    /// Chance that a message addresses several groups.
    pub several: u32,
    /// Time for which messages are given and faults happen.
    pub traffic: u64,
    /// Time after that within which everything arrives.
    pub within: u64,
    /// Entries of a group's window, a power of two.
    pub window: u32,
    /// Messages in a receiver's queue.
    pub queue: u16,
    /// Most bytes of a payload.
    pub longest: u16,
    /// Index, epoch and timestamp before the first.
    pub first_index: u32,
    /// Epoch before the first.
    pub first_epoch: u32,
    /// Timestamp before the first.
    pub first_time: u64,
    /// Links between switches.
    pub link: LinkQuality,
    /// Links between hosts and switches.
    pub host_link: LinkQuality,
    /// Links of the authority.
    pub control_link: LinkQuality,
    /// Number of times that a leader is deposed, whatever its state.
    pub depositions: u64,
    /// Number of times that a leader is deposed, and cut off from the authority and some others
    /// before.
    pub hidden_depositions: u64,
    /// Number of times that a spare switch takes a living member's place.
    pub exchanges: u64,
    /// Number of deaths of a switch, which returns empty.
    pub deaths: u64,
    /// Least and greatest time for which it is dead.
    pub outage: (u64, u64),
    /// Chance that a leader dies rather than any switch.
    pub leaders_die: u32,
    /// Number of times that one way between two nodes is cut.
    pub cuts: u64,
    /// Greatest time of a cut.
    pub cut: u64,
    /// Number of times that a switch stands still and goes on as if nothing had happened.
    pub stalls: u64,
    /// Greatest time for which it stands still.
    pub stall: u64,
    /// Number of deaths of a sender.
    pub sender_deaths: u64,
    /// Number of deaths of a receiver.
    pub receiver_deaths: u64,
    /// Number of times that a receiver is taken off its list.
    pub evictions: u64,
    /// Number of times that a receiver that is on no list joins.
    pub joins: u64,
    /// Number of times that a receiver's program fetches slowly.
    pub slow: u64,
    /// Greatest time between two messages that it fetches, and for which it does.
    pub slow_us: u64,
    /// Number of restarts of the authority, with what it stored.
    pub restarts: u64,
    /// Keys of each shard of the store, 0 to 16. Without any there is no store: senders send messages,
    /// and receivers fetch them. With some, groups are shards, receivers have replicas, senders have
    /// clients, and messages are operations.
    pub keys: u8,
}

const GOOD: LinkQuality = LinkQuality {
    loss: 0,
    duplicate: 0,
    delay: 20,
    jitter: 20,
    straggle: 0,
    straggle_delay: 0,
};

const BAD: LinkQuality = LinkQuality {
    loss: 40,
    duplicate: 60,
    delay: 20,
    jitter: 200,
    straggle: 20,
    straggle_delay: 30_000,
};

impl Scenario {
    /// No faults.
    pub const fn quiet() -> Self {
        Self {
            name: "quiet",
            workers: 1,
            groups: 3,
            members: 3,
            receivers: 2,
            spares: 1,
            senders: 3,
            lanes: 2,
            messages: 250,
            several: 500,
            traffic: 150_000,
            within: 300_000,
            window: 32,
            queue: 8,
            longest: 64,
            first_index: 0,
            first_epoch: 0,
            first_time: 0,
            link: GOOD,
            host_link: GOOD,
            control_link: GOOD,
            depositions: 0,
            hidden_depositions: 0,
            exchanges: 0,
            deaths: 0,
            outage: (5_000, 60_000),
            leaders_die: 500,
            cuts: 0,
            cut: 40_000,
            stalls: 0,
            stall: 40_000,
            sender_deaths: 0,
            receiver_deaths: 0,
            evictions: 0,
            joins: 0,
            slow: 0,
            slow_us: 8_000,
            restarts: 0,
            keys: 0,
        }
    }

    /// Links that lose, duplicate, exchange, and keep messages longer than a leader leads.
    pub const fn lossy() -> Self {
        Self {
            name: "lossy",
            link: BAD,
            host_link: BAD,
            ..Self::quiet()
        }
    }

    /// Leaders change at any time.
    pub const fn leaders() -> Self {
        Self {
            name: "leaders",
            depositions: 20,
            link: LinkQuality { loss: 10, ..BAD },
            host_link: LinkQuality { loss: 10, ..BAD },
            ..Self::quiet()
        }
    }

    /// Leaders live on behind cuts when others lead.
    pub const fn two_leaders() -> Self {
        Self {
            name: "two-leaders",
            hidden_depositions: 12,
            depositions: 4,
            cuts: 6,
            members: 5,
            link: LinkQuality { loss: 10, ..BAD },
            control_link: BAD,
            ..Self::quiet()
        }
    }

    /// Switches die and return empty, as others.
    pub const fn lost_memory() -> Self {
        Self {
            name: "lost-memory",
            deaths: 8,
            depositions: 4,
            link: LinkQuality { loss: 10, ..BAD },
            traffic: 250_000,
            messages: 350,
            ..Self::quiet()
        }
    }

    /// Members that live are exchanged for others.
    pub const fn exchanges() -> Self {
        Self {
            name: "exchanges",
            exchanges: 14,
            depositions: 6,
            hidden_depositions: 4,
            link: LinkQuality { loss: 15, ..BAD },
            control_link: BAD,
            traffic: 250_000,
            messages: 350,
            ..Self::quiet()
        }
    }

    /// Receivers are slow, die, are taken off lists and join.
    pub const fn receivers() -> Self {
        Self {
            name: "receivers",
            spares: 2,
            slow: 8,
            receiver_deaths: 2,
            evictions: 6,
            joins: 10,
            depositions: 4,
            link: LinkQuality { loss: 10, ..BAD },
            host_link: BAD,
            traffic: 250_000,
            messages: 350,
            ..Self::quiet()
        }
    }

    /// Senders die.
    pub const fn dying_senders() -> Self {
        Self {
            name: "dying-senders",
            senders: 4,
            sender_deaths: 3,
            depositions: 6,
            several: 800,
            link: BAD,
            host_link: BAD,
            ..Self::quiet()
        }
    }

    /// All messages address several of four groups.
    pub const fn several_groups() -> Self {
        Self {
            name: "several-groups",
            groups: 4,
            several: 1_000,
            depositions: 8,
            link: LinkQuality { loss: 10, ..BAD },
            host_link: BAD,
            ..Self::quiet()
        }
    }

    /// Indices begin again, and epochs are high.
    pub const fn last_numbers() -> Self {
        Self {
            name: "last-numbers",
            first_index: u32::MAX - 40,
            first_epoch: (1 << 31) - 4,
            first_time: (1 << 62) - 7,
            depositions: 8,
            deaths: 3,
            link: LinkQuality { loss: 10, ..BAD },
            ..Self::quiet()
        }
    }

    /// Windows of few entries, all lanes of which are used.
    pub const fn small_window() -> Self {
        Self {
            name: "small-window",
            window: 16,
            senders: 2,
            several: 700,
            messages: 400,
            depositions: 3,
            slow: 4,
            link: LinkQuality { loss: 60, ..BAD },
            host_link: BAD,
            ..Self::quiet()
        }
    }

    /// All of it.
    pub const fn mixed() -> Self {
        Self {
            name: "mixed",
            spares: 2,
            depositions: 6,
            hidden_depositions: 4,
            exchanges: 5,
            deaths: 4,
            cuts: 4,
            stalls: 3,
            sender_deaths: 1,
            receiver_deaths: 1,
            evictions: 3,
            joins: 5,
            slow: 3,
            restarts: 3,
            link: BAD,
            host_link: BAD,
            control_link: BAD,
            traffic: 300_000,
            messages: 400,
            ..Self::quiet()
        }
    }

    /// The store over shards, among all of it.
    pub const fn store() -> Self {
        Self {
            name: "store",
            keys: 2,
            senders: 4,
            evictions: 5,
            joins: 8,
            messages: 300,
            longest: 128,
            ..Self::mixed()
        }
    }

    /// All scenarios that have a name.
    pub const ALL: [Self; 13] = [
        Self::quiet(),
        Self::lossy(),
        Self::leaders(),
        Self::two_leaders(),
        Self::lost_memory(),
        Self::exchanges(),
        Self::receivers(),
        Self::dying_senders(),
        Self::several_groups(),
        Self::last_numbers(),
        Self::small_window(),
        Self::mixed(),
        Self::store(),
    ];

    /// The scenario of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name == name)
    }

    /// Settings that turn the scenario of this name into this one.
    pub fn settings(&self) -> Vec<String> {
        let base = Self::from_name(self.name).unwrap_or(Self::mixed());
        differences(&base, self)
    }

    /// The scenario with changed `settings`, each in the form `NAME=VALUE`.
    ///
    /// # Errors
    ///
    /// [`SettingError`].
    pub fn with_settings(&self, settings: &[String]) -> Result<Self, SettingError> {
        let scenario: Self = changed(self, settings)?;
        let wrong = |cause: String| SettingError::Value {
            settings: settings.join(" "),
            cause,
        };
        let ranges = [
            (scenario.workers, 1..=8, "workers"),
            (scenario.groups, 1..=4, "groups"),
            (scenario.members, 2..=5, "members"),
            (scenario.receivers, 1..=4, "receivers"),
            (scenario.spares, 0..=4, "spares"),
            (scenario.senders, 1..=16, "senders"),
            (scenario.lanes, 1..=8, "lanes"),
            (scenario.keys, 0..=16, "keys"),
        ];
        for (value, range, name) in ranges {
            if !range.contains(&value) {
                let (first, last) = (range.start(), range.end());
                return Err(wrong(format!("{name} is from {first} to {last}")));
            }
        }
        if !(16..=1024).contains(&scenario.window) || !scenario.window.is_power_of_two() {
            return Err(wrong("window is a power of two from 16 to 1024".into()));
        }
        Ok(Self {
            name: self.name,
            ..scenario
        })
    }
}
