//! Actions with their parameters.

use crate::bytes;
use crate::pipeline::{ActionIndex, Pipeline};
use crate::proto::v1;
use crate::refusal::Refusal;
use num_bigint::BigUint;
use stateplane_runtime::Invocation;

/// The action of a message; each parameter is given once.
pub(crate) fn read(pipeline: &Pipeline, action: &v1::Action) -> Result<Invocation, Refusal> {
    let index = pipeline.action(action.action_id)?;
    let mut data: Vec<Option<BigUint>> = vec![None; index.params.len()];
    for param in &action.params {
        let found = index.params.iter().position(|it| it.id == param.param_id);
        let Some(at) = found else {
            return Err(Refusal::invalid(format!(
                "action `{}` has no parameter {}",
                index.name, param.param_id
            )));
        };
        let name = &index.params[at].name;
        let what = || format!("parameter `{name}` of action `{}`", index.name);
        let value = bytes::decode(&param.value, &index.params[at].form, &what)?;
        if data[at].replace(value).is_some() {
            return Err(Refusal::invalid(format!("{} is given twice", what())));
        }
    }
    let data = data
        .into_iter()
        .zip(&index.params)
        .map(|(value, param)| {
            value.ok_or_else(|| {
                Refusal::invalid(format!(
                    "parameter `{}` of action `{}` is missing",
                    param.name, index.name
                ))
            })
        })
        .collect::<Result<_, _>>()?;
    Ok(Invocation {
        action: index.name.clone(),
        data,
    })
}

/// The message of an action.
pub(crate) fn write(index: &ActionIndex, data: &[BigUint]) -> v1::Action {
    v1::Action {
        action_id: index.id,
        params: index
            .params
            .iter()
            .zip(data)
            .map(|(param, value)| v1::action::Param {
                param_id: param.id,
                value: bytes::encode(value, &param.form),
            })
            .collect(),
    }
}

/// The message of an action by its name; none if the P4Info does not have it.
pub(crate) fn named(pipeline: &Pipeline, action: &Invocation) -> Option<v1::Action> {
    Some(write(pipeline.action_named(&action.action)?, &action.data))
}
