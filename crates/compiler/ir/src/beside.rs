//! Registers whose elements lie beside those of others, by the annotations of an author.

use crate::{Annotation, AnnotationBody, AnnotationValue, BESIDE, Program, Register, RegisterId};
use num_traits::ToPrimitive;

impl Register {
    /// Name of the register beside whose elements `@beside["name", first]` puts those of this one, and the first
    /// of these.
    pub fn beside(&self) -> Option<(&str, u64)> {
        match &Annotation::find(&self.annotations, BESIDE)?.body {
            AnnotationBody::Values(values) => match values.as_slice() {
                [AnnotationValue::String(name), AnnotationValue::Int(first)] => {
                    Some((name, first.to_u64()?))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Program {
    /// The register beside whose elements those of `register` lie, and the first of these. `None` without the
    /// annotation, and where it has no effect: there is no such register, it ends before the last element, or lies
    /// beside one itself.
    pub fn beside(&self, register: &Register) -> Option<(RegisterId, u64)> {
        let (name, first) = register.beside()?;
        let at = self.registers.iter().position(|it| it.name == name)?;
        let other = &self.registers[at];
        let end = first.checked_add(register.size)?;
        let fits = end <= other.size && other.beside().is_none();
        fits.then_some((RegisterId(at as u32), first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Type;
    use crate::builder::Builder;

    /// A program with registers of these sizes, `r0` and so on; some lie beside another one.
    fn program(registers: &[(u64, Option<(&str, i64)>)]) -> Program {
        let mut b = Builder::new();
        for (at, (size, beside)) in registers.iter().enumerate() {
            let register = b.register(&format!("r{at}"), Type::Bits(8), *size);
            let annotation = beside.map(|(name, first)| Annotation {
                name: BESIDE.to_owned(),
                body: AnnotationBody::Values(vec![
                    AnnotationValue::String(name.to_owned()),
                    AnnotationValue::Int(first.into()),
                ]),
            });
            b.program.registers[register.index()].annotations = annotation.into_iter().collect();
        }
        b.program
    }

    #[test]
    fn elements_lie_beside_those_that_there_are() {
        let beside = |size, name, first| {
            let program = program(&[(8, None), (4, Some(("r0", 0))), (size, Some((name, first)))]);
            program.beside(&program.registers[2])
        };
        assert_eq!(beside(4, "r0", 4), Some((RegisterId(0), 4)));
        for (size, name, first) in [
            (4, "r0", 5),
            (9, "r0", 0),
            (4, "r0", -1),
            (4, "r3", 0),
            (4, "r1", 0),
            (4, "r2", 0),
        ] {
            assert_eq!(beside(size, name, first), None, "{size} {name} {first}");
        }
    }
}
