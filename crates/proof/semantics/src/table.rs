//! Tables (P4-16 1.2.5, §14.2).

use crate::Fault;
use crate::machine::{Frame, Machine, Run, Stop};
use crate::parser::masked;
use crate::types::Type;
use crate::value::Value;
use num_bigint::{BigInt, BigUint};
use stateplane_syntax::tree::{
    ActionRef, Argument, Expr, ExprKind, KeyElement, KeysetElementKind, TableDecl, TableEntry,
    TableProperty, TablePropertyValue,
};
use std::rc::Rc;

/// Condition of a control plane's entry on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// Every key matches.
    Any,
    /// The key is this.
    Exact(BigUint),
    /// The key begins with the first bits of this.
    Prefix {
        /// The bits to be compared with.
        value: BigUint,
        /// Number of compared bits.
        length: u32,
    },
    /// The key is this in the bits of the mask.
    Mask {
        /// The bits to be compared with.
        value: BigUint,
        /// Bits that are compared.
        mask: BigUint,
    },
    /// The key is in a range, both ends included.
    Range {
        /// The lowest key.
        low: BigUint,
        /// The highest key.
        high: BigUint,
    },
}

/// An entry of the control plane.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    pub(crate) matches: Vec<Match>,
    pub(crate) priority: i64,
    pub(crate) action: String,
    pub(crate) data: Vec<BigUint>,
}

/// An entry of a table.
#[derive(Debug)]
pub(crate) struct Entry<'p> {
    keys: Vec<Key>,
    priority: i64,
    action: &'p str,
    args: &'p [Argument],
    data: Vec<Value>,
}

#[derive(Debug)]
enum Key {
    Any,
    Exact(Value),
    Mask { value: BigInt, mask: BigInt },
    Range { low: BigInt, high: BigInt },
}

impl Key {
    /// True if it matches; `None` if that is not known.
    fn matches(&self, value: &Value) -> Run<Option<bool>> {
        Ok(match self {
            Key::Any => Some(true),
            Key::Exact(expected) => value.equals(expected)?,
            Key::Mask { mask, .. } if *mask == BigInt::ZERO => Some(true),
            Key::Mask {
                value: expected,
                mask,
            } => value.number().map(|value| masked(value, expected, mask)),
            Key::Range { low, high } => value.number().map(|value| (low..=high).contains(&value)),
        })
    }

    /// Bits that are compared.
    fn length(&self, width: u64) -> u64 {
        match self {
            Key::Exact(_) => width,
            Key::Mask { mask, .. } => (0..width).filter(|bit| mask.bit(*bit)).count() as u64,
            Key::Any | Key::Range { .. } => 0,
        }
    }
}

/// Properties of a table.
struct Properties<'p> {
    keys: &'p [KeyElement],
    actions: &'p [ActionRef],
    entries: &'p [TableEntry],
    /// True if the first entry that matches wins.
    in_order: bool,
    default: Option<&'p Expr>,
    largest_wins: Option<&'p Expr>,
    delta: Option<&'p Expr>,
}

fn properties(table: &TableDecl) -> Properties<'_> {
    let mut found = Properties {
        keys: &[],
        actions: &[],
        entries: &[],
        in_order: false,
        default: None,
        largest_wins: None,
        delta: None,
    };
    let fixed = |property: &TableProperty| property.is_const;
    for property in &table.properties {
        match (&property.value, property.name.as_str()) {
            (TablePropertyValue::Key(keys), _) => found.keys = keys,
            (TablePropertyValue::Actions(actions), _) => found.actions = actions,
            (TablePropertyValue::Entries(entries), _) => {
                found.entries = entries;
                found.in_order = fixed(property);
            }
            (TablePropertyValue::Expr(expr), "default_action") => found.default = Some(expr),
            (TablePropertyValue::Expr(expr), "largest_priority_wins") => {
                found.largest_wins = Some(expr);
            }
            (TablePropertyValue::Expr(expr), "priority_delta") => found.delta = Some(expr),
            _ => {}
        }
    }
    found
}

/// Result of a lookup.
struct Choice<'p> {
    hit: bool,
    action: &'p str,
    args: &'p [Argument],
    data: Vec<Value>,
}

impl<'p> Machine<'p> {
    /// Evaluates the keys in order, looks them up, and runs the action (§14.2.3). `scope`
    /// is that of the declarations around the table.
    pub(crate) fn apply_table(&mut self, table: &'p TableDecl, scope: usize) -> Run<Value> {
        let properties = properties(table);
        // Keys and arguments see the declarations, and not what the body declares.
        let depth = self.frames.len();
        self.frames.push(Frame {
            outer: Some(scope),
            ..Frame::default()
        });
        let mut keys = Vec::new();
        let order: Vec<&'p KeyElement> = if self.is(Fault::KeysFromTheRight) {
            properties.keys.iter().rev().collect()
        } else {
            properties.keys.iter().collect()
        };
        for key in order {
            keys.push(self.eval(&key.expr)?);
        }
        if self.is(Fault::KeysFromTheRight) {
            keys.reverse();
        }
        let path = format!("{}.{}", self.here(), table.name);
        let entries = match self.entries.get(&path) {
            Some(entries) => entries.clone(),
            None => {
                let entries = Rc::new(self.all_entries(&path, &properties, &keys)?);
                self.entries.insert(path, entries.clone());
                entries
            }
        };
        let choice = match self.lookup(&properties, &entries, &keys)? {
            Some(entry) => Choice {
                hit: true,
                action: entry.action,
                args: entry.args,
                data: entry.data.clone(),
            },
            None => default_action(properties.default)?,
        };
        let Choice {
            hit,
            action: name,
            args,
            data,
        } = choice;
        if hit || !self.is(Fault::MissesRunNothing) {
            match self.find_action(name) {
                Some((action, outer)) => {
                    let bound = self.bind(&action.params, args, &data)?;
                    self.frames.truncate(depth);
                    self.run_body(bound, outer, &action.body)?;
                }
                None if name == "NoAction" => {}
                None => return Err(Stop::unsupported(format!("the action {name}"))),
            }
        }
        self.frames.truncate(depth);
        Ok(Value::Applied {
            hit: hit != self.is(Fault::HitsAreMisses),
            action: name.to_owned(),
        })
    }

    /// The entries of the program with their priorities (§14.2.1.4.1), and those of the
    /// control plane.
    fn all_entries(
        &mut self,
        path: &str,
        properties: &Properties<'p>,
        keys: &[Value],
    ) -> Run<Vec<Entry<'p>>> {
        let count = properties.entries.len() as i64;
        let largest = match properties.largest_wins {
            Some(expr) => self.eval(expr)?.truth()?,
            None => true,
        };
        let delta = match properties.delta {
            Some(expr) => i64::from(self.count(expr)?),
            None => 1,
        };
        let written = properties
            .entries
            .iter()
            .any(|entry| entry.priority.is_some());
        let mut entries = Vec::new();
        let mut last = 0;
        for (number, entry) in (0..).zip(properties.entries) {
            last = match &entry.priority {
                Some(priority) => i64::from(self.count(priority)?),
                None if written && largest => last - delta,
                None if written => last + delta,
                None if largest => 1 + (count - 1 - number) * delta,
                None => 1 + number * delta,
            };
            let all = match entry.keyset.elements.as_slice() {
                [only] => matches!(
                    only.kind,
                    KeysetElementKind::Default | KeysetElementKind::DontCare
                ),
                _ => false,
            };
            let mut parts = Vec::new();
            for (position, key) in keys.iter().enumerate() {
                parts.push(match entry.keyset.elements.get(position) {
                    _ if all => Key::Any,
                    Some(element) => {
                        let ty = key.ty().ok_or_else(|| Stop::unsupported("such a key"))?;
                        self.key(&element.kind, &ty)?
                    }
                    None => return Err(Stop::unsupported("an entry with too few keys")),
                });
            }
            entries.push(Entry {
                keys: parts,
                // Smaller numbers win where the largest do not.
                priority: match (properties.in_order, largest) {
                    (true, _) => count - number,
                    (false, true) => last,
                    (false, false) => -last,
                },
                action: entry.action.path.name.as_str(),
                args: entry.action.args.as_deref().unwrap_or(&[]),
                data: Vec::new(),
            });
        }
        for added in self.added.get(path).cloned().unwrap_or_default() {
            let action = properties
                .actions
                .iter()
                .find(|action| action.path.name.as_str() == added.action);
            let action = action.ok_or_else(|| Stop::unsupported("an action of no table"))?;
            let number = |value: &BigUint| BigInt::from(value.clone());
            let mut parts = Vec::new();
            for (given, key) in added.matches.iter().zip(keys) {
                let ty = key.ty().ok_or_else(|| Stop::unsupported("such a key"))?;
                parts.push(match given {
                    Match::Any => Key::Any,
                    Match::Exact(value) => Key::Exact(written_as(number(value), &ty)?),
                    Match::Prefix { value, length } => {
                        let width = ty.bits().unwrap_or(0);
                        let rest = width.saturating_sub(*length);
                        let ones = |bits: u32| (BigInt::from(1) << bits) - 1;
                        Key::Mask {
                            value: number(value),
                            mask: ones(width) - ones(rest),
                        }
                    }
                    Match::Mask { value, mask } => Key::Mask {
                        value: number(value),
                        mask: number(mask),
                    },
                    Match::Range { low, high } => Key::Range {
                        low: number(low),
                        high: number(high),
                    },
                });
            }
            let data = added.data.iter().map(|value| Value::Integer(number(value)));
            entries.push(Entry {
                keys: parts,
                priority: added.priority,
                action: action.path.name.as_str(),
                args: action.args.as_deref().unwrap_or(&[]),
                data: data.collect(),
            });
        }
        Ok(entries)
    }

    fn key(&mut self, kind: &'p KeysetElementKind, ty: &Type) -> Run<Key> {
        let mut number = |expr: &'p Expr| {
            let value = self.eval(expr)?.fit(ty)?;
            let number = value.number().cloned();
            number.ok_or(Stop::Unknown("a key of an entry"))
        };
        Ok(match kind {
            KeysetElementKind::Default | KeysetElementKind::DontCare => Key::Any,
            KeysetElementKind::Mask { value, mask } => Key::Mask {
                value: number(value)?,
                mask: number(mask)?,
            },
            KeysetElementKind::Range { low, high } => Key::Range {
                low: number(low)?,
                high: number(high)?,
            },
            KeysetElementKind::Value(value) => Key::Exact(self.eval(value)?.fit(ty)?),
        })
    }

    fn lookup<'e>(
        &self,
        properties: &Properties<'p>,
        entries: &'e [Entry<'p>],
        keys: &[Value],
    ) -> Run<Option<&'e Entry<'p>>> {
        let kinds = properties.keys.iter().map(|key| key.match_kind.as_str());
        let prefix = kinds.clone().position(|kind| kind == "lpm");
        let prioritised = kinds
            .clone()
            .any(|kind| matches!(kind, "ternary" | "range" | "optional"));
        let mut best: Option<(i64, &Entry<'p>)> = None;
        for entry in entries {
            let mut all = Some(true);
            for (key, value) in entry.keys.iter().zip(keys) {
                all = match (all, key.matches(value)?) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
            }
            if !all.ok_or(Stop::Unknown("a key of a table"))? {
                continue;
            }
            let rank = match prefix {
                Some(prefix) if !prioritised => {
                    let width = keys[prefix].ty().and_then(|ty| ty.bits()).unwrap_or(0);
                    entry.keys[prefix].length(u64::from(width)) as i64
                }
                _ if prioritised => entry.priority,
                _ => 0,
            };
            let rank = if self.is(Fault::LeastRankWins) {
                -rank
            } else {
                rank
            };
            match best {
                Some((other, _)) if other > rank => {}
                // Two of one rank: either may win.
                Some((other, _)) if other == rank => {
                    return Err(Stop::Unknown("which of two entries wins"));
                }
                _ => best = Some((rank, entry)),
            }
        }
        Ok(best.map(|(_, entry)| entry))
    }
}

/// A number of the control plane as a value of a key's type.
fn written_as(value: BigInt, ty: &Type) -> Run<Value> {
    Ok(match ty {
        Type::Number(width) => Value::Number(*width, Some(width.wrap(&value))),
        Type::Bool => Value::Bool(Some(value != BigInt::ZERO)),
        Type::Enum(decl) if decl.underlying.is_some() => Value::Enum(decl.clone(), Some(value)),
        _ => return Err(Stop::unsupported("a key of such a type")),
    })
}

fn default_action(default: Option<&Expr>) -> Run<Choice<'_>> {
    let (action, args): (&str, &[Argument]) = match default.map(|default| &default.kind) {
        None => ("NoAction", &[]),
        Some(ExprKind::Name(path)) => (path.name.as_str(), &[]),
        Some(ExprKind::Call { callee, args, .. }) => match &callee.kind {
            ExprKind::Name(path) => (path.name.as_str(), args),
            _ => return Err(Stop::unsupported("such a default action")),
        },
        Some(_) => return Err(Stop::unsupported("such a default action")),
    };
    Ok(Choice {
        hit: false,
        action,
        args,
        data: Vec::new(),
    })
}
