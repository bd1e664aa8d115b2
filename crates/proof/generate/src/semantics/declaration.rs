//! Functions, actions, tables and controls.

use super::program::{CONTEXT, Callable, Kind, STACK, Site, Table, Way, Writer, fields};
use crate::session::{Change, Write};
use stateplane_runtime::{Entry, KeyMatch};

impl Writer {
    fn params(&mut self, most: u32, data: bool) -> Vec<(Way, Kind, String)> {
        let mut params = Vec::new();
        for _ in 0..self.c.between(1, most) {
            let way = self.c.one_of([Way::In, Way::Out, Way::InOut, Way::InOut]);
            params.push((way, self.kind(), self.fresh("p")));
        }
        if data {
            for _ in 0..self.c.below(3) {
                let kind = self.c.one_of([Kind::Bits(8), Kind::Bits(16), Kind::Int(8)]);
                params.push((Way::Data, kind, self.fresh("data")));
            }
        }
        params
    }

    fn list(params: &[(Way, Kind, String)]) -> String {
        let params: Vec<String> = params
            .iter()
            .map(|(way, kind, name)| format!("{}{kind} {name}", way.word()))
            .collect();
        params.join(", ")
    }

    /// The same with a default value of the last parameter, if it can have one.
    fn list_with_default(&mut self, params: &[(Way, Kind, String)]) -> (String, bool) {
        let list = Self::list(params);
        match params.last() {
            Some((Way::In, kind, _)) if fields(*kind).is_empty() && self.c.chance(40) => {
                let value = self.constant(*kind);
                (format!("{list} = {value}"), true)
            }
            _ => (list, false),
        }
    }

    fn declare_params(&mut self, params: &[(Way, Kind, String)]) {
        for (way, kind, name) in params {
            self.declare(name, *kind, matches!(way, Way::Out | Way::InOut));
        }
    }

    /// Gives `out` parameters values, and `inout` parameters others, most of the time.
    fn settle(&mut self, params: &[(Way, Kind, String)]) {
        for (way, kind, name) in params {
            if *way == Way::Out && self.c.chance(96) {
                let value = self.constant(*kind);
                self.line(format_args!("{name} = {value};"));
            }
            if *way == Way::InOut && self.c.chance(60) {
                self.fuel = 4;
                let value = self.expr(*kind, 2);
                self.line(format_args!("{name} = {value};"));
            }
        }
    }

    pub(super) fn functions(&mut self) {
        for _ in 0..self.c.between(3, 6) {
            let params = self.params(3, false);
            let result = match self.c.below(8) {
                0 => None,
                1..=4 => Some(Kind::Bits(8)),
                _ => Some(self.kind()),
            };
            let name = self.fresh("f");
            let returns = result.map_or("void".to_owned(), |kind| kind.to_string());
            let (list, default) = self.list_with_default(&params);
            self.open(format_args!("{returns} {name}({list})"));
            self.site = Site::Function;
            self.result = result;
            self.scoped(|writer| {
                writer.declare_params(&params);
                writer.settle(&params);
                let count = writer.c.between(1, 3);
                writer.statements(count, 2);
                if let Some(kind) = result {
                    writer.fuel = 6;
                    let value = writer.expr(kind, 2);
                    writer.line(format_args!("return {value};"));
                }
            });
            self.result = None;
            self.close();
            self.functions.push(Callable {
                name,
                params,
                default,
                context: false,
                result,
            });
        }
    }

    fn action(&mut self) -> Callable {
        let params = self.params(2, true);
        let name = self.fresh("act");
        self.open(format_args!("action {name}({})", Self::list(&params)));
        self.site = Site::Action;
        self.scoped(|writer| {
            writer.declare_params(&params);
            writer.settle(&params);
            let count = writer.c.between(1, 3);
            writer.statements(count, 1);
        });
        self.close();
        Callable {
            name,
            params,
            default: false,
            context: false,
            result: None,
        }
    }

    /// An argument list for the parameters with a direction, which tables bind.
    fn bound(&mut self, action: &Callable) -> Option<Vec<String>> {
        let mut args = Vec::new();
        for (way, kind, _) in &action.params {
            self.fuel = 5;
            match way {
                Way::Data => {}
                Way::In => args.push(self.expr(*kind, 2)),
                Way::Out | Way::InOut => args.push(self.lvalue(*kind)?),
            }
        }
        Some(args)
    }

    fn full(&mut self, action: &Callable, bound: &[String]) -> String {
        let mut args = bound.to_vec();
        for (way, kind, _) in &action.params {
            if *way == Way::Data {
                args.push(self.constant(*kind));
            }
        }
        format!("{}({})", action.name, args.join(", "))
    }

    fn table(&mut self, path: &str) {
        let name = self.fresh("table");
        let mut actions = Vec::new();
        for action in self.actions.clone() {
            if self.c.chance(70)
                && let Some(bound) = self.bound(&action)
            {
                actions.push((action, bound));
            }
        }
        if actions.is_empty() {
            return;
        }
        self.open(format_args!("table {name}"));
        let mut keys: Vec<(&str, Kind)> = Vec::new();
        let simple = self.c.chance(40);
        let count = self.c.between(1, 3);
        self.open("key =");
        for _ in 0..count {
            let kind = if !simple {
                self.c.one_of(["exact", "ternary", "range", "optional"])
            } else if keys.iter().all(|(kind, _)| *kind != "lpm") {
                self.c.one_of(["exact", "lpm"])
            } else {
                "exact"
            };
            let ty = match kind {
                "exact" => self.c.one_of([Kind::Bits(8), Kind::Bits(8), Kind::Bool]),
                _ => Kind::Bits(8),
            };
            self.fuel = 6;
            let value = if self.c.chance(50) {
                self.effect(ty, 1)
            } else {
                self.expr(ty, 2)
            };
            let value = match ty {
                Kind::Bits(_) if self.c.chance(80) => format!("({value} & 8w3)"),
                _ => value,
            };
            self.line(format_args!(
                "{value} : {kind} @name(\"key{}\");",
                keys.len()
            ));
            keys.push((kind, ty));
        }
        self.close();
        self.open("actions =");
        for (action, bound) in &actions {
            self.line(format_args!("{}({});", action.name, bound.join(", ")));
        }
        let mut names: Vec<String> = actions
            .iter()
            .map(|(action, _)| action.name.clone())
            .collect();
        if self.c.chance(50) {
            self.line("NoAction;");
            names.push("NoAction".to_owned());
        }
        self.close();
        if names.len() == actions.len() || self.c.chance(60) {
            let (action, bound) = actions[self.c.below(actions.len())].clone();
            let call = self.full(&action, &bound);
            self.line(format_args!("default_action = {call};"));
        }
        if self.c.chance(30) {
            self.control_plane(&format!("{path}.{name}"), &keys, &actions);
        } else {
            self.entries(&keys, &actions);
        }
        self.close();
        self.tables.push(Table {
            name,
            actions: names,
        });
    }

    /// Entries that the control plane adds.
    fn control_plane(
        &mut self,
        table: &str,
        keys: &[(&str, Kind)],
        actions: &[(Callable, Vec<String>)],
    ) {
        let ordered = keys
            .iter()
            .any(|(kind, _)| !matches!(*kind, "exact" | "lpm"));
        let mut seen = Vec::new();
        for number in 0..self.c.between(1, 5) {
            let mut matches = Vec::new();
            for (kind, ty) in keys {
                let most = if *ty == Kind::Bool { 2 } else { 4 };
                let (value, other) = (self.c.below(most), self.c.below(4));
                matches.push(match *kind {
                    "ternary" => KeyMatch::Mask {
                        value: (value & other).into(),
                        mask: other.into(),
                    },
                    "range" => KeyMatch::Range {
                        low: value.min(other).into(),
                        high: value.max(other).into(),
                    },
                    "lpm" => {
                        let length = self.c.one_of([8, 8, 7, 0]);
                        let value = value >> (8 - length) << (8 - length);
                        KeyMatch::Prefix {
                            value: value.into(),
                            length,
                        }
                    }
                    "optional" if other == 0 => KeyMatch::Any,
                    _ => KeyMatch::Exact(value.into()),
                });
            }
            if seen.contains(&matches) {
                continue;
            }
            seen.push(matches.clone());
            let action = actions[self.c.below(actions.len())].0.clone();
            let data = action.params.iter().filter(|(way, ..)| *way == Way::Data);
            let data = data.map(|(_, kind, _)| match kind {
                Kind::Bits(width) | Kind::Int(width) => self.c.value(*width),
                _ => 0u32.into(),
            });
            let data = data.collect();
            self.writes.push(Write::Entry {
                change: Change::Insert,
                table: table.to_owned(),
                entry: Entry {
                    keys: matches,
                    priority: if ordered { number + 1 } else { 0 },
                    action: action.name,
                    data,
                },
            });
        }
    }

    fn entries(&mut self, keys: &[(&str, Kind)], actions: &[(Callable, Vec<String>)]) {
        self.open("const entries =");
        let mut seen: Vec<String> = Vec::new();
        for _ in 0..self.c.between(1, 6) {
            let mut parts = Vec::new();
            for (kind, ty) in keys {
                let value = match ty {
                    Kind::Bool => self.constant(Kind::Bool),
                    _ => self.c.below(4).to_string(),
                };
                parts.push(match *kind {
                    "ternary" => match self.c.below(3) {
                        0 => "_".to_owned(),
                        1 => {
                            let mask = self.c.below(4);
                            format!("{} &&& {mask}", self.c.below(4) & mask)
                        }
                        _ => value,
                    },
                    "lpm" => match self.c.below(3) {
                        0 => "_".to_owned(),
                        1 => {
                            let value = self.c.below(2) * 2;
                            format!("{value} &&& 254")
                        }
                        _ => value,
                    },
                    "range" => {
                        let (one, other) = (self.c.below(4), self.c.below(4));
                        format!("{} .. {}", one.min(other), one.max(other))
                    }
                    "optional" if self.c.chance(40) => "_".to_owned(),
                    _ => value,
                });
            }
            let key = parts.join(", ");
            if seen.contains(&key) {
                continue;
            }
            seen.push(key.clone());
            let (action, bound) = actions[self.c.below(actions.len())].clone();
            let call = self.full(&action, &bound);
            self.line(format_args!("({key}) : {call};"));
        }
        self.close();
    }

    /// Ingress, behind the controls that it applies.
    pub(super) fn pipeline(&mut self) {
        let mut parts = Vec::new();
        for _ in 0..self.c.between(1, 2) {
            let name = self.fresh("part");
            let (part, setting) = self.part(&format!("MyIngress.{name}"));
            parts.push((name, part, setting));
        }
        self.open(format_args!("control MyIngress({CONTEXT})"));
        self.scoped(|writer| {
            writer.declare_context();
            for (name, mut part, setting) in parts {
                writer.line(format_args!("{}({setting}) {name};", part.name));
                part.name = name;
                writer.controls.push(part);
            }
            writer.members("MyIngress");
            writer.open("apply");
            writer.site = Site::Apply;
            writer.line("std.egress_spec = std.ingress_port ^ 1;");
            for header in ["hdr.first", "hdr.second", "meta.inner.h"] {
                writer.refill(header, Kind::Head, 97);
            }
            for index in 0..STACK {
                for stack in ["items", "spare"] {
                    writer.refill(&format!("hdr.{stack}[{index}]"), Kind::Item, 97);
                }
            }
            let count = writer.c.between(4, 10);
            writer.statements(count, 3);
            if writer.c.chance(5) {
                writer.line("if (meta.u == 3) { mark_to_drop(std); }");
            }
            writer.close();
        });
        self.close();
    }

    /// Variables, actions and tables of a control.
    fn members(&mut self, path: &str) {
        self.actions.clear();
        self.tables.clear();
        for _ in 0..self.c.between(0, 2) {
            self.local();
        }
        for _ in 0..self.c.between(1, 3) {
            let action = self.action();
            self.actions.push(action);
        }
        for _ in 0..self.c.between(0, 2) {
            self.table(path);
        }
    }

    /// A control with parameters, whose instance is at `path`, and the argument of its
    /// constructor.
    fn part(&mut self, path: &str) -> (Callable, String) {
        let name = self.fresh("Part");
        let params = self.params(4, false);
        let (list, default) = self.list_with_default(&params);
        let (setting, argument) = if self.c.chance(40) {
            ("(bit<8> setting)", self.constant(Kind::Bits(8)))
        } else {
            ("", String::new())
        };
        // What the parameters name is part of these, more often than not.
        let context = self.c.chance(40);
        let before = if context {
            "inout headers_t hdr, inout meta_t meta, "
        } else {
            ""
        };
        self.open(format_args!("control {name}({before}{list}){setting}"));
        let controls = std::mem::take(&mut self.controls);
        self.scoped(|writer| {
            if context {
                writer.declare_context();
            }
            writer.declare_params(&params);
            if !setting.is_empty() {
                writer.declare("setting", Kind::Bits(8), false);
            }
            writer.members(path);
            writer.open("apply");
            writer.site = Site::Apply;
            writer.settle(&params);
            let count = writer.c.between(1, 4);
            writer.statements(count, 2);
            writer.close();
        });
        self.controls = controls;
        self.close();
        let part = Callable {
            name,
            params,
            default,
            context,
            result: None,
        };
        (part, argument)
    }
}
