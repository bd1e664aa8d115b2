//! Checks that atomic blocks use the units of registers that they name, and no others: what an
//! author declares by `@uses`, engines rely on and no analysis shows.

use stateplane_ir::passes::each_op;
use stateplane_ir::{Op, Program, RegisterId};
use std::collections::BTreeMap;

/// Units that the packet at hand may use.
#[derive(Debug, Default)]
pub(crate) struct UnitCheck {
    /// By register that has units which some block names: their name, and the elements of one.
    units: BTreeMap<u32, (String, u64)>,
    /// Atomic blocks around the present statement.
    depth: u32,
    /// Units that the outermost of them named last.
    named: BTreeMap<String, Vec<u64>>,
}

impl UnitCheck {
    pub(crate) fn new(program: &Program) -> UnitCheck {
        let mut check = UnitCheck::default();
        let mut names = Vec::new();
        each_op(program, &mut |op| {
            if let Op::Uses { units, .. } = op {
                names.push(units.clone());
            }
        });
        for (number, register) in program.registers.iter().enumerate() {
            if let Some((name, elements)) = register.unit()
                && names.iter().any(|named| named == name)
            {
                check
                    .units
                    .insert(number as u32, (name.to_owned(), elements));
            }
        }
        check
    }

    pub(crate) fn enter(&mut self) {
        self.depth += 1;
    }

    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            self.named.clear();
        }
    }

    /// A block names units. It keeps those that it named before if these are among them, and lets go
    /// of them otherwise.
    pub(crate) fn names(&mut self, units: &str, numbers: &[u64]) {
        let named = self.named.entry(units.to_owned()).or_default();
        if !numbers.iter().all(|number| named.contains(number)) {
            *named = numbers.to_vec();
        }
    }

    /// A statement uses an element of a register.
    pub(crate) fn uses(&self, program: &Program, register: RegisterId, index: u64) {
        let def = &program.registers[register.index()];
        let Some((units, elements)) = self.units.get(&register.0) else {
            return;
        };
        // Past the end there is nothing.
        if index >= def.size {
            return;
        }
        let unit = index / elements;
        let named = self.named.get(units).map_or(&[][..], Vec::as_slice);
        assert!(
            named.contains(&unit),
            "the element {index} of `{}` is in unit {unit} of `{units}`, and the block named {named:?}",
            def.name
        );
    }
}
