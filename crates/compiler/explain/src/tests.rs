use super::*;
use stateplane_diagnostics::{Code, Color, Diagnostic, Span};

#[test]
fn codes_are_found_in_either_case() {
    assert_eq!(find("E1101").unwrap().code, "E1101");
    assert_eq!(find("e1101").unwrap().code, "E1101");
    assert_eq!(find("E9999"), None);
    assert_eq!(find(""), None);
}

#[test]
fn a_mistyped_code_finds_its_neighbour() {
    assert_eq!(nearest("E110l"), Some("E1101"));
    assert_eq!(nearest("1101"), Some("E1101"));
    assert_eq!(nearest("nothing like a code"), None);
}

#[test]
fn every_file_has_a_title_a_text_and_no_loose_ends() {
    for explanation in all() {
        let Explanation {
            code,
            title,
            text,
            wrong,
            right,
        } = explanation;
        assert!(!title.is_empty(), "{code}: # CODE: title");
        assert!(!text.is_empty(), "{code}: no explanation");
        assert_eq!(wrong.is_some(), right.is_some(), "{code}: one example only");
        assert!(!text.contains("\n## "), "{code}: a section out of place");
        for example in [wrong, right].into_iter().flatten() {
            assert!(
                example.text.ends_with('\n'),
                "{code}: a fence on its own line"
            );
        }
    }
}

#[test]
fn examples_are_indented_below_their_place() {
    let text = render(&find("E1101").unwrap(), Color::Never);
    assert!(text.starts_with("E1101: a value has another type than is needed\n\n"));
    assert!(
        text.contains("\nWrong, in the `apply` block of a control:\n\n    hdr.ipv4.ttl ="),
        "{text}"
    );
    assert!(!text.contains("```") && !text.contains('\x1b'));
    assert!(render(&find("E1101").unwrap(), Color::Ansi).contains("\x1b[1;31mWrong\x1b[0m"));
}

#[test]
fn the_list_has_a_line_for_each() {
    assert_eq!(list().lines().count(), all().count());
    assert!(list().contains("E1101   a value has another type"));
}

#[test]
fn the_hint_names_each_explained_code_once() {
    let with = |id| Diagnostic::error(Code::new(id, "for tests"), Span::default(), "for tests");
    let several = [with("E1101"), with("E9999"), with("E1001"), with("E1101")];
    assert_eq!(
        hint(&several).as_deref(),
        Some("for more: stateplane explain E1101 E1001")
    );
    assert_eq!(hint(&[with("E9999")]), None);
    let many = ["E1001", "E1002", "E1003", "E1004", "E1005", "E1006"].map(with);
    assert!(hint(&many).unwrap().ends_with(" E1005"));
}
