//! Atomic blocks for operations that the workers of one program must not do at once.

use super::walk::{bodies, children, children_mut};
use crate::{Annotation, Op, Program, RegisterId, SIDE_EFFECTS_WAIT, Stmt, StructDef, Type};

/// Widest register element that one load or store of a machine takes as a whole.
const WHOLE_BITS: u32 = 64;

/// Register operations that an engine does atomically by itself, outside atomic blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Reads and writes of scalars of at most 64 bits.
    Words,
    /// No operation.
    Nothing,
}

/// Puts every operation into an atomic block that workers of this program, which share its
/// registers and meters, may not do at once:
///
/// * operations on registers that some atomic block uses: to the block they are one of the
///   others between which nothing may come;
/// * operations on registers that the engine does not do as a whole, and on meters;
/// * ingress, and egress, as a whole where packets may wait for something
///   ([`SIDE_EFFECTS_WAIT`]): what such a program reads from registers must still hold when it
///   writes.
pub fn guard(program: &mut Program, whole: Whole) {
    let waits = |structure: &StructDef| {
        Annotation::find(&structure.annotations, SIDE_EFFECTS_WAIT).is_some()
    };
    if program.structs.iter().any(waits) {
        for control in [program.pipeline.ingress, program.pipeline.egress] {
            let body = &mut program.controls[control.index()].body;
            let stmts = std::mem::take(body);
            body.push(Stmt::Atomic(stmts));
        }
    }
    let mut guarded = in_atomic_blocks(program);
    for (guarded, register) in guarded.iter_mut().zip(&program.registers) {
        let whole = match (whole, register.element) {
            (Whole::Nothing, _) => false,
            (Whole::Words, Type::Bool) => true,
            (Whole::Words, ty) => ty.scalar_width().is_some_and(|width| width <= WHOLE_BITS),
        };
        *guarded |= !whole;
    }
    bodies(program, &mut |body| wrap(body, &guarded));
}

/// For each register whether some atomic block uses it.
fn in_atomic_blocks(program: &mut Program) -> Vec<bool> {
    let mut used = vec![false; program.registers.len()];
    let mut calls = false;
    bodies(program, &mut |body| {
        for stmt in body.iter() {
            see_atomic(stmt, false, &mut used, &mut calls);
        }
    });
    if calls {
        // What is called from an atomic block is a part of it; which registers that uses is
        // not worth following.
        used.fill(true);
    }
    used
}

fn see_atomic(stmt: &Stmt, inside: bool, used: &mut [bool], calls: &mut bool) {
    match stmt {
        Stmt::Op(op) if inside => {
            if let Some(register) = register_of(op) {
                used[register.index()] = true;
            }
        }
        Stmt::Apply { .. } | Stmt::Call { .. } if inside => *calls = true,
        _ => {}
    }
    let inside = inside || matches!(stmt, Stmt::Atomic(_) | Stmt::Apart(_));
    for list in children(stmt) {
        for stmt in list {
            see_atomic(stmt, inside, used, calls);
        }
    }
}

fn register_of(op: &Op) -> Option<RegisterId> {
    match op {
        Op::RegisterRead { register, .. } | Op::RegisterWrite { register, .. } => Some(*register),
        _ => None,
    }
}

fn wrap(stmts: &mut [Stmt], guarded: &[bool]) {
    for stmt in stmts {
        let alone = match stmt {
            Stmt::Op(Op::MeterExecute { .. }) => true,
            Stmt::Op(op) => register_of(op).is_some_and(|register| guarded[register.index()]),
            // All that it does is done as one.
            Stmt::Atomic(_) | Stmt::Apart(_) => continue,
            _ => false,
        };
        if alone {
            let op = std::mem::replace(stmt, Stmt::Block(Vec::new()));
            *stmt = Stmt::Atomic(vec![op]);
        } else {
            for list in children_mut(stmt) {
                wrap(list, guarded);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, bits};
    use crate::{MeterId, Place};

    /// A program whose ingress reads registers 0 (narrow), 1 (narrow, in an atomic block
    /// too) and 2 (wide), and runs a meter.
    fn program() -> Program {
        let mut b = Builder::new();
        let nothing = b.structure("nothing", &[]);
        b.pipeline(nothing, nothing);
        let mut read = |name: &str, width| {
            let register = b.register(name, Type::Bits(width), 1);
            let result = Place::var(b.var(name, Type::Bits(width)));
            let index = bits(32, 0);
            Stmt::Op(Op::RegisterRead {
                register,
                index,
                result,
            })
        };
        let (narrow, shared, wide) = (read("a", 64), read("b", 8), read("c", 65));
        b.program.meters.push(crate::Meter {
            name: "m".to_owned(),
            bytes: false,
            size: 1,
            table: None,
        });
        let meter = Stmt::Op(Op::MeterExecute {
            meter: MeterId(0),
            index: bits(32, 0),
            result: Place::var(b.var("color", Type::Bits(2))),
        });
        let ingress = b.program.pipeline.ingress;
        b.program.controls[ingress.index()].body = vec![
            narrow,
            Stmt::Block(vec![shared.clone(), wide]),
            Stmt::Atomic(vec![shared]),
            meter,
        ];
        b.finish().unwrap()
    }

    /// For each operation in order whether it is in an atomic block.
    fn guarded(program: &Program) -> Vec<bool> {
        fn see(stmts: &[Stmt], inside: bool, found: &mut Vec<bool>) {
            for stmt in stmts {
                if matches!(stmt, Stmt::Op(_)) {
                    found.push(inside);
                }
                let inside = inside || matches!(stmt, Stmt::Atomic(_));
                for list in children(stmt) {
                    see(list, inside, found);
                }
            }
        }
        let mut found = Vec::new();
        let ingress = &program.controls[program.pipeline.ingress.index()];
        see(&ingress.body, false, &mut found);
        found
    }

    #[test]
    fn what_is_no_whole_or_has_a_part_in_an_atomic_block_is_guarded() {
        let mut words = program();
        guard(&mut words, Whole::Words);
        assert_eq!(guarded(&words), [false, true, true, true, true]);
        crate::verify(&words).unwrap();
        let mut nothing = program();
        guard(&mut nothing, Whole::Nothing);
        assert_eq!(guarded(&nothing), [true; 5]);
    }

    #[test]
    fn a_program_whose_packets_wait_is_guarded_as_a_whole() {
        let mut program = program();
        let annotation = Annotation {
            name: SIDE_EFFECTS_WAIT.to_owned(),
            body: crate::AnnotationBody::Empty,
        };
        program.structs[0].annotations.push(annotation);
        guard(&mut program, Whole::Words);
        assert_eq!(guarded(&program), [true; 5]);
        let ingress = &program.controls[program.pipeline.ingress.index()];
        assert!(matches!(ingress.body.as_slice(), [Stmt::Atomic(_)]));
    }
}
