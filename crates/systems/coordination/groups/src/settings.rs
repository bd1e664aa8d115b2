//! Settings of a controller.

use std::collections::BTreeSet;

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::coordination::MAX_CHAIN;

/// A switch of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Its number, unlike those of all others and of switches that were there before.
    pub number: u32,
    /// Its own address, from which it sends.
    pub address: Ipv4Addr,
    /// Its failure domain, such as a rack: switches of one domain may fail together.
    pub domain: u32,
}

/// Settings of a controller. Times are in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address and UDP port at which switches and clients reach the controller.
    pub address: SocketAddrV4,
    /// The switches.
    pub switches: Vec<Switch>,
    /// Virtual groups, each with a chain of its own; as many as the program of the switches has.
    pub groups: u16,
    /// Members of a whole chain, f + 1, at most 3: one more than the failures that it outlives.
    pub replicas: u8,
    /// Lanes of each group; as many as the program of the switches has.
    pub lanes: u16,
    /// Slots of each group; as many as the program of the switches has.
    pub slots: u16,
    /// Points of each switch on the ring of placement; more spread groups more evenly.
    pub virtual_nodes: u16,
    /// Time between two PINGs to a switch.
    pub ping: u64,
    /// Silence after which a switch is taken for dead.
    pub detection: u64,
    /// Time after which groups are founded without the switches that never answered.
    pub found_after: u64,
    /// Time after which the groups of a dead switch get another one.
    pub replace_after: u64,
    /// Time until a message that had no effect is sent again.
    pub resend: u64,
    /// Time after which a switch that joins a group and is not done gives up its place.
    pub join_timeout: u64,
    /// Time for which a switch that gave up does not try that group again.
    pub retry_after: u64,
    /// Time for which nothing passes between two members that live, after which one of them is
    /// left out, at least 200,000; 0: none ever is.
    pub standstill: u64,
    /// Failed switches of which the others send requests on at once (rule 11); as many places as
    /// the program of the switches has.
    pub redirects: u16,
    /// Time without a keepalive after which a session may be ended (rule 19).
    pub session_ttl: u64,
}

/// Least time of a standstill: that of a few promises of rule 14.
const LEAST_STANDSTILL: u64 = 200_000;

impl Settings {
    /// `groups` groups on chains of `replicas` of `switches`, with a PING each 20 ms, detection
    /// after 100 ms, and sizes as the program `coordination` has them.
    pub fn new(
        address: SocketAddrV4,
        switches: Vec<Switch>,
        groups: u16,
        replicas: u8,
    ) -> Settings {
        Settings {
            address,
            switches,
            groups,
            replicas,
            lanes: 1024,
            slots: 1024,
            virtual_nodes: 64,
            ping: 20_000,
            detection: 100_000,
            found_after: 1_000_000,
            replace_after: 1_000_000,
            resend: 10_000,
            join_timeout: 30_000_000,
            retry_after: 10_000_000,
            standstill: 2_000_000,
            redirects: 4,
            session_ttl: 10_000_000,
        }
    }

    /// Checks that a controller can run with these.
    ///
    /// # Errors
    ///
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), SettingsError> {
        for (name, value) in [
            ("groups", u64::from(self.groups)),
            ("replicas", self.replicas.into()),
            ("lanes", self.lanes.into()),
            ("slots", self.slots.into()),
            ("virtual_nodes", self.virtual_nodes.into()),
            ("ping", self.ping),
            ("resend", self.resend),
            ("session_ttl", self.session_ttl),
        ] {
            if value == 0 {
                return Err(SettingsError::Zero(name));
            }
        }
        // A chain of all members and one that joins is as long as a message can name.
        if usize::from(self.replicas) >= MAX_CHAIN {
            return Err(SettingsError::Replicas(self.replicas));
        }
        if self.detection / 2 < self.ping {
            return Err(SettingsError::Detection {
                ping: self.ping,
                detection: self.detection,
            });
        }
        if (1..LEAST_STANDSTILL).contains(&self.standstill) {
            return Err(SettingsError::Standstill(self.standstill));
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
    /// More replicas than a message can name beside one that joins.
    #[error("{0} replicas: at most 3 are possible")]
    Replicas(u8),
    /// Detection before a switch that lives can answer twice.
    #[error("detection = {detection} µs is too short: at least twice ping = {ping} µs")]
    Detection {
        /// Time between two PINGs.
        ping: u64,
        /// Silence after which a switch is taken for dead.
        detection: u64,
    },
    /// A standstill that is over before a few rounds of promises were due.
    #[error("standstill = {0} µs is too short: at least 200,000, or 0 for never")]
    Standstill(u64),
    /// Two switches with one number.
    #[error("two switches have the number {0}")]
    SameNumber(u32),
    /// Two switches with one address, or one without.
    #[error("{0} is no address of one switch alone")]
    SameAddress(Ipv4Addr),
    /// Fewer switches than a chain has.
    #[error("{switches} switches cannot keep {replicas} replicas")]
    TooFew {
        /// Number of switches.
        switches: usize,
        /// Members of a whole chain.
        replicas: u8,
    },
}

impl SettingsError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            SettingsError::Zero(_) => "K101",
            SettingsError::Replicas(_) => "K102",
            SettingsError::Detection { .. } => "K103",
            SettingsError::SameNumber(_) => "K104",
            SettingsError::SameAddress(_) => "K105",
            SettingsError::TooFew { .. } => "K106",
            SettingsError::Standstill(_) => "K107",
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
        let good = Settings::new(address, vec![switch(1), switch(2), switch(3)], 64, 3);
        assert_eq!(good.check(), Ok(()));
        type Change = fn(&mut Settings);
        let changes: [(&str, Change); 10] = [
            ("K107", |s| s.standstill = 199_999),
            ("K101", |s| s.groups = 0),
            ("K101", |s| s.session_ttl = 0),
            ("K102", |s| s.replicas = 4),
            ("K103", |s| s.detection = 39_999),
            ("K104", |s| s.switches[1].number = 1),
            ("K105", |s| s.switches[1].address = s.switches[2].address),
            ("K105", |s| s.switches[0].address = Ipv4Addr::UNSPECIFIED),
            ("K106", |s| s.switches.truncate(2)),
            ("K101", |s| s.lanes = 0),
        ];
        for (code, change) in changes {
            let mut settings = good.clone();
            change(&mut settings);
            let error = settings.check().unwrap_err();
            assert_eq!(error.code(), code);
            assert!(!error.to_string().is_empty());
        }
    }
}
