//! Settings of a controller.

use std::collections::BTreeSet;

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::multicast::MAX_GROUPS;
use stateplane_wire::multicast_control::MOST_SLOTS;

/// A switch of multicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Its number, unlike those of all others and of switches that were there before.
    pub number: u32,
    /// Its own address, from which its program sends.
    pub address: Ipv4Addr,
    /// Its failure domain, such as a rack: switches of one domain may fail together.
    pub domain: u32,
}

/// Settings of a controller. Times are in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address and UDP port at which switches and hosts reach the controller.
    pub address: SocketAddrV4,
    /// The switches.
    pub switches: Vec<Switch>,
    /// Groups, at most 32 and as many as the program of the switches has.
    pub groups: u8,
    /// Members of a whole group, 2f + 1 for f failures: 3 or 5.
    pub replicas: u8,
    /// Entries of each group's window, as the program of the switches has it.
    pub window: u32,
    /// Slots of sessions, as the program of the switches has them.
    pub slots: u16,
    /// Lanes of a session, as the program of the switches has them.
    pub lanes: u8,
    /// Bytes of the longest payload.
    pub longest: u16,
    /// Points of each switch on the ring of placement; more spread groups more evenly.
    pub virtual_nodes: u16,
    /// Silence after which a switch is taken for dead, and a leader for deaf.
    pub detection: u64,
    /// Time after which groups are founded without the switches that never answered.
    pub found_after: u64,
    /// Time after which the groups of a dead switch get another one.
    pub replace_after: u64,
    /// Time until a message that had no effect is sent again.
    pub resend: u64,
    /// Time between two questions to a leader how far it is.
    pub watch: u64,
    /// Time for which a new epoch waits for the promises of members that live beyond a majority.
    pub patience: u64,
    /// Time after which a switch that learns and is not done gives up its place.
    pub join_timeout: u64,
    /// Time for which a switch that gave up does not try that group again.
    pub retry_after: u64,
    /// Time without a LEARN after which a session is ended.
    pub session_ttl: u64,
    /// Time without a JOIN, or without a step while entries wait for it, after which a receiver is
    /// taken off its list (rule 26).
    pub receiver_ttl: u64,
}

impl Settings {
    /// `groups` groups of `replicas` of `switches`, detection after 100 ms, and sizes as the
    /// program `multicast` has them.
    pub fn new(address: SocketAddrV4, switches: Vec<Switch>, groups: u8, replicas: u8) -> Settings {
        Settings {
            address,
            switches,
            groups,
            replicas,
            window: 1024,
            slots: 64,
            lanes: 8,
            longest: 1400,
            virtual_nodes: 64,
            detection: 100_000,
            found_after: 1_000_000,
            replace_after: 1_000_000,
            resend: 10_000,
            watch: 20_000,
            patience: 5_000,
            join_timeout: 30_000_000,
            retry_after: 10_000_000,
            session_ttl: 10_000_000,
            receiver_ttl: 2_000_000,
        }
    }

    /// Lanes that all sessions have together at most: a quarter of a group's window (rule 22).
    pub fn most_lanes(&self) -> u32 {
        self.window / 4
    }

    /// Checks that a controller can run with these.
    ///
    /// # Errors
    ///
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), SettingsError> {
        for (name, value) in [
            ("groups", u64::from(self.groups)),
            ("slots", self.slots.into()),
            ("lanes", self.lanes.into()),
            ("longest", self.longest.into()),
            ("virtual_nodes", self.virtual_nodes.into()),
            ("resend", self.resend),
            ("watch", self.watch),
            ("session_ttl", self.session_ttl),
            ("receiver_ttl", self.receiver_ttl),
        ] {
            if value == 0 {
                return Err(SettingsError::Zero(name));
            }
        }
        if self.groups > MAX_GROUPS {
            return Err(SettingsError::Groups(self.groups));
        }
        if self.slots > MOST_SLOTS {
            return Err(SettingsError::Slots(self.slots));
        }
        // Numbers stay free for learners and for members that are replaced.
        if ![3, 5].contains(&self.replicas) {
            return Err(SettingsError::Replicas(self.replicas));
        }
        if !self.window.is_power_of_two() || !(16..=1 << 16).contains(&self.window) {
            return Err(SettingsError::Window(self.window));
        }
        if self.detection < self.watch.saturating_mul(2) {
            return Err(SettingsError::Detection {
                watch: self.watch,
                detection: self.detection,
            });
        }
        let (mut numbers, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for switch in &self.switches {
            if !numbers.insert(switch.number) {
                return Err(SettingsError::SameNumber(switch.number));
            }
            if switch.address.is_unspecified() || !addresses.insert(switch.address) {
                return Err(SettingsError::SameAddress(switch.address));
            }
        }
        if self.switches.len() < self.replicas.into() {
            return Err(SettingsError::TooFew {
                switches: self.switches.len(),
                replicas: self.replicas,
            });
        }
        Ok(())
    }
}

/// Why a controller cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A 0 where nothing would ever happen.
    #[error("{0} is 0: give it a value of at least 1")]
    Zero(&'static str),
    /// More groups than a map of destinations has bits.
    #[error("{0} groups: at most 32 are possible")]
    Groups(u8),
    /// More slots than a BEAT can tell of.
    #[error("{0} slots of sessions: at most 256 are possible")]
    Slots(u16),
    /// Members of a group that are not 2f + 1, or more than the switches' program has numbers for.
    #[error("{0} replicas: 3 or 5 are possible, for one failure or two")]
    Replicas(u8),
    /// A window that the switches' program cannot have.
    #[error("a window of {0} entries: it is a power of two from 16 to 65,536")]
    Window(u32),
    /// Detection before a leader that lives can answer twice.
    #[error("detection = {detection} µs is too short: at least twice {watch} µs")]
    Detection {
        /// Time between two questions.
        watch: u64,
        /// Silence after which a leader is taken for deaf.
        detection: u64,
    },
    /// Two switches with one number.
    #[error("two switches have the number {0}")]
    SameNumber(u32),
    /// Two switches with one address, or one without.
    #[error("{0} is no address of one switch alone")]
    SameAddress(Ipv4Addr),
    /// Fewer switches than a group has members.
    #[error("{switches} switches cannot keep {replicas} replicas")]
    TooFew {
        /// Number of switches.
        switches: usize,
        /// Members of a whole group.
        replicas: u8,
    },
}

impl SettingsError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            SettingsError::Zero(_) => "K121",
            SettingsError::Groups(_) => "K122",
            SettingsError::Slots(_) => "K123",
            SettingsError::Replicas(_) => "K124",
            SettingsError::Window(_) => "K125",
            SettingsError::Detection { .. } => "K126",
            SettingsError::SameNumber(_) => "K127",
            SettingsError::SameAddress(_) => "K128",
            SettingsError::TooFew { .. } => "K129",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_contradiction_is_refused() {
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 20), 4795);
        let switch = |number: u32| Switch {
            number,
            address: Ipv4Addr::from(0x0a00_0100 + number),
            domain: number,
        };
        let good = Settings::new(address, (1..=5).map(switch).collect(), 4, 3);
        assert_eq!(good.check(), Ok(()));
        assert_eq!(good.most_lanes(), 256);
        type Change = fn(&mut Settings);
        let changes: [(&str, Change); 17] = [
            ("K121", |s| s.groups = 0),
            ("K121", |s| s.lanes = 0),
            ("K121", |s| s.receiver_ttl = 0),
            ("K122", |s| s.groups = 33),
            ("K123", |s| s.slots = 257),
            ("K124", |s| s.replicas = 0),
            ("K124", |s| s.replicas = 1),
            ("K124", |s| s.replicas = 2),
            ("K124", |s| s.replicas = 4),
            ("K124", |s| s.replicas = 7),
            ("K125", |s| s.window = 1000),
            ("K125", |s| s.window = 8),
            ("K126", |s| s.detection = 39_999),
            ("K127", |s| s.switches[1].number = 1),
            ("K128", |s| s.switches[1].address = s.switches[2].address),
            ("K128", |s| s.switches[0].address = Ipv4Addr::UNSPECIFIED),
            ("K129", |s| s.switches.truncate(2)),
        ];
        for (at, (code, change)) in changes.into_iter().enumerate() {
            let mut settings = good.clone();
            change(&mut settings);
            let error = settings.check().expect_err(&format!("{at}"));
            assert_eq!(error.code(), code, "{at}");
            assert!(!error.to_string().is_empty());
        }
        let five = Settings {
            replicas: 5,
            ..good
        };
        assert_eq!(five.check(), Ok(()));
    }
}
