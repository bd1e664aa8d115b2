//! Kinds and groups of registers, from annotations and from how the program uses them.

use crate::annotation::Synced;
use crate::codes;
use crate::plan::{Age, Group, Kind, Member, Otherwise, Plan, WINDOW, batch, ring};
use crate::registers::{Element, Register, refused};
use crate::uses::Uses;
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_protect::origin::{Leaf, Origin, Value};
use stateplane_protect::walk::{Access, Found};
use std::collections::BTreeSet;

/// Bits of a location's value.
const BITS: u32 = 64;

/// Fields of standard metadata that measure something.
const MEASURES: [&str; 4] = ["packet_length", "enq_qdepth", "deq_qdepth", "deq_timedelta"];

/// How packets use the registers.
pub(crate) struct Usage<'a> {
    pub(crate) uses: &'a Uses<'a>,
    pub(crate) ingress: &'a Found,
    pub(crate) egress: &'a Found,
}

impl Usage<'_> {
    fn accesses(&self, register: Span) -> impl Iterator<Item = &Access> {
        let all = self.ingress.accesses.iter().chain(&self.egress.accesses);
        all.filter(move |access| access.register == register)
    }

    /// True if each call of the register is one that was followed.
    fn is_followed(&self, register: Span) -> bool {
        let followed: BTreeSet<Span> = self.accesses(register).map(|it| it.span).collect();
        let mut calls = self.uses.calls.iter();
        !self.ingress.exhausted
            && !self.egress.exhausted
            && calls.all(|call| call.register != register || followed.contains(&call.span))
    }

    fn kind(&self, register: &Register<'_>) -> Kind {
        let place = register.place();
        if register.bits == 1 || register.bits > BITS || !self.is_followed(place) {
            return Kind::Opaque;
        }
        let writes = self.accesses(place).filter(|access| access.writes);
        let written: Vec<Change> = writes
            .flat_map(|access| changes(&access.value, &register.name))
            .collect();
        let is = |change: &Change| written.contains(change);
        if is(&Change::Other) || !(is(&Change::Up) || is(&Change::UpOrDown)) {
            return Kind::Opaque;
        }
        let rises = |change: &Change| matches!(change, Change::Up | Change::Kept);
        if written.iter().all(rises) {
            Kind::Counter
        } else if register.element == Element::Int {
            // Numbers below zero are far from those above it if their bits are compared.
            Kind::Opaque
        } else {
            Kind::Gauge
        }
    }

    /// True if the register may belong to what another says of the same index: its values are not
    /// measured, or are set anew when the index is another's.
    fn belongs(&self, register: &Register<'_>, kind: Kind) -> bool {
        let writes = self.accesses(register.place());
        let mut written = writes.flat_map(|access| changes(&access.value, &register.name));
        kind == Kind::Opaque || written.any(|change| change == Change::Constant)
    }

    /// All origins of the indices of a register, if all of them are known.
    fn indices(&self, register: Span) -> Option<Value> {
        if !self.is_followed(register) {
            return None;
        }
        let accesses = self.accesses(register).map(|access| &access.index);
        let all: BTreeSet<Origin> = accesses.flatten().cloned().collect();
        let is_known = |origin: &Origin| {
            let mut leaves = origin.leaves.iter();
            leaves.all(|leaf| !matches!(leaf, Leaf::Unknown(_)))
        };
        let each = self.accesses(register).all(|access| access.index == all);
        (each && !all.is_empty() && all.iter().all(is_known)).then_some(all)
    }

    /// True for ingress alone, false for egress alone, `None` for both or neither.
    fn is_in_ingress(&self, register: Span) -> Option<bool> {
        let has = |found: &Found| found.accesses.iter().any(|it| it.register == register);
        match (has(self.ingress), has(self.egress)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }
}

/// One possible change of a location by a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It holds what it held.
    Kept,
    /// Something is added.
    Up,
    /// Something is taken away or added, or it is what packets measure.
    UpOrDown,
    /// A number that the program has.
    Constant,
    Other,
}

fn changes(value: &Value, register: &str) -> Vec<Change> {
    value
        .iter()
        .map(|origin| change(origin, register))
        .collect()
}

fn change(origin: &Origin, register: &str) -> Change {
    let own = Leaf::State(register.to_owned());
    let recipe = origin.recipe.replace("|+|", "+").replace("|-|", "-");
    if let [leaf] = &origin.leaves[..]
        && recipe == "_"
    {
        return match leaf {
            leaf if *leaf == own => Change::Kept,
            Leaf::Field(field) => {
                let field = field.strip_prefix("standard_metadata.");
                if field.is_some_and(|field| MEASURES.contains(&field)) {
                    Change::UpOrDown
                } else {
                    Change::Other
                }
            }
            _ => Change::Other,
        };
    }
    if origin.leaves.is_empty() {
        return Change::Constant;
    }
    let owns = origin.leaves.iter().filter(|leaf| **leaf == own).count();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let pairs = recipe.chars().zip(recipe.chars().skip(1));
    // A call, or a concatenation.
    let is_other = pairs
        .clone()
        .any(|(one, next)| (is_word(one) && next == '(') || (one == '+' && next == '+'));
    let only = |signs: &str| recipe.chars().all(|c| is_word(c) || signs.contains(c));
    if owns != 1 || is_other {
        return Change::Other;
    }
    match (only("()+"), only("()+-")) {
        (true, _) => Change::Up,
        (_, true) => Change::UpOrDown,
        _ => Change::Other,
    }
}

/// Registers of one group, by position.
struct Draft {
    name: String,
    members: Vec<usize>,
}

/// Puts the registers into groups.
pub(crate) fn plan(
    registers: &[Register<'_>],
    usage: &Usage<'_>,
    diagnostics: &mut Diagnostics,
) -> Plan {
    let kinds: Vec<Kind> = registers
        .iter()
        .map(|register| {
            let named = register.annotation.as_ref().and_then(|it| it.kind);
            named.unwrap_or_else(|| usage.kind(register))
        })
        .collect();
    let drafts = drafts(registers, &kinds, usage);
    let batch = batch(drafts.len());
    let mut groups = Vec::new();
    for (number, draft) in drafts.iter().enumerate() {
        let members: Vec<&Register<'_>> = draft.members.iter().map(|&at| &registers[at]).collect();
        match group(number, draft, &members, &kinds, usage) {
            Ok(group) => groups.push(group),
            Err(complaint) => diagnostics.push(*complaint),
        }
    }
    Plan {
        groups,
        batch,
        window: WINDOW,
    }
}

/// Which registers go together: those of one named group; and, of those that name none, an opaque
/// one, as a key, and those that belong to it and are indexed as it is.
fn drafts(registers: &[Register<'_>], kinds: &[Kind], usage: &Usage<'_>) -> Vec<Draft> {
    let named = |at: usize| {
        let annotation = registers[at].annotation.as_ref();
        annotation.and_then(|annotation| annotation.group.as_ref())
    };
    // One that says how it is measured or bounded stays by itself.
    let is_free = |at: usize| {
        let annotation = registers[at].annotation.as_ref();
        annotation.is_none_or(|it| it.kind.is_none() && it.bound.is_none() && it.group.is_none())
    };
    let mut drafts: Vec<Draft> = Vec::new();
    let mut done = vec![false; registers.len()];
    for at in 0..registers.len() {
        if done[at] {
            continue;
        }
        let mut members = vec![at];
        let mut bits = registers[at].bits;
        let indices = usage.indices(registers[at].place());
        for other in at + 1..registers.len() {
            let joins = match (named(at), named(other)) {
                (Some(one), Some(another)) => one == another,
                (None, None) => {
                    let fits = bits + registers[other].bits <= BITS
                        && registers[at].size == registers[other].size
                        && registers[at].size > 1
                        && is_free(at)
                        && is_free(other);
                    let belong = [at, other]
                        .iter()
                        .all(|&it| usage.belongs(&registers[it], kinds[it]));
                    let mut all = members.iter().chain([&other]);
                    let is_opaque = belong && all.any(|&it| kinds[it] == Kind::Opaque);
                    let blocks = [at, other].map(|it| usage.is_in_ingress(registers[it].place()));
                    fits && is_opaque
                        && blocks[0].is_some()
                        && blocks[0] == blocks[1]
                        && indices.is_some()
                        && indices == usage.indices(registers[other].place())
                }
                _ => false,
            };
            if joins && !done[other] {
                bits = bits.saturating_add(registers[other].bits);
                done[other] = true;
                members.push(other);
            }
        }
        let name = named(at).cloned();
        drafts.push(Draft {
            name: name.unwrap_or_else(|| registers[at].name.clone()),
            members,
        });
    }
    drafts
}

/// One group; what does not fit is told.
fn group(
    number: usize,
    draft: &Draft,
    members: &[&Register<'_>],
    kinds: &[Kind],
    usage: &Usage<'_>,
) -> Result<Group, Box<Diagnostic>> {
    let first = members[0];
    let complain = |other: &Register<'_>, message: String, help: &str| {
        let mut complaint =
            Diagnostic::error(codes::GROUP, other.place(), message).with_help(help.to_owned());
        if other.place() != first.place() {
            complaint = complaint.with_secondary(first.place(), "first of the group");
        }
        Err(Box::new(complaint))
    };
    let name = &draft.name;
    let mut registers = Vec::new();
    let mut lowest_bit = 0;
    for member in members {
        if member.size != first.size {
            let message = format!(
                "registers of group `{name}` have {} and {} elements",
                first.size, member.size
            );
            return complain(
                member,
                message,
                "registers of one group are indexed alike: name other groups",
            );
        }
        registers.push(Member {
            register: member.name.clone(),
            bits: member.bits,
            signed: member.element == Element::Int,
            lowest_bit,
        });
        lowest_bit = lowest_bit.saturating_add(member.bits);
    }
    if members.len() > 1 {
        if lowest_bit > BITS {
            let message =
                format!("an index of group `{name}` has {lowest_bit} bits; {BITS} is the most");
            return complain(members[members.len() - 1], message, "name other groups");
        }
        let blocks: BTreeSet<Option<bool>> = members
            .iter()
            .map(|member| usage.is_in_ingress(member.place()))
            .collect();
        if blocks.len() > 1 || blocks.contains(&None) {
            let message = format!(
                "registers of group `{name}` are used in ingress and in egress, or elsewhere"
            );
            return complain(
                members[1],
                message,
                "a cut may come between ingress and egress of a packet: name other groups",
            );
        }
    }
    let annotations = || {
        members
            .iter()
            .filter_map(|member| member.annotation.as_ref())
    };
    let named = |what: fn(&Synced) -> Option<u64>| annotations().filter_map(what).min();
    let otherwise = annotations().filter_map(|it| it.otherwise).max();
    let kind_named =
        annotations().find_map(|annotation| annotation.kind.map(|kind| (kind, annotation.span)));
    let kind = match members.len() {
        1 => kinds[draft.members[0]],
        _ => Kind::Opaque,
    };
    if let Some((wanted, span)) = kind_named {
        let unlike = members.len() > 1 && wanted != Kind::Opaque;
        if unlike {
            return Err(Box::new(
                Diagnostic::error(
                    codes::GROUP,
                    span,
                    format!("group `{name}` has several registers, which are no {wanted} together"),
                )
                .with_note("values that travel side by side are equal or not: they are opaque")
                .with_help("name a group of its own, or leave the kind out"),
            ));
        }
        let is_gauge = wanted == Kind::Gauge && first.element == Element::Int;
        let is_wide = first.bits > BITS && wanted != Kind::Opaque;
        if is_gauge || is_wide {
            let message = format!("`{}` cannot be a {wanted}", first.declaration.name);
            let help = "leave the kind out: it is opaque, and all but k locations are exact";
            return Err(Box::new(refused(span, message, help)));
        }
    }
    let words = first.words();
    let locations = first.size.saturating_mul(words);
    Ok(Group {
        group: number as u16,
        name: name.clone(),
        kind,
        kind_inferred: kind_named.is_none(),
        registers,
        elements: first.size,
        words,
        locations,
        ring: ring(locations),
        bound: named(|annotation| annotation.bound),
        window_us: named(|annotation| annotation.window),
        age: named(|annotation| annotation.age).map(|us| Age {
            us,
            otherwise: otherwise.unwrap_or(Otherwise::GoOn),
        }),
    })
}
