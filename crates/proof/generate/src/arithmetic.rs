//! Constant expressions: worth the same to the evaluator, to the checker, which folds
//! them, and to the interpreter, which computes them from the fields of a frame.

use crate::evaluate::evaluate;
use crate::expr::{Expr, Ty};
use crate::program::constant_expressions;
use crate::properties::interpreter;
use crate::source;
use num_bigint::BigInt;
use stateplane_runtime::{EgressInput, Engine, IngressInput, InstanceType, Preserved};

/// Expressions of one program.
const EXPRESSIONS: usize = 12;

/// Bits, the first one first.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn push(&mut self, ty: Ty, value: &BigInt) {
        let width = ty.width().unwrap_or(0);
        let (_, bits) = Ty::Bits(width).wrap(value).into_parts();
        for bit in (0..u64::from(width)).rev() {
            self.0.push(bits.bit(bit));
        }
    }

    fn pad(&mut self) -> usize {
        let length = self.0.len().next_multiple_of(8);
        let padding = length - self.0.len();
        self.0.resize(length, false);
        padding
    }

    fn bytes(&self) -> Vec<u8> {
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        self.0.chunks(8).map(byte).collect()
    }
}

fn fields(front: &str, types: &[Ty], padding: usize) -> String {
    let mut text = String::new();
    for (number, ty) in types.iter().enumerate() {
        text += &format!("    {ty} {front}{number};\n");
    }
    if padding > 0 {
        text += &format!("    bit<{padding}> pad;\n");
    }
    text
}

/// The program, the frame that it reads, and the frame that it should send.
fn case(seed: u64) -> (String, Vec<u8>, Vec<u8>) {
    let expressions = constant_expressions(seed, EXPRESSIONS);
    let (mut input, mut output) = (Bits::default(), Bits::default());
    let (mut inputs, mut results) = (Vec::new(), Vec::new());
    let mut body = String::new();
    for (number, expr) in expressions.iter().enumerate() {
        let ty = expr.ty();
        let value = evaluate(expr).unwrap_or_default();
        let mut computed = expr.clone();
        computed.for_each_constant(&mut |constant| {
            let Expr::Const { ty, value, .. } = constant else {
                return;
            };
            input.push(*ty, value);
            inputs.push(*ty);
            *constant = Expr::name(*ty, format!("hdr.given.a{}", inputs.len() - 1));
        });
        body += &format!("        const {ty} FOLDED{number} = {expr};\n");
        body += &format!("        hdr.result.r{} = FOLDED{number};\n", results.len());
        body += &format!("        hdr.result.r{} = {computed};\n", results.len() + 1);
        for _ in 0..2 {
            output.push(ty, &value);
            results.push(ty);
        }
    }
    let input_padding = input.pad();
    let output_padding = output.pad();
    let program = format!(
        "#include <v1model.p4>
header given_t {{
{}}}
header result_t {{
{}}}
struct headers_t {{ given_t given; result_t result; }}
struct meta_t {{}}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ p.extract(hdr.given); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    apply {{
        hdr.result.setValid();
{body}    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{}} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control D(packet_out p, in headers_t hdr) {{ apply {{ p.emit(hdr.result); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
",
        fields("a", &inputs, input_padding),
        fields("r", &results, output_padding)
    );
    (program, input.bytes(), output.bytes())
}

fn run(program: &str, frame: &[u8]) -> Result<Vec<u8>, String> {
    let mut engine = interpreter(source::compile(program)?, 0)?;
    let input = IngressInput {
        frame,
        port: 0,
        instance_type: InstanceType::Normal,
        preserved: &Preserved::default(),
        now: 0,
    };
    let outcome = engine.ingress(&input);
    let egress = EgressInput {
        port: 0,
        rid: 0,
        instance_type: InstanceType::Normal,
        enqueued_at: 0,
        enqueue_depth: 0,
        dequeue_depth: 0,
        now: 0,
    };
    let mut sent = Vec::new();
    engine.egress(outcome.packet, &egress, &mut sent);
    Ok(sent)
}

/// Generates constant expressions from `seed`, and compares what [`evaluate`], the
/// checker and the interpreter make of them.
///
/// # Errors
///
/// The program and the frames, if they differ.
pub fn check(seed: u64) -> Result<(), String> {
    let (program, frame, expected) = case(seed);
    let sent = run(&program, &frame)?;
    if sent == expected {
        return Ok(());
    }
    let shown =
        |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    Err(format!(
        "of the frame\n{}\nthe program makes\n{}\nand should make\n{}\n{program}",
        shown(&frame),
        shown(&sent),
        shown(&expected)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_worth_what_the_specification_says() {
        for seed in 0..150 {
            check(seed).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
        }
    }

    #[test]
    fn the_expressions_are_of_many_kinds() {
        let mut text = String::new();
        for seed in 0..150 {
            for expr in constant_expressions(seed, EXPRESSIONS) {
                text += &format!("{expr} ");
            }
        }
        for sign in [
            " + ", " - ", " * ", " / ", " % ", " |+| ", " |-| ", " & ", " | ", " ^ ", " << ",
            " >> ", " ++ ", " == ", " != ", " < ", " <= ", " > ", " >= ", " && ", " || ", " ? ",
            "(~", "(-", "(!", "(bit<", "(int<", "]",
        ] {
            assert!(text.contains(sign), "no `{sign}`");
        }
    }
}
