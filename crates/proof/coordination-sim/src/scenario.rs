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
    /// Clients, at least 1.
    pub clients: u8,
    /// Virtual groups, at least 1.
    pub groups: u8,
    /// Clients that watch all groups, at most as many as there are.
    pub watchers: u8,
    /// Keys of values of each group.
    pub keys: u8,
    /// Keys of locks of each group.
    pub locks: u8,
    /// Members of a whole chain, 1 to 3.
    pub replicas: u8,
    /// Operations that clients begin while there are faults.
    pub operations: u64,
    /// Chance that an operation is a read.
    pub reads: u32,
    /// Chance that a client begins a list of a group's records in place of an operation.
    pub lists: u32,
    /// Chance that a read is leased.
    pub leased: u32,
    /// Time for which clients begin operations and faults happen.
    pub traffic: u64,
    /// Time after that without faults, in which groups serve again.
    pub settle: u64,
    /// Deadline of an operation.
    pub deadline: u64,
    /// Slots of a group in the switches.
    pub slots: u32,
    /// Entries in a switch's ring, a power of two.
    pub ring: u32,
    /// Numbers that are left to a group when it begins; 0: all.
    pub numbers_left: u64,
    /// Links between switches.
    pub link: LinkQuality,
    /// Links between the controller and switches or clients.
    pub control_link: LinkQuality,
    /// Links between clients and switches.
    pub host_link: LinkQuality,
    /// Number of deaths of a switch, which returns empty.
    pub deaths: u64,
    /// Least and greatest time for which it is dead.
    pub outage: (u64, u64),
    /// Chance that a second switch dies with one that does.
    pub pairs: u32,
    /// Number of times that all switches of a group die, and an operator founds it anew.
    pub refoundings: u64,
    /// Number of times that one way of a link is cut.
    pub cuts: u64,
    /// Number of links between switches that are cut, in one direction or both, early and until
    /// the faults end.
    pub lasting_cuts: u64,
    /// Number of times that a switch is cut off from the controller, in one direction or both.
    pub controller_cuts: u64,
    /// Greatest time of a cut.
    pub cut: u64,
    /// Number of times that a switch stands still and goes on as if nothing had happened.
    pub stalls: u64,
    /// Greatest time for which it stands still.
    pub stall: u64,
    /// Number of deaths of a client.
    pub client_deaths: u64,
    /// Time after which a reaper ends a session that is not kept alive; 0: there are no sessions.
    pub ttl: u64,
    /// Number of times that a client stands still and goes on as if nothing had happened.
    pub freezes: u64,
    /// Greatest time for which it stands still.
    pub freeze: u64,
    /// Number of times that a client which watches ends its watches, and goes on later.
    pub pauses: u64,
    /// Greatest time for which it watches nothing.
    pub pause: u64,
    /// Number of restarts of the controller, with what it stored.
    pub controller_restarts: u64,
    /// Greatest deviation of a clock's rate, in parts per million.
    pub drift: u32,
    /// Number of changes of a chain by an authority that does what the rules allow and nobody
    /// would: members that live are left out, joins are given up. 0: the controller decides.
    pub changes: u64,
    /// True if groups have to serve again after the faults.
    pub serves: bool,
    /// True if each group has to serve, with all its members, when the faults end.
    pub recovers: bool,
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
    loss: 30,
    duplicate: 60,
    delay: 20,
    jitter: 200,
    straggle: 20,
    straggle_delay: 250_000,
};

impl Scenario {
    /// No faults.
    pub const fn quiet() -> Self {
        Self {
            name: "quiet",
            workers: 1,
            clients: 4,
            groups: 2,
            watchers: 1,
            keys: 3,
            locks: 2,
            replicas: 3,
            operations: 500,
            reads: 350,
            lists: 0,
            leased: 600,
            traffic: 1_000_000,
            settle: 2_500_000,
            deadline: 200_000,
            slots: 16,
            ring: 64,
            numbers_left: 0,
            link: GOOD,
            control_link: GOOD,
            host_link: GOOD,
            deaths: 0,
            outage: (20_000, 300_000),
            pairs: 250,
            refoundings: 0,
            cuts: 0,
            lasting_cuts: 0,
            controller_cuts: 0,
            cut: 250_000,
            stalls: 0,
            stall: 120_000,
            client_deaths: 0,
            ttl: 0,
            freezes: 0,
            freeze: 1_000_000,
            pauses: 0,
            pause: 600_000,
            controller_restarts: 0,
            drift: 9_000,
            changes: 0,
            serves: true,
            recovers: false,
        }
    }

    /// Links that lose, duplicate, exchange, and keep messages longer than a configuration lives.
    pub const fn lossy() -> Self {
        Self {
            name: "lossy",
            link: BAD,
            host_link: BAD,
            ..Self::quiet()
        }
    }

    /// Switches die, one or two at once, and return empty.
    pub const fn failover() -> Self {
        Self {
            name: "failover",
            deaths: 4,
            ..Self::quiet()
        }
    }

    /// Members are left out of chains and live on, in the dark about it.
    pub const fn zombies() -> Self {
        Self {
            name: "zombies",
            changes: 14,
            cuts: 4,
            controller_cuts: 6,
            stalls: 2,
            link: LinkQuality {
                loss: 10,
                duplicate: 30,
                ..BAD
            },
            control_link: BAD,
            ..Self::quiet()
        }
    }

    /// Switches die often and are back at once, empty.
    pub const fn restarts() -> Self {
        Self {
            name: "restarts",
            deaths: 10,
            outage: (1_000, 60_000),
            traffic: 2_000_000,
            operations: 700,
            ..Self::quiet()
        }
    }

    /// Switches join chains all the time, while clients write.
    pub const fn recovery() -> Self {
        Self {
            name: "recovery",
            changes: 30,
            operations: 900,
            reads: 250,
            link: LinkQuality {
                loss: 15,
                duplicate: 40,
                straggle: 10,
                straggle_delay: 60_000,
                ..BAD
            },
            ..Self::quiet()
        }
    }

    /// Clocks as far off as the bound allows, and many leased reads while chains change.
    pub const fn clocks() -> Self {
        Self {
            name: "clocks",
            drift: 10_000,
            reads: 600,
            leased: 1_000,
            changes: 16,
            controller_cuts: 4,
            cuts: 4,
            ..Self::quiet()
        }
    }

    /// The controller dies and returns, while switches do.
    pub const fn controller_restarts() -> Self {
        Self {
            name: "controller-restarts",
            controller_restarts: 6,
            deaths: 3,
            controller_cuts: 3,
            control_link: BAD,
            ..Self::quiet()
        }
    }

    /// More keys than slots.
    pub const fn full_tables() -> Self {
        Self {
            name: "full-tables",
            keys: 14,
            locks: 3,
            slots: 8,
            ..Self::lossy()
        }
    }

    /// A ring of few entries, over links that lose much, so that heads say BUSY.
    pub const fn small_ring() -> Self {
        Self {
            name: "small-ring",
            ring: 8,
            clients: 6,
            groups: 1,
            operations: 900,
            reads: 150,
            link: LinkQuality { loss: 100, ..BAD },
            ..Self::zombies()
        }
    }

    /// Groups whose numbers end soon.
    pub const fn last_numbers() -> Self {
        Self {
            name: "last-numbers",
            numbers_left: 90,
            serves: false,
            ..Self::lossy()
        }
    }

    /// All of it, under the controller.
    pub const fn mixed() -> Self {
        Self {
            name: "mixed",
            groups: 3,
            deaths: 4,
            cuts: 5,
            controller_cuts: 4,
            stalls: 3,
            client_deaths: 1,
            controller_restarts: 2,
            link: LinkQuality {
                straggle_delay: 150_000,
                ..BAD
            },
            control_link: BAD,
            host_link: BAD,
            ring: 16,
            slots: 12,
            traffic: 2_000_000,
            operations: 800,
            ..Self::quiet()
        }
    }

    /// All of it, under an authority that changes chains at will.
    pub const fn chaos() -> Self {
        Self {
            name: "chaos",
            changes: 25,
            controller_restarts: 0,
            ..Self::mixed()
        }
    }

    /// A link between two switches is cut and stays so, while the controller hears all of them.
    pub const fn cut_members() -> Self {
        Self {
            name: "cut-members",
            lasting_cuts: 1,
            traffic: 3_000_000,
            operations: 900,
            reads: 300,
            ..Self::quiet()
        }
    }

    /// A switch dies and returns while clients write as fast as they can, over a ring that is soon
    /// full.
    pub const fn saturated() -> Self {
        Self {
            name: "saturated",
            clients: 8,
            groups: 1,
            keys: 40,
            reads: 0,
            operations: 12_000,
            traffic: 800_000,
            ring: 8,
            slots: 128,
            deaths: 1,
            outage: (20_000, 80_000),
            link: LinkQuality {
                loss: 30,
                jitter: 300,
                ..GOOD
            },
            // Two at once are not whole again by the end of the load.
            pairs: 0,
            recovers: true,
            ..Self::quiet()
        }
    }

    /// Clients watch groups, with pauses, over links that lose and duplicate, while switches die.
    pub const fn watches() -> Self {
        Self {
            name: "watches",
            watchers: 3,
            pauses: 8,
            deaths: 4,
            stalls: 2,
            cuts: 3,
            reads: 100,
            operations: 700,
            traffic: 1_500_000,
            ring: 32,
            ..Self::lossy()
        }
    }

    /// Clients with sessions die, or stand still for so long that a reaper ends theirs, while
    /// switches die.
    pub const fn sessions() -> Self {
        Self {
            name: "sessions",
            clients: 6,
            keys: 6,
            ttl: 300_000,
            freezes: 4,
            client_deaths: 2,
            deaths: 2,
            reads: 150,
            operations: 900,
            traffic: 2_000_000,
            ..Self::lossy()
        }
    }

    /// All switches of a group die, and an operator founds it anew, while messages of before are
    /// under way.
    pub const fn refounding() -> Self {
        Self {
            name: "refounding",
            refoundings: 4,
            deaths: 2,
            watchers: 2,
            clients: 6,
            deadline: 400_000,
            traffic: 2_000_000,
            operations: 900,
            link: BAD,
            host_link: LinkQuality {
                straggle: 80,
                straggle_delay: 600_000,
                ..BAD
            },
            ..Self::quiet()
        }
    }

    /// Clients list the records of groups, of which there are more than one scan shows, while chains
    /// change.
    pub const fn lists() -> Self {
        Self {
            name: "lists",
            lists: 150,
            keys: 8,
            slots: 32,
            reads: 150,
            leased: 700,
            changes: 12,
            traffic: 2_000_000,
            operations: 900,
            ..Self::lossy()
        }
    }

    /// All scenarios that have a name.
    pub const ALL: [Self; 19] = [
        Self::quiet(),
        Self::lossy(),
        Self::failover(),
        Self::zombies(),
        Self::restarts(),
        Self::recovery(),
        Self::clocks(),
        Self::controller_restarts(),
        Self::full_tables(),
        Self::small_ring(),
        Self::last_numbers(),
        Self::mixed(),
        Self::chaos(),
        Self::cut_members(),
        Self::saturated(),
        Self::watches(),
        Self::sessions(),
        Self::refounding(),
        Self::lists(),
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
        let ranges = [
            (scenario.workers, 1..=8, "workers"),
            (scenario.clients, 1..=16, "clients"),
            (scenario.groups, 1..=16, "groups"),
            (scenario.replicas, 1..=3, "replicas"),
        ];
        if scenario.watchers > scenario.clients {
            return Err(SettingError::Value {
                settings: settings.join(" "),
                cause: "watchers are clients".into(),
            });
        }
        if scenario.ttl > 0 && scenario.clients > 15 {
            return Err(SettingError::Value {
                settings: settings.join(" "),
                cause: "beside 15 clients the reaper has lanes".into(),
            });
        }
        for (value, range, name) in ranges {
            if !range.contains(&value) {
                return Err(SettingError::Value {
                    settings: settings.join(" "),
                    cause: format!("{name} is from {} to {}", range.start(), range.end()),
                });
            }
        }
        let sizes = 8..=1024;
        let ring = sizes.contains(&scenario.ring) && scenario.ring.is_power_of_two();
        let slots = sizes.contains(&scenario.slots) && scenario.slots.is_multiple_of(4);
        if !ring || !slots {
            return Err(SettingError::Value {
                settings: settings.join(" "),
                cause: "ring is a power of two and slots a multiple of 4, from 8 to 1024".into(),
            });
        }
        Ok(Self {
            name: self.name,
            ..scenario
        })
    }
}
