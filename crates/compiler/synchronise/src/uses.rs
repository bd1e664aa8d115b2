//! All places of a program that name a register, reached by packets or not.

use crate::crossed;
use stateplane_diagnostics::Span;
use stateplane_protect::walk::type_name;
use stateplane_syntax::tree::{
    ActionDecl, ActionRef, Argument, ControlDecl, ControlLocal, Declaration, Expr, ExprKind,
    ForCollection, FunctionDecl, Ident, Instantiation, Keyset, KeysetElementKind, Parameter,
    ParserDecl, ParserLocal, Path, Program, Stmt, StmtKind, TableDecl, TablePropertyValue,
    TransitionKind,
};
use std::collections::BTreeMap;

/// Places of calls, for which other functions stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The body of a control, where statements may be conditional.
    Body,
    /// An action, function or parser, which may be called where they may not.
    Elsewhere,
    /// The body of a control, behind an access of the same element, which has crossed the last cut with that.
    Crossed,
}

/// A call of a register's `read` or `write`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// Place of the register's name in its declaration.
    pub(crate) register: Span,
    pub(crate) writes: bool,
    pub(crate) place: Place,
    /// Place of the callee: `packets.read`.
    pub(crate) callee: Span,
    /// The whole call.
    pub(crate) span: Span,
}

/// Declaration of a register.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'t> {
    pub(crate) instance: &'t Instantiation,
    /// The parser or control that has it; `None` at the top level.
    pub(crate) owner: Option<&'t str>,
}

/// Registers of a program, and all places that name them.
#[derive(Default)]
pub(crate) struct Uses<'t> {
    pub(crate) registers: Vec<Declared<'t>>,
    pub(crate) calls: Vec<Call>,
    /// Other places that name a register, by the place of its declaration.
    pub(crate) mentions: Vec<(Span, Span)>,
    /// Instances of controls and parsers: owner, name, type.
    pub(crate) instances: Vec<(&'t str, String, &'t str)>,
}

/// Names in a scope: registers, by the places of their declarations, and others.
type Names<'t> = BTreeMap<&'t str, Option<Span>>;

struct Finder<'t> {
    scopes: Vec<Names<'t>>,
    owner: Option<&'t str>,
    in_body: bool,
    uses: Uses<'t>,
}

/// Finds them.
pub(crate) fn find(tree: &Program) -> Uses<'_> {
    let mut finder = Finder {
        scopes: vec![Names::new()],
        owner: None,
        in_body: false,
        uses: Uses::default(),
    };
    for declaration in &tree.declarations {
        finder.declaration(declaration);
    }
    crossed::mark(tree, &mut finder.uses.calls);
    finder.uses
}

impl<'t> Finder<'t> {
    fn bind(&mut self, name: &'t Ident, register: Option<Span>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.as_str(), register);
        }
    }

    fn inner(&mut self, inside: impl FnOnce(&mut Self)) {
        self.scopes.push(Names::new());
        inside(self);
        self.scopes.pop();
    }

    fn register(&self, path: &Path) -> Option<Span> {
        let name = path.name.as_str();
        let outermost = if path.absolute { 1 } else { self.scopes.len() };
        let scopes = self.scopes[..outermost].iter().rev();
        scopes
            .into_iter()
            .find_map(|scope| scope.get(name).copied())
            .flatten()
    }

    fn declaration(&mut self, declaration: &'t Declaration) {
        match declaration {
            Declaration::Const(constant) => {
                self.expr(&constant.value);
                self.bind(&constant.name, None);
            }
            Declaration::Function(function) => self.function(function),
            Declaration::Action(action) => self.action(action),
            Declaration::Parser(parser) => self.parser(parser),
            Declaration::Control(control) => self.control(control),
            Declaration::Instantiation(instance) => self.instance(instance),
            _ => {}
        }
    }

    fn instance(&mut self, instance: &'t Instantiation) {
        self.args(&instance.args);
        match (type_name(&instance.ty), self.owner) {
            (Some("register"), owner) => {
                self.uses.registers.push(Declared { instance, owner });
                self.bind(&instance.name, Some(instance.name.span));
                return;
            }
            (Some(ty), Some(owner)) => {
                let written = instance.annotations.iter();
                let written = written.filter(|a| a.name.as_str() == "name");
                let name = written.filter_map(|a| a.string()).next();
                let name = name.map_or(instance.name.to_string(), |name| name.to_string());
                self.uses.instances.push((owner, name, ty));
            }
            _ => {}
        }
        self.bind(&instance.name, None);
    }

    fn params(&mut self, params: &'t [Parameter]) {
        for param in params {
            self.bind(&param.name, None);
        }
    }

    fn function(&mut self, function: &'t FunctionDecl) {
        self.inner(|finder| {
            finder.params(&function.prototype.params);
            finder.statements(&function.body.statements);
        });
    }

    fn action(&mut self, action: &'t ActionDecl) {
        self.bind(&action.name, None);
        self.inner(|finder| {
            finder.params(&action.params);
            finder.statements(&action.body.statements);
        });
    }

    fn parser(&mut self, parser: &'t ParserDecl) {
        let owner = self.owner.replace(parser.signature.name.as_str());
        self.inner(|finder| {
            finder.params(&parser.signature.params);
            finder.params(&parser.constructor_params);
            for local in &parser.locals {
                match local {
                    ParserLocal::Const(constant) => {
                        finder.expr(&constant.value);
                        finder.bind(&constant.name, None);
                    }
                    ParserLocal::Variable(variable) => {
                        finder.exprs(variable.init.as_ref());
                        finder.bind(&variable.name, None);
                    }
                    ParserLocal::Instantiation(instance) => finder.instance(instance),
                    ParserLocal::ValueSet(set) => finder.bind(&set.name, None),
                }
            }
            for state in &parser.states {
                finder.inner(|finder| {
                    finder.statements(&state.statements);
                    let transition = state.transition.as_ref().map(|it| &it.kind);
                    if let Some(TransitionKind::Select { subjects, cases }) = transition {
                        finder.exprs(subjects);
                        for case in cases {
                            finder.keyset(&case.keyset);
                        }
                    }
                });
            }
        });
        self.owner = owner;
    }

    fn control(&mut self, control: &'t ControlDecl) {
        let owner = self.owner.replace(control.signature.name.as_str());
        self.inner(|finder| {
            finder.params(&control.signature.params);
            finder.params(&control.constructor_params);
            for local in &control.locals {
                match local {
                    ControlLocal::Const(constant) => {
                        finder.expr(&constant.value);
                        finder.bind(&constant.name, None);
                    }
                    ControlLocal::Variable(variable) => {
                        finder.exprs(variable.init.as_ref());
                        finder.bind(&variable.name, None);
                    }
                    ControlLocal::Instantiation(instance) => finder.instance(instance),
                    ControlLocal::Action(action) => finder.action(action),
                    ControlLocal::Table(table) => finder.table(table),
                }
            }
            finder.in_body = true;
            finder.inner(|finder| finder.statements(&control.body.statements));
            finder.in_body = false;
        });
        self.owner = owner;
    }

    fn table(&mut self, table: &'t TableDecl) {
        self.bind(&table.name, None);
        for property in &table.properties {
            match &property.value {
                TablePropertyValue::Key(elements) => {
                    self.exprs(elements.iter().map(|element| &element.expr));
                }
                TablePropertyValue::Actions(actions) => {
                    for action in actions {
                        self.action_ref(action);
                    }
                }
                TablePropertyValue::Entries(entries) => {
                    for entry in entries {
                        self.keyset(&entry.keyset);
                        self.action_ref(&entry.action);
                    }
                }
                TablePropertyValue::Expr(expr) => self.expr(expr),
            }
        }
    }

    fn action_ref(&mut self, action: &'t ActionRef) {
        self.args(action.args.as_deref().unwrap_or_default());
    }

    fn keyset(&mut self, keyset: &'t Keyset) {
        for element in &keyset.elements {
            match &element.kind {
                KeysetElementKind::Value(value) => self.expr(value),
                KeysetElementKind::Mask {
                    value: one,
                    mask: other,
                }
                | KeysetElementKind::Range {
                    low: one,
                    high: other,
                } => {
                    self.expr(one);
                    self.expr(other);
                }
                KeysetElementKind::Default | KeysetElementKind::DontCare => {}
            }
        }
    }

    fn statements(&mut self, statements: &'t [Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'t Stmt) {
        match &statement.kind {
            StmtKind::Malformed
            | StmtKind::Empty
            | StmtKind::Exit
            | StmtKind::Break
            | StmtKind::Continue => {}
            StmtKind::Assign { target, value, .. } => {
                self.expr(target);
                self.expr(value);
            }
            StmtKind::Call(call) => self.expr(call),
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.expr(condition);
                self.inner(|finder| finder.statement(then));
                if let Some(otherwise) = otherwise {
                    self.inner(|finder| finder.statement(otherwise));
                }
            }
            StmtKind::Block(block) => self.inner(|finder| finder.statements(&block.statements)),
            StmtKind::Return(value) => self.exprs(value.as_ref()),
            StmtKind::Switch { subject, cases } => {
                self.expr(subject);
                for case in cases {
                    self.exprs(case.label.as_ref());
                    if let Some(body) = &case.body {
                        self.inner(|finder| finder.statements(&body.statements));
                    }
                }
            }
            StmtKind::For {
                init,
                condition,
                update,
                body,
                ..
            } => self.inner(|finder| {
                finder.statements(init);
                finder.expr(condition);
                finder.statements(update);
                finder.inner(|finder| finder.statement(body));
            }),
            StmtKind::ForIn {
                variable,
                collection,
                body,
                ..
            } => self.inner(|finder| {
                match collection {
                    ForCollection::Elements(of) => finder.expr(of),
                    ForCollection::Range { low, high } => {
                        finder.expr(low);
                        finder.expr(high);
                    }
                }
                finder.bind(&variable.name, None);
                finder.inner(|finder| finder.statement(body));
            }),
            StmtKind::Variable(variable) => {
                self.exprs(variable.init.as_ref());
                self.bind(&variable.name, None);
            }
            StmtKind::Const(constant) => {
                self.expr(&constant.value);
                self.bind(&constant.name, None);
            }
        }
    }

    fn exprs(&mut self, exprs: impl IntoIterator<Item = &'t Expr>) {
        for expr in exprs {
            self.expr(expr);
        }
    }

    fn args(&mut self, args: &'t [Argument]) {
        self.exprs(args.iter().filter_map(|arg| arg.value.as_ref()));
    }

    fn call(&mut self, callee: &'t Expr, args: &'t [Argument], span: Span) {
        self.args(args);
        let ExprKind::Member { base, member } = &callee.kind else {
            self.expr(callee);
            return;
        };
        match &base.kind {
            ExprKind::Name(path) => {
                let register = self.register(path);
                match (register, member.as_str()) {
                    (Some(register), method @ ("read" | "write")) => self.uses.calls.push(Call {
                        register,
                        writes: method == "write",
                        place: if self.in_body {
                            Place::Body
                        } else {
                            Place::Elsewhere
                        },
                        callee: callee.span,
                        span,
                    }),
                    _ => self.expr(callee),
                }
            }
            ExprKind::Type(ty) => {
                if let (Some(name), Some(owner), "apply") =
                    (type_name(ty), self.owner, member.as_str())
                {
                    self.uses.instances.push((owner, name.to_owned(), name));
                }
            }
            _ => self.expr(callee),
        }
    }

    fn expr(&mut self, expr: &'t Expr) {
        match &expr.kind {
            ExprKind::Malformed
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Bool(_)
            | ExprKind::Dots
            | ExprKind::Invalid
            | ExprKind::This
            | ExprKind::Type(_) => {}
            ExprKind::Name(path) => {
                if let Some(register) = self.register(path) {
                    self.uses.mentions.push((register, expr.span));
                }
            }
            ExprKind::Member { base, .. } => self.expr(base),
            ExprKind::Index { base, index } => self.exprs([&**base, index]),
            ExprKind::Slice { base, high, low } => self.exprs([&**base, high, low]),
            ExprKind::PlusSlice { base, low, width } => self.exprs([&**base, low, width]),
            ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => self.expr(operand),
            ExprKind::Binary { left, right, .. } => self.exprs([&**left, right]),
            ExprKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                self.exprs([&**condition, then, otherwise]);
            }
            ExprKind::Call { callee, args, .. } => self.call(callee, args, expr.span),
            ExprKind::Construct { args, .. } => self.args(args),
            ExprKind::List(items) => self.exprs(items),
            ExprKind::Struct { fields, .. } => {
                self.exprs(fields.iter().map(|field| &field.value));
            }
        }
    }
}
