//! Controller of multicast: epochs, leaders and members of its groups, their receivers, and
//! sessions with their lanes (`docs/multicast-protocol.md`, rules 5 to 12, 21, 22 and 26).
//!
//! A [`Controller`] is driven from outside like every core: messages and the time go in through
//! `handle_*`, datagrams come out of [`Controller::poll_transmit`]. A decision comes out of
//! [`Controller::poll_record`] first and takes effect with [`Controller::handle_stored`], when it
//! lies where it outlives the process: so no epoch begins twice, none has two leaders, and no
//! incarnation of a session's slot returns.
//!
//! Switches hear of it in two ways. Their programs get PREPARE and LEAD, and answer. Their hosts send
//! BEAT, which shows that they live and which start they are, and get VIEW: what tables are to hold.

mod controller;
mod decision;
mod follower;
mod settings;
mod slots;

pub use controller::{
    Controller, ControllerCounters, GroupState, RefoundError, SwitchView, Transmit, Waits,
};
pub use decision::{Decision, GroupConfig, Listed, Member, Slot, SlotBook, SlotState};
pub use follower::Follower;
pub use settings::{Settings, SettingsError, Switch};
