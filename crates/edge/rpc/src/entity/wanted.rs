//! Action of a table entry: the entry's own, or a member, group or one-shot set of the table's
//! action profile (specification, "TableAction").

use super::action;
use super::action_set::ActionSet;
use crate::pipeline::{Pipeline, TableIndex};
use crate::proto::v1::{self, table_action};
use crate::refusal::Refusal;
use stateplane_runtime::{Entry, Invocation, KeyMatch, Runs, TargetState};
use std::collections::BTreeSet;

/// Action that an entry requests.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    Nothing,
    Direct(Invocation),
    Indirect(Runs),
    Set(ActionSet),
}

/// Target of an entry: made for the entry, or existing already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    New,
    Present,
}

impl Wanted {
    /// Reads the action from the message.
    pub(super) fn read(
        pipeline: &Pipeline,
        table: &TableIndex,
        keys: &[KeyMatch],
        action: Option<&v1::TableAction>,
    ) -> Result<Wanted, Refusal> {
        let Some(kind) = action.and_then(|action| action.r#type.as_ref()) else {
            return Ok(Wanted::Nothing);
        };
        let indirect = || {
            let profile = pipeline.profile(table.profile).map_err(|_| {
                Refusal::invalid(format!(
                    "table `{}` has no action profile; give its entries actions",
                    table.name
                ))
            })?;
            Ok::<_, Refusal>(profile)
        };
        let selector = || {
            if indirect()?.with_selector {
                Ok(())
            } else {
                Err(Refusal::invalid(format!(
                    "the action profile of table `{}` has no selector; give a member",
                    table.name
                )))
            }
        };
        Ok(match kind {
            table_action::Type::Action(given) => {
                if table.profile != 0 {
                    return Err(Refusal::invalid(format!(
                        "table `{}` has an action profile; give a member, a group or a set of actions",
                        table.name
                    )));
                }
                check_listed(table, given.action_id)?;
                Wanted::Direct(action::read(pipeline, given)?)
            }
            table_action::Type::ActionProfileMemberId(member) => {
                indirect()?;
                Wanted::Indirect(Runs::Member(*member))
            }
            table_action::Type::ActionProfileGroupId(group) => {
                selector()?;
                Wanted::Indirect(Runs::Group(*group))
            }
            table_action::Type::ActionProfileActionSet(set) => {
                selector()?;
                Wanted::Set(ActionSet::read(pipeline, table, keys, set)?)
            }
        })
    }

    /// Lets an entry run it, of a set what is live while the ports in `down` are; an entry
    /// that is there keeps what it runs where nothing is wanted, a new one is not made.
    pub(super) fn give(
        &self,
        state: &mut TargetState,
        table: &TableIndex,
        (keys, priority): (&[KeyMatch], u32),
        target: Target,
        down: &BTreeSet<u16>,
    ) -> Result<(), Refusal> {
        let indirect = |state: &mut TargetState, runs: &Runs, target| match target {
            Target::New => state.insert_indirect(&table.name, keys, priority, runs),
            Target::Present => state.modify_indirect(&table.name, keys, priority, runs),
        };
        match self {
            Wanted::Nothing => {}
            Wanted::Direct(action) => {
                let entry = Entry {
                    keys: keys.to_vec(),
                    priority,
                    action: action.action.clone(),
                    data: action.data.clone(),
                };
                let entries = state.table_at(table.at);
                match target {
                    Target::New => entries.insert(&entry)?,
                    Target::Present => entries.modify(&entry)?,
                }
            }
            Wanted::Indirect(runs) => indirect(state, runs, target)?,
            Wanted::Set(set) => {
                // All of them must fit, those that are not live too.
                indirect(state, &set.all(), target)?;
                indirect(state, &set.live(down), Target::Present)?;
            }
        }
        Ok(())
    }
}

/// Checks that the table lists an action.
pub(super) fn check_listed(table: &TableIndex, action: u32) -> Result<(), Refusal> {
    if table.actions.contains(&action) {
        Ok(())
    } else {
        Err(Refusal::invalid(format!(
            "action {action} is not one of table `{}`",
            table.name
        )))
    }
}
