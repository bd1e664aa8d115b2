//! What hosts say to the applications of `stateplane_history::Application`, and what
//! they make of the answers. One file for each.

mod firewall;

use crate::random::Random;
use stateplane_history::{Application, Direction};
use stateplane_target::{StateError, TargetState};
use stateplane_wire::replication::Key;

/// A packet for an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether it comes from the hosts inside.
    pub(crate) direction: Direction,
    /// The key that the program will give it.
    pub(crate) key: Key,
    /// What it asks, in the terms of [`Application`].
    pub(crate) request: u64,
    /// Which packet of all it is; its mark ends the datagram.
    pub(crate) number: u64,
    /// The whole IPv4 datagram.
    pub(crate) datagram: Vec<u8>,
}

/// The hosts of one application.
pub(crate) trait App {
    /// Main file below `p4/`.
    fn path(&self) -> &'static str;

    /// First byte of its keys.
    fn class(&self) -> u8;

    /// Bytes of state of a flow.
    fn state_length(&self) -> u16;

    /// Sets the tables and registers of its own.
    fn set_up(&self, state: &mut TargetState) -> Result<(), StateError>;

    /// The next packet of a connection.
    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked;

    /// What the application made of a packet, in the terms of [`Application`]; or
    /// why no host would take `frame`.
    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String>;
}

/// The hosts of `application`, which have said nothing yet.
pub(crate) fn app(application: Application) -> Box<dyn App> {
    match application {
        Application::Firewall => Box::<firewall::Firewall>::default(),
    }
}
