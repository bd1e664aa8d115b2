//! Cells beside each other.

use crate::TargetState;
use crate::register::{Placement, Register};
use num_bigint::BigUint;
use stateplane_ir::builder::Builder;
use stateplane_ir::{Annotation, AnnotationBody, AnnotationValue, BESIDE, DRAWN_AT_START, Type};

/// Registers by width and size.
fn state(registers: &[(u32, u64)]) -> TargetState {
    let mut b = Builder::new();
    let headers = b.structure("headers", &[]);
    let metadata = b.structure("metadata", &[]);
    b.pipeline(headers, metadata);
    for (number, &(width, size)) in registers.iter().enumerate() {
        b.register(&format!("r{number}"), Type::Bits(width), size);
    }
    let program = b.finish().expect("the program keeps the rules");
    TargetState::new(&program, 0).expect("a state")
}

/// A value that fills an element, other than those of other elements.
fn value(register: usize, index: u64, width: u32) -> BigUint {
    let all = (BigUint::from(1u32) << width) - 1u32;
    (all - (register as u64 * 7 + index)) % (BigUint::from(1u32) << width)
}

#[test]
fn elements_of_all_widths_keep_to_themselves() {
    let registers = [
        (8, 5),
        (128, 5),
        (9, 5),
        (300, 5),
        (32, 3),
        (48, 5),
        (16, 5),
        (64, 3),
        (129, 1),
    ];
    let mut state = state(&registers);
    for (number, (width, size)) in registers.iter().enumerate() {
        let register = state.register_mut(&format!("r{number}")).expect("one");
        for index in 0..*size {
            let value = crate::Value::Bits(value(number, index, *width));
            register.write(index, &value).expect("it fits");
        }
        assert!(register.write(*size, &crate::Value::from(0)).is_err());
    }
    for (number, (width, size)) in registers.iter().enumerate() {
        let register = state.register(&format!("r{number}")).expect("one");
        for index in 0..*size {
            let expected = crate::Value::Bits(value(number, index, *width));
            assert_eq!(register.read(index), Ok(expected), "r{number}[{index}]");
        }
        assert!(register.read(*size).is_err());
        assert_eq!(register.word(*size), None);
    }
}

#[test]
fn what_is_indexed_alike_lies_together() {
    let mut state = state(&[(48, 100), (128, 100), (8, 100), (32, 7)]);
    let placements: Vec<_> = state.registers().iter().map(Register::placement).collect();
    let [time, key, status, other] = placements[..] else {
        panic!("four registers");
    };
    assert_eq!((key.cells[0].offset, key.cells[0].bytes), (0, 16));
    assert_eq!((time.cells[0].offset, time.cells[0].bytes), (16, 8));
    assert_eq!((status.cells[0].offset, status.cells[0].bytes), (24, 1));
    assert_eq!((key.stride, time.stride, status.stride), (32, 32, 32));
    assert_eq!((key.base, time.base), (status.base, status.base));
    assert_eq!(other.stride, 4);
    let id = stateplane_ir::RegisterId(0);
    let (memory, bytes) = state.register_at(id).memory();
    assert_eq!(memory.addr() % 64, 0);
    assert!(bytes >= 100 * 32 + 7 * 4, "{bytes}");
}

/// A register whose elements lie beside those of `r0` from `first` on.
fn beside(first: u64) -> Vec<Annotation> {
    let values = vec![
        AnnotationValue::String("r0".to_owned()),
        AnnotationValue::Int(first.into()),
    ];
    vec![Annotation {
        name: BESIDE.into(),
        body: AnnotationBody::Values(values),
    }]
}

#[test]
fn shorter_arrays_lie_beside_parts_of_a_longer_one() {
    let mut b = Builder::new();
    let headers = b.structure("headers", &[]);
    let metadata = b.structure("metadata", &[]);
    b.pipeline(headers, metadata);
    let registers = [(64, 11), (8, 11), (32, 4), (32, 6), (32, 4), (16, 4)];
    for (number, &(width, size)) in registers.iter().enumerate() {
        b.register(&format!("r{number}"), Type::Bits(width), size);
    }
    let mut program = b.finish().expect("the program keeps the rules");
    for (number, first) in [(2, 0), (3, 4), (4, 2), (5, 0)] {
        program.registers[number].annotations = beside(first);
    }
    let mut state = TargetState::new(&program, 0).expect("a state");
    let placements: Vec<_> = state.registers().iter().map(Register::placement).collect();
    let [host, status, first, second, third, fourth] = &placements[..] else {
        panic!("six registers");
    };
    let offset = |placement: &Placement| placement.cells[0].offset;
    // The first two share a cell, and the third, which lies beside elements of both, has another one.
    assert_eq!((offset(host), offset(first)), (0, 8));
    assert_eq!((offset(second), offset(third)), (8, 12));
    assert_eq!((offset(fourth), offset(status)), (16, 18));
    let strides = [host, status, first, second, third, fourth].map(|it| it.stride);
    assert_eq!(strides, [32; 6]);
    assert_eq!(second.base, host.base + 4 * 32);
    assert_eq!((third.base, fourth.base), (host.base + 2 * 32, host.base));

    // Each element keeps to itself.
    for (number, (width, size)) in registers.iter().enumerate() {
        let register = state.register_mut(&format!("r{number}")).expect("one");
        for index in 0..*size {
            let value = crate::Value::Bits(value(number, index, *width));
            register.write(index, &value).expect("it fits");
        }
    }
    for (number, (width, size)) in registers.iter().enumerate() {
        let register = state.register(&format!("r{number}")).expect("one");
        for index in 0..*size {
            let expected = crate::Value::Bits(value(number, index, *width));
            assert_eq!(register.read(index), Ok(expected), "r{number}[{index}]");
        }
    }
}

#[test]
fn states_are_equal_if_their_elements_are() {
    let (mut one, two) = (state(&[(32, 4)]), state(&[(32, 4)]));
    assert_eq!(one, two);
    let register = one.register_mut("r0").expect("it");
    register.write(3, &crate::Value::from(1)).expect("it fits");
    assert_ne!(one, two);
}

#[test]
fn only_what_is_drawn_at_start_is_drawn() {
    let mut b = Builder::new();
    let headers = b.structure("headers", &[]);
    let metadata = b.structure("metadata", &[]);
    b.pipeline(headers, metadata);
    for (name, width) in [("drawn", 64), ("narrow", 3), ("wide", 200), ("other", 64)] {
        b.register(name, Type::Bits(width), 4);
    }
    let mut program = b.finish().expect("the program keeps the rules");
    for register in &mut program.registers[..3] {
        register.annotations = vec![Annotation {
            name: DRAWN_AT_START.into(),
            body: AnnotationBody::Empty,
        }];
    }
    let mut state = TargetState::new(&program, 0).expect("a state");
    let mut next = 0u64;
    state.draw(&mut || {
        next += 1;
        u64::MAX - next
    });
    let read = |name: &str| -> Vec<crate::Value> {
        let register = state.register(name).expect("one");
        (0..4)
            .map(|at| register.read(at).expect("in range"))
            .collect()
    };
    let drawn = read("drawn");
    assert!((1..4).all(|at| drawn[at] != drawn[at - 1]), "{drawn:?}");
    let bits = |value: &crate::Value| match value {
        crate::Value::Bits(bits) => bits.bits(),
        crate::Value::Struct(_) => 0,
    };
    assert_eq!(read("narrow").iter().map(bits).max(), Some(3));
    assert_eq!(read("wide").iter().map(bits).max(), Some(200));
    assert_eq!(read("other"), vec![crate::Value::from(0); 4]);
    // An engine that shares the registers sees the same.
    let fellow = state.fellow(1);
    assert_eq!(fellow.register("drawn"), state.register("drawn"));
}
