use super::*;

#[test]
fn errors_have_lines_and_codes() {
    let cases = [
        ("later call client=1", "line 1: HI001"),
        ("5 asked client=1", "line 1: HI002"),
        ("5 died node", "line 1: HI003"),
        (
            "\n5 call client=1 group=g operation=1 ask=read",
            "line 2: HI004: the field `key`",
        ),
        ("5 whole node=1", "line 1: HI005: the field `node`"),
        (
            "5 return client=1 group=g operation=1 outcome=good",
            "HI006: `good` is no outcome",
        ),
        (
            "5 return client=1 group=g operation=1 outcome=done number=5",
            "HI006: `5` is no number like 1:5",
        ),
        (
            "5 call client=1 group=g operation=1 ask=write key=k value=0",
            "HI006: `0` is no hexadecimal",
        ),
        (
            "5 call client=1 group=g operation=1 ask=delete key=k condition=some",
            "HI006: `some` is no condition",
        ),
        ("5 whole\n4 whole", "line 2: HI007"),
        (
            "expect rejected by luck: none",
            "CHECKER is outputs, numbers, linearizable",
        ),
        ("serves groups=g", "HI004: the field `within`"),
    ];
    for (text, start) in cases {
        let message = Document::read(text).unwrap_err().to_string();
        assert!(message.contains(start), "{text:?} gives {message:?}");
    }
}
