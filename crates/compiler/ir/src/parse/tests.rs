use super::*;
use crate::{sample, verify};
use proptest::prelude::*;

const ODD: &str = include_str!("../../tests/golden/odd.ir");

fn parsed(text: &str) -> Program {
    parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The text after a change, and what is wrong with it.
fn refused(from: &str, to: &str) -> String {
    let changed = ODD.replacen(from, to, 1);
    assert_ne!(changed, ODD, "{from} is not in the text");
    parse(&changed).expect_err(to).to_string()
}

#[test]
fn the_sample_parses_back() {
    let program = sample::program();
    assert_eq!(parsed(&program.to_string()), program);
}

#[test]
fn whatever_is_odd_parses_and_prints_the_same() {
    let program = parsed(ODD);
    assert_eq!(verify(&program), Ok(()));
    assert_eq!(program.to_string(), ODD);
}

#[test]
fn a_variable_is_told_from_a_member() {
    // `C.x` is a variable, and so is `C`.
    let program = parsed(&ODD.replace("var C#4: bit<32>", "var C#4: struct pair_t#2"));
    let text = program.to_string();
    assert!(text.contains("var C#4: struct pair_t#2\n"));
    let text = text.replace("C.x[7:0] =", "C#4.a = 8w0\n  C.x[7:0] =");
    assert_eq!(parsed(&text).to_string(), text);
}

#[test]
fn errors_say_where_and_what() {
    let cases = [
        (
            "  exit\n}",
            "  exit now\n}",
            "190:8: there is no variable `now`",
        ),
        (
            "emit(D.hdr.lastIndex)",
            "emit(D.hdr.first)",
            "189:14: there is no member `first`",
        ),
        (
            "var P.std: struct",
            "var P.std: header x_t ",
            "55:19: there is no struct `x_t`",
        ),
        (
            "var C.std",
            "var C.hdr",
            "62:5: `C.hdr` is there already; add `#9`",
        ),
        ("var tmp#10", "var tmp#9", "63:5: its position is 10"),
        (
            "case 0, 1 {",
            "case 0 1 {",
            "167:12: expected `,`, found a number",
        ),
        (
            "(8s-128)",
            "(8s-129)",
            "123:41: the number does not fit its width",
        ),
        ("C::x :", "C::z :", "145:69: there is no member `z`"),
        (
            "  size 0\n",
            "",
            "103:1: a table has a default action and a size",
        ),
        (
            "goto reject",
            "goto nowhere",
            "114:10: there is no state `nowhere`",
        ),
        (
            "\"a.p4:1:2\"",
            "\"a.p4:1:2",
            "179:21: a string is not closed on its line",
        ),
        (
            "  mark_to_drop(E.std)",
            "  £",
            "186:3: unknown character '£'",
        ),
    ];
    for (from, to, message) in cases {
        assert_eq!(refused(from, to), message);
    }
}

#[test]
fn a_text_without_its_parts_is_refused() {
    assert_eq!(parse("").unwrap_err().message, "there is no list of errors");
    assert_eq!(
        parse("error {}").unwrap_err().message,
        "there is no pipeline"
    );
    assert_eq!(
        parse("{}").unwrap_err().message,
        "expected a declaration, found `{`"
    );
    assert_eq!(
        parse("thing x").unwrap_err().message,
        "there is no such declaration"
    );
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    for (open, close) in [("!(", ")"), ("(", " + 32w1)"), ("C.hdr.next[", "].a")] {
        let value = format!("{}C#4{}", open.repeat(100_000), close.repeat(100_000));
        let message = refused("C#4 = (", &format!("C#4 = {value}\n  C#4 = ("));
        assert!(message.contains("nested deeper than 600"), "{message}");
    }
    let message = refused(
        "  tmp#11.next.setInvalid()",
        &format!("{}{}", "block {\n".repeat(100_000), "}".repeat(100_000)),
    );
    assert!(message.contains("nested deeper than 600"), "{message}");
}

#[test]
fn huge_numbers_are_refused() {
    let digits = "9".repeat(100_000);
    assert!(refused("16s32767", &format!("16s{digits}")).contains("more than 4096 digits"));
    assert!(refused("16s32767", "4294967295s-1").contains("too wide"));
    assert!(refused("16s32767", "99999999999s1").contains("is no number"));
    assert!(
        refused("emit(D.hdr.lastIndex)", "D.hdr.same.pop_front(4294967296)").contains("too large")
    );
}

/// Words, numbers and other characters, one by one.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, _) in text.char_indices().skip(1) {
        let word = |c: char| c.is_alphanumeric() || "_$.#".contains(c);
        if !(text[..at].ends_with(word) && text[at..].starts_with(word)) {
            pieces.push(&text[start..at]);
            start = at;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A damaged text is refused, or is a program that the verifier judges and that
    /// parses back if it is sound.
    #[test]
    fn damaged_texts_do_no_harm(
        of_sample in any::<bool>(),
        damage in prop::collection::vec((any::<u32>(), any::<u32>(), 0..4_u8), 1..4),
    ) {
        let text = if of_sample { sample::program().to_string() } else { ODD.to_owned() };
        let mut pieces: Vec<&str> = pieces(&text);
        for (at, from, how) in damage {
            let at = at as usize % pieces.len();
            let other = pieces[from as usize % pieces.len()];
            match how {
                0 => { pieces.remove(at); }
                1 => pieces.insert(at, other),
                2 => pieces[at] = other,
                _ => {
                    let from = from as usize % pieces.len();
                    pieces.swap(at, from);
                }
            }
        }
        if let Ok(program) = parse(&pieces.concat()) {
            let printed = program.to_string();
            if verify(&program).is_ok() {
                prop_assert_eq!(parse(&printed), Ok(program));
            }
        }
    }

    #[test]
    fn any_text_is_refused(text in "\\PC{0,80}") {
        prop_assert!(parse(&text).is_err());
    }
}
