//! Objects of a P4Info by what people call them.

use crate::proto::config::{self, Preamble};
use crate::proto::v1;

/// Why a text names nothing, or what it asks for cannot be done; for a person.
pub type Wrong = String;

/// An object of a P4Info that has a name.
pub trait Named {
    /// Its names and id.
    fn preamble(&self) -> Option<&Preamble>;
}

macro_rules! named {
    ($($message:ident)*) => {$(
        impl Named for config::$message {
            fn preamble(&self) -> Option<&Preamble> {
                self.preamble.as_ref()
            }
        }
    )*};
}

named!(
    Table Action ActionProfile Counter DirectCounter Meter DirectMeter Register ValueSet Digest
    ControllerPacketMetadata
);

/// Full name of an object.
#[must_use]
pub fn name(object: &impl Named) -> &str {
    object.preamble().map_or("", |preamble| &preamble.name)
}

/// Shortest name of an object that no other of its kind has.
#[must_use]
pub fn alias(object: &impl Named) -> &str {
    object.preamble().map_or("", |preamble| &preamble.alias)
}

/// Id of an object.
#[must_use]
pub fn id(object: &impl Named) -> u32 {
    object.preamble().map_or(0, |preamble| preamble.id)
}

/// True if `wanted` is `full` or the end of it after a dot.
fn is_called(full: &str, wanted: &str) -> bool {
    full == wanted
        || full
            .strip_suffix(wanted)
            .is_some_and(|rest| !wanted.is_empty() && rest.ends_with('.'))
}

/// The one of `candidates` whose name is `wanted`, or ends so after a dot; `what` they are.
///
/// # Errors
///
/// Returns an error if no object has the name, with the existing names, or if several have.
pub fn pick<'a, T>(
    candidates: impl Iterator<Item = (&'a str, T)>,
    wanted: &str,
    what: &str,
) -> Result<T, Wrong> {
    let mut all = Vec::new();
    let mut fit = Vec::new();
    for (full, candidate) in candidates {
        all.push(full);
        if full == wanted {
            return Ok(candidate);
        }
        if is_called(full, wanted) {
            fit.push((full, candidate));
        }
    }
    match fit.len() {
        1 => fit.pop().map(|(_, found)| found).ok_or_else(String::new),
        0 if all.is_empty() => Err(format!(
            "there is no {what} `{wanted}`: there is none at all"
        )),
        0 => Err(format!(
            "there is no {what} `{wanted}`; there are: {}",
            all.join(", ")
        )),
        _ => {
            let names: Vec<&str> = fit.iter().map(|(full, _)| *full).collect();
            Err(format!(
                "`{wanted}` may be several {what}s: {}",
                names.join(", ")
            ))
        }
    }
}

/// The object with a name, or with an alias, or whose name ends so after a dot.
///
/// # Errors
///
/// Returns the errors of [`pick`].
pub fn find<'a, T: Named>(objects: &'a [T], wanted: &str, what: &str) -> Result<&'a T, Wrong> {
    if let Some(found) = objects.iter().find(|object| alias(*object) == wanted) {
        return Ok(found);
    }
    pick(
        objects.iter().map(|object| (name(object), object)),
        wanted,
        what,
    )
}

/// The object with an id.
#[must_use]
pub fn by_id<T: Named>(objects: &[T], wanted: u32) -> Option<&T> {
    objects.iter().find(|object| id(*object) == wanted)
}

/// The updates of a write.
#[must_use]
pub fn update(kind: v1::update::Type, entity: v1::entity::Entity) -> v1::Update {
    v1::Update {
        r#type: kind.into(),
        entity: Some(v1::Entity {
            entity: Some(entity),
        }),
    }
}
