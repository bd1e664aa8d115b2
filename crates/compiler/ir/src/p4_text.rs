//! A program as P4-like text, for people: every type resolved, every constant
//! folded, every name in full, and each instance of a parser, control or extern by itself.
//!
//! It follows P4's syntax, but is no source text: names have dots in them, and the
//! variables that the check introduces begin with `$`.

mod expr;
mod stmt;

use crate::{
    ActionCall, Annotation, AnnotationBody, AnnotationToken, AnnotationValue, Control, CounterKind,
    Direction, Entry, HashAlgorithm, KeySet, MatchKind, Param, Parser, Program, StructDef, Table,
    Target, Transition, Type, VarId,
};
use std::fmt::{self, Write as _};

/// The P4-like text of a program.
#[must_use]
pub fn p4_text(program: &Program) -> String {
    let mut printer = Printer {
        program,
        depth: 0,
        text: String::new(),
    };
    printer.program();
    printer.text
}

struct Printer<'p> {
    program: &'p Program,
    depth: usize,
    text: String,
}

/// The part of a full name behind its last dot, under which a block knows its own.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl<'p> Printer<'p> {
    fn line(&mut self, line: impl fmt::Display) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn block(&mut self, head: impl fmt::Display, body: impl FnOnce(&mut Self)) {
        self.line(format_args!("{head} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }

    fn program(&mut self) {
        let program = self.program;
        self.line(format_args!("error {{ {} }}", program.errors.join(", ")));
        for def in &program.enums {
            let members = def.members.join(", ");
            self.line(format_args!("enum {} {{ {members} }}", def.name));
        }
        self.types();
        self.objects();
        for function in &program.functions {
            let result = function
                .result
                .map_or_else(|| "void".to_owned(), |var| self.var_type(var));
            let params = self.params(&function.params, None);
            self.text.push('\n');
            let head = format!("{result} {}({params})", function.name);
            self.block(head, |p| {
                p.locals(&function.locals);
                p.stmts(&function.body);
            });
        }
        let owners = self.owners();
        for (action, owner) in (0..).zip(&owners.actions) {
            if owner.is_none() {
                self.text.push('\n');
                self.action(action);
            }
        }
        for parser in &program.parsers {
            self.text.push('\n');
            self.parser(parser);
        }
        for (position, control) in program.controls.iter().enumerate() {
            self.text.push('\n');
            self.control(position, control, &owners);
        }
        self.main();
    }

    fn types(&mut self) {
        let word = |id: usize| {
            let is = |ty: Type| matches!(ty, Type::Header(of) if of.index() == id);
            let union = |ty: Type| matches!(ty, Type::Union(of) if of.index() == id);
            let fields = self.program.structs.iter().flat_map(|def| &def.fields);
            let elements = self.program.stacks.iter().map(|def| def.element);
            let vars = self.program.vars.iter().map(|var| var.ty);
            let mut all = fields.map(|field| field.ty).chain(elements).chain(vars);
            match all.find(|ty| is(*ty) || union(*ty)) {
                Some(ty) if is(ty) => "header",
                Some(_) => "header_union",
                None => "struct",
            }
        };
        let words: Vec<&str> = (0..self.program.structs.len()).map(word).collect();
        for (word, def) in words.into_iter().zip(&self.program.structs) {
            self.text.push('\n');
            self.fields(word, def);
        }
    }

    fn fields(&mut self, word: &str, def: &StructDef) {
        let head = format!("{}{word} {}", notes(&def.annotations), def.name);
        self.block(head, |p| {
            for field in &def.fields {
                let ty = p.ty(field.ty);
                let notes = notes(&field.annotations);
                p.line(format_args!("{notes}{ty} {};", field.name));
            }
        });
    }

    fn objects(&mut self) {
        let program = self.program;
        if !program.registers.is_empty()
            || !program.counters.is_empty()
            || !program.meters.is_empty()
            || !program.action_profiles.is_empty()
        {
            self.text.push('\n');
        }
        for register in &program.registers {
            let (notes, ty) = (notes(&register.annotations), self.ty(register.element));
            self.line(format_args!(
                "{notes}register<{ty}>({}) {};",
                register.size, register.name
            ));
        }
        for counter in &program.counters {
            let kind = match counter.kind {
                CounterKind::Packets => "CounterType.packets",
                CounterKind::Bytes => "CounterType.bytes",
                CounterKind::PacketsAndBytes => "CounterType.packets_and_bytes",
            };
            match counter.table {
                None => self.line(format_args!(
                    "counter({}, {kind}) {};",
                    counter.size, counter.name
                )),
                Some(_) => self.line(format_args!("direct_counter({kind}) {};", counter.name)),
            }
        }
        for meter in &program.meters {
            let kind = if meter.bytes {
                "MeterType.bytes"
            } else {
                "MeterType.packets"
            };
            match meter.table {
                None => self.line(format_args!(
                    "meter({}, {kind}) {};",
                    meter.size, meter.name
                )),
                Some(_) => self.line(format_args!("direct_meter({kind}) {};", meter.name)),
            }
        }
        for profile in &program.action_profiles {
            let (size, name) = (profile.size, &profile.name);
            match &profile.selector {
                None => self.line(format_args!("action_profile({size}) {name};")),
                Some(selector) => self.line(format_args!(
                    "action_selector({}, {size}, {}) {name};",
                    algorithm(selector.algorithm),
                    selector.output_width
                )),
            }
        }
        for set in &program.value_sets {
            let fields = set.fields.iter().map(|field| {
                let kind = match_kind(field.match_kind);
                match field.name.as_str() {
                    "" => format!("bit<{}> {kind}", field.width),
                    name => format!("{name}: bit<{}> {kind}", field.width),
                }
            });
            let fields: Vec<String> = fields.collect();
            self.line(format_args!(
                "value_set<{}>({}) {};",
                fields.join(", "),
                set.size,
                set.name
            ));
        }
    }

    /// Parameters; those of the architecture's blocks have the packet before or among them.
    fn params(&self, params: &[Param], packet: Option<&str>) -> String {
        let packet = packet.map(str::to_owned);
        let params = params.iter().map(|param| {
            let direction = match param.direction {
                Direction::In => "in ",
                Direction::Out => "out ",
                Direction::InOut => "inout ",
                Direction::Data => "",
            };
            let var = &self.program.vars[param.var.index()];
            format!("{direction}{} {}", self.ty(var.ty), var.name)
        });
        let all: Vec<String> = packet.into_iter().chain(params).collect();
        all.join(", ")
    }

    fn locals(&mut self, locals: &[VarId]) {
        for &local in locals {
            let ty = self.var_type(local);
            let name = &self.program.vars[local.index()].name;
            self.line(format_args!("{ty} {name};"));
        }
    }

    fn var_type(&self, var: VarId) -> String {
        self.ty(self.program.vars[var.index()].ty)
    }

    fn action(&mut self, position: usize) {
        let action = &self.program.actions[position];
        let params = self.params(&action.params, None);
        let notes = notes(&action.annotations);
        let head = format!("{notes}action {}({params})", action.name);
        self.block(head, |p| {
            p.locals(&action.locals);
            p.stmts(&action.body);
        });
    }

    fn parser(&mut self, parser: &Parser) {
        let params = self.params(&parser.params, Some("packet_in packet"));
        self.block(format_args!("parser {}({params})", parser.name), |p| {
            p.locals(&parser.locals);
            p.stmts(&parser.init);
            for state in &parser.states {
                p.block(format_args!("state {}", state.name), |p| {
                    p.stmts(&state.body);
                    p.transition(parser, &state.transition);
                });
            }
        });
    }

    fn transition(&mut self, parser: &Parser, transition: &Transition) {
        let name = |target: &Target| match target {
            Target::State(state) => parser.states[state.index()].name.as_str(),
            Target::Accept => "accept",
            Target::Reject => "reject",
        };
        match transition {
            Transition::To(target) => self.line(format_args!("transition {};", name(target))),
            Transition::Select { keys, cases } => {
                let head = format!("transition select({})", self.exprs(keys));
                self.block(head, |p| {
                    for (sets, target) in cases {
                        let sets = p.key_sets(sets);
                        p.line(format_args!("{sets}: {};", name(target)));
                    }
                });
            }
        }
    }

    fn control(&mut self, position: usize, control: &Control, owners: &Owners) {
        let deparser = self.program.pipeline.deparser.index() == position;
        let params = self.params(&control.params, deparser.then_some("packet_out packet"));
        self.block(format_args!("control {}({params})", control.name), |p| {
            p.locals(&control.locals);
            for (action, owner) in (0..).zip(&owners.actions) {
                if *owner == Some(position) {
                    p.action(action);
                }
            }
            for (table, owner) in p.program.tables.iter().zip(&owners.tables) {
                if *owner == Some(position) {
                    p.table(table);
                }
            }
            p.block("apply", |p| p.stmts(&control.body));
        });
    }

    fn table(&mut self, table: &Table) {
        let head = format!("{}table {}", notes(&table.annotations), table.name);
        self.block(head, |p| {
            if !table.keys.is_empty() {
                p.block("key =", |p| {
                    for key in &table.keys {
                        let expr = p.expr(&key.expr);
                        let kind = match_kind(key.match_kind);
                        p.line(format_args!("{expr}: {kind} @name({:?});", key.name));
                    }
                });
            }
            p.block("actions =", |p| {
                for action in &table.actions {
                    let name = &p.program.actions[action.action.index()].name;
                    let bound = p.args(&action.bound);
                    let only = match (action.in_entries, action.as_default) {
                        (false, _) => "@defaultonly ",
                        (true, false) => "@tableonly ",
                        (true, true) => "",
                    };
                    p.line(format_args!("{only}{name}({bound});"));
                }
            });
            let fixed = if table.const_default { "const " } else { "" };
            let default = p.action_call(table, &table.default_action);
            p.line(format_args!("{fixed}default_action = {default};"));
            p.entries(table);
            p.properties(table);
        });
    }

    fn entries(&mut self, table: &Table) {
        if table.entries.is_empty() && !table.const_entries {
            return;
        }
        let fixed = if table.const_entries { "const " } else { "" };
        self.block(format_args!("{fixed}entries ="), |p| {
            for entry in &table.entries {
                let Entry {
                    keys,
                    priority,
                    call,
                    is_const,
                } = entry;
                let fixed = if *is_const && !table.const_entries {
                    "const "
                } else {
                    ""
                };
                let (keys, call) = (p.key_sets(keys), p.action_call(table, call));
                p.line(format_args!("{fixed}priority={priority}: {keys}: {call};"));
            }
        });
    }

    fn properties(&mut self, table: &Table) {
        let program = self.program;
        if let Some(profile) = table.implementation {
            let name = &program.action_profiles[profile.index()].name;
            self.line(format_args!("implementation = {name};"));
        }
        if let Some(counter) = table.direct_counter {
            let name = &program.counters[counter.index()].name;
            self.line(format_args!("counters = {name};"));
        }
        if let Some(meter) = table.direct_meter {
            let name = &program.meters[meter.index()].name;
            self.line(format_args!("meters = {name};"));
        }
        if table.support_timeout {
            self.line("support_timeout = true;");
        }
        self.line(format_args!("size = {};", table.size));
    }

    fn action_call(&self, table: &Table, call: &ActionCall) -> String {
        let id = table.actions[call.action as usize].action;
        let action = &self.program.actions[id.index()];
        let data = action
            .params
            .iter()
            .filter(|param| param.direction == Direction::Data)
            .zip(&call.data)
            .map(|(param, value)| self.constant(value, self.program.vars[param.var.index()].ty));
        let data: Vec<String> = data.collect();
        format!("{}({})", action.name, data.join(", "))
    }

    fn key_sets(&self, sets: &[KeySet]) -> String {
        let text = |set: &KeySet| match set {
            KeySet::Any => "_".to_owned(),
            KeySet::Exact(value) => format!("{value:#x}"),
            KeySet::Mask(value, mask) => format!("{value:#x} &&& {mask:#x}"),
            KeySet::Range(low, high) => format!("{low:#x} .. {high:#x}"),
            KeySet::Prefix(value, length) => format!("{value:#x}/{length}"),
            KeySet::Member { set, field } => {
                let set = &self.program.value_sets[set.index()];
                match set.fields[*field as usize].name.as_str() {
                    "" => set.name.clone(),
                    field => format!("{}.{field}", set.name),
                }
            }
        };
        match sets {
            [only] => text(only),
            several => {
                let texts: Vec<String> = several.iter().map(text).collect();
                format!("({})", texts.join(", "))
            }
        }
    }

    fn main(&mut self) {
        let program = self.program;
        let pipeline = &program.pipeline;
        let control = |id: crate::ControlId| &program.controls[id.index()].name;
        self.text.push('\n');
        for list in &program.field_lists {
            let fields = list
                .fields
                .iter()
                .map(|path| self.field_path(pipeline.metadata, path));
            let fields: Vec<String> = fields.collect();
            let number = list.number;
            self.line(format_args!(
                "// field list {number}: {}",
                fields.join(", ")
            ));
        }
        self.line(format_args!(
            "V1Switch({}, {}, {}, {}, {}, {}) main;",
            program.parsers[pipeline.parser.index()].name,
            control(pipeline.verify_checksum),
            control(pipeline.ingress),
            control(pipeline.egress),
            control(pipeline.compute_checksum),
            control(pipeline.deparser),
        ));
    }

    /// The controls that actions and tables are shown in: those whose name their own begins
    /// with, or that apply them; an action that no control is sure to own stands alone.
    fn owners(&self) -> Owners {
        let controls = &self.program.controls;
        let owner = |name: &str| {
            let front = &name[..name.len() - last_part(name).len()];
            let front = front.strip_suffix('.')?;
            controls.iter().position(|control| control.name == front)
        };
        let applied = |table: usize| {
            controls
                .iter()
                .position(|control| stmt::applies(&control.body, table))
        };
        Owners {
            actions: (self.program.actions.iter())
                .map(|action| owner(&action.name))
                .collect(),
            tables: (self.program.tables.iter().enumerate())
                .map(|(position, table)| applied(position).or_else(|| owner(&table.name)))
                .map(|owner| owner.or(Some(self.program.pipeline.ingress.index())))
                .collect(),
        }
    }
}

/// Positions of the controls in which actions and tables are shown.
struct Owners {
    actions: Vec<Option<usize>>,
    tables: Vec<Option<usize>>,
}

fn match_kind(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
        MatchKind::Selector => "selector",
    }
}

fn algorithm(algorithm: HashAlgorithm) -> &'static str {
    match algorithm {
        HashAlgorithm::Crc32 => "HashAlgorithm.crc32",
        HashAlgorithm::Crc32Custom => "HashAlgorithm.crc32_custom",
        HashAlgorithm::Crc16 => "HashAlgorithm.crc16",
        HashAlgorithm::Crc16Custom => "HashAlgorithm.crc16_custom",
        HashAlgorithm::Random => "HashAlgorithm.random",
        HashAlgorithm::Identity => "HashAlgorithm.identity",
        HashAlgorithm::Csum16 => "HashAlgorithm.csum16",
        HashAlgorithm::Xor16 => "HashAlgorithm.xor16",
    }
}

/// Annotations, each followed by a blank.
fn notes(annotations: &[Annotation]) -> String {
    let value = |value: &AnnotationValue| match value {
        AnnotationValue::String(text) => format!("{text:?}"),
        AnnotationValue::Int(number) => number.to_string(),
        AnnotationValue::Bool(value) => value.to_string(),
    };
    let mut text = String::new();
    for annotation in annotations {
        let body = match &annotation.body {
            AnnotationBody::Empty => String::new(),
            AnnotationBody::Tokens(tokens) => {
                let tokens = tokens.iter().map(|token| match token {
                    AnnotationToken::String(text) => format!("{text:?}"),
                    AnnotationToken::Number(_, text) | AnnotationToken::Other(text) => text.clone(),
                });
                format!("({})", tokens.collect::<Vec<_>>().join(" "))
            }
            AnnotationBody::Values(values) => {
                let values: Vec<String> = values.iter().map(value).collect();
                format!("[{}]", values.join(", "))
            }
            AnnotationBody::Pairs(pairs) => {
                let pairs = pairs.iter().map(|(key, of)| format!("{key}={}", value(of)));
                format!("[{}]", pairs.collect::<Vec<_>>().join(", "))
            }
        };
        let _ = write!(text, "@{}{body} ", annotation.name);
    }
    text
}
