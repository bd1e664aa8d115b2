//! Tables.

use crate::annotation;
use crate::checker::{Checker, TableInfo};
use crate::codes;
use crate::interface::{ActionRef, KeyInterface};
use crate::scope::{Entity, Signature};
use crate::types::{Bindings, Ty};
use crate::value::ValueKind;
use stateplane_diagnostics::{Diagnostic, nearest};
use stateplane_ir::{self as ir, MatchKind};
use stateplane_syntax::tree::{self, Direction, ExprKind, TablePropertyValue};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Entries of a table that does not say.
const DEFAULT_SIZE: u64 = 1024;

/// Match kinds by name.
const MATCH_KINDS: [(&str, MatchKind); 6] = [
    ("exact", MatchKind::Exact),
    ("lpm", MatchKind::Lpm),
    ("ternary", MatchKind::Ternary),
    ("range", MatchKind::Range),
    ("optional", MatchKind::Optional),
    ("selector", MatchKind::Selector),
];

impl<'a> Checker<'a> {
    /// Declares a table.
    pub(crate) fn table(&mut self, decl: &'a tree::TableDecl) {
        self.check_properties(decl);
        let name = self.full_name(&decl.name, &decl.annotations);
        self.claim_name("table", &name, decl.name.span);
        let id = ir::TableId(self.out.tables.len() as u32);
        let ((keys, mut key_types, key_interfaces), prelude) =
            self.nested(|checker| checker.table_keys(decl));
        let (actions, action_refs) = self.table_actions(decl);
        let annotations = self.kept(&decl.annotations);
        let mut table = ir::Table {
            name,
            keys,
            actions,
            default_action: ir::ActionCall {
                action: 0,
                data: Vec::new(),
            },
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            size: DEFAULT_SIZE,
            direct_counter: None,
            direct_meter: None,
            support_timeout: false,
            implementation: None,
            annotations,
        };
        self.default_action(decl, &mut table);
        for property in &decl.properties {
            if let TablePropertyValue::Expr(expr) = &property.value {
                self.table_property(property, expr, id, &mut table);
            }
        }
        self.selector_keys(decl, &mut table, &mut key_types);
        if let Some((property, entries)) = find_entries(decl) {
            self.entries_after_key(decl, property);
            table.const_entries = property.is_const;
            table.entries =
                self.table_entries(decl, entries, &table, &key_types, property.is_const);
            table.size = table.size.max(table.entries.len() as u64);
        }
        self.table_interface(decl, id, &table, key_interfaces, action_refs);
        self.out.tables.push(table);
        self.made.tables.push(TableInfo {
            span: decl.name.span,
            prelude: Rc::new(prelude),
        });
        self.declare(&decl.name, Entity::Table(id.0));
    }

    fn table_keys(
        &mut self,
        decl: &'a tree::TableDecl,
    ) -> (Vec<ir::Key>, Vec<Ty>, Vec<KeyInterface>) {
        let elements = decl
            .properties
            .iter()
            .find_map(|property| match &property.value {
                TablePropertyValue::Key(elements) => Some(elements.as_slice()),
                _ => None,
            })
            .unwrap_or_default();
        let exprs: Vec<&'a tree::Expr> = elements.iter().map(|element| &element.expr).collect();
        for expr in &exprs {
            self.key_is_not_table(expr, decl);
        }
        let values = self.sequence(&exprs);
        let types = values.iter().map(|value| value.ty.clone()).collect();
        let mut keys: Vec<ir::Key> = Vec::new();
        let mut interfaces = Vec::new();
        for (element, value) in elements.iter().zip(values) {
            let Some(match_kind) = self.match_kind(&element.match_kind) else {
                continue;
            };
            if value.is_poison() || !self.matchable(&value.ty.clone(), element.expr.span) {
                continue;
            }
            let numeric = self.underlying_width(&value.ty).is_some();
            if matches!(match_kind, MatchKind::Lpm | MatchKind::Range) && !numeric {
                let shown = self.quote(&value.ty);
                self.report(
                    Diagnostic::error(
                        codes::NOT_MATCHABLE,
                        element.span,
                        format!("`{}` does not apply to {shown}", element.match_kind),
                    )
                    .with_help("use `exact`"),
                );
                continue;
            }
            let second_lpm = match_kind == MatchKind::Lpm
                && keys.iter().any(|key| key.match_kind == MatchKind::Lpm);
            if second_lpm {
                self.report(
                    Diagnostic::error(
                        codes::SECOND_LPM_KEY,
                        element.span,
                        "a table has at most one `lpm` key",
                    )
                    .with_help("use `ternary` for the others"),
                );
            }
            let written = annotation::find(&element.annotations, "name")
                .and_then(tree::Annotation::string)
                .map(|name| name.to_string());
            let Some(name) = written.or_else(|| self.key_name(&element.expr)) else {
                self.report(
                    Diagnostic::error(
                        codes::MISSING_NAME,
                        element.expr.span,
                        "a computed key needs a name for the control plane",
                    )
                    .with_help("write @name(\"…\") after the match kind"),
                );
                continue;
            };
            interfaces.extend(self.key_interface(element, &value.ty));
            let expr = self.lower(value);
            keys.push(ir::Key {
                name,
                expr,
                match_kind,
            });
        }
        (keys, types, interfaces)
    }

    fn match_kind(&mut self, name: &tree::Ident) -> Option<MatchKind> {
        let declared = self
            .types
            .match_kinds
            .iter()
            .any(|(known, _)| known == name.as_str());
        let known = MATCH_KINDS
            .iter()
            .find(|(known, _)| *known == name.as_str())
            .map(|(_, kind)| *kind);
        match (declared, known) {
            (true, Some(kind)) => Some(kind),
            (true, None) => {
                self.unsupported(
                    name.span,
                    &format!("the match kind `{name}`"),
                    "use one of v1model's: exact, lpm, ternary, range, optional, selector",
                );
                None
            }
            (false, _) => {
                let diagnostic = Diagnostic::error(
                    codes::UNKNOWN_MATCH_KIND,
                    name.span,
                    format!("there is no match kind `{name}`"),
                );
                let kinds: Vec<String> = self
                    .types
                    .match_kinds
                    .iter()
                    .map(|(kind, _)| kind.clone())
                    .collect();
                let near = nearest(name.as_str(), kinds.iter().map(String::as_str));
                self.report(match near {
                    Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                    None => diagnostic.with_help(format!("there are: {}", kinds.join(", "))),
                });
                None
            }
        }
    }

    fn table_actions(
        &mut self,
        decl: &'a tree::TableDecl,
    ) -> (Vec<ir::TableAction>, Vec<ActionRef>) {
        let refs = decl
            .properties
            .iter()
            .find_map(|property| match &property.value {
                TablePropertyValue::Actions(refs) => Some(refs.as_slice()),
                _ => None,
            });
        let Some(refs) = refs else {
            self.report(
                Diagnostic::error(
                    codes::MISSING_PROPERTY,
                    decl.name.span,
                    format!("the table `{}` has no `actions`", decl.name),
                )
                .with_help("add `actions = { … }`"),
            );
            return (Vec::new(), Vec::new());
        };
        let mut actions: Vec<ir::TableAction> = Vec::new();
        let mut interfaces = Vec::new();
        let mut seen = BTreeSet::new();
        let mut names = BTreeSet::new();
        for listed in refs {
            let Some(action) = self.action_named(&listed.path) else {
                continue;
            };
            if !seen.insert(action) {
                self.report(Diagnostic::error(
                    codes::DUPLICATE_NAME,
                    listed.span,
                    format!("the action `{}` is listed twice", listed.path),
                ));
                continue;
            }
            let name = &self.out.actions[action.index()].name;
            if !names.insert(name.clone()) {
                let message =
                    format!("the table has two actions with the control-plane name `{name}`");
                self.report(
                    Diagnostic::error(codes::DUPLICATE_CONTROL_PLANE_NAME, listed.span, message)
                        .with_help("give one another name with @name(\"…\")"),
                );
                continue;
            }
            let info = self.made.actions[action.index()].clone();
            let directed: Vec<_> = info
                .signature
                .params
                .iter()
                .filter(|param| param.direction != Direction::None)
                .cloned()
                .collect();
            let signature = Signature {
                params: directed,
                ..info.signature.clone()
            };
            let args = listed.args.as_deref().unwrap_or_default();
            let (prepared, statements) = self.nested(|checker| {
                let arguments =
                    checker.arguments(&signature, Bindings::new(), args, listed.span)?;
                let callee = ir::Callee::Action(action);
                Some(checker.prepare_call(callee, &signature.params, arguments, listed.span))
            });
            let (callee, mut bound) = prepared.unwrap_or((ir::Callee::Action(action), Vec::new()));
            let mut run = action;
            if !statements.is_empty() || callee != ir::Callee::Action(action) {
                run = self.action_with_effects(action, statements, callee, bound);
                bound = Vec::new();
            }
            interfaces.push((run, self.kept(&listed.annotations)));
            let has = |name| annotation::find(&listed.annotations, name).is_some();
            actions.push(ir::TableAction {
                action: run,
                bound,
                in_entries: !has("defaultonly"),
                as_default: !has("tableonly"),
            });
        }
        (actions, interfaces)
    }

    /// An action of the same name and action data that runs `statements`, which compute
    /// its directed arguments, and then `callee`, which is `action` or calls it.
    fn action_with_effects(
        &mut self,
        action: ir::ActionId,
        statements: Vec<ir::Stmt>,
        callee: ir::Callee,
        bound: Vec<ir::Arg>,
    ) -> ir::ActionId {
        let inner = self.out.actions[action.index()].clone();
        let info = self.made.actions[action.index()].clone();
        let mut args = bound;
        let mut params = Vec::new();
        for param in &inner.params {
            if param.direction != ir::Direction::Data {
                continue;
            }
            let ir::Var { name, ty } = self.out.vars[param.var.index()].clone();
            let var = self.out.var(name, ty);
            params.push(ir::Param {
                var,
                direction: ir::Direction::Data,
            });
            args.push(ir::Arg::In(ir::Expr {
                kind: ir::ExprKind::Read(ir::Place::var(var)),
                ty,
            }));
        }
        let mut body = statements;
        body.push(ir::Stmt::Call {
            callee,
            args,
            result: None,
        });
        self.out.actions.push(ir::Action {
            params,
            locals: Vec::new(),
            body,
            ..inner
        });
        self.made.actions.push(info);
        let outer = ir::ActionId(self.out.actions.len() as u32 - 1);
        self.made.runs.insert(outer, action);
        if let Some(interface) = self.out.interface.actions.get(&action).cloned() {
            self.out.interface.actions.insert(outer, interface);
        }
        outer
    }

    /// Position of an action in the list of a table.
    pub(crate) fn listed_position(
        &self,
        actions: &[ir::TableAction],
        action: ir::ActionId,
    ) -> Option<usize> {
        actions.iter().position(|listed| {
            listed.action == action || self.made.runs.get(&listed.action) == Some(&action)
        })
    }

    fn action_named(&mut self, path: &tree::Path) -> Option<ir::ActionId> {
        let symbol = self.lookup(path)?;
        match symbol.entity {
            Entity::Action(action) => Some(self.action_here(action, path.span)),
            Entity::Broken => None,
            other => {
                let noun = other.noun();
                self.report(
                    Diagnostic::error(
                        codes::NOT_AN_ACTION,
                        path.span,
                        format!("`{path}` is {noun}, not an action"),
                    )
                    .with_secondary(symbol.span, "declared here"),
                );
                None
            }
        }
    }

    fn default_action(&mut self, decl: &'a tree::TableDecl, table: &mut ir::Table) {
        let written = decl
            .properties
            .iter()
            .find_map(|property| match &property.value {
                TablePropertyValue::Expr(expr) if property.name.as_str() == "default_action" => {
                    Some((property.is_const, expr))
                }
                _ => None,
            });
        let Some((is_const, expr)) = written else {
            self.implicit_default(decl, table);
            return;
        };
        self.default_after_actions(decl, expr);
        table.const_default = is_const;
        let (path, args) = match &expr.kind {
            ExprKind::Name(path) => (path, [].as_slice()),
            ExprKind::Call { callee, args, .. } => match &callee.kind {
                ExprKind::Name(path) => (path, args.as_slice()),
                _ => return self.no_action(expr),
            },
            ExprKind::Malformed => return,
            _ => return self.no_action(expr),
        };
        let Some(call) = self.action_call(path, args, expr.span, decl, table) else {
            return;
        };
        if !table.actions[call.action as usize].as_default {
            self.report(
                Diagnostic::error(
                    codes::ACTION_NOT_ALLOWED,
                    path.span,
                    format!("`{path}` is @tableonly and cannot be the default action"),
                )
                .with_secondary(decl.name.span, "in this table"),
            );
        }
        table.default_action = call;
    }

    fn no_action(&mut self, expr: &tree::Expr) {
        self.report(Diagnostic::error(
            codes::NOT_AN_ACTION,
            expr.span,
            "the default action is an action with its arguments",
        ));
    }

    fn implicit_default(&mut self, decl: &'a tree::TableDecl, table: &mut ir::Table) {
        let no_action = self
            .globals
            .get("NoAction")
            .and_then(|known| known.first())
            .and_then(|symbol| match symbol.entity {
                Entity::Action(action)
                    if self.made.actions[action as usize]
                        .signature
                        .params
                        .is_empty() =>
                {
                    Some(ir::ActionId(action))
                }
                _ => None,
            });
        let Some(no_action) = no_action else {
            self.report(
                Diagnostic::error(
                    codes::MISSING_PROPERTY,
                    decl.name.span,
                    format!("the table `{}` has no default action", decl.name),
                )
                .with_help("add `default_action`, or include core.p4, which has `NoAction`"),
            );
            return;
        };
        let listed = self.listed_position(&table.actions, no_action);
        table.default_action.action = match listed {
            Some(position) => position as u32,
            None => {
                table.actions.push(ir::TableAction {
                    action: no_action,
                    bound: Vec::new(),
                    in_entries: false,
                    as_default: true,
                });
                table.actions.len() as u32 - 1
            }
        };
    }

    /// One of the table's actions with constant action data.
    pub(crate) fn action_call(
        &mut self,
        path: &'a tree::Path,
        args: &'a [tree::Argument],
        span: stateplane_diagnostics::Span,
        decl: &'a tree::TableDecl,
        table: &ir::Table,
    ) -> Option<ir::ActionCall> {
        let action = self.action_named(path)?;
        let listed = self.listed_position(&table.actions, action);
        let Some(listed) = listed else {
            self.report(
                Diagnostic::error(
                    codes::ACTION_NOT_ALLOWED,
                    path.span,
                    format!("`{path}` is not one of the table's actions"),
                )
                .with_secondary(decl.name.span, "the table is declared here")
                .with_help("add it to `actions`"),
            );
            return None;
        };
        let info = self.made.actions[action.index()].clone();
        let directed = info
            .signature
            .params
            .iter()
            .filter(|param| param.direction != Direction::None)
            .count();
        let signature = Signature {
            params: info.signature.params[directed..].to_vec(),
            ..info.signature.clone()
        };
        // Arguments of directed parameters were bound in `actions`; they may be
        // repeated here.
        let given = if args.len() == info.signature.params.len() {
            self.same_bound(decl, path, &args[..directed]);
            &args[directed..]
        } else {
            args
        };
        let pairs = self.pair_or_report(
            signature.name,
            signature.span,
            &signature.params,
            given,
            span,
        )?;
        let mut data = Vec::new();
        for (param, pair) in signature.params.iter().zip(pairs) {
            let expr = pair
                .and_then(|position| given[position].value.as_ref())
                .or(param.default);
            let Some(expr) = expr else { continue };
            let Some(value) = self.constant(expr, "action data of the program") else {
                continue;
            };
            let value = self.coerce(value, &param.ty);
            match &value.kind {
                ValueKind::Const(known) => data.extend(self.ir_const(known, &value.ty)),
                ValueKind::Poison => {}
                _ => self.unsupported(
                    expr.span,
                    "action data that is not a scalar",
                    "pass its members one by one",
                ),
            }
        }
        Some(ir::ActionCall {
            action: listed as u32,
            data,
        })
    }

    /// Reports arguments of directed parameters that are others than in `actions`.
    fn same_bound(
        &mut self,
        decl: &'a tree::TableDecl,
        path: &tree::Path,
        args: &'a [tree::Argument],
    ) {
        let listed = decl
            .properties
            .iter()
            .find_map(|property| match &property.value {
                TablePropertyValue::Actions(refs) => refs
                    .iter()
                    .find(|listed| listed.path.name.as_str() == path.name.as_str()),
                _ => None,
            });
        let bound = listed.and_then(|listed| listed.args.as_deref());
        for (arg, bound) in args.iter().zip(bound.unwrap_or_default()) {
            let (here, there) = (self.words(arg.span), self.words(bound.span));
            if here != there {
                self.report(
                    Diagnostic::error(
                        codes::ARGUMENTS,
                        arg.span,
                        format!("`{path}` has another argument here than in `actions`"),
                    )
                    .with_secondary(bound.span, "the action gets this one")
                    .with_help("write the same argument, or leave those of `actions` out"),
                );
            }
        }
    }

    /// The text of a place without its spaces.
    fn words(&self, span: stateplane_diagnostics::Span) -> String {
        let text = self.sources.snippet(span);
        text.chars().filter(|c| !c.is_whitespace()).collect()
    }
}

impl<'a> Checker<'a> {
    /// Refuses entries that stand before the key that they are written for.
    /// Reports a key that has the name of its table, which hides what it would name.
    fn key_is_not_table(&mut self, expr: &tree::Expr, decl: &tree::TableDecl) {
        if let ExprKind::Name(path) = &expr.kind
            && !path.absolute
            && path.name.name == decl.name.name
            && self.find(path).is_some()
        {
            self.report(
                Diagnostic::error(
                    codes::RECURSION,
                    expr.span,
                    format!("`{path}` is the table whose key this is"),
                )
                .with_secondary(decl.name.span, "the table")
                .with_help("give the table another name"),
            );
        }
    }

    /// Reports a default action that stands before the list of actions that it is one of (spec
    /// §14.2.1.3).
    fn default_after_actions(&mut self, decl: &'a tree::TableDecl, default: &tree::Expr) {
        let is_list = |property: &&tree::TableProperty| {
            matches!(property.value, TablePropertyValue::Actions(_))
        };
        let list = decl.properties.iter().find(is_list);
        if let Some(list) = list.filter(|list| list.span.start > default.span.start) {
            self.report(
                Diagnostic::error(
                    codes::ACTION_NOT_ALLOWED,
                    default.span,
                    "the default action stands before the list of actions",
                )
                .with_secondary(list.name.span, "the list comes only here")
                .with_help("move `default_action` behind `actions`"),
            );
        }
    }

    fn entries_after_key(&mut self, decl: &'a tree::TableDecl, entries: &tree::TableProperty) {
        let is_key =
            |property: &&tree::TableProperty| matches!(property.value, TablePropertyValue::Key(_));
        let key = decl.properties.iter().find(is_key);
        if let Some(key) = key.filter(|key| key.span.start > entries.span.start) {
            self.report(
                Diagnostic::error(
                    codes::ENTRIES_BEFORE_KEY,
                    entries.name.span,
                    "the entries stand before the key that they are written for",
                )
                .with_secondary(key.name.span, "the key comes only here")
                .with_help("move `key` to the head of the table"),
            );
        }
    }
}

fn find_entries(decl: &tree::TableDecl) -> Option<(&tree::TableProperty, &[tree::TableEntry])> {
    decl.properties
        .iter()
        .find_map(|property| match &property.value {
            TablePropertyValue::Entries(entries) => Some((property, entries.as_slice())),
            _ => None,
        })
}
