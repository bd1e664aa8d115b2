//! Sketches as bytes, and sums of sketches.

mod support;

use proptest::prelude::*;
use stateplane_sketch::{Distinct, Family, Key, Reading, Shape, Sketch};
use support::drawn;

const SHAPES: [Shape; 6] = [
    Shape {
        family: Family::CountMin,
        seed: 7,
        function: 3,
        rows: 2,
        column_bits: 3,
        part_bits: 0,
    },
    Shape {
        family: Family::HashPipe,
        seed: 7,
        function: 0,
        rows: 2,
        column_bits: 3,
        part_bits: 0,
    },
    Shape {
        family: Family::Elastic,
        seed: 7,
        function: 0,
        rows: 1,
        column_bits: 3,
        part_bits: 4,
    },
    Shape {
        family: Family::FlowRadar,
        seed: 7,
        function: 0,
        rows: 3,
        column_bits: 3,
        part_bits: 2,
    },
    Shape {
        family: Family::UnivMon,
        seed: 7,
        function: 0,
        rows: 4,
        column_bits: 2,
        part_bits: 2,
    },
    Shape {
        family: Family::SketchLearn,
        seed: 7,
        function: 0,
        rows: 32,
        column_bits: 2,
        part_bits: 0,
    },
];

fn of(shape: Shape) -> Sketch {
    let readings = shape
        .locations()
        .into_iter()
        .enumerate()
        .map(|(part, count)| Reading {
            values: (0..count as u64).map(|at| at * 3).collect(),
            bound: (part == 0).then_some(5),
            all_but: 2,
            within: 1,
            age_us: 900,
            generation: 4,
            epoch: 6,
        });
    Sketch::new(shape, readings.collect()).expect("readings of the shape")
}

#[test]
fn keys_are_read_as_they_are_written() {
    for text in [
        "10.9.0.2",
        "10.9.0.2>10.0.0.1",
        "10.9.0.2:4000>10.0.0.1:53/17",
    ] {
        let key: Key = text.parse().expect("a key");
        assert_eq!(key.to_string(), text);
    }
    let wrong = [
        "",
        "10.9.0",
        "10.9.0.2>",
        "10.9.0.2:1>10.0.0.1:2",
        "10.9.0.2:1>10.0.0.1:2/256",
    ];
    for text in wrong {
        assert!(text.parse::<Key>().is_err(), "{text}");
    }
}

#[test]
fn bytes_give_the_sketch_again() {
    for shape in SHAPES {
        let sketch = of(shape);
        assert_eq!(Sketch::from_bytes(&sketch.to_bytes()), Ok(sketch));
    }
}

#[test]
fn bytes_that_are_no_sketch_are_refused() {
    let bytes = of(SHAPES[0]).to_bytes();
    let code = |bytes: &[u8]| Sketch::from_bytes(bytes).map_err(|error| error.code());
    for end in 0..bytes.len() {
        assert_eq!(code(&bytes[..end]), Err("SKETCH005"), "{end}");
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        code(&bytes).expect_err("it is refused")
    };
    assert_eq!(with(0, b'X'), "SKETCH005");
    assert_eq!(with(5, 2), "SKETCH006");
    assert_eq!(with(6, 9), "SKETCH005");
    assert_eq!(with(7, 2), "SKETCH005");
    assert_eq!(with(23, 99), "SKETCH001");
    assert_eq!(with(24, 60), "SKETCH001");
    assert_eq!(with(24, 4), "SKETCH005");
    assert_eq!(with(25, 1), "SKETCH001");
    assert_eq!(with(27, 1), "SKETCH005");
    assert_eq!(code(&[&bytes[..], &[0]].concat()), Err("SKETCH005"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(at in 0_usize..400, byte: u8, shape in 0_usize..6) {
        let mut bytes = of(SHAPES[shape]).to_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(sketch) = Sketch::from_bytes(&bytes) {
            prop_assert_eq!(sketch.to_bytes(), bytes);
            sketch.query(Key([1, 2, 3, 4]));
            sketch.keys();
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let shape = SHAPES[0];
    let code = |shape| Sketch::empty(shape).map_err(|error| error.code()).err();
    assert_eq!(code(Shape { rows: 0, ..shape }), Some("SKETCH001"));
    assert_eq!(code(Shape { rows: 17, ..shape }), Some("SKETCH001"));
    assert_eq!(
        code(Shape {
            column_bits: 25,
            ..shape
        }),
        Some("SKETCH001")
    );
    assert_eq!(
        code(Shape {
            part_bits: 1,
            ..shape
        }),
        Some("SKETCH001")
    );
    assert_eq!(
        code(Shape {
            part_bits: 0,
            ..SHAPES[3]
        }),
        Some("SKETCH001")
    );
    let short = vec![Reading::window(vec![0; 3], 0)];
    let error = Sketch::new(shape, short).expect_err("too short");
    assert_eq!(error.code(), "SKETCH002");
    let other = Distinct::new(of(SHAPES[1]), 10);
    assert_eq!(other.expect_err("not count-min").code(), "SKETCH001");
    assert!(Distinct::new(of(shape), 31).is_err());
}

#[test]
fn unlike_sketches_are_not_added() {
    for shape in SHAPES {
        let others = [
            Shape { seed: 8, ..shape },
            Shape {
                function: 1,
                ..shape
            },
            Shape {
                column_bits: 5,
                ..shape
            },
        ];
        for other in others {
            let mut sum = of(shape);
            let error = sum.merge(&of(other)).expect_err("they are unlike");
            assert_eq!((error.code(), &sum), ("SKETCH003", &of(shape)));
        }
    }
    let mut sum = of(SHAPES[0]);
    assert_eq!(
        sum.merge(&of(SHAPES[5]))
            .expect_err("another family")
            .code(),
        "SKETCH003"
    );
    for shape in [SHAPES[1], SHAPES[2], SHAPES[3]] {
        let error = of(shape).merge(&of(shape)).expect_err("not linear");
        assert_eq!(error.code(), "SKETCH004");
    }
}

#[test]
fn sums_of_like_sketches_count_both() {
    let packets = drawn(1, 4_000, 200);
    let (one, other) = packets.split_at(1_500);
    for shape in [SHAPES[0], SHAPES[4], SHAPES[5]] {
        let shape = Shape {
            column_bits: 6,
            ..shape
        };
        let count = |packets: &[support::Packet]| {
            let mut sketch = Sketch::empty(shape).expect("a shape");
            packets
                .iter()
                .for_each(|packet| sketch.update(packet.source()));
            sketch
        };
        let mut sum = count(one);
        sum.merge(&count(other)).expect("they are alike");
        assert_eq!(sum.parts()[0].values, count(&packets).parts()[0].values);
    }
    let mut sum = of(SHAPES[0]);
    sum.merge(&of(SHAPES[0])).expect("they are alike");
    assert_eq!(sum.parts()[0].bound, Some(10));
}
