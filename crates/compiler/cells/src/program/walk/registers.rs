//! Operations, those on registers among them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stateplane_ir::{Op, RegisterId};

use super::super::store::path_of;
use super::super::value::{Step, Value};
use super::{Access, Walk};

impl<'p> Walk<'p> {
    pub(super) fn op(&mut self, op: &Op) {
        match op {
            Op::RegisterRead {
                register,
                index,
                result,
            } => {
                let index = self.value(index);
                let value = self.register_read(*register, &index);
                self.assign(result, value);
            }
            Op::RegisterWrite {
                register,
                index,
                value,
            } => {
                let (index, value) = (self.value(index), self.value(value));
                let written = value.with(&index).with(&self.control);
                let written = written.after(
                    &format!("write {}", self.register_name(*register)),
                    self.profile.write,
                    &self.place,
                );
                self.access(*register, true, index, written);
            }
            Op::Hash {
                result,
                algorithm,
                base,
                data,
                max,
            } => {
                let mut values: Vec<Value> = data.iter().map(|value| self.value(value)).collect();
                values.push(self.value(base));
                values.push(self.value(max));
                let name = format!("hash {algorithm:?}").to_lowercase();
                let value = self.made(&name, self.profile.hash, values);
                self.assign(result, value);
            }
            Op::Random { result, lo, hi } => {
                let (lo, hi) = (self.value(lo), self.value(hi));
                let symbol = self.symbols.unknown();
                self.assign(result, Value::of(symbol).with(&lo).with(&hi));
            }
            Op::MeterExecute { index, result, .. } => {
                let index = self.value(index);
                let symbol = self.symbols.unknown();
                self.assign(result, Value { symbol, ..index });
            }
            Op::DirectMeterRead { result, .. } | Op::PacketLength { result } => {
                let symbol = self.symbols.unknown();
                self.assign(result, Value::of(symbol));
            }
            Op::MarkToDrop { standard_metadata } => {
                let dropped = Value::of(self.symbols.input("511"));
                let (at, _) = path_of(standard_metadata);
                for name in ["egress_spec", "mcast_grp"] {
                    if let Some(field) = self.standard_field(name) {
                        let path = [at.1.as_slice(), &[field]].concat();
                        self.store.set((at.0, path), dropped.clone());
                    }
                }
            }
            // The others bring no value to a register's index or element.
            _ => {}
        }
    }

    fn standard_field(&self, name: &str) -> Option<u32> {
        let id = self.program.pipeline.standard_metadata;
        let fields = &self.program.structs[id.index()].fields;
        let at = fields.iter().position(|field| field.name == name)?;
        u32::try_from(at).ok()
    }

    fn register_name(&self, register: RegisterId) -> &'p str {
        &self.program.registers[register.index()].name
    }

    /// False for a register that only the control plane writes.
    fn is_written(&self, register: RegisterId) -> bool {
        self.written
            .as_ref()
            .is_none_or(|it| it.contains(&register))
    }

    fn register_read(&mut self, register: RegisterId, index: &Value) -> Value {
        let name = self.register_name(register);
        let mut operands = vec![index.symbol];
        if self.is_written(register) {
            operands.push(self.symbols.unknown());
        }
        let symbol = self.symbols.operation(format!("value of {name}"), operands);
        let mut registers = BTreeSet::clone(&index.registers);
        registers.insert(register);
        let operation = format!("read {name}");
        let later = index.after(&operation, self.profile.read, &self.place);
        let mut steps = BTreeMap::clone(&later.steps);
        if let Some(cell) = self.cells.get(register.index()).copied().flatten() {
            let place = Rc::clone(&self.place);
            steps.entry(cell).or_insert_with(|| {
                Rc::new(Step {
                    at: self.profile.read,
                    operation,
                    place,
                    before: None,
                })
            });
        }
        let value = Value {
            symbol,
            registers: Rc::new(registers),
            steps: Rc::new(steps),
        };
        self.access(register, false, index.clone(), value.clone());
        value
    }

    fn access(&mut self, register: RegisterId, writes: bool, index: Value, written: Value) {
        self.accesses.push(Access {
            register,
            writes,
            index,
            written,
            egress: self.egress,
        });
    }
}
