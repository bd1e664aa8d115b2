//! The arrays whose elements blocks lock: registers, meters, and units of registers, each with a number.

use stateplane_ir::{MeterId, Program, RegisterId, Units};

/// The arrays of a program. Numbers of meters are behind those of registers, and numbers of units
/// behind these.
pub(super) struct Arrays {
    registers: usize,
    meters: usize,
    /// Names and contents of units.
    units: Vec<(String, Units)>,
    /// For each register whether the program writes it.
    written: Vec<bool>,
}

impl Arrays {
    pub fn new(program: &Program) -> Arrays {
        let mut units: Vec<(String, Units)> = Vec::new();
        for (name, _) in program.registers.iter().filter_map(|it| it.unit()) {
            if units.iter().any(|(known, _)| known == name) {
                continue;
            }
            if let Some(found) = program.units(name) {
                units.push((name.to_owned(), found));
            }
        }
        Arrays {
            registers: program.registers.len(),
            meters: program.meters.len(),
            units,
            written: super::outside::written(program),
        }
    }

    /// True if the program changes elements of the array.
    pub fn change(&self, array: usize) -> bool {
        self.written.get(array).copied().unwrap_or(true)
    }

    /// The units that a register's elements are in.
    pub fn units_of(&self, array: usize) -> Option<usize> {
        let mut all = self.units.iter();
        let has =
            |(_, units): &(String, Units)| units.registers.iter().any(|it| it.index() == array);
        all.position(has).map(|at| self.first_units() + at)
    }

    /// The units of that name.
    pub fn of_units(&self, name: &str) -> Option<usize> {
        let at = self.units.iter().position(|(known, _)| known == name)?;
        Some(self.first_units() + at)
    }

    /// All units, by number, name and content.
    pub fn all_units(&self) -> impl Iterator<Item = (usize, &str, &Units)> {
        let numbered = self.units.iter().enumerate();
        numbered.map(|(at, (name, units))| (self.first_units() + at, name.as_str(), units))
    }

    /// The array's kind, and its number among those of the kind.
    pub fn kind(&self, array: usize) -> Kind {
        if array < self.registers {
            Kind::Register(RegisterId(array as u32))
        } else if array < self.first_units() {
            Kind::Meter(MeterId((array - self.registers) as u32))
        } else {
            Kind::Units
        }
    }

    fn first_units(&self) -> usize {
        self.registers + self.meters
    }
}

/// Kinds of arrays.
pub(super) enum Kind {
    Register(RegisterId),
    Meter(MeterId),
    Units,
}
