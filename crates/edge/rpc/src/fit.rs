//! A control plane's P4Info beside that of the program: objects are the same by name, or by an
//! alias that only one has, and keep the ids of the control plane.

use crate::packet::{HeaderField, PacketHeader};
use crate::proto::config::{self, P4Info, Preamble};
use crate::refusal::Refusal;
use std::collections::{BTreeMap, BTreeSet};

/// An object of P4Info.
trait Object: Clone {
    const NOUN: &'static str;

    fn preamble(&self) -> Option<&Preamble>;

    fn preamble_mut(&mut self) -> &mut Preamble;

    /// Ids and names of its fields or parameters.
    fn parts(&self) -> Vec<(u32, &str)> {
        Vec::new()
    }

    fn name(&self) -> &str {
        self.preamble().map_or("", |preamble| &preamble.name)
    }

    fn id(&self) -> u32 {
        self.preamble().map_or(0, |preamble| preamble.id)
    }
}

macro_rules! objects {
    ($($message:ident as $noun:literal $(with $parts:ident)?;)*) => {$(
        impl Object for config::$message {
            const NOUN: &'static str = $noun;

            fn preamble(&self) -> Option<&Preamble> {
                self.preamble.as_ref()
            }

            fn preamble_mut(&mut self) -> &mut Preamble {
                self.preamble.get_or_insert_default()
            }

            $(fn parts(&self) -> Vec<(u32, &str)> {
                self.$parts.iter().map(|part| (part.id, part.name.as_str())).collect()
            })?
        }
    )*};
}

objects! {
    Table as "table" with match_fields;
    Action as "action" with params;
    ActionProfile as "action profile";
    Counter as "counter";
    DirectCounter as "direct counter";
    Meter as "meter";
    DirectMeter as "direct meter";
    Register as "register";
    ValueSet as "value set" with r#match;
    Digest as "digest";
    ControllerPacketMetadata as "controller header" with metadata;
}

fn differs<T: Object>(object: &T, what: &str) -> Refusal {
    Refusal::invalid(format!(
        "the P4Info's {} `{}` ({}) is not that of the program: {what}",
        T::NOUN,
        object.name(),
        object.id()
    ))
}

/// The only one of `made` that is the same as `object`.
fn counterpart<'m, T: Object>(object: &T, made: &'m [T]) -> Result<&'m T, Refusal> {
    let Some(preamble) = object.preamble() else {
        return Err(Refusal::invalid(format!("a {} has no preamble", T::NOUN)));
    };
    if let Some(same) = made.iter().find(|other| other.name() == preamble.name) {
        return Ok(same);
    }
    let mut aliased = made.iter().filter(|other| {
        let alias = other.preamble().map(|other| &other.alias);
        !preamble.alias.is_empty() && alias == Some(&preamble.alias)
    });
    match (aliased.next(), aliased.next()) {
        (Some(same), None) => Ok(same),
        (None, _) => Err(differs(object, "it has none of that name")),
        (Some(_), Some(_)) => Err(differs(object, "its alias is that of several")),
    }
}

/// The objects of `given` with the names of their counterparts in `made`, each with its
/// counterpart.
fn paired<'m, T: Object>(given: &[T], made: &'m [T]) -> Result<Vec<(T, &'m T)>, Refusal> {
    let mut ids = BTreeSet::new();
    let mut names = BTreeSet::new();
    let mut pairs = Vec::new();
    for object in given {
        let same = counterpart(object, made)?;
        if !ids.insert(object.id()) || !names.insert(same.name()) {
            return Err(differs(object, "its id or name is there twice"));
        }
        let mut renamed = object.clone();
        renamed.preamble_mut().name = same.name().to_owned();
        pairs.push((renamed, same));
    }
    Ok(pairs)
}

/// Checks that nothing of `made` is missing.
fn check_complete<T: Object>(pairs: &[(T, &T)], made: &[T]) -> Result<(), Refusal> {
    let missing = made
        .iter()
        .find(|object| !pairs.iter().any(|(_, same)| same.name() == object.name()));
    match missing {
        Some(object) => Err(Refusal::invalid(format!(
            "the program's {} `{}` is missing in the P4Info",
            T::NOUN,
            object.name()
        ))),
        None => Ok(()),
    }
}

/// Accessors of the id and the name of a part.
type Named<P> = (fn(&P) -> u32, fn(&P) -> &str);

/// The parts of `given` in the order of those of `made`, which have the same names and
/// otherwise equal shapes.
fn ordered<P: Clone, S: PartialEq>(
    given: &[P],
    made: &[P],
    (id, name): Named<P>,
    shape: impl Fn(&P) -> S,
) -> Option<Vec<P>> {
    let ids: BTreeSet<u32> = given.iter().map(id).collect();
    if given.len() != made.len() || ids.len() != given.len() {
        return None;
    }
    let same = made.iter().map(|wanted| {
        let mut named = given.iter().filter(|part| name(part) == name(wanted));
        match (named.next(), named.next()) {
            (Some(part), None) if shape(part) == shape(wanted) => Some(part.clone()),
            _ => None,
        }
    });
    same.collect()
}

fn ordered_fields(
    given: &[config::MatchField],
    made: &[config::MatchField],
) -> Option<Vec<config::MatchField>> {
    let named: Named<config::MatchField> = (|field| field.id, |field| &field.name);
    ordered(given, made, named, |field| {
        let type_name = field.type_name.clone();
        (field.bitwidth, field.r#match.clone(), type_name)
    })
}

/// Names by ids.
type Names<'a> = BTreeMap<u32, &'a str>;

/// Names of a program's objects by the ids of one P4Info.
struct Known<'a> {
    actions: Names<'a>,
    profiles: Names<'a>,
    /// Direct counters and meters.
    direct: Names<'a>,
}

impl<'a> Known<'a> {
    fn of(info: &'a P4Info) -> Known<'a> {
        fn names<T: Object>(objects: &[T]) -> Names<'_> {
            objects.iter().map(|it| (it.id(), it.name())).collect()
        }
        let mut direct = names(&info.direct_counters);
        direct.extend(names(&info.direct_meters));
        Known {
            actions: names(&info.actions),
            profiles: names(&info.action_profiles),
            direct,
        }
    }

    /// Limits of a table's entries, with names for ids.
    fn shape(&self, table: &config::Table) -> Shape<'a> {
        let of = |names: &Names<'a>, id: &u32| names.get(id).copied().unwrap_or("?");
        let actions = table.action_refs.iter();
        let direct = table.direct_resource_ids.iter();
        let optional = |names: &Names<'a>, id: u32| match id {
            0 => "",
            id => of(names, &id),
        };
        Shape {
            actions: actions
                .map(|listed| (of(&self.actions, &listed.id), listed.scope))
                .collect(),
            direct: direct.map(|id| of(&self.direct, id)).collect(),
            profile: optional(&self.profiles, table.implementation_id),
            const_default: optional(&self.actions, table.const_default_action_id),
            ages: table.idle_timeout_behavior != 0,
            is_const: table.is_const_table,
        }
    }
}

#[derive(PartialEq)]
struct Shape<'a> {
    actions: BTreeSet<(&'a str, i32)>,
    direct: BTreeSet<&'a str>,
    profile: &'a str,
    const_default: &'a str,
    ages: bool,
    is_const: bool,
}

/// The P4Info of a control plane with the names, and the order of fields and parameters, of
/// the program's; ids stay.
///
/// # Errors
///
/// `INVALID_ARGUMENT` with the first object that differs or is missing.
pub(crate) fn fit(given: &P4Info, made: &P4Info) -> Result<P4Info, Refusal> {
    let mut fitted = given.clone();
    macro_rules! pair {
        ($($field:ident by $shape:expr, $what:literal;)*) => {$(
            let pairs = paired(&given.$field, &made.$field)?;
            check_complete(&pairs, &made.$field)?;
            let shape = $shape;
            if let Some((object, _)) = pairs.iter().find(|(one, other)| shape(one) != shape(other))
            {
                return Err(differs(object, $what));
            }
            fitted.$field = pairs.into_iter().map(|(object, _)| object).collect();
        )*};
    }
    pair! {
        direct_counters by |it: &config::DirectCounter| it.spec.map(|spec| spec.unit),
            "it counts something else";
        direct_meters by |it: &config::DirectMeter| it.spec.map(|spec| spec.unit),
            "it measures something else";
        counters by |it: &config::Counter| (it.size, it.spec.map(|spec| spec.unit)),
            "size or unit differ";
        meters by |it: &config::Meter| (it.size, it.spec.map(|spec| spec.unit)),
            "size or unit differ";
        registers by |it: &config::Register| (it.size, it.type_spec.clone()),
            "size or type differ";
        digests by |it: &config::Digest| it.type_spec.clone(), "its type differs";
        action_profiles by |it: &config::ActionProfile| (it.with_selector, it.size),
            "size or selector differ";
    }
    fitted.actions = fitted_actions(given, made)?;
    fitted.value_sets = Vec::new();
    let sets = paired(&given.value_sets, &made.value_sets)?;
    check_complete(&sets, &made.value_sets)?;
    for (mut set, same) in sets {
        set.r#match = ordered_fields(&set.r#match, &same.r#match)
            .ok_or_else(|| differs(&set, "its fields differ"))?;
        fitted.value_sets.push(set);
    }
    let known = Known::of(&fitted);
    let program = Known::of(made);
    let mut tables = Vec::new();
    let pairs = paired(&given.tables, &made.tables)?;
    check_complete(&pairs, &made.tables)?;
    for (mut table, same) in pairs {
        table.match_fields = ordered_fields(&table.match_fields, &same.match_fields)
            .ok_or_else(|| differs(&table, "its match fields differ"))?;
        if table.size > same.size {
            return Err(differs(&table, "it has more entries"));
        }
        if known.shape(&table) != program.shape(same) {
            return Err(differs(
                &table,
                "actions, direct resources, action profile, default action, idle timeout or \
                 constness differ",
            ));
        }
        tables.push(table);
    }
    fitted.tables = tables;
    let headers = paired(
        &given.controller_packet_metadata,
        &made.controller_packet_metadata,
    )?;
    check_complete(&headers, &made.controller_packet_metadata)?;
    for (header, same) in &headers {
        let named: Named<Metadata> = (|it| it.id, |it| &it.name);
        ordered(&header.metadata, &same.metadata, named, |it| it.bitwidth)
            .ok_or_else(|| differs(header, "its fields differ"))?;
    }
    check_types(given, made)?;
    Ok(fitted)
}

type Metadata = config::controller_packet_metadata::Metadata;

fn fitted_actions(given: &P4Info, made: &P4Info) -> Result<Vec<config::Action>, Refusal> {
    type Param = config::action::Param;
    let named: Named<Param> = (|param| param.id, |param| &param.name);
    let shape = |param: &Param| (param.bitwidth, param.type_name.clone());
    let mut actions = Vec::new();
    for (mut action, same) in paired(&given.actions, &made.actions)? {
        action.params = ordered(&action.params, &same.params, named, shape)
            .ok_or_else(|| differs(&action, "its parameters differ"))?;
        actions.push(action);
    }
    Ok(actions)
}

/// Checks that the types which both have are the same.
fn check_types(given: &P4Info, made: &P4Info) -> Result<(), Refusal> {
    let (Some(given), Some(made)) = (&given.type_info, &made.type_info) else {
        return Ok(());
    };
    let structs = given.structs.iter().filter(|(name, one)| {
        let other = made.structs.get(*name);
        other.is_some_and(|other| other.members != one.members)
    });
    let new_types = given.new_types.iter().filter(|(name, one)| {
        let other = made.new_types.get(*name);
        other.is_some_and(|other| other.representation != one.representation)
    });
    let mut names = structs
        .map(|(name, _)| name)
        .chain(new_types.map(|(name, _)| name));
    match names.next() {
        Some(name) => Err(Refusal::invalid(format!(
            "the P4Info's type `{name}` is not that of the program"
        ))),
        None => Ok(()),
    }
}

/// The program's controller headers with the ids of the control plane.
pub(crate) fn headers(
    headers: &[PacketHeader],
    made: &P4Info,
    fitted: &P4Info,
) -> Vec<PacketHeader> {
    let metadata = |info: &P4Info, name: &str| -> Vec<Metadata> {
        let mut headers = info.controller_packet_metadata.iter();
        let header = headers.find(|header| header.name() == name);
        header.map_or_else(Vec::new, |header| header.metadata.clone())
    };
    let relabelled = headers.iter().map(|header| {
        let own = metadata(made, &header.name);
        let theirs = metadata(fitted, &header.name);
        let id = |id: u32| {
            let name = own.iter().find(|it| it.id == id).map(|it| &it.name);
            let same = theirs.iter().find(|it| Some(&it.name) == name);
            same.map_or(id, |same| same.id)
        };
        let fields = header.fields.iter().map(|field| HeaderField {
            id: field.id.map(id),
            width: field.width,
        });
        PacketHeader {
            name: header.name.clone(),
            fields: fields.collect(),
        }
    });
    relabelled.collect()
}

/// Checks that objects of the same name have the same ids in both.
///
/// # Errors
///
/// `FAILED_PRECONDITION` with the first object whose id, or that of a part, differs.
pub(crate) fn check_same_ids(present: &P4Info, next: &P4Info) -> Result<(), Refusal> {
    macro_rules! compare {
        ($($field:ident)*) => {$( same_ids(&present.$field, &next.$field)?; )*};
    }
    compare! {
        tables actions action_profiles counters direct_counters meters direct_meters registers
        value_sets digests
    }
    Ok(())
}

fn same_ids<T: Object>(present: &[T], next: &[T]) -> Result<(), Refusal> {
    let known: BTreeMap<&str, &T> = present.iter().map(|it| (it.name(), it)).collect();
    let other = next.iter().find(|object| {
        known.get(object.name()).is_some_and(|same| {
            let parts = same.parts();
            let moved = object.parts().into_iter().any(|(id, name)| {
                let known = parts.iter().find(|(_, known)| *known == name);
                known.is_some_and(|(known, _)| *known != id)
            });
            same.id() != object.id() || moved
        })
    });
    match other {
        Some(object) => Err(Refusal::new(
            tonic::Code::FailedPrecondition,
            format!(
                "{} `{}` has other ids than in the pipeline that runs, so its state cannot be \
                 kept: VERIFY_AND_COMMIT the config",
                T::NOUN,
                object.name()
            ),
        )),
        None => Ok(()),
    }
}
