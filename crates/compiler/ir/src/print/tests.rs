use crate::sample::{self, big, typed, var};
use crate::*;

#[test]
fn the_sample_prints_as_its_golden_file() {
    assert_eq!(
        sample::program().to_string(),
        include_str!("../../tests/golden/sample.txt"),
    );
}

#[test]
fn shared_names_get_positions_and_others_do_not() {
    let text = sample::program().to_string();
    assert!(text.contains("var ingress.tmp#7: bool\n"));
    assert!(
        text.contains("apply ingress.route hit -> ingress.tmp#7 action_run -> ingress.tmp#8\n")
    );
    assert!(text.contains("var ingress.wide: bit<32>\n"));
}

#[test]
fn constants_carry_their_type() {
    let print = |ty, value| {
        let mut program = sample::program();
        program.controls[sample::INGRESS].body = vec![sample::set_wide(typed(
            ty,
            ExprKind::Const(Const::Bits(big(value))),
        ))];
        let text = program.to_string();
        let (_, rest) = text.split_once("ingress.wide = ").unwrap();
        rest.lines().next().unwrap().to_owned()
    };
    assert_eq!(print(Type::Bits(16), 0x800), "16w0x800");
    assert_eq!(print(Type::Bits(16), 9), "16w9");
    assert_eq!(print(Type::Int(8), 0xff), "8s-1");
    assert_eq!(print(Type::Int(8), 0x80), "8s-128");
    assert_eq!(print(Type::Int(8), 0x7f), "8s127");
    assert_eq!(print(Type::Error, 2), "error::NoMatch");
    assert_eq!(print(Type::Error, 200), "error::?200");
    assert_eq!(print(Type::Enum(sample::COLOR), 1), "Color::green");
    assert_eq!(print(Type::Enum(EnumId(5)), 1), "?5::?1");
}

#[test]
fn a_handle_out_of_range_prints_as_a_question_mark() {
    let mut program = sample::program();
    program.pipeline.ingress = ControlId(77);
    program.vars[var::WIDE.index()].ty = Type::Stack(StackId(9));
    program.controls[sample::INGRESS].body = vec![
        Stmt::SetValid(sample::place(var::HDR, &[40, 2])),
        Stmt::SetValid(Place::var(VarId(1000))),
    ];
    let text = program.to_string();
    assert!(text.contains("  ingress ?77\n"));
    assert!(text.contains("var ingress.wide: stack ?9\n"));
    assert!(text.contains("  ingress.hdr.?40.?2.setValid()\n"));
    assert!(text.contains("  ?1000.setValid()\n"));
}

#[test]
fn a_stack_of_itself_prints() {
    let mut program = sample::program();
    program.stacks[0].element = Type::Stack(sample::TAGS);
    assert!(program.to_string().contains("stack 0: stack 0[2]\n"));
}
