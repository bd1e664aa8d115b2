//! Text form of a program, for golden files, for reading, and for
//! [`parse`](crate::parse()), whose module has the grammar.
//!
//! Entities print by name; where two of a kind share a name, by name and `#`
//! position, so that an added entity does not renumber the rest of the text.
//! Any `Program` value prints, also one that breaks the IR's rules: a
//! handle out of range prints as `?` and its number. Equal programs print equally, and
//! those that the verifier accepts parse back to what they were.
//!
//! Constants carry their type as in P4 (`16w0x800`, `8s-1`); a number of 10 or more
//! is hexadecimal if unsigned. Operations are fully parenthesised.

mod annotation;
pub(crate) mod expr;
pub(crate) mod names;
pub(crate) mod stmt;

use crate::{
    ActionCall, Annotation, CounterKind, Direction, Entry, Expr, KeySet, MatchKind, Param, Parser,
    Program, Table, TableAction, Target, Transition, VarId,
};
use names::Names;
use std::fmt::{self, Display, Formatter, Write};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&Printer::of(self).print())
    }
}

impl Program {
    /// An expression as the text form has it.
    pub fn expr_text(&self, expr: &Expr) -> String {
        Printer::of(self).expr(expr)
    }
}

struct Printer<'a> {
    program: &'a Program,
    names: Names,
    indent: usize,
    text: String,
}

impl Printer<'_> {
    fn of(program: &Program) -> Printer<'_> {
        Printer {
            program,
            names: Names::of(program),
            indent: 0,
            text: String::new(),
        }
    }

    fn line(&mut self, text: impl Display) {
        for _ in 0..self.indent {
            self.text.push_str("  ");
        }
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{text}");
    }

    fn block(&mut self, head: impl Display, body: impl FnOnce(&mut Self)) {
        self.line(format_args!("{head} {{"));
        self.indent += 1;
        body(self);
        self.indent -= 1;
        self.line("}");
    }

    fn print(mut self) -> String {
        let program = self.program;
        self.pipeline();
        self.types();
        for (i, var) in program.vars.iter().enumerate() {
            let line = format!("var {}: {}", self.names.vars.of(i), self.ty(var.ty));
            self.line(line);
        }
        self.objects();
        self.action_profiles();
        for (i, function) in program.functions.iter().enumerate() {
            let result = function
                .result
                .map_or_else(String::new, |var| format!(" -> {}", self.var(var)));
            let head = format!(
                "function {}({}){result}",
                self.names.functions.of(i),
                self.params(&function.params)
            );
            self.block(head, |p| {
                p.locals(&function.locals);
                p.stmts(&function.body);
            });
        }
        for (i, action) in program.actions.iter().enumerate() {
            let head = format!(
                "action {}({}){}",
                self.names.actions.of(i),
                self.params(&action.params),
                annotations(&action.annotations)
            );
            self.block(head, |p| {
                p.locals(&action.locals);
                p.stmts(&action.body);
            });
        }
        for (i, table) in program.tables.iter().enumerate() {
            self.table(i, table);
        }
        for (i, parser) in program.parsers.iter().enumerate() {
            self.parser(i, parser);
        }
        for (i, control) in program.controls.iter().enumerate() {
            let head = format!(
                "control {}({})",
                self.names.controls.of(i),
                self.params(&control.params)
            );
            self.block(head, |p| {
                p.locals(&control.locals);
                p.stmts(&control.body);
            });
        }
        self.text
    }

    fn pipeline(&mut self) {
        let pipeline = &self.program.pipeline;
        self.block("pipeline", |p| {
            let controls = [
                ("verify_checksum", pipeline.verify_checksum),
                ("ingress", pipeline.ingress),
                ("egress", pipeline.egress),
                ("compute_checksum", pipeline.compute_checksum),
                ("deparser", pipeline.deparser),
            ];
            let parser = p.names.parsers.of(pipeline.parser.index());
            p.line(format_args!("parser {parser}"));
            for (role, control) in controls {
                let control = p.names.controls.of(control.index());
                p.line(format_args!("{role} {control}"));
            }
            let headers = p.ty(pipeline.headers);
            p.line(format_args!("headers: {headers}"));
            let metadata = p.ty(pipeline.metadata);
            p.line(format_args!("metadata: {metadata}"));
            let standard = p.names.structs.of(pipeline.standard_metadata.index());
            p.line(format_args!("standard_metadata: struct {standard}"));
        });
        for list in &self.program.field_lists {
            let fields: Vec<String> = list
                .fields
                .iter()
                .map(|path| self.field_path(pipeline.metadata, path))
                .collect();
            self.line(format_args!(
                "field_list {} {{{}}}",
                list.number,
                fields.join(", ")
            ));
        }
    }

    fn types(&mut self) {
        let program = self.program;
        self.line(format_args!(
            "error {{{}}}",
            names::members(&program.errors)
        ));
        for (i, def) in program.enums.iter().enumerate() {
            let name = self.names.enums.of(i);
            self.line(format_args!(
                "enum {name} {{{}}}",
                names::members(&def.members)
            ));
        }
        for (i, def) in program.structs.iter().enumerate() {
            let head = format!(
                "fields {}{}",
                self.names.structs.of(i),
                annotations(&def.annotations)
            );
            self.block(head, |p| {
                for (position, field) in def.fields.iter().enumerate() {
                    let name = p.names.fields[i].of(position);
                    let ty = p.ty(field.ty);
                    let notes = annotations(&field.annotations);
                    p.line(format_args!("{name}: {ty}{notes}"));
                }
            });
        }
        for (i, def) in program.stacks.iter().enumerate() {
            let element = self.ty(def.element);
            self.line(format_args!("stack {i}: {element}[{}]", def.size));
        }
    }

    fn objects(&mut self) {
        let program = self.program;
        for (i, register) in program.registers.iter().enumerate() {
            let line = format!(
                "register {}: {}[{}]{}",
                self.names.registers.of(i),
                self.ty(register.element),
                register.size,
                annotations(&register.annotations)
            );
            self.line(line);
        }
        for (i, counter) in program.counters.iter().enumerate() {
            let kind = counter_kind(counter.kind);
            let name = self.names.counters.of(i);
            let extent = self.extent(counter.size, counter.table);
            self.line(format_args!("counter {name}: {kind}{extent}"));
        }
        for (i, meter) in program.meters.iter().enumerate() {
            let kind = if meter.bytes { "bytes" } else { "packets" };
            let name = self.names.meters.of(i);
            let extent = self.extent(meter.size, meter.table);
            self.line(format_args!("meter {name}: {kind}{extent}"));
        }
        for (i, set) in program.value_sets.iter().enumerate() {
            let head = format!(
                "value_set {}[{}]{}",
                self.names.value_sets.of(i),
                set.size,
                annotations(&set.annotations)
            );
            self.block(head, |p| {
                for field in &set.fields {
                    let kind = match_kind(field.match_kind);
                    p.line(format_args!("{:?} {kind} {}", field.name, field.width));
                }
            });
        }
    }

    fn action_profiles(&mut self) {
        let program = self.program;
        for (i, profile) in program.action_profiles.iter().enumerate() {
            let selector = profile.selector.map_or_else(String::new, |selector| {
                let algorithm = stmt::algorithm_name(selector.algorithm);
                format!(" selector {algorithm} {}", selector.output_width)
            });
            let line = format!(
                "action_profile {}[{}]{selector}{}",
                self.names.action_profiles.of(i),
                profile.size,
                annotations(&profile.annotations)
            );
            self.line(line);
        }
    }

    fn extent(&self, size: u64, table: Option<crate::TableId>) -> String {
        match table {
            None => format!("[{size}]"),
            Some(table) if size == 0 => format!(" of {}", self.names.tables.of(table.index())),
            Some(table) => format!("[{size}] of {}", self.names.tables.of(table.index())),
        }
    }

    fn params(&self, params: &[Param]) -> String {
        let params: Vec<String> = params
            .iter()
            .map(|param| {
                let direction = match param.direction {
                    Direction::In => "in",
                    Direction::Out => "out",
                    Direction::InOut => "inout",
                    Direction::Data => "data",
                };
                format!("{direction} {}", self.var(param.var))
            })
            .collect();
        params.join(", ")
    }

    fn locals(&mut self, locals: &[VarId]) {
        if !locals.is_empty() {
            let names: Vec<String> = locals.iter().map(|&var| self.var(var)).collect();
            self.line(format_args!("locals {}", names.join(", ")));
        }
    }

    fn parser(&mut self, index: usize, parser: &Parser) {
        let head = format!(
            "parser {}({})",
            self.names.parsers.of(index),
            self.params(&parser.params)
        );
        let states = names::unique(parser.states.iter().map(|state| state.name.as_str()));
        self.block(head, |p| {
            p.locals(&parser.locals);
            if !parser.init.is_empty() {
                p.block("init", |p| p.stmts(&parser.init));
            }
            let start = states.of(parser.start.index());
            p.line(format_args!("start {start}"));
            for (i, state) in parser.states.iter().enumerate() {
                let head = format!("state {}", states.of(i));
                p.block(head, |p| {
                    p.stmts(&state.body);
                    p.transition(&state.transition, &states);
                });
            }
        });
    }

    fn transition(&mut self, transition: &Transition, states: &names::Kind) {
        let target = |target: &Target| match target {
            Target::State(state) => states.of(state.index()),
            Target::Accept => "accept".to_owned(),
            Target::Reject => "reject".to_owned(),
        };
        match transition {
            Transition::To(to) => self.line(format_args!("goto {}", target(to))),
            Transition::Select { keys, cases } => {
                let head = format!("select ({})", self.exprs(keys));
                self.block(head, |p| {
                    for (sets, to) in cases {
                        let line = format!("({}) => {}", p.key_sets(sets), target(to));
                        p.line(line);
                    }
                });
            }
        }
    }

    fn table(&mut self, index: usize, table: &Table) {
        let head = format!(
            "table {}{}",
            self.names.tables.of(index),
            annotations(&table.annotations)
        );
        self.block(head, |p| {
            for key in &table.keys {
                let line = format!(
                    "key {:?} {} {}",
                    key.name,
                    match_kind(key.match_kind),
                    p.expr(&key.expr)
                );
                p.line(line);
            }
            for action in &table.actions {
                let line = format!(
                    "action {}({}){}{}",
                    p.names.actions.of(action.action.index()),
                    p.args(&action.bound),
                    if action.in_entries {
                        ""
                    } else {
                        " defaultonly"
                    },
                    if action.as_default { "" } else { " tableonly" },
                );
                p.line(line);
            }
            let line = format!(
                "{}default {}",
                if table.const_default { "const " } else { "" },
                p.action_call(table, &table.default_action)
            );
            p.line(line);
            for entry in &table.entries {
                let line = p.entry(table, entry);
                p.line(line);
            }
            if table.const_entries {
                p.line("const entries");
            }
            p.line(format_args!("size {}", table.size));
            if let Some(counter) = table.direct_counter {
                let name = p.names.counters.of(counter.index());
                p.line(format_args!("direct_counter {name}"));
            }
            if let Some(meter) = table.direct_meter {
                let name = p.names.meters.of(meter.index());
                p.line(format_args!("direct_meter {name}"));
            }
            if table.support_timeout {
                p.line("support_timeout");
            }
            if let Some(profile) = table.implementation {
                let name = p.names.action_profiles.of(profile.index());
                p.line(format_args!("implementation {name}"));
            }
        });
    }

    fn key_sets(&self, sets: &[KeySet]) -> String {
        let sets: Vec<String> = sets
            .iter()
            .map(|set| match set {
                KeySet::Any => "_".to_owned(),
                KeySet::Exact(value) => format!("{value:#x}"),
                KeySet::Mask(value, mask) => format!("{value:#x} &&& {mask:#x}"),
                KeySet::Range(lo, hi) => format!("{lo:#x} .. {hi:#x}"),
                KeySet::Prefix(value, length) => format!("{value:#x}/{length}"),
                KeySet::Member { set, field } => {
                    format!("in {}[{field}]", self.names.value_sets.of(set.index()))
                }
            })
            .collect();
        sets.join(", ")
    }

    fn entry(&self, table: &Table, entry: &Entry) -> String {
        format!(
            "{}entry priority {} ({}) => {}",
            if entry.is_const { "const " } else { "" },
            entry.priority,
            self.key_sets(&entry.keys),
            self.action_call(table, &entry.call)
        )
    }

    fn action_call(&self, table: &Table, call: &ActionCall) -> String {
        let Some(listed) = table.actions.get(call.action as usize) else {
            return format!("?{}", call.action);
        };
        let mut types = self
            .program
            .actions
            .get(listed.action.index())
            .into_iter()
            .flat_map(|action| &action.params)
            .filter(|param| param.direction == Direction::Data)
            .map(|param| self.var_type(param.var));
        let data: Vec<String> = call
            .data
            .iter()
            .map(|value| self.constant(value, types.next().flatten()))
            .collect();
        let same = |other: &&TableAction| other.action == listed.action;
        let position = match table.actions.iter().filter(same).count() {
            1 => String::new(),
            _ => format!("[{}]", call.action),
        };
        format!(
            "{}{position}({})",
            self.names.actions.of(listed.action.index()),
            data.join(", ")
        )
    }
}

pub(crate) fn counter_kind(kind: CounterKind) -> &'static str {
    match kind {
        CounterKind::Packets => "packets",
        CounterKind::Bytes => "bytes",
        CounterKind::PacketsAndBytes => "packets_and_bytes",
    }
}

pub(crate) fn match_kind(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
        MatchKind::Selector => "selector",
    }
}

fn annotations(annotations: &[Annotation]) -> String {
    let mut text = String::new();
    for annotation in annotations {
        // Writing to a string does not fail.
        let _ = write!(text, " {}", annotation::text(annotation));
    }
    text
}

#[cfg(test)]
mod tests;
