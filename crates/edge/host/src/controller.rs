//! The controller of a deployment's systems as a process: one UDP socket, and what keeps its
//! decisions.

mod backend;
mod coordination;
mod cores;
mod error;
mod file;
mod file_backend;
mod multicast;
mod server;
mod told;
pub mod view;

pub use backend::{Decided, DecisionBackend, Kept, Record};
pub use coordination::{CoordinationFile, CoordinationSwitchFile};
pub use cores::Systems;
pub use error::ControllerError;
pub(crate) use file::server_number;
pub use file::{ControllerFile, EtcdFile};
pub use file_backend::FileBackend;
pub use multicast::{MulticastFile, MulticastSwitchFile};
pub use server::{ControllerReport, ControllerServer};
pub use stateplane_chains::Settings;
pub use stateplane_membership::{Backend, MOST_RECORDS, Stored};
pub use view::{ControllerView, CoordinationView, Degraded, MulticastView};
