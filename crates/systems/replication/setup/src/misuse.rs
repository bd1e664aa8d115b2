//! Errors in the use of the replication library: programs that can never work, or in which two
//! applications claim one UDP port. They are refused when they are loaded.

use stateplane_ir::{
    Arg, Const, Expr, ExprKind, KeySet, Op, Parser, Place, Program, Projection, State, Stmt,
    Target, Transition, Type,
};
use std::collections::BTreeSet;

/// The struct of the library that says to which flow a packet belongs.
pub(crate) const METADATA: &str = "replication_metadata_t";
/// The header of the library's messages, from which it takes a key itself.
const MESSAGE: &str = "replication_t";
/// The header by which the library looks at UDP's ports.
const FRONT: &str = "replication_udp_front_t";
/// `REPLICATION_UDP_PORT` of the library.
const REPLICATION_PORT: u16 = 4793;
const LIBRARY: &str = "the replication library";

/// Why a program is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// The library never learns to which flow a packet belongs.
    #[error(
        "the program includes the replication library and never sets `{field}` of {METADATA}, so no packet has a flow; set `known` and `key` in ingress, before ReplicationIngressBefore, for packets that are `arriving`"
    )]
    NoKey {
        /// The member that is never set.
        field: &'static str,
    },
    /// Two parser states, or one and the library, wait for packets to one UDP port.
    #[error(
        "UDP port {port} is claimed twice, by {first} and by the parser state `{second}`, which never gets a packet; give one of them another port"
    )]
    PortClaimedTwice {
        /// The port.
        port: u16,
        /// Declaration that gets the packets of both.
        first: String,
        /// The state that gets none.
        second: String,
    },
}

impl Misuse {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Misuse::NoKey { .. } => "H234",
            Misuse::PortClaimedTwice { .. } => "H235",
        }
    }
}

/// Refuses a program that cannot work.
///
/// # Errors
///
/// The first reason.
pub fn check_use(program: &Program) -> Result<(), Misuse> {
    let uses_library = program.structs.iter().any(|it| it.name == METADATA);
    if uses_library {
        for field in ["known", "key"] {
            if !sets(program, field) {
                return Err(Misuse::NoKey { field });
            }
        }
    }
    for parser in &program.parsers {
        for state in 0..parser.states.len() {
            claims(program, parser, state, uses_library)?;
        }
    }
    Ok(())
}

/// Struct and member that the last step of a place leads to.
pub(crate) fn member<'a>(program: &'a Program, place: &Place) -> Option<(&'a str, &'a str, Type)> {
    let (last, path) = place.path.split_last()?;
    let Projection::Field(field) = last else {
        return None;
    };
    let whole = Place {
        var: place.var,
        path: path.to_vec(),
    };
    let (Type::Struct(id) | Type::Header(id)) = program.place_type(&whole)? else {
        return None;
    };
    let def = program.structs.get(id.index())?;
    let field = def.fields.get(*field as usize)?;
    Some((&def.name, &field.name, field.ty))
}

/// True if a statement of the program, other than the library's own, writes this member of the
/// library's metadata.
fn sets(program: &Program, field: &str) -> bool {
    let controls = program.controls.iter().map(|it| &it.body);
    let actions = program.actions.iter().map(|it| &it.body);
    let functions = program.functions.iter().map(|it| &it.body);
    let states = program.parsers.iter().flat_map(|it| &it.states);
    let bodies = controls.chain(actions).chain(functions);
    bodies
        .chain(states.map(|state| &state.body))
        .any(|body| any_sets(program, body, field))
}

fn any_sets(program: &Program, body: &[Stmt], field: &str) -> bool {
    let own = |place: &Place| match member(program, place) {
        Some((of, name, _)) => of == METADATA && name == field,
        None => {
            // A part of it, or all of it at once.
            let whole = program.place_type(place).and_then(|ty| match ty {
                Type::Struct(id) => program.structs.get(id.index()),
                _ => None,
            });
            whole.is_some_and(|def| def.name == METADATA)
        }
    };
    let deeper = |body: &[Stmt]| any_sets(program, body, field);
    body.iter().any(|statement| match statement {
        Stmt::Assign(place, value) => match &place.path[..] {
            [path @ .., Projection::Slice { .. }] => own(&Place {
                var: place.var,
                path: path.to_vec(),
            }),
            _ => own(place) && !is_the_librarys(program, value),
        },
        Stmt::If {
            then, otherwise, ..
        } => deeper(then) || deeper(otherwise),
        Stmt::Switch { cases, default, .. } => {
            cases.iter().any(|(_, body)| deeper(body)) || deeper(default)
        }
        Stmt::Call { args, result, .. } => {
            let outs = args.iter().filter_map(|arg| match arg {
                Arg::Out(place) => Some(place),
                Arg::InOut(place) => member(program, place)
                    .is_some_and(|(of, ..)| of == METADATA)
                    .then_some(place),
                Arg::In(_) => None,
            });
            outs.chain(result).any(own)
        }
        Stmt::Op(
            Op::Hash { result, .. }
            | Op::Random { result, .. }
            | Op::RegisterRead { result, .. }
            | Op::Lookahead { result },
        ) => own(result),
        Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => deeper(body),
        Stmt::Loop { body, update } => deeper(body) || deeper(update),
        _ => false,
    })
}

/// True if the library gives the value to the members itself, or if the value means that there is
/// no flow.
fn is_the_librarys(program: &Program, value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Const(Const::Bool(value)) => !value,
        ExprKind::Const(Const::Bits(value)) => value.bits() == 0,
        ExprKind::Read(place) => {
            member(program, place).is_some_and(|(of, ..)| of == MESSAGE || of == METADATA)
        }
        ExprKind::Default => true,
        _ => false,
    }
}

/// True if this is UDP's destination (or source) port.
fn is_udp_port(program: &Program, expr: &Expr, destination: bool) -> bool {
    let ExprKind::Read(place) = &expr.kind else {
        return false;
    };
    let names: [&str; 2] = if destination {
        ["dst", "dest"]
    } else {
        ["src", "source"]
    };
    member(program, place).is_some_and(|(of, name, ty)| {
        let (of, name) = (of.to_lowercase(), name.to_lowercase());
        let names = names.iter().any(|it| name.contains(it));
        of.contains("udp") && of != FRONT && ty == Type::Bits(16) && names
    })
}

/// Looks for a port that the state, or those that it leaves the rest of the packets to,
/// claim twice.
fn claims(
    program: &Program,
    parser: &Parser,
    first: usize,
    uses_library: bool,
) -> Result<(), Misuse> {
    let mut known: Vec<(&Expr, u16, Vec<&KeySet>, Target)> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = Some(first);
    while let Some(number) = next.take_if(|number| seen.insert(*number)) {
        let Some(state) = parser.states.get(number) else {
            break;
        };
        // Beyond what it extracts, the same place is another packet's port.
        if number != first && !state.body.is_empty() {
            break;
        }
        let Transition::Select { keys, cases } = &state.transition else {
            break;
        };
        let at = keys.iter().position(|key| is_udp_port(program, key, true));
        for (sets, target) in cases {
            if sets.iter().all(|set| *set == KeySet::Any) {
                if let Target::State(id) = target {
                    next = Some(id.index());
                }
                break;
            }
            let Some((at, Some(KeySet::Exact(port)))) = at.map(|at| (at, sets.get(at))) else {
                continue;
            };
            let Ok(port) = u16::try_from(port) else {
                continue;
            };
            let second = match target {
                Target::State(id) => name_of(parser, id.index()),
                Target::Accept => "accept".to_owned(),
                Target::Reject => continue,
            };
            let from_library = keys.iter().zip(sets).all(|(key, set)| {
                let library = KeySet::Exact(REPLICATION_PORT.into());
                !is_udp_port(program, key, false) || *set == KeySet::Any || *set == library
            });
            if uses_library && port == REPLICATION_PORT && from_library {
                return Err(Misuse::PortClaimedTwice {
                    port,
                    first: LIBRARY.to_owned(),
                    second,
                });
            }
            let others: Vec<&KeySet> = (0..sets.len())
                .filter(|other| *other != at)
                .filter_map(|other| sets.get(other))
                .collect();
            let before = known.iter().find(|(key, of, sets, _)| {
                let all = sets.len() == others.len()
                    && sets
                        .iter()
                        .zip(&others)
                        .all(|(set, other)| covers(set, other));
                (*key, *of) == (&keys[at], port) && all
            });
            if let Some((.., Target::State(id))) = before
                && Target::State(*id) != *target
            {
                return Err(Misuse::PortClaimedTwice {
                    port,
                    first: format!("the parser state `{}`", name_of(parser, id.index())),
                    second,
                });
            }
            known.push((&keys[at], port, others, *target));
        }
    }
    Ok(())
}

/// True if all values of `other` are known to be in `set`.
fn covers(set: &KeySet, other: &KeySet) -> bool {
    match (set, other) {
        (KeySet::Any, _) => true,
        (KeySet::Range(low, high), KeySet::Range(from, to)) => low <= from && to <= high,
        (KeySet::Range(low, high), KeySet::Exact(value)) => low <= value && value <= high,
        _ => set == other,
    }
}

fn name_of(parser: &Parser, state: usize) -> String {
    parser
        .states
        .get(state)
        .map_or_else(String::new, |State { name, .. }| name.clone())
}
