//! Statements and operations.

use super::expr::Path;
use super::{Parser, Result};
use crate::print::stmt::algorithm_name;
use crate::{
    ActionId, Arg, Callee, CloneKind, ControlId, CounterId, Expr, FunctionId, HashAlgorithm,
    MeterId, Op, ParserId, Place, RegisterId, Stmt, TableId,
};

const ALGORITHMS: [HashAlgorithm; 8] = [
    HashAlgorithm::Crc32,
    HashAlgorithm::Crc32Custom,
    HashAlgorithm::Crc16,
    HashAlgorithm::Crc16Custom,
    HashAlgorithm::Random,
    HashAlgorithm::Identity,
    HashAlgorithm::Csum16,
    HashAlgorithm::Xor16,
];

/// Common parts of `verify_checksum` and `update_checksum`.
struct Checksum {
    algorithm: HashAlgorithm,
    condition: Expr,
    data: Vec<Expr>,
    with_payload: bool,
}

impl Parser<'_> {
    /// Statements in braces.
    pub(super) fn block(&mut self) -> Result<Vec<Stmt>> {
        self.sign("{")?;
        self.rest_of_block()
    }

    /// Statements up to the closing brace, and this.
    pub(super) fn rest_of_block(&mut self) -> Result<Vec<Stmt>> {
        let stmts = self.stmts(|p| p.is("}"))?;
        self.sign("}")?;
        Ok(stmts)
    }

    /// Statements up to where `end` holds.
    pub(super) fn stmts(&mut self, end: fn(&Self) -> bool) -> Result<Vec<Stmt>> {
        let mut stmts = Vec::new();
        while !end(self) {
            stmts.push(self.nested(Self::stmt)?);
        }
        Ok(stmts)
    }

    fn stmt(&mut self) -> Result<Stmt> {
        let start = self.at;
        if let Some(word) = self.keyword() {
            self.at += 1;
            if let Some(stmt) = self.worded(word)? {
                return Ok(stmt);
            }
            if let Some(op) = self.op(word)? {
                return Ok(Stmt::Op(op));
            }
            self.at = start;
        }
        match self.place_path()? {
            Path::Place(place, _) => {
                self.sign("=")?;
                Ok(Stmt::Assign(place, self.expr()?))
            }
            Path::Method(place, _, method) => self.method(place, &method),
        }
    }

    /// Parses a method call on a place.
    fn method(&mut self, place: Place, method: &str) -> Result<Stmt> {
        if !["setValid", "setInvalid", "push_front", "pop_front"].contains(&method) {
            return self.error_at(self.at - 1, format!("there is no member `{method}`"));
        }
        self.sign("(")?;
        let stmt = match method {
            "setValid" => Stmt::SetValid(place),
            "setInvalid" => Stmt::SetInvalid(place),
            "push_front" => Stmt::PushFront(place, self.small()?),
            _ => Stmt::PopFront(place, self.small()?),
        };
        self.sign(")")?;
        Ok(stmt)
    }

    /// The rest of a statement that begins with a word, if it is no operation.
    fn worded(&mut self, word: &str) -> Result<Option<Stmt>> {
        let symbols = self.symbols;
        Ok(Some(match word {
            "if" => Stmt::If {
                condition: self.expr()?,
                then: self.block()?,
                otherwise: self.optional_block("else")?,
            },
            "switch" => self.switch()?,
            "apply" => {
                let table = TableId(self.resolve("table", &symbols.tables)?);
                let hit = self.result_after("hit")?;
                let action_run = self.result_after("action_run")?;
                Stmt::Apply {
                    table,
                    hit,
                    action_run,
                }
            }
            "call" => {
                let callee = self.callee()?;
                self.sign("(")?;
                let args = self.list(")", Self::arg)?;
                let result = if self.is("->") {
                    Some(self.result()?)
                } else {
                    None
                };
                Stmt::Call {
                    callee,
                    args,
                    result,
                }
            }
            "block" => Stmt::Block(self.block()?),
            "atomic" => Stmt::Atomic(self.block()?),
            "apart" => Stmt::Apart(self.block()?),
            "loop" => Stmt::Loop {
                body: self.block()?,
                update: self.optional_block("update")?,
            },
            "unlikely" => Stmt::Unlikely,
            "at" => Stmt::At(self.string()?),
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "return" => Stmt::Return,
            "exit" => Stmt::Exit,
            _ => return Ok(None),
        }))
    }

    fn optional_block(&mut self, word: &str) -> Result<Vec<Stmt>> {
        if self.take_word(word) {
            self.block()
        } else {
            Ok(Vec::new())
        }
    }

    fn switch(&mut self) -> Result<Stmt> {
        let value = self.expr()?;
        self.sign("{")?;
        let mut cases = Vec::new();
        while self.take_word("case") {
            let mut labels = Vec::new();
            while !self.is("{") {
                if !labels.is_empty() {
                    self.sign(",")?;
                }
                labels.push(self.number()?);
            }
            cases.push((labels, self.block()?));
        }
        let default = self.optional_block("default")?;
        self.sign("}")?;
        Ok(Stmt::Switch {
            value,
            cases,
            default,
        })
    }

    fn callee(&mut self) -> Result<Callee> {
        let symbols = self.symbols;
        let Some(kind) = self.keyword() else {
            return self.expected("what is called");
        };
        self.at += 1;
        Ok(match kind {
            "action" => Callee::Action(ActionId(self.resolve(kind, &symbols.actions)?)),
            "function" => Callee::Function(FunctionId(self.resolve(kind, &symbols.functions)?)),
            "control" => Callee::Control(ControlId(self.resolve(kind, &symbols.controls)?)),
            "parser" => Callee::Parser(ParserId(self.resolve(kind, &symbols.parsers)?)),
            _ => return self.error_at(self.at - 1, format!("`{kind}` cannot be called")),
        })
    }

    pub(super) fn arg(&mut self) -> Result<Arg> {
        if self.take_word("in") {
            Ok(Arg::In(self.expr()?))
        } else if self.take_word("out") {
            Ok(Arg::Out(self.place()?))
        } else if self.take_word("inout") {
            Ok(Arg::InOut(self.place()?))
        } else {
            self.expected("`in`, `out` or `inout`")
        }
    }

    /// `-> place`.
    fn result(&mut self) -> Result<Place> {
        self.sign("->")?;
        self.place()
    }

    fn result_after(&mut self, word: &str) -> Result<Option<Place>> {
        if self.take_word(word) {
            self.result().map(Some)
        } else {
            Ok(None)
        }
    }

    /// `[expr]`.
    fn index(&mut self) -> Result<Expr> {
        self.sign("[")?;
        let index = self.expr()?;
        self.sign("]")?;
        Ok(index)
    }

    /// `(expr)`.
    fn argument(&mut self) -> Result<Expr> {
        self.sign("(")?;
        let value = self.expr()?;
        self.sign(")")?;
        Ok(value)
    }

    /// `(field_list expr)`.
    fn field_list_argument(&mut self) -> Result<Expr> {
        self.sign("(")?;
        self.word("field_list")?;
        let value = self.expr()?;
        self.sign(")")?;
        Ok(value)
    }

    /// `(expr, expr)`.
    fn two_arguments(&mut self) -> Result<(Expr, Expr)> {
        self.sign("(")?;
        let first = self.expr()?;
        self.sign(",")?;
        let second = self.expr()?;
        self.sign(")")?;
        Ok((first, second))
    }

    fn place_argument(&mut self) -> Result<Place> {
        self.sign("(")?;
        let place = self.place()?;
        self.sign(")")?;
        Ok(place)
    }

    fn counter(&mut self) -> Result<CounterId> {
        let counters = &self.symbols.counters;
        Ok(CounterId(self.resolve("counter", counters)?))
    }

    fn meter(&mut self) -> Result<MeterId> {
        let meters = &self.symbols.meters;
        Ok(MeterId(self.resolve("meter", meters)?))
    }

    fn register(&mut self) -> Result<RegisterId> {
        let registers = &self.symbols.registers;
        Ok(RegisterId(self.resolve("register", registers)?))
    }

    pub(super) fn algorithm(&mut self) -> Result<HashAlgorithm> {
        self.one_of("a hash algorithm", &ALGORITHMS, algorithm_name)
    }

    fn checksum(&mut self) -> Result<Checksum> {
        let algorithm = self.algorithm()?;
        self.sign("(")?;
        self.word("if")?;
        let condition = self.expr()?;
        self.sign(",")?;
        self.sign("{")?;
        let data = self.exprs("}")?;
        let with_payload = self.take(",");
        if with_payload {
            self.word("payload")?;
        }
        self.sign(")")?;
        Ok(Checksum {
            algorithm,
            condition,
            data,
            with_payload,
        })
    }

    /// The rest of an operation that begins with a word.
    fn op(&mut self, word: &str) -> Result<Option<Op>> {
        Ok(Some(match word {
            "extract" => {
                let mut varbit_size = None;
                if self.take("(") {
                    self.word("varbit")?;
                    varbit_size = Some(self.expr()?);
                    self.sign(")")?;
                }
                Op::Extract {
                    header: self.result()?,
                    varbit_size,
                }
            }
            "lookahead" => Op::Lookahead {
                result: self.result()?,
            },
            "advance" => Op::Advance {
                bits: self.argument()?,
            },
            "packet_length" => Op::PacketLength {
                result: self.result()?,
            },
            "emit" => Op::Emit {
                value: self.place_argument()?,
            },
            "verify" => {
                let (condition, error) = self.two_arguments()?;
                Op::Verify { condition, error }
            }
            "register_read" => Op::RegisterRead {
                register: self.register()?,
                index: self.index()?,
                result: self.result()?,
            },
            "register_write" => {
                let (register, index) = (self.register()?, self.index()?);
                self.sign("=")?;
                Op::RegisterWrite {
                    register,
                    index,
                    value: self.expr()?,
                }
            }
            "uses" => self.uses()?,
            "counter_count" => Op::CounterCount {
                counter: self.counter()?,
                index: self.index()?,
            },
            "direct_counter_count" => Op::DirectCounterCount {
                counter: self.counter()?,
            },
            "meter_execute" => Op::MeterExecute {
                meter: self.meter()?,
                index: self.index()?,
                result: self.result()?,
            },
            "direct_meter_read" => Op::DirectMeterRead {
                meter: self.meter()?,
                result: self.result()?,
            },
            "hash" => self.hash()?,
            "random" => {
                let (lo, hi) = self.two_arguments()?;
                let result = self.result()?;
                Op::Random { result, lo, hi }
            }
            "verify_checksum" => {
                let sum = self.checksum()?;
                self.sign("==")?;
                Op::VerifyChecksum {
                    condition: sum.condition,
                    data: sum.data,
                    checksum: self.expr()?,
                    algorithm: sum.algorithm,
                    with_payload: sum.with_payload,
                }
            }
            "update_checksum" => {
                let sum = self.checksum()?;
                Op::UpdateChecksum {
                    condition: sum.condition,
                    data: sum.data,
                    checksum: self.result()?,
                    algorithm: sum.algorithm,
                    with_payload: sum.with_payload,
                }
            }
            "mark_to_drop" => Op::MarkToDrop {
                standard_metadata: self.place_argument()?,
            },
            "clone" => self.clone_op()?,
            "resubmit" => Op::Resubmit {
                field_list: self.field_list_argument()?,
            },
            "recirculate" => Op::Recirculate {
                field_list: self.field_list_argument()?,
            },
            "truncate" => Op::Truncate {
                length: self.argument()?,
            },
            "digest" => Op::Digest {
                name: self.string()?,
                data: self.argument()?,
            },
            "assert" => {
                let condition = self.argument()?;
                self.word("at")?;
                Op::Assert {
                    condition,
                    location: self.string()?,
                }
            }
            "log" => {
                let format = self.string()?;
                self.sign("(")?;
                let values = self.exprs(")")?;
                Op::LogMessage { format, values }
            }
            _ => return Ok(None),
        }))
    }

    fn uses(&mut self) -> Result<Op> {
        let units = self.string()?;
        self.sign("[")?;
        let numbers = self.exprs("]")?;
        Ok(Op::Uses { units, numbers })
    }

    fn hash(&mut self) -> Result<Op> {
        let algorithm = self.algorithm()?;
        self.sign("(")?;
        self.word("base")?;
        let base = self.expr()?;
        self.sign(",")?;
        self.word("max")?;
        let max = self.expr()?;
        self.sign(",")?;
        self.sign("{")?;
        let data = self.exprs("}")?;
        self.sign(")")?;
        Ok(Op::Hash {
            result: self.result()?,
            algorithm,
            base,
            data,
            max,
        })
    }

    fn clone_op(&mut self) -> Result<Op> {
        let kind = if self.take_word("i2e") {
            CloneKind::IngressToEgress
        } else if self.take_word("e2e") {
            CloneKind::EgressToEgress
        } else {
            return self.expected("`i2e` or `e2e`");
        };
        self.sign("(")?;
        self.word("session")?;
        let session = self.expr()?;
        let mut field_list = None;
        if self.take(",") {
            self.word("field_list")?;
            field_list = Some(self.expr()?);
        }
        self.sign(")")?;
        Ok(Op::Clone {
            kind,
            session,
            field_list,
        })
    }
}
