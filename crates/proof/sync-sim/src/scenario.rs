//! Scenarios of runs: traffic, the link, faults.

use crate::program::Program;
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
    /// Program of the switch.
    pub program: Program,
    /// Locations of a group, a power of two, at least 8.
    pub locations: u32,
    /// Positions beyond what the engine has, at most as many as locations.
    pub window: u32,
    /// Packets that are counted.
    pub packets: u64,
    /// When the first may come.
    pub first_packet: u64,
    /// Time for which they come.
    pub traffic: u64,
    /// Time after that in which links are whole and views become exact.
    pub settle: u64,
    /// Between two turns of a carrier.
    pub turn_us: u64,
    /// Window w.
    pub window_us: u64,
    /// Budget, in 2⁻¹⁶ µs a byte.
    pub byte_time: u32,
    /// Greatest t; 0: an exact view.
    pub coarsest: u64,
    /// First ring position and stamp.
    pub first_position: u64,
    /// Between switch and engines.
    pub link: LinkQuality,
    /// Writes, each of a message's values at once, to locations that no packet counts at.
    pub writes: u64,
    /// Writes of more values than a message has, which take effect with a cut.
    pub stages: u64,
    /// Cuts.
    pub cuts: u64,
    /// Chance that a cut fills.
    pub fills: u32,
    /// Starts of a new engine in place of the old one, with a higher term.
    pub engine_starts: u64,
    /// Chance that the old one lives on.
    pub zombies: u32,
    /// Starts of the switch.
    pub switch_starts: u64,
    /// Engines that stand by for each other; 0: none, and `engine_starts` are ordered. Otherwise so
    /// often the one that leads stands still, which is what `zombies` is the chance of, or dies and
    /// returns.
    pub candidates: u64,
}

const GOOD: LinkQuality = LinkQuality {
    loss: 0,
    duplicate: 0,
    delay: 20,
    jitter: 0,
    straggle: 0,
    straggle_delay: 0,
};

const BAD: LinkQuality = LinkQuality {
    loss: 100,
    duplicate: 50,
    delay: 20,
    jitter: 150,
    straggle: 20,
    straggle_delay: 3_000,
};

impl Scenario {
    /// A link that loses nothing, and a budget that suffices.
    pub const fn quiet() -> Self {
        Self {
            name: "quiet",
            workers: 1,
            program: Program::PacketCounter,
            locations: 32,
            window: 16,
            packets: 800,
            first_packet: 500,
            traffic: 40_000,
            settle: 40_000,
            turn_us: 50,
            window_us: 200,
            byte_time: 4_000,
            coarsest: (1 << 40) - 1,
            first_position: 0,
            link: GOOD,
            writes: 0,
            stages: 0,
            cuts: 0,
            fills: 500,
            engine_starts: 0,
            zombies: 0,
            switch_starts: 0,
            candidates: 0,
        }
    }

    /// More changes than the budget carries.
    pub const fn overload() -> Self {
        Self {
            name: "overload",
            packets: 4_000,
            byte_time: 60_000,
            settle: 100_000,
            ..Self::quiet()
        }
    }

    /// t falls faster than the sweep goes round.
    pub const fn slow_sweep() -> Self {
        Self {
            name: "slow-sweep",
            locations: 256,
            turn_us: 200,
            window_us: 100,
            byte_time: 20_000,
            settle: 200_000,
            ..Self::overload()
        }
    }

    /// A link that loses, duplicates, exchanges and delays.
    pub const fn lossy() -> Self {
        Self {
            name: "lossy",
            link: BAD,
            first_position: (1 << 32) - 50,
            ..Self::quiet()
        }
    }

    /// Two messages of five are lost, and the budget does not suffice.
    pub const fn storm() -> Self {
        Self {
            name: "storm",
            link: LinkQuality { loss: 400, ..BAD },
            packets: 2_500,
            byte_time: 40_000,
            settle: 120_000,
            ..Self::quiet()
        }
    }

    /// An exact view: t stays 0, whatever comes.
    pub const fn exact() -> Self {
        Self {
            name: "exact",
            coarsest: 0,
            link: BAD,
            packets: 2_000,
            byte_time: 20_000,
            settle: 80_000,
            ..Self::quiet()
        }
    }

    /// Switch and engines start anew.
    pub const fn restarts() -> Self {
        Self {
            name: "restarts",
            engine_starts: 3,
            switch_starts: 3,
            zombies: 500,
            link: BAD,
            ..Self::quiet()
        }
    }

    /// Snapshots and resets.
    pub const fn cuts() -> Self {
        Self {
            name: "cuts",
            cuts: 10,
            link: BAD,
            packets: 1_200,
            traffic: 60_000,
            ..Self::quiet()
        }
    }

    /// Snapshots, resets and staged writes that follow each other faster than the sweep goes round.
    pub const fn snapshots() -> Self {
        Self {
            name: "snapshots",
            locations: 128,
            turn_us: 200,
            cuts: 60,
            stages: 20,
            link: LinkQuality { loss: 5, ..GOOD },
            packets: 1_200,
            traffic: 60_000,
            settle: 120_000,
            ..Self::quiet()
        }
    }

    /// Writes of engines that are replaced and live on.
    pub const fn writes() -> Self {
        Self {
            name: "writes",
            writes: 60,
            engine_starts: 2,
            zombies: 1_000,
            link: BAD,
            ..Self::quiet()
        }
    }

    /// Staged writes of engines that are replaced and live on, and cuts between them.
    pub const fn staged() -> Self {
        Self {
            name: "staged",
            stages: 24,
            writes: 10,
            cuts: 4,
            engine_starts: 2,
            zombies: 1_000,
            link: BAD,
            packets: 1_200,
            traffic: 60_000,
            ..Self::quiet()
        }
    }

    /// Engines that stand by for each other, with writes.
    pub const fn standby() -> Self {
        Self {
            name: "standby",
            candidates: 3,
            engine_starts: 5,
            zombies: 500,
            writes: 60,
            link: BAD,
            traffic: 80_000,
            settle: 60_000,
            ..Self::quiet()
        }
    }

    /// The same with cuts and starts of the switch.
    pub const fn standby_mixed() -> Self {
        Self {
            name: "standby-mixed",
            stages: 8,
            cuts: 10,
            switch_starts: 1,
            first_position: (1 << 32) - 200,
            ..Self::standby()
        }
    }

    /// All of it.
    pub const fn mixed() -> Self {
        Self {
            name: "mixed",
            writes: 30,
            stages: 8,
            cuts: 6,
            fills: 300,
            engine_starts: 2,
            zombies: 500,
            switch_starts: 2,
            traffic: 60_000,
            first_position: (1 << 32) - 200,
            ..Self::storm()
        }
    }

    /// A gauge and a key with its count, in an instrumented program.
    pub const fn kinds() -> Self {
        Self {
            name: "kinds",
            program: Program::Levels,
            cuts: 6,
            link: BAD,
            first_position: (1 << 32) - 50,
            ..Self::quiet()
        }
    }

    /// The same program under all that there is.
    pub const fn kinds_mixed() -> Self {
        Self {
            name: "kinds-mixed",
            program: Program::Levels,
            ..Self::mixed()
        }
    }

    /// The same program, written by engines that are replaced and live on.
    pub const fn kinds_writes() -> Self {
        Self {
            name: "kinds-writes",
            program: Program::Levels,
            ..Self::writes()
        }
    }

    /// The same program, with staged writes.
    pub const fn kinds_staged() -> Self {
        Self {
            name: "kinds-staged",
            program: Program::Levels,
            ..Self::staged()
        }
    }

    /// Narrow counters, more of them than the budget carries, with resets and engines that are replaced.
    pub const fn continued() -> Self {
        Self {
            name: "continued",
            program: Program::Narrow,
            packets: 6_000,
            first_packet: 20_000,
            traffic: 80_000,
            byte_time: 300_000,
            settle: 200_000,
            cuts: 5,
            engine_starts: 1,
            link: LinkQuality { loss: 20, ..GOOD },
            ..Self::quiet()
        }
    }

    /// The same counters on a link that loses, exchanges and delays.
    pub const fn continued_lossy() -> Self {
        Self {
            name: "continued-lossy",
            locations: 8,
            window: 8,
            packets: 5_000,
            byte_time: 900_000,
            cuts: 4,
            fills: 1_000,
            engine_starts: 0,
            link: LinkQuality { loss: 40, ..BAD },
            ..Self::continued()
        }
    }

    /// The same counters under all that there is.
    pub const fn continued_mixed() -> Self {
        Self {
            name: "continued-mixed",
            byte_time: 100_000,
            writes: 30,
            stages: 4,
            cuts: 4,
            engine_starts: 2,
            zombies: 500,
            switch_starts: 1,
            first_position: (1 << 32) - 200,
            link: BAD,
            ..Self::continued()
        }
    }

    /// All scenarios.
    pub const ALL: [Self; 21] = [
        Self::quiet(),
        Self::overload(),
        Self::slow_sweep(),
        Self::lossy(),
        Self::storm(),
        Self::exact(),
        Self::restarts(),
        Self::cuts(),
        Self::snapshots(),
        Self::writes(),
        Self::staged(),
        Self::mixed(),
        Self::kinds(),
        Self::kinds_mixed(),
        Self::kinds_writes(),
        Self::kinds_staged(),
        Self::continued(),
        Self::continued_lossy(),
        Self::continued_mixed(),
        Self::standby(),
        Self::standby_mixed(),
    ];

    /// The scenario of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name == name)
    }

    /// The scenario with settings, each NAME=VALUE.
    ///
    /// # Errors
    ///
    /// [`SettingError`] if there is no such setting, or it takes other values.
    pub fn with_settings(&self, settings: &[String]) -> Result<Self, SettingError> {
        let mut scenario: Self = changed(self, settings)?;
        scenario.name = self.name;
        let wrong = match () {
            () if !scenario.locations.is_power_of_two() || scenario.locations < 8 => {
                "locations is a power of two, at least 8"
            }
            () if scenario.window == 0 || scenario.window > scenario.locations => {
                "window is 1 to locations"
            }
            () if !(1..=8).contains(&scenario.workers) => "workers is from 1 to 8",
            () if scenario.first_packet > scenario.traffic => "first_packet is at most traffic",
            () if scenario.turn_us == 0 || scenario.window_us == 0 || scenario.byte_time == 0 => {
                "turn_us, window_us and byte_time are at least 1"
            }
            () => return Ok(scenario),
        };
        Err(SettingError::Value {
            settings: settings.join(" "),
            cause: wrong.to_owned(),
        })
    }

    /// The settings in which it differs from the scenario of its name.
    pub fn settings(&self) -> Vec<String> {
        Self::from_name(self.name).map_or_else(Vec::new, |named| differences(&named, self))
    }
}
