//! Operations, those on arrays among them.

use super::{Run, Use};
use crate::symbols::Symbol;
use stateplane_ir::{Expr, ExprKind, HashAlgorithm, Op, Place};
use std::rc::Rc;

impl Run<'_> {
    pub(super) fn op(&mut self, op: &Op) {
        match op {
            Op::RegisterRead {
                register,
                index,
                result,
            } => {
                self.uses_array(register.index(), index);
                let name = &self.program.registers[register.index()].name;
                self.obscure(result, &format!("value of {name}"));
            }
            Op::RegisterWrite {
                register,
                index,
                value,
            } => {
                self.values(value);
                self.uses_array(register.index(), index);
            }
            Op::MeterExecute {
                meter,
                index,
                result,
            } => {
                let number = self.program.registers.len() + meter.index();
                self.uses_array(number, index);
                self.obscure(result, "?");
            }
            Op::Hash {
                result,
                algorithm,
                base,
                data,
                max,
            } => self.hash(result, *algorithm, [base, max], data),
            Op::Random { result, .. }
            | Op::DirectMeterRead { result, .. }
            | Op::PacketLength { result }
            | Op::Lookahead { result } => self.obscure(result, "?"),
            Op::Extract { header, .. } => self.obscure(header, "?"),
            Op::UpdateChecksum { checksum, .. } => self.obscure(checksum, "?"),
            Op::MarkToDrop { standard_metadata } => self.mark_to_drop(standard_metadata),
            // It sets a field of the architecture's metadata, which is no operand.
            Op::VerifyChecksum { .. } => self.forget(0..self.leaves.count),
            Op::Advance { .. }
            | Op::Emit { .. }
            | Op::Verify { .. }
            | Op::CounterCount { .. }
            | Op::DirectCounterCount { .. }
            | Op::Clone { .. }
            | Op::Resubmit { .. }
            | Op::Recirculate { .. }
            | Op::Truncate { .. }
            | Op::Digest { .. }
            | Op::Assert { .. }
            | Op::LogMessage { .. } => {}
            Op::Uses { units, numbers } => self.uses_units(units, numbers),
        }
    }

    /// Reads of a register that the program never writes disturb nobody and need no lock. Nothing
    /// but the control plane writes it, which takes no locks.
    fn uses_array(&mut self, array: usize, index: &Expr) {
        let index = self.scalar(index);
        if !self.inside || !self.arrays.change(array) {
            return;
        }
        if let Some(units) = self.arrays.units_of(array) {
            let names = self.state.maybe.iter();
            let mut before = names.filter_map(|at| self.elements.get_index(at));
            if !before.any(|((other, _), _)| *other == units) {
                let place = Rc::clone(&self.place);
                self.without_units.entry(units).or_insert((array, place));
            }
        }
        self.uses(array, index);
    }

    fn uses_units(&mut self, units: &str, numbers: &[Expr]) {
        let values: Vec<_> = numbers.iter().map(|it| self.scalar(it)).collect();
        let Some(array) = self.arrays.of_units(units).filter(|_| self.inside) else {
            return;
        };
        for (number, value) in numbers.iter().zip(&values) {
            let name = match &number.kind {
                ExprKind::Read(place) => self.leaves.name(self.leaves.spot(place).leaves.start),
                _ => self.symbols.text(*value),
            };
            self.unit_numbers.entry(array).or_default().insert(name);
        }
        let index = self.symbols.operation("units", values);
        self.uses(array, index);
    }

    fn uses(&mut self, array: usize, index: Symbol) {
        self.uses.push(Use {
            array,
            index,
            apart: self.apart,
            place: Rc::clone(&self.place),
            maybe: self.state.maybe.clone(),
            surely: self.state.surely.clone(),
        });
        let element = self.elements.entry((array, index));
        let number = element.index();
        element.or_insert_with(|| Rc::clone(&self.place));
        self.state.maybe.add(number);
        self.state.surely.add(array);
    }

    fn hash(
        &mut self,
        result: &Place,
        algorithm: HashAlgorithm,
        bounds: [&Expr; 2],
        data: &[Expr],
    ) {
        if algorithm == HashAlgorithm::Random {
            return self.obscure(result, "hash random");
        }
        let ty = self.program.place_type(result);
        let name = format!("hash {algorithm:?}").to_lowercase();
        // The width of the result is a part of what is computed.
        let width = ty.and_then(|ty| ty.scalar_width()).unwrap_or(0);
        let mut operands = Vec::new();
        for value in data {
            operands.extend(self.values(value));
        }
        for bound in bounds {
            operands.push(self.scalar(bound));
        }
        let value = self.operation(&name, operands);
        let value = self.operation(&format!("bit<{width}>"), vec![value]);
        self.write(result, vec![value]);
    }

    fn mark_to_drop(&mut self, standard: &Place) {
        let id = self.program.pipeline.standard_metadata;
        let fields = &self.program.structs[id.index()].fields;
        for name in ["egress_spec", "mcast_grp"] {
            if let Some(field) = fields.iter().position(|field| field.name == name) {
                let mut place = standard.clone();
                place
                    .path
                    .push(stateplane_ir::Projection::Field(field as u32));
                self.obscure(&place, "511");
            }
        }
    }
}
