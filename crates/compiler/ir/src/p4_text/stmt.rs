//! Statements and operations.

use super::{Printer, algorithm};
use crate::{Arg, Callee, CloneKind, Const, Expr, Op, Place, Stmt, Type};
use num_bigint::BigUint;

/// True if statements apply the table at a position.
pub(super) fn applies(stmts: &[Stmt], table: usize) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Apply { table: applied, .. } => applied.index() == table,
        Stmt::If {
            then, otherwise, ..
        } => applies(then, table) || applies(otherwise, table),
        Stmt::Switch { cases, default, .. } => {
            applies(default, table) || cases.iter().any(|(_, body)| applies(body, table))
        }
        Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => applies(body, table),
        Stmt::Loop { body, update } => applies(body, table) || applies(update, table),
        _ => false,
    })
}

impl Printer<'_> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let line = match stmt {
            Stmt::Assign(place, value) => {
                format!("{} = {};", self.place(place), self.expr(value))
            }
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                let head = format!("if ({})", self.expr(condition));
                self.block(head, |p| p.stmts(then));
                if !otherwise.is_empty() {
                    self.block("else", |p| p.stmts(otherwise));
                }
                return;
            }
            Stmt::Switch {
                value,
                cases,
                default,
            } => return self.switch(value, cases, default),
            Stmt::Apply {
                table,
                hit,
                action_run,
            } => {
                let apply = format!("{}.apply()", self.program.tables[table.index()].name);
                match (hit, action_run) {
                    (None, None) => format!("{apply};"),
                    (Some(hit), None) => format!("{} = {apply}.hit;", self.place(hit)),
                    (None, Some(run)) => format!("{} = {apply}.action_run;", self.place(run)),
                    (Some(hit), Some(run)) => format!(
                        "{} = {apply}.hit; {} = its action_run;",
                        self.place(hit),
                        self.place(run)
                    ),
                }
            }
            Stmt::Call {
                callee,
                args,
                result,
            } => {
                let program = self.program;
                let (name, apply) = match callee {
                    Callee::Action(id) => (&program.actions[id.index()].name, ""),
                    Callee::Function(id) => (&program.functions[id.index()].name, ""),
                    Callee::Control(id) => (&program.controls[id.index()].name, ".apply"),
                    Callee::Parser(id) => (&program.parsers[id.index()].name, ".apply"),
                };
                let call = format!("{name}{apply}({});", self.args(args));
                self.given(result.as_ref(), call)
            }
            Stmt::Op(op) => self.op(op),
            Stmt::SetValid(place) => format!("{}.setValid();", self.place(place)),
            Stmt::SetInvalid(place) => format!("{}.setInvalid();", self.place(place)),
            Stmt::PushFront(place, count) => format!("{}.push_front({count});", self.place(place)),
            Stmt::PopFront(place, count) => format!("{}.pop_front({count});", self.place(place)),
            Stmt::Block(body) => {
                self.line("{");
                return self.inner(body);
            }
            Stmt::Atomic(body) => {
                self.line("@atomic {");
                return self.inner(body);
            }
            Stmt::Apart(body) => {
                self.line("@atomic @apart {");
                return self.inner(body);
            }
            Stmt::Loop { body, update } => {
                self.block("for (;;)", |p| p.stmts(body));
                if !update.is_empty() {
                    self.block("between rounds", |p| p.stmts(update));
                }
                return;
            }
            Stmt::Unlikely => "@unlikely".to_owned(),
            Stmt::At(location) => format!("// {location}"),
            Stmt::Break => "break;".to_owned(),
            Stmt::Continue => "continue;".to_owned(),
            Stmt::Return => "return;".to_owned(),
            Stmt::Exit => "exit;".to_owned(),
        };
        self.line(line);
    }

    fn inner(&mut self, body: &[Stmt]) {
        self.depth += 1;
        self.stmts(body);
        self.depth -= 1;
        self.line("}");
    }

    fn switch(&mut self, value: &Expr, cases: &[(Vec<BigUint>, Vec<Stmt>)], default: &[Stmt]) {
        let ty = value.ty;
        let head = format!("switch ({})", self.expr(value));
        self.block(head, |p| {
            for (labels, body) in cases {
                let label = |label: &BigUint| match ty {
                    Type::Bool => (*label != BigUint::ZERO).to_string(),
                    ty => p.constant(&Const::Bits(label.clone()), ty),
                };
                let labels: Vec<String> = labels.iter().map(label).collect();
                p.block(format_args!("{}:", labels.join(": ")), |p| p.stmts(body));
            }
            if !default.is_empty() {
                p.block("default:", |p| p.stmts(default));
            }
        });
    }

    pub(super) fn args(&self, args: &[Arg]) -> String {
        let text = |arg: &Arg| match arg {
            Arg::In(value) => self.expr(value),
            Arg::Out(place) | Arg::InOut(place) => self.place(place),
        };
        let args: Vec<String> = args.iter().map(text).collect();
        args.join(", ")
    }

    /// A call whose value goes to a place, if to any.
    fn given(&self, result: Option<&Place>, call: String) -> String {
        match result {
            Some(place) => format!("{} = {call}", self.place(place)),
            None => call,
        }
    }

    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    fn op(&self, op: &Op) -> String {
        let program = self.program;
        match op {
            Op::Extract {
                header,
                varbit_size,
            } => match varbit_size {
                None => format!("packet.extract({});", self.place(header)),
                Some(size) => format!(
                    "packet.extract({}, {});",
                    self.place(header),
                    self.expr(size)
                ),
            },
            Op::Lookahead { result } => {
                let ty = program.place_type(result).map(|ty| self.ty(ty));
                let call = format!("packet.lookahead<{}>();", ty.unwrap_or_default());
                self.given(Some(result), call)
            }
            Op::Advance { bits } => format!("packet.advance({});", self.expr(bits)),
            Op::PacketLength { result } => self.given(Some(result), "packet.length();".to_owned()),
            Op::Emit { value } => format!("packet.emit({});", self.place(value)),
            Op::Verify { condition, error } => {
                format!("verify({}, {});", self.expr(condition), self.expr(error))
            }
            Op::RegisterRead {
                register,
                index,
                result,
            } => format!(
                "{}.read({}, {});",
                program.registers[register.index()].name,
                self.place(result),
                self.expr(index)
            ),
            Op::RegisterWrite {
                register,
                index,
                value,
            } => format!(
                "{}.write({}, {});",
                program.registers[register.index()].name,
                self.expr(index),
                self.expr(value)
            ),
            Op::CounterCount { counter, index } => {
                let name = &program.counters[counter.index()].name;
                format!("{name}.count({});", self.expr(index))
            }
            Op::DirectCounterCount { counter } => {
                format!("{}.count();", program.counters[counter.index()].name)
            }
            Op::MeterExecute {
                meter,
                index,
                result,
            } => format!(
                "{}.execute_meter({}, {});",
                program.meters[meter.index()].name,
                self.expr(index),
                self.place(result)
            ),
            Op::DirectMeterRead { meter, result } => {
                let name = &program.meters[meter.index()].name;
                format!("{name}.read({});", self.place(result))
            }
            Op::Hash {
                result,
                algorithm: by,
                base,
                data,
                max,
            } => format!(
                "hash({}, {}, {}, {{ {} }}, {});",
                self.place(result),
                algorithm(*by),
                self.expr(base),
                self.exprs(data),
                self.expr(max)
            ),
            Op::Random { result, lo, hi } => format!(
                "random({}, {}, {});",
                self.place(result),
                self.expr(lo),
                self.expr(hi)
            ),
            Op::VerifyChecksum {
                condition,
                data,
                checksum,
                algorithm: by,
                with_payload,
            } => format!(
                "verify_checksum{}({}, {{ {} }}, {}, {});",
                if *with_payload { "_with_payload" } else { "" },
                self.expr(condition),
                self.exprs(data),
                self.expr(checksum),
                algorithm(*by)
            ),
            Op::UpdateChecksum {
                condition,
                data,
                checksum,
                algorithm: by,
                with_payload,
            } => format!(
                "update_checksum{}({}, {{ {} }}, {}, {});",
                if *with_payload { "_with_payload" } else { "" },
                self.expr(condition),
                self.exprs(data),
                self.place(checksum),
                algorithm(*by)
            ),
            Op::MarkToDrop { standard_metadata } => {
                format!("mark_to_drop({});", self.place(standard_metadata))
            }
            Op::Clone {
                kind,
                session,
                field_list,
            } => {
                let kind = match kind {
                    CloneKind::IngressToEgress => "CloneType.I2E",
                    CloneKind::EgressToEgress => "CloneType.E2E",
                };
                let session = self.expr(session);
                match field_list {
                    None => format!("clone({kind}, {session});"),
                    Some(list) => {
                        let list = self.expr(list);
                        format!("clone_preserving_field_list({kind}, {session}, {list});")
                    }
                }
            }
            Op::Resubmit { field_list } => {
                format!("resubmit_preserving_field_list({});", self.expr(field_list))
            }
            Op::Recirculate { field_list } => {
                let list = self.expr(field_list);
                format!("recirculate_preserving_field_list({list});")
            }
            Op::Truncate { length } => format!("truncate({});", self.expr(length)),
            Op::Digest { name, data } => format!("digest(1, {}); // {name}", self.expr(data)),
            Op::Assert { condition, .. } => format!("assert({});", self.expr(condition)),
            Op::Uses { units, numbers } => {
                format!("// uses {units:?}: {}", self.exprs(numbers))
            }
            Op::LogMessage { format, values } => {
                format!("log_msg({format:?}, {{ {} }});", self.exprs(values))
            }
        }
    }
}
