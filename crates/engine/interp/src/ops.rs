//! Operations of the core library and of v1model.

use crate::machine::{Flow, Run};
use crate::observe::{Event, Observer};
use num_bigint::BigUint;
use stateplane_ir::{CloneKind, Expr, HashAlgorithm, MOST_UNITS, Op, Place, RegisterId, Type};
use stateplane_runtime::bits::{self, word_count};
use stateplane_runtime::layout::scalar_bits;
use stateplane_runtime::{DROP_PORT, Digest, Shape, Value};

impl<O: Observer> Run<'_, O> {
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    pub(crate) fn op(&mut self, op: &Op) -> Flow {
        match op {
            Op::Extract {
                header,
                varbit_size,
            } => return self.extract(header, varbit_size.as_ref()),
            Op::Lookahead { result } => return self.lookahead(result),
            Op::Advance { bits } => return self.advance(bits),
            Op::PacketLength { result } => {
                self.store_number(result, self.m.frame.len() as u128);
            }
            Op::Emit { value } => self.emit(value),
            Op::Verify { condition, error } => {
                let holds = self.narrow(condition) == 1;
                let error = self.narrow(error) as u32;
                if let Some(flow) = self.faulted() {
                    return flow;
                }
                if !holds {
                    return Flow::Reject(error);
                }
            }
            Op::RegisterRead {
                register,
                index,
                result,
            } => {
                let index = self.register_index(*register, index);
                let watched = self.watch(result);
                let spot = self.spot(result);
                let base = self.m.stack.len();
                let m = &mut *self.m;
                let ty = self.code.program.registers[register.index()].element;
                m.stack.resize(base + self.code.layout.words(ty), 0);
                let array = m.state.register_at(*register);
                let inside = array.load(index, &mut m.stack[base..]);
                self.pop_into(base, spot);
                self.after(watched, |result, value| Event::RegisterRead {
                    register: *register,
                    index,
                    value: inside.then_some(value),
                    result,
                });
            }
            Op::RegisterWrite {
                register,
                index,
                value,
            } => {
                let index = self.register_index(*register, index);
                let base = self.m.stack.len();
                self.push(value);
                self.tell(|run| {
                    let mut old = vec![0; run.m.stack.len() - base];
                    let array = run.m.state.register_at(*register);
                    let inside = array.load(index, &mut old);
                    Event::RegisterWrite {
                        register: *register,
                        index,
                        old: inside.then(|| run.datum(value.ty, &old)),
                        value: run.datum(value.ty, &run.m.stack[base..]),
                    }
                });
                let m = &mut *self.m;
                let array = m.state.register_at(*register);
                array.store(index, &m.stack[base..]);
                m.stack.truncate(base);
            }
            Op::Uses { units, numbers } => self.uses_units(units, numbers),
            Op::CounterCount { counter, index } => {
                let index = self.index(index);
                let bytes = self.m.frame.len() as u64;
                self.m.state.counter_at(*counter).count(index, bytes);
                self.tell(|_| Event::Count(*counter, index));
            }
            // Counted at the table's hit.
            Op::DirectCounterCount { counter: _ } => {}
            Op::MeterExecute {
                meter,
                index,
                result,
            } => {
                let index = self.index(index);
                let bytes = self.m.frame.len() as u64;
                let now = self.m.now;
                self.m.state.lock_meter(*meter, index);
                let color = self.m.state.meter_at(*meter).execute(index, bytes, now);
                self.tell(|_| Event::Meter(*meter, index, color));
                self.store_number(result, color as u128);
            }
            Op::DirectMeterRead { meter, result } => {
                let color = self.m.colors[meter.index()];
                self.tell(|_| Event::DirectMeter(*meter, color));
                self.store_number(result, color as u128);
            }
            Op::Hash {
                result,
                algorithm,
                base,
                data,
                max,
            } => self.hash(result, *algorithm, base, data, max),
            Op::Random { result, lo, hi } => self.random(result, lo, hi),
            Op::VerifyChecksum {
                condition,
                data,
                checksum,
                algorithm,
                with_payload,
            } => {
                if self.narrow(condition) == 1 {
                    let computed = self.checksum(*algorithm, data, *with_payload);
                    let width = scalar_bits(checksum.ty);
                    let carried = self.low(checksum);
                    let computed = u128::from(computed) & bits::mask(width);
                    self.tell(|_| Event::VerifyChecksum { carried, computed });
                    if computed != carried
                        && let Some(field) = self.code.meta.checksum_error
                    {
                        self.m.words[field.at] = 1;
                    }
                }
            }
            Op::UpdateChecksum {
                condition,
                data,
                checksum,
                algorithm,
                with_payload,
            } => {
                if self.narrow(condition) == 1 {
                    let computed = self.checksum(*algorithm, data, *with_payload);
                    let watched = self.watch(checksum);
                    self.store_number(checksum, u128::from(computed));
                    self.after(watched, Event::UpdateChecksum);
                }
            }
            Op::MarkToDrop { standard_metadata } => {
                self.tell(|_| Event::MarkToDrop);
                if let Some(spot) = self.spot(standard_metadata) {
                    // The place may be another copy than the architecture's.
                    let moved = |at: usize| spot.at + at - self.code.standard.start;
                    let meta = &self.code.meta;
                    if let Some(field) = meta.egress_spec {
                        self.m.words[moved(field.at)] = u128::from(DROP_PORT) & field.mask;
                    }
                    if let Some(field) = meta.mcast_grp {
                        self.m.words[moved(field.at)] = 0;
                    }
                }
            }
            Op::Clone {
                kind,
                session,
                field_list,
            } => {
                let session = self.low(session) as u32;
                let list = field_list.as_ref().map(|list| self.low(list) as u32);
                self.tell(|_| Event::Clone(*kind, session, list));
                let requests = &mut self.m.requests;
                match kind {
                    CloneKind::IngressToEgress => requests.ingress_clone = Some((session, list)),
                    CloneKind::EgressToEgress => requests.egress_clone = Some((session, list)),
                }
            }
            Op::Resubmit { field_list } => {
                let list = self.low(field_list) as u32;
                self.tell(|_| Event::Resubmit(list));
                self.m.requests.resubmit = Some(list);
            }
            Op::Recirculate { field_list } => {
                let list = self.low(field_list) as u32;
                self.tell(|_| Event::Recirculate(list));
                self.m.requests.recirculate = Some(list);
            }
            Op::Truncate { length } => {
                let length = self.index(length);
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                self.tell(|_| Event::Truncate(length));
                self.m.limit = self.m.limit.min(length);
            }
            Op::Digest { name, data } => self.digest(name, data),
            Op::Assert {
                condition,
                location,
            } => {
                if self.narrow(condition) != 1 {
                    self.m.state.events.failed_assertions += 1;
                    let line = || format!("{location}: assertion failed");
                    self.m.state.log.push_with(line);
                    self.tell(|_| Event::AssertionFailed(location));
                }
            }
            Op::LogMessage { format, values } => self.log(format, values),
        }
        self.faulted().unwrap_or(Flow::Next)
    }

    /// The index of an element that is about to be used, and is locked.
    fn register_index(&mut self, register: RegisterId, index: &Expr) -> u64 {
        let index = self.index(index);
        self.m.state.lock_register(register, index);
        if let Some(units) = &self.m.units {
            units.uses(&self.code.program, register, index);
        }
        index
    }

    fn uses_units(&mut self, units: &str, numbers: &[Expr]) {
        let mut given = [0; MOST_UNITS];
        for (given, number) in given.iter_mut().zip(numbers) {
            *given = self.index(number);
        }
        let given = &given[..numbers.len().min(MOST_UNITS)];
        self.m.state.lock_units(units, given);
        if let Some(check) = &mut self.m.units {
            check.names(units, given);
        }
    }

    /// base + hash mod max, modulo the result's width.
    fn hash(
        &mut self,
        result: &Place,
        algorithm: HashAlgorithm,
        base: &Expr,
        data: &[Expr],
        max: &Expr,
    ) {
        let base = self.low(base);
        let max = self.saturated(max);
        let mut bytes = std::mem::take(&mut self.m.data);
        bytes.clear();
        self.collect(data, &mut bytes);
        let value = self.m.state.hash(algorithm, &bytes);
        self.m.data = bytes;
        let offset = u128::from(value).checked_rem(max).unwrap_or(0);
        let watched = self.watch(result);
        self.store_number(result, base.wrapping_add(offset));
        if O::ACTIVE {
            let data = self.m.data.clone();
            self.after(watched, |result, value| Event::Hash {
                algorithm,
                data,
                result,
                value,
            });
        }
    }

    /// A scalar of any width; those from 2^128 on become the greatest `u128`.
    fn saturated(&mut self, expr: &Expr) -> u128 {
        let base = self.m.stack.len();
        self.push(expr);
        let above = self.m.stack[base + 1..].iter().any(|word| *word != 0);
        let low = self.m.stack[base];
        self.m.stack.truncate(base);
        if above { u128::MAX } else { low }
    }

    /// A number from `lo` to `hi`, both included; `lo` if there is none.
    fn random(&mut self, result: &Place, lo: &Expr, hi: &Expr) {
        let (low, high) = (self.big(lo), self.big(hi));
        let width = scalar_bits(lo.ty).max(1);
        let random = &mut self.m.state.random;
        let mut draw = BigUint::default();
        // 64 bits more than needed make the remainder even to 2^-64.
        for _ in 0..width.div_ceil(64) + 1 {
            draw = (draw << 64u32) + random.next();
        }
        let number = if low < high {
            let span = &high - &low + 1u32;
            low + draw % span
        } else {
            low
        };
        let watched = self.watch(result);
        if let Some(spot) = self.spot(result) {
            let base = self.m.stack.len();
            let width = match spot.slice {
                Some((hi, lo)) => hi - lo + 1,
                None => scalar_bits(spot.ty),
            };
            self.m.stack.resize(base + word_count(width), 0);
            bits::put_biguint(&number, width, &mut self.m.stack[base..]);
            self.pop_into(base, Some(spot));
        }
        self.after(watched, Event::Random);
    }

    fn checksum(&mut self, algorithm: HashAlgorithm, data: &[Expr], with_payload: bool) -> u64 {
        let mut bytes = std::mem::take(&mut self.m.data);
        bytes.clear();
        self.collect(data, &mut bytes);
        if with_payload {
            bytes.extend_from_slice(self.m.frame.get(self.m.rest..).unwrap_or(&[]));
        }
        let value = self.m.state.hash(algorithm, &bytes);
        self.m.data = bytes;
        value
    }

    fn digest(&mut self, name: &str, data: &Expr) {
        let base = self.m.stack.len();
        self.push(data);
        self.tell(|run| Event::Digest(name, run.datum(data.ty, &run.m.stack[base..])));
        let m = &mut *self.m;
        let words = &m.stack[base..];
        let program = &self.code.program;
        m.state.digests.push_with(|| Digest {
            name: name.to_owned(),
            data: match Shape::of(program, data.ty) {
                Some(shape) => shape.value(words),
                None => Value::Struct(Vec::new()),
            },
        });
        m.stack.truncate(base);
    }

    fn log(&mut self, format: &str, values: &[Expr]) {
        let base = self.m.stack.len();
        for value in values {
            self.push(value);
        }
        let line = |mut words: &[u128]| {
            let mut line = String::new();
            let mut parts = format.split("{}");
            line.push_str(parts.next().unwrap_or(""));
            let mut values = values.iter();
            for part in parts {
                match values.next() {
                    Some(value) => {
                        let (number, rest) = words.split_at(word_count(scalar_bits(value.ty)));
                        words = rest;
                        let number = bits::to_biguint(number);
                        line.push_str(&match value.ty {
                            Type::Bool => (number != BigUint::default()).to_string(),
                            _ => number.to_string(),
                        });
                    }
                    None => line.push_str("{}"),
                }
                line.push_str(part);
            }
            line
        };
        self.tell(|run| Event::Log(line(&run.m.stack[base..])));
        let m = &mut *self.m;
        let words = &m.stack[base..];
        m.state.log.push_with(|| line(words));
        m.stack.truncate(base);
    }
}
