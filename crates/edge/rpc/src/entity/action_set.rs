//! Actions that an entry has to itself (specification, "One Shot Action Selector
//! Programming"), and the ports that they watch.

use super::wanted::check_listed;
use super::{Shadow, action, group};
use crate::pipeline::{Pipeline, TableIndex};
use crate::proto::v1::{self, action_profile_action::WatchKind};
use crate::refusal::Refusal;
use stateplane_runtime::{Engine, Invocation, KeyMatch, Runs};
use stateplane_switch::Switch;
use std::collections::BTreeSet;

/// The actions of an entry, as written.
#[derive(Clone, Debug)]
pub(crate) struct ActionSet {
    keys: Vec<KeyMatch>,
    actions: Vec<WatchedAction>,
    given: v1::ActionProfileActionSet,
}

#[derive(Clone, Debug)]
struct WatchedAction {
    action: Invocation,
    weight: u32,
    port: Option<u16>,
}

impl ActionSet {
    /// The set of a message, for the entry with `keys`.
    pub(crate) fn read(
        pipeline: &Pipeline,
        table: &TableIndex,
        keys: &[KeyMatch],
        given: &v1::ActionProfileActionSet,
    ) -> Result<ActionSet, Refusal> {
        let actions = given.action_profile_actions.iter().map(|one| {
            let action = one
                .action
                .as_ref()
                .ok_or_else(|| Refusal::invalid("an action of the set is missing"))?;
            check_listed(table, action.action_id)?;
            let weight = u32::try_from(one.weight)
                .ok()
                .filter(|weight| *weight > 0)
                .ok_or_else(|| Refusal::invalid("a weight is not positive"))?;
            Ok(WatchedAction {
                action: action::read(pipeline, action)?,
                weight,
                port: watched(one),
            })
        });
        Ok(ActionSet {
            keys: keys.to_vec(),
            actions: actions.collect::<Result<_, Refusal>>()?,
            given: given.clone(),
        })
    }

    /// All of them.
    pub(crate) fn all(&self) -> Runs {
        self.live(&BTreeSet::new())
    }

    /// The message as the client wrote it.
    pub(crate) fn message(&self) -> v1::ActionProfileActionSet {
        self.given.clone()
    }

    /// Actions whose watched port is not `down`.
    pub(crate) fn live(&self, down: &BTreeSet<u16>) -> Runs {
        let actions = self.actions.iter();
        let live = actions.filter(|one| one.port.is_none_or(|port| !down.contains(&port)));
        Runs::Set(live.map(|one| (one.action.clone(), one.weight)).collect())
    }
}

/// Takes actions whose watched port went down out of their sets, and puts those back
/// whose port came up.
pub(crate) fn follow_ports<E: Engine>(
    switch: &mut Switch<E>,
    pipeline: &Pipeline,
    shadow: &Shadow,
) {
    for ((table, _, priority), set) in &shadow.sets {
        if let Some(index) = pipeline.tables.get(table)
            && set.actions.iter().any(|one| one.port.is_some())
        {
            let state = switch.engine_mut().state_mut();
            let runs = set.live(&shadow.down);
            // The set was accepted with all of its actions.
            let _ = state.modify_indirect(&index.name, &set.keys, *priority, &runs);
        }
    }
}

#[expect(deprecated, reason = "clients of P4Runtime 1.1 use it")]
fn watched(action: &v1::ActionProfileAction) -> Option<u16> {
    match action.watch_kind.as_ref()? {
        WatchKind::WatchPort(port) => group::port_number(port),
        WatchKind::Watch(port) => u16::try_from(*port).ok(),
    }
}
