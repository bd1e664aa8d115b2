//! Decisions of a controller of chains, which a back end stores.

use stateplane_membership as membership;
use stateplane_wire::control::ChainConfig;

use super::ControllerError;

/// A decision about a chain or a store server.
pub type Record = membership::Record<ChainConfig>;

/// All decisions in force about chains and store servers.
pub type Kept = membership::Kept<ChainConfig>;

/// A back end that keeps decisions about chains.
pub trait ChainBackend:
    membership::Backend<Version = ChainConfig, Error = ControllerError>
{
}

impl<B> ChainBackend for B where
    B: membership::Backend<Version = ChainConfig, Error = ControllerError>
{
}
