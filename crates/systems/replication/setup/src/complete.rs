//! Refusal of switches whose replicated program lacks what it needs: without it every packet of a
//! flow would be dropped in silence.

use crate::{
    CHAINS_TABLE, Flows, HEADER_BYTES, HOLD_SESSION_LEASE, HOLD_SESSION_WRITE, HOLD_SESSIONS,
    IDENTITY_TABLE, INCARNATION, state_bytes,
};
use num_bigint::BigUint;
use stateplane_runtime::{Engine, KeyMatch, TargetState};
use stateplane_switch::{MirrorSession, Switch};

/// Why a switch is not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// The library does not know which switch it runs on.
    #[error(
        "the program is replicated, and the switch has no number: add a section [replication], or a default action of `replication_identity` and a value of `replication_incarnation`"
    )]
    NoIdentity,
    /// The library does not know where any chain begins.
    #[error(
        "the program is replicated, and no chain of the store is known: add `heads` and `shards` to [replication], a section [chains], or entries of `replication_shards`"
    )]
    NoChains,
    /// A shard without a chain.
    #[error(
        "the program distributes flows among {program} shards, and shard {missing} has no chain: set `shards` in [replication] to {program}, or compile the program with as many shards as the store has"
    )]
    Shards {
        /// Shards of the program.
        program: u16,
        /// The first one without a chain.
        missing: u16,
    },
    /// A mirror session that holds copies of requests is missing.
    #[error(
        "the program is replicated, and mirror session {0} is missing: add a section [replication], which makes all sessions, or the session"
    )]
    NoSession(u32),
    /// A mirror session cuts off what a copy needs.
    #[error(
        "mirror session {number} cuts copies to {truncate} bytes, and a copy needs {needed}: raise `truncate` to {needed}, or leave the session to the section [replication]"
    )]
    ShortSession {
        /// The session.
        number: u32,
        /// Bytes that it leaves.
        truncate: u32,
        /// Bytes needed: headers, and of a write the state.
        needed: u32,
    },
}

impl Incomplete {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Incomplete::NoIdentity => "H243",
            Incomplete::NoChains => "H244",
            Incomplete::Shards { .. } => "H245",
            Incomplete::NoSession(_) => "H246",
            Incomplete::ShortSession { .. } => "H247",
        }
    }
}

/// Refuses a switch whose replicated program cannot work as the switch is set. `follows` is true if
/// a controller tells the chains. Programs without the library pass.
///
/// # Errors
///
/// The first thing that is missing.
pub fn check_complete<E: Engine>(
    switch: &Switch<E>,
    flows: &Flows,
    follows: bool,
) -> Result<(), Incomplete> {
    let state = switch.engine().state();
    let Ok(identity) = state.table(IDENTITY_TABLE) else {
        return Ok(());
    };
    let (_, data) = identity.default_action();
    let incarnation = state.register(INCARNATION).ok();
    let incarnation = incarnation.and_then(|register| register.word(0));
    if data.first() == Some(&BigUint::ZERO) || incarnation == Some(0) {
        return Err(Incomplete::NoIdentity);
    }
    if !follows {
        check_chains(state, flows)?;
    }
    let bytes = state_bytes(state).unwrap_or_default();
    let kinds = [
        (HOLD_SESSION_LEASE, HOLD_SESSIONS, HEADER_BYTES),
        (HOLD_SESSION_WRITE, HOLD_SESSIONS, HEADER_BYTES + bytes),
    ];
    for (first, count, needed) in kinds {
        for number in first..first + count {
            check_session(number, switch.mirror_session(number), needed)?;
        }
    }
    Ok(())
}

fn check_session(
    number: u32,
    session: Option<MirrorSession>,
    needed: u32,
) -> Result<(), Incomplete> {
    let session = session.ok_or(Incomplete::NoSession(number))?;
    match session.truncate {
        Some(truncate) if truncate < needed => Err(Incomplete::ShortSession {
            number,
            truncate,
            needed,
        }),
        _ => Ok(()),
    }
}

fn check_chains(state: &TargetState, flows: &Flows) -> Result<(), Incomplete> {
    let Ok(chains) = state.table(CHAINS_TABLE) else {
        return Ok(());
    };
    if chains.is_empty() {
        return Err(Incomplete::NoChains);
    }
    let Some(program) = flows.shards else {
        return Ok(());
    };
    let has = |shard: u16| chains.get(&[KeyMatch::Exact(shard.into())], 0).is_ok();
    match (0..program).find(|shard| !has(*shard)) {
        Some(missing) => Err(Incomplete::Shards { program, missing }),
        None => Ok(()),
    }
}
