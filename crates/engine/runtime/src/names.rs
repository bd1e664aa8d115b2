//! Finding objects by their control-plane names.

use crate::error::{Kind, StateError};
use stateplane_diagnostics::distance;

/// Names offered for an unknown one.
const SUGGESTIONS: usize = 3;

/// Position of the object that `wanted` names: a full name, or the end of one from
/// a dot on, if only one name ends so.
pub(crate) fn find<'a>(
    kind: Kind,
    names: impl Iterator<Item = &'a str> + Clone,
    wanted: &str,
) -> Result<usize, StateError> {
    match positions(names.clone(), wanted).as_slice() {
        [position] => Ok(*position),
        [] => Err(StateError::Unknown {
            kind,
            name: wanted.to_owned(),
            near: near(names, wanted),
        }),
        several => Err(StateError::Ambiguous {
            kind,
            name: wanted.to_owned(),
            candidates: several
                .iter()
                .filter_map(|&position| names.clone().nth(position))
                .map(str::to_owned)
                .collect(),
        }),
    }
}

/// Positions of the names that `wanted` may be.
pub(crate) fn positions<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    wanted: &str,
) -> Vec<usize> {
    if let Some(position) = names.clone().position(|name| name == wanted) {
        return vec![position];
    }
    names
        .enumerate()
        .filter(|(_, name)| {
            name.strip_suffix(wanted)
                .is_some_and(|front| front.ends_with('.') && !wanted.is_empty())
        })
        .map(|(position, _)| position)
        .collect()
}

/// The names most like `wanted`, or like its last part.
pub(crate) fn near<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Vec<String> {
    let mut near: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let allowed = 1 + last_part(wanted).len() / 3;
            let whole = distance(name, wanted, allowed);
            let part = distance(last_part(name), last_part(wanted), allowed);
            let least = whole.into_iter().chain(part).min()?;
            Some((least, name))
        })
        .collect();
    near.sort_unstable();
    near.truncate(SUGGESTIONS);
    near.into_iter().map(|(_, name)| name.to_owned()).collect()
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = [
        "MyIngress.nat.port",
        "MyIngress.fw.port",
        "MyIngress.routes",
        "routes",
    ];

    fn look(wanted: &str) -> Result<usize, StateError> {
        find(Kind::Table, NAMES.iter().copied(), wanted)
    }

    #[test]
    fn full_names_and_unique_ends() {
        assert_eq!(look("MyIngress.nat.port"), Ok(0));
        assert_eq!(look("nat.port"), Ok(0));
        assert_eq!(look("fw.port"), Ok(1));
        assert_eq!(look("routes"), Ok(3), "a full name goes before an end");
        assert_eq!(look("Ingress.routes").unwrap_err().code(), "TG001");
        assert_eq!(look("").unwrap_err().code(), "TG001");
    }

    #[test]
    fn ambiguous_ends_are_listed() {
        let error = look("port").unwrap_err();
        assert_eq!(error.code(), "TG002");
        assert_eq!(
            error.to_string(),
            "`port` may be any of the tables `MyIngress.nat.port`, `MyIngress.fw.port`; \
             write more of the name"
        );
    }

    #[test]
    fn misspelt_names_are_guessed() {
        let error = look("rotues").unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no table `rotues`; did you mean `MyIngress.routes`, `routes`?"
        );
        let error = look("something_else").unwrap_err();
        assert_eq!(error.to_string(), "there is no table `something_else`");
    }
}
