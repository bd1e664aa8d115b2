//! Text of statements and operations.

use super::Printer;
use crate::{Arg, Callee, CloneKind, Expr, HashAlgorithm, Op, Stmt};

impl Printer<'_> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let line = match stmt {
            Stmt::Assign(place, value) => format!("{} = {}", self.place(place), self.expr(value)),
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                let head = format!("if {}", self.expr(condition));
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
            } => {
                let head = format!("switch {}", self.expr(value));
                self.block(head, |p| {
                    for (labels, body) in cases {
                        let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
                        p.block(format_args!("case {}", labels.join(", ")), |p| {
                            p.stmts(body)
                        });
                    }
                    if !default.is_empty() {
                        p.block("default", |p| p.stmts(default));
                    }
                });
                return;
            }
            Stmt::Apply {
                table,
                hit,
                action_run,
            } => {
                let mut line = format!("apply {}", self.names.tables.of(table.index()));
                if let Some(place) = hit {
                    line += &format!(" hit -> {}", self.place(place));
                }
                if let Some(place) = action_run {
                    line += &format!(" action_run -> {}", self.place(place));
                }
                line
            }
            Stmt::Call {
                callee,
                args,
                result,
            } => {
                let callee = match callee {
                    Callee::Action(id) => format!("action {}", self.names.actions.of(id.index())),
                    Callee::Function(id) => {
                        format!("function {}", self.names.functions.of(id.index()))
                    }
                    Callee::Control(id) => {
                        format!("control {}", self.names.controls.of(id.index()))
                    }
                    Callee::Parser(id) => format!("parser {}", self.names.parsers.of(id.index())),
                };
                let mut line = format!("call {callee}({})", self.args(args));
                if let Some(place) = result {
                    line += &format!(" -> {}", self.place(place));
                }
                line
            }
            Stmt::Op(op) => self.op(op),
            Stmt::SetValid(place) => format!("{}.setValid()", self.place(place)),
            Stmt::SetInvalid(place) => format!("{}.setInvalid()", self.place(place)),
            Stmt::PushFront(place, count) => format!("{}.push_front({count})", self.place(place)),
            Stmt::PopFront(place, count) => format!("{}.pop_front({count})", self.place(place)),
            Stmt::Block(body) => return self.block("block", |p| p.stmts(body)),
            Stmt::Atomic(body) => return self.block("atomic", |p| p.stmts(body)),
            Stmt::Apart(body) => return self.block("apart", |p| p.stmts(body)),
            Stmt::Loop { body, update } => {
                self.block("loop", |p| p.stmts(body));
                if !update.is_empty() {
                    self.block("update", |p| p.stmts(update));
                }
                return;
            }
            Stmt::Unlikely => "unlikely".to_owned(),
            Stmt::At(location) => format!("at {location:?}"),
            Stmt::Break => "break".to_owned(),
            Stmt::Continue => "continue".to_owned(),
            Stmt::Return => "return".to_owned(),
            Stmt::Exit => "exit".to_owned(),
        };
        self.line(line);
    }

    pub(super) fn args(&self, args: &[Arg]) -> String {
        let args: Vec<String> = args
            .iter()
            .map(|arg| match arg {
                Arg::In(value) => format!("in {}", self.expr(value)),
                Arg::Out(place) => format!("out {}", self.place(place)),
                Arg::InOut(place) => format!("inout {}", self.place(place)),
            })
            .collect();
        args.join(", ")
    }

    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    fn op(&self, op: &Op) -> String {
        match op {
            Op::Extract {
                header,
                varbit_size,
            } => match varbit_size {
                None => format!("extract -> {}", self.place(header)),
                Some(size) => {
                    format!(
                        "extract(varbit {}) -> {}",
                        self.expr(size),
                        self.place(header)
                    )
                }
            },
            Op::Lookahead { result } => format!("lookahead -> {}", self.place(result)),
            Op::Advance { bits } => format!("advance({})", self.expr(bits)),
            Op::PacketLength { result } => format!("packet_length -> {}", self.place(result)),
            Op::Emit { value } => format!("emit({})", self.place(value)),
            Op::Verify { condition, error } => {
                format!("verify({}, {})", self.expr(condition), self.expr(error))
            }
            Op::RegisterRead {
                register,
                index,
                result,
            } => format!(
                "register_read {}[{}] -> {}",
                self.names.registers.of(register.index()),
                self.expr(index),
                self.place(result)
            ),
            Op::RegisterWrite {
                register,
                index,
                value,
            } => format!(
                "register_write {}[{}] = {}",
                self.names.registers.of(register.index()),
                self.expr(index),
                self.expr(value)
            ),
            Op::Uses { units, numbers } => format!("uses {units:?}[{}]", self.exprs(numbers)),
            Op::CounterCount { counter, index } => format!(
                "counter_count {}[{}]",
                self.names.counters.of(counter.index()),
                self.expr(index)
            ),
            Op::DirectCounterCount { counter } => {
                format!(
                    "direct_counter_count {}",
                    self.names.counters.of(counter.index())
                )
            }
            Op::MeterExecute {
                meter,
                index,
                result,
            } => format!(
                "meter_execute {}[{}] -> {}",
                self.names.meters.of(meter.index()),
                self.expr(index),
                self.place(result)
            ),
            Op::DirectMeterRead { meter, result } => format!(
                "direct_meter_read {} -> {}",
                self.names.meters.of(meter.index()),
                self.place(result)
            ),
            Op::Hash {
                result,
                algorithm,
                base,
                data,
                max,
            } => format!(
                "hash {}(base {}, max {}, {{{}}}) -> {}",
                algorithm_name(*algorithm),
                self.expr(base),
                self.expr(max),
                self.exprs(data),
                self.place(result)
            ),
            Op::Random { result, lo, hi } => format!(
                "random({}, {}) -> {}",
                self.expr(lo),
                self.expr(hi),
                self.place(result)
            ),
            Op::VerifyChecksum {
                condition,
                data,
                checksum,
                algorithm,
                with_payload,
            } => format!(
                "verify_checksum {} == {}",
                self.checksum(*algorithm, *with_payload, condition, data),
                self.expr(checksum)
            ),
            Op::UpdateChecksum {
                condition,
                data,
                checksum,
                algorithm,
                with_payload,
            } => format!(
                "update_checksum {} -> {}",
                self.checksum(*algorithm, *with_payload, condition, data),
                self.place(checksum)
            ),
            Op::MarkToDrop { standard_metadata } => {
                format!("mark_to_drop({})", self.place(standard_metadata))
            }
            Op::Clone {
                kind,
                session,
                field_list,
            } => {
                let kind = match kind {
                    CloneKind::IngressToEgress => "i2e",
                    CloneKind::EgressToEgress => "e2e",
                };
                let list = field_list.as_ref().map_or_else(String::new, |list| {
                    format!(", field_list {}", self.expr(list))
                });
                format!("clone {kind}(session {}{list})", self.expr(session))
            }
            Op::Resubmit { field_list } => {
                format!("resubmit(field_list {})", self.expr(field_list))
            }
            Op::Recirculate { field_list } => {
                format!("recirculate(field_list {})", self.expr(field_list))
            }
            Op::Truncate { length } => format!("truncate({})", self.expr(length)),
            Op::Digest { name, data } => format!("digest {name:?}({})", self.expr(data)),
            Op::Assert {
                condition,
                location,
            } => format!("assert({}) at {location:?}", self.expr(condition)),
            Op::LogMessage { format, values } => {
                format!("log {format:?}({})", self.exprs(values))
            }
        }
    }

    fn checksum(
        &self,
        algorithm: HashAlgorithm,
        with_payload: bool,
        condition: &Expr,
        data: &[Expr],
    ) -> String {
        format!(
            "{}(if {}, {{{}}}{})",
            algorithm_name(algorithm),
            self.expr(condition),
            self.exprs(data),
            if with_payload { ", payload" } else { "" }
        )
    }
}

pub(crate) fn algorithm_name(algorithm: HashAlgorithm) -> &'static str {
    match algorithm {
        HashAlgorithm::Crc32 => "crc32",
        HashAlgorithm::Crc32Custom => "crc32_custom",
        HashAlgorithm::Crc16 => "crc16",
        HashAlgorithm::Crc16Custom => "crc16_custom",
        HashAlgorithm::Random => "random",
        HashAlgorithm::Identity => "identity",
        HashAlgorithm::Csum16 => "csum16",
        HashAlgorithm::Xor16 => "xor16",
    }
}
