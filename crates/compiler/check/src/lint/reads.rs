//! Expressions: what they read.

use super::Lint;
use super::flow::Flow;
use super::locals::Kind;
use crate::codes;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_syntax::tree::{
    BinaryOp, Expr, ExprKind, Keyset, KeysetElementKind, Path, TypeKind, UnaryOp,
};

impl<'t> Lint<'t, '_> {
    /// The local and the fields that an expression names; `None` if it computes, or goes
    /// through a stack.
    pub(super) fn place(&self, expr: &'t Expr) -> Option<(usize, Vec<&'t str>)> {
        match &expr.kind {
            ExprKind::Name(path) if !path.absolute => {
                Some((self.find(path.name.as_str())?, Vec::new()))
            }
            ExprKind::Member { base, member } => {
                let (id, mut fields) = self.place(base)?;
                fields.push(member.as_str());
                Some((id, fields))
            }
            _ => None,
        }
    }

    /// Walks an expression whose value is used.
    pub(super) fn read(&mut self, expr: &'t Expr) {
        match &expr.kind {
            ExprKind::Name(path) => self.read_name(path, expr.span),
            ExprKind::Member { base, .. } => match self.place(expr) {
                Some((id, fields)) => self.read_place(id, &fields, expr.span),
                None => self.read(base),
            },
            ExprKind::Index { base, index } => {
                self.read(base);
                self.read(index);
            }
            ExprKind::Slice { base, high, low } => {
                self.read(base);
                self.read(high);
                self.read(low);
            }
            ExprKind::PlusSlice { base, low, width } => {
                self.read(base);
                self.read(low);
                self.read(width);
            }
            ExprKind::Unary {
                op: UnaryOp::Not, ..
            }
            | ExprKind::Binary {
                op: BinaryOp::And | BinaryOp::Or,
                ..
            } => {
                let (mut yes, no) = self.condition(expr);
                yes.join(&no);
                self.flow = yes;
            }
            ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => self.read(operand),
            ExprKind::Binary { left, right, .. } => {
                self.read(left);
                self.read(right);
            }
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                let (yes, no) = self.condition(condition);
                self.flow = yes;
                self.read(then);
                let after = std::mem::replace(&mut self.flow, no);
                self.read(otherwise);
                self.flow.join(&after);
            }
            ExprKind::Call { callee, args, .. } => self.call(callee, args, expr.span),
            ExprKind::Construct { ty, args } => {
                self.mention_type(ty);
                for arg in args.iter().filter_map(|arg| arg.value.as_ref()) {
                    self.read(arg);
                }
            }
            ExprKind::List(elements) => {
                for element in elements {
                    self.read(element);
                }
            }
            ExprKind::Struct { fields, .. } => {
                for field in fields {
                    self.read(&field.value);
                }
            }
            ExprKind::Type(ty) => self.mention_type(ty),
            _ => {}
        }
    }

    fn read_name(&mut self, path: &'t Path, span: Span) {
        match self.find(path.name.as_str()).filter(|_| !path.absolute) {
            Some(id) => self.read_place(id, &[], span),
            None => self.mention_global(path),
        }
    }

    /// Reads a field of a local, or the whole.
    fn read_place(&mut self, id: usize, fields: &[&str], span: Span) {
        self.mention(id);
        let local = &self.locals[id];
        let name = local.name;
        if let Some(assigned) = local.assigned
            && !self.flow.is_dead()
            && !self.flow.holds(assigned)
        {
            let what = match local.kind {
                Kind::Parameter => "the `out` parameter",
                _ => "the variable",
            };
            self.flow.set(assigned, true);
            self.report(
                Diagnostic::warning(
                    codes::UNINITIALISED,
                    span,
                    format!("{what} `{name}` may have no value here"),
                )
                .with_label("read here")
                .with_secondary(name.span, "declared here, without a value")
                .with_help("give it a value before this, on every path"),
            );
            return;
        }
        self.use_field(id, fields, span, "read");
    }

    /// Warns if a field of a header is used that is certainly invalid.
    pub(super) fn use_field(&mut self, id: usize, fields: &[&str], span: Span, verb: &str) {
        let local = &self.locals[id];
        let header = local.headers.iter().find(|(path, invalid)| {
            path.len() < fields.len() && fields.starts_with(path) && self.flow.holds(*invalid)
        });
        let Some((path, invalid)) = header else {
            return;
        };
        let (invalid, name) = (*invalid, local.name);
        let mut shown = name.to_string();
        for field in path {
            shown.push('.');
            shown.push_str(field);
        }
        self.flow.set(invalid, false);
        let effect = match verb {
            "read" => "the value is undefined",
            _ => "the write has no effect",
        };
        self.report(
            Diagnostic::warning(
                codes::INVALID_HEADER,
                span,
                format!("a field of `{shown}` is {verb}, but this header is invalid here"),
            )
            .with_label(effect)
            .with_help(format!(
                "extract it or call `{shown}.setValid()` first, or test `{shown}.isValid()`"
            )),
        );
    }

    /// Walks a condition; what is certain where it holds, and where it does not.
    pub(super) fn condition(&mut self, expr: &'t Expr) -> (Flow, Flow) {
        match &expr.kind {
            ExprKind::Unary {
                op: UnaryOp::Not,
                operand,
            } => {
                let (yes, no) = self.condition(operand);
                (no, yes)
            }
            ExprKind::Binary {
                op: op @ (BinaryOp::And | BinaryOp::Or),
                left,
                right,
                ..
            } => {
                let is_and = *op == BinaryOp::And;
                let (yes, no) = self.condition(left);
                let (goes_on, mut decided) = if is_and { (yes, no) } else { (no, yes) };
                self.flow = goes_on;
                let (yes, no) = self.condition(right);
                let (same, other) = if is_and { (no, yes) } else { (yes, no) };
                decided.join(&same);
                if is_and {
                    (other, decided)
                } else {
                    (decided, other)
                }
            }
            ExprKind::Bool(true) => (self.flow.clone(), Flow::dead()),
            ExprKind::Bool(false) => (Flow::dead(), self.flow.clone()),
            _ => {
                self.read(expr);
                let (mut yes, mut no) = (self.flow.clone(), self.flow.clone());
                if let Some(invalid) = self.tested_header(expr) {
                    yes.set(invalid, false);
                    if !no.is_dead() {
                        no.set(invalid, true);
                    }
                }
                (yes, no)
            }
        }
    }

    /// The fact of the header whose `isValid()` an expression is.
    fn tested_header(&self, expr: &'t Expr) -> Option<usize> {
        let ExprKind::Call { callee, .. } = &expr.kind else {
            return None;
        };
        match &callee.kind {
            ExprKind::Member { base, member } if member.as_str() == "isValid" => {
                self.header_fact(base)
            }
            _ => None,
        }
    }

    /// The fact that a header is invalid.
    pub(super) fn header_fact(&self, expr: &'t Expr) -> Option<usize> {
        let (id, fields) = self.place(expr)?;
        let headers = self.locals[id].headers.iter();
        headers
            .filter(|(path, _)| *path == fields)
            .map(|(_, invalid)| *invalid)
            .next()
    }

    /// Notes what an expression mentions, which is evaluated elsewhere or not at all.
    pub(super) fn mentions(&mut self, expr: &'t Expr) {
        let flow = std::mem::replace(&mut self.flow, Flow::dead());
        let reporting = std::mem::replace(&mut self.reporting, false);
        self.read(expr);
        self.reporting = reporting;
        self.flow = flow;
    }

    /// Walks the values to match.
    pub(super) fn keyset(&mut self, keyset: &'t Keyset) {
        for element in &keyset.elements {
            match &element.kind {
                KeysetElementKind::Value(value) => self.read(value),
                KeysetElementKind::Mask { value, mask } => {
                    self.read(value);
                    self.read(mask);
                }
                KeysetElementKind::Range { low, high } => {
                    self.read(low);
                    self.read(high);
                }
                KeysetElementKind::Default | KeysetElementKind::DontCare => {}
            }
        }
    }

    /// The type of a local that an expression names.
    pub(super) fn local_type(&self, expr: &'t Expr) -> Option<&'t stateplane_syntax::tree::Type> {
        let (id, fields) = self.place(expr)?;
        self.locals[id].ty.filter(|_| fields.is_empty())
    }

    /// Notes the constants that a type mentions, and whether it is deprecated.
    pub(super) fn mention_type(&mut self, ty: &'t stateplane_syntax::tree::Type) {
        match &ty.kind {
            TypeKind::Named(path) => self.mention_global(path),
            TypeKind::Specialized { base, args } => {
                self.mention_global(base);
                for arg in args {
                    self.mention_type(arg);
                }
            }
            TypeKind::Bit(Some(width)) | TypeKind::Int(width) | TypeKind::Varbit(width) => {
                self.mentions(width);
            }
            TypeKind::Stack { element, size } => {
                self.mention_type(element);
                self.mentions(size);
            }
            TypeKind::Tuple(members) => {
                for member in members {
                    self.mention_type(member);
                }
            }
            TypeKind::List(element) => self.mention_type(element),
            _ => {}
        }
    }
}
