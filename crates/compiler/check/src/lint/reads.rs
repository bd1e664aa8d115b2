//! Expressions: what they read.

use super::Lint;
use super::flow::Flow;
use super::layout::{Fact, Layout, Place};
use super::locals::Kind;
use crate::codes;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_syntax::tree::{
    BinaryOp, Expr, ExprKind, Keyset, KeysetElementKind, Path, TypeKind, UnaryOp,
};

impl<'t> Lint<'t, '_> {
    /// The place that an expression names; `None` if it computes.
    pub(super) fn place(&self, expr: &'t Expr) -> Option<Place<'t>> {
        match &expr.kind {
            ExprKind::Name(path) if !path.absolute => {
                let id = self.find(path.name.as_str())?;
                Some(self.whole(id))
            }
            ExprKind::Member { base, member } => Some(self.place(base)?.member(member.as_str())),
            ExprKind::Index { base, index } => {
                Some(self.place(base)?.element(self.index.number(index)))
            }
            _ => None,
        }
    }

    /// The place of a local.
    pub(super) fn whole(&self, id: usize) -> Place<'t> {
        let local = &self.locals[id];
        Place::of(id, local.base, local.layout.clone())
    }

    /// Notes the names in the expression of a place, and reads the indices in it.
    pub(super) fn mention_place(&mut self, expr: &'t Expr) {
        match &expr.kind {
            ExprKind::Member { base, .. } => self.mention_place(base),
            ExprKind::Index { base, index } => {
                self.mention_place(base);
                self.read(index);
            }
            ExprKind::Name(path) => {
                if let Some(id) = self.find(path.name.as_str()) {
                    self.mention(id);
                }
            }
            _ => {}
        }
    }

    /// Walks an expression whose value is used.
    pub(super) fn read(&mut self, expr: &'t Expr) {
        match &expr.kind {
            ExprKind::Name(path) => self.read_name(path, expr),
            ExprKind::Member { base, .. } => match self.place(expr) {
                Some(place) => {
                    self.mention_place(expr);
                    self.read_place(&place, expr, expr.span);
                }
                None => self.read(base),
            },
            ExprKind::Index { base, index } => match self.place(expr) {
                Some(place) => {
                    self.mention_place(expr);
                    self.read_place(&place, expr, expr.span);
                }
                None => {
                    self.read(base);
                    self.read(index);
                }
            },
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

    fn read_name(&mut self, path: &'t Path, expr: &'t Expr) {
        match self.find(path.name.as_str()).filter(|_| !path.absolute) {
            Some(id) => {
                self.mention(id);
                let place = self.whole(id);
                self.read_place(&place, expr, expr.span);
            }
            None => self.mention_global(path),
        }
    }

    /// Reads a place: a local, or a part of one.
    fn read_place(&mut self, place: &Place<'t>, expr: &'t Expr, span: Span) {
        if self.flow.is_dead() {
            return;
        }
        let local = &mut self.locals[place.id];
        if self.body.outside > 0 && local.depth < self.body.outside {
            local.read_in_action.get_or_insert(span);
        }
        if self.use_field(place, expr, span, "read") {
            return;
        }
        let (mut has, mut lacks) = (false, Vec::new());
        place.layout.each(place.at, &mut |fact, kind| {
            if kind == Fact::Assigned {
                if place.copies(fact).any(|fact| self.flow.holds(fact)) {
                    has = true
                } else {
                    lacks.push(fact)
                }
            }
        });
        if lacks.is_empty() {
            self.read_unmade(place, expr, span);
            return;
        }
        if let Kind::Parameter = self.locals[place.id].kind {
            // That it has no value at the end is told, too.
            if !self.told.insert(lacks[0]) {
                return;
            }
        } else {
            for fact in lacks {
                for fact in place.copies(fact) {
                    self.flow.set(fact, true);
                }
            }
        }
        self.no_value(place.id, &place_text(expr), span, has);
    }

    /// Warns if the headers of a variable are read to which nothing was ever done.
    fn read_unmade(&mut self, place: &Place<'t>, expr: &Expr, span: Span) {
        let (Kind::Variable, Some(range)) = (self.locals[place.id].kind, place.range()) else {
            return;
        };
        if range.is_empty() || place.header.is_some() {
            return;
        }
        let mut unmade = true;
        place.layout.each(place.at, &mut |fact, kind| {
            unmade &= self.flow.holds(fact) == (kind == Fact::Invalid);
        });
        if unmade {
            self.assign(place);
            self.no_value(place.id, &place_text(expr), span, false);
        }
    }

    /// Warns of a variable or part of one, `shown`, that has no value, or one only `in_part`.
    pub(super) fn no_value(&mut self, id: usize, shown: &str, span: Span, in_part: bool) {
        let local = &self.locals[id];
        let name = local.name;
        let what = match local.kind {
            _ if shown != name.as_str() => "",
            Kind::Parameter => "the `out` parameter ",
            _ => "the variable ",
        };
        let lacks = if in_part {
            "may have a value only in part here"
        } else {
            "may have no value here"
        };
        self.report(
            Diagnostic::warning(
                codes::UNINITIALISED,
                span,
                format!("{what}`{shown}` {lacks}"),
            )
            .with_label("read here")
            .with_secondary(name.span, "declared here, without a value")
            .with_help("give it a value before this, on every path"),
        );
    }

    /// Warns if a field of a header is used that is invalid, on every path or on some. True if it
    /// does.
    pub(super) fn use_field(
        &mut self,
        place: &Place<'t>,
        expr: &'t Expr,
        span: Span,
        verb: &str,
    ) -> bool {
        let Some(header) = place.header.filter(|_| !self.flow.is_dead()) else {
            return false;
        };
        let certain = place.copies(header).all(|fact| self.flow.holds(fact));
        let possible = place.spread.is_none() && !self.flow.holds(header + 1);
        if !certain && !possible {
            return false;
        }
        for fact in place.copies(header) {
            self.flow.set(fact, false);
            self.flow.set(fact + 1, true);
        }
        let shown = self.header_text(expr);
        let effect = match verb {
            "read" => "the value is undefined",
            _ => "the write has no effect",
        };
        let (is, effect) = if certain {
            ("is invalid", effect.to_owned())
        } else {
            ("may be invalid", format!("if it is, {effect}"))
        };
        self.report(
            Diagnostic::warning(
                codes::INVALID_HEADER,
                span,
                format!("a field of `{shown}` is {verb}, but this header {is} here"),
            )
            .with_label(effect)
            .with_help(format!(
                "extract it or call `{shown}.setValid()` first, or test `{shown}.isValid()`"
            )),
        );
        true
    }

    /// The header of which an expression names a field, as written.
    fn header_text(&self, expr: &'t Expr) -> String {
        let mut part = expr;
        while let ExprKind::Member { base, .. } | ExprKind::Index { base, .. } = &part.kind {
            part = base;
            let place = self.place(part);
            if place.is_some_and(|place| matches!(*place.layout, Layout::Header(_))) {
                break;
            }
        }
        place_text(part)
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
                if let Some(header) = self.tested_header(expr)
                    && !yes.is_dead()
                {
                    header.layout.each(header.at, &mut |fact, kind| {
                        yes.set(fact, kind != Fact::Invalid);
                    });
                    no.set(header.at, true);
                }
                (yes, no)
            }
        }
    }

    /// The header whose `isValid()` an expression is.
    fn tested_header(&self, expr: &'t Expr) -> Option<Place<'t>> {
        let ExprKind::Call { callee, .. } = &expr.kind else {
            return None;
        };
        match &callee.kind {
            ExprKind::Member { base, member } if member.as_str() == "isValid" => {
                let place = self.place(base)?;
                let is_header = matches!(*place.layout, Layout::Header(_));
                (is_header && place.range().is_some()).then_some(place)
            }
            _ => None,
        }
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
        let ExprKind::Name(path) = &expr.kind else {
            return None;
        };
        let id = self.find(path.name.as_str()).filter(|_| !path.absolute)?;
        self.locals[id].ty
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

fn place_text(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Name(path) => path.name.to_string(),
        ExprKind::Member { base, member } => format!("{}.{member}", place_text(base)),
        ExprKind::Index { base, index } => {
            let index = match &index.kind {
                ExprKind::Number(literal) => literal.value.to_string(),
                _ => "…".to_owned(),
            };
            format!("{}[{index}]", place_text(base))
        }
        _ => String::new(),
    }
}
