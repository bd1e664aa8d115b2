//! Operations of the core library and of v1model.

use super::locks::Index;
use super::place::{Spot, constant};
use super::stmt::Element;
use super::value::Scalar;
use super::{Gen, Site};
use crate::context::{Context, request};
use crate::plan::REGISTER_BITS;
use crate::run;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type as Clif, Value, types};
use stateplane_ir::{CloneKind, CounterId, Expr, MeterId, Op, Place, RegisterId, Type};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::scalar_bits;
use stateplane_runtime::register::Cell;
use stateplane_runtime::storage::MetaField;
use stateplane_runtime::{Count, DROP_PORT, Shape};
use std::mem::{offset_of, size_of};

fn cell_type(cell: Cell) -> Clif {
    match cell.bytes {
        1 => types::I8,
        2 => types::I16,
        4 => types::I32,
        8 => types::I64,
        _ => types::I128,
    }
}

impl Gen<'_, '_> {
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    pub(super) fn op(&mut self, op: &Op) {
        match op {
            Op::Extract {
                header,
                varbit_size,
            } => return self.extract(header, varbit_size.as_ref()),
            Op::Lookahead { result } => return self.lookahead(result),
            Op::Advance { bits } => return self.advance(bits),
            Op::PacketLength { result } => {
                let length = self.frame_length;
                self.store_number(result, length);
            }
            Op::Emit { value } => self.emit(value),
            Op::Verify { condition, error } => {
                let holds = self.narrow(condition);
                let error = self.narrow(error);
                self.check_fault();
                let [fine, failed] = [(); 2].map(|()| self.block());
                self.branch(holds, fine, failed);
                if self.go_on(failed) {
                    self.leave_blocks(0);
                    self.b.def_var(self.error, error);
                    let reject = self.frame_of().reject;
                    self.jump(reject);
                }
                self.go_on(fine);
            }
            Op::RegisterRead {
                register,
                index,
                result,
            } => self.register_read(*register, index, result),
            Op::RegisterWrite {
                register,
                index,
                value,
            } => self.register_write(*register, index, value),
            Op::Uses { units, numbers } => {
                if let Some(domain) = self.plan.lock_of_units(units) {
                    let numbers = numbers.iter().map(|it| self.index(it)).collect();
                    self.lock_units(domain, numbers);
                }
            }
            Op::CounterCount { counter, index } => self.count(*counter, index),
            // Counted at the table's hit.
            Op::DirectCounterCount { counter: _ } => {}
            Op::MeterExecute {
                meter,
                index,
                result,
            } => {
                let index = self.index(index);
                self.lock_meter(*meter, index);
                let number = self.number(u64::from(meter.0));
                let context = self.context;
                let color = self.call_for(run::meter as *const u8, &[context, number, index]);
                self.store_number(result, color);
            }
            Op::DirectMeterRead { meter, result } => {
                let number = self.number(u64::from(meter.0));
                let context = self.context;
                let color = self.call_for(run::color as *const u8, &[context, number]);
                self.store_number(result, color);
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
            } => self.if_true(condition, |g| {
                let computed = g.checksum(*algorithm, data, *with_payload);
                let width = scalar_bits(checksum.ty).min(128);
                let computed = g.narrowed(computed, 64, width.min(64));
                let wrong = if width <= 64 {
                    let carried = g.low(checksum);
                    g.b.ins().icmp(IntCC::NotEqual, computed, carried)
                } else {
                    let carried = g.low_128(checksum);
                    let computed = g.widened(computed, 64);
                    g.b.ins().icmp(IntCC::NotEqual, computed, carried)
                };
                if let Some(field) = g.plan.storage.meta.checksum_error {
                    let [mark, after] = [(); 2].map(|()| g.block());
                    g.branch(wrong, mark, after);
                    g.enter(mark);
                    let one = g.number(1);
                    g.set_meta(Some(field), one);
                    g.jump(after);
                    g.enter(after);
                }
            }),
            Op::UpdateChecksum {
                condition,
                data,
                checksum,
                algorithm,
                with_payload,
            } => self.if_true(condition, |g| {
                let computed = g.checksum(*algorithm, data, *with_payload);
                g.store_number(checksum, computed);
            }),
            Op::MarkToDrop { standard_metadata } => self.mark_to_drop(standard_metadata),
            Op::Clone {
                kind,
                session,
                field_list,
            } => self.clone_request(*kind, session, field_list.as_ref()),
            Op::Resubmit { field_list } => {
                let list = self.low_32(field_list);
                self.set_context_field(offset_of!(Context, resubmit_list), list);
                self.request(request::RESUBMIT, 0);
            }
            Op::Recirculate { field_list } => {
                let list = self.low_32(field_list);
                self.set_context_field(offset_of!(Context, recirculate_list), list);
                self.request(request::RECIRCULATE, 0);
            }
            Op::Truncate { length } => {
                let length = self.index(length);
                let limit = self.context_field(offset_of!(Context, limit));
                let limit = self.b.ins().umin(limit, length);
                self.set_context_field(offset_of!(Context, limit), limit);
            }
            Op::Digest { name, data } => {
                let words = self.words_of(data);
                let site = Site::Digest {
                    name: name.clone(),
                    shape: Shape::of(self.program(), data.ty),
                };
                self.report(run::digest as *const u8, site, words);
            }
            Op::Assert {
                condition,
                location,
            } => {
                let holds = self.condition(condition);
                let [fine, failed] = [(); 2].map(|()| self.block());
                self.branch(holds, fine, failed);
                self.enter(failed);
                let site = Site::Assert {
                    location: location.clone(),
                };
                let nothing = self.number(0);
                self.report(run::failed_assertion as *const u8, site, nothing);
                self.jump(fine);
                self.enter(fine);
            }
            Op::LogMessage { format, values } => self.log(format, values),
        }
        self.check_fault();
    }

    fn if_true(&mut self, condition: &Expr, body: impl FnOnce(&mut Self)) {
        let [then, after] = [(); 2].map(|()| self.block());
        self.branch_on(condition, then, after);
        if self.go_on(then) {
            body(self);
            self.jump(after);
        }
        self.go_on(after);
    }

    /// Sets a field of the architecture's standard metadata.
    pub(super) fn set_meta(&mut self, field: Option<MetaField>, value: Value) {
        if let Some(field) = field
            && let Some((width, _)) = self.home(field.at)
        {
            let spot = Spot::whole(field.at, Type::Bits(width));
            self.store_number_at(&spot, value, 64);
        }
    }

    /// A field of the standard metadata, modulo 2^16.
    pub(super) fn get_meta(&mut self, field: Option<MetaField>) -> Value {
        match field.and_then(|field| Some((field, self.home(field.at)?))) {
            Some((field, (width, _))) => {
                let value = self.load(field.at, None, width);
                self.narrowed(value, width, 16.min(width))
            }
            None => self.number(0),
        }
    }

    fn low_32(&mut self, expr: &Expr) -> Value {
        let low = self.low(expr);
        self.masked(low, 32)
    }

    fn request(&mut self, set: u64, cleared: u64) {
        let requests = self.b.use_var(self.requests);
        let kept = self.number(!cleared);
        let requests = self.b.ins().band(requests, kept);
        let set = self.number(set);
        let requests = self.b.ins().bor(requests, set);
        self.b.def_var(self.requests, requests);
    }

    fn clone_request(&mut self, kind: CloneKind, session: &Expr, field_list: Option<&Expr>) {
        let session = self.low_32(session);
        let list = field_list.map(|list| self.low_32(list));
        let (bit, with_list, session_at, list_at) = match kind {
            CloneKind::IngressToEgress => (
                request::INGRESS_CLONE,
                request::INGRESS_LIST,
                offset_of!(Context, ingress_session),
                offset_of!(Context, ingress_list),
            ),
            CloneKind::EgressToEgress => (
                request::EGRESS_CLONE,
                request::EGRESS_LIST,
                offset_of!(Context, egress_session),
                offset_of!(Context, egress_list),
            ),
        };
        self.set_context_field(session_at, session);
        let with = match list {
            Some(list) => {
                self.set_context_field(list_at, list);
                with_list
            }
            None => 0,
        };
        self.request(bit | with, with_list);
    }

    fn mark_to_drop(&mut self, place: &Place) {
        let Some(spot) = self.spot(place) else {
            return;
        };
        let meta = self.plan.storage.meta;
        let start = self.plan.storage.standard.start;
        self.guarded(spot.guard, |g| {
            for (field, value) in [
                (meta.egress_spec, u64::from(DROP_PORT)),
                (meta.mcast_grp, 0),
            ] {
                if let Some(field) = field
                    && let Some((width, _)) = g.home(field.at)
                {
                    // The place may be another copy than the architecture's.
                    let mut part = Spot::whole(spot.at + field.at - start, Type::Bits(width));
                    part.dynamic = spot.dynamic;
                    let value = g.number(value);
                    g.store_number_at(&part, value, 64);
                }
            }
        });
    }

    /// An element of a register array: where it begins if there is one, and whether there
    /// is; `None` if there certainly is none.
    fn register_element(
        &mut self,
        register: RegisterId,
        index: &Expr,
    ) -> Option<(Value, Option<Value>)> {
        let size = self.program().registers[register.index()].size;
        let placement = &self.plan.registers[register.index()];
        let (base, stride) = (placement.base as i64, placement.stride as u64);
        let domain = self.plan.lock_of_register(register);
        let memory = self.given(offset_of!(Context, registers));
        let array = self.b.ins().iadd_imm_s(memory, base);
        if let Some(index) = constant(index) {
            let index = u64::try_from(index).ok().filter(|index| *index < size);
            if let Some(domain) = domain {
                let at = index.map_or(Index::Missing, |index| Index::At(self.number(index)));
                self.lock(domain, at);
            }
            let index = index?;
            let element = self.b.ins().iadd_imm_s(array, (index * stride) as i64);
            return Some((element, None));
        }
        let index = self.index(index);
        if size == 0 {
            if let Some(domain) = domain {
                self.lock(domain, Index::Missing);
            }
            return None;
        }
        let exists = (self.most(index) >= size).then(|| {
            let size = self.number(size);
            self.b.ins().icmp(IntCC::UnsignedLessThan, index, size)
        });
        if let Some(domain) = domain {
            let at = exists.map_or(Index::At(index), |exists| Index::If(exists, index));
            self.lock(domain, at);
        }
        let stride = self.number(stride);
        let offset = self.b.ins().imul(index, stride);
        Some((self.b.ins().iadd(array, offset), exists))
    }

    fn lock_meter(&mut self, meter: MeterId, index: Value) {
        if let Some(domain) = self.plan.lock_of_meter(meter) {
            let size = self.number(self.program().meters[meter.index()].size);
            let exists = self.b.ins().icmp(IntCC::UnsignedLessThan, index, size);
            self.lock(domain, Index::If(exists, index));
        }
    }

    fn register_read(&mut self, register: RegisterId, index: &Expr, result: &Place) {
        let def = &self.program().registers[register.index()];
        // Past the end are zeros, as of a header that was never extracted.
        let zeros = self.given(offset_of!(Context, zeros));
        let pointer = match self.register_element(register, index) {
            Some((element, Some(exists))) => self.b.ins().select(exists, element, zeros),
            Some((element, None)) => element,
            None => zeros,
        };
        let spot = self.spot(result);
        let scalars = self.scalars(def.element);
        let mut values = Vec::new();
        for (word, width) in scalars {
            let cell = self.plan.registers[register.index()].cells[word];
            let at = cell.offset as i32;
            values.push(if width <= REGISTER_BITS {
                let flags = Self::flags(self.regions.state);
                let value = self.b.ins().load(cell_type(cell), flags, pointer, at);
                Scalar::Register(match cell.bytes {
                    1 | 2 | 4 => self.b.ins().uextend(types::I64, value),
                    _ => value,
                })
            } else {
                let words = word_count(width);
                let copy = self.scratch(words);
                let from = self.b.ins().iadd_imm_s(pointer, i64::from(at));
                let words = self.number(words as u64);
                self.call_engine(run::copy_words as *const u8, &[copy, from, words], false);
                Scalar::Memory(copy)
            });
        }
        if let Some(spot) = spot {
            self.store_all(&spot, values);
        }
    }

    fn register_write(&mut self, register: RegisterId, index: &Expr, value: &Expr) {
        let def = &self.program().registers[register.index()];
        let element = self.register_element(register, index);
        let values = self.flatten(value);
        let Some((pointer, exists)) = element else {
            return;
        };
        let scalars = self.scalars(def.element);
        self.guarded(exists, |g| {
            for ((word, width), value) in scalars.into_iter().zip(values) {
                let cell = g.plan.registers[register.index()].cells[word];
                let at = cell.offset as i32;
                match value {
                    Scalar::Register(value) => {
                        let flags = Self::flags(g.regions.state);
                        let value = match cell.bytes {
                            1 | 2 | 4 => g.b.ins().ireduce(cell_type(cell), value),
                            _ => value,
                        };
                        g.b.ins().store(flags, value, pointer, at);
                    }
                    Scalar::Memory(from) => {
                        let to = g.b.ins().iadd_imm_s(pointer, i64::from(at));
                        let words = g.number(word_count(width) as u64);
                        g.call_engine(run::copy_words as *const u8, &[to, from, words], false);
                    }
                }
            }
        });
    }

    fn count(&mut self, counter: CounterId, index: &Expr) {
        let def = &self.program().counters[counter.index()];
        let element = self.scaled(index, size_of::<Count>() as u64, def.size);
        let (exists, offset) = match element {
            Element::Missing => return,
            Element::At(offset) => (None, offset),
            Element::If(exists, offset) => (Some(exists), offset),
        };
        let arrays = self.given(offset_of!(Context, counters));
        let flags = Self::flags(self.regions.context).with_readonly();
        let at = (counter.index() * size_of::<*mut Count>()) as i32;
        let array = self.b.ins().load(types::I64, flags, arrays, at);
        let pointer = self.b.ins().iadd(array, offset);
        self.guarded(exists, |g| {
            let flags = Self::flags(g.regions.state);
            let one = g.number(1);
            let length = g.frame_length;
            for (at, by) in [
                (offset_of!(Count, packets), one),
                (offset_of!(Count, bytes), length),
            ] {
                let old = g.b.ins().load(types::I64, flags, pointer, at as i32);
                let new = g.b.ins().iadd(old, by);
                g.b.ins().store(flags, new, pointer, at as i32);
            }
        });
    }

    fn random(&mut self, result: &Place, lo: &Expr, hi: &Expr) {
        let low = self.as_words(lo);
        let high = self.as_words(hi);
        let width = scalar_bits(lo.ty);
        let words = word_count(width);
        let drawn = self.scratch(words);
        let width_value = self.number(u64::from(width));
        let context = self.context;
        self.call_engine(
            run::random as *const u8,
            &[context, low, high, width_value, drawn],
            false,
        );
        let Some(spot) = self.spot(result) else {
            return;
        };
        let target = spot.width();
        let value = if target <= REGISTER_BITS {
            Scalar::Register(self.wide_bits(drawn, width.max(1), 0, target))
        } else {
            let resized = self.scratch(word_count(target));
            self.wide_slice(resized, target, drawn, width, 0);
            Scalar::Memory(resized)
        };
        self.store_spot(&spot, value);
    }

    fn log(&mut self, format: &str, values: &[Expr]) {
        let widths: Vec<(u32, bool)> = values
            .iter()
            .map(|value| (scalar_bits(value.ty), value.ty == Type::Bool))
            .collect();
        let words: usize = widths.iter().map(|(width, _)| word_count(*width)).sum();
        let pointer = self.scratch(words.max(1));
        let mut at = 0;
        for (value, (width, _)) in values.iter().zip(&widths) {
            for scalar in self.flatten(value) {
                self.put_words(pointer, at, *width, scalar);
            }
            at += word_count(*width);
        }
        let site = Site::Log {
            format: format.to_owned(),
            values: widths,
        };
        self.report(run::log as *const u8, site, pointer);
    }

    /// Calls a function of the engine with the number of a statement and words.
    fn report(&mut self, function: *const u8, site: Site, words: Value) {
        let number = self.number(self.sites.len() as u64);
        self.sites.push(site);
        let context = self.context;
        self.call_engine(function, &[context, number, words], false);
    }
}
