//! Tables and their entries.

use super::features::Feature;
use super::profile::Profile;
use super::{Callable, Direction, Maker};
use crate::expr::{Binary, Expr, Ty};
use crate::session::{Change, Write};
use num_bigint::BigUint;
use stateplane_runtime::{Entry, Invocation, KeyMatch};
use std::collections::BTreeSet;

/// A table as statements use it.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) actions: Vec<Callable>,
}

const NO_ACTION: &str = "NoAction";

/// A table as the control plane writes it.
struct Written {
    /// Full control-plane name.
    path: String,
    actions: Vec<Callable>,
    profile: Option<Profile>,
    ages: bool,
    metered: bool,
}

/// A match kind of v1model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Exact,
    Lpm,
    Ternary,
    Range,
    Optional,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Lpm => "lpm",
            Kind::Ternary => "ternary",
            Kind::Range => "range",
            Kind::Optional => "optional",
        }
    }
}

fn ones(width: u32) -> BigUint {
    (BigUint::from(1u32) << width) - 1u32
}

impl Maker {
    /// Declares a table of a control named `control`, with entries in the program or
    /// for the control plane to write.
    pub(super) fn declare_table(&mut self, control: &str) {
        let name = self.fresh("table");
        let (counter, meter) = self.direct_objects();
        let indirect = self.has(Feature::Profile) && self.c.chance(60);
        let shared = (indirect && self.c.chance(50))
            .then(|| self.c.pick(&self.objects.profiles).cloned())
            .flatten();
        let mut actions = Vec::new();
        let mut bound = Vec::new();
        let mut reads_meter = false;
        for _ in 0..self.c.between(1, 3) {
            let reading = meter
                .as_ref()
                .map(|meter| format!("{meter}.read(meta.m0);"));
            let more = reading.as_deref().filter(|_| self.c.chance(60));
            reads_meter |= more.is_some();
            let action = self.declare_action(true, more);
            if let Some(args) = self.bound_arguments(&action) {
                actions.push(action);
                bound.push(args);
            }
        }
        let others = shared.iter().flat_map(|profile| &profile.actions);
        let others: Vec<Callable> = others
            .filter(|action| action.name != NO_ACTION)
            .cloned()
            .collect();
        for action in others {
            if let Some(args) = self.bound_arguments(&action) {
                actions.push(action);
                bound.push(args);
            }
        }
        actions.push(Callable {
            name: NO_ACTION.to_owned(),
            params: Vec::new(),
            result: None,
        });
        bound.push(String::new());
        let keys = self.keys();
        let profile = (indirect && !keys.is_empty()).then(|| {
            shared.unwrap_or_else(|| {
                let profile = self.declare_profile(control, actions.clone());
                // Only the table of a direct meter may run what reads it.
                if !reads_meter {
                    self.objects.profiles.push(profile.clone());
                }
                profile
            })
        });
        let ages = self.has(Feature::Aging) && self.c.chance(50);

        self.open(format_args!("table {name}"));
        if !keys.is_empty() {
            self.open("key =");
            for (number, (kind, expr)) in keys.iter().enumerate() {
                self.line(format_args!(
                    "{expr} : {} @name(\"key{number}\");",
                    kind.word()
                ));
            }
            let inputs = profile.iter().flat_map(|profile| &profile.inputs).flatten();
            for (number, input) in inputs.enumerate() {
                self.line(format_args!("{input} : selector @name(\"input{number}\");"));
            }
            self.close();
        }
        self.open("actions =");
        for (action, args) in actions.iter().zip(&bound) {
            let brackets = if args.is_empty() {
                String::new()
            } else {
                format!("({args})")
            };
            self.line(format_args!("{}{brackets};", action.name));
        }
        self.close();
        self.default_action(control, &name, &actions, &bound);
        if let Some(profile) = &profile {
            self.line(format_args!("implementation = {};", profile.name));
        }
        if ages {
            self.line("support_timeout = true;");
        }
        if !keys.is_empty() {
            let written = Written {
                path: format!("{control}.{name}"),
                actions: actions.clone(),
                profile,
                ages,
                metered: meter.is_some(),
            };
            self.entries(&written, &keys, &bound);
        }
        if let Some(counter) = counter {
            self.line(format_args!("counters = {counter};"));
        }
        if let Some(meter) = meter {
            self.line(format_args!("meters = {meter};"));
        }
        self.close();
        self.objects.tables.push(Table { name, actions });
    }

    fn direct_objects(&mut self) -> (Option<String>, Option<String>) {
        let counter = (self.has(Feature::Counter) && self.c.chance(50)).then(|| {
            let (name, kind) = (self.fresh("hits"), self.counter_kind());
            self.line(format_args!("direct_counter({kind}) {name};"));
            name
        });
        let meter = (self.has(Feature::Meter) && self.c.chance(50)).then(|| {
            let (name, kind) = (self.fresh("speed"), self.meter_kind());
            self.line(format_args!("direct_meter<bit<8>>({kind}) {name};"));
            name
        });
        (counter, meter)
    }

    /// The arguments of an action's directed parameters.
    fn bound_arguments(&mut self, action: &Callable) -> Option<String> {
        let mut args = Vec::new();
        for (direction, ty) in &action.params {
            match direction {
                Direction::Data => {}
                Direction::In => {
                    self.calls = false;
                    args.push(self.expr(*ty, 1).to_string());
                    self.calls = true;
                }
                Direction::Out | Direction::InOut => args.push(self.writable(*ty)?),
            }
        }
        Some(args.join(", "))
    }

    fn keys(&mut self) -> Vec<(Kind, Expr)> {
        let mut keys: Vec<(Kind, Expr)> = Vec::new();
        let simple = self.c.chance(50);
        for _ in 0..self.c.below(4) {
            let kind = if simple {
                self.c.one_of([Kind::Exact, Kind::Exact, Kind::Lpm])
            } else {
                self.c.one_of([
                    Kind::Exact,
                    Kind::Lpm,
                    Kind::Ternary,
                    Kind::Range,
                    Kind::Optional,
                ])
            };
            let one_prefix = kind == Kind::Lpm && keys.iter().any(|(kind, _)| *kind == Kind::Lpm);
            let kind = if one_prefix { Kind::Exact } else { kind };
            let expr = self.key(kind);
            keys.push((kind, expr));
        }
        keys
    }

    /// A key that a selector hashes.
    pub(super) fn key_of_selector(&mut self) -> Expr {
        self.key(Kind::Exact)
    }

    fn key(&mut self, kind: Kind) -> Expr {
        self.calls = false;
        let expr = match (kind, self.read_any()) {
            (Kind::Exact | Kind::Optional, Some(read)) if self.c.chance(30) => read,
            (Kind::Exact, _) if self.c.chance(15) => self.expr(Ty::Bool, 1),
            (_, Some(read)) => {
                let width = read.ty().width().unwrap_or(1);
                let number = super::expression::cast_to(Ty::Bits(width), read);
                match self.c.below(3) {
                    // Keys that entries hit by chance.
                    0 if width > 2 => {
                        let mask = Expr::number(Ty::Bits(width), &BigUint::from(3u32));
                        Expr::Binary(Binary::And, Box::new(number), Box::new(mask))
                    }
                    1 if width > 4 => Expr::Slice(Box::new(number), 3, 0),
                    _ => number,
                }
            }
            (_, None) => self.expr(Ty::Bits(8), 2),
        };
        self.calls = true;
        expr
    }

    pub(super) fn data(&mut self, action: &Callable) -> Vec<(Ty, BigUint)> {
        let types = action
            .params
            .iter()
            .filter(|(direction, _)| *direction == Direction::Data);
        types
            .map(|(_, ty)| (*ty, self.c.value(ty.width().unwrap_or(1))))
            .collect()
    }

    /// A call of an action as tables write it.
    fn call_text(action: &Callable, bound: &str, data: &[(Ty, BigUint)]) -> String {
        let mut args: Vec<String> = Vec::new();
        if !bound.is_empty() {
            args.push(bound.to_owned());
        }
        args.extend(data.iter().map(|(ty, value)| constant_text(*ty, value)));
        format!("{}({})", action.name, args.join(", "))
    }

    fn default_action(
        &mut self,
        control: &str,
        table: &str,
        actions: &[Callable],
        bound: &[String],
    ) {
        let which = self.c.below(actions.len());
        let (action, bound) = (&actions[which], &bound[which]);
        if !bound.is_empty() || self.c.chance(20) {
            return;
        }
        let data = self.data(action);
        let fixed = if self.c.chance(30) { "const " } else { "" };
        let call = Self::call_text(action, bound, &data);
        self.line(format_args!("{fixed}default_action = {call};"));
        if fixed.is_empty() && self.c.chance(30) {
            let other = self.c.below(actions.len());
            let data = self.data(&actions[other]);
            self.writes.push(Write::Default {
                table: format!("{control}.{table}"),
                action: actions[other].name.clone(),
                data: data.into_iter().map(|(_, value)| value).collect(),
            });
        }
    }

    pub(super) fn key_match(&mut self, kind: Kind, ty: Ty) -> KeyMatch {
        let width = ty.width().unwrap_or(1);
        let value = self.c.value(width);
        match kind {
            Kind::Exact => KeyMatch::Exact(value),
            Kind::Optional if self.c.chance(70) => KeyMatch::Exact(value),
            Kind::Optional => KeyMatch::Any,
            Kind::Lpm => {
                let length = self.c.between(0, width);
                let mask = ones(width) ^ ones(width - length);
                KeyMatch::Prefix {
                    value: value & mask,
                    length,
                }
            }
            Kind::Ternary => {
                let mask = self.c.value(width);
                KeyMatch::Mask {
                    value: value & &mask,
                    mask,
                }
            }
            Kind::Range => {
                let other = self.c.value(width);
                KeyMatch::Range {
                    low: value.clone().min(other.clone()),
                    high: value.max(other),
                }
            }
        }
    }

    /// Entries in the program, or writes, or both.
    fn entries(&mut self, table: &Written, keys: &[(Kind, Expr)], bound: &[String]) {
        let ordered = keys
            .iter()
            .any(|(kind, _)| !matches!(kind, Kind::Exact | Kind::Lpm));
        let in_program = table.profile.is_none() && self.c.chance(50);
        let fixed = in_program && self.c.chance(60);
        if in_program {
            self.program_entries(table, keys, bound, ordered && !fixed, fixed);
        }
        if fixed {
            return;
        }
        for _ in 0..self.c.between(1, 8) {
            let matches = self.matches(keys);
            let priority = if ordered { self.c.between(1, 6) } else { 0 };
            self.write_entry(table, matches, priority);
        }
    }

    fn matches(&mut self, keys: &[(Kind, Expr)]) -> Vec<KeyMatch> {
        let keys = keys.iter();
        keys.map(|(kind, expr)| self.key_match(*kind, expr.ty()))
            .collect()
    }

    /// Entries in the program: all of them, if they are `fixed`.
    fn program_entries(
        &mut self,
        table: &Written,
        keys: &[(Kind, Expr)],
        bound: &[String],
        prioritised: bool,
        fixed: bool,
    ) {
        let prioritised = prioritised && self.c.chance(70);
        if prioritised {
            let largest = self.c.chance(50);
            self.line(format_args!("largest_priority_wins = {largest};"));
            if self.c.chance(50) {
                let delta = self.c.between(1, 10);
                self.line(format_args!("priority_delta = {delta};"));
            }
        }
        self.open(if fixed {
            "const entries ="
        } else {
            "entries ="
        });
        // Tables with exact keys alone must not have one key twice.
        let mut taken = BTreeSet::new();
        for number in 0..self.c.between(1, 8) {
            let matches = self.matches(keys);
            let which = self.c.below(table.actions.len());
            let action = &table.actions[which];
            let data = self.data(action);
            let texts: Vec<String> = matches
                .iter()
                .zip(keys)
                .map(|(given, (_, expr))| key_text(given, expr.ty()))
                .collect();
            let texts = texts.join(", ");
            if !taken.insert(texts.clone()) {
                continue;
            }
            let call = Self::call_text(action, &bound[which], &data);
            let constant = if !fixed && self.c.chance(30) {
                "const "
            } else {
                ""
            };
            let priority = if prioritised && (number == 0 || self.c.chance(50)) {
                format!("priority = {}: ", self.c.between(100, 120))
            } else {
                String::new()
            };
            self.line(format_args!("{constant}{priority}({texts}): {call};"));
        }
        self.close();
    }

    /// An entry of the control plane, at first or later, and what happens to it.
    fn write_entry(&mut self, table: &Written, keys: Vec<KeyMatch>, priority: u32) {
        let insert = self.entry_write(Change::Insert, table, &keys, priority);
        if self.c.chance(15) {
            self.updates.push(insert);
        } else {
            self.writes.push(insert);
            if table.ages && self.c.chance(60) {
                self.writes.push(Write::IdleTimeout {
                    table: table.path.clone(),
                    keys: keys.clone(),
                    priority,
                    timeout: u64::from(self.c.between(100, 10_000)),
                });
            }
            if table.metered && self.c.chance(60) {
                let config = self.meter_config();
                self.writes.push(Write::EntryMeter {
                    table: table.path.clone(),
                    keys: keys.clone(),
                    priority,
                    config,
                });
            }
        }
        if self.c.chance(25) {
            let change = self.change();
            let write = self.entry_write(change, table, &keys, priority);
            self.updates.push(write);
        }
    }

    fn entry_write(
        &mut self,
        change: Change,
        table: &Written,
        keys: &[KeyMatch],
        priority: u32,
    ) -> Write {
        let keys = keys.to_vec();
        if let Some(profile) = &table.profile {
            return Write::Indirect {
                change,
                table: table.path.clone(),
                keys,
                priority,
                runs: self.runs(profile),
            };
        }
        let Invocation { action, data } = self.invocation(&table.actions);
        Write::Entry {
            change,
            table: table.path.clone(),
            entry: Entry {
                keys,
                priority,
                action,
                data,
            },
        }
    }
}

/// A constant of a type as programs write it.
fn constant_text(ty: Ty, value: &BigUint) -> String {
    match ty {
        Ty::Serial(_, width) => format!("({ty}){}", Expr::number(Ty::Bits(width), value)),
        _ => Expr::number(ty, value).to_string(),
    }
}

fn key_text(given: &KeyMatch, ty: Ty) -> String {
    let text = |value: &BigUint| constant_text(ty, value);
    let width = ty.width().unwrap_or(1);
    match given {
        KeyMatch::Exact(value) => text(value),
        KeyMatch::Prefix { value, length } => {
            let mask = ones(width) ^ ones(width - length);
            format!("{} &&& {}", text(value), text(&mask))
        }
        KeyMatch::Mask { value, mask } => format!("{} &&& {}", text(value), text(mask)),
        KeyMatch::Range { low, high } => format!("{} .. {}", text(low), text(high)),
        KeyMatch::Any => "_".to_owned(),
    }
}
