//! Rule 10: operations of the architecture.

use super::{Verifier, is_number};
use crate::{MOST_UNITS, Op, Place, Type};

impl Verifier<'_> {
    /// True if all values of a type have the same bits in a packet.
    fn is_fixed(&self, ty: Type) -> bool {
        match ty {
            Type::Struct(id) | Type::Header(id) => {
                let fields = &self.program.structs[id.index()].fields;
                fields.iter().all(|field| self.is_fixed(field.ty))
            }
            Type::Stack(id) => self.is_fixed(self.program.stacks[id.index()].element),
            Type::Union(_) | Type::Varbit(_) => false,
            _ => self.is_plain(ty),
        }
    }

    /// A place of some `bit` or `int` type.
    fn number_place(&mut self, place: &Place) {
        if let Some(ty) = self.place(place)
            && !is_number(ty)
        {
            self.fail(10, format!("a result of type {ty:?}"));
        }
    }

    /// A place that a meter's colour fits: a number, or an enum with a member for each.
    fn colour_place(&mut self, place: &Place) {
        let Some(ty) = self.place(place) else { return };
        let members = match ty {
            Type::Enum(id) => self.program.enums.get(id.index()),
            _ => None,
        };
        let fits = members.is_some_and(|def| def.members.len() >= crate::COLOURS);
        if !is_number(ty) && !fits {
            self.fail(10, format!("a colour of type {ty:?}"));
        }
    }

    fn in_parser(&mut self, what: &str) {
        if !self.in_parser {
            self.fail(10, format!("{what} outside of parsers"));
        }
    }

    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    pub(super) fn op(&mut self, op: &Op) {
        let program = self.program;
        match op {
            Op::Extract {
                header,
                varbit_size,
            } => {
                self.in_parser("extract");
                match self.place(header) {
                    Some(Type::Header(id)) => {
                        let fields = &program.structs[id.index()].fields;
                        let varbits = fields
                            .iter()
                            .filter(|field| matches!(field.ty, Type::Varbit(_)));
                        if varbits.count() > 1 {
                            self.fail(10, "extract of a header with several varbits");
                        }
                    }
                    Some(ty) => self.fail(10, format!("extract of {ty:?}")),
                    None => {}
                }
                if let Some(size) = varbit_size {
                    self.number(10, "the size of a varbit", size);
                }
            }
            Op::Lookahead { result } => {
                self.in_parser("lookahead");
                if let Some(ty) = self.place(result)
                    && !self.is_fixed(ty)
                {
                    self.fail(10, format!("lookahead of {ty:?}"));
                }
            }
            Op::Advance { bits } => {
                self.in_parser("advance");
                self.expr_of(10, "the number of bits", Type::Bits(32), bits);
            }
            Op::PacketLength { result } => {
                self.in_parser("length");
                self.result(&Some(result.clone()), Type::Bits(32));
            }
            Op::Emit { value } => {
                if !self.in_control {
                    self.fail(10, "emit outside of controls");
                }
                if let Some(ty) = self.place(value)
                    && matches!(ty, Type::Varbit(_))
                {
                    self.fail(10, format!("emit of {ty:?}"));
                }
            }
            Op::Verify { condition, error } => {
                self.in_parser("verify");
                self.expr_of(10, "a condition", Type::Bool, condition);
                self.expr_of(10, "an error", Type::Error, error);
            }
            Op::RegisterRead {
                register,
                index,
                result,
            } => {
                self.number(10, "an index", index);
                match program.registers.get(register.index()) {
                    Some(def) => self.result(&Some(result.clone()), def.element),
                    None => self.fail(1, format!("{register} does not exist")),
                }
            }
            Op::RegisterWrite {
                register,
                index,
                value,
            } => {
                self.number(10, "an index", index);
                match program.registers.get(register.index()) {
                    Some(def) => self.expr_of(10, "an element", def.element, value),
                    None => self.fail(1, format!("{register} does not exist")),
                }
            }
            Op::Uses { units, numbers } => {
                if program.units(units).is_none() {
                    self.fail(10, format!("there are no units {units:?}"));
                }
                if numbers.is_empty() || numbers.len() > MOST_UNITS {
                    self.fail(10, format!("{} units at once", numbers.len()));
                }
                for number in numbers {
                    self.number(10, "the number of a unit", number);
                }
            }
            Op::CounterCount { counter, index } => {
                self.number(10, "an index", index);
                let def = program.counters.get(counter.index());
                self.attached(def.map(|def| def.table.is_some()), false);
            }
            Op::DirectCounterCount { counter } => {
                // Without table and elements: a direct counter that counts nothing.
                let def = program.counters.get(counter.index());
                self.attached(def.map(|def| def.table.is_some() || def.size == 0), true);
            }
            Op::MeterExecute {
                meter,
                index,
                result,
            } => {
                self.number(10, "an index", index);
                self.colour_place(result);
                let def = program.meters.get(meter.index());
                self.attached(def.map(|def| def.table.is_some()), false);
            }
            Op::DirectMeterRead { meter, result } => {
                self.colour_place(result);
                let def = program.meters.get(meter.index());
                self.attached(def.map(|def| def.table.is_some()), true);
            }
            Op::Hash {
                result,
                algorithm: _,
                base,
                data,
                max,
            } => {
                self.number_place(result);
                self.number(10, "a base", base);
                self.number(10, "a maximum", max);
                for value in data {
                    self.scalar(10, "hashed data", value);
                }
            }
            Op::Random { result, lo, hi } => {
                self.number_place(result);
                self.number(10, "a bound", lo);
                self.number(10, "a bound", hi);
            }
            Op::VerifyChecksum {
                condition,
                data,
                checksum,
                ..
            } => {
                self.expr_of(10, "a condition", Type::Bool, condition);
                self.number(10, "a checksum", checksum);
                for value in data {
                    self.checksum_data(value);
                }
            }
            Op::UpdateChecksum {
                condition,
                data,
                checksum,
                ..
            } => {
                self.expr_of(10, "a condition", Type::Bool, condition);
                self.number_place(checksum);
                for value in data {
                    self.checksum_data(value);
                }
            }
            Op::MarkToDrop { standard_metadata } => {
                let wanted = Type::Struct(program.pipeline.standard_metadata);
                self.result(&Some(standard_metadata.clone()), wanted);
            }
            Op::Clone {
                kind: _,
                session,
                field_list,
            } => {
                self.number(10, "a session", session);
                if let Some(list) = field_list {
                    self.number(10, "a field list", list);
                }
            }
            Op::Resubmit { field_list } | Op::Recirculate { field_list } => {
                self.number(10, "a field list", field_list);
            }
            Op::Truncate { length } => self.number(10, "a length", length),
            Op::Digest { name: _, data } => {
                self.expr(data);
                if !self.is_plain(data.ty) {
                    self.fail(10, format!("a digest of {:?}", data.ty));
                }
            }
            Op::Assert { condition, .. } => {
                self.expr_of(10, "a condition", Type::Bool, condition);
            }
            Op::LogMessage { format: _, values } => {
                for value in values {
                    self.scalar(10, "a logged value", value);
                }
            }
        }
    }

    /// Scalars, or the varbit of a header's options.
    fn checksum_data(&mut self, value: &crate::Expr) {
        if matches!(value.ty, Type::Varbit(_)) {
            self.expr(value);
        } else {
            self.scalar(10, "summed data", value);
        }
    }

    /// Checks that a counter or meter exists and is direct or indirect as wanted.
    fn attached(&mut self, found: Option<bool>, wanted: bool) {
        match found {
            None => self.fail(1, "a counter or meter that does not exist"),
            Some(found) if found != wanted => {
                self.fail(
                    10,
                    "a direct counter or meter in place of an array, or reverse",
                );
            }
            Some(_) => {}
        }
    }
}
