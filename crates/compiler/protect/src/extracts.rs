//! Headers that a parser extracts, and its other reads of the packet.

use crate::path::parts;
use stateplane_diagnostics::Span;
use stateplane_syntax::tree::{
    Argument, Declaration, Expr, ExprKind, ParserDecl, ParserLocal, Program, Stmt, StmtKind,
    TransitionKind,
};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum nesting of parsers.
const DEEPEST: usize = 16;

/// An extracted path with its position.
type Extracted = (String, Span);

/// Result of the walk over a parser.
#[derive(Default)]
pub(crate) struct Extracts {
    /// Extracted headers with their positions, by state.
    states: Vec<(String, Vec<Extracted>)>,
    /// States that follow.
    next: BTreeMap<String, BTreeSet<String>>,
    /// Fields of standard metadata read.
    pub(crate) standard: BTreeMap<String, Span>,
    /// Positions where bytes are skipped.
    pub(crate) advances: Vec<Span>,
}

impl Extracts {
    /// All that is extracted.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Extracted> {
        self.states.iter().flat_map(|(_, extracted)| extracted)
    }

    /// Pairs of which the first may be extracted before the second.
    pub(crate) fn ordered(&self) -> Vec<(&Extracted, &Extracted)> {
        let mut pairs = Vec::new();
        for (state, extracted) in &self.states {
            for (at, first) in extracted.iter().enumerate() {
                pairs.extend(extracted[at + 1..].iter().map(|second| (first, second)));
            }
            let after = self.after(state);
            for (later, others) in &self.states {
                if after.contains(later) {
                    for first in extracted {
                        pairs.extend(others.iter().map(|second| (first, second)));
                    }
                }
            }
        }
        pairs
    }

    /// The states that may follow one.
    fn after(&self, state: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut open = vec![state.to_owned()];
        while let Some(state) = open.pop() {
            for next in self.next.get(&state).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    }
}

/// Looks at `parser`, whose parameters are packet, headers, metadata and standard
/// metadata.
pub(crate) fn extracts(tree: &Program, parser: &ParserDecl) -> Extracts {
    let mut out = Extracts::default();
    let roots = ["packet", "hdr", "meta", "standard_metadata"];
    let params = parser.signature.params.iter().zip(roots);
    let names = params.map(|(param, root)| (param.name.to_string(), root.to_owned()));
    let mut look = Look {
        tree,
        out: &mut out,
        depth: 0,
    };
    look.parser(parser, names.collect(), "");
    out
}

type Names = BTreeMap<String, String>;

struct Look<'t, 'o> {
    tree: &'t Program,
    out: &'o mut Extracts,
    depth: usize,
}

impl<'t> Look<'t, '_> {
    /// Looks at all states; those of an inner parser have the outer state's name in front.
    fn parser(&mut self, parser: &'t ParserDecl, names: Names, prefix: &str) {
        let mut inner = BTreeMap::new();
        for local in &parser.locals {
            if let ParserLocal::Instantiation(instance) = local
                && let Some(name) = crate::walk::type_name(&instance.ty)
            {
                inner.insert(instance.name.to_string(), name);
            }
        }
        for state in &parser.states {
            let name = format!("{prefix}{}", state.name);
            let mut extracted = Vec::new();
            for statement in &state.statements {
                self.statement(statement, &names, &inner, &name, &mut extracted);
            }
            self.out.states.push((name.clone(), extracted));
            let Some(transition) = &state.transition else {
                continue;
            };
            let next = match &transition.kind {
                TransitionKind::Malformed => Vec::new(),
                TransitionKind::Direct(target) => vec![target],
                TransitionKind::Select { subjects, cases } => {
                    for subject in subjects {
                        self.reads(subject, &names);
                    }
                    cases.iter().map(|case| &case.target).collect()
                }
            };
            let next = next.iter().map(|target| format!("{prefix}{target}"));
            self.out.next.entry(name).or_default().extend(next);
        }
    }

    fn statement(
        &mut self,
        statement: &'t Stmt,
        names: &Names,
        inner: &BTreeMap<String, &str>,
        state: &str,
        extracted: &mut Vec<Extracted>,
    ) {
        match &statement.kind {
            StmtKind::Assign { value, .. } => self.reads(value, names),
            StmtKind::Variable(variable) => {
                if let Some(init) = &variable.init {
                    self.reads(init, names);
                }
            }
            StmtKind::Block(block) => {
                for statement in &block.statements {
                    self.statement(statement, names, inner, state, extracted);
                }
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.reads(condition, names);
                self.statement(then, names, inner, state, extracted);
                if let Some(otherwise) = otherwise {
                    self.statement(otherwise, names, inner, state, extracted);
                }
            }
            StmtKind::Call(call) => {
                let ExprKind::Call { callee, args, .. } = &call.kind else {
                    return;
                };
                self.call(callee, args, call.span, (names, inner, state), extracted);
            }
            _ => {}
        }
    }

    fn call(
        &mut self,
        callee: &'t Expr,
        args: &'t [Argument],
        span: Span,
        (names, inner, state): (&Names, &BTreeMap<String, &str>, &str),
        extracted: &mut Vec<Extracted>,
    ) {
        let values = || args.iter().filter_map(|arg| arg.value.as_ref());
        if let ExprKind::Member { base, member } = &callee.kind {
            let object = match &base.kind {
                ExprKind::Name(path) => Some(path.name.as_str()),
                _ => None,
            };
            let of_type = match &base.kind {
                ExprKind::Type(ty) => crate::walk::type_name(ty),
                _ => object.and_then(|name| inner.get(name).copied()),
            };
            match member.as_str() {
                "extract" => {
                    let header = values().next().and_then(|value| way(value, names));
                    extracted.push((header.unwrap_or_default(), span));
                }
                "advance" => self.out.advances.push(span),
                "apply" if self.depth < DEEPEST => {
                    let declared = self.tree.declarations.iter().find_map(|d| match d {
                        Declaration::Parser(p) => {
                            (Some(p.signature.name.as_str()) == of_type).then_some(p)
                        }
                        _ => None,
                    });
                    if let Some(parser) = declared {
                        let params = parser.signature.params.iter().zip(values());
                        let own = params.filter_map(|(param, value)| {
                            Some((param.name.to_string(), way(value, names)?))
                        });
                        let prefix = format!("{state}/");
                        self.depth += 1;
                        self.parser(parser, own.collect(), &prefix);
                        self.depth -= 1;
                        let start = format!("{prefix}start");
                        self.out
                            .next
                            .entry(state.to_owned())
                            .or_default()
                            .insert(start);
                    }
                    return;
                }
                _ => {}
            }
        }
        for value in values() {
            self.reads(value, names);
        }
    }

    /// Notes the fields of standard metadata that an expression reads.
    fn reads(&mut self, expr: &'t Expr, names: &Names) {
        if let Some(way) = way(expr, names) {
            if let Some(field) = way.strip_prefix("standard_metadata.") {
                self.out
                    .standard
                    .entry(field.to_owned())
                    .or_insert(expr.span);
            }
            return;
        }
        match &expr.kind {
            ExprKind::Member { base, .. } | ExprKind::Slice { base, .. } => {
                self.reads(base, names);
            }
            ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => {
                self.reads(operand, names);
            }
            ExprKind::Binary { left, right, .. } => {
                self.reads(left, names);
                self.reads(right, names);
            }
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                for part in [condition, then, otherwise] {
                    self.reads(part, names);
                }
            }
            ExprKind::Call { callee, args, .. } => {
                self.reads(callee, names);
                for value in args.iter().filter_map(|arg| arg.value.as_ref()) {
                    self.reads(value, names);
                }
            }
            ExprKind::List(items) => items.iter().for_each(|item| self.reads(item, names)),
            _ => {}
        }
    }
}

fn way(expr: &Expr, names: &Names) -> Option<String> {
    let mut parts = parts(expr)?;
    let first = parts.first_mut()?;
    *first = names.get(first.as_str())?.clone();
    Some(parts.join("."))
}
