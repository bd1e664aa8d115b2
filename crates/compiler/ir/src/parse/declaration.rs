//! Objects, callables, tables and the pipeline.

use super::header::Item;
use super::lexer::{Lexeme, Token};
use super::symbols::{Kind, Symbols};
use super::{Parser, Result};
use crate::print::match_kind;
use crate::{
    Action, ActionCall, ActionId, ActionProfile, ActionProfileId, Control, ControlId, Counter,
    CounterId, CounterKind, Direction, Entry, FieldList, Function, Key, KeySet, MatchKind, Meter,
    MeterId, Param, ParserId, Pipeline, Program, Register, Selector, State, StateId, StructId,
    Table, TableAction, TableId, Target, Transition, Type, ValueSet, ValueSetField, ValueSetId,
    VarId,
};

const MATCH_KINDS: [MatchKind; 6] = [
    MatchKind::Exact,
    MatchKind::Lpm,
    MatchKind::Ternary,
    MatchKind::Range,
    MatchKind::Optional,
    MatchKind::Selector,
];

/// Reads all declarations but those of types and variables into `program`, which has
/// these.
pub(super) fn bodies(
    tokens: &[Lexeme],
    items: &[Item<'_>],
    program: Program,
    symbols: &Symbols,
) -> Result<Program> {
    let mut out = program.clone();
    let mut pipelines = 0;
    let of = |item: &Item<'_>| Parser::new(tokens, item.at, &program, symbols);
    // Members of field lists are those of the pipeline's metadata.
    for item in items.iter().filter(|item| item.keyword == "pipeline") {
        let mut parser = of(item);
        if pipelines == 1 {
            return parser.error("a second pipeline");
        }
        out.pipeline = parser.pipeline()?;
        parser.end_of_item()?;
        pipelines += 1;
    }
    if pipelines == 0 {
        let end = Parser::new(tokens, tokens.len(), &program, symbols);
        return end.error("there is no pipeline");
    }
    for item in items {
        let mut parser = of(item);
        match item.keyword {
            "field_list" => {
                let list = parser.field_list(out.pipeline.metadata)?;
                out.field_lists.push(list);
            }
            "register" => out.registers.push(parser.register_array()?),
            "counter" => out.counters.push(parser.counter_array()?),
            "meter" => out.meters.push(parser.meter_array()?),
            "value_set" => out.value_sets.push(parser.value_set()?),
            "action_profile" => out.action_profiles.push(parser.action_profile()?),
            "function" => out.functions.push(parser.function()?),
            "action" => out.actions.push(parser.action()?),
            "control" => out.controls.push(parser.control()?),
            "parser" => out.parsers.push(parser.parser()?),
            "table" => out.tables.push(parser.table()?),
            _ => continue,
        }
        parser.end_of_item()?;
    }
    Ok(out)
}

impl Parser<'_> {
    fn pipeline(&mut self) -> Result<Pipeline> {
        let symbols = self.symbols;
        self.sign("{")?;
        self.word("parser")?;
        let parser = ParserId(self.resolve("parser", &symbols.parsers)?);
        let mut controls = [ControlId(0); 5];
        let roles = [
            "verify_checksum",
            "ingress",
            "egress",
            "compute_checksum",
            "deparser",
        ];
        for (role, control) in roles.iter().zip(&mut controls) {
            self.word(role)?;
            *control = ControlId(self.resolve("control", &symbols.controls)?);
        }
        self.word("headers")?;
        self.sign(":")?;
        let headers = self.ty()?;
        self.word("metadata")?;
        self.sign(":")?;
        let metadata = self.ty()?;
        self.word("standard_metadata")?;
        self.sign(":")?;
        self.word("struct")?;
        let standard_metadata = StructId(self.resolve("struct", &symbols.structs)?);
        self.sign("}")?;
        let [verify_checksum, ingress, egress, compute_checksum, deparser] = controls;
        Ok(Pipeline {
            parser,
            verify_checksum,
            ingress,
            egress,
            compute_checksum,
            deparser,
            headers,
            metadata,
            standard_metadata,
        })
    }

    fn field_list(&mut self, metadata: Type) -> Result<FieldList> {
        let number = self.small()?;
        self.sign("{")?;
        let fields = self.list("}", |p| p.field_path(metadata))?;
        Ok(FieldList { number, fields })
    }

    fn register_array(&mut self) -> Result<Register> {
        let name = self.name()?.text;
        self.sign(":")?;
        Ok(Register {
            name,
            element: self.element_type()?,
            size: self.bracketed()?,
            annotations: self.annotations()?,
        })
    }

    fn counter_array(&mut self) -> Result<Counter> {
        let name = self.name()?.text;
        self.sign(":")?;
        let kinds = [
            CounterKind::Packets,
            CounterKind::Bytes,
            CounterKind::PacketsAndBytes,
        ];
        let kind = self.one_of("what is counted", &kinds, crate::print::counter_kind)?;
        let (size, table) = self.extent()?;
        Ok(Counter {
            name,
            kind,
            size,
            table,
        })
    }

    fn meter_array(&mut self) -> Result<Meter> {
        let name = self.name()?.text;
        self.sign(":")?;
        let bytes = self.take_word("bytes");
        if !bytes {
            self.word("packets")?;
        }
        let (size, table) = self.extent()?;
        Ok(Meter {
            name,
            bytes,
            size,
            table,
        })
    }

    /// A size, a table, or both.
    fn extent(&mut self) -> Result<(u64, Option<TableId>)> {
        let mut size = 0;
        if self.is("[") {
            size = self.bracketed()?;
            if self.keyword() != Some("of") || self.end_of_item().is_ok() {
                return Ok((size, None));
            }
        }
        self.word("of")?;
        let tables = &self.symbols.tables;
        let table = TableId(self.resolve("table", tables)?);
        Ok((size, Some(table)))
    }

    fn match_kind(&mut self) -> Result<MatchKind> {
        self.one_of("a match kind", &MATCH_KINDS, match_kind)
    }

    fn value_set(&mut self) -> Result<ValueSet> {
        let name = self.name()?.text;
        let size = self.bracketed()?;
        let annotations = self.annotations()?;
        self.sign("{")?;
        let mut fields = Vec::new();
        while !self.take("}") {
            fields.push(ValueSetField {
                name: self.string()?,
                match_kind: self.match_kind()?,
                width: self.small()?,
            });
        }
        Ok(ValueSet {
            name,
            fields,
            size,
            annotations,
        })
    }

    fn action_profile(&mut self) -> Result<ActionProfile> {
        let name = self.name()?.text;
        let size = self.bracketed()?;
        let mut selector = None;
        if self.take_word("selector") {
            selector = Some(Selector {
                algorithm: self.algorithm()?,
                output_width: self.small()?,
            });
        }
        Ok(ActionProfile {
            name,
            size,
            selector,
            annotations: self.annotations()?,
        })
    }

    fn params(&mut self) -> Result<Vec<Param>> {
        self.sign("(")?;
        self.list(")", |p| {
            let direction = match p.keyword() {
                Some("in") => Direction::In,
                Some("out") => Direction::Out,
                Some("inout") => Direction::InOut,
                Some("data") => Direction::Data,
                _ => return p.expected("a direction"),
            };
            p.at += 1;
            let var = p.var()?;
            Ok(Param { var, direction })
        })
    }

    fn locals(&mut self) -> Result<Vec<VarId>> {
        let mut locals = Vec::new();
        if self.take_word("locals") {
            locals.push(self.var()?);
            while self.take(",") {
                locals.push(self.var()?);
            }
        }
        Ok(locals)
    }

    fn function(&mut self) -> Result<Function> {
        let name = self.name()?.text;
        let params = self.params()?;
        let result = if self.take("->") {
            Some(self.var()?)
        } else {
            None
        };
        self.sign("{")?;
        let locals = self.locals()?;
        let body = self.rest_of_block()?;
        Ok(Function {
            name,
            params,
            locals,
            result,
            body,
        })
    }

    fn action(&mut self) -> Result<Action> {
        let name = self.name()?.text;
        let params = self.params()?;
        let annotations = self.annotations()?;
        self.sign("{")?;
        Ok(Action {
            name,
            params,
            locals: self.locals()?,
            body: self.rest_of_block()?,
            annotations,
        })
    }

    fn control(&mut self) -> Result<Control> {
        let name = self.name()?.text;
        let params = self.params()?;
        self.sign("{")?;
        Ok(Control {
            name,
            params,
            locals: self.locals()?,
            body: self.rest_of_block()?,
        })
    }

    fn parser(&mut self) -> Result<crate::Parser> {
        let name = self.name()?.text;
        let params = self.params()?;
        self.sign("{")?;
        let locals = self.locals()?;
        let mut init = Vec::new();
        if self.take_word("init") {
            init = self.block()?;
        }
        let states = self.state_names()?;
        self.word("start")?;
        let start = StateId(self.resolve("state", &states)?);
        let mut bodies = Vec::new();
        while self.take_word("state") {
            let name = self.name()?.text;
            self.sign("{")?;
            let ends = |p: &Self| matches!(p.keyword(), Some("goto" | "select"));
            let body = self.stmts(ends)?;
            let transition = self.transition(&states)?;
            self.sign("}")?;
            bodies.push(State {
                name,
                body,
                transition,
            });
        }
        self.sign("}")?;
        Ok(crate::Parser {
            name,
            params,
            locals,
            init,
            states: bodies,
            start,
        })
    }

    /// The names of the states of a parser whose states come next.
    fn state_names(&self) -> Result<Kind> {
        let mut ahead = Parser::new(self.tokens, self.at, self.program, self.symbols);
        let mut names = Kind::default();
        ahead.word("start")?;
        ahead.name()?;
        while ahead.take_word("state") {
            ahead.declare(&mut names)?;
            let mut open = 0_usize;
            loop {
                match ahead.next() {
                    Token::Sign("{") => open += 1,
                    Token::Sign("}") if open <= 1 => break,
                    Token::Sign("}") => open -= 1,
                    Token::End => return ahead.expected("`}`"),
                    _ => {}
                }
            }
        }
        Ok(names)
    }

    fn transition(&mut self, states: &Kind) -> Result<Transition> {
        if self.take_word("goto") {
            return Ok(Transition::To(self.target(states)?));
        }
        self.word("select")?;
        self.sign("(")?;
        let keys = self.exprs(")")?;
        self.sign("{")?;
        let mut cases = Vec::new();
        while !self.take("}") {
            self.sign("(")?;
            let sets = self.list(")", Self::key_set)?;
            self.sign("=>")?;
            cases.push((sets, self.target(states)?));
        }
        Ok(Transition::Select { keys, cases })
    }

    fn target(&mut self, states: &Kind) -> Result<Target> {
        if self.take_word("accept") {
            return Ok(Target::Accept);
        }
        if self.take_word("reject") {
            return Ok(Target::Reject);
        }
        Ok(Target::State(StateId(self.resolve("state", states)?)))
    }

    fn key_set(&mut self) -> Result<KeySet> {
        if self.take_word("_") {
            return Ok(KeySet::Any);
        }
        if self.take_word("in") {
            let sets = &self.symbols.value_sets;
            let set = ValueSetId(self.resolve("value set", sets)?);
            let field = self.bracketed()?;
            return Ok(KeySet::Member { set, field });
        }
        let value = self.number()?;
        Ok(if self.take("&&&") {
            KeySet::Mask(value, self.number()?)
        } else if self.take("..") {
            KeySet::Range(value, self.number()?)
        } else if self.take("/") {
            KeySet::Prefix(value, self.small()?)
        } else {
            KeySet::Exact(value)
        })
    }

    fn table(&mut self) -> Result<Table> {
        let symbols = self.symbols;
        let mut table = Table {
            name: self.name()?.text,
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: ActionCall {
                action: 0,
                data: Vec::new(),
            },
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            size: 0,
            direct_counter: None,
            direct_meter: None,
            support_timeout: false,
            implementation: None,
            annotations: self.annotations()?,
        };
        self.sign("{")?;
        let (mut default, mut size) = (false, false);
        while !self.take("}") {
            let is_const = self.take_word("const");
            let Some(word) = self.keyword() else {
                return self.expected("a property of the table");
            };
            self.at += 1;
            match (word, is_const) {
                ("key", false) => table.keys.push(Key {
                    name: self.string()?,
                    match_kind: self.match_kind()?,
                    expr: self.expr()?,
                }),
                ("action", false) => table.actions.push(self.table_action()?),
                ("default", _) => {
                    table.const_default = is_const;
                    table.default_action = self.action_call(&table.actions)?;
                    default = true;
                }
                ("entry", _) => {
                    let entry = self.entry(&table.actions, is_const)?;
                    table.entries.push(entry);
                }
                ("entries", true) => table.const_entries = true,
                ("size", false) => {
                    table.size = self.number()?;
                    size = true;
                }
                ("direct_counter", false) => {
                    let counters = &symbols.counters;
                    table.direct_counter = Some(CounterId(self.resolve("counter", counters)?));
                }
                ("direct_meter", false) => {
                    let meters = &symbols.meters;
                    table.direct_meter = Some(MeterId(self.resolve("meter", meters)?));
                }
                ("implementation", false) => {
                    let profiles = &symbols.action_profiles;
                    let profile = self.resolve("action profile", profiles)?;
                    table.implementation = Some(ActionProfileId(profile));
                }
                ("support_timeout", false) => table.support_timeout = true,
                _ => {
                    self.at -= 1;
                    return self.expected("a property of the table");
                }
            }
        }
        if !default || !size {
            return self.error_at(self.at - 1, "a table has a default action and a size");
        }
        Ok(table)
    }

    fn action_id(&mut self) -> Result<ActionId> {
        let actions = &self.symbols.actions;
        Ok(ActionId(self.resolve("action", actions)?))
    }

    fn table_action(&mut self) -> Result<TableAction> {
        let action = self.action_id()?;
        self.sign("(")?;
        Ok(TableAction {
            action,
            bound: self.list(")", Self::arg)?,
            in_entries: !self.take_word("defaultonly"),
            as_default: !self.take_word("tableonly"),
        })
    }

    fn entry(&mut self, actions: &[TableAction], is_const: bool) -> Result<Entry> {
        self.word("priority")?;
        let priority = self.small()?;
        self.sign("(")?;
        let keys = self.list(")", Self::key_set)?;
        self.sign("=>")?;
        Ok(Entry {
            keys,
            priority,
            call: self.action_call(actions)?,
            is_const,
        })
    }

    /// One of the actions listed so far, with its data.
    fn action_call(&mut self, actions: &[TableAction]) -> Result<ActionCall> {
        let at = self.at;
        let id = self.action_id()?;
        let position = if self.is("[") {
            Some(self.bracketed::<u32>()? as usize)
                .filter(|at| actions.get(*at).is_some_and(|listed| listed.action == id))
        } else {
            actions.iter().position(|listed| listed.action == id)
        };
        let Some(position) = position else {
            return self.error_at(at, "the table does not list this action above");
        };
        self.sign("(")?;
        Ok(ActionCall {
            action: position as u32,
            data: self.list(")", Self::constant)?,
        })
    }
}
