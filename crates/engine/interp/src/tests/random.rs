//! No packet makes any program panic, and equal packets give equal results.

use super::{EGRESS, load};
use crate::Interp;
use num_bigint::BigUint;
use proptest::prelude::*;
use stateplane_ir::builder::{Builder, PipelineVars, binary, bits, cast, emit, is_valid, when};
use stateplane_ir::{
    Arg, BinaryOp, Callee, CloneKind, Direction, Expr, HashAlgorithm, KeySet, MatchKind, Op, Place,
    Projection, Stmt, Target, Transition, Type,
};
use stateplane_runtime::{Engine, IngressInput, InstanceType, Preserved};

/// A source of decisions.
struct Choices<'a>(std::iter::Cycle<std::slice::Iter<'a, u8>>);

impl Choices<'_> {
    fn below(&mut self, bound: usize) -> usize {
        usize::from(*self.0.next().unwrap()) % bound
    }
}

const WIDTHS: [u32; 8] = [1, 7, 8, 16, 33, 128, 136, 200];

struct Maker<'a> {
    b: Builder,
    v: PipelineVars,
    choices: Choices<'a>,
}

impl Maker<'_> {
    /// Some scalar place of the headers or metadata of a block.
    fn scalar(&mut self, headers: Place, metadata: Place) -> Place {
        let field = self.choices.below(WIDTHS.len()) as u32;
        let mut place = match self.choices.below(4) {
            0 => {
                let mut place = metadata;
                place.path.push(Projection::Field(field));
                return place;
            }
            1 => {
                let mut place = headers;
                place.path.push(Projection::Field(0));
                place
            }
            _ => {
                let mut place = headers;
                place.path.push(Projection::Field(1));
                let step = match self.choices.below(3) {
                    0 => Projection::Last,
                    1 => Projection::Next,
                    _ => {
                        let index = self.choices.below(5) as u128;
                        Projection::Index(Box::new(bits(8, index)))
                    }
                };
                place.path.push(step);
                place
            }
        };
        place.path.push(Projection::Field(field));
        place
    }

    fn header(&mut self, headers: Place) -> Place {
        let mut place = self.scalar(headers.clone(), headers.clone());
        place.path.pop();
        if place.path.is_empty() {
            place.path.push(Projection::Field(0));
        }
        place
    }

    fn number(&mut self, headers: &Place, metadata: &Place) -> Expr {
        let place = self.scalar(headers.clone(), metadata.clone());
        let read = self.b.read(&place);
        const OPS: [BinaryOp; 12] = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Mod,
            BinaryOp::AddSat,
            BinaryOp::SubSat,
            BinaryOp::And,
            BinaryOp::Xor,
            BinaryOp::Shl,
            BinaryOp::Shr,
            BinaryOp::Or,
        ];
        let op = OPS[self.choices.below(OPS.len())];
        let second = self.scalar(headers.clone(), metadata.clone());
        let second = self.b.read(&second);
        let second = match op {
            BinaryOp::Shl | BinaryOp::Shr => second,
            _ => cast(read.ty, second),
        };
        binary(op, read, second)
    }

    fn condition(&mut self, headers: &Place, metadata: &Place) -> Expr {
        if self.choices.below(2) == 0 {
            return is_valid(self.header(headers.clone()));
        }
        let left = self.number(headers, metadata);
        let right = self.scalar(headers.clone(), metadata.clone());
        let right = cast(left.ty, self.b.read(&right));
        binary(BinaryOp::Lt, left, right)
    }

    fn stmt(&mut self, block: stateplane_ir::builder::BlockVars) -> Stmt {
        let (headers, metadata) = (Place::var(block.headers), Place::var(block.metadata));
        let number = self.number(&headers, &metadata);
        let target = self.scalar(headers.clone(), metadata.clone());
        let ty = self.b.read(&target).ty;
        let mut stack = headers.clone();
        stack.path.push(Projection::Field(1));
        match self.choices.below(16) {
            0 => Stmt::SetValid(self.header(headers)),
            1 => Stmt::SetInvalid(self.header(headers)),
            2 => Stmt::PushFront(stack, self.choices.below(5) as u32),
            3 => Stmt::PopFront(stack, self.choices.below(5) as u32),
            4 => {
                let condition = self.condition(&headers, &metadata);
                when(condition, vec![Stmt::Assign(target, cast(ty, number))])
            }
            5 => Stmt::Op(Op::RegisterRead {
                register: stateplane_ir::RegisterId(0),
                index: number,
                result: {
                    let mut place = metadata;
                    place.path.push(Projection::Field(7));
                    place
                },
            }),
            6 => Stmt::Op(Op::RegisterWrite {
                register: stateplane_ir::RegisterId(0),
                index: number.clone(),
                value: cast(Type::Bits(200), number),
            }),
            7 => Stmt::Op(Op::Hash {
                result: target,
                algorithm: [
                    HashAlgorithm::Crc32,
                    HashAlgorithm::Csum16,
                    HashAlgorithm::Identity,
                    HashAlgorithm::Random,
                ][self.choices.below(4)],
                base: number.clone(),
                data: vec![number.clone()],
                max: number,
            }),
            8 => Stmt::Op(Op::Random {
                result: target,
                lo: number.clone(),
                hi: number,
            }),
            9 => Stmt::Op(Op::Truncate { length: number }),
            10 => Stmt::Op(Op::Clone {
                kind: [CloneKind::IngressToEgress, CloneKind::EgressToEgress]
                    [self.choices.below(2)],
                session: number,
                field_list: Some(bits(8, 1)),
            }),
            11 => Stmt::Apply {
                table: stateplane_ir::TableId(0),
                hit: None,
                action_run: None,
            },
            12 => {
                let header = self.header(headers);
                Stmt::Call {
                    callee: Callee::Control(stateplane_ir::ControlId(5)),
                    args: vec![Arg::InOut(header.clone()), Arg::Out(header)],
                    result: None,
                }
            }
            13 => Stmt::Op(Op::UpdateChecksum {
                condition: self.condition(&headers, &metadata),
                data: vec![number],
                checksum: target,
                algorithm: HashAlgorithm::Csum16,
                with_payload: true,
            }),
            _ => Stmt::Assign(target, cast(ty, number)),
        }
    }
}

fn program(choices: &[u8]) -> Builder {
    let mut b = Builder::new();
    let names = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7"];
    let fields: Vec<(&str, u32)> = names.into_iter().zip(WIDTHS).collect();
    let header = b.header("h_t", &fields);
    let stack = b.stack(Type::Header(header), 3);
    let headers = b.structure(
        "headers",
        &[("h", Type::Header(header)), ("s", Type::Stack(stack))],
    );
    let fields: Vec<(&str, Type)> = fields
        .into_iter()
        .map(|(name, width)| (name, Type::Bits(width)))
        .collect();
    let metadata = b.structure("metadata", &fields);
    let v = b.pipeline(headers, metadata);
    b.register("r", Type::Bits(200), 5);
    b.program.field_lists.push(stateplane_ir::FieldList {
        number: 1,
        fields: vec![vec![0], vec![7]],
    });
    let (first, second) = (
        b.var("first", Type::Header(header)),
        b.var("second", Type::Header(header)),
    );
    let control = b.control("c", &[(first, Direction::InOut), (second, Direction::Out)]);
    let read = b.get(first);
    b.program.controls[control.index()].body = vec![
        Stmt::Assign(Place::var(second), read),
        Stmt::SetValid(Place::var(second)),
    ];
    let none = b.action("none", &[], Vec::new());
    let leave = b.action("leave", &[], vec![Stmt::Exit]);
    let key = b.read(&b.field(v.ingress.headers, "h.f2"));
    b.table("t", vec![(MatchKind::Exact, key)], &[leave, none]);

    let mut maker = Maker {
        b,
        v,
        choices: Choices(choices.iter().cycle()),
    };
    let v = maker.v;
    let states = 1 + maker.choices.below(3);
    for state in 0..states {
        let (headers, metadata) = (Place::var(v.parser.headers), Place::var(v.parser.metadata));
        let mut next = headers.clone();
        next.path.push(Projection::Field(1));
        next.path.push(Projection::Next);
        let header = match maker.choices.below(3) {
            0 => maker.header(headers.clone()),
            _ => next,
        };
        let bits_on = maker.number(&headers, &metadata);
        let body = match maker.choices.below(4) {
            0 => vec![Stmt::Op(Op::Advance {
                bits: cast(Type::Bits(32), bits_on),
            })],
            1 => vec![Stmt::Op(Op::Lookahead { result: header })],
            _ => vec![Stmt::Op(Op::Extract {
                header,
                varbit_size: None,
            })],
        };
        let key = maker.number(&headers, &metadata);
        let next = maker.choices.below(states) as u32;
        let transition = Transition::Select {
            cases: vec![
                (
                    vec![KeySet::Range(BigUint::from(0u32), BigUint::from(1u32))],
                    Target::State(stateplane_ir::StateId(next)),
                ),
                (vec![KeySet::Any], Target::Accept),
            ],
            keys: vec![key],
        };
        if state == 0 {
            let start = maker.b.start();
            start.body = body;
            start.transition = transition;
        } else {
            maker.b.state("more", body, transition);
        }
    }
    for _ in 0..8 {
        let stmt = maker.stmt(v.ingress);
        maker.b.ingress().push(stmt);
        let stmt = maker.stmt(v.egress);
        maker.b.egress().push(stmt);
    }
    let all = Place::var(v.deparser.headers);
    maker.b.deparser().push(emit(all));
    maker.b
}

fn run(interp: &mut Interp, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut results = Vec::new();
    for frame in frames {
        let preserved = Preserved {
            field_list: Some(1),
            bits: frame.iter().map(|byte| u64::from(*byte)).collect(),
        };
        let outcome = interp.ingress(&IngressInput {
            frame,
            port: 3,
            instance_type: InstanceType::Normal,
            preserved: &preserved,
            now: 77,
        });
        let mut out = Vec::new();
        let egress = interp.egress(outcome.packet, &EGRESS, &mut out);
        results.push(out);
        if let Some((request, mut packet)) = egress.clone {
            interp.restore(&mut packet, &request.preserved);
            let mut out = Vec::new();
            interp.egress(packet, &EGRESS, &mut out);
            results.push(out);
        }
    }
    results
}

/// No bit of a value lies above its width.
fn clean(interp: &Interp) -> bool {
    let code = &interp.code;
    code.program
        .vars
        .iter()
        .zip(&code.bases)
        .all(|(var, base)| {
            code.layout.leaves(var.ty).iter().all(|leaf| {
                let at = base + leaf.offset;
                let size = stateplane_runtime::bits::word_count(leaf.width);
                let mut words = interp.machine.words[at..at + size].to_vec();
                stateplane_runtime::bits::clear_above(&mut words, leaf.width);
                words == interp.machine.words[at..at + size]
            })
        })
}

proptest! {
    #[test]
    fn random_programs_and_frames(
        choices in prop::collection::vec(any::<u8>(), 200..400),
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4),
    ) {
        let mut first = load(program(&choices));
        let mut second = load(program(&choices));
        let results = run(&mut first, &frames);
        prop_assert!(clean(&first));
        prop_assert_eq!(results, run(&mut second, &frames));
        prop_assert!(first.machine.stack.is_empty());
        prop_assert!(first.machine.spots.is_empty());
    }
}
