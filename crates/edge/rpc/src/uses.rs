//! Texts of translated types that stored entities use: they are counted before and after each
//! change, so that a text lives as long as something uses it.

use crate::bytes::Form;
use crate::entity::table::{self, Fields};
use crate::entity::{Context, Shadow, member, value_set};
use crate::names::Names;
use crate::pipeline::{Field, Pipeline};
use crate::proto::v1::{self, entity::Entity, field_match::FieldMatchType, table_action};
use stateplane_runtime::{Engine, TargetState};

/// A text with the type that it belongs to.
type Use = (Names, String);

/// Makes a change of what `entity` names, and counts the texts that are used since and those
/// that were used before.
pub(crate) fn counted<E: Engine, R>(
    context: &mut Context<'_, E>,
    entity: &Entity,
    change: impl FnOnce(&mut Context<'_, E>) -> R,
) -> R {
    if !context.pipeline.has_names() {
        return change(context);
    }
    let before = of_stored(context, entity);
    let result = change(context);
    let after = of_stored(context, entity);
    after.iter().for_each(|(names, text)| names.hold(text));
    before.iter().for_each(|(names, text)| names.release(text));
    result
}

/// The texts in what is stored of an entity.
fn of_stored<E: Engine>(context: &Context<'_, E>, entity: &Entity) -> Vec<Use> {
    let pipeline = context.pipeline;
    let state = context.switch.engine().state();
    let mut uses = Vec::new();
    match entity {
        Entity::TableEntry(entry) => of_entry(&mut uses, pipeline, state, context.shadow, entry),
        Entity::ActionProfileMember(given) => {
            let stored = match given.member_id {
                0 => None,
                id => member::messages(pipeline, state, given.action_profile_id, id).ok(),
            };
            for member in stored.into_iter().flatten() {
                of_action(&mut uses, pipeline, member.action.as_ref());
            }
        }
        Entity::ValueSetEntry(given) => {
            if let Ok(set) = pipeline.value_set(given.value_set_id)
                && let Ok(stored) = value_set::message(state, given.value_set_id, set)
            {
                for member in &stored.members {
                    of_matches(&mut uses, &set.fields, &member.r#match);
                }
            }
        }
        _ => {}
    }
    uses
}

fn of_entry(
    uses: &mut Vec<Use>,
    pipeline: &Pipeline,
    state: &TargetState,
    shadow: &Shadow,
    entry: &v1::TableEntry,
) {
    let Ok(index) = pipeline.table(entry.table_id) else {
        return;
    };
    let stored = if entry.is_default_action {
        table::default::message(pipeline, state, shadow, index, Fields::default())
    } else {
        let named = table::identity(index, entry).ok();
        let target = &state.tables()[index.at.index()];
        let listed = named.and_then(|(keys, priority)| target.get(&keys, priority).ok());
        let Some(listed) = listed else {
            return;
        };
        table::message(
            pipeline,
            state,
            shadow,
            index,
            &listed,
            Fields::default(),
            0,
        )
    };
    of_matches(uses, &index.fields, &stored.r#match);
    match stored.action.and_then(|action| action.r#type) {
        Some(table_action::Type::Action(action)) => of_action(uses, pipeline, Some(&action)),
        Some(table_action::Type::ActionProfileActionSet(set)) => {
            for one in &set.action_profile_actions {
                of_action(uses, pipeline, one.action.as_ref());
            }
        }
        _ => {}
    }
}

fn of_action(uses: &mut Vec<Use>, pipeline: &Pipeline, action: Option<&v1::Action>) {
    let Some(action) = action else {
        return;
    };
    let Ok(index) = pipeline.action(action.action_id) else {
        return;
    };
    for param in &action.params {
        let known = index.params.iter().find(|known| known.id == param.param_id);
        if let Some(known) = known {
            add(uses, &known.form, &param.value);
        }
    }
}

fn of_matches(uses: &mut Vec<Use>, fields: &[Field], matches: &[v1::FieldMatch]) {
    for given in matches {
        let Some(field) = fields.iter().find(|field| field.id == given.field_id) else {
            continue;
        };
        let values: [&[u8]; 2] = match &given.field_match_type {
            Some(FieldMatchType::Exact(exact)) => [&exact.value, &[]],
            Some(FieldMatchType::Optional(optional)) => [&optional.value, &[]],
            Some(FieldMatchType::Ternary(ternary)) => [&ternary.value, &ternary.mask],
            Some(FieldMatchType::Range(range)) => [&range.low, &range.high],
            Some(FieldMatchType::Lpm(lpm)) => [&lpm.value, &[]],
            _ => continue,
        };
        values
            .iter()
            .for_each(|value| add(uses, &field.form, value));
    }
}

fn add(uses: &mut Vec<Use>, form: &Form, value: &[u8]) {
    if let Form::Text(names) = form
        && let Ok(text) = std::str::from_utf8(value)
    {
        uses.push((names.clone(), text.to_owned()));
    }
}
