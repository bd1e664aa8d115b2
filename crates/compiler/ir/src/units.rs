//! Units of registers: elements that workers lock together, by the annotations of an author.

use crate::{Annotation, AnnotationBody, AnnotationValue, Program, Register, RegisterId, UNIT};
use num_traits::ToPrimitive;

/// Units that one block uses at most.
pub const MOST_UNITS: usize = 4;

/// Registers whose elements at one unit's indices are locked together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units {
    /// The registers, which all have one length.
    pub registers: Vec<RegisterId>,
    /// Elements of a unit, at least 1.
    pub elements: u64,
    /// Number of units: the elements of a register by those of a unit.
    pub count: u64,
}

impl Register {
    /// Name of the units that `@unit["name", elements]` puts its elements into, and their size.
    pub fn unit(&self) -> Option<(&str, u64)> {
        match &Annotation::find(&self.annotations, UNIT)?.body {
            AnnotationBody::Values(values) => match values.as_slice() {
                [
                    AnnotationValue::String(name),
                    AnnotationValue::Int(elements),
                ] => {
                    let elements = elements.to_u64().filter(|elements| *elements > 0)?;
                    Some((name, elements))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Program {
    /// The units of that name among the program's registers ([`units_of`]).
    pub fn units(&self, name: &str) -> Option<Units> {
        units_of(&self.registers, name)
    }
}

/// The units of that name; `None` if no register has them, or if its registers differ in
/// length or in the elements of a unit, or end within one.
pub fn units_of(registers: &[Register], name: &str) -> Option<Units> {
    let mut units: Option<Units> = None;
    for (number, register) in registers.iter().enumerate() {
        let Some((_, elements)) = register.unit().filter(|(of, _)| *of == name) else {
            continue;
        };
        let count = register.size / elements;
        if !register.size.is_multiple_of(elements) {
            return None;
        }
        let units = units.get_or_insert_with(|| Units {
            registers: Vec::new(),
            elements,
            count,
        });
        if (units.elements, units.count) != (elements, count) {
            return None;
        }
        units.registers.push(RegisterId(number as u32));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Type;
    use crate::builder::Builder;

    fn program(units: &[(&str, i64, u64)]) -> Program {
        let mut b = Builder::new();
        for (at, (name, elements, size)) in units.iter().enumerate() {
            let register = b.register(&format!("r{at}"), Type::Bits(8), *size);
            let values = vec![
                AnnotationValue::String((*name).to_owned()),
                AnnotationValue::Int((*elements).into()),
            ];
            b.program.registers[register.index()].annotations = vec![Annotation {
                name: UNIT.to_owned(),
                body: AnnotationBody::Values(values),
            }];
        }
        b.program
    }

    #[test]
    fn registers_of_one_name_are_units_if_they_are_alike() {
        let alike = program(&[("a", 4, 8), ("b", 2, 8), ("a", 4, 8)]);
        let units = Units {
            registers: vec![RegisterId(0), RegisterId(2)],
            elements: 4,
            count: 2,
        };
        assert_eq!(alike.units("a"), Some(units));
        assert_eq!(alike.units("c"), None);
        for wrong in [
            &[("a", 4, 8), ("a", 4, 12)][..],
            &[("a", 4, 8), ("a", 2, 8)],
            &[("a", 4, 10)],
            &[("a", 0, 8)],
        ] {
            assert_eq!(program(wrong).units("a"), None, "{wrong:?}");
        }
    }
}
