//! A walk over a block as packets take it: what comes from where, which state is used under
//! which index, and what is read and written.
//!
//! Branches are both taken and joined; tables run each of their actions. Loops are walked
//! once, with what they write unknown.

mod call;
mod scope;
mod statement;

use crate::origin::{Leaf, Value, constant, either, leaf, made, slice, unknown};
use crate::path::parts;
use scope::{Binding, Declared};
use stateplane_diagnostics::{SourceMap, Span};
use stateplane_syntax::tree::{ControlDecl, Expr, ExprKind, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use scope::Scope;
pub use scope::type_name;

/// Maximum number of statements of a walk, calls counted anew.
const MOST_STEPS: usize = 200_000;
/// Maximum nesting of calls.
const DEEPEST: usize = 64;

/// A read or write of a replicated register.
#[derive(Clone, Debug)]
pub struct Access {
    /// Position of the register's declaration.
    pub register: Span,
    /// True for a write.
    pub writes: bool,
    /// Origins of the index.
    pub index: Value,
    /// The index as written.
    pub index_span: Span,
    /// The variable read into, or the value written.
    pub operand: Span,
    /// Written value.
    pub value: Value,
    /// The whole statement; `None` if it is not one by itself.
    pub statement: Option<Span>,
    /// The call.
    pub span: Span,
    /// True if it stands in an action that is declared outside of controls.
    pub in_free_action: bool,
}

/// Result of a walk.
#[derive(Default)]
pub struct Found {
    /// Reads and writes of the registers that are followed.
    pub accesses: Vec<Access>,
    /// Calls of registers that are not replicated: whether they write, and where.
    pub local: Vec<(Span, bool)>,
    /// Paths that are read, with the first position of each.
    pub reads: BTreeMap<String, Span>,
    /// Paths that are written.
    pub writes: BTreeMap<String, Span>,
    /// Headers made valid.
    pub validated: BTreeMap<String, Span>,
    /// True if headers may come or go.
    pub restructures: bool,
    /// Names of extern functions called, and `exit`.
    pub effects: BTreeMap<Span, String>,
    /// Controls that contain replicated state, by name, with the positions where they are applied.
    pub on_the_way: BTreeSet<String>,
    /// Positions of the calls that apply these controls.
    pub applies: BTreeSet<Span>,
    /// Paths that are emitted, in order.
    pub emitted: Vec<String>,
    /// True if the walk was given up.
    pub exhausted: bool,
}

pub(crate) type Env = BTreeMap<String, Value>;

/// A walk that goes on.
pub struct Walk<'t> {
    sources: &'t SourceMap,
    declared: Declared<'t>,
    /// Replicated registers by place of declaration, and their names.
    replicated: &'t BTreeMap<Span, String>,
    env: Env,
    /// No packet gets here.
    dead: bool,
    steps: usize,
    depth: usize,
    /// Names of the controls being applied, and the calls.
    stack: Vec<(String, Option<Span>)>,
    /// Statement being walked.
    statement: Option<Span>,
    in_free_action: bool,
    scopes: usize,
    /// All that was found so far.
    pub found: Found,
}

impl<'t> Walk<'t> {
    /// A walk that follows the registers `replicated`: names by place of declaration.
    pub fn new(
        sources: &'t SourceMap,
        tree: &'t Program,
        replicated: &'t BTreeMap<Span, String>,
    ) -> Self {
        Self {
            sources,
            declared: Declared::new(tree),
            replicated,
            env: Env::new(),
            dead: false,
            steps: 0,
            depth: 0,
            stack: Vec::new(),
            statement: None,
            in_free_action: false,
            scopes: 0,
            found: Found::default(),
        }
    }

    /// Walks a block of the pipeline, whose parameters get the names `roots`.
    pub fn block(&mut self, control: &'t ControlDecl, roots: &[&str]) {
        let scope = Scope::new(self.fresh("block"), Some(self.declared.globals()));
        for (param, root) in control.signature.params.iter().zip(roots) {
            scope.bind(&param.name, Binding::Way((*root).to_owned()));
        }
        self.stack.push((control.signature.name.to_string(), None));
        self.control(control, &scope);
        self.stack.pop();
    }

    /// The value of an expression in the names of a block's parameters, before the block
    /// begins.
    pub(crate) fn key(&mut self, expr: &'t Expr, control: &ControlDecl, roots: &[&str]) -> Value {
        let scope = Scope::new(self.fresh("key"), Some(self.declared.globals()));
        for (param, root) in control.signature.params.iter().zip(roots) {
            scope.bind(&param.name, Binding::Way((*root).to_owned()));
        }
        self.eval(expr, &scope)
    }

    fn fresh(&mut self, what: &str) -> String {
        self.scopes += 1;
        format!("%{}.{what}", self.scopes)
    }

    fn text(&self, span: Span) -> String {
        let text = self.sources.snippet(span);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Text of a number in decimal, or of another expression as written.
    fn number(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Number(number) => number.value.to_string(),
            _ => self.text(expr.span),
        }
    }

    /// The path that an expression denotes, by the names of the block's roots.
    fn way(&self, expr: &Expr, scope: &Rc<Scope<'t>>) -> Option<String> {
        let mut parts = parts(expr)?;
        let first = parts.first()?.clone();
        let (name, index) = match first.split_once('[') {
            Some((name, _)) => (name, &first[name.len()..]),
            None => (first.as_str(), ""),
        };
        let Some(Binding::Way(way)) = scope.find(name) else {
            return None;
        };
        parts[0] = format!("{way}{index}");
        Some(parts.join("."))
    }

    fn get(&self, way: &str) -> Value {
        if let Some(value) = self.env.get(way) {
            return value.clone();
        }
        let mut front = way;
        while let Some((shorter, _)) = front.rsplit_once(['.', '[']) {
            front = shorter;
            if self.env.contains_key(front) {
                return unknown(&format!("a part of what `{front}` was set to"));
            }
        }
        let inner = format!("{way}.");
        if self
            .env
            .range(inner.clone()..)
            .next()
            .is_some_and(|(k, _)| k.starts_with(&inner))
        {
            return unknown(&format!("`{way}`, of which parts were set"));
        }
        if way.starts_with('%') {
            Value::new()
        } else {
            leaf(Leaf::Field(way.to_owned()))
        }
    }

    fn set(&mut self, way: &str, value: Value, span: Span) {
        let inner = format!("{way}.");
        let parts: Vec<String> = self
            .env
            .range(inner.clone()..)
            .take_while(|(known, _)| known.starts_with(&inner))
            .map(|(known, _)| known.clone())
            .collect();
        for part in parts {
            self.env.remove(&part);
        }
        self.env.insert(way.to_owned(), value);
        self.found.writes.entry(way.to_owned()).or_insert(span);
    }

    /// Makes what an expression leads to unknown, as something wrote it.
    fn spoil(&mut self, expr: &Expr, scope: &Rc<Scope<'t>>, value: Value) {
        let target = match &expr.kind {
            ExprKind::Slice { base, .. } | ExprKind::PlusSlice { base, .. } => base,
            _ => expr,
        };
        if let Some(way) = self.way(target, scope) {
            self.set(&way, value, expr.span);
        }
    }

    fn join(&mut self, other: Env, other_dead: bool) {
        if other_dead {
            return;
        }
        if self.dead {
            self.env = other;
            self.dead = false;
            return;
        }
        let one = std::mem::take(&mut self.env);
        let mut joined = Env::new();
        for way in one.keys().chain(other.keys()) {
            if joined.contains_key(way) {
                continue;
            }
            let value = |env: &Env| match env.get(way) {
                Some(value) => value.clone(),
                None if way.starts_with('%') => Value::new(),
                None => leaf(Leaf::Field(way.clone())),
            };
            joined.insert(way.clone(), either(value(&one), &value(&other)));
        }
        self.env = joined;
    }

    fn eval(&mut self, expr: &'t Expr, scope: &Rc<Scope<'t>>) -> Value {
        if let Some(way) = self.way(expr, scope) {
            self.found.reads.entry(way.clone()).or_insert(expr.span);
            return self.get(&way);
        }
        match &expr.kind {
            ExprKind::Name(path) => match scope.find(path.name.as_str()) {
                Some(Binding::Value(value)) => value,
                _ => constant(path.name.as_str()),
            },
            ExprKind::Member { base, member } => match &base.kind {
                ExprKind::Type(_) => constant(&format!("{}.{member}", self.text(base.span))),
                _ => {
                    let base = self.eval(base, scope);
                    made(&["", &format!(".{member}")], &[base])
                }
            },
            ExprKind::Index { base, index } => {
                let values = [self.eval(base, scope), self.eval(index, scope)];
                made(&["", "[", "]"], &values)
            }
            ExprKind::Slice { base, high, low } => {
                let bits = format!("{}:{}", self.number(high), self.number(low));
                let base = self.eval(base, scope);
                slice(&base, &bits)
            }
            ExprKind::PlusSlice { base, low, width } => {
                let width = self.text(width.span);
                let values = [self.eval(base, scope), self.eval(low, scope)];
                made(&["", "[", &format!("+:{width}]")], &values)
            }
            ExprKind::Unary { op, operand } => {
                let operand = self.eval(operand, scope);
                made(&[op.symbol(), ""], &[operand])
            }
            ExprKind::Binary {
                op, left, right, ..
            } => {
                let values = [self.eval(left, scope), self.eval(right, scope)];
                made(&["(", op.symbol(), ")"], &values)
            }
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                self.eval(condition, scope);
                let then = self.eval(then, scope);
                let otherwise = self.eval(otherwise, scope);
                either(then, &otherwise)
            }
            ExprKind::Cast { operand, .. } => self.eval(operand, scope),
            ExprKind::Number(number) => constant(&number.value.to_string()),
            ExprKind::Call { callee, args, .. } => self.call(callee, args, expr.span, scope),
            ExprKind::List(items) => {
                let values: Vec<Value> = items.iter().map(|item| self.eval(item, scope)).collect();
                let commas = vec![","; values.len()];
                made(&commas, &values)
            }
            ExprKind::Struct { fields, .. } => {
                let values: Vec<Value> = fields
                    .iter()
                    .map(|field| self.eval(&field.value, scope))
                    .collect();
                let commas = vec![","; values.len()];
                made(&commas, &values)
            }
            _ => constant(&self.text(expr.span)),
        }
    }
}
