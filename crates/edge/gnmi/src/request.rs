//! Parts that requests of Get and Subscribe have in common.

use crate::proto::gnmi::ModelData;
use crate::proto::gnmi_ext::{Extension, extension::Ext};
use crate::refusal::Refusal;
use crate::schema::MODULE;

/// The model's publisher.
pub(crate) const ORGANIZATION: &str = "Stateplane";

/// Revision of the model, as its module says.
pub(crate) const REVISION: &str = "2026-11-27";

/// Refuses a request for other models than the one that is served.
pub(crate) fn check_models(models: &[ModelData]) -> Result<(), Refusal> {
    let is_served = |model: &ModelData| {
        model.name == MODULE
            && [ORGANIZATION, ""].contains(&model.organization.as_str())
            && [REVISION, ""].contains(&model.version.as_str())
    };
    if models.is_empty() || models.iter().any(is_served) {
        return Ok(());
    }
    Err(Refusal::unimplemented(format!(
        "none of the models in `use_models` is served: {MODULE} of {ORGANIZATION}, {REVISION}, is"
    )))
}

/// Refuses what would be answered wrongly if it were skipped; other extensions are.
pub(crate) fn check_extensions(extensions: &[Extension]) -> Result<(), Refusal> {
    let asks_for =
        |what: fn(&Ext) -> bool| extensions.iter().filter_map(|it| it.ext.as_ref()).any(what);
    if asks_for(|ext| matches!(ext, Ext::History(_))) {
        let message = "there is no history but windows: leave the extension `history` out";
        return Err(Refusal::unimplemented(message));
    }
    if asks_for(|ext| matches!(ext, Ext::Depth(depth) if depth.level > 0)) {
        let message = "the extension `depth` is not served: name the nodes that are wanted";
        return Err(Refusal::unimplemented(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::gnmi_ext::{Depth, History, RegisteredExtension};

    #[test]
    fn the_own_model_is_taken_and_others_are_refused() {
        let model = |name: &str, version: &str| ModelData {
            name: name.into(),
            version: version.into(),
            ..ModelData::default()
        };
        assert_eq!(check_models(&[]), Ok(()));
        assert_eq!(check_models(&[model("a", ""), model(MODULE, "")]), Ok(()));
        for wrong in [model("openconfig-interfaces", ""), model(MODULE, "1.0.0")] {
            let refused = check_models(&[wrong]).expect_err("another model");
            assert_eq!(refused.status, tonic::Code::Unimplemented);
        }
        assert!(crate::MODEL_TEXT.contains(&format!("revision {REVISION} {{")));
    }

    #[test]
    fn unknown_extensions_are_skipped_and_those_that_change_the_answer_refused() {
        let of = |ext| Extension { ext };
        let registered = Ext::RegisteredExt(RegisteredExtension {
            id: 999,
            msg: vec![1],
        });
        let harmless = [
            of(None),
            of(Some(registered)),
            of(Some(Ext::Depth(Depth { level: 0 }))),
        ];
        assert_eq!(check_extensions(&harmless), Ok(()));
        for ext in [
            Ext::History(History::default()),
            Ext::Depth(Depth { level: 1 }),
        ] {
            assert!(check_extensions(&[of(Some(ext))]).is_err());
        }
    }
}
