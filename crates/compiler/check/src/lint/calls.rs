//! Calls: what they read and write.

use super::Lint;
use super::index::Callee;
use super::locals::Kind;
use stateplane_diagnostics::Span;
use stateplane_syntax::tree::{Argument, Direction, Expr, ExprKind, Parameter, Path, TypeKind};

impl<'t> Lint<'t, '_> {
    /// Walks a call.
    pub(super) fn call(&mut self, callee: &'t Expr, args: &'t [Argument], span: Span) {
        match &callee.kind {
            ExprKind::Name(path) => self.call_name(path, args),
            ExprKind::Member { base, member } => {
                self.call_member(base, member.as_str(), args, span);
            }
            _ => self.arguments(None, args),
        }
    }

    fn call_name(&mut self, path: &'t Path, args: &'t [Argument]) {
        let local = self.find(path.name.as_str()).filter(|_| !path.absolute);
        if let Some(id) = local {
            self.mention(id);
            match self.locals[id].kind {
                Kind::Action(decl) => {
                    self.used(decl.name.as_str(), &decl.annotations, path.span);
                    self.arguments(Some(&decl.params), args);
                    self.after_action();
                }
                _ => self.arguments(None, args),
            }
            return;
        }
        let index = self.index;
        let callees = index.callables(path.name.as_str());
        self.call_one_of(callees, args, path.span);
    }

    /// Calls the one of several callables that takes this number of arguments.
    fn call_one_of(&mut self, callees: &[Callee<'t>], args: &'t [Argument], span: Span) {
        let mut fitting = callees.iter().filter(|callee| callee.takes(args.len()));
        let first = fitting.next().copied();
        match (first, fitting.next()) {
            (Some(callee), None) => {
                self.used(callee.name.as_str(), callee.annotations, span);
                self.arguments(Some(callee.params), args);
            }
            _ => self.arguments(None, args),
        }
    }

    fn call_member(&mut self, base: &'t Expr, name: &str, args: &'t [Argument], span: Span) {
        if let ExprKind::Type(ty) = &base.kind {
            self.mention_type(ty);
            let body = match &ty.kind {
                TypeKind::Named(path) if name == "apply" => self.index.body_of(path.name.as_str()),
                _ => None,
            };
            return self.arguments(body.map(|body| body.params), args);
        }
        let Some(place) = self.place(base) else {
            self.read(base);
            return self.arguments(None, args);
        };
        let id = place.id;
        self.mention_place(base);
        match (name, self.locals[id].kind) {
            ("setValid" | "setInvalid", _) => self.set_validity(&place, name == "setValid"),
            ("isValid", _) => {}
            ("apply", Kind::Table(decl, depth)) => self.apply_table(decl, depth),
            ("apply", _) => {
                let name = self
                    .local_type(base)
                    .and_then(|ty| self.index.type_name(ty));
                let body = name.and_then(|name| self.index.body_of(name));
                self.arguments(body.map(|body| body.params), args);
            }
            _ if matches!(base.kind, ExprKind::Name(_))
                && !matches!(self.locals[id].kind, Kind::Variable) =>
            {
                let ty = self.locals[id].ty;
                let callees = ty
                    .map(|ty| self.index.methods(ty, name))
                    .unwrap_or_default();
                self.call_one_of(&callees, args, span);
            }
            // Of a stack or union.
            _ => {
                self.write(base, span);
                self.arguments(None, args);
            }
        }
    }

    /// Walks arguments; where the parameters are not known, what can be written may be.
    fn arguments(&mut self, params: Option<&[Parameter]>, args: &'t [Argument]) {
        let direction = |position: usize, arg: &Argument| {
            let params = params?;
            let param = match &arg.name {
                Some(name) => params.iter().find(|param| param.name.name == name.name),
                None => params.get(position),
            };
            param.map(|param| param.direction)
        };
        let values = args.iter().enumerate();
        let values: Vec<(&'t Expr, Option<Direction>)> = values
            .filter_map(|(position, arg)| Some((arg.value.as_ref()?, direction(position, arg))))
            .collect();
        for (value, direction) in &values {
            match direction {
                Some(Direction::Out) => self.read_around(value),
                Some(_) => self.read(value),
                None if self.place(value).is_some() => self.mentions(value),
                None => self.read(value),
            }
        }
        for (value, direction) in values {
            match direction {
                Some(Direction::Out | Direction::InOut) | None => self.write(value, value.span),
                Some(Direction::None | Direction::In) => {}
            }
        }
    }

    /// Reads what must be known to find the place that an expression names.
    pub(super) fn read_around(&mut self, target: &'t Expr) {
        match &target.kind {
            ExprKind::Member { base, .. } => self.read_around(base),
            ExprKind::Index { base, index } => {
                self.read_around(base);
                self.read(index);
            }
            ExprKind::Slice { base, high, low } => {
                self.read_around(base);
                self.read(high);
                self.read(low);
            }
            ExprKind::PlusSlice { base, low, width } => {
                self.read_around(base);
                self.read(low);
                self.read(width);
            }
            ExprKind::Name(_) => {}
            _ => self.read(target),
        }
    }

    /// Writes the place that an expression names, if it names one.
    pub(super) fn write(&mut self, target: &'t Expr, span: Span) {
        let whole = match &target.kind {
            ExprKind::Slice { base, .. } | ExprKind::PlusSlice { base, .. } => {
                return self.write(base, span);
            }
            ExprKind::Member { base, .. } | ExprKind::Index { base, .. } => Some(base),
            ExprKind::Name(_) => None,
            _ => return,
        };
        let Some(place) = self.place(target) else {
            if let Some(whole) = whole {
                self.write(whole, span);
            }
            return;
        };
        self.mention(place.id);
        self.use_field(&place, target, span, "written");
        self.assign(&place);
    }

    /// Notes that an action may change what an expression names.
    pub(super) fn touch(&mut self, target: &'t Expr) {
        if let Some(place) = self.place(target) {
            let local = &mut self.locals[place.id];
            local.written = true;
            let (base, size) = (local.base, local.layout.size());
            for fact in base..base + size {
                self.body.touched.set(fact, true);
            }
        }
    }

    /// An action is named in a table.
    pub(super) fn mention_action(&mut self, path: &'t Path) {
        if let Some(id) = self.find(path.name.as_str()).filter(|_| !path.absolute) {
            self.mention(id);
            if let Kind::Action(decl) = self.locals[id].kind {
                self.used(decl.name.as_str(), &decl.annotations, path.span);
            }
            return;
        }
        if let [callee] = self.index.callables(path.name.as_str()) {
            let callee = *callee;
            self.used(callee.name.as_str(), callee.annotations, path.span);
        }
    }
}
